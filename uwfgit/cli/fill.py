"""Keys left out of a payload, filled as far as its schema leaves no choice (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uwfgit.store.canonical import Json

_MISSING = object()


def fill_absent(schema: Json, value: Json) -> Json:
    """Give a payload with null, ``[]`` or nulls inside for required keys left out.

    What has no such value stays out, for the schema's own check to name.
    """
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, list):
        items = schema.get("items", True)
        return [fill_absent(items, item) for item in value]
    if not isinstance(value, dict):
        return value
    chosen = _object_schema(schema)
    properties = chosen.get("properties", {})
    filled = {
        key: fill_absent(_inner(properties.get(key, True), item), item)
        for key, item in value.items()
    }
    for key in chosen.get("required", ()):
        if key not in filled:
            empty = _empty(properties.get(key, True))
            if empty is not _MISSING:
                filled[key] = empty
    return filled


def _object_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    for option in schema.get("anyOf", ()):
        if isinstance(option, Mapping) and option.get("type") == "object":
            return option
    return schema


def _inner(schema: Json, value: Json) -> Json:
    if not isinstance(schema, Mapping) or not isinstance(value, list):
        return schema
    for option in schema.get("anyOf", ()):
        if isinstance(option, Mapping) and option.get("type") == "array":
            return option
    return schema


def _empty(schema: Json) -> Any:  # noqa: ANN401 - a JSON value, or the mark for none
    if not isinstance(schema, Mapping):
        return _MISSING
    if _allows_null(schema):
        return None
    if schema.get("type") == "array":
        return []
    if schema.get("type") == "object":
        filled = fill_absent(schema, {})
        missing = [key for key in schema.get("required", ()) if key not in filled]
        return _MISSING if missing else filled
    return _MISSING


def _allows_null(schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type")
    if kinds == "null" or (isinstance(kinds, list) and "null" in kinds):
        return True
    if None in schema.get("enum", ()):
        return True
    return any(
        isinstance(option, Mapping) and _allows_null(option)
        for option in schema.get("anyOf", ())
    )
