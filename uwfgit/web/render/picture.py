"""A chart as SVG: the same boxes, arrows and counts as the picture in text (pure).

Boxes stand in a column in reading order. What leads to the next box goes straight
down; what leads further goes by a lane on the right, what leads back by one on the
left, one lane for each box that is led to. Colours and widths are the style
sheet's; no style stands in the drawing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct, field

from uwfgit.model.picture.chart import TIMES, Arrow, Box, Chart
from uwfgit.model.picture.columns import cut, display_width, one_line
from uwfgit.web.render.markup import EMPTY, Html, join, tag

_CHAR: Final = 7.3
"""Width of a character of a box's name; of a label's a little less."""
_SMALL: Final = 6.3
_LINE: Final = 15
_HEIGHT: Final = 34
_PORT: Final = 19
_GAP: Final = 30
_LANE: Final = 16
_MARGIN: Final = 10
_ROUND: Final = 7
_NAME: Final = 28
_LABEL: Final = 24
_WIDE: Final = 560
"""A drawing that is wider is scrolled, for small it would not be read."""

Side = Literal["left", "right"]


class _Wire(Struct, frozen=True, kw_only=True):
    """All arrows from one box to another."""

    source: str
    target: str
    labels: tuple[str, ...]
    taken: bool
    extra: bool
    loop: bool


class _Place(Struct, kw_only=True):
    """A box on the drawing, and the wires at its two sides from top to bottom."""

    box: Box
    y: float = 0
    height: float = _HEIGHT
    ports: dict[Side, list[tuple[str, str]]] = field(
        default_factory=lambda: {"left": [], "right": []}
    )

    @property
    def middle(self) -> float:
        return self.y + self.height / 2

    def port(self, side: Side, key: tuple[str, str]) -> float:
        ports = self.ports[side]
        return self.middle + (ports.index(key) - (len(ports) - 1) / 2) * _PORT


class _Lane(Struct, kw_only=True):
    target: str
    side: Side
    top: float
    bottom: float
    column: int = 0


def svg_picture(
    chart: Chart, *, links: Mapping[str, str] | None = None, label: str = ""
) -> Html:
    """Draw a chart.

    Args:
        chart: What is drawn; with a thread's counts its way is the dark one.
        links: Where a click on a box leads.
        label: What the drawing is, for those who do not see it.
    """
    drawn = [box for box in chart.boxes if box.reachable or box.kind != "end"]
    return _Drawing(chart, drawn, links or {}).svg(label or f"graph of {chart.name}")


class _Drawing:
    def __init__(
        self, chart: Chart, boxes: Sequence[Box], links: Mapping[str, str]
    ) -> None:
        self.links = links
        self.places = {box.name: _Place(box=box) for box in boxes}
        self.order = list(self.places)
        self.is_thread = any(box.visits or box.mark for box in boxes)
        self.wires = [
            wire
            for wire in _join_arrows(chart.arrows)
            if wire.source in self.places and wire.target in self.places
        ]
        self.straight = [w for w in self.wires if self._is_straight(w)]
        self.aside = [w for w in self.wires if not self._is_straight(w)]
        self._attach()
        self._stack()
        self.box_width = max((_box_width(box) for box in boxes), default=80.0)
        self.lanes = self._make_lanes()
        self.left = self._room("left")
        self.right = self._room("right")

    def _is_straight(self, wire: _Wire) -> bool:
        index = self.order.index(wire.source)
        following = self.order[index + 1] if index + 1 < len(self.order) else None
        return wire.target == following

    def _side(self, wire: _Wire) -> Side:
        return "left" if wire.loop else "right"

    def _attach(self) -> None:
        """Give each box its ports: what comes from above on top, then what leaves."""
        for wire in self.aside:
            self._add_port(wire.target, self._side(wire), (wire.target, "in"))
        for wire in self.aside:
            self._add_port(wire.source, self._side(wire), (wire.target, "out"))
        for place in self.places.values():
            for ports in place.ports.values():
                ports.sort(key=lambda key: (key[1] == "out", self.order.index(key[0])))

    def _add_port(self, name: str, side: Side, key: tuple[str, str]) -> None:
        ports = self.places[name].ports[side]
        if key not in ports:
            ports.append(key)

    def _stack(self) -> None:
        y = float(_MARGIN)
        for name in self.order:
            place = self.places[name]
            most = max(len(ports) for ports in place.ports.values())
            place.height = max(_HEIGHT, 14 + _PORT * most)
            place.y = y
            labels = [w.labels for w in self.straight if w.source == name]
            lines = sum(len(each) for each in labels)
            y += place.height + _GAP + _LINE * max(0, lines - 1) + (6 if lines else 0)
        last = self.places[self.order[-1]] if self.order else None
        self.height = (last.y + last.height if last else 0) + _MARGIN

    def _make_lanes(self) -> dict[tuple[str, Side], _Lane]:
        lanes: dict[tuple[str, Side], _Lane] = {}
        for wire in self.aside:
            side = self._side(wire)
            ends = (
                self.places[wire.source].port(side, (wire.target, "out")),
                self.places[wire.target].port(side, (wire.target, "in")),
            )
            lane = lanes.setdefault(
                (wire.target, side),
                _Lane(target=wire.target, side=side, top=min(ends), bottom=max(ends)),
            )
            lane.top, lane.bottom = min(lane.top, *ends), max(lane.bottom, *ends)
        for side in ("left", "right"):
            _assign_columns([lane for lane in lanes.values() if lane.side == side])
        return lanes

    def _room(self, side: Side) -> float:
        """Return the width beside the boxes that labels and lanes take."""
        labels = [
            _label_width(wire.labels) for wire in self.aside if self._side(wire) == side
        ]
        columns = [lane.column for lane in self.lanes.values() if lane.side == side]
        if not columns:
            # Beside the line straight down stands its label.
            widths = [_label_width(wire.labels) for wire in self.straight]
            over = max(widths, default=0) + 12 - self.box_width / 2
            return max(_MARGIN, over) if side == "right" else _MARGIN
        return max(labels, default=0) + 22 + _LANE * (max(columns) + 1)

    def _lane_x(self, lane: _Lane) -> float:
        room = self.left if lane.side == "left" else self.right
        columns = max(
            each.column for each in self.lanes.values() if each.side == lane.side
        )
        reach = room - _LANE * (columns - lane.column + 1) + 4
        edge = self.left if lane.side == "left" else self.left + self.box_width
        return edge - reach if lane.side == "left" else edge + reach

    def svg(self, label: str) -> Html:
        width = self.left + self.box_width + self.right
        ordered = sorted(self.wires, key=lambda wire: wire.taken)
        classes = ["graph"]
        classes += ["taken"] if self.is_thread else []
        classes += ["wide"] if width > _WIDE else []
        return tag(
            "svg",
            [self._wire(wire) for wire in ordered],
            [self._box(self.places[name]) for name in self.order],
            class_=" ".join(classes),
            viewBox=f"0 0 {width:.0f} {self.height:.0f}",
            width=f"{width:.0f}",
            height=f"{self.height:.0f}",
            role="group",
            aria_label=label,
        )

    def _wire(self, wire: _Wire) -> Html:
        kind = " ".join(
            word
            for word, is_so in (
                ("wire", True),
                ("went", wire.taken),
                ("extra", wire.extra),
                ("loop", wire.loop),
            )
            if is_so
        )
        parts = self._down(wire) if self._is_straight(wire) else self._around(wire)
        return tag("g", *parts, class_=kind)

    def _down(self, wire: _Wire) -> Iterator[Html]:
        source, target = self.places[wire.source], self.places[wire.target]
        x = self.left + self.box_width / 2
        top, bottom = source.y + source.height, target.y
        yield _path(f"M{x:.1f} {top:.1f}V{bottom - 5:.1f}")
        yield _head(x, bottom, "down")
        middle = (top + bottom) / 2 - 1
        first = middle - (len(wire.labels) - 1) * _LINE / 2
        for index, each in enumerate(wire.labels):
            yield _text(x + 9, first + index * _LINE + 3, each, "start")

    def _around(self, wire: _Wire) -> Iterator[Html]:
        side = self._side(wire)
        sign = -1 if side == "left" else 1
        edge = self.left if side == "left" else self.left + self.box_width
        x = self._lane_x(self.lanes[wire.target, side])
        start = self.places[wire.source].port(side, (wire.target, "out"))
        end = self.places[wire.target].port(side, (wire.target, "in"))
        turn = min(_ROUND, abs(end - start) / 2)
        way = 1 if end > start else -1
        yield _path(
            f"M{edge:.1f} {start:.1f}H{x - sign * turn:.1f}"
            f"Q{x:.1f} {start:.1f} {x:.1f} {start + way * turn:.1f}"
            f"V{end - way * turn:.1f}"
            f"Q{x:.1f} {end:.1f} {x - sign * turn:.1f} {end:.1f}"
            f"H{edge + sign * 5:.1f}"
        )
        yield _head(edge, end, "right" if side == "left" else "left")
        words = ", ".join(wire.labels)
        anchor = "end" if side == "left" else "start"
        yield _text(edge + sign * 8, start - 5, words, anchor)

    def _box(self, place: _Place) -> Html:
        box = place.box
        round_ = place.height / 2 if box.kind in {"start", "end", "suspend"} else 7
        shape = self._frame(place, round_)
        words = tag(
            "text",
            cut(one_line(box.name), _NAME),
            tag("tspan", f" {box.visits}{TIMES}", class_="times")
            if box.visits
            else None,
            x=f"{self.left + self.box_width / 2:.1f}",
            y=f"{place.middle + 4.5:.1f}",
            text_anchor="middle",
        )
        about = box.text + ("" if box.reachable else ", not reachable from $START")
        inner = self._frame(place, round_, by=3) if box.workflow is not None else None
        body = join(tag("title", about), shape, inner, words)
        href = self.links.get(box.name)
        body = tag("a", body, href=href) if href else body
        return tag("g", body, class_=_box_class(box))

    def _frame(self, place: _Place, round_: float, *, by: float = 0) -> Html:
        """Draw the frame of a box, or a second one inside it."""
        return tag(
            "rect",
            x=f"{self.left + by:.1f}",
            y=f"{place.y + by:.1f}",
            width=f"{self.box_width - 2 * by:.1f}",
            height=f"{place.height - 2 * by:.1f}",
            rx=f"{max(0, round_ - by):.1f}",
        )


def _box_class(box: Box) -> str:
    words = ["box", box.kind]
    words += ["seen"] if box.visits or box.mark else []
    words += ["lost"] if not box.reachable else []
    words += [f"here {box.mark}"] if box.mark else []
    return " ".join(words)


def _box_width(box: Box) -> float:
    name = cut(one_line(box.name), _NAME)
    times = len(f" {box.visits}{TIMES}") if box.visits else 0
    return max(96.0, (display_width(name) + times) * _CHAR + 30)


def _label_width(labels: Iterable[str]) -> float:
    return display_width(", ".join(labels)) * _SMALL


def _join_arrows(arrows: Iterable[Arrow]) -> list[_Wire]:
    groups: dict[tuple[str, str], list[Arrow]] = {}
    for arrow in arrows:
        groups.setdefault((arrow.source, arrow.target), []).append(arrow)
    return [
        _Wire(
            source=source,
            target=target,
            labels=tuple(arrow.text(_LABEL) for arrow in group),
            taken=any(arrow.count for arrow in group),
            extra=all(arrow.extra for arrow in group),
            loop=group[0].loop,
        )
        for (source, target), group in groups.items()
    ]


def _assign_columns(lanes: Sequence[_Lane]) -> None:
    """Put short lanes near, each where no other is."""
    columns: list[list[_Lane]] = []
    for lane in sorted(lanes, key=lambda each: (each.bottom - each.top, each.top)):
        for number, others in enumerate(columns):
            if all(lane.top > o.bottom + 2 or lane.bottom < o.top - 2 for o in others):
                others.append(lane)
                lane.column = number
                break
        else:
            lane.column = len(columns)
            columns.append([lane])


def _path(way: str) -> Html:
    return tag("path", d=way)


_HEADS: Final = {
    "down": (-4, -7, 4, -7),
    "left": (7, -4, 7, 4),
    "right": (-7, -4, -7, 4),
}


def _head(x: float, y: float, way: str) -> Html:
    a, b, c, d = _HEADS[way]
    points = f"{x:.1f},{y:.1f} {x + a:.1f},{y + b:.1f} {x + c:.1f},{y + d:.1f}"
    return tag("polygon", points=points)


def _text(x: float, y: float, words: str, anchor: str) -> Html:
    if not words:
        return EMPTY
    return tag("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)
