"""A chart drawn with characters, for a terminal (pure).

Boxes stand below each other. What leads to the next one goes straight down;
other edges go out to a lane at the right, one for each box they lead to, and
end on its line. Where the lanes do not fit, an edge names its target instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.constants import SUSPEND
from uwfgit.model.picture.chart import NO_ROLE, Arrow, Box, Chart
from uwfgit.model.picture.columns import cut, display_width, fill, one_line

WIDTH: Final = 80
"""What a picture fits where nobody says how wide it may be."""

_LABEL: Final = 38
_GAPS: Final = (4, 3, 2)
"""Columns from lane to lane, the widest that fits."""
_STUB: Final = " ──▶ "
_MOST_LANES: Final = 500
"""The longest of more are not drawn, whatever the width: drawing takes its time."""


class _Row(Struct, kw_only=True):
    """A line of the picture; ``lane`` is the box its lane leads to.

    ``other`` is what stands there instead when that lane does not fit.
    """

    text: str
    lane: str | None = None
    is_target: bool = False
    other: str = ""


class _Lane(Struct, kw_only=True):
    """What leads to a box: from rows, in their order, and to its own among them."""

    target: str
    rows: list[int] = field(default_factory=list)
    column: int = 0

    @property
    def top(self) -> int:
        return self.rows[0]

    @property
    def bottom(self) -> int:
        return self.rows[-1]

    def passes(self, row: int) -> bool:
        return self.top < row < self.bottom


def text_picture(chart: Chart, *, width: int = WIDTH) -> str:
    """Draw a chart in at most so many columns."""
    reached = [box for box in chart.boxes if box.reachable]
    lost = [box for box in chart.boxes if not box.reachable and box.kind != "end"]
    parts = [_draw(_rows(chart, reached), width)]
    if lost:
        parts += ["", "not reachable from $START:", ""]
        parts += [_draw(_rows(chart, lost), width)]
    if not any(box.kind == "end" and box.reachable for box in chart.boxes):
        parts += ["", "$END is not reachable."]
    return "\n".join(parts).rstrip() + "\n"


def _rows(chart: Chart, boxes: Sequence[Box]) -> list[_Row]:
    """Write the lines of some boxes, one above the other."""
    leaving: dict[str, list[Arrow]] = {}
    for arrow in chart.arrows:
        leaving.setdefault(arrow.source, []).append(arrow)
    drawn = _choose(boxes, leaving)
    kinds = {box.name: box.kind for box in chart.boxes}
    lanes = {box.name for box in drawn if box.kind in {"role", "unknown"}}
    rows: list[_Row] = []
    for index, box in enumerate(drawn):
        following = drawn[index + 1].name if index + 1 < len(drawn) else None
        rows.append(_Row(text=box.text, lane=box.name, is_target=True))
        arrows = leaving.get(box.name, ())
        straight = [arrow for arrow in arrows if arrow.target == following]
        aside = [arrow for arrow in arrows if arrow.target != following]
        rows += _aside_rows(aside, kinds, lanes, ends=not straight)
        if straight:
            rows += [_Row(text=f" │ {label}") for label in _join_labels(straight)]
            rows.append(_Row(text=" ▼"))
        if following is not None and not straight:
            rows.append(_plain(""))
    return rows


def _choose(boxes: Sequence[Box], leaving: Mapping[str, Sequence[Arrow]]) -> list[Box]:
    """Leave out what has no arrows of its own, unless it ends the column."""
    drawn: list[Box] = []
    for box in boxes:
        above = leaving.get(drawn[-1].name, ()) if drawn else ()
        ends = box.kind == "end" and any(arrow.target == box.name for arrow in above)
        if box.kind in {"start", "role"} or ends or box.name in leaving:
            drawn.append(box)
    return drawn


def _aside_rows(
    arrows: Sequence[Arrow],
    kinds: Mapping[str, str],
    lanes: AbstractSet[str],
    *,
    ends: bool,
) -> list[_Row]:
    groups: dict[str, list[Arrow]] = {}
    for arrow in arrows:
        groups.setdefault(arrow.target, []).append(arrow)
    rows = [
        row for group in groups.values() for row in _group_rows(group, kinds, lanes)
    ]
    for index, row in enumerate(rows):
        branch = " └─ " if ends and index == len(rows) - 1 else " ├─ "
        rows[index] = replace(row, text=branch + row.text, other=branch + row.other)
    return rows


def _group_rows(
    arrows: Sequence[Arrow], kinds: Mapping[str, str], lanes: AbstractSet[str]
) -> Iterator[_Row]:
    target = arrows[0].target
    for label in _join_labels(arrows):
        if target == arrows[0].source:
            yield _plain(f"{label} ──↺ {one_line(target)}")
            continue
        after = " ↑" if arrows[0].loop else ""
        if kinds[target] == "unknown":
            after = f" {NO_ROLE}"
        named = f"{label}{_STUB}{one_line(target)}{after}"
        has_lane = target in lanes
        yield _Row(text=label, lane=target, other=named) if has_lane else _plain(named)


def _plain(text: str) -> _Row:
    return _Row(text=text, other=text)


def _join_labels(arrows: Iterable[Arrow]) -> list[str]:
    """Write the labels of edges with one target, on one line while it is short."""
    lines: list[str] = []
    for arrow in arrows:
        label = arrow.text(_LABEL)
        if arrow.extra and arrow.target != SUSPEND:
            label += " (not in the graph)"
        joined = f"{lines[-1]}, {label}" if lines else label
        if lines and display_width(joined) <= _LABEL:
            lines[-1] = joined
        else:
            lines.append(label)
    return lines


def _draw(rows: list[_Row], width: int) -> str:
    leading: dict[str, _Lane] = {}
    for index, row in enumerate(rows):
        if row.lane is not None:
            leading.setdefault(row.lane, _Lane(target=row.lane)).rows.append(index)
    # The longest crosses most others, and goes first where they do not fit.
    lanes = sorted(
        (lane for lane in reversed(leading.values()) if len(lane.rows) > 1),
        key=lambda lane: lane.bottom - lane.top,
    )
    while len(lanes) > _MOST_LANES:
        _name_targets(lanes.pop(), rows)
    depths = _Depths(rows, lanes)
    while True:
        for gap in _GAPS:
            base = depths.base() + 3
            # No assignment takes fewer columns than there are lanes side by side.
            if base + gap * depths.most() > width:
                continue
            if not lanes or base + gap * _assign_columns(lanes) <= width:
                owners = {row: lane for lane in lanes for row in lane.rows}
                return "\n".join(
                    cut(_line(rows, lanes, owners, index, base, gap), width).rstrip()
                    for index in range(len(rows))
                )
        longest = lanes.pop()
        _name_targets(longest, rows)
        depths.drop(longest)


def _name_targets(lane: _Lane, rows: Sequence[_Row]) -> None:
    """Let the edges of a lane that is not drawn name their target."""
    for index in lane.rows:
        row = rows[index]
        if not row.is_target:
            row.text, row.lane = row.other, None


class _Depths:
    """How many lanes stand side by side at each line, and how wide the lines are."""

    def __init__(self, rows: Sequence[_Row], lanes: Iterable[_Lane]) -> None:
        self._rows = rows
        self._widths = [display_width(row.text) for row in rows]
        self._depths = [0] * len(rows)
        for lane in lanes:
            self._add(lane, 1)

    def drop(self, lane: _Lane) -> None:
        """Forget a lane, whose lines may read otherwise now."""
        self._add(lane, -1)
        for index in lane.rows:
            self._widths[index] = display_width(self._rows[index].text)

    def most(self) -> int:
        """Return how many lanes there are at the line that has most."""
        return max(self._depths, default=0)

    def base(self) -> int:
        """Return the width of the lines that lanes start from or pass."""
        lined = zip(self._widths, self._depths, strict=True)
        return max((width for width, depth in lined if depth), default=0)

    def _add(self, lane: _Lane, by: int) -> None:
        for index in range(lane.top, lane.bottom + 1):
            self._depths[index] += by


def _assign_columns(lanes: Sequence[_Lane]) -> int:
    """Put short lanes near, each where no other is; give how many columns it takes."""
    columns: list[int] = []
    for lane in sorted(lanes, key=lambda each: (each.bottom - each.top, each.top)):
        # Which lines are taken, a bit a line.
        own = ((1 << (lane.bottom - lane.top + 1)) - 1) << lane.top
        free = (n for n, taken in enumerate(columns) if not taken & own)
        lane.column = next(free, len(columns))
        if lane.column == len(columns):
            columns.append(0)
        columns[lane.column] |= own
    return len(columns)


def _line(
    rows: Sequence[_Row],
    lanes: Sequence[_Lane],
    owners: Mapping[int, _Lane],
    index: int,
    base: int,
    gap: int,
) -> str:
    row = rows[index]
    own = owners.get(index)
    passing = {lane.column for lane in lanes if lane.passes(index)}
    text = row.text
    if own is not None:
        text += " ◀─" if row.is_target else " ─"
    count = max([*passing, own.column if own else -1], default=-1) + 1
    for column in range(count):
        char = "─" if own is not None and column <= own.column else " "
        text = fill(text, base + gap * column, char)
        if own is not None and column == own.column:
            corner = "┘" if index == own.bottom else "┤"
            text += "┐" if index == own.top else corner
        else:
            text += "│" if column in passing else char
    return text
