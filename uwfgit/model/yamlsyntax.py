"""Where the parts of a YAML text stand, aliases and comments included (pure).

Marks know what was read; this knows what was written, for whoever edits it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import yaml

from uwfgit.model.located import Source
from uwfgit.model.yamlevents import hide_old_breaks, iter_events

BLOCK_STYLES: Final = ("|", ">")


@dataclass(slots=True)
class Syntax:
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


def read_syntax(source: Source) -> Syntax | None:
    """Read the nodes of a text that was parsed before; ``None`` for none."""
    text, _ = hide_old_breaks(source.text)
    stack: list[Syntax] = []
    for event in iter_events(text, source):
        if isinstance(event, yaml.NodeEvent):
            node = _node(event, source.text)
            if isinstance(event, yaml.CollectionStartEvent):
                stack.append(node)
            elif stack:
                stack[-1].add(node)
        elif isinstance(event, yaml.CollectionEndEvent):
            node = stack.pop()
            if node.is_flow:
                node.end = _end(event)
            if not stack:
                return node
            stack[-1].add(node)
    return None


def _end(event: Any) -> int:  # noqa: ANN401 - its marks are never None
    index: int = event.end_mark.index
    return index


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
    """Give the scalars and aliases of a node, in the order of the text."""
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
    for at in range(bisect_right(leaves, start, key=_end_of), len(leaves)):
        leaf = leaves[at]
        if leaf.start >= end:
            break
        found += _comments(text, position, leaf.start)
        if leaf.style in BLOCK_STYLES:
            header = text.find("\n", leaf.start)
            found += _comments(text, leaf.start, header if header >= 0 else leaf.end)
        position = leaf.end
    return found + _comments(text, position, end)


def _end_of(leaf: Syntax) -> int:
    return leaf.end


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
