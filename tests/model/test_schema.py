from __future__ import annotations

import subprocess
import sys
import time

import pytest

from uwfgit.errors import OverrunError
from uwfgit.ids import Hash
from uwfgit.model.node import (
    META_TYPE,
    START_TYPE,
    find_builtin_schema,
    make_node,
    make_text,
    validate_node,
)
from uwfgit.model.schema.check import Violation, check_schema, find_refs, validate_value
from uwfgit.model.schema.messages import MESSAGE_CHARS
from uwfgit.store.canonical import Json

ONE = Hash("0000000000001")
TWO = Hash("0000000000002")
REF = {"type": "string", "format": "ocas_ref"}


def _deep(levels: int) -> dict[str, Json]:
    schema: dict[str, Json] = {"type": "string"}
    for _ in range(levels - 1):
        schema = {"properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({}, [], id="empty"),
        pytest.param(True, [], id="true"),
        pytest.param(False, [], id="false"),
        pytest.param({"type": "object", "properties": {"a": REF}}, [], id="good"),
        pytest.param(_deep(40), [], id="forty-deep"),
        pytest.param(_deep(41), [("J1", ())], id="forty-one-deep"),
        pytest.param(_deep(400), [("J1", ())], id="endless"),
        pytest.param("x", [("J1", ())], id="text"),
        pytest.param(None, [("J1", ())], id="null"),
        pytest.param([], [("J1", ())], id="list"),
        pytest.param({"type": "strin"}, [("J1", ("type",))], id="unknown-type"),
        pytest.param(
            {"properties": {"a": {"minLength": "1"}}},
            [("J1", ("properties", "a", "minLength"))],
            id="keyword-of-wrong-type",
        ),
        pytest.param({"required": "a"}, [("J1", ("required",))], id="required-text"),
        pytest.param({"pattern": "("}, [("J1", ("pattern",))], id="broken-pattern"),
        pytest.param(
            {"pattern": "a{99999999999999}"}, [("J1", ("pattern",))], id="huge-pattern"
        ),
        pytest.param(
            {"properties": {"a": {"$ref": "#/x"}}},
            [("J2", ("properties", "a", "$ref"))],
            id="ref",
        ),
        pytest.param(
            {"items": {"$dynamicRef": "#x"}},
            [("J2", ("items", "$dynamicRef"))],
            id="dynamic-ref",
        ),
        pytest.param(
            {"$recursiveRef": "#"}, [("J2", ("$recursiveRef",))], id="recursive-ref"
        ),
        pytest.param({"$defs": {"a": {}}}, [("J2", ("$defs",))], id="defs"),
        pytest.param(
            {"definitions": {"a": {}}}, [("J2", ("definitions",))], id="definitions"
        ),
        pytest.param(
            {"oneOf": [{}, {"not": {"$ref": "http://localhost:1/x"}}]},
            [("J2", ("oneOf", 1, "not", "$ref"))],
            id="remote-ref-deep-inside",
        ),
        pytest.param(
            {"properties": {"$ref": {}, "$defs": {}}, "required": ["$ref"]},
            [],
            id="property-named-ref",
        ),
        pytest.param(
            {"const": {"$ref": "x"}, "enum": [{"$defs": 1}], "default": {"$ref": 1}},
            [],
            id="ref-inside-values",
        ),
        pytest.param(
            {"properties": {"a": {}}, "required": ["a", "b"]},
            [("J3", ("required", 1))],
            id="required-not-declared",
        ),
        pytest.param(
            {"properties": {"a": {}}, "oneOf": [{"required": ["a"]}]},
            [],
            id="declared-around",
        ),
        pytest.param(
            {"allOf": [{"properties": {"a": {}}}], "required": ["a"]},
            [],
            id="declared-in-all-of",
        ),
        pytest.param(
            {"properties": {"a": {"required": ["x"]}, "x": {}}},
            [("J3", ("properties", "a", "required", 0))],
            id="declared-on-another-level",
        ),
        pytest.param(
            {"if": {"required": ["x"]}, "not": {"required": ["y"]}}, [], id="conditions"
        ),
        pytest.param(
            {"patternProperties": {"^x": {}}, "required": ["xy"]}, [], id="by-pattern"
        ),
        pytest.param({"format": "colour"}, [("J4", ("format",))], id="unknown-format"),
        pytest.param(
            {"additionalProperties": False, "allOf": [{"properties": {"a": {}}}]},
            [("J5", ("additionalProperties",))],
            id="closed-beside-a-part",
        ),
        pytest.param(
            {
                "additionalProperties": False,
                "properties": {"a": {}},
                "allOf": [{"properties": {"a": {"type": "string"}}}],
                "not": {"properties": {"b": {}}},
            },
            [],
            id="closed-and-declared",
        ),
        pytest.param(
            {"additionalProperties": {}, "allOf": [{"properties": {"a": {}}}]},
            [],
            id="open-beside-a-part",
        ),
        pytest.param({"format": "date-time"}, [], id="known-format"),
    ],
)
def test_schema_check(
    schema: Json, expected: list[tuple[str, tuple[Json, ...]]]
) -> None:
    assert [(each.code, each.path) for each in check_schema(schema)] == expected


def test_what_may_be_meant_is_a_warning() -> None:
    schema = {"required": ["a"], "format": "x", "$ref": "y", "type": 1}

    severities = {each.code: each.severity for each in check_schema(schema)}

    assert severities == {
        "J1": "error",
        "J2": "error",
        "J3": "warning",
        "J4": "warning",
    }


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        pytest.param({"type": "string"}, "x", [], id="fits"),
        pytest.param(
            {"type": "string"},
            12,
            ["must be text, found the number 12; put it in quotes"],
            id="number-for-text",
        ),
        pytest.param(
            {"type": "string"},
            True,
            ["must be text, found true; put it in quotes"],
            id="boolean-for-text",
        ),
        pytest.param(
            {"type": "integer"},
            "12",
            ['must be a whole number, found the text "12"'],
            id="text-for-number",
        ),
        pytest.param({"type": "integer"}, 1.0, [], id="integral-float"),
        pytest.param(
            {"type": "array"}, {}, ["must be a list, found a mapping"], id="mapping"
        ),
        pytest.param(
            {"type": ["string", "null"]},
            [],
            ["must be text or null, found a list"],
            id="two-types",
        ),
        pytest.param({"const": "a"}, "b", ['must be "a", found the text "b"'], id="c"),
        pytest.param(
            {"enum": ["a", 1]},
            None,
            ['found null, must be one of "a", 1'],
            id="enum",
        ),
        pytest.param(
            {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "x",
            ['must be a whole number or null, found the text "x"'],
            id="nullable",
        ),
        pytest.param(
            {"anyOf": [{"type": "null"}, {"type": "string", "minLength": 2}]},
            "x",
            ["must have at least 2 characters, found 1"],
            id="closest-alternative",
        ),
        pytest.param(
            {"minItems": 1}, [], ["must have at least 1 item, found 0"], id="one-item"
        ),
        pytest.param(
            {"oneOf": [{"type": "string"}, {"minLength": 1}]},
            "x",
            ["fits more than one of the allowed forms"],
            id="ambiguous",
        ),
        pytest.param(
            {"additionalProperties": False, "properties": {"a": {}}},
            {"a": 1, "b": 2},
            ['has a field that is not allowed: "b"'],
            id="closed",
        ),
        pytest.param(
            {"format": "date"},
            "2026-13-01",
            ['"2026-13-01" is not a valid date'],
            id="format",
        ),
        pytest.param({"format": "colour"}, "x", [], id="unknown-format"),
        pytest.param(
            REF, "x", ['"x" is not the hash of a node that is known here'], id="ref"
        ),
        pytest.param(REF, ONE, [], id="ref-by-shape"),
        pytest.param({"pattern": "^a"}, "b", ['"b" does not match "^a"'], id="pattern"),
        pytest.param({"minimum": 2}, 1, ["must be at least 2, found 1"], id="minimum"),
        pytest.param(
            {"maxItems": 1}, [1, 2], ["must have at most 1 item, found 2"], id="items"
        ),
        pytest.param(
            {"uniqueItems": True},
            [1, 1],
            ["must not have the same item twice"],
            id="unique",
        ),
        pytest.param({"not": {}}, 1, ["is what the schema rules out here"], id="not"),
        pytest.param({"properties": {"a": False}}, {}, [], id="false-for-absent"),
        pytest.param(
            {"properties": {"a": False}}, {"a": 1}, ["is not allowed here"], id="false"
        ),
        pytest.param(
            {"anyOf": [{"type": "boolean"}, False]},
            "b",
            ['must be true or false, found the text "b"'],
            id="false-beside-another-form",
        ),
        pytest.param({"oneOf": [False]}, 1, ["is not allowed here"], id="false-alone"),
        pytest.param(
            {"dependentRequired": {"a": ["b"]}},
            {"a": 1},
            ["a mapping does not satisfy 'dependentRequired'"],
            id="other-keyword",
        ),
        pytest.param(
            {"$ref": "http://localhost:1/x"},
            1,
            ["'$ref' is not allowed in a schema"],
            id="refused-schema",
        ),
    ],
)
def test_value_against_schema(schema: Json, value: Json, expected: list[str]) -> None:
    assert [each.message for each in validate_value(schema, value)] == expected


def test_every_missing_field_is_named_once() -> None:
    schema = {"required": ["a", "b", "c"]}

    assert validate_value(schema, {"b": 1}) == (
        Violation(path=("a",), message="is required but missing"),
        Violation(path=("c",), message="is required but missing"),
    )


def test_paths_lead_into_lists() -> None:
    schema = {"properties": {"a": {"items": {"required": ["b"]}}}}

    (violation,) = validate_value(schema, {"a": [{"b": 1}, {}]})

    assert violation.path == ("a", 1, "b")


def test_links_decide_what_a_reference_may_hold() -> None:
    schema = {"items": REF}

    found = validate_value(schema, [ONE, TWO, 3], is_link=lambda text: text == TWO)

    assert [each.path for each in found] == [(0,), (2,)]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param({"const": "x" * 999}, "y" * 999_999, id="const"),
        pytest.param({"enum": ["x" * 99] * 99}, "y" * 999_999, id="enum"),
        pytest.param({"type": "integer"}, "y\n" * 999_999, id="type"),
        pytest.param({"format": "date"}, "y" * 999_999, id="format"),
        pytest.param({"additionalProperties": False}, {"k" * 999_999: 1}, id="extra"),
    ],
)
def test_messages_are_short_whatever_the_value(schema: Json, value: Json) -> None:
    (violation,) = validate_value(schema, value)

    assert len(violation.message) <= MESSAGE_CHARS
    assert "\n" not in violation.message


def test_value_nested_without_end_is_a_violation() -> None:
    value: Json = []
    for _ in range(5_000):
        value = [value]

    found = validate_value({"uniqueItems": True}, [value, [value]])

    assert found == (Violation(path=(), message="is nested too deeply to check"),)


def test_violations_are_bounded() -> None:
    found = validate_value({"items": {"type": "string"}}, list(range(10_000)))

    assert len(found) == 100


@pytest.mark.parametrize("name", ["hostname", "idn-hostname", "regex", "iri", "uri"])
@pytest.mark.parametrize("text", ["", ".", "a" * 300, "(" * 5_000, "a{99999999999}"])
def test_no_text_makes_a_format_raise(name: str, text: str) -> None:
    assert len(validate_value({"format": name}, text)) <= 1


def test_schema_node_is_checked_as_a_schema() -> None:
    meta = find_builtin_schema(META_TYPE)

    assert validate_node(make_node(META_TYPE, {"type": "x"}), meta) != ()
    assert (
        validate_node(make_node(META_TYPE, {"$anchor": "a", "required": ["b"]}), meta)
        == ()
    )


@pytest.mark.parametrize(
    ("payload", "fits"), [("x", True), ({}, False)], ids=["text", "no-text"]
)
def test_built_in_node_is_checked_against_its_schema(
    payload: Json, *, fits: bool
) -> None:
    node = make_text("x") if fits else make_node(START_TYPE, payload)

    assert (validate_node(node, find_builtin_schema(node.type)) == ()) is fits


def test_a_built_in_name_does_not_vouch_for_another_schema() -> None:
    node = make_node(START_TYPE, {})

    (violation,) = validate_node(node, {"$ref": "#"})

    assert violation.path == ("$ref",)


@pytest.mark.parametrize(
    ("schema", "payload", "expected"),
    [
        pytest.param(REF, ONE, [ONE], id="itself"),
        pytest.param(REF, "hello", [], id="no-hash"),
        pytest.param(REF, ONE.lower() + "x", [], id="too-long"),
        pytest.param(REF, 1, [], id="no-text"),
        pytest.param({"type": "string"}, ONE, [], id="plain-string"),
        pytest.param(True, ONE, [], id="boolean-schema"),
        pytest.param(
            {"properties": {"a": REF, "b": REF}},
            {"b": TWO, "a": ONE},
            [TWO, ONE],
            id="p",
        ),
        pytest.param({"items": REF}, [ONE, TWO, ONE], [ONE, TWO], id="each-once"),
        pytest.param(
            {"type": ["array", "null"], "items": REF}, [ONE], [ONE], id="nullable-list"
        ),
        pytest.param(
            {"prefixItems": [{}, REF], "items": False}, [ONE, TWO], [TWO], id="prefix"
        ),
        pytest.param(
            {"prefixItems": [{}], "items": REF}, [ONE, TWO], [TWO], id="after-prefix"
        ),
        pytest.param(
            {"properties": {"a": {}}, "additionalProperties": REF},
            {"a": ONE, "b": TWO},
            [TWO],
            id="additional",
        ),
        pytest.param(
            {"patternProperties": {"^x": REF}, "additionalProperties": REF},
            {"xa": ONE, "b": TWO},
            [ONE, TWO],
            id="pattern",
        ),
        pytest.param({"patternProperties": {"(": REF}}, {"a": ONE}, [], id="bad-re"),
        pytest.param({"anyOf": [REF, {"type": "null"}]}, ONE, [ONE], id="any-of"),
        pytest.param({"oneOf": [{"items": REF}, {}]}, [ONE], [ONE], id="one-of"),
        pytest.param(
            {"allOf": [{"properties": {"a": REF}}], "properties": {"b": REF}},
            {"a": ONE, "b": TWO},
            [ONE, TWO],
            id="all-of-and-siblings",
        ),
        pytest.param({"if": {}, "then": REF}, ONE, [ONE], id="then"),
        pytest.param({"if": REF}, ONE, [ONE], id="if"),
        pytest.param({"else": {"items": REF}}, [ONE], [ONE], id="else"),
        pytest.param({"not": REF}, ONE, [], id="not"),
    ],
)
def test_refs_of_a_payload(schema: Json, payload: Json, expected: list[Hash]) -> None:
    assert list(find_refs(schema, payload)) == expected


@pytest.mark.slow
def test_links_that_cannot_be_found_in_time_are_an_error() -> None:
    schema = {"patternProperties": {"^(a|a)*$": REF}}

    with pytest.raises(OverrunError) as told:
        find_refs(schema, {"a" * 60 + "!": ONE})

    assert str(told.value) == (
        "looking for the links of a node takes more than 5 seconds"
    )


@pytest.mark.parametrize(
    "items",
    [
        pytest.param([{"a": n} for n in range(20_000)], id="mappings"),
        pytest.param(
            [{"a": n} if n % 2 else str(n) for n in range(20_000)], id="mixed"
        ),
        pytest.param([[n, 0] for n in range(20_000)], id="lists"),
    ],
)
def test_many_items_are_told_apart_in_time(items: list[Json]) -> None:
    schema: Json = {"uniqueItems": True}

    before = time.process_time()
    assert validate_value(schema, items) == ()
    # With the import of what checks formats; unbounded it took minutes.
    assert time.process_time() - before < 10
    (found,) = validate_value(schema, [*items, items[7]])
    assert found.message == "must not have the same item twice"


@pytest.mark.parametrize(
    ("items", "is_unique"),
    [
        ([1, True, 0, False, "1", None, [1], {"a": 1}], True),
        ([1, 1.0], False),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], False),
        ([[{"a": 1.0}], [{"a": 1}]], False),
        ("aa", True),
    ],
)
def test_items_are_equal_as_json_has_it(items: Json, *, is_unique: bool) -> None:
    assert (validate_value({"uniqueItems": True}, items) == ()) is is_unique


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("iri", marks=pytest.mark.slow),
        pytest.param("iri-reference", marks=pytest.mark.slow),
        "uri-template",
        "regex",
    ],
)
def test_a_text_far_too_long_for_its_format_costs_nothing(name: str) -> None:
    before = time.process_time()

    assert validate_value({"format": name}, "http://" + "é" * 200_000) != ()
    assert validate_value({"format": name}, "http://e.org/" + "a" * 2_000) == ()

    # With the import of what checks formats; unbounded it took minutes.
    assert time.process_time() - before < 10


def test_a_node_of_a_built_in_type_needs_no_jsonschema_to_fit() -> None:
    code = """
import sys
from uwfgit.model.node import make_text, validate_node
assert validate_node(make_text("a"), {"type": "string"}) == ()
assert "jsonschema" not in sys.modules
"""

    done = subprocess.run([sys.executable, "-c", code], check=False)

    assert done.returncode == 0
