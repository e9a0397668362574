"""solutions._files: a file is there as a whole, or as it was before."""

import pytest

from solutions._files import whole_file


def test_a_file_appears_when_all_of_it_is_written(tmp_path):
    path = tmp_path / "model.bin"
    with whole_file(path) as file:
        file.write(b"all ")
        assert not path.exists()
        file.write(b"of it")
    assert path.read_bytes() == b"all of it"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_on_the_way_leaves_the_file_that_was_there(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(b"good")

    def write():
        with whole_file(path) as file:
            file.write(b"half")
            raise TypeError("half way")

    with pytest.raises(TypeError, match="half way"):
        write()
    assert path.read_bytes() == b"good"
    assert list(tmp_path.iterdir()) == [path]
