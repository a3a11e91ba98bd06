"""Nodes: immutable typed values, and the built-in types with their schemas (pure).

The only reader of the packaged ``schemas/``. A hash says that a payload is the one
that was named, never that it fits its type: whoever reads fields of a node that
nobody verified asks here first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct, ValidationError, convert

from uwfgit.errors import CorruptError, Problem
from uwfgit.ids import Hash
from uwfgit.model.schema.fit import Test, compile_fit
from uwfgit.store.canonical import (
    META_TYPE,
    TEXT_TYPE,
    Json,
    encode_payload,
    format_path,
    node_hash,
    normalise,
)

if TYPE_CHECKING:
    from uwfgit.model.schema.messages import Violation

__all__ = [
    "BUILTIN_NAMES",
    "DETAIL_TYPE",
    "ERROR_TYPE",
    "FORMAT_TYPES",
    "HOLD_TYPE",
    "JSON_TYPES",
    "META_TYPE",
    "START_TYPE",
    "STEP_TYPE",
    "SUSPEND_TYPE",
    "TEXT_TYPE",
    "WORKFLOW_TYPE",
    "Node",
    "Payload",
    "find_builtin_node",
    "find_builtin_schema",
    "format_nodes",
    "make_node",
    "make_text",
    "mistyped",
    "node_file_name",
    "read_payload",
    "require_typed",
    "validate_node",
]

WORKFLOW_TYPE: Final = Hash("CWDYA439XBW6X")
START_TYPE: Final = Hash("33HE72QSZ6Q6V")
STEP_TYPE: Final = Hash("BADAZA8A4H6T9")
DETAIL_TYPE: Final = Hash("05AZRF10SYC3T")
ERROR_TYPE: Final = Hash("25N5TMFN2MN86")
SUSPEND_TYPE: Final = Hash("89CG2387DJBDT")
HOLD_TYPE: Final = Hash("BGWNVNYWW10M8")

FORMAT_TYPES: Final = {
    "schema": META_TYPE,
    "text": TEXT_TYPE,
    "workflow": WORKFLOW_TYPE,
    "start": START_TYPE,
    "step": STEP_TYPE,
    "detail": DETAIL_TYPE,
    "error": ERROR_TYPE,
    "suspend": SUSPEND_TYPE,
    "hold": HOLD_TYPE,
}
"""The types every thread carries in ``nodes/start/``; the name is the file's."""

JSON_TYPES: Final = {
    "string": TEXT_TYPE,
    "number": Hash("BEAZQGKVXMZT8"),
    "integer": Hash("B26JM4PBHPAFK"),
    "boolean": Hash("1AVHCXEJVDCPP"),
    "bool": Hash("1AVHCXEJVDCPP"),
    "null": Hash("8E33KAS0HMAZ7"),
    "object": Hash("944RT37WX1PQ5"),
    "array": Hash("D45CW047XS17Y"),
}
"""``{type: name}``, under the names of the public ``ocas`` store."""

BUILTIN_NAMES: Final = {**JSON_TYPES, **FORMAT_TYPES}
_BUILTIN: Final = frozenset(BUILTIN_NAMES.values())
_NOTHING: Final[Mapping[str, Json]] = {}
_Read = TypeVar("_Read")


class Node(Struct, frozen=True, kw_only=True, gc=False):
    """An immutable typed value; ``payload`` is normalised."""

    hash: Hash
    type: Hash
    payload: Json

    @property
    def name(self) -> str:
        """The file name the node has in every tree."""
        return node_file_name(self.hash, self.type)

    @property
    def data(self) -> bytes:
        """The only bytes allowed for the node's blob."""
        return encode_payload(self.type, self.payload)


def make_node(node_type: Hash, payload: Json) -> Node:
    """Normalise and name a payload; its schema is not checked here.

    Raises:
        InvalidError: The payload is no JSON value uwf can store.
    """
    value = normalise(payload)
    return Node(hash=node_hash(node_type, value), type=node_type, payload=value)


def make_text(text: str) -> Node:
    """Make a text node."""
    return make_node(TEXT_TYPE, text)


def node_file_name(node: Hash, node_type: Hash) -> str:
    """Name a node's file: ``<HASH>.<TYPE>.json``, or ``.md`` for text."""
    suffix = "md" if node_type == TEXT_TYPE else "json"
    return f"{node}.{node_type}.{suffix}"


_SCHEMAS: Final = Path(__file__).parent / "schemas"
_JSON_NAMES: Final = {node: name for name, node in JSON_TYPES.items() if name != "bool"}
_FORMAT_NAMES: Final = {node: name for name, node in FORMAT_TYPES.items()}


@cache
def find_builtin_schema(node_type: Hash) -> Json | None:
    """Return the schema of a built-in type; ``None`` for any other."""
    name = _FORMAT_NAMES.get(node_type)
    if name is not None:
        return normalise(json.loads((_SCHEMAS / f"{name}.json").read_bytes()))
    name = _JSON_NAMES.get(node_type)
    return None if name is None else {"type": name}


@cache
def format_nodes() -> tuple[Node, ...]:
    """Make the schema nodes that stand in every thread's ``nodes/start/``."""
    return tuple(_builtin_node(node_type) for node_type in FORMAT_TYPES.values())


@cache
def find_builtin_node(node: Hash) -> Node | None:
    """Return the schema node of a built-in type; ``None`` for any other hash."""
    return None if find_builtin_schema(node) is None else _builtin_node(node)


def _builtin_node(node_type: Hash) -> Node:
    payload = find_builtin_schema(node_type)
    if node_type == META_TYPE:
        return Node(hash=META_TYPE, type=META_TYPE, payload=payload)
    return make_node(META_TYPE, payload)


class Payload(
    Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    rename="camel",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """The fields of some JSON, all of them: others are refused.

    One that has a default is left out of the JSON where it has that; all others are
    always there. Written by ``to_builtins``.
    """


def read_payload(
    node: Node, kind: type[_Read], known: Mapping[str, Json] = _NOTHING
) -> _Read:
    """Read a node as the struct that declares the fields of its built-in type.

    Args:
        node: The node.
        kind: The struct; it takes just what the type's schema does.
        known: Fields of the struct that the node does not have.

    Raises:
        CorruptError: The payload does not fit; each place is a problem.
    """
    payload = node.payload
    if isinstance(payload, dict) and payload.keys().isdisjoint(known):
        # Not by the schema: that takes three times as long, and a thread has many.
        try:
            return convert({**payload, **known}, kind)
        except ValidationError as exc:
            raise mistyped(node) from exc
    raise mistyped(node)


def require_typed(node: Node) -> None:
    """Refuse a node of a built-in type that does not fit it; others pass.

    Raises:
        CorruptError: The payload does not fit; each place is a problem.
    """
    fit = _find_fit(node.type) if node.type in _BUILTIN else None
    if fit is not None and not fit(node.payload):
        raise mistyped(node)


@cache
def _find_fit(node_type: Hash) -> Test | None:
    # A schema node is never checked against the meta-schema's own payload.
    schema = None if node_type == META_TYPE else find_builtin_schema(node_type)
    return None if schema is None else compile_fit(schema)


def validate_node(node: Node, schema: Json) -> tuple[Violation, ...]:
    """Check a node's payload against its type's schema.

    A schema node is checked as a schema, never against the meta-schema.
    """
    # Only here is jsonschema needed, and it is slow to import.
    from uwfgit.model.schema.check import (  # noqa: PLC0415
        check_schema,
        schema_violations,
        validate_payload,
    )

    if node.type == META_TYPE:
        return schema_violations(check_schema(node.payload))
    is_packaged = schema == find_builtin_schema(node.type)
    return validate_payload(schema, node.payload, is_packaged=is_packaged)


def mistyped(node: Node) -> CorruptError:
    """Return the error of a node that does not fit its built-in type."""
    found = validate_node(node, find_builtin_schema(node.type))
    problems = [
        Problem(
            code=CorruptError.code,
            message=each.message,
            path=f"node {node.hash}: {format_path(each.path) or '(root)'}",
        )
        for each in found
    ]
    # A number may be whole, and too large for one that counts.
    return CorruptError(problems or f"node {node.hash} does not fit its type")
