from __future__ import annotations

import pytest

from tests.builders import TEXT, variant
from uwfgit.engine.simulate.coverage import list_statuses, make_up_output, make_up_value
from uwfgit.store.canonical import Json


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(TEXT, "<x>", id="text"),
        pytest.param({}, "<x>", id="anything"),
        pytest.param(True, "<x>", id="true"),
        pytest.param({"const": 3}, 3, id="const"),
        pytest.param({"default": "d", "enum": ["a"]}, "d", id="default"),
        pytest.param({"enum": ["a", "b"]}, "a", id="enum"),
        pytest.param({"examples": ["e"], "type": "string"}, "e", id="example"),
        pytest.param({"type": "integer"}, 1, id="integer"),
        pytest.param({"type": "number", "minimum": 2.5}, 2.5, id="minimum"),
        pytest.param({"type": "boolean"}, True, id="boolean"),
        pytest.param({"type": "null"}, None, id="null"),
        pytest.param({"type": ["null", "boolean"]}, True, id="or-null"),
        pytest.param(
            {"type": "string", "format": "date"}, "2026-01-31", id="known-format"
        ),
        pytest.param({"type": "string", "format": "odd"}, "<x>", id="other-format"),
        pytest.param({"type": "array"}, ["<x 1>", "<x 2>"], id="list"),
        pytest.param({"type": "array", "maxItems": 1}, ["<x 1>"], id="short-list"),
        pytest.param(
            {"items": {"properties": {"a": {}}}}, [{"a": "<a>"}] * 2, id="items"
        ),
        pytest.param({"type": "object"}, {"x": "<x>"}, id="object"),
        pytest.param(
            {"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1, id="alternative"
        ),
    ],
)
def test_a_value_fits_its_schema(schema: Json, expected: object) -> None:
    assert make_up_value(schema, "x") == expected


def test_an_output_has_the_fields_of_its_status() -> None:
    schema = {"oneOf": [variant("done", ["a"], a=TEXT, b=TEXT), variant("bad", c=TEXT)]}

    assert make_up_output(schema, "done") == {
        "$status": "done",
        "a": "<a>",
        "b": "<b>",
    }
    assert make_up_output(schema, "done", required_only=True) == {
        "$status": "done",
        "a": "<a>",
    }
    assert make_up_output(schema, "bad") == {"$status": "bad", "c": "<c>"}


def test_optional_fields_inside_are_left_out_too() -> None:
    inner = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}
    schema = variant("done", ["x"], x=inner)

    made = make_up_output(schema, "done", required_only=True)

    assert made["x"] == {"a": "<a>"}


def test_a_role_without_a_status_gets_its_fields() -> None:
    schema = {"properties": {"a": TEXT}}

    assert list_statuses(schema) == ()
    assert make_up_output(schema, None) == {"a": "<a>"}


def test_statuses_are_named_in_order() -> None:
    schema = {"oneOf": [variant("z"), variant("a")]}

    assert list_statuses(schema) == ("z", "a")
