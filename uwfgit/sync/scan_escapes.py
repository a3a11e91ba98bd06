"""Text without its escapes and colours, and where each part of it stood (pure)."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final

_COLOUR = r"\[[0-9;:?]{0,40}[A-Za-z]"
# The first letter as a class: searched for many times faster than alternatives. Of
# a run of backslashes only the first begins one, or a long run would take for ever.
_ESCAPED = re.compile(
    r"[%\\\x1b](?:(?<=%)(?P<percent>[2-7][0-9A-Fa-f])"
    rf"|(?<=\x1b){_COLOUR}"
    r"|(?<=\\)(?<!\\\\)\\{0,7}+(?:(?:u00|x)(?P<hex>[2-7][0-9A-Fa-f])"
    rf"|(?:u001[bB]|x1[bB]|033|e){_COLOUR}))"
)
"""What may stand for a letter of a token, or for a colour within a line."""
_BEFORE_CHARS: Final = 48
_ENDS = re.compile(
    r"(?:\\(?:[A-Za-z]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[0-7]{1,3})"
    r"|%[0-9A-Fa-f]{2}|\[[0-9;:?]*[A-Za-z])\Z"
)


def ends_in_escape(text: str, end: int) -> bool:
    r"""Tell whether an escape or a colour ends there, so that a word begins.

    ``\n``, ``\u000a``, ``%0A`` and ``\x1b[31m`` end in a letter or a digit.
    """
    return _ENDS.search(text, max(0, end - _BEFORE_CHARS), end) is not None


@dataclass(slots=True)
class Plain:
    """A text without escapes, which knows where in the other each part stood."""

    text: str = ""
    _ends: array[int] = field(default_factory=lambda: array("q"))
    _raw_ends: array[int] = field(default_factory=lambda: array("q"))
    _wide: bytearray = field(default_factory=bytearray)

    def add(self, end: int, raw_end: int, *, is_letter: bool) -> None:
        """Note an escape: where it ends here and there."""
        self._ends.append(end)
        self._raw_ends.append(raw_end)
        self._wide.append(is_letter)

    def find_raw(self, start: int, end: int) -> tuple[int, int]:
        """Give where in the text with escapes a part of it begins and ends."""
        last = end - 1
        after = bisect_right(self._ends, last)
        is_escaped = (
            after < len(self._ends) and self._ends[after] == end and self._wide[after]
        )
        raw_end = self._raw_ends[after] if is_escaped else self._find(last) + 1
        return self._find(start), raw_end

    def _find(self, place: int) -> int:
        before = bisect_right(self._ends, place) - 1
        if before < 0:
            return place
        return self._raw_ends[before] + place - self._ends[before]


def unescape(text: str) -> Plain | None:
    """Give a text without one layer of escapes; ``None`` if it has none."""
    if _ESCAPED.search(text) is None:
        return None
    plain, pieces, done, size = Plain(), [], 0, 0
    for match in _ESCAPED.finditer(text):
        code = match["percent"] or match["hex"]
        letter = chr(int(code, 16)) if code else ""
        size += match.start() - done + len(letter)
        pieces += [text[done : match.start()], letter]
        done = match.end()
        plain.add(size, done, is_letter=bool(letter))
    plain.text = "".join([*pieces, text[done:]])
    return plain
