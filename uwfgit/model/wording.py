"""How counts, times and durations read, in a terminal and on a page."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from uwfgit.constants import STATUS

_SECOND_MS: Final = 1000
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 3_600_000
_LOOKED_AT: Final = 10_000
_LINE_CHARS: Final = 200


def count_of(number: int, noun: str) -> str:
    """Write how many of something there are: ``1 step``, ``2 steps``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_time(at_ms: int | None) -> str | None:
    """Write a time as people read it, in the local zone, to the minute."""
    if at_ms is None:
        return None
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at_ms // 1000))
    except (OverflowError, ValueError, OSError):
        return None


def format_duration(duration_ms: int | None) -> str | None:
    """Write a duration: ``850 ms``, ``4.2 s``, ``3 m 05 s``, ``2 h 10 m``."""
    if duration_ms is None:
        return None
    if duration_ms < _SECOND_MS:
        return f"{duration_ms} ms"
    if duration_ms < _MINUTE_MS:
        return f"{duration_ms / _SECOND_MS:.1f} s"
    if duration_ms < _HOUR_MS:
        minutes, rest = divmod(duration_ms // _SECOND_MS, 60)
        return f"{minutes} m {rest:02d} s"
    hours, rest = divmod(duration_ms // _MINUTE_MS, 60)
    return f"{hours} h {rest:02d} m"


def first_line(text: str) -> str | None:
    """Return the first line that says something, without its markdown heading."""
    lines = (
        line.strip().lstrip("#").strip() for line in text[:_LOOKED_AT].splitlines()
    )
    return next((_shortened(line) for line in lines if line), None)


def headline(body: str, fields: Mapping[str, object]) -> str | None:
    """Return one line of an answer: its body's first, else its first field of text."""
    texts = (v for k, v in fields.items() if k != STATUS and isinstance(v, str))
    return first_line(body) or first_line(next(texts, ""))


def last_line(text: str) -> str | None:
    """Return the last line that says something."""
    lines = (line.strip() for line in reversed(text[-_LOOKED_AT:].splitlines()))
    return next((_shortened(line) for line in lines if line), None)


def _shortened(line: str) -> str:
    return line if len(line) <= _LINE_CHARS else f"{line[: _LINE_CHARS - 1]}…"
