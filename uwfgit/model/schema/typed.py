"""Nodes of built-in types: whether one holds what its type promises (pure).

A hash says that a payload is the one that was named, never that it fits its type:
whoever reads fields of a node that nobody verified asks here first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeVar

from msgspec import Struct, ValidationError, convert

from uwfgit.errors import CorruptError, Problem
from uwfgit.ids import Hash
from uwfgit.model.node import BUILTIN_NAMES, Node, find_builtin_schema
from uwfgit.model.schema.fit import Test, compile_fit
from uwfgit.store.canonical import META_TYPE, Json, format_path

_BUILTIN: Final = frozenset(BUILTIN_NAMES.values())
_NOTHING: Final[Mapping[str, Json]] = {}
_Read = TypeVar("_Read")


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


def fields_of(value: Struct, kind: type[Struct]) -> dict[str, Any]:
    """Return the fields of a struct that one it is derived from has, by name."""
    return {name: getattr(value, name) for name in kind.__struct_fields__}


@cache
def _find_fit(node_type: Hash) -> Test | None:
    # A schema node is never checked against the meta-schema's own payload.
    schema = None if node_type == META_TYPE else find_builtin_schema(node_type)
    return None if schema is None else compile_fit(schema)


def mistyped(node: Node) -> CorruptError:
    """Return the error of a node that does not fit its built-in type."""
    # Only here is jsonschema needed, and it is slow to import.
    from uwfgit.model.schema.check import validate_node  # noqa: PLC0415

    schema = find_builtin_schema(node.type)
    found = validate_node(node, schema)
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
