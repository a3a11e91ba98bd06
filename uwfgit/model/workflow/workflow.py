"""A workflow as values, and its node (pure).

Reading a file is ``model/workflow/source.py``, reading one back ``pinned.py`` there;
what makes one valid is ``model/rules/check.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, field, to_builtins
from msgspec.structs import asdict

from uwfgit.constants import YAML_MAX_BYTES
from uwfgit.errors import CorruptError, SizeError
from uwfgit.ids import Hash
from uwfgit.model.node import (
    META_TYPE,
    WORKFLOW_TYPE,
    Node,
    Payload,
    make_node,
    mistyped,
    read_payload,
)
from uwfgit.store.canonical import Omittable


class Target(Payload, frozen=True, kw_only=True, omit_defaults=False):
    """Where an edge leads: the next role, its prompt and folder templates."""

    role: str
    prompt: str
    location: str | None = None


class Choice(Target, frozen=True, kw_only=True):
    """One of the edges of a list: it is taken when its condition holds, if any."""

    when: str | None = None


class RoleFields(Payload, frozen=True, kw_only=True):
    """What one role is asked to do."""

    description: str
    goal: str
    capabilities: tuple[str, ...]
    procedure: str
    output: str
    workflow: Omittable[str] = None
    """Names the workflow that does the role, in place of an agent."""
    inputs: Omittable[Mapping[str, Any]] = None
    """What that workflow is given for its inputs."""


class Role(RoleFields, frozen=True, kw_only=True, rename={"schema": "frontmatter"}):
    """What one role is asked to do, and the schema of its structured answer."""

    schema: Mapping[str, Any]


class _PinnedRole(RoleFields, frozen=True, kw_only=True):
    frontmatter: Hash


Edges: TypeAlias = Mapping[str, Target] | tuple[Choice, ...]
"""A graph node: status → target, or the list form of conditional routing."""


class WorkflowFields(Payload, frozen=True, kw_only=True):
    """All that a workflow is but its roles."""

    version: Annotated[int, Meta(ge=1)]
    name: str
    description: str
    graph: Mapping[str, Edges]
    inputs: Omittable[Mapping[str, Mapping[str, Any]]] = None
    extra: Mapping[str, Any] = field(default_factory=dict, name="x")


class _Pinned(WorkflowFields, frozen=True, kw_only=True):
    """A workflow as its node has it."""

    roles: Mapping[str, _PinnedRole]


class Workflow(WorkflowFields, frozen=True, kw_only=True):
    """Roles and a graph; the current form, whatever form the file had."""

    roles: Mapping[str, Role]

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
    payload = to_builtins(workflow)
    schemas = {}
    for role in payload["roles"].values():
        node = make_node(META_TYPE, role["frontmatter"])
        schemas[node.hash] = node
        role["frontmatter"] = node.hash
    return (*schemas.values(), make_node(WORKFLOW_TYPE, payload))


def workflow_from_node(node: Node, find: Callable[[Hash], Node | None]) -> Workflow:
    """Read a workflow back from its node.

    Args:
        node: The node; nothing of it needs to be checked before.
        find: Finds the schema nodes of its roles.

    Raises:
        CorruptError: It does not fit its type, or a role's schema is missing or is
            no schema node.
    """
    pinned = read_payload(node, _Pinned)
    for edges in node.payload["graph"].values():
        # Their defaults are for whoever writes a graph in Python.
        kind = Choice if isinstance(edges, list) else Target
        found = edges if isinstance(edges, list) else edges.values()
        if any(len(each) < len(kind.__struct_fields__) for each in found):
            raise mistyped(node)
    roles = {}
    for name, role in pinned.roles.items():
        schema = find(role.frontmatter)
        if schema is None or schema.type != META_TYPE:
            raise CorruptError(f"role '{name}' has no schema node {role.frontmatter}")
        if not isinstance(schema.payload, dict):
            message = f"schema {schema.hash} of role '{name}' is not a mapping"
            raise CorruptError(message)
        fields = asdict(role)
        del fields["frontmatter"]
        roles[name] = Role(**fields, schema=schema.payload)
    return Workflow(**{**asdict(pinned), "roles": roles})
