"""A check's result in words: one glance in the notebook, plain text everywhere else."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

ALERTS = {
    "not started": "alert-info",
    "wrong": "alert-warning",
    "error": "alert-danger",
    "passed": "alert-success",
}
MARKS = {"not started": "○", "wrong": "✗", "error": "✗", "passed": "✓"}


@dataclass(frozen=True)
class Report:
    """The result of a check.

    name    : the exercise
    status  : "not started", "wrong", "error" or "passed"
    message : what to tell the learner, plain text
    mistake : the name of the mistake whose outputs equal the learner's, or None
    case    : the title of the case on which it shows
    rows    : (label, text) pairs under the message
    notes   : smaller remarks: warnings, wider dtypes
    trace   : the learner's own lines of a traceback
    inputs  : the inputs of the case, as text
    printed : what the function printed, shortened
    stands  : the sentence that says whose function the name now stands for
    timed_out : whether an error is that the time was up
    """

    name: str
    status: str
    message: str
    mistake: str | None = None
    case: str | None = None
    rows: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    trace: str = ""
    inputs: str = ""
    printed: str = ""
    stands: str = ""
    timed_out: bool = False

    @property
    def passed(self) -> bool:
        return self.status == "passed"

    def __str__(self) -> str:
        lines = [f"{MARKS[self.status]} {self.name}: {self.status}", *self.message.split("\n")]
        for label, text in self.rows:
            first, *rest = text.split("\n")
            lines.append(f"  {label}: {first}")
            lines.extend(f"  {' ' * (len(label) + 2)}{line}" for line in rest)
        if self.trace:
            lines.extend(f"  {line}" for line in self.trace.split("\n"))
        lines.extend(f"  note: {note}" for note in self.notes)
        if self.printed:
            lines.append("  printed: " + self.printed.replace("\n", "\n           "))
        if self.stands:
            lines.append(self.stands)
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        first, *rest = self.message.split("\n")
        parts = [
            f"<strong>{MARKS[self.status]} {inline(f'`{self.name}`')} {self.status}.</strong> "
            f"{inline(first)}"
        ]
        parts.extend(f"<div>{inline(line)}</div>" for line in rest if line.strip())
        if self.rows:
            parts.append(table(self.rows))
        if self.trace:
            parts.append(pre(self.trace))
        parts.extend(f"<div><em>Note:</em> {inline(note)}</div>" for note in self.notes)
        if self.inputs:
            parts.append(folded("the inputs of this case, to try yours on", pre(self.inputs)))
        if self.printed:
            parts.append(folded("what your function printed", pre(self.printed)))
        if self.stands:
            parts.append(f"<div>{inline(self.stands)}</div>")
        return notice(ALERTS[self.status], "".join(parts))

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {"text/html": self._repr_html_(), "text/plain": str(self)}


class Notice:
    """A short message in one of Lab's four alert colors, with its plain text."""

    def __init__(self, alert: str, text: str, more: str = "", plain: str = ""):
        self.alert, self.text, self.more, self.plain = alert, text, more, plain or text

    def __str__(self) -> str:
        return self.plain

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        lines = "".join(f"<div>{inline(line)}</div>" for line in self.text.split("\n"))
        return {"text/html": notice(self.alert, lines + self.more), "text/plain": self.plain}


def show(thing) -> None:
    """Display in a notebook, print elsewhere."""
    if in_notebook():
        from IPython.display import display

        display(thing)
    else:
        print(thing)


def in_notebook() -> bool:
    """Whether IPython runs this and can display things."""
    import sys

    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return get_ipython() is not None


# Ink and ground are set together, so that a notice reads the same on light and dark pages, and on
# hosts that know nothing of Lab's classes. Every pair has a contrast above 7.
INK = "#1f2328"
GROUNDS = {
    "alert-info": ("#e8f2fb", "#0969da"),
    "alert-warning": ("#fff3dc", "#b35900"),
    "alert-danger": ("#fdeceb", "#b3261e"),
    "alert-success": ("#e7f5ea", "#1a7f37"),
}
CODE = "background:rgba(31,35,40,.09);color:#1f2328;padding:1px 4px;border-radius:3px"


def notice(alert: str, body: str) -> str:
    """A box in one of Lab's alert colors; `body` is HTML."""
    ground, edge = GROUNDS[alert]
    return (
        f'<div class="alert {alert}" style="margin:4px 0;padding:8px 12px;overflow-x:auto;'
        f"color:{INK};background:{ground};border:1px solid {edge}55;"
        f'border-left:5px solid {edge};border-radius:4px">{body}</div>'
    )


def inline(text: str) -> str:
    """Escaped text in which `code` stands between backticks."""
    code = rf'<code style="{CODE}">\1</code>'
    return re.sub(r"`([^`\n]+)`", code, html.escape(text, quote=False))


def pre(text: str, margin: str = "4px 0") -> str:
    """A block of code or output, escaped, in the colors of the box around it."""
    return (
        f'<pre style="margin:{margin};padding:0;background:transparent;color:#1f2328;'
        'font-size:13px;line-height:1.4;white-space:pre-wrap;overflow-wrap:anywhere">'
        f"{html.escape(text, quote=False)}</pre>"
    )


def folded(title: str, body: str) -> str:
    """A part that opens on request."""
    return (
        f'<details style="margin-top:4px"><summary style="cursor:pointer">{inline(title)}'
        f"</summary>{body}</details>"
    )


def table(rows) -> str:
    """(label, text) pairs; texts of one line in the flow, arrays in a block."""
    cells = []
    for label, text in rows:
        block = "\n" in text or label.startswith(("your", "expected"))
        value = pre(text, "0") if block else inline(text)
        cells.append(
            '<tr style="background:transparent;color:#1f2328">'
            '<th scope="row" style="text-align:left;'
            "vertical-align:top;font-weight:normal;padding:1px 16px 1px 0;"
            f'color:#1f2328">{inline(label)}</th>'
            f'<td style="text-align:left;vertical-align:top;padding:1px 0;color:#1f2328">{value}'
            "</td></tr>"
        )
    return (
        '<table style="margin:6px 0;border:none;font-size:13px;line-height:1.45;'
        'background:transparent;color:#1f2328">'
        f"<tbody>{''.join(cells)}</tbody></table>"
    )
