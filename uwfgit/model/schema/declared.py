"""What a schema declares, and what that leaves out: rules J3 and J5 (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from uwfgit.model.schema.messages import SchemaProblem, shorten
from uwfgit.model.schema.subschema import (
    SchemaPath,
    iter_children,
    iter_in_place,
    iter_subschemas,
)
from uwfgit.store.canonical import Json

_PATTERNS: Final = "patternProperties"
_UNSURE: Final = frozenset({"if", "not"})
"""A condition or its negation may well name what it hopes not to find."""


def find_undeclared(
    schema: Json, path: SchemaPath = (), known: frozenset[str] = frozenset()
) -> Iterator[SchemaProblem]:
    """Yield what is required and declared nowhere (J3).

    Args:
        schema: The schema.
        path: Where it is.
        known: What is declared around it, of the same value.
    """
    if not isinstance(schema, Mapping):
        return
    known |= _declared(schema)
    required = schema.get("required")
    if isinstance(required, list) and _PATTERNS not in schema:
        for index, name in enumerate(required):
            if isinstance(name, str) and name not in known:
                yield SchemaProblem(
                    path=(*path, "required", index),
                    code="J3",
                    message=shorten(f"required property '{name}' is not declared"),
                    hint="declare it under properties",
                    severity="warning",
                )
    in_place = {inner for inner, _ in iter_in_place(schema)}
    for inner, child in iter_children(schema):
        if inner[0] not in _UNSURE:
            names = known if inner in in_place else frozenset[str]()
            yield from find_undeclared(child, (*path, *inner), names)


def find_closed_out(schema: Json) -> Iterator[SchemaProblem]:
    """Yield what a closed schema refuses though parts of it declare it (J5)."""
    for path, inner in iter_subschemas(schema):
        if inner.get("additionalProperties") is not False or _PATTERNS in inner:
            continue
        parts = [
            part for place, part in iter_in_place(inner) if place[0] not in _UNSURE
        ]
        lost = frozenset[str]().union(*map(_declared, parts)) - _own_names(inner)
        if lost:
            names = ", ".join(f"'{name}'" for name in sorted(lost))
            yield SchemaProblem(
                path=(*path, "additionalProperties"),
                code="J5",
                message=shorten(f"refuses what is declared in a part only: {names}"),
                hint="put it into each variant, or declare the fields here too",
                severity="warning",
            )


def _own_names(schema: Mapping[str, Json]) -> frozenset[str]:
    properties = schema.get("properties")
    return frozenset(properties) if isinstance(properties, Mapping) else frozenset()


def _declared(schema: Json) -> frozenset[str]:
    own = _own_names(schema) if isinstance(schema, Mapping) else frozenset[str]()
    return own.union(*(_declared(child) for _, child in iter_in_place(schema)))
