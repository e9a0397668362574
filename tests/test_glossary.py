"""The glossary: its terms, `define` and `glossary`, and the definitions in the lessons' texts."""

import functools
import html
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import course
import pytest
from course import build
from course.glossary import INSTEAD_OF, MARKED, MOST_WORDS, TERMS, Glossary, find, nearest
from course.progress import LESSONS

ROOT = Path(__file__).resolve().parents[1]
NUMBERS = [lesson.number for lesson in build.lessons(ROOT)]
NAMES = {term.name: term for term in TERMS}


@functools.lru_cache
def texts(number):
    """The Markdown of a lesson in its normal form."""
    (lesson,) = build.lessons(ROOT, [number])
    notebook = build.normal(build.read(lesson.blank), number)
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def marks(text):
    """[(definition, word), ...] of the words that carry a definition."""
    return [
        (html.unescape(found[1]), found[2])
        for found in re.finditer(r'<abbr title="([^"]*)">(.*?)</abbr>', text, re.DOTALL)
    ]


def shown(capsys, call, *given):
    call(*given)
    return capsys.readouterr().out


class Structure(HTMLParser):
    """Checks that tags close in the order in which they opened, and counts them."""

    def __init__(self, text):
        super().__init__()
        self.open, self.count, self.text = [], {}, ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


# ---------------------------------------------------------------- the list


def test_no_two_terms_share_a_form():
    forms = [form.lower() for term in TERMS for form in {*term.all_forms}]
    assert sorted(form for form in forms if forms.count(form) > 1) == []
    for number in NUMBERS:
        marked = [form for term in TERMS for form in term.marked_in(number)]
        assert sorted(form for form in marked if marked.count(form) > 1) == [], number
    short = {form for term in TERMS for form in term.short}
    assert short.isdisjoint(forms)


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_a_definition_is_one_short_plain_sentence(term):
    assert len(term.definition.split()) <= MOST_WORDS
    assert term.definition.endswith(".") and term.definition[0].isupper()
    assert not re.search(r"\.\s", term.definition), "one sentence"
    # Nothing that Markdown, JupyterLab's formulas or a notebook's checks would read as their own.
    assert not re.search(r"""[$`*_{}\\<>"|]""", term.definition)
    assert set(term.only) | set(term.short_in) <= set(LESSONS)
    assert bool(term.short) == bool(term.short_in)


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_a_term_occurs_in_the_lesson_that_introduces_it(term):
    text = build.without_abbreviations("\n".join(texts(term.lesson)))
    forms = [*term.all_forms, *(term.short if term.lesson in term.short_in else ())]
    assert any(re.search(rf"(?i)(?<!\w){re.escape(form)}(?!\w)", text) for form in forms)


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_a_term_is_marked_somewhere(term):
    # Else nobody would notice that its forms are spelled otherwise than in the lessons.
    everywhere = {one for number in NUMBERS for text in texts(number) for one, _ in marks(text)}
    headings = re.findall(r"(?m)^#+ .*$", "\n".join(texts(term.lesson)))
    assert term.definition in everywhere or any(term.name in line.lower() for line in headings)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_lessons_use_one_word_for_one_thing(number):
    found = []
    for text in texts(number):
        # Asides for those who know the field speak the field's language.
        text = re.sub(r"(?s)<details><summary>If you know this.*?</details>", " ", text)
        prose = build._without_code(build.without_abbreviations(text))
        prose = build.MARKDOWN_LINK.sub(" ", prose)
        found += [
            f"{variant}: say {name}"
            for variant, name in INSTEAD_OF.items()
            if re.search(rf"(?<![\w-]){re.escape(variant)}(?![\w-])", prose)
        ]
    assert found == []


def test_the_words_to_use_are_terms_or_plain():
    assert {name for name in INSTEAD_OF.values() if not find(name)} <= {"data set"}
    assert not set(INSTEAD_OF) & {form for term in TERMS for form in term.all_forms}


# ---------------------------------------------------------------- the marks in the lessons


@pytest.mark.parametrize("number", NUMBERS)
def test_the_first_use_of_each_term_in_a_lesson_is_marked_and_only_it(number):
    text = "\n\n".join(texts(number))
    found = marks(text)
    assert len(found) >= 8
    definitions = [definition for definition, _ in found]
    assert sorted(set(definitions)) == sorted(definitions), "a term is marked twice"
    # Look for a use before the mark, in what a reader reads of the text, by other means than the
    # build's: every phrase and longer term that holds the word is taken out first.
    open_text = build.MARKDOWN_LINK.sub(" ", text)
    open_text = re.sub(r"(?s)```.*?```|<details.*?</details>|\$[^$\n]+\$", " ", open_text)
    open_text = re.sub(r"(?m)^(#|\*Lesson \d\d|\s*\|).*$", " ", open_text)
    longer = [form for term in TERMS for form in (*term.all_forms, *term.unless)]
    for term in TERMS:
        where = open_text.find(f'<abbr title="{html.escape(term.definition)}">')
        before = build.without_abbreviations(open_text if where < 0 else open_text[:where])
        for form in term.marked_in(number):
            left = before
            for other in longer:
                if form in other and other not in term.marked_in(number):
                    left = left.replace(other, " ")
            if "`" not in form:
                left = re.sub(r"`[^`]+`", " ", left)
            use = re.search(rf"(?<![\w\\-]){re.escape(form)}(?!\w|-\w)", left)
            assert not use, f"{form}: {left[max(0, use.start() - 40) : use.end() + 20]!r}"


@pytest.mark.parametrize("number", NUMBERS)
def test_marks_stand_in_the_text_alone(number):
    for text in texts(number):
        for line in text.splitlines():
            assert not (re.match(r"#|\*Lesson \d\d|\s*\|", line) and MARKED.search(line)), line
        for inside in re.findall(r"(?s)<details.*?</details>|\$[^$\n]+\$|```.*?```", text):
            assert not MARKED.search(inside)
        for link in re.findall(r"!?\[[^\]]*\]\([^)]*\)", text):
            assert not MARKED.search(link)
        assert not re.search(r"\w\*+<abbr|</abbr>\*+\w", text), "bold would not be read as bold"


def mark(*given, number="05"):
    return build.with_abbreviations(list(given), number)


def title(name):
    return f'<abbr title="{html.escape(NAMES[name].definition)}">'


@pytest.mark.parametrize(
    ("text", "word", "name"),
    [
        ("A loss.", "loss", "loss"),
        ("Losses fall.", "Losses", "loss"),
        ("the **loss**, then", "loss", "loss"),
        ("the learning\nrate", "learning\nrate", "learning rate"),
        ("`[MASK]` here", "`[MASK]`", "[MASK]"),
        ("bare [MASK] here", "[MASK]", "[MASK]"),
        ("# The loss\n\nA loss.", "loss", "loss"),
        ("`loss` is a loss", "loss", "loss"),
        ("[loss](x.md) and loss", "loss", "loss"),
        ("$loss$ and loss", "loss", "loss"),
        ("| loss |\n\nloss", "loss", "loss"),
        ("```\nloss\n```\nloss", "loss", "loss"),
        ("<b>loss</b> and loss", "loss", "loss"),
        ("<details><summary>a loss</summary>\n\nloss\n\n</details>\n\nloss", "loss", "loss"),
        ("a loss-free loss", "loss", "loss"),
        ("*Lesson 05 · a loss*\n\nloss", "loss", "loss"),
    ],
)
def test_where_a_mark_goes(text, word, name):
    (made,) = mark(text)
    assert made.count("<abbr") == 1
    place = text.rindex(word) if name == "loss" else text.index(word)
    assert made == f"{text[:place]}{title(name)}{word}</abbr>{text[place + len(word) :]}"


@pytest.mark.parametrize(
    "text",
    ["glossy", "loss_and_grads", "**loss**es", "the loss of any number", "LOSS",
     "<!-- loss -->", "https://example.org/loss", '<img alt="loss" src="x">', "\\loss"],
)  # fmt: skip
def test_where_no_mark_goes(text):
    assert mark(text) == [text]


def test_each_term_is_marked_once_and_the_longest_wins():
    first, second = mark("An AdamW step.", "AdamW and Adam. Weight decay of weights.")
    assert first == f"An {title('AdamW')}AdamW</abbr> step."
    assert second == (
        f"AdamW and {title('Adam')}Adam</abbr>. {title('weight decay')}Weight decay</abbr> of "
        f"{title('weight')}weights</abbr>."
    )


def test_a_short_form_means_another_term_in_another_lesson():
    assert mark("A head.", number="02") == [f"A {title('attention head')}head</abbr>."]
    assert mark("A head.", number="06") == [f"A {title('task head')}head</abbr>."]


def test_marks_are_made_anew():
    old = 'A <abbr title="An old definition.">loss</abbr>, a <abbr title="Gone.">gone</abbr> word.'
    made = mark(old)
    assert made == [f"A {title('loss')}loss</abbr>, a gone word."]
    assert mark(*made) == made
    assert build.without_abbreviations(made[0]) == "A loss, a gone word."
    code = '`<abbr title="x">` and\n```\n<abbr title="x">y</abbr>\n```'
    assert mark(code) == [code]


# ---------------------------------------------------------------- define and glossary


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_define_knows_every_term_and_form(term, capsys):
    for form in (*term.all_forms, *term.short):
        for spelled in {form, form.upper(), form.capitalize(), f"  {form} "}:
            said = shown(capsys, course.define, spelled)
            assert f"{term.definition} Introduced in lesson {term.lesson}," in said, spelled


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("gradeint", 'Did you mean `define("gradient")'),
        ("multi_head attention", "multi-head attention:"),
        ("cls", "[CLS]:"),
        ("sub-words", 'The course says "word piece".\nword piece:'),
        ("dropouts", "dropout:"),
        ("zebra", 'The glossary has no "zebra". `glossary()` shows all words.'),
        ("", "it got nothing"),
        ("  ", "it got nothing"),
        (3, "it got `int`"),
        (None, "it got `NoneType`"),
        (["logit"], "it got `list`"),
    ],
)
def test_define_says_what_it_can(given, said, capsys):
    assert said in shown(capsys, course.define, given)


def test_define_takes_a_function_by_its_name(capsys):
    def softmax():
        pass

    assert "softmax: " in shown(capsys, course.define, softmax)


def test_a_word_that_means_two_things_gets_both(capsys):
    said = shown(capsys, course.define, "head")
    assert "task head:" in said and "attention head:" in said


def notice_html(monkeypatch, *given):
    kept = []
    monkeypatch.setattr(sys.modules["course.glossary"], "show", kept.append)
    course.define(*given)
    (one,) = kept
    return one._repr_mimebundle_()["text/html"]


def test_what_was_typed_is_escaped_and_not_repeated_at_length(monkeypatch):
    shown_html = notice_html(monkeypatch, "<img src=x onerror=alert(1)>" + "long " * 100)
    assert "<img" not in shown_html and "&lt;img" in shown_html
    assert len(Structure(shown_html).text) < 200


def test_define_links_to_the_lesson(monkeypatch):
    shown_html = notice_html(monkeypatch, "logit")
    Structure(shown_html)
    (target,) = re.findall(r'href="([^"]*)"', shown_html)
    for folder in ("notebooks", "solutions"):
        assert (ROOT / folder / target).resolve() == ROOT / "notebooks" / "05_training.ipynb"


def test_the_glossary_shows_every_term_under_its_lesson(capsys):
    said = shown(capsys, course.glossary)
    lesson = None
    for line in said.splitlines():
        if line.startswith("Lesson "):
            lesson = line[7:9]
        else:
            name, _, definition = line.strip().partition(": ")
            assert NAMES[name].lesson == lesson and NAMES[name].definition == definition
    assert said.count("\n") >= len(TERMS)
    found = Structure(Glossary()._repr_mimebundle_()["text/html"])
    assert found.count["dt"] == found.count["dd"] == len(TERMS)
    assert found.count["details"] == found.count["summary"] == len({one.lesson for one in TERMS})
    assert all(term.definition in found.text for term in TERMS)


def test_nearest_gives_names_that_exist():
    assert nearest("sofmax") == ["softmax"]
    assert nearest("zzzz") == []
