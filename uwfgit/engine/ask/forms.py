"""The forms an answer may have, in words; the only place that words a schema (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from uwfgit.constants import STATUS
from uwfgit.model.schema.subschema import MAX_SCHEMA_DEPTH, SchemaPath
from uwfgit.model.schema.variants import Form, Variant, find_variants, merge_forms
from uwfgit.model.yaml.dump import dump_yaml
from uwfgit.store.canonical import Json

_KINDS: Final = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "true or false",
    "array": "list",
    "object": "mapping",
    "null": "null",
}


@lru_cache(maxsize=256)
def describe_forms(schema_text: str, *, listed: bool) -> tuple[str, ...]:
    """Return a block per ``$status``, or one where a schema names none.

    Each has a YAML example and its fields, constants as they are to be written.

    Args:
        schema_text: The role's schema, as JSON.
        listed: The role's graph node is a list, so any fields may do.
    """
    schema = json.loads(schema_text)
    variants = find_variants(schema)
    if not variants:
        return (_flat_block(merge_forms(schema), listed=listed),)
    return tuple(
        _block(f"## `{STATUS}: {each.status}`", each, _described(schema, each.path))
        for each in variants
    )


def _described(schema: Json, path: SchemaPath) -> str:
    for key in path:
        schema = schema[key]
    return _text(schema, "description")


def _flat_block(form: Form, *, listed: bool) -> str:
    if form.properties:
        return _block("## The fields", form, "")
    example = "result" if listed else STATUS
    return (
        "## The fields\n\n"
        f'```\n---\n{example}: "<value>"\n---\n```\n\n'
        "Give the fields that tell the others what you found."
    )


def _block(title: str, fields: Form | Variant, description: str) -> str:
    # ``$status``, the required as written, then the rest.
    names = dict.fromkeys((STATUS, *fields.order, *fields.properties))
    properties = {
        name: fields.properties[name] for name in names if name in fields.properties
    }
    example = {name: _example(schema) for name, schema in properties.items()}
    lines = [
        line
        for name, schema in properties.items()
        for line in _field_lines(name, schema, required=name in fields.required)
    ]
    yaml = f"```\n---\n{dump_yaml(example)}---\n```"
    return "\n\n".join(
        part for part in (title, description, yaml, "\n".join(lines)) if part
    )


def _field_lines(
    name: str, schema: Json, *, required: bool, depth: int = 0
) -> Iterator[str]:
    needed = "" if required else ", optional"
    described = _text(schema, "description")
    tail = f": {described}" if described else ""
    yield f"- `{name}` ({_kind(schema)}{needed}){tail}"
    inner = _without_null(schema)
    if isinstance(inner, Mapping) and isinstance(inner.get("items"), Mapping):
        name, inner = f"{name}[]", _without_null(inner["items"])
    properties = inner.get("properties") if isinstance(inner, Mapping) else None
    if not isinstance(properties, Mapping) or depth > MAX_SCHEMA_DEPTH:
        return
    for key in _property_names(inner, properties):
        yield from _field_lines(
            f"{name}.{key}",
            properties[key],
            required=key in _required(inner),
            depth=depth + 1,
        )


def _property_names(schema: Json, properties: Mapping[str, Json]) -> list[str]:
    names = dict.fromkeys((*_required(schema), *properties))
    return [name for name in names if name in properties]


def _required(schema: Json) -> Sequence[str]:
    required = schema.get("required")
    return required if isinstance(required, list) else ()


def _text(schema: Json, key: str) -> str:
    text = schema.get(key) if isinstance(schema, Mapping) else None
    return " ".join(text.split()) if isinstance(text, str) else ""


def _without_null(schema: Json) -> Json:
    """Return what a field holds where the schema also allows null."""
    if not isinstance(schema, Mapping):
        return schema
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if isinstance(branches, list):
            others = [each for each in branches if each != {"type": "null"}]
            if len(others) == 1:
                return _without_null(others[0])
    return schema


def _types(schema: Json) -> list[str]:
    types = schema.get("type", []) if isinstance(schema, Mapping) else []
    return [types] if isinstance(types, str) else list(types)


def _kind(schema: Json) -> str:
    inner = _without_null(schema)
    if not isinstance(inner, Mapping):
        return "any value"
    null = "" if inner is schema else " or null"
    if "const" in inner:
        return f"always {_code(inner['const'])}{null}"
    if isinstance(inner.get("enum"), list):
        return f"one of {', '.join(map(_code, inner['enum']))}{null}"
    kinds = [_KINDS.get(name, name) for name in _types(inner)]
    if kinds == ["list"] and isinstance(inner.get("items"), Mapping):
        kinds = [f"list, each {_kind(inner['items'])}"]
    kind = " or ".join(kinds) or "any value"
    return f"{kind}{_limits(inner)}{null}"


def _limits(schema: Mapping[str, Json]) -> str:
    form = schema.get("format")
    limits = [] if form is None else ["hash of a node" if form == "ocas_ref" else form]
    if "pattern" in schema:
        limits.append(f"matching {_code(schema['pattern'])}")
    for key, words in (("minimum", "at least"), ("maximum", "at most")):
        if key in schema:
            limits.append(f"{words} {schema[key]}")
    return "".join(f", {limit}" for limit in limits)


def _code(value: Json) -> str:
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    return f"`{value}`"


def _example(schema: Json, depth: int = 0) -> Json:
    inner = _without_null(schema)
    if not isinstance(inner, Mapping) or depth > MAX_SCHEMA_DEPTH:
        return "<any value>"
    # The values that the schema itself has to show.
    given = [inner["const"]] if "const" in inner else []
    for key in ("enum", "examples"):
        given += inner[key] if isinstance(inner.get(key), list) else []
    given += [inner["default"]] if "default" in inner else []
    if given:
        return given[0]
    kind = next((name for name in _types(inner) if name != "null"), "")
    if kind == "object" or (not kind and "properties" in inner):
        return _example_mapping(inner, depth)
    if kind == "array":
        return [_example(inner.get("items"), depth + 1)]
    return _example_scalar(inner, kind)


def _example_mapping(schema: Mapping[str, Json], depth: int) -> Json:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return {"<key>": "<value>"}
    names = _property_names(schema, properties)
    return {name: _example(properties[name], depth + 1) for name in names}


def _example_scalar(schema: Mapping[str, Json], kind: str) -> Json:
    if kind in {"number", "integer"}:
        return schema.get("minimum", 0)
    if kind == "boolean":
        return True
    form = schema.get("format")
    if form == "ocas_ref":
        return "<hash>"
    return f"<{form or ('text' if kind == 'string' else 'any value')}>"
