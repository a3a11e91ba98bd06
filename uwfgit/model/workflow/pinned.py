"""Workflows read back, from bytes or a document that was found good (pure).

A pinned workflow is read without its rules, so this imports none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from uwfgit.constants import WORKFLOW_VERSION
from uwfgit.errors import WorkflowError
from uwfgit.model.findings import is_free
from uwfgit.model.workflow.workflow import Choice, Edges, Role, Target, Workflow
from uwfgit.model.yaml.core import read_yaml
from uwfgit.model.yaml.located import Located
from uwfgit.store.canonical import Json

T = TypeVar("T")


def workflow_from_data(data: bytes) -> Workflow:
    """Read what :func:`read_workflow` gave as the bytes to keep (pure).

    The rules are not applied: they grow, and what was pinned under older ones
    stays readable for ever. Who compares the result with a checked node knows
    that it is well formed.

    Raises:
        WorkflowError: They are no YAML, or lack what every workflow has.
    """
    located, problems = read_yaml(data)
    errors = [each for each in problems if each.severity == "error"]
    if errors or located is None:
        raise WorkflowError(errors)
    try:
        return workflow_from_document(located)
    except (KeyError, TypeError, AttributeError) as exc:
        raise WorkflowError("lacks what every workflow has") from exc


def in_file_order(named: Mapping[str, T], data: bytes) -> dict[str, T]:
    """Return what is named by a workflow's inputs in the order of its file (pure).

    A node does not keep it: its maps are sorted. What the file does not declare
    comes last.
    """
    located, _ = read_yaml(data)
    value = None if located is None else located.value
    declared = value.get("inputs") if isinstance(value, dict) else None
    names = declared if isinstance(declared, dict) else {}
    first = {name: named[name] for name in names if name in named}
    return {**first, **named}


def workflow_from_document(doc: Located) -> Workflow:
    """Read a document of the current form that has no error."""
    value = doc.value
    return Workflow(
        version=value.get("version", WORKFLOW_VERSION),
        name=value["name"],
        description=value["description"],
        roles={
            name: _role(role)
            for name, role in value["roles"].items()
            if not is_free(name)
        },
        graph={
            name: _edges(node)
            for name, node in value["graph"].items()
            if not is_free(name)
        },
        inputs=value.get("inputs"),
        extra={name: item for name, item in value.items() if is_free(name)},
    )


def _role(value: Mapping[str, Json]) -> Role:
    if "workflow" in value:
        return Role(
            description=value["description"],
            goal="",
            capabilities=(),
            procedure="",
            output="",
            schema=value["frontmatter"],
            workflow=value["workflow"],
            inputs=value.get("inputs"),
        )
    return Role(
        description=value["description"],
        goal=value["goal"],
        capabilities=tuple(value["capabilities"]),
        procedure=value["procedure"],
        output=value["output"],
        schema=value["frontmatter"],
    )


def _edges(node: Json) -> Edges:
    if isinstance(node, list):
        return tuple(
            Choice(**_target(target), when=target.get("when")) for target in node
        )
    return {
        status: Target(**_target(target))
        for status, target in node.items()
        if not is_free(status)
    }


def _target(value: Mapping[str, Json]) -> dict[str, Json]:
    names = ("role", "prompt", "location")
    return {name: value.get(name) for name in names}
