"""The training curve, drawn while a model trains: `fit(..., watch=live())`."""

from __future__ import annotations

import html
import math
import os
import time

from .exercises._report import in_notebook

UPDATES_A_SECOND = 5


class Live:
    """A watcher for `fit`: a progress bar, the loss so far, the score on the dev split.

    `fit` calls start(total), then step(step, loss, lr) and dev(step, score), and end(reason).
    It is quiet in plain Python; under COURSE_QUIET=1 a notebook gets the final picture alone.
    coin: for two classes, mark in the middle of both axes where a coin stands.
    """

    def __init__(self, title: str = "training", coin: bool = False):
        self.title, self.coin = title, coin
        self.start(0)

    def start(self, total: int) -> None:
        self.total, self.at, self.rate = int(total), 0, 0.0
        self.losses: list[tuple[int, float]] = []
        self.scores: list[tuple[int, float]] = []
        self.reason, self._handle = "", None
        self._shown = time.monotonic()
        self._notebook = in_notebook()
        self._quiet = os.environ.get("COURSE_QUIET", "") not in ("", "0")
        if self.total and self._notebook and not self._quiet:
            self._show()

    def step(self, step: int, loss: float, lr: float = 0.0) -> None:
        self.at, self.rate = int(step), float(lr)
        self.losses.append((self.at, float(loss)))
        self._refresh()

    def dev(self, step: int, score: float) -> None:
        self.scores.append((int(step), float(score)))
        self._refresh()

    def end(self, reason: str = "") -> None:
        self.reason = str(reason)
        if self._notebook:
            self._show()

    @property
    def alt(self) -> str:
        """The state in words."""
        said = [f"{self.title}: step {self.at} of {self.total}"]
        if self.losses:
            first, last = self.losses[0][1], _recent(self.losses)
            said.append(f"loss from {first:.3f} to {last:.3f}")
        if self.scores:
            best = max(self.scores, key=lambda one: one[1])
            said.append(f"best dev score {best[1]:.3f} at step {best[0]}")
        if self.reason:
            said.append(self.reason)
        if self.coin:
            said.append(f"a coin's loss is {COIN:.3f} and its score 0.5")
        return ", ".join(said)

    def _refresh(self) -> None:
        now = time.monotonic()
        if self._handle is not None and now - self._shown >= 1 / UPDATES_A_SECOND:
            self._show()

    def _show(self) -> None:
        from IPython.display import display

        self._shown = time.monotonic()
        bundle = {"text/html": self._html(), "text/plain": self.alt}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)

    def _html(self) -> str:
        bar = (
            f'<progress value="{self.at}" max="{max(self.total, 1)}" '
            f'aria-label="{html.escape(self.title)}" style="width:300px"></progress>'
        )
        done = "" if self.reason else bar
        return f"<div><div>{done} {html.escape(self.alt)}</div>{self._curve()}</div>"

    def _curve(self) -> str:
        if len(self.losses) < 2:
            return ""
        from .drawing import Picture

        return Picture(
            _svg(self.losses, self.scores, self.total, self.coin), self.alt
        )._repr_html_()


def _recent(pairs: list[tuple[int, float]], count: int = 10) -> float:
    """The mean of the last few values: single batches jump about."""
    last = [value for _, value in pairs[-count:]]
    return sum(last) / len(last)


WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 620, 220, 52, 52, 26, 34


COIN = math.log(2)  # the loss of one who gives both classes the probability 0.5


def _svg(losses, scores, total, coin=False) -> str:
    """Loss (left axis) and dev score (right axis, 0 to 1) over steps."""
    from .drawing import CARD, INK, LINE, PALETTE, as_ink

    finite = [value for _, value in losses if value == value and abs(value) < 1e30]
    top = max(max(finite, default=1.0) * 1.05, 1e-9)
    if coin:  # then the score of a coin, 0.5, and its loss stand at one height
        top = 2 * COIN
    end = max(total, losses[-1][0], 1)
    loss_color, score_color = PALETTE["mine"], PALETTE["key"]

    def x(step):
        return LEFT + (WIDTH - LEFT - RIGHT) * step / end

    def y(share):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(max(share, 0.0), 1.0)

    def text(at_x, at_y, words, color=INK, anchor="middle"):
        return (
            f'<text x="{at_x:.0f}" y="{at_y:.0f}" font-size="12" fill="{as_ink(color)}" '
            f'font-family="system-ui,sans-serif" text-anchor="{anchor}">{html.escape(words)}</text>'
        )

    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="{CARD}" stroke="{LINE}"/>']
    for share in (0.0, 0.5, 1.0):
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(share):.1f}" y2="{y(share):.1f}" '
            f'stroke="{LINE}"/>'
        )
        parts.append(text(LEFT - 6, y(share) + 4, f"{top * share:.2f}", loss_color, "end"))
        if scores:
            parts.append(
                text(WIDTH - RIGHT + 6, y(share) + 4, f"{share:.1f}", score_color, "start")
            )
    if coin:
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(0.5):.1f}" y2="{y(0.5):.1f}" '
            f'stroke="{INK}" stroke-dasharray="2 4"/>'
        )
        parts.append(text(WIDTH - RIGHT - 6, y(0.5) - 7, f"a coin: loss {COIN:.3f}, score 0.5",
                          anchor="end"))  # fmt: skip
    thin = max(len(losses) // 300, 1)
    groups = [losses[i : i + thin] for i in range(0, len(losses), thin)]
    points = [(group[-1][0], _recent(group, thin)) for group in groups]
    line = " ".join(f"{x(s):.1f},{y(v / top):.1f}" for s, v in points if v == v)
    parts.append(
        f'<polyline points="{line}" fill="none" stroke="{loss_color}" stroke-width="1.6"/>'
    )
    if scores:
        line = " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in scores if v == v)
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="{score_color}" stroke-width="1.6" '
            'stroke-dasharray="5 3"/>'
        )
        parts.extend(
            f'<circle cx="{x(s):.1f}" cy="{y(v):.1f}" r="3" fill="{score_color}"/>'
            for s, v in scores
            if v == v
        )
        parts.append(text(WIDTH - RIGHT, 16, "dev score (dashed)", score_color, "end"))
    parts.append(text(LEFT, 16, "training loss", loss_color, "start"))
    parts.append(text(LEFT, HEIGHT - 12, "0"))
    parts.append(text(WIDTH - RIGHT, HEIGHT - 12, str(end)))
    parts.append(text(WIDTH / 2, HEIGHT - 12, "step"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(parts)}</svg>'
    )


def live(title: str = "training", coin: bool = False) -> Live:
    """A watcher that draws the loss while `fit` runs; `coin` marks where a coin stands."""
    return Live(title, coin)
