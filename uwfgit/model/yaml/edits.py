"""Edits of a text by index, and values as the text to put there (pure)."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple

import yaml
from msgspec import Struct, field

from uwfgit.model.yaml.dump import dump_yaml
from uwfgit.model.yaml.events import iter_events
from uwfgit.model.yaml.located import SourceText
from uwfgit.store.canonical import Json

BLOCK_STYLES: Final = ("|", ">")


class Syntax(Struct):
    """A node of the text: ``end`` is behind its own last character.

    A mapping has ``pairs``, a list ``items``. ``anchor`` is an alias's own name
    too.
    """

    kind: Literal["map", "list", "scalar", "alias"]
    start: int
    end: int
    is_flow: bool = False
    style: str = ""
    anchor: str | None = None
    tag: str | None = None
    pairs: list[tuple[Syntax, Syntax]] = field(default_factory=list)
    items: list[Syntax] = field(default_factory=list)
    _key: Syntax | None = None

    def add(self, node: Syntax) -> None:
        """Take in the next node of a collection."""
        if self.kind == "list":
            self.items.append(node)
        elif self._key is None:
            self._key = node
        else:
            self.pairs.append((self._key, node))
            self._key = None
        if not self.is_flow:
            # The parser sees the end of a block at the next token only.
            self.end = max(self.start, node.end)


def read_syntax(source: SourceText) -> Syntax | None:
    """Read the nodes of a text that was parsed before; ``None`` for none."""
    stack: list[Syntax] = []
    for event in iter_events(source):
        if isinstance(event, yaml.NodeEvent):
            node = _node(event, source.text)
            if isinstance(event, yaml.CollectionStartEvent):
                stack.append(node)
            elif stack:
                stack[-1].add(node)
        elif isinstance(event, yaml.CollectionEndEvent):
            node = stack.pop()
            if node.is_flow:
                end: Any = event.end_mark  # never None
                node.end = end.index
            if not stack:
                return node
            stack[-1].add(node)
    return None


def _node(event: Any, text: str) -> Syntax:  # noqa: ANN401 - its marks are never None
    start, end = event.start_mark.index, event.end_mark.index
    if isinstance(event, yaml.AliasEvent):
        return Syntax("alias", start, end, anchor=event.anchor)
    facts = {"anchor": event.anchor, "tag": event.tag}
    if isinstance(event, yaml.ScalarEvent):
        style = event.style or ""
        # Blank lines behind a block belong to whatever follows.
        end = start + len(text[start:end].rstrip()) if style in BLOCK_STYLES else end
        return Syntax("scalar", start, end, style=style, **facts)
    kind: Literal["map", "list"] = (
        "map" if isinstance(event, yaml.MappingStartEvent) else "list"
    )
    return Syntax(kind, start, end, is_flow=bool(event.flow_style), **facts)


def iter_leaves(node: Syntax) -> Iterator[Syntax]:
    """Yield the scalars and aliases of a node, in the order of the text."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each.kind in ("scalar", "alias"):
            yield each
        inner = [part for pair in each.pairs for part in pair] + each.items
        waiting.extend(reversed(inner))


def find_comments(
    text: str, leaves: Sequence[Syntax], start: int, end: int
) -> list[str]:
    """Find the comments in a part of a text, each with its ``#``.

    Args:
        text: The text.
        leaves: All scalars and aliases of it, in order.
        start: Where the part starts.
        end: Where it ends.
    """
    found: list[str] = []
    position = start
    for at in range(
        bisect_right(leaves, start, key=lambda leaf: leaf.end), len(leaves)
    ):
        leaf = leaves[at]
        if leaf.start >= end:
            break
        found += _comments(text, position, leaf.start)
        if leaf.style in BLOCK_STYLES:
            header = text.find("\n", leaf.start)
            found += _comments(text, leaf.start, header if header >= 0 else leaf.end)
        position = leaf.end
    return found + _comments(text, position, end)


def _comments(text: str, start: int, end: int) -> list[str]:
    found = []
    at = text.find("#", start, end)
    while at >= 0:
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        if at == 0 or text[at - 1] in " \t\n\r":
            found.append(text[at:stop].rstrip())
            at = text.find("#", stop, end)
        else:
            at = text.find("#", at + 1, end)
    return found


_SMALL: Final = 60
"""Characters of a collection that is still written on one line."""


class EditError(Exception):
    """The text cannot be edited in this way."""


class _Edit(NamedTuple):
    start: int
    end: int
    number: int
    text: str


class Edits(Struct):
    """Replacements in one text, made all at once in the end."""

    text: str
    root: Syntax
    _edits: list[_Edit] = field(default_factory=list)
    _leaves: tuple[Syntax, ...] = ()

    def __post_init__(self) -> None:
        self._leaves = tuple(iter_leaves(self.root))

    def replace(self, start: int, end: int, text: str) -> None:
        """Put a text in place of what stands there."""
        number = len(self._edits)
        self._edits.append(_Edit(start, end, number, text))

    def cut(self, start: int, end: int, text: str = "") -> None:
        """Replace a part; the comments in it go to lines of their own above."""
        line = self.line_start(start)
        for comment in find_comments(self.text, self._leaves, start, end):
            self.replace(line, line, f"{self.indent(line)}{comment}\n")
        self.replace(start, end, text)

    def cut_lines(self, start: int, end: int) -> None:
        """Take out whole lines, from that of one character to that of another.

        The break before them goes, not the one behind, so that text put behind
        the last of them stays. Comments stay too, as lines of their own.
        """
        first = self.line_start(start)
        if first == 0:
            self.cut(0, self.next_line(end))
            return
        comments = find_comments(self.text, self._leaves, first, self.line_end(end))
        lead = "\n" + self.indent(first)
        text = "".join(lead + comment for comment in comments)
        self.replace(self.line_end(first - 1), self.line_end(end), text)

    def apply(self) -> str:
        """Return the edited text.

        Raises:
            EditError: Two edits are of the same part.
        """
        ordered = sorted(self._edits)
        if any(one.end > other.start for one, other in pairwise(ordered)):
            raise EditError
        pieces, position = [], 0
        for edit in ordered:
            pieces += [self.text[position : edit.start], edit.text]
            position = edit.end
        return "".join((*pieces, self.text[position:]))

    def line_start(self, index: int) -> int:
        """Find where the line of a character starts."""
        return self.text.rfind("\n", 0, index) + 1

    def line_end(self, index: int) -> int:
        """Find where the line of a character ends, before its break."""
        end = self.text.find("\n", index)
        end = len(self.text) if end < 0 else end
        return end - 1 if end and self.text[end - 1] == "\r" else end

    def next_line(self, index: int) -> int:
        """Find where the line behind that of a character starts."""
        end = self.text.find("\n", index)
        return len(self.text) if end < 0 else end + 1

    def column(self, index: int) -> int:
        """Count the characters before one on its line."""
        return index - self.line_start(index)

    def indent(self, index: int) -> str:
        """Return the blanks at the start of the line of a character."""
        line = self.text[self.line_start(index) : self.line_end(index)]
        return line[: len(line) - len(line.lstrip(" "))]

    def is_first(self, index: int) -> bool:
        """Whether a character is the first of its line that is not blank."""
        return not self.text[self.line_start(index) : index].strip()


def block_lines(value: Json, *, is_item: bool, column: int) -> list[str]:
    """Write a value as lines to stand behind ``key:`` or ``-`` at a column."""
    if _is_small(value):
        return [flow_text(value)]
    dumped = dump_yaml([value] if is_item else {"k": value})
    first, *rest = dumped.removesuffix("\n").split("\n")
    lead = "-" if is_item else "k:"
    return [
        first.removeprefix(lead).lstrip(" ") if first != lead else "",
        *(f"{' ' * column}{line}" if line else "" for line in rest),
    ]


def pair_lines(name: str, value: Json, *, column: int) -> list[str]:
    """Write a key and its value as lines; the first is not indented."""
    first, *rest = block_lines(value, is_item=False, column=column)
    return [f"{flow_text(name)}: {first}".rstrip(" "), *rest]


def _is_small(value: Json) -> bool:
    """Whether a collection is easier to read on one line."""
    if not isinstance(value, (Mapping, list, tuple)) or not value:
        return False
    inner = list(value.values()) if isinstance(value, Mapping) else list(value)
    if any(isinstance(item, (Mapping, list, tuple)) and item for item in inner):
        return False
    return len(flow_text(value)) <= _SMALL


def flow_text(value: Json) -> str:
    """Write a value on one line."""
    if isinstance(value, Mapping) and value:
        pairs = (f"{flow_text(key)}: {flow_text(item)}" for key, item in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, (list, tuple)) and value:
        return f"[{', '.join(map(flow_text, value))}]"
    if isinstance(value, str) and "\n" in value:
        return json.dumps(value, ensure_ascii=False)
    return dump_yaml(value).removesuffix("\n")


def literal_indent(text: str, node: Syntax) -> int | None:
    """Return the indentation of a literal block's lines; ``None`` for no such block."""
    if node.style not in BLOCK_STYLES:
        return None
    lines = text[node.start : node.end].split("\n")[1:]
    widths = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip()]
    return min(widths, default=None)


def reindent(lines: list[str], *, width: int, wanted: int) -> list[str]:
    """Move the lines behind the first from one indentation to another."""
    moved = (" " * wanted + line[width:] if line else "" for line in lines[1:])
    return [lines[0], *moved]
