"""Every lesson in the real JupyterLab: run to its end, played with by keyboard, looked at.

Each lesson is opened and run once; what follows happens in that page, first in the light theme,
then in the dark one. Below the lesson stands one more cell, with all that its exercises can say:
hints, solutions, and the message that each named mistake gets.

The lessons' models were trained when nbval ran the same copies; where they are kept, they are not
trained again (tests/trained.py).
"""

import json
import statistics

import lab
import pytest
import trained

LONGEST_FIRST = ("09", "05", "08", "06", "07")  # so that the workers end at about the same time
LESSONS = sorted(
    (path.name for path in (lab.REPOSITORY / "notebooks").glob("[0-9][0-9]_*.ipynb")),
    key=lambda name: ((*LONGEST_FIRST, name[:2]).index(name[:2]), name),
)

ALL_THAT_IS_SAID = """\
import course
from course.exercises import get
from course.exercises._report import show

for name in course.exercises():
    if get(name).lesson == "{lesson}":
        for _ in range(3):
            course.hint(name)
        course.solution(name)
        show(course.check(name, get(name).reference))
        for mistake in get(name).mistakes:
            show(course.check(name, mistake.function))"""

# Keys that a reader tries in a control, and what the value must do.
RANGE_KEYS = ("ArrowRight", "ArrowRight", "End", "ArrowLeft", "Home", "PageUp")
CHOICE_KEYS = ("End", "ArrowUp", "Home", "ArrowDown")
# Where another control is put, before one that changed nothing is tried again: labels that begin
# inside a name, names that are no words of the vocabulary.
ELSEWHERE = {
    "range": ("End", "Home"),
    "choice": ("End", "ArrowUp", "Home"),
    "toggle": ("Space",),
    "text": ("I-PER I-PER O I-LOC B-LOC O I-ORG I-ORG",
             "Grzegorz Kowalczyk of Novotechnika visited Szczecin."),
}  # fmt: skip
TYPED = (("ControlOrMeta+a", "Delete", *"Ana"), ("End", *" met Zo", "Space", *"in"))
OVERLOADED = "[anywidget] Failed to initialize model."
PAGES = ["#ffffff", "#111111"]  # JupyterLab's ground, light and dark
ANY_PICTURE = ".jp-OutputArea img, .jp-MarkdownOutput img"
BUDGET = 100  # ms, on a machine that does nothing else: printed, not asserted


def with_gallery(name, folder):
    """The lesson with one more cell; the path of that copy."""
    notebook = json.loads((lab.REPOSITORY / "notebooks" / name).read_text(encoding="utf-8"))
    source = ALL_THAT_IS_SAID.format(lesson=name[:2])
    notebook["cells"].append(
        {"cell_type": "code", "execution_count": None, "id": "all-that-is-said", "metadata": {},
         "outputs": [], "source": source.splitlines(keepends=True)}
    )  # fmt: skip
    path = folder / name
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


class Player:
    """Plays with every control of a lesson, and keeps what was seen."""

    def __init__(self, notebook):
        self.notebook = notebook
        self.page = notebook.page
        self.faults = []  # sentences
        self.latencies = {}  # a picture's name: milliseconds of each key that changed it
        self.pictures = {}  # the source of each SVG seen: the name of its picture
        explorers = notebook.panel.locator(".course-explore")
        self.count = explorers.count()
        for number in range(self.count):
            self.play(explorers.nth(number))

    def play(self, explorer):
        cell = explorer.locator("xpath=ancestor::*[contains(@class, 'jp-CodeCell')]")
        source = cell.locator(".cm-content").first.inner_text()
        called = source.partition("explore(play.")[2]
        name = called.replace(",", ")").partition(")")[0] or source[:30]
        name = name if name not in self.latencies else f"{name} ({len(self.latencies) + 1})"
        self.times = self.latencies[name] = []
        self.name, self.stage = name, explorer.element_handle()
        explorer.scroll_into_view_if_needed()
        picture = explorer.locator(".course-picture").element_handle()
        self.keep(self.notebook.looks("shown", picture))
        rows = [self.row(one) for one in explorer.locator(".course-row").all()]
        for kind, row, label in rows:
            before = len(self.times)
            getattr(self, kind)(row, f"{name}, {label}")
            if len(self.times) == before and not self.changes_beside_others(kind, row, rows):
                self.faults.append(f"{name}, {label}: no key changed the picture")
        # enough samples for a median: the first control moves again
        kind, row, label = rows[0]
        for _ in range(6):
            if len(self.times) >= 9:
                break
            getattr(self, kind)(row, f"{name}, {label}")

    def row(self, row):
        """A control's kind, its row and its label."""
        kinds = row.get_attribute("class").removeprefix("course-row course-")
        return kinds.split()[0], row, row.locator("label").inner_text()

    def changes_beside_others(self, kind, row, rows):
        """Whether a control changes the picture when another one stands elsewhere.

        Some have nothing to change at the start: where a mask is applied matters once there is one.
        """
        before = len(self.times)
        for other_kind, other, _ in rows:
            if other is row:
                continue
            field = other.locator("input, select, textarea").first
            for change in ELSEWHERE[other_kind]:
                field.focus()
                if other_kind == "text":
                    self.page.keyboard.press("ControlOrMeta+a")
                    self.page.keyboard.insert_text(change)
                    change = "End"
                self.press(change)
                start = len(self.times)
                getattr(self, kind)(row, f"{self.name}, beside another")
                if len(self.times) > start:
                    return True
        del self.times[before:]
        return False

    def press(self, key):
        """Press a key in the control that has the focus; whether the picture changed."""
        after = self.notebook.press(self.stage, key)
        if after["milliseconds"] is not None:
            self.times.append(after["milliseconds"])
            self.keep(after)
        return after["milliseconds"] is not None

    def keep(self, shown):
        """Note what is wrong with the picture that is shown, and its source."""
        if shown["message"] or not shown["things"]:
            self.faults.append(f"{self.name}: no picture: {shown['message'][:300]}")
        if not all(alt.strip() for alt in shown["alts"]):
            self.faults.append(f"{self.name}: a picture without alt text")
        for source in filter(None, shown["sources"]):
            self.pictures.setdefault(source, self.name)

    def range(self, row, what):
        bar, box = row.locator("input[type=range]"), row.locator("input[type=number]")
        low, high, step, start = (
            float(bar.get_attribute(name))
            for name in ("min", "max", "step", "aria-valuenow")
        )  # fmt: skip
        bar.focus()
        at = start
        for key in RANGE_KEYS:
            at = {"Home": low, "End": high, "ArrowRight": min(at + step, high),
                  "ArrowLeft": max(at - step, low)}.get(key)  # fmt: skip
            self.press(key)
            now = float(bar.get_attribute("aria-valuenow"))
            if at is not None and abs(now - at) > step / 1000:
                self.faults.append(f"{what}: {key} gave {now:g}, not {at:g}")
            at = now
            if float(box.input_value()) != round(now, 9):
                self.faults.append(f"{what}: the bar says {now:g}, the box {box.input_value()}")
        # back to where it was, with the number box
        box.focus()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(f"{start:.10g}")
        self.press("Enter")
        if abs(float(bar.get_attribute("aria-valuenow")) - start) > step / 1000:
            self.faults.append(f"{what}: {start:g} in the number box did not move the bar")

    def choice(self, row, what):
        chosen = row.locator("select")
        start, last = int(chosen.input_value()), chosen.locator("option").count() - 1
        chosen.focus()
        at = start
        for key in CHOICE_KEYS:
            at = {"Home": 0, "End": last, "ArrowUp": max(at - 1, 0),
                  "ArrowDown": min(at + 1, last)}[key]  # fmt: skip
            self.press(key)
            if int(chosen.input_value()) != at:
                self.faults.append(f"{what}: {key} gave option {chosen.input_value()}, not {at}")
        self.press("Home")
        for _ in range(start):
            self.press("ArrowDown")

    def toggle(self, row, what):
        box = row.locator("input[type=checkbox]")
        box.focus()
        for _ in range(2):
            before = box.is_checked()
            self.press("Space")
            if box.is_checked() == before:
                self.faults.append(f"{what}: Space did not change the box")

    def text(self, row, what):
        line = row.locator("input[type=text], textarea")
        start = line.input_value()
        line.focus()
        for keys in TYPED:
            for key in keys:
                self.press(key)
        if line.input_value() != "Ana met Zo in":
            self.faults.append(f"{what}: typed Ana met Zo in, found {line.input_value()!r}")
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(start)
        self.press("End")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One JupyterLab for all lessons of a worker; each lesson has a kernel of its own."""
    folder = tmp_path_factory.mktemp("lessons")
    lessons = [with_gallery(name, folder) for name in LESSONS]
    env = {"IPYTHONDIR": str(trained.profile(folder / "ipython", again=True))}
    with lab.jupyterlab(lessons, env=env) as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    """One browser for all lessons of a worker: what it has read of JupyterLab, it keeps."""
    with lab.browser_page() as page:
        yield page.context


@pytest.fixture(scope="class")
def lesson(request, server, browser):
    """The lesson of the test's class, open and run from top to bottom."""
    page = browser.new_page()
    notebook = lab.open_notebook(page, server, f"notebooks/{request.cls.name}")
    notebook.run_all(1500)  # seconds after which it is stuck
    if OVERLOADED in notebook.problems:
        # anywidget gives the page two seconds to start a widget, which a busy machine may not
        # keep; a reader then runs the cell again
        notebook.problems[:] = [one for one in notebook.problems if one != OVERLOADED]
        for cell in notebook.code_cells.filter(has=page.locator(".course-explore")).all():
            notebook.run_cell(cell)
    yield notebook
    page.close()
    server.stop_kernels()


@pytest.fixture(scope="class")
def played(lesson):
    """What was seen while every control was moved."""
    lesson.theme(dark=False)
    return Player(lesson)


def buttons(quiz):
    return quiz.locator("button")


def answer(notebook, quiz, number):
    """Choose an answer of a quiz with Enter; what the quiz says to it."""
    button = buttons(quiz).nth(number)
    button.focus()
    notebook.page.keyboard.press("Enter")
    verdict = quiz.locator("[role=status]").filter(has_text=f"{button.inner_text()[0]}: ")
    verdict.wait_for(timeout=20_000)
    return verdict.inner_text()


def choose(notebook, quiz, right):
    """Choose a right answer of a quiz, or one that is not."""
    for number in range(buttons(quiz).count()):
        if ("Right." in answer(notebook, quiz, number)) is right:
            return
    raise AssertionError(f"no answer of this quiz is {'right' if right else 'wrong'}")


def none(found):
    assert not found, "\n".join([f"{len(found)} found:", *found])


class InJupyterLab:
    """One lesson; the classes below have its name."""

    name = ""

    def test_runs_to_its_end(self, lesson):
        none(lesson.errors())
        assert lesson.unrun() == 0
        none(lesson.problems)

    def test_every_control_moves_by_keyboard(self, lesson, played):
        source = (lab.REPOSITORY / "notebooks" / self.name).read_text(encoding="utf-8")
        assert played.count == source.count("explore(play.")
        none(played.faults)
        none(lesson.problems)

    def test_each_slider_answers_keys_with_pictures(self, played, measured):
        for name, times in played.latencies.items():
            assert times, f"{name}: no key changed the picture"
            median = statistics.median(times)
            measured(
                f"{self.name[:2]} {name:<24} key to picture, median of {len(times):>2}: "
                f"{median:4.0f} ms, slowest {max(times):4.0f} (budget {BUDGET})"
            )

    def test_pictures_have_alt_text(self, lesson):
        pictures = lesson.panel.locator(f"{ANY_PICTURE}, .jp-OutputArea canvas")
        alts = pictures.evaluate_all("all => all.map(one => one.getAttribute('alt') || '')")
        assert all(alt.strip() for alt in alts), alts
        bare = lesson.panel.locator(".jp-OutputArea svg:not([aria-label]):not([aria-hidden])")
        assert bare.count() == 0  # an SVG that is no <img> needs a name of its own

    def test_texts_in_pictures_can_be_read(self, lesson, played):
        """Each has a contrast of 4.5, is inside its picture, and is not written over."""
        pictures = dict(played.pictures)
        for image in lesson.panel.locator(ANY_PICTURE).element_handles():
            source, alt = lesson.looks("source", image), image.get_attribute("alt")
            assert source, f"a picture that is no SVG: {alt}"
            pictures.setdefault(source, alt[:60])
        assert pictures
        faults = set()
        for source, name in pictures.items():
            assert "prefers-color-scheme" not in source  # one look at it would not be enough
            faults |= {
                f"{name}: {fault}"
                for fault in lesson.looks("svg", source, {"grounds": PAGES})
            }  # fmt: skip
        none(sorted(faults))

    def test_quizzes_answer_by_keyboard(self, lesson):
        source = (lab.REPOSITORY / "notebooks" / self.name).read_text(encoding="utf-8")
        quizzes = lesson.panel.locator(".course-quiz").all()
        assert len(quizzes) == source.count('"quiz(')
        for quiz in quizzes:
            verdicts = [answer(lesson, quiz, number) for number in range(buttons(quiz).count())]
            assert any("Right." in verdict for verdict in verdicts)
            assert any("Not this one." in verdict for verdict in verdicts)

    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_axe_finds_nothing_serious(self, lesson, played, theme):
        """No serious or critical finding, and no text with a contrast below 4.5."""
        lesson.theme(dark=theme == "dark")
        quizzes = lesson.panel.locator(".course-quiz").all()
        found = []
        for right, parts in ((True, ()), (False, (".course-quiz",))):
            for quiz in quizzes:
                choose(lesson, quiz, right)
            if quizzes or not parts:
                found += lesson.axe(*parts)
        none([
            f"{one['impact']}: {one['rule']}: {one['why']}: {one['where']}"
            for one in found
            if one["impact"] in ("serious", "critical") or one["rule"] == "color-contrast"
        ])  # fmt: skip

    def test_nothing_is_cut_off(self, lesson, played):
        assert lesson.page.viewport_size["width"] == 1280
        lesson.unfold()
        none(lesson.looks("cut", lesson.panel.element_handle()))


def drawn(*parts, ground="#ffffff"):
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="60" viewBox="0 0 200 60">'
        f'<rect width="200" height="60" fill="{ground}"/>{"".join(parts)}</svg>'
    )


def word(text, x, y, color="#000000", more=""):
    return f'<text x="{x}" y="{y}" font-size="14" fill="{color}" {more}>{text}</text>'


LINE = '<path d="M0 26H200" stroke="#000000" stroke-width="6"/>'
HALO = 'stroke="#ffffff" stroke-width="8" paint-order="stroke"'


class TestTheEyes:
    """What the lessons' pictures are held to finds what it is there for."""

    @pytest.mark.parametrize(
        ("picture", "said"),
        [
            (drawn(word("good", 20, 30)), ""),
            (drawn(word("long enough", 150, 30)), "cut off"),
            (drawn(word("high", 20, 4)), "cut off"),
            (drawn(word("turned", 4, 30, more='transform="rotate(-90 4 30)"')), "cut off"),
            (drawn(word("one", 20, 30), word("two", 30, 34)), "over each other"),
            (drawn(word("one", 20, 20), word("two", 20, 40)), ""),
            (drawn(word("pale", 20, 30, "#8a8a8a")), "contrast of 3"),
            (drawn(word("gray", 20, 30, "#767676")), ""),
            (drawn(word("dark", 20, 30), ground="#303030"), "contrast of 1"),
            (drawn(word("faint", 20, 30, more='opacity="0.3"')), "contrast of"),
            (drawn(LINE, word("mean", 20, 31)), "contrast of 1"),
            (drawn(LINE, word("mean", 20, 31, more=HALO)), ""),
            (drawn(word("bare", 20, 30), ground="none"), "contrast of 1"),  # on a dark page
            ("<svg><text>", "not well-formed"),
        ],
    )
    def test_looks(self, browser, picture, said):
        page = browser.pages[0]
        if not page.evaluate("() => 'looks' in window"):
            page.evaluate((lab.REPOSITORY / "tests/looks.js").read_text(encoding="utf-8"))
        found = page.evaluate(
            "([picture, grounds]) => looks.svg(picture, {grounds})", [picture, PAGES]
        )
        assert len(found) == bool(said), found
        assert said in "".join(found)


# One class a lesson, so that a lesson stays in one process and lessons go to several.
for _name in LESSONS:
    _class = f"Test{''.join(word.capitalize() for word in _name[:-6].split('_'))}"
    globals()[_class] = type(_class, (InJupyterLab,), {"name": _name})
