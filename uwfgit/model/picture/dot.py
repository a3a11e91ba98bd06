"""A chart in DOT, the language of Graphviz (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uwfgit.model.picture.chart import Arrow, Box, Chart
from uwfgit.model.picture.columns import one_line

_LABEL: Final = 80


def dot_picture(chart: Chart) -> str:
    """Write a chart in DOT.

    A role that a workflow does has a double frame. Loops are dashed; what nothing
    leads to stands in a box of its own. Of a thread, the edges it took are thick
    and counted.
    """
    lost = [box for box in chart.boxes if not box.reachable]
    lines = [
        f"digraph {_quote(chart.name)} {{",
        "    rankdir=TB",
        '    graph [fontname="sans-serif"]',
        '    node [shape=box, style=rounded, fontname="sans-serif"]',
        '    edge [fontname="sans-serif", fontsize=11]',
        *(f"    {_box(box)}" for box in chart.boxes if box.reachable),
    ]
    if lost:
        lines += [
            "    subgraph cluster_lost {",
            '        label="not reachable from $START"',
            "        style=dashed",
            *(f"        {_box(box)}" for box in lost),
            "    }",
        ]
    lines += [f"    {_arrow(arrow)}" for arrow in chart.arrows]
    return "\n".join([*lines, "}"]) + "\n"


def _box(box: Box) -> str:
    attributes = [f"label={_quote_label(box.text)}", *_box_style(box)]
    return f"{_quote(box.name)} [{', '.join(attributes)}]"


def _box_style(box: Box) -> Iterator[str]:
    if box.kind in {"start", "end", "suspend"}:
        yield "shape=oval, style=solid"
    elif box.kind == "unknown":
        yield 'style="rounded,dashed", color=red'
    elif not box.reachable:
        yield 'style="rounded,dashed"'
    if box.workflow is not None:
        yield "peripheries=2"
    if box.mark:
        yield "penwidth=3"


def _arrow(arrow: Arrow) -> str:
    attributes = [f"label={_quote_label(f' {arrow.text(_LABEL)} ')}"]
    if arrow.loop or arrow.extra:
        attributes.append("style=dashed")
    if arrow.count:
        attributes.append("penwidth=2.5")
    ends = f"{_quote(arrow.source)} -> {_quote(arrow.target)}"
    return f"{ends} [{', '.join(attributes)}]"


def _quote(text: str) -> str:
    r"""Write an id. ``\`` stays as it is in one, but must not be its last character."""
    plain = one_line(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'


def _quote_label(text: str) -> str:
    r"""Write a label: ``\N`` and ``&amp;`` in one would be replaced."""
    return _quote(text.replace("&", "&amp;"))
