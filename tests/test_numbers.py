"""No number in prose that nothing printed: every result a lesson or the README names is looked up.

A number in a lesson's text must stand in what the cells of its section print (in the worked copy),
or in their code, where it is set or asserted. What comes from elsewhere stands in FACTS with its
source. Numbers in the README must be in `tests/benchmarks/results.json`, which the benchmarks
write, or in FACTS. Not looked up: code, formulas, links, shapes, years, numbers of lessons and
sections, and whole numbers up to SMALL, which count things that the reader sees.
"""

import html
import json
import re
from pathlib import Path

import nbformat
import pytest
from course import build

ROOT = Path(__file__).resolve().parents[1]
LESSONS = build.lessons(ROOT)
SMALL = 16

# (place, number): where it comes from. Place: a lesson's number or README.
FACTS = {
    ("02", "64"): "Devlin et al., 2019: BERT-base is 768 wide and has 12 heads",
    ("03", "512"): "Devlin et al., 2019: positions of BERT-base",
    ("07", "0.92"): "Devlin et al., 2019, table 7: test F1 of BERT on CoNLL-2003",
    ("10", "1.1"): "the version of a data format",
    # What a reader is asked to set or to think of, no result.
    ("02", "32,768"): "a length to set a slider to",
    ("03", "3,000"): "a size to set a slider to",
    ("03", "448"): "an id, to say that ids are names",
    ("03", "224"): "an id, to say that ids are names",
    ("03", "44"): "a position to look at",
    ("04", "1000"): "a factor to set a slider to",
    ("04", "0.8"): "a rate to set a slider to",
    ("05", "1000"): "a logit that an answer must bear",
    ("09", "85 %"): "the aim that was set before the lesson was written",
    ("10", "60 %"): "the target that the task sets",
    ("README", "91"): "the size of the file, MB",
}

NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+|(?<=\d))(?![\w])(?:\s?%)?")


def prose(text):
    """A Markdown text without what is not prose or not a result."""
    text = re.sub(r"```.*?```", " ", text, flags=re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$", " ", text, flags=re.DOTALL)
    text = re.sub(r"\$[^$\n]+\$", " ", text)
    text = re.sub(r"(`+).+?\1", " ", text)
    text = re.sub(r"^\s*\*?Papers?\*?:.*$", " ", text, flags=re.MULTILINE)
    text = re.sub(r"(!?)\[([^\]]*)\]\([^)]*\)", lambda m: " " if m[1] else m[2], text)
    text = re.sub(r"<[^>]+>", " ", text)
    text = re.sub(r"^#+ \d+\.", " ", text, flags=re.MULTILINE)
    text = re.sub(r"^\*Lesson \d\d · about \d+ minutes", " ", text, flags=re.MULTILINE)
    text = re.sub(r"\([^()]*\d\s*,[^()]*\)", shapes, text)
    text = re.sub(r"\[\s*[-−\d., ]+\]", " ", text)
    text = re.sub(r"(?i)\b(lessons?|sections?|tables?|figures?|python)\s\d[\d.]*"
                  r"((,| to| and|, and)\s\d[\d.]*)*", " ", text)  # fmt: skip
    text = re.sub(r"(?<!\w)[A-Za-z]+[-/]?\d[\w.-]*", " ", text)  # float32, L6-v2, CoNLL-2003
    return re.sub(r"\b(19|20)\d\d\b", " ", text)


def shapes(found):
    """Nothing for a shape such as (3, 4); other parentheses stay."""
    return " " if re.fullmatch(r"\(\s*\w+(\s*[,·]\s*[\w· ]+)*,?\s*\)", found[0]) else found[0]


def named(text):
    """[(as written, value), ...] of the numbers that name a result."""
    found = []
    for match in NUMBER.finditer(prose(text)):
        written = match[0].strip()
        value = float(written.rstrip("% ").replace(",", ""))
        if not (value <= SMALL and value.is_integer() and "%" not in written):
            found.append((written, value))
    return found


def numbers(text):
    """The values of all numbers in an output or a piece of code."""
    plain = html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("_", "")
    found = re.findall(r"\d[\d,]*\.?\d*(?:e[-+]?\d+)?|\.\d+", plain)
    values = set()
    for one in found:
        for form in (one.replace(",", ""), *one.split(",")):
            try:
                values.add(float(form))
            except ValueError:
                continue
    return values


def shown(cell):
    """All that a code cell says: its source, its outputs, the alt texts of its pictures."""
    said = [cell.source]
    for output in cell.outputs:
        said.append(output.get("text", ""))
        data = output.get("data", {})
        alts = re.findall(r'alt="([^"]*)"', data.get("text/html", ""))
        markup = re.sub(r'src="[^"]*"', "", data.get("text/html", ""))
        said += [*alts, markup, data.get("text/plain", ""), data.get("text/markdown", "")]
    return " ".join(map(str, said))


def stands(written, value, known):
    """Whether a number that is written so was printed, perhaps with more digits or as a part."""
    places = len(written.rstrip("% ").partition(".")[2])
    near = 0.5000001 * 10**-places
    values = [100 * one for one in known] if "%" in written else []
    return any(abs(one - value) <= near for one in values) or any(
        one == value or (places and abs(one - value) <= near) for one in known
    )


def sections(notebook):
    """The cells of a notebook, in lists that begin at its headings of the second level."""
    made = [[]]
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and re.match(r"## ", cell.source):
            made.append([])
        made[-1].append(cell)
    return made


def unfounded(notebook, place):
    """What a lesson's text names, and neither its section nor FACTS holds."""
    found = []
    for cells in sections(notebook):
        known = set()
        for cell in cells:
            if cell.cell_type == "code":
                known |= numbers(shown(cell))
            elif cell.cell_type == "markdown":
                for code in re.findall(r"```.*?```|`[^`]+`|\$[^$]+\$", cell.source, re.DOTALL):
                    known |= numbers(code)
        for cell in cells:
            if cell.cell_type != "markdown":
                continue
            for written, value in named(cell.source):
                if (place, written) in FACTS or stands(written, value, known):
                    continue
                at = cell.source.find(written)
                around = cell.source[max(0, at - 40) : at + 30].replace("\n", " ")
                found.append(f"{place}: {written!r} in “{around}”")
    return found


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_every_result_in_a_lesson_is_printed_or_asserted_beside_it(lesson):
    found = unfounded(nbformat.read(lesson.worked, as_version=4), lesson.number)
    assert not found, "\n".join(found)


def test_every_result_in_the_readme_was_printed_by_a_benchmark():
    results = json.loads((ROOT / "tests/benchmarks/results.json").read_text(encoding="utf-8"))
    known = numbers(json.dumps(results))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    # The table of lessons says how long a lesson takes a reader: an estimate, not a result.
    text = re.sub(r"^\| \d\d \|.*$", " ", text, flags=re.MULTILINE)
    found = [
        written
        for written, value in named(text)
        if ("README", written) not in FACTS and not stands(written, value, known)
    ]
    assert not found, found


def test_a_source_in_the_table_is_still_needed():
    texts = {one.number: one.blank.read_text(encoding="utf-8") for one in LESSONS}
    texts["README"] = (ROOT / "README.md").read_text(encoding="utf-8")
    stale = [key for key in FACTS if key[1] not in texts[key[0]]]
    assert not stale, stale


def made(text, *cells):
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_markdown_cell(text)]
    for source, printed in cells:
        cell = nbformat.v4.new_code_cell(source)
        cell.outputs = [nbformat.v4.new_output("stream", text=printed)]
        notebook.cells.append(cell)
    return notebook


@pytest.mark.parametrize(
    ("text", "finds"),
    [
        ("It reaches .472.", ["00: '.472' in “It reaches .472.”"]),
        ("It reaches 47 %.", []),
        ("It reaches 52 %.", ["00: '52 %' in “It reaches 52 %.”"]),
        ("It reaches 0.47 after 300 steps, as [one](x_99.ipynb) of 12 did in 2019.", []),
        ("After lessons 31 and 32, `x = 99`, $y = 98$ and a (64, 97) matrix.", []),
        ("After 1,300 steps.", ["00: '1,300' in “After 1,300 steps.”"]),
    ],
)
def test_a_number_without_a_source_is_found(text, finds):
    notebook = made(text, ("train(steps=300)", "accuracy 0.4710"))
    assert unfounded(notebook, "00") == finds


def test_a_number_of_another_section_does_not_count():
    notebook = made("It reaches .47.", ("", ""))
    notebook.cells += made("## Later", ("", "0.47")).cells
    assert unfounded(notebook, "00")
