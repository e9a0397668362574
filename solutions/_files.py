"""Writing files."""

import contextlib
import os
from pathlib import Path


@contextlib.contextmanager
def whole_file(path):
    """A binary file that appears under its name only when all of it has been written.

    After an error in the block, or a full disk, the file that stood there is as it was.
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            yield file
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
