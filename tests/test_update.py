"""`python -m course update`: toy courses in real git repositories, and a learner's clones."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest
from course import __main__ as command
from course import build, update
from course.exercises import get
from course.update import _finish, _lesson

MARKDOWN, CODE = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell

DOUBLE = '''@exercise
def double(x):
    """Twice `x`."""
    ...'''
HALF = '''@exercise
def half(x):
    """Half of `x`."""
    ...


print(half(4))'''
THIRD = '''@exercise
def third(x):
    """A third of `x`."""
    ...'''
IMPORTS = "from course import exercise"
TITLE = "# Double a number\n\nWhat you will build, and why anyone would want it."
TEXT = "A number and itself make twice the number. That is all there is to it."
PLAY = "for x in range(3):\n    print(double(x))"
ENDING = "## What you have now\n\nTwo functions, and the calm of someone who wrote them."


def add():
    return [MARKDOWN(TITLE), CODE(IMPORTS), CODE(DOUBLE), MARKDOWN(TEXT), CODE(PLAY), CODE(HALF),
            MARKDOWN(ENDING)]  # fmt: skip


def more():
    return [MARKDOWN("# Divide by three"), CODE(IMPORTS), CODE(THIRD), MARKDOWN("Done at last.")]


def lesson(cells):
    return build.dumps(build.normal(nbformat.v4.new_notebook(cells=cells)))


def shipped():
    """The files of the first version of the toy course."""
    return {
        "README.md": "the course\n",
        "requirements.txt": "numpy\n",
        ".gitignore": "notebooks/.learner/\n__pycache__/\n",
        "notebooks/course/__init__.py": "",
        "notebooks/course/texts/reviews.tsv": "good\tpositive\n",
        "notebooks/01_add.ipynb": lesson(add()),
        "notebooks/02_more.ipynb": lesson(more()),
        "solutions/__init__.py": "",
        "solutions/numbers.py": "def double(x):\n    return 2 * x\n",
        "solutions/01_add_solution.ipynb": lesson(add()),
        "solutions/02_more_solution.ipynb": lesson(more()),
    }


def write(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8", newline="\n")


def git(root, *arguments):
    done = subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, encoding="utf-8", timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class World:
    """A remote with the course, a learner's clone, and what both may do."""

    def __init__(self, folder, monkeypatch, capsys):
        self.folder, self.capsys = folder, capsys
        self.remote, self.root = folder / "remote", folder / "clone"
        monkeypatch.setenv("COURSE_HOME", str(self.home))
        (folder / "tmp").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(folder / "tmp"))
        monkeypatch.setattr(os, "fsync", lambda file: None)  # takes most of the time, else

    def begin(self):
        """The first version on the remote, and a fresh clone of it."""
        self.remote.mkdir()
        git(self.remote, "init", "--quiet", "-b", "main", "--template=")
        self.identity(self.remote)
        self.publish(shipped())
        git(self.folder, "clone", "--quiet", "--template=", str(self.remote), str(self.root))
        git(self.root, "config", "remote.origin.url", "../remote")  # wherever both are copied to
        self.identity(self.root)

    @property
    def home(self):
        return self.root / "notebooks" / ".learner"

    def identity(self, root):
        git(root, "config", "user.name", "Someone")
        git(root, "config", "user.email", "someone@example.org")

    def publish(self, files, remove=()):
        """Commit a newer version of the course on the remote."""
        write(self.remote, files)
        for path in remove:
            (self.remote / path).unlink()
        git(self.remote, "add", "-A")
        git(self.remote, "commit", "--quiet", "-m", "a version")

    def commit(self, message="my work"):
        git(self.root, "add", "-A")
        git(self.root, "commit", "--quiet", "-m", message)

    def update(self, *arguments, code=0):
        """Run the command; returns what it printed (its errors, where it is to fail)."""
        if code:
            with pytest.raises(SystemExit) as raised:
                update.main(list(arguments), root=self.root)
            assert isinstance(raised.value.code, str)  # Python prints it, and ends with code 1
            return raised.value.code
        assert update.main(list(arguments), root=self.root) == 0
        return self.capsys.readouterr().out

    def read(self, path):
        return nbformat.read(self.root / path, as_version=4)

    def sources(self, path="notebooks/01_add.ipynb"):
        return [cell.source for cell in self.read(path).cells]

    def work(self, path="notebooks/01_add.ipynb", answers=(), after=None, edit=(), save=True):
        """Work in a notebook as JupyterLab does: ids stay, new cells get a uuid, outputs come.

        answers: (name, body) pairs; after: for a cell's source, cells to put below it;
        edit: (source, other source) pairs.
        """
        notebook = self.read(path)
        cells = []
        for cell in notebook.cells:
            source = cell.source
            for name, body in answers:
                if f"def {name}(" in cell.source:
                    cell.source = cell.source.replace("    ...", body)
            for old, new in edit:
                if source == old:
                    cell.source = new
            if cell.cell_type == "code":
                cell.execution_count = 7
                cell.outputs = [nbformat.v4.new_output("stream", text="an output\n")]
            cells += [cell, *(after or {}).get(source, [])]
        notebook.cells = cells
        notebook.metadata["widgets"] = {}
        nbformat.write(notebook, self.root / path)
        return (self.root / path).read_bytes()

    def backup(self):
        (found,) = [one for one in (self.home / "backups").iterdir()]
        return found

    def files(self):
        """All files but git's and the learner's store."""
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not {".git", ".learner"} & set(path.parts)
        }

    def at_upstream(self):
        return git(self.root, "rev-parse", "HEAD") == git(self.remote, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def beginning(tmp_path_factory):
    """A folder with the remote and the clone as each test finds them: made once, then copied."""
    folder = tmp_path_factory.mktemp("beginning")
    with pytest.MonkeyPatch.context() as patch:
        no_settings(patch)
        World(folder, patch, None).begin()
    return folder


def no_settings(patch):
    """What git is told on this machine has no part in the tests."""
    patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    patch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def world(beginning, tmp_path, monkeypatch, capsys):
    no_settings(monkeypatch)
    for name in ("remote", "clone"):
        shutil.copytree(beginning / name, tmp_path / name)
    return World(tmp_path, monkeypatch, capsys)


def reworded(cells):
    """The same lesson with other words in its texts, and one cell more at the start."""
    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace("number", "value").replace("you", "we")
    return [*cells[:1], MARKDOWN("A sentence that was not there before."), *cells[1:]]


def answered(blank, body):
    return blank.replace("    ...", body)


# ---------------------------------------------------------------- the cases of every learner


def test_no_changes(world):
    before = world.work(answers=[("double", "    return x + x")])
    assert "nothing newer" in world.update()
    assert (world.root / "notebooks/01_add.ipynb").read_bytes() == before
    assert not (world.home / "backups").exists()


def test_all_answered(world):
    bodies = {"double": "    # because\n    return x + x", "half": "    return x / 2"}
    first = world.work(answers=bodies.items())
    second = world.work("notebooks/02_more.ipynb", answers=[("third", "    return x / 3")])
    (world.home / "answers").mkdir(parents=True)
    (world.home / "answers/double.last.py").write_text("kept", encoding="utf-8")
    world.publish({
        "notebooks/01_add.ipynb": lesson(reworded(add())),
        "notebooks/02_more.ipynb": lesson(reworded(more())),
        "notebooks/03_new.ipynb": lesson([MARKDOWN("# New")]),
        "notebooks/course/__init__.py": "# newer\n",
        "requirements.txt": "numpy\nmatplotlib\n",
    })  # fmt: skip
    said = world.update()
    assert world.at_upstream()
    wanted = build.normal(nbformat.v4.new_notebook(cells=reworded(add())))
    for cell in wanted.cells:
        for name, body in bodies.items():
            if cell.id == f"exercise-{name}":
                cell.source = answered(cell.source, body)
    text = (world.root / "notebooks/01_add.ipynb").read_text(encoding="utf-8")
    assert text == build.dumps(wanted)  # the new texts and ids, both answers, no outputs
    assert answered(THIRD, "    return x / 3") in world.sources("notebooks/02_more.ipynb")
    assert (world.root / "notebooks/course/__init__.py").read_text() == "# newer\n"
    for line in (
        "`notebooks/01_add.ipynb`: put back 2 answers.",
        "`notebooks/02_more.ipynb`: put back 1 answer.",
        "`notebooks/03_new.ipynb` is new",
        "pip install -r requirements.txt",
    ):
        assert line in said
    assert "Look at these" not in said
    backup = world.backup()
    assert (backup / "files/notebooks/01_add.ipynb").read_bytes() == first
    assert (backup / "files/notebooks/02_more.ipynb").read_bytes() == second
    assert (backup / "learner/answers/double.last.py").read_text(encoding="utf-8") == "kept"
    assert (backup / "report.md").read_text(encoding="utf-8") in said
    assert sorted(path.name for path in backup.iterdir()) == ["files", "learner", "report.md"]
    changed = git(world.root, "status", "--porcelain").splitlines()
    assert [line.split()[1] for line in changed] == [
        "notebooks/01_add.ipynb", "notebooks/02_more.ipynb",
    ]  # fmt: skip


def test_what_an_update_leaves_alone_is_not_touched(world):
    worked = world.work(answers=[("double", "    return x + x")], edit=[(TEXT, "Not so.")])
    world.publish({"README.md": "newer\n"})
    said = world.update()
    assert world.at_upstream()
    assert (world.root / "README.md").read_text() == "newer\n"
    assert (world.root / "notebooks/01_add.ipynb").read_bytes() == worked  # outputs too
    assert "put back" not in said


def test_a_blank_copy_is_replaced_without_a_word(world):
    world.publish({"notebooks/01_add.ipynb": lesson(reworded(add()))})
    said = world.update()
    assert world.files()["notebooks/01_add.ipynb"].decode() == lesson(reworded(add()))
    assert git(world.root, "status", "--porcelain") == ""
    assert "put back" not in said and "Look at these" not in said
    assert not (world.backup() / "files").exists()


def test_twice_is_once(world):
    world.work(answers=[("double", "    return x + x")], after={TEXT: [MARKDOWN("my note")]})
    world.publish({"notebooks/01_add.ipynb": lesson(reworded(add()))})
    world.update()
    before = world.files()
    assert "nothing newer" in world.update()
    assert world.files() == before
    world.backup()  # one only


def test_a_renamed_lesson(world):
    worked = world.work(
        answers=[("double", "    return x + x")], after={PLAY: [MARKDOWN("my note")]}
    )
    world.publish(
        {
            "notebooks/01_first.ipynb": lesson([MARKDOWN("# Quite another lesson")]),
            "notebooks/02_double.ipynb": lesson(reworded(add())),
            "notebooks/03_more.ipynb": lesson(more()),
        },
        remove=["notebooks/01_add.ipynb", "notebooks/02_more.ipynb"],
    )
    said = world.update()
    assert "`notebooks/01_add.ipynb` is now `notebooks/02_double.ipynb`." in said
    assert "`notebooks/02_more.ipynb` is now `notebooks/03_more.ipynb`." in said
    sources = world.sources("notebooks/02_double.ipynb")
    assert answered(DOUBLE, "    return x + x") in sources
    assert sources[sources.index(PLAY) + 1] == "my note"
    assert sorted(path.name for path in (world.root / "notebooks").glob("*.ipynb")) == [
        "01_first.ipynb", "02_double.ipynb", "03_more.ipynb",
    ]  # fmt: skip
    assert (world.backup() / "files/notebooks/01_add.ipynb").read_bytes() == worked


def test_a_removed_exercise(world):
    world.work(answers=[("double", "    return x + x"), ("half", "    return x / 2")])
    world.publish({"notebooks/01_add.ipynb": lesson([c for c in add() if c.source != HALF])})
    said = world.update()
    assert "the exercise `half` no longer exists" in said
    *_, heading, kept = world.sources()
    assert heading == _lesson.HEADING.source
    assert "#     return x / 2" in kept.splitlines() and "# print(half(4))" in kept.splitlines()
    assert all(line[:1] in ("#", "") for line in kept.splitlines())  # nothing of it runs
    assert answered(DOUBLE, "    return x + x") in world.sources()


def test_a_removed_lesson(world):
    worked = world.work("notebooks/02_more.ipynb", answers=[("third", "    return x / 3")])
    world.publish({}, remove=["notebooks/02_more.ipynb", "solutions/02_more_solution.ipynb"])
    said = world.update()
    assert "no longer a part of the course. Yours, with answers to `third`, is in the bac" in said
    assert not (world.root / "notebooks/02_more.ipynb").exists()
    assert (world.backup() / "files/notebooks/02_more.ipynb").read_bytes() == worked


def test_an_exercise_that_moved_to_another_lesson(world):
    world.work(answers=[("half", "    return x / 2")])
    world.publish({
        "notebooks/01_add.ipynb": lesson([c for c in add() if c.source != HALF]),
        "notebooks/02_more.ipynb": lesson([*more(), CODE(HALF)]),
    })  # fmt: skip
    said = world.update()
    assert "`half` moved to `notebooks/02_more.ipynb`, and your answer with it" in said
    assert answered(HALF, "    return x / 2") in world.sources("notebooks/02_more.ipynb")


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (DOUBLE.replace("(x)", "(x, times=2)"), "parameters are now (x, times=2), and were (x)"),
        (DOUBLE.replace("Twice `x`.", "Thrice `x`."), "the exercise's description changed"),
    ],
    ids=["parameters", "description"],
)
def test_an_exercise_that_changed(world, new, why):
    mine = answered(DOUBLE, "    y = x\n\n    return x + y")
    world.work(answers=[("double", "    y = x\n\n    return x + y")])
    cells = add()
    cells[2] = CODE(new)
    world.publish({"notebooks/01_add.ipynb": lesson(cells)})
    said = world.update()
    assert why in said
    sources = world.sources()
    at = sources.index(new)  # blank: nothing was put into it silently
    kept = sources[at + 1].splitlines()
    assert why in kept[1]
    assert "\n".join(line.removeprefix("#").removeprefix(" ") for line in kept[4:]) == mine
    assert sources[at + 2] == TEXT


def test_the_learner_may_answer_the_changed_exercise_before_the_next_update(world):
    world.work(answers=[("double", "    return x + x")])
    new = DOUBLE.replace("(x)", "(x, times=2)")
    cells = add()
    cells[2] = CODE(new)
    world.publish({"notebooks/01_add.ipynb": lesson(cells)})
    world.update()
    world.work(answers=[("double", "    return times * x")])
    before = world.sources()
    world.publish({"notebooks/01_add.ipynb": lesson(reworded(cells))})
    shutil.rmtree(world.home / "backups")
    said = world.update()
    assert "put back 1 answer and 1 cell of your own" in said
    after = world.sources()
    at = after.index(answered(new, "    return times * x"))
    assert after[at + 1] == before[before.index(answered(new, "    return times * x")) + 1]


def test_an_exercise_whose_cell_changed_around_it(world):
    world.work(answers=[("half", "    return x / 2")])
    cells = add()
    cells[5] = CODE(HALF.replace("print(half(4))", "print(half(6))"))
    world.publish({"notebooks/01_add.ipynb": lesson(cells)})
    said = world.update()
    assert "put back 1 answer." in said and "Look at these" not in said
    assert answered(cells[5].source, "    return x / 2") in world.sources()


def test_notes_and_cells_of_the_learner(world):
    picture = {"shot.png": {"image/png": "aGVsbG8="}}
    world.work(
        answers=[("double", "    return x + x")],
        after={
            TITLE: [MARKDOWN("above all")],
            DOUBLE: [
                CODE("double(21)", outputs=[nbformat.v4.new_output("stream", text="42")]),
                MARKDOWN("![shot](attachment:shot.png)"),
            ],
            TEXT: [MARKDOWN("below the text", metadata={"tags": ["mine"]})],
            PLAY: [CODE("   ")],
            ENDING: [MARKDOWN("the last word"), nbformat.v4.new_raw_cell("raw")],
        },
    )
    notebook = world.read("notebooks/01_add.ipynb")
    notebook.cells.insert(0, MARKDOWN("before everything"))
    next(c for c in notebook.cells if "attachment" in c.source).attachments = picture
    nbformat.write(notebook, world.root / "notebooks/01_add.ipynb")
    ids = {cell.source: cell.id for cell in notebook.cells}
    world.publish({"notebooks/01_add.ipynb": lesson(reworded(add()))})
    said = world.update()
    assert "put back 1 answer and 7 cells of your own" in said
    assert "Look at these" not in said  # a reworded text is the same neighbor
    new = [c.source for c in build.normal(nbformat.v4.new_notebook(cells=reworded(add()))).cells]
    assert world.sources() == [
        "before everything", new[0], "above all", new[1], IMPORTS,
        answered(DOUBLE, "    return x + x"), "double(21)", "![shot](attachment:shot.png)",
        new[4], "below the text", PLAY, HALF, new[7], "the last word", "raw",
    ]  # fmt: skip
    cells = {cell.source: cell for cell in world.read("notebooks/01_add.ipynb").cells}
    assert cells["![shot](attachment:shot.png)"].attachments == picture
    assert cells["below the text"].metadata == {"tags": ["mine"]}
    assert cells["double(21)"].outputs == [] and cells["double(21)"].execution_count is None
    assert all(cells[source].id == ids[source] for source in ("above all", "double(21)", "raw"))


def test_cells_whose_neighbor_is_gone_stand_at_the_end_through_every_update(world):
    world.work(after={TEXT: [MARKDOWN("my note")], ENDING: [MARKDOWN("the last word")]})
    cells = add()
    cells[3] = MARKDOWN("Nothing like it.")
    world.publish({"notebooks/01_add.ipynb": lesson(cells)})
    assert "under “Your own cells”" in world.update()
    assert world.sources()[-4:] == [ENDING, "the last word", _lesson.HEADING.source, "my note"]
    world.publish({"notebooks/01_add.ipynb": lesson([*cells, MARKDOWN("## Papers")])})
    world.update()
    assert world.sources()[-5:] == [
        ENDING, "the last word", "## Papers", _lesson.HEADING.source, "my note",
    ]  # fmt: skip


def test_cells_of_the_course_that_the_learner_changed_or_deleted(world):
    world.work(
        edit=[(TEXT, TEXT + " I do not believe it."), (PLAY, "%%time\nprint(1)"), (IMPORTS, " ")]
    )
    world.publish({"notebooks/01_add.ipynb": lesson(reworded(add()))})
    said = world.update()
    new = [c.source for c in build.normal(nbformat.v4.new_notebook(cells=reworded(add()))).cells]
    assert world.sources() == [
        *new[:5], "*Your version of the text above:*\n\n" + TEXT + " I do not believe it.",
        PLAY, "%%time\nprint(1)", *new[6:],
    ]  # fmt: skip
    assert f"you had changed the cell that begins “{TEXT[:49]} …”" in said


def test_a_second_try_beside_an_answer(world):
    """The cell that was shipped is the answer; a copy of it above is the learner's own cell."""
    first = answered(DOUBLE, "    return x * 2")
    world.work(answers=[("double", "    return x + x")], after={IMPORTS: [CODE(first)]})
    world.publish({"notebooks/01_add.ipynb": lesson(reworded(add()))})
    assert "put back 1 answer and 1 cell of your own." in world.update()
    assert world.sources()[2:5] == [IMPORTS, first, answered(DOUBLE, "    return x + x")]


def test_a_lesson_that_went_into_another(world):
    world.work("notebooks/02_more.ipynb", answers=[("third", "    return x / 3")],
               after={THIRD: [MARKDOWN("my note")]})  # fmt: skip
    world.work(answers=[("double", "    return x + x")])
    world.publish({"notebooks/01_add.ipynb": lesson([*add(), CODE(THIRD)])},
                  remove=["notebooks/02_more.ipynb"])  # fmt: skip
    said = world.update()
    assert "`notebooks/02_more.ipynb` went into `notebooks/01_add.ipynb`." in said
    assert world.sources()[-2:] == [answered(THIRD, "    return x / 3"), "my note"]
    assert answered(DOUBLE, "    return x + x") in world.sources()


def test_an_answer_copied_into_another_lesson_is_a_cell_of_its_own(world):
    mine = answered(DOUBLE, "    return x + x")
    world.work(answers=[("double", "    return x + x")])
    world.work("notebooks/02_more.ipynb", after={IMPORTS: [CODE(mine)]})
    world.publish({
        "notebooks/01_add.ipynb": lesson(reworded(add())),
        "notebooks/02_more.ipynb": lesson(reworded(more())),
    })  # fmt: skip
    said = world.update()
    assert mine in world.sources()
    sources = world.sources("notebooks/02_more.ipynb")
    assert sources[sources.index(IMPORTS) + 1] == mine
    assert "two notebooks" not in said


def test_the_kernel_that_the_learner_chose(world):
    path = world.root / "notebooks/01_add.ipynb"
    notebook = world.read("notebooks/01_add.ipynb")
    notebook.metadata.kernelspec = {"display_name": "Mine", "language": "python", "name": "mine"}
    nbformat.write(notebook, path)
    world.publish({"notebooks/01_add.ipynb": lesson(reworded(add()))})
    world.update()
    assert world.read("notebooks/01_add.ipynb").metadata.kernelspec["name"] == "mine"


def test_ids_that_an_editor_took_away_or_made_anew(world):
    world.work(answers=[("double", "    return x + x")], after={TEXT: [MARKDOWN("my note")]})
    path = world.root / "notebooks/01_add.ipynb"
    data = json.loads(path.read_text(encoding="utf-8"))
    data["nbformat_minor"] = 4
    for cell in data["cells"]:
        del cell["id"]
    path.write_text(json.dumps(data), encoding="utf-8")
    world.publish({"notebooks/01_add.ipynb": lesson(reworded(add()))})
    assert "put back 1 answer and 1 cell of your own." in world.update()
    new = [c.source for c in build.normal(nbformat.v4.new_notebook(cells=reworded(add()))).cells]
    new[3] = answered(DOUBLE, "    return x + x")
    assert world.sources() == [*new[:5], "my note", *new[5:]]


@pytest.mark.parametrize(
    "body", ["    return (x +", "    # thinking\n    ..."], ids=["unfinished", "thinking"]
)
def test_an_answer_that_is_not_finished(world, body):
    """Kept as it is where its exercise stays the same, else as comments."""
    world.work(answers=[("double", body)])
    world.publish({"notebooks/01_add.ipynb": lesson(reworded(add()))})
    world.update()
    assert answered(DOUBLE, body) in world.sources()
    cells = add()
    cells[2] = CODE(DOUBLE.replace("(x)", "(x, times=2)"))
    world.publish({"notebooks/01_add.ipynb": lesson(cells)})
    world.update()
    at = world.sources().index(cells[2].source)
    assert f"# {body.splitlines()[0]}" in world.sources()[at + 1].splitlines()


def test_cells_that_are_not_in_the_format(world):
    """The texts of cells with an odd id or odd metadata are kept; JupyterLab opens the result."""
    path = world.root / "notebooks/01_add.ipynb"
    data = json.loads(path.read_text(encoding="utf-8"))
    data["cells"][3:3] = [
        {"cell_type": "markdown", "id": "a b/c", "metadata": {"tags": 3}, "source": "my note"},
        {"cell_type": "code", "metadata": {}, "source": ["x =", " 1"], "outputs": [], "more": 1},
    ]
    path.write_text(json.dumps(data), encoding="utf-8")
    world.publish({"notebooks/01_add.ipynb": lesson(reworded(add()))})
    assert "2 cells of your own" in world.update()
    assert world.sources()[4:6] == ["my note", "x = 1"]
    nbformat.validate(world.read("notebooks/01_add.ipynb"))


def test_a_damaged_notebook(world):
    path = world.root / "notebooks/01_add.ipynb"
    world.work(answers=[("double", "    return x + x")])
    (world.home / "answers").mkdir(parents=True)
    half = answered(HALF, "    return x / 2").split("\n\n\n")[0]  # the function, not its cell
    for name, source in (("double", answered(DOUBLE, "    return x + x")), ("half", half)):
        (world.home / f"answers/{name}.last.py").write_text(source, encoding="utf-8")
    text = path.read_text(encoding="utf-8")
    path.write_text(f"<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> theirs\n", encoding="utf-8")
    damaged = path.read_bytes()
    world.publish({"README.md": "newer\n"})
    said = world.update()
    assert "`notebooks/01_add.ipynb` could not be read" in said
    assert "as you last ran them: `double`, `half`." in said
    wanted = [cell.source for cell in add()]
    wanted[2], wanted[5] = answered(DOUBLE, "    return x + x"), answered(HALF, "    return x / 2")
    assert world.sources() == wanted
    assert (world.backup() / "files/notebooks/01_add.ipynb").read_bytes() == damaged


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 3}', '{"nbformat": 4, "cells": [1]}'])
def test_all_kinds_of_damage(world, text):
    (world.root / "notebooks/01_add.ipynb").write_text(text, encoding="utf-8")
    world.publish({"README.md": "newer\n"})
    assert "could not be read" in world.update()
    assert world.sources() == [cell.source for cell in add()]


def test_answers_that_only_the_store_has_are_named_and_left_there(world):
    (world.home / "answers").mkdir(parents=True)
    (world.home / "answers/half.last.py").write_text("def half(x): return 1", encoding="utf-8")
    world.publish({"notebooks/01_add.ipynb": lesson(reworded(add()))})
    assert "holds answers to `half`" in world.update()
    assert HALF in world.sources()


# ---------------------------------------------------------------- other files


def test_files_that_the_learner_changed_or_added(world):
    own = {
        "notebooks/my_notes.ipynb": lesson([MARKDOWN("mine")]),
        "notebooks/11_mine.ipynb": lesson([MARKDOWN("mine too")]),
        "data/train.tsv": "a\tb\n",
        "notebooks/course/texts/reviews.tsv": "mine\tpositive\n",  # the update leaves it alone
    }
    write(world.root, own)
    write(world.root, {
        "README.md": "my readme\n",
        "figures/new.svg": "in the way\n",
        "solutions/numbers.py": "my numbers\n",
        "notebooks/course/old.py": "",
    })  # fmt: skip
    rerun = world.work("solutions/01_add_solution.ipynb")
    world.publish({"README.md": "newer\n", "figures/new.svg": "<svg/>\n"})
    said = world.update()
    files = world.files()
    assert all(files[path].decode() == text for path, text in own.items())
    assert "`notebooks/course/texts/reviews.tsv`: you changed it" in said
    backup = world.backup() / "files"
    for path, new, old in (
        ("README.md", b"newer\n", b"my readme\n"),
        ("figures/new.svg", b"<svg/>\n", b"in the way\n"),
        ("solutions/numbers.py", shipped()["solutions/numbers.py"].encode(), b"my numbers\n"),
        ("solutions/01_add_solution.ipynb", lesson(add()).encode(), rerun),
    ):
        assert files[path] == new
        assert (backup / path).read_bytes() == old
        assert f"`{path}`: replaced by the newer version; yours is in the backup." in said


def test_files_that_the_course_no_longer_has(world):
    world.publish({"a.txt": "a", "b.txt": "b"})
    world.update()
    shutil.rmtree(world.home / "backups")
    write(world.root, {"b.txt": "my b"})
    world.publish({}, remove=["a.txt", "b.txt"])
    said = world.update()
    assert not {"a.txt", "b.txt"} & set(world.files())
    assert "`b.txt` is not in the newer version: moved to the backup." in said
    assert (world.backup() / "files/b.txt").read_text() == "my b"
    assert not (world.backup() / "files/a.txt").exists()


def test_a_folder_where_a_file_has_to_go(world):
    write(world.root, {"extra/notes.txt": "mine"})
    world.publish({"extra": "a file"})
    before = world.files()
    assert "a file extra, and in its place" in world.update(code=1)
    assert world.files() == before and not (world.home / "backups").exists()


def test_what_was_staged_is_kept(world):
    write(world.root, {"README.md": "staged\n"})
    git(world.root, "add", "README.md")
    write(world.root, {"README.md": "on disk\n"})
    world.publish({"README.md": "newer\n"})
    said = world.update()
    kept = git(world.root, "for-each-ref", "--format=%(refname)", "refs/course-update")
    assert f"`{kept}^2`" in said
    assert git(world.root, "show", f"{kept}^2:README.md") == "staged"
    assert (world.backup() / "files/README.md").read_text() == "on disk\n"


# ---------------------------------------------------------------- git


def test_answers_that_were_committed(world):
    world.work(answers=[("double", "    return x + x")])
    write(world.root, {"notebooks/my_notes.ipynb": lesson([MARKDOWN("mine")]), "own.txt": "own"})
    world.commit()
    mine = git(world.root, "rev-parse", "HEAD")
    world.work("notebooks/02_more.ipynb", answers=[("third", "    return x / 3")])  # uncommitted
    world.publish({
        "notebooks/01_add.ipynb": lesson(reworded(add())),
        "notebooks/02_more.ipynb": lesson(reworded(more())),
    })  # fmt: skip
    said = world.update()
    assert "Your commits stay" in said
    theirs = git(world.remote, "rev-parse", "HEAD")
    assert git(world.root, "rev-parse", "HEAD^@").split() == [mine, theirs]
    assert answered(DOUBLE, "    return x + x") in world.sources()
    assert answered(THIRD, "    return x / 3") in world.sources("notebooks/02_more.ipynb")
    assert git(world.root, "status", "--porcelain") == "M notebooks/02_more.ipynb"
    assert git(world.root, "show", "HEAD:own.txt") == "own"
    assert git(world.root, "branch", "--show-current") == "main"
    assert "nothing newer" in world.update()

    world.publish({"README.md": "newer still\n"})  # and again, on top of the merge
    world.commit()
    world.update()
    assert git(world.root, "status", "--porcelain") == ""
    assert answered(THIRD, "    return x / 3") in world.sources("notebooks/02_more.ipynb")


def test_a_renamed_lesson_that_was_committed(world):
    world.work(answers=[("double", "    return x + x")])
    world.commit()
    world.publish(
        {"notebooks/02_add.ipynb": lesson(reworded(add()))}, remove=["notebooks/01_add.ipynb"]
    )
    world.update()
    assert git(world.root, "status", "--porcelain") == ""
    assert answered(DOUBLE, "    return x + x") in world.sources("notebooks/02_add.ipynb")


def test_a_password_in_the_address_is_not_shown(world):
    git(world.root, "config", "remote.origin.url", f"file://me:secret@{world.remote}")
    git(world.root, "config", f"url.file://{world.remote}.insteadOf",
        f"file://me:secret@{world.remote}")  # fmt: skip
    world.publish({"README.md": "newer\n"})
    assert "secret" not in world.update() and world.at_upstream()


def test_commits_without_a_name_set_take_the_last_ones(world, monkeypatch):
    world.work(answers=[("double", "    return x + x")])
    world.commit()
    git(world.root, "config", "--unset", "user.name")
    git(world.root, "config", "--unset", "user.email")
    git(world.root, "config", "user.useConfigOnly", "true")
    world.publish({"README.md": "newer\n"})
    world.update()
    assert git(world.root, "log", "-1", "--format=%an %cn <%ce>") == (
        "Someone Someone <someone@example.org>"
    )


def test_a_branch_of_the_learners_own(world):
    git(world.root, "switch", "--quiet", "-c", "mine")
    world.work(answers=[("double", "    return x + x")])
    world.publish({"notebooks/01_add.ipynb": lesson(reworded(add()))})
    assert "put back 1 answer." in world.update()
    assert git(world.root, "branch", "--show-current") == "mine"
    assert world.at_upstream()


def detach(world):
    git(world.root, "checkout", "--quiet", "--detach")


def no_remote(world):
    git(world.root, "remote", "remove", "origin")


def unreachable(world):
    world.remote.rename(world.folder / "elsewhere")


def not_a_clone(world):
    shutil.rmtree(world.root / ".git")


def within_another(world):
    shutil.rmtree(world.root / ".git")
    git(world.folder, "init", "--quiet")


def unrelated(world):
    git(world.remote, "checkout", "--quiet", "--orphan", "other")
    git(world.remote, "commit", "--quiet", "-m", "another history")
    git(world.remote, "branch", "--quiet", "-M", "other", "main")


def stopped_merge(world):
    world.commit()
    git(world.root, "fetch", "--quiet")
    subprocess.run(["git", "merge", "origin/main"], cwd=world.root, capture_output=True, timeout=60)


def stash_pop(world):
    git(world.root, "stash")
    git(world.root, "pull", "--quiet")
    subprocess.run(["git", "stash", "pop"], cwd=world.root, capture_output=True, timeout=60)


@pytest.mark.parametrize(
    ("happens", "says"),
    [
        (detach, "git switch main"),
        (no_remote, "git remote add origin ADDRESS"),
        (unreachable, "Nothing was changed. Try again"),
        (not_a_clone, "not a git clone. Unpack a newer copy and run"),
        (within_another, "within another git repository"),
        (unrelated, "no common history"),
        (stopped_merge, "git merge --abort"),
        (stash_pop, "git reset --hard refs/stash~1"),
    ],
)
def test_git_cannot(world, happens, says):
    """One sentence says what to do, and nothing is changed."""
    world.work(answers=[("double", "    return x + x")], edit=[(TEXT, "My own words.")])
    world.publish({"notebooks/01_add.ipynb": lesson(reworded(add()))})
    happens(world)
    before = world.files()
    assert says in world.update(code=1)
    assert world.files() == before and not (world.home / "backups").exists()


@pytest.mark.parametrize(
    ("happens", "commands"),
    [
        (stopped_merge, ["merge --abort"]),
        (stash_pop, ["reset --hard refs/stash~1", "stash pop"]),
    ],
)
def test_the_advice_helps(world, happens, commands):
    world.work(answers=[("double", "    return x + x")], edit=[(TEXT, "My own words.")])
    world.publish({"notebooks/01_add.ipynb": lesson(reworded(add()))})
    happens(world)
    for one in commands:
        git(world.root, *one.split())
    assert "put back 1 answer." in world.update()
    assert answered(DOUBLE, "    return x + x") in world.sources()
    assert any("My own words." in source for source in world.sources())


def test_git_is_not_installed(world, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert "git is not installed" in world.update(code=1)


def test_a_dry_run_changes_nothing(world):
    world.work(answers=[("double", "    return x + x")])
    world.publish({"notebooks/01_add.ipynb": lesson(reworded(add()))})
    before, head = world.files(), git(world.root, "rev-parse", "HEAD")
    said = world.update("--dry-run")
    assert "nothing was changed" in said and "put back 1 answer." in said
    assert world.files() == before and git(world.root, "rev-parse", "HEAD") == head
    assert not (world.home / "backups").exists()


# ---------------------------------------------------------------- from a folder


@pytest.mark.parametrize("with_git", [True, False])
def test_from_a_folder(world, with_git):
    worked = world.work(
        answers=[("double", "    return x + x"), ("half", "    return x / 2")],
        after={TEXT: [MARKDOWN("my note")]},
        edit=[(PLAY, "double(3)")],
    )
    own = {"notebooks/my.ipynb": lesson(more()), "notebooks/12_x.ipynb": lesson([CODE("x = 1")])}
    write(world.root, own)
    changed = reworded(add())
    changed[3] = CODE(DOUBLE.replace("(x)", "(x, times=2)"))
    files = {
        **shipped(),
        "notebooks/02_add.ipynb": lesson(changed),
        "notebooks/03_more.ipynb": lesson(more()),
        "notebooks/course/__init__.py": "# newer\n",
        ".venv/lib/x.py": "not the course's",
    }
    for path in ("notebooks/01_add.ipynb", "notebooks/02_more.ipynb", "solutions/numbers.py"):
        del files[path]
    write(world.folder / "newer", files)
    if not with_git:
        shutil.rmtree(world.root / ".git")
    dry = world.update("--from", str(world.folder / "newer"), "--dry-run")
    said = world.update("--from", str(world.folder / "newer"))
    assert dry.split("## ")[1:-1] == said.split("## ")[1:-1]
    assert "`notebooks/01_add.ipynb` is now `notebooks/02_add.ipynb`." in said
    assert "`notebooks/02_add.ipynb`: put back 1 answer and 1 cell of your own." in said
    sources = world.sources("notebooks/02_add.ipynb")
    assert answered(HALF, "    return x / 2") in sources and changed[3].source in sources
    assert sources[sources.index("my note") - 1] == changed[4].source
    assert sources[sources.index(PLAY) + 1] == "# Your version of the cell above:\ndouble(3)"
    assert sum("return x + x" in source for source in sources) == 1
    now = world.files()
    assert all(now[path].decode() == text for path, text in own.items())
    assert now["notebooks/course/__init__.py"] == b"# newer\n"
    assert not {"solutions/numbers.py", ".venv/lib/x.py", "notebooks/01_add.ipynb"} & set(now)
    assert (world.backup() / "files/notebooks/01_add.ipynb").read_bytes() == worked
    assert (world.backup() / "files/solutions/numbers.py").exists() is not with_git

    assert "Nothing to do" in world.update("--from", str(world.folder / "newer"))
    assert world.files() == now
    world.backup()  # one only


def test_a_lesson_is_known_without_git_and_without_ids(world):
    """What the course shipped is seen from the worked copy: it is neither kept nor doubled."""
    worked = world.work("notebooks/02_more.ipynb", answers=[("third", "    return x / 3")])
    notebook = world.read("notebooks/01_add.ipynb")
    for index, cell in enumerate(notebook.cells):
        cell.id = f"{index:08x}"
    nbformat.write(notebook, world.root / "notebooks/01_add.ipynb")
    shutil.rmtree(world.root / ".git")
    cells = add()
    cells[3] = MARKDOWN("Nothing like it.")
    files = {**shipped(), "notebooks/01_add.ipynb": lesson(cells)}
    del files["notebooks/02_more.ipynb"], files["solutions/02_more_solution.ipynb"]
    write(world.folder / "newer", files)
    said = world.update("--from", str(world.folder / "newer"))
    assert world.sources() == [cell.source for cell in cells]
    assert "`notebooks/02_more.ipynb` is no longer a part of the course. Yours, with" in said
    assert (world.backup() / "files/notebooks/02_more.ipynb").read_bytes() == worked


def test_folders_that_are_no_newer_course(world):
    assert "holds no copy of the course" in world.update("--from", str(world.folder), code=1)
    assert "this copy itself" in world.update("--from", str(world.root), code=1)
    write(world.folder / "worked", shipped())
    worked = lesson([CODE(answered(DOUBLE, "    return 2"))])
    write(world.folder / "worked", {"notebooks/01_add.ipynb": worked})
    assert "has answers in it" in world.update("--from", str(world.folder / "worked"), code=1)


# ---------------------------------------------------------------- interruptions


class Killed(BaseException):
    """As if the process ended here: nothing that comes after has an effect."""


CHANGES_GIT = {"reset", "update-ref", "commit-tree", "update-index", "write-tree", "stash"}


def left_by_kills(world, monkeypatch):
    """Run an update, and copy the clone before each of its writes: what a kill there would leave.

    Returns the copies, one of each state. What the next run removes at once makes no state of its
    own, but for the report, the last thing in it.
    """
    copies = {}

    def state():
        found = []
        for folder, folders, names in os.walk(world.root):
            folders[:] = sorted(set(folders) - {"objects"})  # of git's; no name leads to a new one
            for name in sorted(names):
                if ".preparing" not in folder or name == "report.md":
                    path = os.path.join(folder, name)
                    with open(path, "rb") as file:
                        found.append((path, file.read()))
        return tuple(found)

    def keep():
        copy = world.folder / f"killed-{len(copies)}"
        if copies.setdefault(state(), copy) == copy:
            with monkeypatch.context() as real:
                for given in functions:
                    real.setattr(*given)
                shutil.copytree(world.root, copy)

    functions = []

    def wrap(owner, name, counts=lambda *given: True, halfway=None):
        function = getattr(owner, name)
        functions.append((owner, name, function))

        def call(*given, **more):
            if counts(*given):
                keep()
                if halfway is not None:
                    halfway(*given)
                    keep()
            return function(*given, **more)

        return owner, name, call

    def half_copied(source, target):
        Path(target).write_bytes(Path(source).read_bytes()[:10])

    wrapped = [
        *(wrap(os, name) for name in ("replace", "rename", "unlink")),
        wrap(shutil, "copyfile", halfway=half_copied),
        *(wrap(Path, name) for name in ("write_text", "write_bytes")),
        wrap(subprocess, "run", lambda command, *_: CHANGES_GIT & set(command)),
    ]
    with monkeypatch.context() as patch:
        for given in wrapped:
            patch.setattr(*given)
        world.update()
    return list(copies.values())


@pytest.mark.parametrize("committed", [False, True])
def test_interrupted_at_every_step(world, monkeypatch, committed):
    """Killed at any write and run again, it ends in the same state, and nothing is ever lost."""
    world.work(answers=[("double", "    return x + 11"), ("half", "    return x / 22")],
               after={TEXT: [MARKDOWN("my note 33")]})  # fmt: skip
    write(world.root, {"README.md": "my readme 44\n", "own.txt": "own 55\n"})
    if committed:
        world.commit()
    cells = reworded(add())
    cells[3] = CODE(DOUBLE.replace("(x)", "(x, times=2)"))
    world.publish(
        {
            "notebooks/02_add.ipynb": lesson(cells),
            "notebooks/course/__init__.py": "# newer\n",
            "README.md": "newer\n",
        },
        remove=["notebooks/01_add.ipynb", "notebooks/02_more.ipynb"],
    )

    def state():
        parents = git(world.root, "rev-parse", "HEAD^@" if committed else "HEAD")
        return world.files(), parents, git(world.root, "status", "--porcelain")

    kills = left_by_kills(world, monkeypatch)
    assert len(kills) > 10
    wanted = state()
    precious = [b"return x + 11", b"return x / 22", b"my note 33", b"my readme 44", b"own 55"]
    for killed in kills:
        shutil.rmtree(world.root)
        killed.rename(world.root)
        everything = b"".join(
            path.read_bytes()
            for path in world.root.rglob("*")
            if path.is_file()
            and ".git" not in path.parts
            and not any(part.startswith(".preparing") for part in path.parts)
        )
        assert all(one in everything for one in precious), killed
        world.update()
        assert state() == wanted, killed
        assert not list(world.backup().glob("later-*")), killed  # one backup, no file half written
    assert "nothing newer" in world.update()


def interrupt(world, monkeypatch, at, kind=Killed):
    """End an update when it replaces the file `at` of the clone."""
    real = os.replace

    def replace(source, target):
        if Path(target) == world.root / at:
            raise kind
        return real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        return update.main([], root=world.root)


@pytest.mark.parametrize("committed", [False, True])
def test_interrupted_before_the_very_last_step(world, monkeypatch, committed):
    """The branch stands at the new version already: it is not moved again."""
    if committed:
        world.work(answers=[("double", "    return x + x")])
        world.commit()
    world.publish({"README.md": "newer\n"})
    real = Path.unlink

    def unlink(path, **more):
        if path.name == "plan.json":
            raise Killed
        return real(path, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlink)
        with pytest.raises(Killed):
            update.main([], root=world.root)
    head = git(world.root, "rev-parse", "HEAD")
    said = world.update()
    assert "interrupted" in said and "moved by something else" not in said
    assert git(world.root, "rev-parse", "HEAD") == head
    assert git(world.root, "status", "--porcelain") == ""
    assert "nothing newer" in world.update()


def test_work_done_after_an_interruption_is_kept(world, monkeypatch):
    world.work(answers=[("double", "    return x + x")])
    world.publish({"notebooks/01_add.ipynb": lesson(reworded(add()))})
    with pytest.raises(Killed):
        interrupt(world, monkeypatch, "notebooks/01_add.ipynb")
    later = world.work(answers=[("half", "    return x / 2")])
    said = world.update()
    assert "interrupted" in said and "was changed after the update was interrupted" in said
    (kept,) = world.backup().glob("later-*/notebooks/01_add.ipynb")
    assert kept.read_bytes() == later
    assert answered(DOUBLE, "    return x + x") in world.sources()


def test_a_branch_moved_after_an_interruption_is_left_there(world, monkeypatch):
    world.publish({"README.md": "newer\n"})
    assert interrupt(world, monkeypatch, "README.md", KeyboardInterrupt) == 130
    assert "Run the same command again" in world.capsys.readouterr().err
    git(world.root, "commit", "--quiet", "--allow-empty", "-m", "mine")
    head = git(world.root, "rev-parse", "HEAD")
    assert "The branch was moved by something else" in world.update()
    assert git(world.root, "rev-parse", "HEAD") == head


def test_finished_without_the_package(world, monkeypatch):
    """Interrupted while `course` is being replaced, it is finished by a Python without it."""
    world.work(answers=[("double", "    return x + x")])
    world.publish({
        "notebooks/01_add.ipynb": lesson(reworded(add())),
        "notebooks/course/__init__.py": "# newer\n",
    })  # fmt: skip
    with pytest.raises(Killed):
        interrupt(world, monkeypatch, "notebooks/course/__init__.py")
    script = world.backup() / "update" / "finish.py"
    assert str(script) in world.capsys.readouterr().out
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(script)], capture_output=True, encoding="utf-8", timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "The update is finished" in done.stdout
    assert world.at_upstream()
    assert answered(DOUBLE, "    return x + x") in world.sources()
    assert "nothing newer" in world.update()


def test_a_file_that_cannot_be_replaced(world, monkeypatch):
    """Another program holds it, or the disk is full: said, and finished the next time."""
    world.publish({"README.md": "newer\n"})
    real = os.replace

    def replace(source, target):
        if Path(target) == world.root / "README.md":
            raise PermissionError(13, "Permission denied", str(target))
        return real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        said = world.update(code=1)
    assert "README.md: Permission denied" in said and "run the same command again" in said
    assert "It would be finished first" in world.update("--dry-run")
    assert not world.at_upstream()
    world.update()
    assert world.at_upstream()


# ---------------------------------------------------------------- the parts


MINE = answered(HALF, "    y = x\n    return y / 2")
ONE_LINE = "@exercise\ndef half(x): return x / 2"


@pytest.mark.parametrize(
    ("mine", "base", "new", "made", "why"),
    [
        (MINE, HALF, HALF, MINE, None),
        (MINE, None, HALF, MINE, None),
        ("anything (", HALF, HALF, "anything (", None),
        (MINE, HALF, HALF + " # new", MINE + " # new", None),
        (MINE + " # new", HALF, HALF + " # new", MINE + " # new", None),
        (MINE, HALF, "import a\n\n\n" + HALF, "import a\n\n\n" + MINE, None),
        (MINE + "\nhalf(8)", HALF, HALF + " # new", MINE + " # new", "held more"),
        (MINE.replace("Half", "A half"), HALF, HALF + " #", MINE + " #", "held more"),
        (MINE.replace("(x)", "(z)"), HALF, HALF + " #", HALF + " #", "takes (z), not (x)"),
        (MINE, HALF, HALF.replace("(x)", "(x, y)"), None, "now (x, y), and were (x)"),
        (MINE, None, HALF.replace("Half", "A half"), None, "description changed"),
        ("half = 3", HALF, HALF + " #", None, "not one finished function"),
        (MINE + "\n" + DOUBLE, HALF, HALF + " #", None, "not one finished function"),
        (ONE_LINE, HALF, HALF + " #", answered(HALF, "    return x / 2") + " #", "held more"),
        ("@exercise\ndef half(x):\n    'Half of `x`.'", HALF, HALF + " #", None, "does not fit"),
    ],
    ids=range(15),
)  # fmt: skip
def test_put_back(mine, base, new, made, why):
    source, said = _lesson.put_back(mine, base, new)
    assert source == (new if made is None else made)
    assert (said is None) if why is None else (why in said)


def real_lessons():
    return [pytest.param(one, id=one.name) for one in build.lessons(build.ROOT)]


@pytest.mark.parametrize("real", real_lessons())
def test_real_lessons(real, tmp_path):
    """Every exercise solved, a note below every cell, every text of the new version reworded."""
    base = build.normal(nbformat.read(real.worked, as_version=4))
    base.cells = [cell for cell in base.cells if "worked copy: every exercise" not in cell.source]
    for cell in base.cells:  # the worked copy is what the lesson is, whatever the learner's is
        node = build.exercise_definition(cell.source)
        if node is not None:
            lines = cell.source.splitlines()
            first = node.body[0].end_lineno
            cell.source = "\n".join([*lines[:first], "    ...", *lines[node.end_lineno :]])
    base = build.normal(base)
    mine, new = build.normal(base), build.normal(base)
    for cell in mine.cells:
        name = _lesson.exercise_in(cell)
        if name:
            cell.source = build.fill(cell.source, get(name).reference)
    filled = [cell.source for cell in mine.cells]
    notes = [MARKDOWN(f"note {index}") for index in range(len(mine.cells))]
    mine.cells = [one for pair in zip(mine.cells, notes) for one in pair]
    for cell in new.cells:
        if cell.cell_type == "markdown":
            cell.source += "\n\nOne more sentence."
    new = build.normal(new)
    one = _lesson.Lesson("mine", mine, base, target="new")
    _lesson.tell_apart(one, [base, new])
    names = [name for cell in base.cells if (name := _lesson.exercise_in(cell))]
    assert sorted(one.exercises) == sorted(names)
    answers = {name: one for name in names if _lesson.is_answered(one, name, None)}
    assert set(answers) == set(names)
    made, answered, own, look = _lesson.combine(new, [one], answers, set())
    assert (answered, own, look) == (len(names), len(notes), [])
    assert [cell.source for cell in made.cells[1::2]] == [note.source for note in notes]
    assert [cell.source for cell in made.cells[::2]] == [
        cell.source if cell.cell_type == "markdown" else source
        for cell, source in zip(new.cells, filled, strict=True)
    ]
    build.dumps(made)


def test_texts_differ_only_by_the_ends_of_lines(world):
    write(world.remote, {"README.md": "the course\n"})
    text = (world.root / "README.md").read_bytes()
    (world.root / "README.md").write_bytes(text.replace(b"\n", b"\r\n"))
    (world.root / ".gitignore").write_bytes(b"mine\r\n")
    world.publish({"README.md": "newer\n", ".gitignore": "newer\n"})
    said = world.update()
    assert "`.gitignore`: replaced" in said and "`README.md`: replaced" not in said


def test_the_command_is_there(capsys):
    assert "  update" in command.USAGE
    with pytest.raises(SystemExit):
        command.main(["update", "--help"])
    assert "--from FOLDER" in capsys.readouterr().out


def test_errors_of_git_are_told_in_its_own_words(world):
    with pytest.raises(_finish.UpdateError, match="git rev-parse: fatal:"):
        _finish.git(world.root, "rev-parse", "nowhere")
