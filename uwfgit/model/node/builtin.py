"""The packaged schemas of the built-in types; the only reader of ``schemas/``."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Final

from uwfgit.ids import Hash
from uwfgit.model.node.node import FORMAT_TYPES, JSON_TYPES, Node, make_schema
from uwfgit.store.canonical import META_TYPE, Json, normalise

_SCHEMAS: Final = Path(__file__).parents[1] / "schemas"
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
    return make_schema(payload)
