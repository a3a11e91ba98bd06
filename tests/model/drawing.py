"""Graphs in short, and the charts and pictures of them."""

from __future__ import annotations

from typing import Any

from uwfgit.model.picture.chart import Chart, chart_of_document

ODD = {
    'say "hi" <b>&amp; [x]{y}|z|': "b",
    "1. first": "b",
    "- minus": "a",
    "`code` *bold* _it_": "b",
    "höhe → ✓": "b",
    "back\\slash\\": "b",
    "#35; #quot; %% c": "$END",
}
"""Statuses that mean something to one language or the other."""


def document(graph: dict[str, Any], *roles: str, name: str = "odd") -> dict[str, Any]:
    """Write a graph of ``{node: {status: target}}`` as a workflow document."""
    names = roles or tuple(key for key in graph if not key.startswith("$"))
    return {
        "name": name,
        "roles": {key: {} for key in names},
        "graph": {
            node: {status: {"role": target} for status, target in edges.items()}
            for node, edges in graph.items()
        },
    }


def chart(graph: dict[str, Any], *roles: str, name: str = "odd") -> Chart:
    found = chart_of_document(document(graph, *roles, name=name))
    assert found is not None
    return found
