"""The workflows that a workflow's roles are done by, resolved once (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from uwfgit.ids import Hash
from uwfgit.model.node import Node
from uwfgit.model.workflow.workflow import Workflow, workflow_nodes

Resolve = Callable[[str], Workflow]
"""Finds a workflow by the name a role gives; raises when there is none."""


def child_names(workflow: Workflow) -> Iterator[str]:
    """Yield the workflows that roles of this one name, but for itself."""
    for role in workflow.roles.values():
        if role.workflow is not None and role.workflow != workflow.name:
            yield role.workflow


def resolve_children(workflow: Workflow, resolve: Resolve) -> dict[str, Workflow]:
    """Find every workflow that roles reach, by name; the one given only by others.

    Raises:
        UwfError: What ``resolve`` raises.
    """
    found: dict[str, Workflow] = {}
    waiting = list(child_names(workflow))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = workflow if name == workflow.name else resolve(name)
            waiting += child_names(found[name])
    return dict(sorted(found.items()))


def pin_children(
    children: Mapping[str, Workflow],
) -> tuple[dict[str, Hash], tuple[Node, ...]]:
    """Return what a StartNode says of child workflows, and their nodes."""
    pinned: dict[str, Hash] = {}
    nodes: dict[Hash, Node] = {}
    for name, workflow in children.items():
        made = workflow_nodes(workflow)
        pinned[name] = made[-1].hash
        nodes |= {node.hash: node for node in made}
    return pinned, tuple(nodes.values())
