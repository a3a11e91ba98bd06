"""Text in the columns of a terminal: how wide it is, cut and filled (pure)."""

from __future__ import annotations

import unicodedata
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
