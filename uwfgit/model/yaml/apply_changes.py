"""A YAML text edited to read as changed marks say (pure).

Only what differs is touched: comments and layout elsewhere stay as they are.
Old and new entries of a mapping belong together by the mark of their key, items
of a list by their span.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct, field

from uwfgit.model.yaml.edit_marks import (
    MarkedEntry,
    compare_texts,
    entries,
    is_list,
    is_map,
    items,
)
from uwfgit.model.yaml.edits import (
    BLOCK_STYLES,
    EditError,
    Edits,
    Syntax,
    block_lines,
    flow_text,
    literal_indent,
    pair_lines,
    read_syntax,
    reindent,
)
from uwfgit.model.yaml.line_ends import with_ends_of
from uwfgit.model.yaml.located import Mark, SourceText, ValuePath
from uwfgit.model.yaml.problems import INCLUDE_TAG
from uwfgit.store.canonical import Json

_BLANK: Final = " \t\r\n"


class Left(NamedTuple):
    """A difference that stands in another file."""

    path: ValuePath
    mark: Mark


class Rewritten(Struct, frozen=True, kw_only=True):
    """The edited text, and what could not be reached."""

    text: str
    left: tuple[Left, ...] = ()


def rewrite_text(
    source: SourceText, old: Mark, new: Mark, *, fine: bool = True
) -> Rewritten:
    """Edit a text so that it reads as other marks say.

    Args:
        source: The text.
        old: The marks it was read as.
        new: The marks it shall be read as.
        fine: Edit inside texts, instead of writing a changed one anew.

    Raises:
        EditError: It cannot be done by edits.
    """
    root = read_syntax(source)
    if root is None:
        raise EditError
    edits = Edits(source.text, root)
    writer = _Writer(edits=edits, fine=fine)
    writer.write(old, new, root, _Slot(is_flow=root.is_flow), ())
    text = with_ends_of(source.text, edits.apply())
    return Rewritten(text=text, left=tuple(writer.left))


class _Slot(NamedTuple):
    """Where a value stands: behind a key, behind the dash of a list, or alone."""

    is_flow: bool
    column: int = 0
    key: Syntax | None = None
    dash: int | None = None


class _Writer(Struct, kw_only=True):
    edits: Edits
    fine: bool
    left: list[Left] = field(default_factory=list)
    anchors: dict[str, Json] = field(default_factory=dict)

    def write(
        self, old: Mark, new: Mark, node: Syntax, slot: _Slot, path: ValuePath
    ) -> None:
        if node.kind == "alias":
            if new.value != self.anchors.get(node.anchor or "", old.value):
                self.replace(new.value, node, slot)
            return
        if node.anchor is not None and new is not old:
            self.anchors[node.anchor] = new.value
        if new is old and not self.anchors:
            return
        if node.tag == INCLUDE_TAG:
            self._include(old, new, node, slot, path)
        elif node.kind == "map" and is_map(new):
            self._map(old, new, node, slot, path)
        elif node.kind == "list" and is_list(new):
            self._list(old, new, node, slot, path)
        elif new.value != old.value and not self._retext(old, new, node):
            self.replace(new.value, node, slot)

    def _include(
        self, old: Mark, new: Mark, node: Syntax, slot: _Slot, path: ValuePath
    ) -> None:
        if new is old or new.value == old.value:
            return
        if isinstance(new.value, str):
            self.replace(new.value, node, slot)
        else:
            self.left.append(Left(path, old))

    # --- values ---

    def replace(self, value: Json, node: Syntax, slot: _Slot) -> None:
        """Write a value anew where another stood."""
        if slot.is_flow:
            self.edits.cut(node.start, node.end, flow_text(value))
            return
        start = self._value_start(slot)
        is_item = slot.dash is not None
        lines = block_lines(value, is_item=is_item, column=slot.column)
        wanted = literal_indent(self.edits.text, node)
        if wanted is not None and lines[0].startswith("|"):
            lines = reindent(lines, width=slot.column + 2, wanted=wanted)
        text = "\n".join(lines)
        # A comment behind it would become part of a block.
        end = self.edits.line_end(node.end) if len(lines) > 1 else node.end
        self.edits.cut(start, max(start, end), f" {text}" if lines[0] else text)

    def _value_start(self, slot: _Slot) -> int:
        if slot.dash is not None:
            return slot.dash + 1
        if slot.key is None:
            raise EditError
        colon = self.edits.text.find(":", slot.key.end)
        if colon < 0:
            raise EditError
        return colon + 1

    def _retext(self, old: Mark, new: Mark, node: Syntax) -> bool:
        """Edit inside a text, tag by tag; tell whether that was possible."""
        if not (
            self.fine and isinstance(old.value, str) and isinstance(new.value, str)
        ):
            return False
        if node.kind != "scalar" or node.tag is not None:
            return False
        changes = []
        for piece in compare_texts(old.value, new.value):
            if piece.is_same:
                continue
            was = old.value[piece.old : piece.old_end]
            becomes = _escape(new.value[piece.new : piece.new_end], node.style)
            if not was or was[0] in _BLANK or was[-1] in _BLANK or becomes is None:
                return False
            first, last = old.index_of(piece.old), old.index_of(piece.old_end - 1)
            if first is None or last is None or self.edits.text[last] != was[-1]:
                return False
            changes.append((first, last + 1, becomes))
        for start, end, text in changes:
            self.edits.replace(start, end, text)
        return True

    # --- mappings ---

    def _map(
        self, old: Mark, new: Mark, node: Syntax, slot: _Slot, path: ValuePath
    ) -> None:
        before = entries(old)
        if len(before) != len(node.pairs) or (not node.pairs and new.value):
            self.replace(new.value, node, slot)
            return
        by_key = {id(entry.key): at for at, entry in enumerate(before)}
        kept = {by_key[id(e.key)]: e for e in entries(new) if id(e.key) in by_key}
        if not kept and node.pairs:
            self.replace(new.value, node, slot)
            return
        self._insert_pairs(new, by_key, node)
        spans = [(key.start, max(key.end, value.end)) for key, value in node.pairs]
        for start, end in _runs(len(spans), set(kept)):
            self._drop(spans, start, end, is_flow=node.is_flow)
        for at, entry in kept.items():
            key, value = node.pairs[at]
            if entry.name != before[at].name:
                self.edits.replace(key.start, key.end, flow_text(entry.name))
            column = self.edits.column(key.start)
            inner = _Slot(is_flow=node.is_flow, column=column, key=key)
            self.write(before[at].value, entry.value, value, inner, (*path, entry.name))

    def _insert_pairs(self, new: Mark, by_key: Mapping[int, int], node: Syntax) -> None:
        previous: int | None = None
        first: list[MarkedEntry] = []
        for entry in entries(new):
            if id(entry.key) in by_key:
                previous = by_key[id(entry.key)]
            elif previous is None:
                first.append(entry)
            else:
                self._insert_behind(entry, node, previous)
        if first:
            known = (by_key[id(e.key)] for e in entries(new) if id(e.key) in by_key)
            self._insert_before(first, node, next(known))

    def _insert_behind(self, entry: MarkedEntry, node: Syntax, at: int) -> None:
        key, value = node.pairs[at]
        if node.is_flow:
            text = f", {flow_text({entry.name: entry.value.value})[2:-2]}"
            self.edits.replace(value.end, value.end, text)
            return
        column = self.edits.column(key.start)
        lines = pair_lines(entry.name, entry.value.value, column=column)
        end = self.edits.line_end(max(value.end, key.end))
        lines[0] = " " * column + lines[0]
        text = "".join("\n" + line for line in lines)
        self.edits.replace(end, end, text)

    def _insert_before(self, new: list[MarkedEntry], node: Syntax, at: int) -> None:
        key = node.pairs[at][0]
        for entry in new:
            if node.is_flow:
                text = f"{flow_text({entry.name: entry.value.value})[2:-2]}, "
            else:
                column = self.edits.column(key.start)
                lines = pair_lines(entry.name, entry.value.value, column=column)
                text = "\n".join((*lines, " " * column))
            self.edits.replace(key.start, key.start, text)

    def _drop(
        self, spans: list[tuple[int, int]], start: int, end: int, *, is_flow: bool
    ) -> None:
        """Take out some neighbours of a collection that keeps others."""
        edits = self.edits
        if not is_flow and edits.is_first(spans[start][0]):
            edits.cut_lines(spans[start][0], spans[end - 1][1])
        elif end < len(spans):
            edits.cut(spans[start][0], spans[end][0])
        elif is_flow and start:
            edits.cut(spans[start - 1][1], spans[end - 1][1])
        else:
            raise EditError

    # --- lists ---

    def _list(
        self, old: Mark, new: Mark, node: Syntax, slot: _Slot, path: ValuePath
    ) -> None:
        before, after = items(old), items(new)
        pairs = _match_items(before, after)
        if len(before) != len(node.items) or not pairs:
            self.replace(new.value, node, slot)
            return
        starts = [self._item_start(node, at) for at in range(len(before))]
        self._insert_items(after, pairs, node, starts)
        kept = set(pairs.values())
        ends = [item.end for item in node.items]
        spans = list(zip(starts, ends, strict=True))
        for start, end in _runs(len(spans), kept):
            self._drop(spans, start, end, is_flow=node.is_flow)
        for place, at in pairs.items():
            column = self.edits.column(starts[at])
            dash = None if node.is_flow else starts[at]
            inner = _Slot(is_flow=node.is_flow, column=column, dash=dash)
            own = (*path, at)
            self.write(before[at], after[place], node.items[at], inner, own)

    def _item_start(self, node: Syntax, at: int) -> int:
        """Find the dash of an item; in a flow list the item itself."""
        item = node.items[at]
        if node.is_flow:
            return item.start
        since = node.items[at - 1].end if at else node.start
        line = self.edits.text.rfind("-", since, max(item.start, since + 1))
        if line < 0:
            raise EditError
        return line

    def _insert_items(
        self,
        after: list[Mark],
        pairs: Mapping[int, int],
        node: Syntax,
        starts: list[int],
    ) -> None:
        previous: int | None = None
        for place, mark in enumerate(after):
            if place in pairs:
                previous = pairs[place]
            elif previous is not None:
                self._item_behind(mark, node, previous, starts)
            else:
                self._item_before(mark, node, min(pairs.values()), starts)

    def _item_behind(
        self, mark: Mark, node: Syntax, at: int, starts: list[int]
    ) -> None:
        end = node.items[at].end
        if node.is_flow:
            self.edits.replace(end, end, f", {flow_text(mark.value)}")
            return
        end = self.edits.line_end(end)
        column = self.edits.column(starts[at])
        text = "\n" + " " * column + self._item(mark, column)
        self.edits.replace(end, end, text)

    def _item_before(
        self, mark: Mark, node: Syntax, at: int, starts: list[int]
    ) -> None:
        if node.is_flow:
            text = f"{flow_text(mark.value)}, "
        else:
            column = self.edits.column(starts[at])
            text = self._item(mark, column) + "\n" + " " * column
        self.edits.replace(starts[at], starts[at], text)

    def _item(self, mark: Mark, column: int) -> str:
        lines = block_lines(mark.value, is_item=True, column=column)
        return "- " + "\n".join(lines)


def _escape(text: str, style: str) -> str | None:
    """Write a part of a text as its style asks; ``None`` when it cannot be."""
    if "\n" in text:
        return None
    if style == '"':
        return flow_text(f"{text}\n")[1:-3]
    if style == "'":
        return text.replace("'", "''")
    if style in BLOCK_STYLES:
        return text
    return None if ": " in text or " #" in text or text.endswith(":") else text


def _runs(count: int, kept: set[int]) -> list[tuple[int, int]]:
    """Return the stretches of numbers that are not kept, as halves-open spans."""
    runs: list[tuple[int, int]] = []
    for at in range(count):
        if at in kept:
            continue
        if runs and runs[-1][1] == at:
            runs[-1] = (runs[-1][0], at + 1)
        else:
            runs.append((at, at + 1))
    return runs


def _match_items(before: list[Mark], after: list[Mark]) -> dict[int, int]:
    """Find for each new item the old one it was made of, in order."""
    places: dict[tuple[int, int], list[int]] = {}
    for number in range(len(before) - 1, -1, -1):
        places.setdefault(_span(before[number]), []).append(number)
    pairs: dict[int, int] = {}
    last = -1
    for place, mark in enumerate(after):
        known = places.get(_span(mark)) if mark.start >= 0 else None
        if known and known[-1] > last:
            last = pairs[place] = known.pop()
    return pairs


def _span(mark: Mark) -> tuple[int, int]:
    return id(mark.source), mark.start
