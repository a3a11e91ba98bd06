"""A workflow as values, and its node (pure).

Reading a file is ``model/workflow/source.py``, reading one back ``pinned.py`` there;
what makes one valid is ``model/rules/check.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct, field

from uwfgit.constants import YAML_MAX_BYTES
from uwfgit.errors import CorruptError, SizeError
from uwfgit.ids import Hash
from uwfgit.model.node.node import (
    META_TYPE,
    WORKFLOW_TYPE,
    Node,
    make_node,
    make_schema,
)
from uwfgit.store.canonical import Json


class Target(Struct, frozen=True, kw_only=True):
    """Where an edge leads: the next role, its prompt and folder templates."""

    role: str
    prompt: str
    location: str | None = None
    when: str | None = None


class Role(Struct, frozen=True, kw_only=True):
    """What one role is asked to do, and the schema of its structured answer."""

    description: str
    goal: str
    capabilities: tuple[str, ...]
    procedure: str
    output: str
    schema: Mapping[str, Any]
    workflow: str | None = None
    """Names the workflow that does the role, in place of an agent."""
    inputs: Mapping[str, Any] | None = None
    """What that workflow is given for its inputs."""


Edges: TypeAlias = Mapping[str, Target] | tuple[Target, ...]
"""A graph node: status → target, or the list form of conditional routing."""


class Workflow(Struct, frozen=True, kw_only=True):
    """Roles and a graph; the current form, whatever form the file had."""

    version: int
    name: str
    description: str
    roles: Mapping[str, Role]
    graph: Mapping[str, Edges]
    inputs: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_lists(self) -> bool:
        """Whether a graph node is a list, whose edges may have conditions."""
        return any(isinstance(edges, tuple) for edges in self.graph.values())


def require_workflow_file(data: bytes) -> None:
    """Refuse the bytes of a workflow's file that no reader would take.

    Raises:
        SizeError: They are too many, with all that was included.
    """
    if len(data) > YAML_MAX_BYTES:
        what = "the workflow, with all it includes,"
        raise SizeError(what, found=len(data), limit=YAML_MAX_BYTES)


def workflow_nodes(workflow: Workflow) -> tuple[Node, ...]:
    """Make the workflow's node, last, after the schema nodes of its roles.

    Raises:
        InvalidError: A value in it is none that uwf can store.
    """
    schemas = {
        name: make_schema(dict(role.schema)) for name, role in workflow.roles.items()
    }
    payload: dict[str, Json] = {
        "version": workflow.version,
        "name": workflow.name,
        "description": workflow.description,
        "roles": {
            name: _role_payload(role, schemas[name].hash)
            for name, role in workflow.roles.items()
        },
        "graph": {name: _edges_payload(e) for name, e in workflow.graph.items()},
    }
    if workflow.inputs is not None:
        payload["inputs"] = dict(workflow.inputs)
    if workflow.extra:
        payload["x"] = dict(workflow.extra)
    unique = {node.hash: node for node in schemas.values()}
    return (*unique.values(), make_node(WORKFLOW_TYPE, payload))


def _role_payload(role: Role, schema: Hash) -> dict[str, Json]:
    payload: dict[str, Json] = {
        "description": role.description,
        "goal": role.goal,
        "capabilities": list(role.capabilities),
        "procedure": role.procedure,
        "output": role.output,
        "frontmatter": schema,
    }
    if role.workflow is not None:
        payload["workflow"] = role.workflow
    if role.inputs is not None:
        payload["inputs"] = dict(role.inputs)
    return payload


def _edges_payload(edges: Edges) -> Json:
    if isinstance(edges, tuple):
        return [
            {
                "role": target.role,
                "when": target.when,
                "prompt": target.prompt,
                "location": target.location,
            }
            for target in edges
        ]
    return {
        status: {
            "role": target.role,
            "prompt": target.prompt,
            "location": target.location,
        }
        for status, target in edges.items()
    }


def workflow_from_nodes(node: Node, nodes: Mapping[Hash, Node]) -> Workflow:
    """Read a workflow back from its node and its schemas' nodes.

    Args:
        node: A node whose payload was checked against the workflow schema.
        nodes: At least the schema nodes of its roles.

    Raises:
        CorruptError: A role's schema is missing or is no schema node.
    """
    payload = node.payload
    return Workflow(
        version=payload["version"],
        name=payload["name"],
        description=payload["description"],
        roles={
            name: _role_from_payload(name, role, nodes)
            for name, role in payload["roles"].items()
        },
        graph={
            name: tuple(_target(item, item["when"]) for item in edges)
            if isinstance(edges, list)
            else {status: _target(item, None) for status, item in edges.items()}
            for name, edges in payload["graph"].items()
        },
        inputs=payload.get("inputs"),
        extra=payload.get("x", {}),
    )


def _role_from_payload(name: str, role: Json, nodes: Mapping[Hash, Node]) -> Role:
    schema = nodes.get(role["frontmatter"])
    if schema is None or schema.type != META_TYPE:
        raise CorruptError(f"role '{name}' has no schema node {role['frontmatter']}")
    if not isinstance(schema.payload, dict):
        raise CorruptError(f"schema {schema.hash} of role '{name}' is not a mapping")
    return Role(
        description=role["description"],
        goal=role["goal"],
        capabilities=tuple(role["capabilities"]),
        procedure=role["procedure"],
        output=role["output"],
        schema=schema.payload,
        workflow=role.get("workflow"),
        inputs=role.get("inputs"),
    )


def _target(item: Json, when: str | None) -> Target:
    return Target(
        role=item["role"],
        prompt=item["prompt"],
        location=item["location"],
        when=when,
    )
