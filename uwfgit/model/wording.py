"""How text, counts, times and durations read, in a terminal and on a page.

Foreign text is made visible here: what would hide or reorder it is written as a
code. The only place that says which characters those are. A terminal and a page get
stored text, agents' words and git's output through these functions.
"""

from __future__ import annotations

import re
import time
from typing import Final

_SECOND_MS: Final = 1000
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 3_600_000
_LOOKED_AT: Final = 10_000
_LINE_CHARS: Final = 200
_MARKS: Final = "-=~`*_#. "
"""A line of these alone only parts or closes something."""


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
    lines = map(without_mark, text[:_LOOKED_AT].splitlines())
    return next((_shortened(line) for line in lines if line), None)


def without_mark(line: str) -> str:
    """Return a line without the mark of a markdown heading; ``#42`` is none."""
    return re.sub(r"^#{1,6}(?:\s+|$)", "", line.strip())


def last_line(text: str) -> str | None:
    """Return the last line that says something, not the end of a block."""
    lines = (line.strip() for line in reversed(text[-_LOOKED_AT:].splitlines()))
    return next((_shortened(line) for line in lines if line.strip(_MARKS)), None)


def _shortened(line: str) -> str:
    return line if len(line) <= _LINE_CHARS else f"{line[: _LINE_CHARS - 1]}…"


# C0 without tab and newline, DEL and C1, line separators, bidirectional
# controls, zero-width characters that join nothing, invisible tags and marks of
# shorthand and music, lone surrogates. The joiners U+200C and U+200D stay:
# scripts and emoji need them, and they reorder and hide nothing.
_UNSAFE: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
UNSAFE: Final = re.compile(f"[{_UNSAFE}]")
"""One character that a terminal must not get as it is; tab and newline may."""
_ONE_LINE: Final = f"[{_UNSAFE}\t\n]"
"""The same where they may not; compiled when it is first needed."""


def shown(text: str) -> str:
    r"""Return text of one line that is safe to print: ``\x1b`` for an escape."""
    # Printable for Python is less than safe here, and costs next to nothing.
    return text if text.isprintable() else re.sub(_ONE_LINE, escape, text)


def shown_lines(text: str) -> str:
    r"""Return text of several lines that is safe to print.

    Newlines and tabs stay; CRLF becomes a newline.
    """
    return UNSAFE.sub(escape, text.replace("\r\n", "\n"))


def escape(match: re.Match[str]) -> str:
    """Write the character that was found as a name of it."""
    code = ord(match[0])
    named = {9: "\\t", 10: "\\n", 13: "\\r"}.get(code)
    if named is not None:
        return named
    if code < 0x100:  # noqa: PLR2004 - two digits are enough below it
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the basic plane's end
