"""Values that know where they were written; the only place for source positions.

Some were written in a file that another one includes.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Final, Protocol, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.store.canonical import Json

ValuePath: TypeAlias = tuple[str | int, ...]

_BREAK = re.compile(r"\r\n|\r|\n")
_BLANK: Final = frozenset(" \t\r\n")
_ESCAPE = re.compile(r"\\(?:x(..)|u(.{4})|U(.{8})|(\r\n|.))", re.DOTALL)
_BLANK_ESCAPES: Final = frozenset("nrt \t\r\n") | {"\r\n"}


class SourcePlace(Struct, frozen=True, kw_only=True):
    """A position in a file; line and column count from 1, in characters."""

    file: str | None
    line: int
    column: int


class SourceText(Struct, kw_only=True):
    """The text positions are counted in."""

    file: str | None
    text: str
    _lines: list[int] = field(default_factory=list)

    def place_at(self, index: int) -> SourcePlace:
        """Return the line and column of a character."""
        if not self._lines:
            self._lines = [0, *(m.end() for m in _BREAK.finditer(self.text))]
        line = bisect_right(self._lines, index)
        column = index - self._lines[line - 1] + 1
        return SourcePlace(file=self.file, line=line, column=column)


def find_solid(text: str) -> list[int]:
    """Find the characters of a text that are not blank."""
    return [at for at, char in enumerate(text) if char not in _BLANK]


class Mark(Struct, kw_only=True):
    """A value, where it stands, and the marks of what it holds.

    ``size``, ``weight`` and ``depth`` count nodes, characters and levels with
    every alias expanded. An alias shares the mark of what it names. Only a
    collection has dicts of keys and children, for the sake of speed.
    """

    value: Json
    source: SourceText
    line: int
    column: int
    start: int
    end: int
    style: str = ""
    size: int = 1
    weight: int = 0
    depth: int = 0
    keys: dict[str, Mark] | None = None
    children: dict[str | int, Mark] | None = None
    _solid: list[int] | None = None
    _indices: tuple[int, ...] = ()

    @property
    def place(self) -> SourcePlace:
        """Where the value starts."""
        return SourcePlace(file=self.source.file, line=self.line, column=self.column)

    def child(self, part: str | int) -> Mark | None:
        """Find the mark of a value in the collection."""
        return self.children.get(part) if self.children else None

    def key(self, part: str | int) -> Mark | None:
        """Find the mark of a key of the mapping."""
        return self.keys.get(part) if self.keys and isinstance(part, str) else None

    def place_of(self, offset: int) -> SourcePlace:
        """Find where a character of a text value was written.

        Exact for a character that is not blank, in every style; a blank one
        gives the place of the next that is not.
        """
        index = self.index_of(offset)
        return self.place if index is None else self.source.place_at(index)

    def index_of(self, offset: int) -> int | None:
        """Find the index in the source of a character, as :meth:`place_of` does."""
        if self.style == "include":
            return offset
        if not isinstance(self.value, str) or self.start < 0:
            return None
        if self._solid is None:
            self._solid = find_solid(self.value)
            self._indices = tuple(self._written())
        wanted = bisect_left(self._solid, offset)
        return self._indices[wanted] if wanted < len(self._indices) else None

    def with_text(self, text: str, origin: Callable[[int], int]) -> Mark:
        """Return the mark of another text that was made of this one.

        Args:
            text: The other text.
            origin: Gives the offset here of what a character was made of.
        """
        solid = find_solid(text)
        indices = [self.index_of(origin(offset)) for offset in solid]
        known = all(index is not None for index in indices)
        return replace(
            self,
            value=text,
            style="changed" if self.style == "include" else self.style,
            _solid=solid,
            _indices=tuple(i for i in indices if i is not None) if known else (),
        )

    def _written(self) -> Iterator[int]:
        """Return where each character that is not blank was written, in order."""
        text = self.source.text
        start = self._content_start(text)
        if self.style == '"':
            return _written_double(text, start, self.end)
        step = "''" if self.style == "'" else None
        return _written_plain(text, start, self.end, pair=step)

    def _content_start(self, text: str) -> int:
        start = self.start
        # A tag or an anchor may stand before the text itself.
        while start < self.end and text[start] in "!&":
            while start < self.end and text[start] not in _BLANK:
                start += 1
            while start < self.end and text[start] in _BLANK:
                start += 1
        if self.style in ("|", ">"):
            header = _BREAK.search(text, start)
            return header.end() if header else self.end
        return start + 1 if self.style in ("'", '"') else start


def _written_plain(
    text: str, start: int, end: int, *, pair: str | None
) -> Iterator[int]:
    index = start
    while index < end:
        if text[index] not in _BLANK:
            yield index
            if pair and text.startswith(pair, index):
                index += 1
        index += 1


def _written_double(text: str, start: int, end: int) -> Iterator[int]:
    index = start
    while index < end:
        escape = _ESCAPE.match(text, index) if text[index] == "\\" else None
        if escape is None:
            if text[index] not in _BLANK:
                yield index
            index += 1
            continue
        code = escape[1] or escape[2] or escape[3]
        is_blank = chr(int(code, 16)) in _BLANK if code else escape[4] in _BLANK_ESCAPES
        if not is_blank:
            yield index
        index = escape.end()


class Located(Struct, frozen=True, kw_only=True):
    """A value read from a file, with the place of every key and value in it.

    ``includes`` tells whether another file was read into it; ``broken`` holds
    places whose value could not be read and stands as ``None``.
    """

    mark: Mark
    includes: bool = False
    broken: frozenset[SourcePlace] = frozenset()

    @property
    def value(self) -> Json:
        """The value; parts that an alias named are shared, so never change it."""
        return self.mark.value

    def place(self, path: ValuePath, *, key: bool = False) -> SourcePlace:
        """Return the place of the value at a path, or of its key.

        A path that leads nowhere gives its nearest known ancestor: the key
        that holds it, where there is one.
        """
        mark, holder = self.mark, None
        for depth, part in enumerate(path):
            child = mark.child(part)
            if child is None:
                return (holder or mark).place
            last = depth == len(path) - 1
            holder = mark.key(part)
            if last and key and holder is not None:
                return holder.place
            mark = child
        return mark.place

    def place_of(self, path: ValuePath, offset: int) -> SourcePlace:
        """Return the place of a character of the text at a path."""
        mark = self.find(path)
        return self.place(path) if mark is None else mark.place_of(offset)

    def find(self, path: ValuePath) -> Mark | None:
        """Find the mark of the value at a path."""
        mark: Mark | None = self.mark
        for part in path:
            mark = mark.child(part) if mark is not None else None
        return mark


class IncludeReader(Protocol):
    """Reads what an ``!include`` tag names."""

    def __call__(self, target: str) -> Included:
        """Read the file; its problems carry no place yet.

        Raises:
            InvalidError: It is not there, or may not be read.
        """


class Included(Struct, frozen=True, kw_only=True):
    """A file that an ``!include`` tag named.

    ``key`` is the same for the same file; ``nested`` reads the tags inside it,
    and is ``None`` for a file that is plain text.
    """

    key: str
    file: str
    content: bytes
    nested: IncludeReader | None
