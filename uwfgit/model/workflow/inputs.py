"""What a run is given besides its task: checked, and defaults filled in (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from uwfgit.errors import InvalidError, Problem
from uwfgit.model.node import JSON_TYPES, META_TYPE, Node, make_node
from uwfgit.model.schema.check import validate_value
from uwfgit.model.yaml.core import read_yaml
from uwfgit.spelling import find_similar
from uwfgit.store.canonical import Json, format_path, normalise

Schemas = Mapping[str, Mapping[str, Json]]


def complete_inputs(
    schemas: Schemas, given: Mapping[str, Json]
) -> tuple[dict[str, Json], tuple[Problem, ...]]:
    """Return the values of all inputs, defaults among them, and what is wrong."""
    values = {
        name: given[name] if name in given else schema["default"]
        for name, schema in schemas.items()
        if name in given or "default" in schema
    }
    problems = list(_unknown(schemas, given))
    for name, schema in schemas.items():
        if name not in given and "default" not in schema:
            what = schema.get("description")
            about = f" ({what})" if isinstance(what, str) else ""
            hint = f"give it with -i {name}=VALUE"
            message = f"a value is missing{about}"
            problems.append(
                Problem(code="input", message=message, path=name, hint=hint)
            )
    for name, value in values.items():
        for found in validate_value(schemas[name], value, is_link=lambda _: False):
            where = format_path((name, *found.path))
            problems.append(Problem(code="input", message=found.message, path=where))
    return normalise(values), tuple(problems)


def _unknown(schemas: Schemas, given: Mapping[str, Json]) -> Iterable[Problem]:
    for name in (each for each in given if each not in schemas):
        near = find_similar(name, schemas)
        known = ", ".join(schemas) or "it has none"
        hint = f"did you mean '{near}'?" if near else f"inputs: {known}"
        yield Problem(code="input", message="no such input", path=name, hint=hint)


def require_inputs(schemas: Schemas, given: Mapping[str, Json]) -> dict[str, Json]:
    """Return the values of all inputs.

    Raises:
        InvalidError: With everything that is wrong.
    """
    values, problems = complete_inputs(schemas, given)
    if problems:
        raise InvalidError(problems)
    return values


def require_given(schemas: Schemas, given: Mapping[str, Json]) -> None:
    """Check the values that are given, whatever is missing.

    Raises:
        InvalidError: With all that is wrong with them.
    """
    asked = {name: schema for name, schema in schemas.items() if name in given}
    known = {name: given[name] for name in asked}
    problems = [*_unknown(schemas, given), *complete_inputs(asked, known)[1]]
    if problems:
        raise InvalidError(problems)


def parse_input(schema: Mapping[str, Json], text: str) -> Json:
    """Read a value: as text where the schema wants text, else as JSON or YAML."""
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    choices = schema.get("enum")
    if kinds is None and isinstance(choices, list):
        is_text = all(isinstance(each, str) for each in choices)
    else:
        is_text = isinstance(kinds, list) and "string" in kinds
    if is_text:
        return text
    located, problems = read_yaml(text.encode())
    if located is None or any(each.severity == "error" for each in problems):
        return text
    return located.value


def input_nodes(values: Mapping[str, Json]) -> tuple[Node, Node]:
    """Return the type and the node that a StartNode's ``inputs`` names."""
    return make_node(META_TYPE, {"type": "object"}), make_node(
        JSON_TYPES["object"], dict(values)
    )
