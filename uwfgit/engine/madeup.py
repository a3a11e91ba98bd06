"""Outputs nobody gave: values made up from a role's schema (pure).

They show what a prompt will look like; text says in angle brackets what would
stand there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from uwfgit.constants import STATUS
from uwfgit.model.subschema import MAX_SCHEMA_DEPTH
from uwfgit.model.variants import Form, Variant, find_variants, merge_forms
from uwfgit.store.canonical import Json

_FORMATS: Final = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "email": "somebody@example.org",
    "ocas_ref": "0123456789ABC",
    "time": "12:00:00Z",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_ITEMS: Final = 2
"""How many items a list gets, so that what stands between them is seen."""


def list_statuses(schema: Json) -> tuple[str, ...]:
    """Name what a role with this schema can report; none when it fixes none."""
    return tuple(dict.fromkeys(each.status for each in find_variants(schema)))


def make_up_output(
    schema: Json, status: str | None, *, required_only: bool = False
) -> dict[str, Json]:
    """Make up an output.

    Args:
        schema: The role's schema.
        status: The status it reports; ``None`` for a role that reports none.
        required_only: Leave out the fields that may be left out.
    """
    fields = _fields_of(schema, status)
    output: dict[str, Json] = {} if status is None else {STATUS: status}
    for name, inner in fields.properties.items():
        if name != STATUS and (name in fields.required or not required_only):
            output[name] = make_up_value(inner, name, required_only=required_only)
    return output


def _fields_of(schema: Json, status: str | None) -> Form | Variant:
    for variant in find_variants(schema):
        if variant.status == status:
            return variant
    return merge_forms(schema)


def make_up_value(
    schema: Json, name: str, *, required_only: bool = False, depth: int = 0
) -> Json:
    """Make up a value of a schema; ``name`` says what it is."""
    if not isinstance(schema, Mapping) or depth > MAX_SCHEMA_DEPTH:
        return f"<{name}>"
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    kind = _kind(schema)
    if kind == "object":
        return _make_up_mapping(schema, name, required_only=required_only, depth=depth)
    if kind == "array":
        return _make_up_list(schema, name, required_only=required_only, depth=depth)
    return _make_up_scalar(schema, kind, name, required_only=required_only, depth=depth)


def _kind(schema: Mapping[str, Json]) -> str:
    types = schema.get("type")
    listed = [types] if isinstance(types, str) else types
    for each in listed if isinstance(listed, list) else ():
        if each != "null":
            return str(each)
    if listed:
        return "null"
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else ""


def _make_up_mapping(
    schema: Mapping[str, Json], name: str, *, required_only: bool, depth: int
) -> Json:
    form = merge_forms(schema)
    if not form.properties:
        return {name: f"<{name}>"}
    return {
        key: make_up_value(inner, key, required_only=required_only, depth=depth + 1)
        for key, inner in form.properties.items()
        if key in form.required or not required_only
    }


def _make_up_list(
    schema: Mapping[str, Json], name: str, *, required_only: bool, depth: int
) -> Json:
    most = schema.get("maxItems")
    count = min(_ITEMS, most) if isinstance(most, int) else _ITEMS
    return [
        make_up_value(
            schema.get("items"),
            f"{name} {number}",
            required_only=required_only,
            depth=depth + 1,
        )
        for number in range(1, count + 1)
    ]


def _make_up_scalar(
    schema: Mapping[str, Json], kind: str, name: str, *, required_only: bool, depth: int
) -> Json:
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    if kind in {"integer", "number"}:
        least = schema.get("minimum", 1)
        return least if isinstance(least, int | float) else 1
    for key in ("oneOf", "anyOf", "allOf"):
        branches = schema.get(key)
        listed = branches if isinstance(branches, list) else []
        usable = [branch for branch in listed if _is_usable(branch)]
        if not kind and usable:
            return make_up_value(
                usable[0], name, required_only=required_only, depth=depth + 1
            )
    return _FORMATS.get(str(schema.get("format")), f"<{name}>")


def _is_usable(schema: Json) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") != "null"
