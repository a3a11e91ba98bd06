"""Schemas that are valid at a glance (pure).

Checking one against the meta-schema takes milliseconds; most schemas hold only
keywords whose values can be looked at in a moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from uwfgit.store.canonical import Json

_TYPES: Final = frozenset(
    {"string", "number", "integer", "boolean", "null", "object", "array"}
)


def is_plainly_valid(schema: Json) -> bool:
    """Whether a schema is valid by keywords and values known here.

    ``False`` says nothing: the schema has to be checked against the
    meta-schema. It must not be nested without bound.
    """
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, Mapping):
        return False
    return all(key in _KEYWORDS and _KEYWORDS[key](schema[key]) for key in schema)


def _is_type(value: Json) -> bool:
    if isinstance(value, list):
        return bool(value) and _is_name_list(value) and _TYPES.issuperset(value)
    return isinstance(value, str) and value in _TYPES


def _is_pattern(value: Json) -> bool:
    try:
        return isinstance(value, str) and bool(re.compile(value))
    except (re.error, OverflowError, RecursionError):
        return False


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_list(value: Json) -> bool:
    return isinstance(value, list)


def _is_count(value: Json) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: Json) -> bool:
    return type(value) in (int, float)


def _is_name_list(value: Json) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(name, str) for name in value)
        and len(set(value)) == len(value)
    )


def _is_choice(value: Json) -> bool:
    return isinstance(value, list) and bool(value) and all(map(is_plainly_valid, value))


def _is_anything(_: Json) -> bool:
    return True


_KEYWORDS: Final[Mapping[str, Callable[[Json], bool]]] = {
    "type": _is_type,
    "const": _is_anything,
    "default": _is_anything,
    "enum": _is_list,
    "examples": _is_list,
    "title": _is_text,
    "description": _is_text,
    "format": _is_text,
    "pattern": _is_pattern,
    "properties": lambda value: (
        isinstance(value, Mapping) and all(map(is_plainly_valid, value.values()))
    ),
    "required": _is_name_list,
    "items": is_plainly_valid,
    "additionalProperties": is_plainly_valid,
    "oneOf": _is_choice,
    "anyOf": _is_choice,
    "allOf": _is_choice,
    "minLength": _is_count,
    "maxLength": _is_count,
    "minItems": _is_count,
    "maxItems": _is_count,
    "minimum": _is_number,
    "maximum": _is_number,
    "uniqueItems": lambda value: isinstance(value, bool),
}
