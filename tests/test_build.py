"""`python -m course build`: normal form, worked copies and checks, on toy lessons."""

import textwrap
from types import SimpleNamespace

import nbformat
import pytest
from course import __main__ as command
from course import build

MARKDOWN, CODE = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell

BLANK = '''\
@exercise
def double(x, times=2):
    """Twice `x`, or `times` as much.

    The lesson says more than the reference here.
    """
    ...


print(double(4))'''


def double(x, times=2):
    """Twice `x`, or `times` as much."""
    # A comment before the first statement is kept.

    def multiply(value):
        """A nested helper keeps its own docstring."""
        return value * times

    text = """a string
  over lines"""
    assert text
    return multiply(x)


def decorated(function):
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    call.__wrapped__ = function
    return call


@decorated
def one_line(x): return x + 1  # fmt: skip


def no_docstring(x):
    # why
    return x


def get(name):
    references = {"double": double, "one_line": one_line, "no_docstring": no_docstring}
    if name not in references:
        raise KeyError(f"no exercise is called {name!r}")
    return SimpleNamespace(reference=references[name])


def cells(*more):
    return [
        MARKDOWN("# Double a number\n\nTwo words."),
        CODE("exercise = lambda function: function"),
        CODE(BLANK),
        *more,
    ]


@pytest.fixture
def lesson(tmp_path):
    """Make a toy lesson from cells and return it."""

    def make(*given, name="01_toy"):
        (tmp_path / "notebooks").mkdir(exist_ok=True)
        (tmp_path / "solutions").mkdir(exist_ok=True)
        notebook = nbformat.v4.new_notebook(cells=list(given) or cells())
        nbformat.write(notebook, tmp_path / "notebooks" / f"{name}.ipynb")
        (found,) = build.lessons(tmp_path, [name])
        return found

    return make


def test_normal_form_has_stable_ids_and_no_outputs():
    notebook = nbformat.v4.new_notebook(
        metadata={"widgets": {}, "language_info": {"name": "python", "version": "3.11.7"}},
        cells=[
            MARKDOWN("# A  \n", metadata={"editable": False}),
            CODE("1 + 1\n", metadata={"tags": ["b", "a"], "execution": {}}, execution_count=7),
            CODE("1 + 1"),
            CODE("   "),
            CODE(BLANK),
        ],
    )
    notebook.cells[1].outputs = [nbformat.v4.new_output("stream", text="2")]
    made = build.normal(notebook)
    assert [cell.source.split("\n")[0] for cell in made.cells] == [
        "# A", "1 + 1", "1 + 1", "@exercise",
    ]  # fmt: skip
    first, second, third, exercise = made.cells
    assert exercise.id == "exercise-double"
    assert third.id == f"{second.id}-2"
    assert second.outputs == [] and second.execution_count is None
    assert second.metadata == {"tags": ["a", "b"]}
    assert first.metadata == {}
    assert made.metadata == build.METADATA

    moved = nbformat.v4.new_notebook(cells=[CODE("0"), *reversed(notebook.cells)])
    assert {cell.id for cell in build.normal(moved).cells} > {cell.id for cell in made.cells}
    assert build.dumps(build.normal(made)) == build.dumps(made)


def test_definitions_of_terms_change_no_id_and_no_second_build_and_count_as_words():
    text = "word " * 60 + "loss gradient"
    plain = nbformat.v4.new_notebook(cells=[MARKDOWN("# A"), MARKDOWN(text), CODE("loss = 1")])
    marked = build.normal(plain, "05")
    assert marked.cells[1].source.count("<abbr title=") == 2
    assert marked.cells[2].source == "loss = 1"
    bare = build.normal(plain)
    assert [cell.id for cell in marked.cells] == [cell.id for cell in bare.cells]
    assert build.without_abbreviations(marked.cells[1].source) == bare.cells[1].source
    assert build.dumps(build.normal(marked, "05")) == build.dumps(marked)
    # Without a number, as where only the form is looked at, what is there stays.
    assert build.dumps(build.normal(marked)) == build.dumps(marked)
    place = build.ROOT / "notebooks" / "01_toy.ipynb"
    assert build.text_problems(marked, place) == []
    long = nbformat.v4.new_notebook(cells=[MARKDOWN("word " * 118 + "loss gradient")])
    assert build.text_problems(long, place) == []
    assert "words of text" in build.text_problems(build.normal(long, "05"), place)[0]
    assert build.form_problems(marked, "05") == []
    (found,) = build.form_problems(bare, "05")
    assert "terms" in found


@pytest.mark.parametrize(
    "decorator", ["@exercise", "@exercise()", "@course.exercise", "@exercise\n@other"]
)
def test_exercises_are_found(decorator):
    assert build.exercise_name(f'{decorator}\ndef name(x):\n    """Doc."""\n    ...') == "name"


@pytest.mark.parametrize("source", ["exercise = 1", "%exercise magic", "def f(): ...", "exercise("])
def test_other_cells_are_no_exercises(source):
    assert build.exercise_name(source) is None


def test_fill_puts_the_references_body_in_place_of_the_dots():
    filled = build.fill(BLANK, double)
    assert filled == textwrap.dedent('''\
        @exercise
        def double(x, times=2):
            """Twice `x`, or `times` as much.

            The lesson says more than the reference here.
            """
            # A comment before the first statement is kept.

            def multiply(value):
                """A nested helper keeps its own docstring."""
                return value * times

            text = """a string
          over lines"""
            assert text
            return multiply(x)


        print(double(4))''')


def test_fill_takes_a_decorated_one_line_reference_and_one_without_docstring():
    blank = '@exercise\ndef {}(x):\n    """One more."""\n    ...'
    assert build.fill(blank.format("one_line"), one_line).endswith("    return x + 1")
    assert build.fill(blank.format("no_docstring"), no_docstring).endswith(
        '"""One more."""\n    # why\n    return x'
    )


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('@exercise\ndef double(x):\n    """Doc."""\n    return x', "must be a docstring and"),
        ("@exercise\ndef double(x): ...", "line of its own"),
        ("double = 1", "holds no exercise"),
    ],
)
def test_fill_says_what_it_cannot_do(source, said):
    with pytest.raises(build.BuildError, match=said):
        build.fill(source, double)


def test_a_worked_copy_is_run_and_kept_the_same_twice(lesson):
    made = lesson(
        *cells(
            MARKDOWN("See [the next](02_more.ipynb#A-part) and [a file](../README.md)."),
            CODE("import os, sys\nos.environ['COURSE_STRICT'], os.path.basename(os.getcwd())"),
            CODE("for i in range(3):\n    print(i)\n    sys.stdout.flush()"),
            CODE(
                "import ipywidgets\nfrom IPython.display import display\n"
                "box = ipywidgets.IntSlider()\n"
                "display({'text/html': '<img alt=\"a bar\" src=\"x\">', **box._repr_mimebundle_()},"
                " raw=True)\ndisplay(box)"
            ),
        )
    )
    said = []
    build.build(made, get, said.append)
    assert said == ["01_toy.ipynb: normalized", "01_toy_solution.ipynb: written"]
    first = made.worked.read_bytes()
    build.build(made, get, said.append)
    assert said[2:] == ["01_toy_solution.ipynb: unchanged"]
    assert made.worked.read_bytes() == first

    worked = build.read(made.worked)
    code = build.code_cells(worked)
    assert "return multiply(x)" in code[1].source
    assert code[1].outputs[0].text == "8\n"
    assert code[2].outputs[0].data["text/plain"] == "('1', 'solutions')"
    assert [output.text for output in code[3].outputs] == ["0\n1\n2\n"]
    (still,) = code[4].outputs
    assert set(still.data) == {"text/html", "text/plain"}
    assert [cell.execution_count for cell in code] == [1, 2, 3, 4, 5]
    assert all(set(cell.metadata) <= {"tags"} for cell in worked.cells)
    assert worked.metadata == build.METADATA
    text = "\n".join(cell.source for cell in worked.cells)
    assert "(02_more_solution.ipynb#A-part)" in text
    assert "(../README.md)" in text
    assert "(../notebooks/01_toy.ipynb)" in text
    assert build.worked_problems(made, build.read(made.blank), get) == [
        f"{build._where(worked, worked.cells[4])}: the link to 02_more_solution.ipynb#A-part "
        "leads nowhere",
        f"{build._where(worked, worked.cells[4])}: the link to ../README.md leads nowhere",
    ]


def test_a_cell_that_fails_writes_no_worked_copy(lesson):
    made = lesson(*cells(CODE("raise ValueError('too bad')")))
    with pytest.raises(build.BuildError, match="ValueError: too bad"):
        build.build(made, get, lambda line: None)
    assert not made.worked.exists()


def test_text_mode_takes_the_new_text_and_keeps_the_outputs(lesson, monkeypatch):
    made = in_order(lesson)
    worked = build.read(made.worked)
    outputs = [(cell.outputs, cell.execution_count) for cell in build.code_cells(worked)]
    monkeypatch.setattr(build, "execute", lambda *given: pytest.fail("a cell was run"))

    def change(notebook):
        notebook.cells[0].source = "# Double a number\n\nOther words."
        notebook.cells.insert(2, MARKDOWN("One cell more."))

    spoil(made.blank, change)
    said = []
    build.build_text(made, get, said.append)
    assert said == ["01_toy.ipynb: normalized", "01_toy_solution.ipynb: text written"]
    assert build.problems(made, get) == []
    worked = build.read(made.worked)
    assert [cell.source for cell in worked.cells if cell.cell_type == "markdown"][::2] == [
        "# Double a number\n\nOther words.", "One cell more.",
    ]  # fmt: skip
    assert outputs == [(cell.outputs, cell.execution_count) for cell in build.code_cells(worked)]
    build.build_text(made, get, said.append)
    assert said[2:] == ["01_toy_solution.ipynb: unchanged"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda cells: cells[2].update(source=cells[2].source + "  # more"), "changed at cell 3"),
        (lambda cells: cells.insert(2, CODE("x = 1")), "changed at cell 3"),
        (lambda cells: cells.append(CODE("x = 1")), "3 code cells, 2 in the worked copy"),
        (lambda cells: cells.pop(), "1 code cells, 2 in the worked copy"),
    ],
)
def test_text_mode_does_not_keep_outputs_of_other_code(lesson, change, said):
    made = in_order(lesson)
    before = made.worked.read_bytes()
    spoil(made.blank, lambda notebook: change(notebook.cells))
    with pytest.raises(build.BuildError, match=said) as caught:
        build.build_text(made, get, lambda line: None)
    assert "must be run: python -m course build 01" in str(caught.value)
    assert made.worked.read_bytes() == before
    made.worked.unlink()
    with pytest.raises(build.BuildError, match="there is no worked copy"):
        build.build_text(made, get, lambda line: None)


def worked_by_hand(made):
    """A worked copy as `build` makes it, without running it."""
    notebook = build.worked_sources(made, build.read(made.blank), get)
    for number, cell in enumerate(build.code_cells(notebook), start=1):
        cell.execution_count = number
        cell.outputs = [nbformat.v4.new_output("stream", text="8\n")]
    return notebook


def in_order(lesson):
    """A toy lesson in its normal form with a fresh worked copy."""
    made = lesson()
    build.write(made.blank, build.normal(build.read(made.blank)))
    build.write(made.worked, worked_by_hand(made))
    assert build.problems(made, get, lambda number: ["double"]) == []
    return made


def spoil(path, change):
    notebook = build.read(path)
    change(notebook)
    nbformat.write(notebook, path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("times=2", "times=3", "double(x, times=3) in the lesson, double(x, times=2) in the ref"),
        ("(x, times=2)", "(x)", "double(x) in the lesson"),
        ("Twice `x`", "Twice x", "the docstring begins"),
        ("    ...", "    return 2 * x", "is not blank"),
        ("def double", "def treble", "no exercise is called 'treble'"),
        ("def double", "def treble", "the exercise double is registered for this lesson"),
        ("print(double(4))", "\n" * 7 + "print(0)", "17 lines of code, at most 15"),
        ("print(double(4))", f"print({'1' * 100})", "a line of 107 characters"),
        ("print(double(4))", "double(4)", "stale"),
    ],
)
def test_check_finds_what_is_wrong_with_an_exercise(lesson, old, new, said):
    made = in_order(lesson)

    def change(notebook):
        notebook.cells[2].source = notebook.cells[2].source.replace(old, new)

    spoil(made.blank, change)
    found = build.problems(made, get, lambda number: ["double"])
    assert any(said in one for one in found), found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("word " * 121, "121 words of text, at most 120"),
        ("word " * 119 + "\n```python\ncode\n```", "122 words of text, at most 120"),
        ("![](../figures/x.svg)", "without alt text"),
        ("![ ](data:image/png;base64,xx)", "without alt text"),
        ('<img src="https://example.org/x.png">', "without alt text"),
        ("[next](02_nothing.ipynb)", "leads nowhere"),
        ("[part](#No-such-part)", "leads to no heading"),
        ('<a href="nothing.md">here</a>', "leads nowhere"),
    ],
)
def test_check_finds_what_is_wrong_with_a_text(lesson, text, said):
    made = in_order(lesson)
    spoil(made.blank, lambda notebook: notebook.cells[0].update(source=text))
    found = build.problems(made, get)
    assert any(said in one for one in found), found


@pytest.mark.parametrize(
    "text",
    [
        "word " * 120,
        "word " * 60 + "\n```python\n" + "code " * 50 + "\n```",
        "![what it shows](https://example.org/x.png)",
        "[here](#Double-a-number) and [there](https://example.org)",
        "`![](no/picture)` and `[no](link)`",
        '<svg role="img" aria-label="a bar"></svg>',
    ],
)
def test_check_lets_good_texts_pass(tmp_path, text):
    notebook = nbformat.v4.new_notebook(cells=[MARKDOWN("# Double a number"), MARKDOWN(text)])
    assert build.text_problems(notebook, tmp_path / "01_toy.ipynb") == []


def output(**data):
    kinds = {"html": "text/html", "plain": "text/plain", "png": "image/png"}
    return nbformat.v4.new_output(
        "display_data", data={kinds.get(key, key): value for key, value in data.items()}
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (output(png="aGk=", plain="<Figure size 640x480>"), "a picture without alt text"),
        (output(html="<img src='x'>"), "a picture without alt text"),
        (output(html="<svg></svg>"), "an <svg> without"),
        (output(plain="<object at 0x7f3a2b1c0d>"), "one machine"),
        (output(plain="'/home/someone/course'"), "one machine"),
        (output(**{build.WIDGET_VIEW: {}, "html": "x"}), "the state of a widget"),
        (nbformat.v4.new_output("stream", name="stderr", text="Warning"), "a warning or message"),
        (nbformat.v4.new_output("error", ename="E", evalue="", traceback=[]), "an error is kept"),
    ],
)
def test_check_finds_what_is_wrong_with_an_output(lesson, given, said):
    made = in_order(lesson)
    spoil(made.worked, lambda notebook: notebook.cells[2].outputs.append(given))
    found = build.problems(made, get)
    assert any(said in one for one in found), found


def test_check_finds_outputs_in_the_learners_copy_and_a_missing_worked_copy(lesson):
    made = in_order(lesson)
    spoil(made.blank, lambda notebook: notebook.cells[1].update(execution_count=1))
    made.worked.unlink()
    found = build.problems(made, get)
    assert any("has outputs or a number" in one for one in found), found
    assert any("missing" in one for one in found), found


def test_lessons_are_chosen_by_number_or_name(lesson, tmp_path):
    one = lesson(name="01_toy")
    two = lesson(name="02_more")
    (tmp_path / "notebooks" / "scratch.ipynb").write_text("{}")
    assert build.lessons(tmp_path) == [one, two]
    assert build.lessons(tmp_path, ["02"]) == [two]
    assert build.lessons(tmp_path, ["02_more.ipynb"]) == [two]
    with pytest.raises(build.BuildError, match="there is no lesson 07; there are 01_toy, 02_more"):
        build.lessons(tmp_path, ["07"])


def test_the_command_says_how_it_is_used(capsys):
    assert command.main([]) == 2
    assert command.main(["--help"]) == 0
    assert "usage: python -m course" in capsys.readouterr().out
    assert command.main(["bild"]) == 2
    assert "no command 'bild'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["vocab", "weights", "glossary", "build", "grade", "update"])
def test_help_of_a_command_does_nothing_but_help(name, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        command.main([name, "--help"])
    assert left.value.code == 0
    assert f"usage: python -m course {name}" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "argument", "said"),
    [
        ("vocab", "nonsense", "unrecognized arguments: nonsense"),
        ("vocab", "--x", "unrecognized arguments: --x"),
        ("weights", "nonsense", "there is no nonsense; there are lesson05, lesson06"),
        ("weights", "--x", "unrecognized arguments: --x"),
        ("glossary", "nonsense", "unrecognized arguments: nonsense"),
        ("glossary", "--x", "unrecognized arguments: --x"),
    ],
)
def test_a_command_refuses_what_it_does_not_know(
    name, argument, said, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        command.main([name, argument])
    assert left.value.code == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_is_missing(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(command.MODULES, "weights", "course.no_such_package.make")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    assert command.main(["weights"]) == 2
    assert "course.no_such_package.make is not in this copy" in capsys.readouterr().err
    assert command.main(["figures"]) == 2
    assert "there is no" in capsys.readouterr().err
