"""Which known name, or which id, was most likely meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

T = TypeVar("T", bound=str)

_MOST_CHARS: Final = 80
_LEAST_START: Final = 3
"""How much of a name must be typed before its start alone names it."""
LEAST_END: Final = 4
"""The same of an id before its end does."""


def find_similar(word: str, names: Iterable[str]) -> str | None:
    """Return the name that is nearest to a word, if it is near enough.

    Near is one slip of the keys in a short word, and one more for each further
    four characters. A slip is a character too many, too few, wrong, or two that
    changed places. The start of a name is near as well.
    """
    wanted = word.casefold()
    if not wanted or len(wanted) > _MOST_CHARS:
        return None
    best, found = (_slips_allowed(wanted) + 1, 0), None
    for name in names:
        distance = _distance(wanted, name.casefold(), best[0])
        is_start = len(wanted) >= _LEAST_START and name.casefold().startswith(wanted)
        rank = (min(distance, 1) if is_start else distance, len(name))
        if rank[0] <= _slips_allowed(wanted) and (found is None or rank < best):
            best, found = rank, name
    return found


def suggest(word: str, names: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the end of a message, or nothing."""
    found = find_similar(word, names)
    return "" if found is None else f"; did you mean '{found}'?"


def match_ids(text: str, ids: Iterable[T]) -> list[T]:
    """Return the ids that begin as a text does in either case, or else end so."""
    wanted, known = text.upper(), list(ids)
    found = [each for each in known if each.startswith(wanted)]
    if not found and len(wanted) >= LEAST_END:
        found = [each for each in known if each.endswith(wanted)]
    return found if wanted else []


def _slips_allowed(word: str) -> int:
    return 1 + max(len(word) - 2, 0) // 4


def _distance(one: str, other: str, most: int) -> int:
    """Count the slips between two words, up to one more than ``most``."""
    if abs(len(one) - len(other)) > most or len(other) > _MOST_CHARS:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, char in enumerate(one, 1):
        last, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            same = char == wanted
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (not same))
            if i > 1 and j > 1 and char == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
