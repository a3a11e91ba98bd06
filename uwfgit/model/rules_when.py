"""Rule S13: conditions, for whoever can read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from uwfgit.model.rules_report import Findings, is_free
from uwfgit.store.canonical import Json

FindSyntaxError: TypeAlias = Callable[[str], str | None]
"""Says what is wrong with an expression."""


def check_conditions(found: Findings, find_syntax_error: FindSyntaxError) -> None:
    """Report rule S13.

    Whether an expression can be read depends on what is installed, so this is
    for checks that a person asks for, never for reading a workflow.
    """
    document = found.doc.value
    graph = document.get("graph") if isinstance(document, dict) else None
    for name, node in (graph if isinstance(graph, dict) else {}).items():
        edges = node if isinstance(node, list) and not is_free(name) else ()
        for index, edge in enumerate(edges):
            expression = _expression(edge)
            wrong = find_syntax_error(expression) if expression is not None else None
            if wrong is not None:
                message = f"the condition is no JSONata: {wrong}"
                hint = "see https://docs.jsonata.org"
                found.add("S13", ("graph", name, index, "when"), message, hint=hint)


def _expression(edge: Json) -> str | None:
    when = edge.get("when") if isinstance(edge, dict) else None
    return when if isinstance(when, str) else None
