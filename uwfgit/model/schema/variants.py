"""What a role's schema lets it report: one variant per ``$status`` (pure).

The only place that flattens ``oneOf``, ``anyOf`` and ``allOf`` of objects; the
rules, the prompt and extract all look at a schema through it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.constants import STATUS
from uwfgit.model.schema.subschema import (
    MAX_SCHEMA_DEPTH,
    SchemaPath,
    matches,
    may_be,
)
from uwfgit.store.canonical import Json

MAX_FORMS: Final = 1_000
"""More combinations than this count as a schema that fixes nothing."""


class Form(Struct, frozen=True, kw_only=True):
    """One object a schema describes, with what stands around it merged in.

    ``statuses`` are the values its ``$status`` may have, ``None`` when it is
    not fixed. ``path`` is the place of the subschema that fixes it. ``open``
    means that other properties are allowed in so many words, ``closed`` that
    they are forbidden. ``order`` has the required names as they were written.
    """

    statuses: tuple[str, ...] | None = None
    path: SchemaPath = ()
    properties: Mapping[str, Json] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    closed: bool = False
    open: bool = False
    patterns: tuple[str, ...] = ()
    order: tuple[str, ...] = ()


class Variant(Struct, frozen=True, kw_only=True):
    """What belongs to one ``$status``; its property ``$status`` is a const.

    ``closed`` means that no other property is allowed, ``open`` that any other
    is, in so many words; a schema that says nothing is neither.
    """

    status: str
    path: SchemaPath
    properties: Mapping[str, Json]
    required: frozenset[str]
    closed: bool
    open: bool = False
    patterns: tuple[str, ...] = ()
    order: tuple[str, ...] = ()


def find_variants(schema: Json) -> tuple[Variant, ...]:
    """Find what each status a schema fixes asks for, in the schema's order.

    Two subschemas with one status are two variants. The result is empty when
    the schema, or one alternative in it, does not fix ``$status``.
    """
    # The engine asks for a role's several times a step. Unsorted: order counts.
    return _find_variants(json.dumps(schema))


@lru_cache(maxsize=256)
def _find_variants(key: str) -> tuple[Variant, ...]:
    variants: list[Variant] = []
    for form in _find_forms(key):
        if form.statuses is None:
            return ()
        own = form.properties.get(STATUS)
        declared: dict[str, Any] = dict(own) if isinstance(own, Mapping) else {}
        declared.pop("enum", None)
        variants.extend(
            Variant(
                status=status,
                path=form.path,
                properties={**form.properties, STATUS: {**declared, "const": status}},
                required=form.required,
                closed=form.closed,
                open=form.open,
                patterns=form.patterns,
                order=form.order,
            )
            for status in form.statuses
        )
    return tuple(variants)


def find_forms(schema: Json) -> tuple[Form, ...]:
    """Find the objects a schema describes; at least one, in its order.

    It need not be a valid one.
    """
    return _find_forms(json.dumps(schema))


@lru_cache(maxsize=256)
def _find_forms(key: str) -> tuple[Form, ...]:
    forms = _expand(json.loads(key), (), 0)
    return tuple(forms) if 0 < len(forms) <= MAX_FORMS else (Form(open=True),)


def merge_forms(schema: Json) -> Form:
    """See a schema as one object: all properties, required where all say so."""
    return _merge_forms(json.dumps(schema))


@lru_cache(maxsize=256)
def _merge_forms(key: str) -> Form:
    merged, *others = _find_forms(key)
    for form in others:
        merged = _either(merged, form)
    return merged


def as_asked(schema: Json, output: Mapping[str, Json]) -> dict[str, Json]:
    """Return an answer with its fields in the order in which they were asked for.

    A node does not keep it: its maps are sorted.
    """
    status = output.get(STATUS)
    forms: list[Form | Variant] = [
        each for each in find_variants(schema) if each.status == status
    ]
    names = [
        name
        for form in forms or [merge_forms(schema)]
        for name in (STATUS, *form.order, *form.properties)
    ]
    asked = {name: output[name] for name in names if name in output}
    return {**asked, **output}


def is_named(fields: Form | Variant, name: str) -> bool:
    """Whether a property is named there, or any is allowed."""
    return (
        fields.open
        or name in fields.properties
        or any(matches(pattern, name) for pattern in fields.patterns)
    )


def _expand(schema: Json, path: SchemaPath, depth: int) -> list[Form]:
    if not isinstance(schema, Mapping) or depth > MAX_SCHEMA_DEPTH:
        return [Form(path=path)]
    forms = [_own(schema, path)]
    for key in ("allOf", "anyOf", "oneOf"):
        branches = schema.get(key)
        if not isinstance(branches, list) or not branches:
            continue
        expanded = [
            _expand(branch, (*path, key, index), depth + 1)
            for index, branch in enumerate(branches)
            if not isinstance(branch, Mapping) or may_be(branch, "object")
        ]
        steps = expanded if key == "allOf" else [[f for e in expanded for f in e]]
        for step in steps:
            forms = _merged(_both(form, other) for form in forms for other in step)
    return forms


def _own(schema: Mapping[str, Json], path: SchemaPath) -> Form:
    properties = schema.get("properties")
    own = dict(properties) if isinstance(properties, Mapping) else {}
    for name, value in _conditional_properties(schema):
        own.setdefault(name, value)
    required = schema.get("required")
    listed = required if isinstance(required, list) else []
    names = tuple(name for name in listed if isinstance(name, str))
    rest = [schema.get(k) for k in ("additionalProperties", "unevaluatedProperties")]
    patterns = schema.get("patternProperties")
    return Form(
        statuses=_statuses(properties),
        path=path,
        properties=own,
        required=frozenset(names),
        closed=False in rest,
        open=any(value is True or isinstance(value, Mapping) for value in rest),
        patterns=tuple(patterns) if isinstance(patterns, Mapping) else (),
        order=names,
    )


def _conditional_properties(schema: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Yield what ``if``, ``then``, ``else`` and ``dependentSchemas`` name."""
    dependent = schema.get("dependentSchemas")
    parts = [schema.get(key) for key in ("if", "then", "else")]
    parts += dependent.values() if isinstance(dependent, Mapping) else ()
    for part in parts:
        properties = part.get("properties") if isinstance(part, Mapping) else None
        if isinstance(properties, Mapping):
            yield from ((n, v) for n, v in properties.items() if n != STATUS)


def _statuses(properties: Json) -> tuple[str, ...] | None:
    status = properties.get(STATUS) if isinstance(properties, Mapping) else None
    if not isinstance(status, Mapping):
        return None
    values = [status["const"]] if "const" in status else status.get("enum")
    if not isinstance(values, list) or not values:
        return None
    if not all(isinstance(value, str) for value in values):
        return None
    return tuple(dict.fromkeys(values))


def _both(outer: Form, inner: Form) -> Form | None:
    """Combine forms that hold together; ``None`` when no status fits both."""
    statuses = outer.statuses
    if inner.statuses is not None:
        allowed = frozenset(outer.statuses or inner.statuses)
        statuses = tuple(status for status in inner.statuses if status in allowed)
        if not statuses:
            return None
    properties = dict(outer.properties)
    for name, value in inner.properties.items():
        known = properties.get(name)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            properties[name] = {**known, **value}
        elif known is None or value is not True:
            properties[name] = value
    return Form(
        statuses=statuses,
        path=outer.path if inner.statuses is None else inner.path,
        properties=properties,
        required=outer.required | inner.required,
        closed=outer.closed or inner.closed,
        open=outer.open or inner.open,
        patterns=_unique(outer.patterns, inner.patterns),
        order=_unique(outer.order, inner.order),
    )


def _unique(*texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain(*texts)))


def _merged(forms: Iterable[Form | None]) -> list[Form]:
    """Drop the impossible, and see alternatives of one status place as one.

    Without this, alternatives that say nothing of the status would multiply.
    """
    found: dict[tuple[SchemaPath, tuple[str, ...] | None], Form] = {}
    for form in forms:
        if form is None:
            continue
        key = (form.path, form.statuses)
        earlier = found.get(key)
        found[key] = form if earlier is None else _either(earlier, form)
        if len(found) > MAX_FORMS:
            break
    return list(found.values())


def _either(one: Form, other: Form) -> Form:
    return replace(
        one,
        properties={**other.properties, **one.properties},
        required=one.required & other.required,
        closed=one.closed and other.closed,
        open=one.open or other.open,
        patterns=_unique(one.patterns, other.patterns),
        order=_unique(one.order, other.order),
    )


def narrow_schema(schema: Json, path: SchemaPath) -> Json:
    """Return a schema with each alternative on the way to a place chosen."""
    if not path:
        return schema
    key, index, *rest = path
    branch = narrow_schema(schema[key][index], tuple(rest))
    narrowed = {name: value for name, value in schema.items() if name != key}
    branches = schema[key] if key == "allOf" else []
    kept = [each for number, each in enumerate(branches) if number != index]
    narrowed["allOf"] = [*narrowed.get("allOf", kept), branch]
    return narrowed
