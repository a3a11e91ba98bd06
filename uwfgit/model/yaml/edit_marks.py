"""Marks of values that were changed after reading (pure).

The only place that makes marks no parser gave. A changed value keeps the place
and the span of what it was made of; one that no text holds has the place of
what it is there for, and no span.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from uwfgit.model.yaml.located import Mark, ValuePath
from uwfgit.store.canonical import Json

MADE: Final = "made"
"""Style of a value that stands in no text; its span is empty."""
NOWHERE: Final = -1

_TOKEN = re.compile(r"\{\{\{?[^{}]*\}?\}\}|\{%[^{}]*?%\}")
_MAX_COMPARED: Final = 500
"""Tokens of a changed part that are compared one by one."""


class MarkedEntry(NamedTuple):
    """A key of a mapping, its mark, and the mark of its value."""

    name: str
    key: Mark
    value: Mark


MarkedChange: TypeAlias = Callable[[Mark], Mark]


def is_map(mark: Mark | None) -> bool:
    """Whether a mark is a mapping's."""
    return mark is not None and isinstance(mark.value, dict)


def is_list(mark: Mark | None) -> bool:
    """Whether a mark is a list's."""
    return mark is not None and isinstance(mark.value, list)


def text_of(mark: Mark | None) -> str | None:
    """Return the text at a mark, if it is one."""
    return mark.value if mark is not None and isinstance(mark.value, str) else None


def entries(mark: Mark | None) -> list[MarkedEntry]:
    """List the keys and values of a mapping; of anything else there are none."""
    if mark is None or not isinstance(mark.value, dict):
        return []
    found = []
    for name in mark.value:
        key, value = mark.key(name), mark.child(name)
        if key is not None and value is not None:
            found.append(MarkedEntry(name, key, value))
    return found


def items(mark: Mark | None) -> list[Mark]:
    """List the items of a list; of anything else there are none."""
    if mark is None or not isinstance(mark.value, list):
        return []
    found = (mark.child(index) for index in range(len(mark.value)))
    return [item for item in found if item is not None]


def with_entries(mark: Mark, changed: Iterable[MarkedEntry]) -> Mark:
    """Give a mapping's mark with other entries; of two with one key the last counts."""
    unique = {entry.name: entry for entry in changed}
    return replace(
        mark,
        value={name: entry.value.value for name, entry in unique.items()},
        keys={name: entry.key for name, entry in unique.items()},
        children={name: entry.value for name, entry in unique.items()},
    )


def with_items(mark: Mark, changed: Iterable[Mark]) -> Mark:
    """Return a list's mark with other items."""
    kept = list(changed)
    return replace(
        mark, value=[item.value for item in kept], children=dict(enumerate(kept))
    )


def make_mark(value: Json, at: Mark) -> Mark:
    """Make the mark of a value that stands in no text."""
    made = Mark(
        value=value,
        source=at.source,
        line=at.line,
        column=at.column,
        start=NOWHERE,
        end=NOWHERE,
        style=MADE,
    )
    if isinstance(value, dict):
        pairs = ((name, make_mark(item, at)) for name, item in value.items())
        return with_entries(
            made, (MarkedEntry(n, make_mark(n, at), m) for n, m in pairs)
        )
    if isinstance(value, list):
        return with_items(made, (make_mark(item, at) for item in value))
    return made


def update(mark: Mark, path: ValuePath, change: MarkedChange) -> Mark:
    """Change the value at a path; a path that leads nowhere changes nothing."""
    if not path:
        return change(mark)
    first, rest = path[0], path[1:]
    old = mark.child(first)
    if old is None:
        return mark
    new = update(old, rest, change)
    if new is old:
        return mark
    if isinstance(first, str):
        return put(mark, first, new)
    return with_items(
        mark, (new if at == first else item for at, item in enumerate(items(mark)))
    )


def map_entries(mark: Mark, change: Callable[[MarkedEntry], Mark]) -> Mark:
    """Change the values of a mapping, all in one pass; none changed is no change."""
    old = entries(mark)
    new = [entry._replace(value=change(entry)) for entry in old]
    if all(one.value is other.value for one, other in zip(new, old, strict=True)):
        return mark
    return with_entries(mark, new)


def map_items(mark: Mark, change: Callable[[int, Mark], Mark]) -> Mark:
    """Change the items of a list; none changed is no change."""
    old = items(mark)
    new = [change(at, item) for at, item in enumerate(old)]
    if all(one is other for one, other in zip(new, old, strict=True)):
        return mark
    return with_items(mark, new)


def put(mark: Mark, name: str, value: Mark) -> Mark:
    """Set a key of a mapping, in its place, or as the last one."""
    found = [
        entry._replace(value=value) if entry.name == name else entry
        for entry in entries(mark)
    ]
    if name not in mark.value:
        found.append(MarkedEntry(name, make_mark(name, value), value))
    return with_entries(mark, found)


def put_after(mark: Mark, name: str, value: Mark, *, after: str) -> Mark:
    """Set a new key of a mapping, behind another one."""
    made = MarkedEntry(name, make_mark(name, value), value)
    found = [
        each
        for entry in entries(mark)
        for each in ((entry, made) if entry.name == after else (entry,))
    ]
    return with_entries(mark, found if after in mark.value else (*found, made))


def put_first(mark: Mark, name: str, value: Mark) -> Mark:
    """Set a new key of a mapping, before all others."""
    first = MarkedEntry(name, make_mark(name, value), value)
    return with_entries(mark, (first, *entries(mark)))


def drop(mark: Mark, *names: str) -> Mark:
    """Take keys out of a mapping."""
    return with_entries(mark, (e for e in entries(mark) if e.name not in names))


def rename(mark: Mark, old: str, new: str) -> Mark:
    """Return a key of a mapping another name, in its place."""
    return with_entries(
        mark,
        (e._replace(name=new) if e.name == old else e for e in entries(mark)),
    )


def with_text(mark: Mark, text: str) -> Mark:
    """Return a text's mark with other text, whose parts keep their places."""
    old = mark.value
    if text == old:
        return mark
    pieces = compare_texts(old, text)
    starts = [piece.new for piece in pieces]

    def origin(offset: int) -> int:
        piece = pieces[bisect_right(starts, offset) - 1]
        moved = offset - piece.new if piece.is_same else 0
        return min(piece.old + moved, max(len(old) - 1, 0))

    return mark.with_text(text, origin)


class Piece(NamedTuple):
    """A part of a text and what became of it: where each of the two is."""

    is_same: bool
    old: int
    old_end: int
    new: int
    new_end: int


def compare_texts(old: str, new: str) -> list[Piece]:
    """Tell what became of a template, in whole tags; in order, without gaps."""
    before, after = _tokens(old), _tokens(new)
    starts = [
        [0, *accumulate(len(token) for token in tokens)] for tokens in (before, after)
    ]
    # Comparing takes time by the product of both.
    changes: Sequence[tuple[str, int, int, int, int]]
    changes = [("replace", 0, len(before), 0, len(after))]
    if max(len(before), len(after)) <= _MAX_COMPARED:
        changes = SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes()
    return [
        Piece(
            is_same=tag == "equal",
            old=starts[0][i1],
            old_end=starts[0][i2],
            new=starts[1][j1],
            new_end=starts[1][j2],
        )
        for tag, i1, i2, j1, j2 in changes
    ]


def _tokens(text: str) -> list[str]:
    found, position = [], 0
    for match in _TOKEN.finditer(text):
        found += [text[position : match.start()], match[0]]
        position = match.end()
    return [token for token in (*found, text[position:]) if token]
