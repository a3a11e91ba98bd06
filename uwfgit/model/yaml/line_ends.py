"""How the lines of a text end, and keeping that where it is edited (pure)."""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher
from typing import Final

_END: Final = re.compile(r"(\r\n|\r|\n)")


def with_ends_of(old: str, new: str) -> str:
    """End the lines of an edited text as they ended before, whatever they end in.

    A line that was put in ends as the one before it.
    """
    old_lines, old_ends = _split(old)
    new_lines, new_ends = _split(new)
    usual = Counter(old_ends).most_common(1)[0][0] if old_ends else "\n"
    ends = [usual] * len(new_ends)
    if len({*old_ends}) > 1:
        ends = _match(old_lines, old_ends, new_lines, usual)[: len(new_ends)]
    for at in range(1, len(ends)):
        # A return, and the line feed of an empty line behind it, would be one end.
        if ends[at - 1 : at + 1] == ["\r", "\n"] and not new_lines[at]:
            ends[at] = "\r"
    pairs = zip(new_lines, [*ends, ""], strict=True)
    return "".join(line + end for line, end in pairs)


def _split(text: str) -> tuple[list[str], list[str]]:
    """Part lines and ends; the last line is behind the last end, and may be empty."""
    parts = _END.split(text)
    return parts[::2], parts[1::2]


def _match(
    lines: list[str], ends: list[str], new_lines: list[str], usual: str
) -> list[str]:
    found: list[str] = []
    matcher = SequenceMatcher(None, lines, new_lines)
    for _, start, end, first, last in matcher.get_opcodes():
        known = ends[start:end]
        for at in range(last - first):
            before = found[-1] if found else usual
            found.append(known[at] if at < len(known) else before)
    return found
