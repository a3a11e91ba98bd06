"""A chart as a Mermaid flowchart, as forges and editors draw it (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from uwfgit.model.picture.chart import Arrow, Box, Chart
from uwfgit.model.picture.columns import one_line

_LABEL: Final = 80
_PLAIN: Final = frozenset(" $_-,:/()=?!")
_CLASSES: Final = {
    "terminal": "stroke-width:2px",
    "unknown": "stroke:#c00,stroke-width:2px,stroke-dasharray:4 3",
    "lost": "stroke-dasharray:4 3",
    "here": "stroke-width:4px",
}


def mermaid_picture(chart: Chart) -> str:
    """Write a chart in Mermaid's language.

    A role that a workflow does has a double frame. Loops are dotted; what nothing
    leads to stands in a box of its own. Of a thread, the edges it took are thick
    and counted.
    """
    ids = {box.name: f"n{index}" for index, box in enumerate(chart.boxes)}
    lines = ["---", f"title: {json.dumps(one_line(chart.name))}", "---"]
    lines.append("flowchart TD")
    shown = [box for box in chart.boxes if box.reachable]
    lost = [box for box in chart.boxes if not box.reachable]
    lines += [f"    {_box(box, ids)}" for box in shown]
    if lost:
        lines.append('    subgraph lost["not reachable from $START"]')
        lines += [f"        {_box(box, ids)}" for box in lost]
        lines.append("    end")
    lines += [f"    {_arrow(arrow, ids)}" for arrow in chart.arrows]
    lines += [f"    {line}" for line in _styles(chart, ids)]
    return "\n".join(lines) + "\n"


def _box(box: Box, ids: Mapping[str, str]) -> str:
    left, right = ("[", "]") if box.kind in {"role", "unknown"} else ("([", "])")
    if box.workflow is not None:
        left, right = "[[", "]]"
    return f"{ids[box.name]}{left}{_quote(box.text)}{right}"


def _arrow(arrow: Arrow, ids: Mapping[str, str]) -> str:
    line = "-.->" if arrow.loop or arrow.extra else "-->"
    return (
        f"{ids[arrow.source]} {line}|{_quote(arrow.text(_LABEL))}| {ids[arrow.target]}"
    )


def _quote(text: str) -> str:
    """Write a label; what means anything to Mermaid becomes a character code."""
    safe = "".join(
        char
        if char in _PLAIN or char.isalnum() or not char.isascii()
        else f"#{ord(char)};"
        for char in one_line(text)
    )
    return f'"{safe}"'


def _styles(chart: Chart, ids: Mapping[str, str]) -> Iterator[str]:
    for name, style in _CLASSES.items():
        members = [ids[box.name] for box in chart.boxes if name in _classes(box)]
        if members:
            yield f"classDef {name} {style}"
            yield f"class {','.join(members)} {name}"
    taken = [str(i) for i, arrow in enumerate(chart.arrows) if arrow.count]
    if taken:
        yield f"linkStyle {','.join(taken)} stroke-width:3px"


def _classes(box: Box) -> Iterator[str]:
    if box.kind in {"start", "end", "suspend"}:
        yield "terminal"
    if box.kind == "unknown":
        yield "unknown"
    if not box.reachable:
        yield "lost"
    if box.mark:
        yield "here"
