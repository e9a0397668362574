"""A question with several answers, each of which is explained."""

from __future__ import annotations

from collections.abc import Sequence

from .exercises._report import ALERTS, GROUNDS, INK, in_notebook, inline, notice
from .explore import close_earlier, live_part

# A widget's button keeps to one line unless told otherwise, and the one that was chosen has white
# letters on orange, which not everyone can read: it gets the colors of its verdict.
STYLE = (
    "<style>.course-quiz .jupyter-button{white-space:normal;text-align:left;line-height:1.4;"
    "padding:6px 12px;overflow:visible}"
    + "".join(
        f".course-quiz .jupyter-button.mod-{mark},.course-quiz .jupyter-button.mod-{mark}:is("
        f":hover,:focus,:active){{color:{INK};background:{GROUNDS[alert][0]};"
        f"box-shadow:inset 5px 0 {GROUNDS[alert][1]}}}"
        for mark, alert in (("success", ALERTS["passed"]), ("warning", ALERTS["wrong"]))
    )
    + ".course-quiz .jupyter-button:focus-visible{outline:2px solid "
    "var(--jp-brand-color1,#1976d2);outline-offset:2px}</style>"
)


def quiz(question: str, options: Sequence[tuple[str, str, bool]]) -> None:
    """Ask a question; `options` are (answer, explanation, is it right).

    In a notebook each answer is a button that shows its explanation. Readers without a kernel
    unfold the explanations, and plain Python prints the question and its answers.
    """
    options = _checked(question, options)
    if not in_notebook():
        print(_plain(question, options))
        return
    from IPython.display import display

    close_earlier()
    box = _widgets(question, options)
    still = {"text/html": _still(question, options), "text/plain": _plain(question, options)}
    display(still | live_part(box), raw=True)


def _checked(question, options) -> list[tuple[str, str, bool]]:
    checked = []
    for option in options:
        if not (isinstance(option, (tuple, list)) and len(option) == 3):
            raise ValueError(
                f"quiz: expected (answer, explanation, is it right), got {option!r:.120}"
            )
        text, why, right = option
        if not (str(text).strip() and str(why).strip()):
            raise ValueError("quiz: each answer needs a text and an explanation")
        checked.append((str(text), str(why), bool(right)))
    if len(checked) < 2 or not any(right for _, _, right in checked):
        raise ValueError(
            f"quiz: expected two or more answers with a right one among them: {question!r:.80}"
        )
    return checked


def _letter(index: int) -> str:
    return chr(ord("A") + index)


def _plain(question, options) -> str:
    return "\n".join(
        [question, *(f"  {_letter(i)}. {text}" for i, (text, _, _) in enumerate(options))]
    )


def _verdict(index: int, option: tuple[str, str, bool]) -> str:
    _, why, right = option
    mark, word = ("✓", "Right.") if right else ("✗", "Not this one.")
    body = (
        f'<div role="status"><strong>{mark} {_letter(index)}: {word}</strong> {inline(why)}</div>'
    )
    return notice(ALERTS["passed" if right else "wrong"], body)


def _still(question, options) -> str:
    answers = "".join(
        f"<details><summary>{_letter(i)}. {inline(option[0])}</summary>{_verdict(i, option)}"
        "</details>"
        for i, option in enumerate(options)
    )
    return f"<div><p><strong>{inline(question)}</strong></p>{answers}</div>"


def _widgets(question, options):
    import ipywidgets

    head = ipywidgets.HTML(f"{STYLE}<div><strong>{inline(question)}</strong></div>")
    said = ipywidgets.HTML("")
    buttons = []
    for index, option in enumerate(options):
        button = ipywidgets.Button(
            description=f"{_letter(index)}. {option[0].replace('`', '')}",
            layout={"width": "auto", "max_width": "100%", "height": "auto"},
        )

        def chosen(_, index=index, option=option):
            said.value = _verdict(index, option)
            for other in buttons:
                other.button_style = ""
            buttons[index].button_style = "success" if option[2] else "warning"

        button.on_click(chosen)
        buttons.append(button)
    layout = {"align_items": "flex-start", "max_width": "100%"}
    box = ipywidgets.VBox([head, *buttons, said], layout=layout)
    box.add_class("course-quiz")
    return box
