from __future__ import annotations

import pytest

from uwfgit.model.schema.check import validate_value
from uwfgit.model.schema.variants import (
    MAX_FORMS,
    Variant,
    find_forms,
    find_variants,
    is_named,
    merge_forms,
    narrow_schema,
)
from uwfgit.store.canonical import Json

Schema = dict[str, Json]


def _object(status: Json, *required: str, **properties: Json) -> Schema:
    return {
        "properties": {"$status": status, **properties},
        "required": ["$status", *required],
    }


def _const(status: str) -> Schema:
    return {"const": status}


def test_one_of_gives_a_variant_per_status_with_the_properties_around() -> None:
    schema = {
        "type": "object",
        "properties": {"note": {"type": "string"}},
        "required": ["note"],
        "oneOf": [
            _object(_const("ready"), "plan", plan={"type": "string"}),
            {**_object(_const("stuck")), "additionalProperties": False},
        ],
    }

    assert find_variants(schema) == (
        Variant(
            status="ready",
            path=("oneOf", 0),
            properties={
                "note": {"type": "string"},
                "$status": {"const": "ready"},
                "plan": {"type": "string"},
            },
            required=frozenset({"note", "$status", "plan"}),
            closed=False,
            order=("note", "$status", "plan"),
        ),
        Variant(
            status="stuck",
            path=("oneOf", 1),
            properties={"note": {"type": "string"}, "$status": {"const": "stuck"}},
            required=frozenset({"note", "$status"}),
            closed=True,
            order=("note", "$status"),
        ),
    )


_AB = [_object(_const("a")), _object(_const("b"))]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(_object(_const("a")), [("a", ())], id="flat-const"),
        pytest.param(_object({"enum": ["a", "b"]}), [("a", ()), ("b", ())], id="enum"),
        pytest.param(_object({"enum": ["a"]}), [("a", ())], id="enum-of-one"),
        pytest.param(
            {"anyOf": _AB}, [("a", ("anyOf", 0)), ("b", ("anyOf", 1))], id="any-of"
        ),
        pytest.param(
            {"oneOf": [_object({"enum": ["a", "b"]}), _object(_const("c"))]},
            [("a", ("oneOf", 0)), ("b", ("oneOf", 0)), ("c", ("oneOf", 1))],
            id="enum-in-a-variant",
        ),
        pytest.param(
            {"oneOf": [_object(_const("a")), _object(_const("a"))]},
            [("a", ("oneOf", 0)), ("a", ("oneOf", 1))],
            id="one-status-twice",
        ),
        pytest.param(
            {"allOf": [{"oneOf": _AB}, {"properties": {"x": {}}}]},
            [("a", ("allOf", 0, "oneOf", 0)), ("b", ("allOf", 0, "oneOf", 1))],
            id="through-all-of",
        ),
        pytest.param(
            {"oneOf": [{"anyOf": _AB}, _object(_const("c"))]},
            [
                ("a", ("oneOf", 0, "anyOf", 0)),
                ("b", ("oneOf", 0, "anyOf", 1)),
                ("c", ("oneOf", 1)),
            ],
            id="nested",
        ),
        pytest.param(
            {**_object({"enum": ["a", "b", "c"]}), "oneOf": _AB},
            [("a", ("oneOf", 0)), ("b", ("oneOf", 1))],
            id="enum-around-variants",
        ),
        pytest.param(
            {**_object(_const("b")), "oneOf": _AB},
            [("b", ("oneOf", 1))],
            id="impossible-variant",
        ),
        pytest.param(
            {**_object(_const("a")), "anyOf": [{"required": ["x"]}, {"required": []}]},
            [("a", ())],
            id="alternatives-that-fix-no-status",
        ),
        pytest.param(
            {"oneOf": [*_AB, {"type": "null"}]},
            [("a", ("oneOf", 0)), ("b", ("oneOf", 1))],
            id="alternative-that-is-no-object",
        ),
        pytest.param(_object({"type": "string"}), [], id="free-status"),
        pytest.param(_object({"const": 1}), [], id="status-is-no-text"),
        pytest.param(_object({"enum": ["a", 1]}), [], id="enum-with-a-number"),
        pytest.param(_object({"enum": []}), [], id="empty-enum"),
        pytest.param(_object(True), [], id="status-of-anything"),  # noqa: FBT003 - a schema
        pytest.param({"properties": {"x": {}}}, [], id="no-status"),
        pytest.param(
            {"oneOf": [_object(_const("a")), {"properties": {}}]},
            [],
            id="a-variant-fixes-none",
        ),
        pytest.param({}, [], id="empty-schema"),
        pytest.param(True, [], id="boolean-schema"),
        pytest.param(
            {"oneOf": "x", "properties": 3, "required": 1}, [], id="no-schema"
        ),
    ],
)
def test_statuses_and_their_places(
    schema: Json, expected: list[tuple[str, tuple[str | int, ...]]]
) -> None:
    assert [(each.status, each.path) for each in find_variants(schema)] == expected


def test_a_property_on_both_levels_keeps_what_each_says() -> None:
    schema = {
        "properties": {"plan": {"type": "string"}},
        "oneOf": [_object(_const("a"), plan={"minLength": 3}, free=True)],
    }

    (variant,) = find_variants(schema)

    assert variant.properties["plan"] == {"type": "string", "minLength": 3}


def test_alternatives_of_one_status_require_what_all_of_them_require() -> None:
    schema = {
        **_object(_const("a")),
        "anyOf": [
            {"properties": {"x": {"type": "string"}}, "required": ["x", "z"]},
            {"properties": {"y": {"type": "string"}}, "required": ["y", "z"]},
        ],
    }

    (variant,) = find_variants(schema)

    assert set(variant.properties) == {"$status", "x", "y"}
    assert variant.required == {"$status", "z"}


@pytest.mark.parametrize(
    ("schema", "name", "expected"),
    [
        pytest.param({"properties": {"x": {}}}, "x", True, id="declared"),
        pytest.param({"properties": {"x": {}}}, "y", False, id="not-declared"),
        pytest.param({"additionalProperties": True}, "y", True, id="all-allowed"),
        pytest.param({"additionalProperties": {}}, "y", True, id="by-a-schema"),
        pytest.param({"unevaluatedProperties": {}}, "y", True, id="unevaluated"),
        pytest.param({"additionalProperties": False}, "y", False, id="closed"),
        pytest.param({"patternProperties": {"^y": {}}}, "yes", True, id="pattern"),
        pytest.param({"patternProperties": {"(": {}}}, "y", False, id="bad-pattern"),
        pytest.param({"then": {"properties": {"y": {}}}}, "y", True, id="condition"),
        pytest.param(
            {"dependentSchemas": {"x": {"properties": {"y": {}}}}},
            "y",
            True,
            id="dependent",
        ),
    ],
)
def test_names_a_schema_knows(schema: Schema, name: str, *, expected: bool) -> None:
    assert is_named(merge_forms(schema), name) is expected


def test_alternatives_without_a_status_do_not_multiply() -> None:
    pair: Schema = {"oneOf": [{"properties": {"x": {}}}, {"properties": {"y": {}}}]}
    schema = {**_object(_const("a")), "allOf": [pair] * 60}

    assert [each.status for each in find_variants(schema)] == ["a"]


def test_more_combinations_than_the_bound_fix_nothing() -> None:
    many = [_object(_const(str(number))) for number in range(MAX_FORMS + 1)]

    assert find_variants({"oneOf": many}) == ()
    assert find_forms({"oneOf": many})[0].open


def test_narrowed_schema_reports_against_the_chosen_variant() -> None:
    schema = {
        "allOf": [
            {"required": ["z"]},
            {"oneOf": [_object(_const("a"), "x"), _object(_const("b"), "y")]},
        ]
    }

    narrow = narrow_schema(schema, ("allOf", 1, "oneOf", 1))

    found = validate_value(narrow, {"$status": "b"})
    assert [each.path for each in found] == [("z",), ("y",)]
