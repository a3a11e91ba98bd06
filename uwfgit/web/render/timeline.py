"""When each step ran, as SVG bars on one line a role (pure)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from uwfgit.model.picture.columns import cut, one_line
from uwfgit.model.thread.compare import step_duration
from uwfgit.model.thread.step import Step
from uwfgit.model.wording import format_duration
from uwfgit.web.render.markup import Html, join, tag

_WIDTH: Final = 720
_NAMES: Final = 116
_ROW: Final = 22
_BAR: Final = 12
_LEAST: Final = 3.0
_PAUSE_SHARE: Final = 0.02
"""A wait between two steps is drawn as this share of the line at most."""
_NAME: Final = 15


def svg_timeline(steps: Sequence[Step], href: Callable[[int], str | None]) -> Html:
    """Draw the steps of a thread as they followed each other.

    A bar is as long as its step took; a wait between steps, which may be a night,
    is a short gap.

    Args:
        steps: The chain, oldest first.
        href: Where a click on a step's bar leads.
    """
    roles = list(dict.fromkeys(step.role for step in steps))
    room = _WIDTH - _NAMES
    spans = _spans(steps, room)
    height = _ROW * len(roles) + 4
    return tag(
        "svg",
        [_row(name, index) for index, name in enumerate(roles)],
        [
            _bar(step, x, width, roles.index(step.role), href(step.number))
            for step, (x, width) in zip(steps, spans, strict=True)
        ],
        class_="timeline",
        viewBox=f"0 0 {_WIDTH} {height}",
        role="group",
        aria_label="when each step ran",
    )


def _spans(steps: Sequence[Step], room: float) -> list[tuple[float, float]]:
    """Lay the steps out: where each begins, and how long it is."""
    lengths = [float(max(1, step_duration(step))) for step in steps]
    whole = sum(lengths)
    waits = [0.0] + [
        float(max(0, after.started_at_ms - before.completed_at_ms))
        for before, after in pairwise(steps)
    ]
    most = whole * _PAUSE_SHARE
    waits = [min(wait, most) for wait in waits]
    total = whole + sum(waits) or 1.0
    least = min(_LEAST, room / max(1, len(steps)))
    free = room - least * len(steps)
    spans, x = [], float(_NAMES)
    for wait, length in zip(waits, lengths, strict=True):
        x += wait / total * free
        width = least + length / total * free
        spans.append((x, width))
        x += width
    return spans


def _row(name: str, index: int) -> Html:
    y = _ROW * index
    return join(
        tag("text", cut(one_line(name), _NAME), x="0", y=y + 15),
        tag("line", x1=_NAMES, x2=_WIDTH, y1=y + 11, y2=y + 11),
    )


def _bar(step: Step, x: float, width: float, row: int, href: str | None) -> Html:
    shape = tag(
        "rect",
        tag("title", _about(step)),
        x=f"{x:.1f}",
        y=f"{_ROW * row + (_ROW - _BAR) / 2:.1f}",
        width=f"{max(1.0, width - 1):.1f}",
        height=_BAR,
        rx=2,
        class_="wait" if step.status == "$SUSPEND" else None,
    )
    if not href:
        return shape
    return tag("a", shape, href=href, aria_label=_about(step))


def _about(step: Step) -> str:
    status = f" → {step.status}" if step.status else ""
    took = format_duration(step_duration(step))
    return f"step {step.number}, {step.role}{status}, {took}"
