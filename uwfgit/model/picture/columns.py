"""Text in the columns of a terminal: how wide it is, cut and filled (pure)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

ELLIPSIS: Final = "…"
_UNPRINTABLE: Final = "\ufffd"


def display_width(text: str) -> int:
    """Count the columns a line takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(char)
        else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def one_line(text: str) -> str:
    """Return text as one line without anything that moves a cursor."""
    return "".join(c if c.isprintable() else _UNPRINTABLE for c in text)


def cut(text: str, width: int) -> str:
    """Shorten a line to a width; an ellipsis stands for what is left out."""
    if display_width(text) <= width:
        return text
    kept: list[str] = []
    room = width - 1
    for char in text:
        room -= display_width(char)
        if room < 0:
            break
        kept.append(char)
    return "".join(kept) + ELLIPSIS if width > 0 else ""


def fill(text: str, width: int, char: str = " ") -> str:
    """Lengthen a line to a width."""
    return text + char * (width - display_width(text))


def wrap(text: str, width: int | None) -> str:
    """Break lines at blanks so that none is wider; a word that is stays whole.

    ``None`` leaves every line as it is.
    """
    if width is None or all(display_width(line) <= width for line in text.splitlines()):
        return text
    return "\n".join(
        part for line in text.splitlines() for part in _wrap_line(line, width)
    )


def _wrap_line(line: str, width: int) -> Iterator[str]:
    lead = line[: len(line) - len(line.lstrip())]
    current = ""
    for word in line.split():
        longer = f"{current} {word}" if current else lead + word
        if current and display_width(longer) > width:
            yield current
            longer = lead + word
        current = longer
    yield current


def hang(line: str, width: int | None) -> str:
    """Break a line so that none is wider; what follows the first is indented."""
    if width is None or display_width(line) <= width:
        return line
    first, *rest = _wrap_line(line, width)
    if not rest:
        return first
    more = "\n".join(f"  {part}" for part in _wrap_line(" ".join(rest), width - 2))
    return f"{first}\n{more}"
