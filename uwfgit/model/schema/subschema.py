"""Where a JSON Schema holds further schemas; the only list of such keywords."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from uwfgit.store.canonical import Json

SchemaPath: TypeAlias = tuple[str | int, ...]
"""A place in a value: keys and list indices, outermost first."""

MAX_SCHEMA_DEPTH: Final = 40
"""Schemas inside schemas; checking one takes a dozen Python frames a level."""

_ALTERNATIVES: Final = ("allOf", "anyOf", "oneOf")
_IN_PLACE: Final = ("if", "then", "else", "not")
_SINGLE: Final = (
    *_IN_PLACE,
    "items",
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "contentSchema",
)
_LISTS: Final = (*_ALTERNATIVES, "prefixItems", "items")
_MAPS: Final = ("properties", "patternProperties", "dependentSchemas", "dependencies")


def iter_children(schema: Json) -> Iterator[tuple[SchemaPath, Json]]:
    """Yield the schemas directly inside one, with their places in it."""
    if not isinstance(schema, Mapping):
        return
    for key in _SINGLE:
        if isinstance(schema.get(key), Mapping):
            yield (key,), schema[key]
    for key in _LISTS:
        if isinstance(schema.get(key), list):
            yield from (((key, index), item) for index, item in enumerate(schema[key]))
    for key in _MAPS:
        if isinstance(schema.get(key), Mapping):
            yield from (((key, name), item) for name, item in schema[key].items())


def may_be(schema: Mapping[str, Json], kind: str) -> bool:
    """Whether a schema's ``type``, if it has one, is a kind of value or has it."""
    types = schema.get("type", kind)
    return kind in types if isinstance(types, list) else types == kind


def matches(pattern: str, name: str) -> bool:
    """Whether a name has a pattern of ``patternProperties`` in it."""
    try:
        return re.search(pattern, name) is not None
    except (re.error, OverflowError, RecursionError):
        return False


def iter_in_place(schema: Json) -> Iterator[tuple[SchemaPath, Json]]:
    """Yield the schemas inside one that see the same value as it does."""
    for path, child in iter_children(schema):
        if path[0] in (*_ALTERNATIVES, *_IN_PLACE, "dependentSchemas"):
            yield path, child


def iter_subschemas(schema: Json) -> Iterator[tuple[SchemaPath, Mapping[str, Json]]]:
    """Yield a schema and all schemas inside it that are mappings, outermost first."""
    waiting: list[tuple[SchemaPath, Json]] = [((), schema)]
    while waiting:
        path, current = waiting.pop()
        if isinstance(current, Mapping):
            yield path, current
            children = [((*path, *p), child) for p, child in iter_children(current)]
            waiting += reversed(children)


def measure_depth(schema: Json) -> int:
    """Count the schemas inside each other, up to ``MAX_SCHEMA_DEPTH`` + 1."""
    level, depth = [schema], 0
    while level and depth <= MAX_SCHEMA_DEPTH:
        depth += 1
        level = [child for item in level for _, child in iter_children(item)]
    return depth
