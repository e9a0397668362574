"""The board: what is passed, what is open, lesson by lesson."""

from __future__ import annotations

import html

from .exercises import _store
from .exercises._registry import exercises, get
from .exercises._report import MARKS, inline, notice, show

LESSONS = {
    "00": ("start here", "00_start_here"),
    "01": ("attention", "01_attention"),
    "02": ("multi-head attention", "02_multi_head_attention"),
    "03": ("embeddings", "03_embeddings"),
    "04": ("encoder", "04_encoder"),
    "05": ("training", "05_training"),
    "06": ("text classification", "06_text_classification"),
    "07": ("token classification", "07_token_classification"),
    "08": ("question answering", "08_question_answering"),
    "09": ("pretrained encoder", "09_pretrained_encoder"),
    "10": ("your own task", "10_your_own_task"),
}


class Board:
    """The learner's progress at one moment."""

    def __init__(self, names: list[str], entries: dict, said: str = ""):
        self.said = said
        self.lessons: dict[str, list[tuple[str, str, int]]] = {}
        for name in names:
            entry = entries.get(name, {})
            status = "passed" if entry.get("passed") else entry.get("status", "not started")
            if status not in MARKS:
                status = "not started"
            hints = entry.get("hints", 0)
            self.lessons.setdefault(get(name).lesson, []).append((name, status, hints))

    @property
    def passed(self) -> int:
        return sum(row[1] == "passed" for rows in self.lessons.values() for row in rows)

    @property
    def total(self) -> int:
        return sum(map(len, self.lessons.values()))

    def __str__(self) -> str:
        lines = [self.said] if self.said else []
        lines.append(f"{self.passed} of {self.total} exercises passed")
        for lesson, rows in self.lessons.items():
            done = sum(status == "passed" for _, status, _ in rows)
            lines.append(f"{lesson} {_title(lesson)}: {done} of {len(rows)}")
            lines.extend(f"   {MARKS[status]} {name}: {status}" for name, status, _ in rows)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {"text/html": self._html(), "text/plain": str(self)}

    def _html(self) -> str:
        head = notice("alert-warning", inline(self.said)) if self.said else ""
        rows = "".join(self._lesson(lesson, rows) for lesson, rows in self.lessons.items())
        cell = "text-align:left;padding:4px 16px 4px 0"
        return (
            f"{head}<div><strong>{self.passed} of {self.total} exercises passed</strong> "
            f'<progress value="{self.passed}" max="{max(self.total, 1)}" '
            f'aria-label="exercises passed" style="vertical-align:middle;width:200px">'
            f'</progress></div><table style="margin:8px 0"><thead><tr>'
            f'<th scope="col" style="{cell}">lesson</th><th scope="col" style="{cell}">passed</th>'
            f'<th scope="col" style="{cell}">exercises</th></tr></thead>'
            f"<tbody>{rows}</tbody></table>"
            f"<div>{MARKS['passed']} passed, {MARKS['wrong']} tried, "
            f"{MARKS['not started']} not started</div>"
        )

    def _lesson(self, lesson: str, rows: list) -> str:
        done = sum(status == "passed" for _, status, _ in rows)
        marks = " &nbsp; ".join(
            f'<span style="white-space:nowrap" title="{status}">{MARKS[status]} '
            f"<code>{html.escape(name)}</code></span>"
            for name, status, _ in rows
        )
        file = LESSONS.get(lesson, ("", ""))[1]
        title = html.escape(f"{lesson} {_title(lesson)}")
        link = f'<a href="{file}.ipynb">{title}</a>' if file else title
        cell = "text-align:left;padding:4px 16px 4px 0;vertical-align:top"
        return (
            f'<tr><th scope="row" style="{cell};font-weight:normal;white-space:nowrap">{link}</th>'
            f'<td style="{cell};white-space:nowrap">{done} of {len(rows)}</td>'
            f'<td style="{cell}">{marks}</td></tr>'
        )


def _title(lesson: str) -> str:
    return LESSONS.get(lesson, (f"lesson {lesson}", ""))[0]


def progress() -> None:
    """Show the board: every exercise of the course, lesson by lesson, with its state."""
    data, said = _store.read()
    show(Board(exercises(), data["exercises"], said))
