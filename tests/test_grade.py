"""`python -m course grade`: whose notebook it is, what each answer gets, and what one cannot do."""

import csv
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path

import nbformat
import pytest
from course import build, grade
from course.__main__ import main as course_main
from course.exercises import get

AVERAGE = '''\
@exercise
def average(numbers):
    """The mean of some numbers: their sum, divided by how many there are."""
    {}
'''
FIRST = "from course import exercise, hint\nimport numpy as np"


def notebook(path, *cells):
    """Write a notebook whose code cells are these; returns its path."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(made), encoding="utf-8")
    return path


def average(body, before=""):
    return before + AVERAGE.format(body)


def softmax(body):
    return "@exercise\ndef softmax(scores, axis=-1):\n    " + body


def similarity(body="return query @ key.T"):
    return "@exercise\ndef similarity(query, key):\n    " + body


def of(rows, person, exercise="average"):
    (found,) = [row for row in rows if row.person == person and row.exercise == exercise]
    return found


# Everything that an answer can do to a grader, in one class: one run, many looks at it.
CLASS = {
    "right": [FIRST, average("return sum(numbers) / len(numbers)")],
    "named mistake": [FIRST, average("return sum(numbers)")],
    "raises": [FIRST, average("return numbers[99] / nothing")],
    "blank": [FIRST, average("...")],
    "blank with pass": [FIRST, average("pass")],
    "no cell": [FIRST, "print('my notes')", "@exercise\ndef avrage(numbers):\n    return 1"],
    "endless": [FIRST, average("while True: pass")],
    "endless above": [FIRST, "while True:\n    helper = 1", average("return helper")],
    "exits": [FIRST, average("import os; os._exit(0)")],
    "exits above": [FIRST, "import sys; n = sys.exit()", average("return n")],
    "prints": [FIRST, average("print('passed ' * 10**6); return 0.0")],
    "writes": [FIRST, average("import os; os.write(1, b'passed'); os.write(2, b'x'); return 0.0")],
    "asks": [FIRST, average("return float(input())")],
    "syntax": [FIRST, "x = (", average("return sum(numbers")],
    "magics": ["%matplotlib inline\n!echo hello\n" + FIRST, "%%bash\nls",
               "%%time\n" + average("return sum(numbers) / len(numbers)")],
    "helper": [FIRST, "def total(xs):\n    return sum(xs) * ONE", "ONE = 1", "from math import *",
               average("return total(numbers) / fsum([len(numbers)])")],
    "same cell": [FIRST, average("return total(numbers) / SIZE(numbers)",
                                 "SIZE = len\ndef total(xs): return sum(xs)\n") + "\naverage([1])"],
    "missing name": [FIRST, average("return total(numbers)"), "def total(xs):\n    return 1"],
    "twice": [FIRST, average("return sum(numbers) / len(numbers)"), average("...")],
    "twice answered": [FIRST, average("return sum(numbers) / len(numbers)"), average("return 1.0")],
    "borrows": [FIRST, "from course.exercises import get\nours = get('average').reference",
                average("return ours(numbers)")],
    "nervous": [FIRST, "np.seterr(all='raise')", average("return np.mean(numbers)")],
    "patches": [FIRST, average("import builtins; builtins.sum = None; return 0.0")],
    "lambda": [FIRST, "@exercise\ndef average(n): return sum(n) / len(n)"],
    "async": [FIRST, "@exercise\nasync def average(numbers): return 1.0"],
    "class": [FIRST, "@exercise\nclass average:\n    pass"],
    "=cmd()": [FIRST, average("return sum(numbers) / len(numbers)")],
    "ünï\u202ecode \x1b[31m": [FIRST, average("return sum(numbers) / len(numbers)")],
}  # fmt: skip
EXPECTED = {
    "named mistake": "wrong", "raises": "error", "blank": "not started",
    "blank with pass": "not started", "no cell": "not started", "endless": "time out",
    "endless above": "time out", "exits": "error", "exits above": "error", "prints": "wrong",
    "writes": "wrong", "asks": "error", "syntax": "error", "missing name": "error",
    "twice answered": "wrong", "patches": "wrong", "async": "wrong", "class": "not started",
}  # fmt: skip


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    for person, cells in CLASS.items():
        notebook(folder / person / "00_start_here.ipynb", *cells)
    return grade.grade(folder, seconds=2.0, jobs=2)


@pytest.mark.parametrize("person", CLASS)
def test_every_kind_of_answer(rows, person):
    row = of(rows, person)
    assert row.status == EXPECTED.get(person, "passed"), row.note


def test_what_the_notes_say(rows):
    said = {row.person: row.note for row in rows if row.exercise == "average"}
    messages = [mistake.message for mistake in get("average").mistakes]
    assert any(said["named mistake"].startswith(one[:40]) for one in messages)
    assert "NameError" in said["missing name"]
    assert "SyntaxError in line " in said["syntax"]
    assert said["blank"] == "" and said["no cell"] == "no cell has it"
    assert "ended its process (exit code 0)" in said["exits"]
    assert "SystemExit" in said["exits above"]
    assert "code cell 2 was taken" in said["twice"]
    assert "code cell 3 was taken" in said["twice answered"]
    assert "calls the course's own average" in said["borrows"]
    assert all("course's own" not in said[one] for one in said if one != "borrows")


def test_an_unknown_name_is_a_row_and_no_exercise(rows):
    row = of(rows, "no cell", "avrage")
    assert (row.status, row.note) == ("no such exercise", "did you mean average?")
    counts = grade.totals(rows)["no cell"]
    assert counts["no such exercise"] == 1 and counts["not started"] == 1


def test_the_table_cannot_steer_a_terminal_or_a_spreadsheet(rows, tmp_path):
    shown = "\n".join(grade.lines(rows))
    assert "\x1b" not in shown and "\u202e" not in shown
    assert "ünï?code ?[31m" in shown
    assert shown.splitlines()[0].split() == ["person", "lesson", "exercise", "status", "note"]
    grade.write_csv(tmp_path / "grades.csv", rows)
    with open(tmp_path / "grades.csv", encoding="utf-8-sig", newline="") as file:
        read = list(csv.DictReader(file))
    assert len(read) == len(rows)
    assert {row["status"] for row in read if row["person"] == "'=cmd()"} == {"passed"}
    assert not any(cell[:1] in ("=", "+", "-", "@") for row in read for cell in row.values())
    assert [p.name for p in tmp_path.iterdir()] == ["grades.csv"]


def test_formulas_are_defused():
    for text in ("=1+1", "+1", "-1", "@SUM(A1)", "  =1", "\t=1", "\r\n=1", "＝1"):
        assert grade.harmless(text)[:1] == "'", text
    assert grade.harmless("ada") == "ada"


def test_an_answer_cannot_say_passed_for_itself(tmp_path):
    """What is on the pipe counts only with the token of its process."""
    forge = (
        "import gc, json\n"
        "    from multiprocessing import connection\n"
        "    for one in gc.get_objects():\n"
        "        if isinstance(one, connection._ConnectionBase) and one.writable:\n"
        "            said = {'status': 'passed', 'note': '', 'token': ''}\n"
        "            one.send_bytes(json.dumps(said).encode())\n"
        "    import os; os._exit(0)"
    )
    notebook(tmp_path / "eve" / "00_start_here.ipynb", FIRST, average(forge))
    notebook(tmp_path / "mal" / "00_start_here.ipynb", FIRST, average(
        forge.replace("json.dumps(said).encode()", "b'x' * 9000")))  # fmt: skip
    rows = grade.grade(tmp_path, seconds=5, jobs=2)
    assert of(rows, "eve").status == "error"
    assert of(rows, "mal").status in ("error", "time out")


def test_another_exercise_stands_for_the_reference(tmp_path):
    """One mistake is counted once: `attention` calls a `softmax` that is wrong."""
    (lesson,) = build.lessons(numbers=["01"])
    made = build.worked_sources(lesson, build.read(lesson.blank), get)
    for cell in made.cells:
        if cell.cell_type == "code" and build.exercise_name(cell.source) == "softmax":
            cell.source = softmax("return scores * 0.0")
    path = tmp_path / "ada" / "01_attention.ipynb"
    path.parent.mkdir()
    path.write_text(nbformat.writes(made), encoding="utf-8")
    rows = grade.grade(tmp_path, jobs=2)
    wrong = [row.exercise for row in rows if row.status != "passed"]
    assert wrong == ["softmax"]
    assert len(rows) == 7


def test_memory_is_limited(tmp_path):
    notebook(tmp_path / "a" / "00_start_here.ipynb", FIRST,
             average("kept = np.ones(2 * 10**8); return float(kept.mean())"))  # fmt: skip
    (row,) = grade.grade(tmp_path, memory=1024)
    assert row.status != "passed"
    if sys.platform.startswith("linux"):  # elsewhere an answer may take what it wants
        assert row.status == "error"
        assert "memory" in row.note


STARTS_ANOTHER = """\
import subprocess, sys, time
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    open({mark!r}, "w").write(str(other.pid))
    time.sleep(60)"""


def test_nothing_is_left_running(tmp_path):
    mark = tmp_path / "pid"
    body = STARTS_ANOTHER.format(mark=str(mark))
    notebook(tmp_path / "a" / "00_start_here.ipynb", FIRST, average(body))
    (row,) = grade.grade(tmp_path, seconds=2)
    assert row.status == "time out"
    if hasattr(os, "killpg"):  # on Windows what an answer starts outlives it
        pid, until = int(mark.read_text(encoding="utf-8")), time.monotonic() + 10
        while _alive(pid) and time.monotonic() < until:
            time.sleep(0.05)
        assert not _alive(pid)


def _alive(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    stat = Path(f"/proc/{pid}/stat")  # a process that nobody waits for is there, and has ended
    return not (stat.exists() and ") Z" in stat.read_text(encoding="utf-8"))


def test_it_works_where_nothing_is_forked(tmp_path, monkeypatch):
    """As on macOS and Windows: each process starts anew."""
    monkeypatch.setattr(grade, "_context", lambda: multiprocessing.get_context("spawn"))
    notebook(tmp_path / "ada" / "00_start_here.ipynb", FIRST, average("return np.mean(numbers)"))
    notebook(tmp_path / "bob" / "00_start_here.ipynb", FIRST, average("import os; os._exit(7)"))
    rows = grade.grade(tmp_path, jobs=2)
    assert of(rows, "ada").status == "passed"
    assert of(rows, "bob").note == "the answer ended its process (exit code 7)"


def test_a_notebook_has_its_time(tmp_path):
    notebook(tmp_path / "slow" / "01_attention.ipynb", FIRST,
             similarity("while True: pass"), softmax("while True: pass"))  # fmt: skip
    notebook(tmp_path / "quick" / "01_attention.ipynb", FIRST, similarity())
    rows = grade.grade(tmp_path, seconds=1, notebook=0.5, jobs=1)
    assert of(rows, "slow", "similarity").status == "time out"
    assert of(rows, "slow", "softmax").status == "time out"
    assert "not run" in of(rows, "slow", "softmax").note
    assert of(rows, "quick", "similarity").status == "passed"


# ---------------------------------------------------------------- whose, which, and none


def test_whose_notebook_it_is(tmp_path):
    stems = [lesson.name for lesson in build.lessons()]

    def person(path):
        return grade.person_of(tmp_path / "spring", tmp_path / "spring" / path, stems)

    assert person("ada/01_attention.ipynb") == "ada"
    assert person("Ada Lovelace_123_file_/deep/er/01_attention.ipynb") == "Ada Lovelace_123_file_"
    assert person("ada_01_attention.ipynb") == "ada"
    assert person("01_attention-ada.ipynb") == "ada"
    assert person("ada_l_02_multi_head_attention-Copy1.ipynb") == "ada_l"
    assert person("bob - 03_embeddings (1).ipynb") == "bob"
    assert person("ada_07_renamed.ipynb") == "ada"
    assert person("01_attention.ipynb") == "spring"
    assert person("whatever.ipynb") == "whatever"


def test_the_lesson_is_known_by_its_exercises(tmp_path):
    notebook(tmp_path / "ada" / "homework.ipynb", FIRST, similarity())
    rows = grade.grade(tmp_path)
    assert {row.lesson for row in rows} == {"01"}
    assert of(rows, "ada", "similarity").status == "passed"
    assert of(rows, "ada", "softmax").note == "no cell has it"


def test_of_two_copies_the_fuller_is_taken(tmp_path):
    notebook(tmp_path / "ada" / "01_attention.ipynb", FIRST, similarity("..."))
    notebook(tmp_path / "ada" / "01_attention-Copy1.ipynb", FIRST, similarity())
    notebook(tmp_path / "ada" / ".ipynb_checkpoints" / "01_attention.ipynb", FIRST, similarity())
    rows = grade.grade(tmp_path)
    assert of(rows, "ada", "similarity").status == "passed"
    (left,) = [row for row in rows if row.status == "not graded"]
    assert left.file.endswith("01_attention.ipynb")
    assert "01_attention-Copy1.ipynb was taken" in left.note


def test_what_cannot_be_graded_is_said(tmp_path, capsys):
    notebook(tmp_path / "ada" / "00_start_here.ipynb", FIRST, average("return 1.0"))
    notebook(tmp_path / "bob" / "notes.ipynb", "x = 1")
    damaged = notebook(tmp_path / "cy" / "00_start_here.ipynb", FIRST)
    damaged.write_text(damaged.read_text(encoding="utf-8")[:40], encoding="utf-8")
    (tmp_path / "dee").mkdir()
    (tmp_path / "dee" / "00_start_here.ipynb").write_bytes(b"\xff\xfe\x00PK")
    (tmp_path / "eli").mkdir()
    (tmp_path / "eli" / "00_start_here.ipynb").write_text(json.dumps([1, 2]), encoding="utf-8")
    (tmp_path / "fay").mkdir()
    (tmp_path / "fay" / "00_start_here.ipynb").write_text("[" * 100_000, encoding="utf-8")
    rows = grade.grade(tmp_path)
    said = {row.person: row.note for row in rows if row.status == "not graded"}
    assert "no exercise" in said["bob"]
    assert all("not a notebook" in said[one] for one in ("cy", "dee", "eli", "fay"))
    # They are people of the class all the same.
    assert of(rows, "cy").note == "no notebook of this lesson"
    assert of(rows, "ada").status == "wrong"


def test_only_one_lesson(tmp_path):
    notebook(tmp_path / "ada" / "00_start_here.ipynb", FIRST, average("return 1.0"))
    notebook(tmp_path / "ada" / "01_attention.ipynb", FIRST, similarity())
    assert {row.lesson for row in grade.grade(tmp_path, ["01"])} == {"01"}
    assert {row.lesson for row in grade.grade(tmp_path)} == {"00", "01"}


def test_the_command(tmp_path, capsys):
    folder = tmp_path / "class"
    notebook(folder / "ada_00_start_here.ipynb", FIRST, average("return 1.0"))
    before = dict(os.environ)
    assert course_main(["grade", str(folder), "--csv", str(tmp_path / "g.csv")]) == 0
    shown = capsys.readouterr().out
    assert "average   wrong" in shown
    assert (tmp_path / "g.csv").read_bytes().startswith(b"\xef\xbb\xbfperson,lesson,exercise,")
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{}/empty"], "there are no notebooks"),
        (["{}/nowhere"], "found nothing at"),
        (["{}/file"], "found a file at"),
        (["{}/class", "--lesson", "77"], "there is no lesson 77"),
        (["{}/class", "--csv", "{}/no/such/folder.csv"], "expected a file in a folder that exists"),
        (["{}/class", "--csv", "{}/class"], "expected a file"),
    ],
)
def test_what_is_wrong_with_the_command_is_said(tmp_path, capsys, arguments, said):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x", encoding="utf-8")
    notebook(tmp_path / "class" / "ada_00_start_here.ipynb", FIRST, average("..."))
    assert course_main(["grade", *(one.format(tmp_path) for one in arguments)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("value", ["0", "-1", "many", "nan", "inf"])
def test_limits_are_numbers_above_zero(tmp_path, capsys, value):
    with pytest.raises(SystemExit):
        grade.main([str(tmp_path), "--seconds", value])
    assert "expected a number above 0" in capsys.readouterr().err


# ---------------------------------------------------------------- what an answer needs


def test_only_what_is_used_runs():
    import ast

    tree = ast.parse(
        "import numpy as np\n"
        "model = train()\n"
        "rate = 0.1\n"
        "def helper(x):\n    return x * scale\n"
        "scale = 2\n"
        "def wanted(model):\n    import re\n    return helper(np.ones(1)), [rate for q in model]\n"
    )
    keep, _ = grade.needed(tree.body, tree.body[-1])
    assert keep == [True, False, True, True, True, True]


def test_the_imports_of_a_lesson():
    assert "import numpy as np" in grade.lesson_imports("01")
    assert grade.lesson_imports("99") == ""
    assert "gold_words" in grade.lesson_imports("08")
