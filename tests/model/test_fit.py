from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from uwfgit.errors import CorruptError
from uwfgit.ids import Hash
from uwfgit.model.node import (
    DETAIL_TYPE,
    ERROR_TYPE,
    FORMAT_TYPES,
    HOLD_TYPE,
    META_TYPE,
    START_TYPE,
    STEP_TYPE,
    SUSPEND_TYPE,
    TEXT_TYPE,
    WORKFLOW_TYPE,
    Node,
    find_builtin_schema,
    make_node,
    read_payload,
    validate_node,
)
from uwfgit.model.schema.check import find_refs, validate_value
from uwfgit.model.schema.fit import compile_fit, compile_refs
from uwfgit.model.thread.step import Hold, StepNode, read_start
from uwfgit.model.workflow.workflow import workflow_from_node
from uwfgit.store.canonical import Json

THREAD = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
A, B, C = (Hash("0" * 12 + letter) for letter in "ABC")

STEP: dict[str, Any] = {
    "start": A,
    "prev": B,
    "role": "worker",
    "output": A,
    "body": "",
    "detail": C,
    "agent": "scripted",
    "edgePrompt": "Go",
    "note": None,
    "cwd": "/",
    "startedAtMs": 0,
    "completedAtMs": 1,
    "usage": {
        "turns": 1,
        "inputTokens": 1,
        "outputTokens": 1,
        "durationMs": 1,
        "costUsd": 0.5,
        "cacheReadTokens": 1,
    },
    "previousAttempts": [A, B],
    "code": {
        "before": None,
        "after": "0" * 40,
        "snapshot": {"before": None, "after": "0" * 40},
        "shared": [THREAD],
    },
    "extractedBy": None,
    "warnings": ["x"],
    "child": {"thread": THREAD, "oid": "0" * 40},
}
DETAIL: dict[str, Any] = {
    "kind": "scripted",
    "agentVersion": None,
    "sessionId": "s",
    "model": None,
    "exitCode": 0,
    "assembledPrompt": "p",
    "turns": [
        {
            "index": 0,
            "role": "assistant",
            "content": "c",
            "reasoning": None,
            "atMs": 1,
            "toolCalls": [{"name": "n", "arguments": {}, "result": None}],
        }
    ],
}
START: dict[str, Any] = {
    "workflow": A,
    "rules": 1,
    "prompt": "p",
    "cwd": "/",
    "cwdInRepo": None,
    "rootCommit": None,
    "depth": 1,
    "parent": {"thread": THREAD, "step": A},
    "inputs": A,
    "children": {"x": A},
    "private": True,
}
TARGET = {"role": "a", "prompt": "p", "location": None}
WORKFLOW: dict[str, Any] = {
    "version": 1,
    "name": "w",
    "description": "d",
    "roles": {
        "a": {
            "description": "",
            "goal": "",
            "capabilities": [],
            "procedure": "",
            "output": "",
            "frontmatter": B,
        }
    },
    "graph": {"a": {"done": TARGET}, "b": [{**TARGET, "when": None}]},
}
PAYLOADS: dict[Hash, Any] = {
    STEP_TYPE: STEP,
    DETAIL_TYPE: DETAIL,
    START_TYPE: START,
    WORKFLOW_TYPE: WORKFLOW,
    ERROR_TYPE: {"$status": "error", "error": "e", "phase": "agent"},
    SUSPEND_TYPE: {"$status": "$SUSPEND", "reason": "r"},
    HOLD_TYPE: {"reason": "r", "detail": A, "usage": STEP["usage"]},
    TEXT_TYPE: "text",
}
OPTIONAL = (
    *("depth", "inputs", "parent", "children", "private", "workflow", "x"),
    *("child", "snapshot", "shared", "cacheReadTokens", "cacheWriteTokens", "when"),
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "x", "error", "0" * 40, A, A.lower(), f"{A}\n"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["x", "turns", "role"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(value: Any) -> list[list[Any]]:  # noqa: ANN401 - any JSON
    found: list[list[Any]] = [[]]
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, dict | list):
        pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
    for key, inner in pairs:
        found += [[key, *rest] for rest in places(inner)]
    return found


def parts(value: Json) -> list[Json]:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return [value]
    return [part for item in value for part in parts(item)]


@st.composite
def changed_payloads(
    draw: st.DrawFn, among: Iterable[Hash] = tuple(PAYLOADS)
) -> tuple[Hash, Any]:
    """Give a payload of a built-in type with one place set, added or removed."""
    node_type = draw(st.sampled_from(sorted(among)))
    payload = copy.deepcopy(PAYLOADS[node_type])
    path = draw(st.sampled_from(places(payload)))
    if not path:
        return node_type, draw(VALUES)
    target = payload
    for key in path[:-1]:
        target = target[key]
    change = draw(st.sampled_from(["set", "drop", "add"]))
    if change == "drop":
        del target[path[-1]]
    elif change == "add" and isinstance(target, dict):
        target[draw(st.sampled_from(["more", *OPTIONAL]))] = draw(VALUES)
    else:
        target[path[-1]] = draw(VALUES)
    return node_type, payload


@given(changed_payloads())
def test_a_built_in_schema_fits_exactly_what_it_allows(
    changed: tuple[Hash, Any],
) -> None:
    node = make_node(*changed)
    schema = find_builtin_schema(node.type)
    fit = compile_fit(schema)

    assert fit is not None
    assert fit(node.payload) == (not validate_node(node, schema))


READERS: dict[Hash, Callable[[Node], object]] = {
    STEP_TYPE: lambda node: read_payload(node, StepNode),
    HOLD_TYPE: lambda node: read_payload(node, Hold),
    START_TYPE: read_start,
    WORKFLOW_TYPE: lambda node: workflow_from_node(
        node, lambda _: make_node(META_TYPE, {})
    ),
}


@given(changed_payloads(READERS))
def test_a_node_is_read_when_its_schema_takes_it_and_only_then(
    changed: tuple[Hash, Any],
) -> None:
    node = make_node(*changed)
    # Whole to JSON Schema, and too large for a number that counts.
    assume(not any(map(_is_huge, parts(node.payload))))

    if validate_node(node, find_builtin_schema(node.type)):
        with pytest.raises(CorruptError):
            READERS[node.type](node)
    else:
        READERS[node.type](node)


def _is_huge(value: Json) -> bool:
    return isinstance(value, float) and value.is_integer()


@given(changed_payloads())
def test_the_refs_of_a_built_in_type_are_those_its_schema_declares(
    changed: tuple[Hash, Any],
) -> None:
    node = make_node(*changed)
    schema = find_builtin_schema(node.type)
    collect = compile_refs(schema)
    found = set() if collect is None else set(collect(node.payload))

    assert found == set(find_refs(schema, node.payload))


@pytest.mark.parametrize(
    "node_type", [t for t in FORMAT_TYPES.values() if t != META_TYPE]
)
def test_an_example_of_each_built_in_type_fits(node_type: Hash) -> None:
    fit = compile_fit(find_builtin_schema(node_type))

    assert fit is not None
    assert fit(make_node(node_type, PAYLOADS[node_type]).payload)


ROLE = {
    "oneOf": [
        {
            "properties": {"$status": {"const": "done"}, "n": {"type": "integer"}},
            "required": ["$status"],
        },
        {"properties": {"$status": {"enum": ["bad", None]}}, "required": ["$status"]},
    ]
}


@given(st.dictionaries(st.sampled_from(["$status", "n"]), VALUES | st.just("done")))
def test_a_schema_of_variants_fits_exactly_what_it_allows(
    value: dict[str, Any],
) -> None:
    fit = compile_fit(ROLE)

    assert fit is not None
    assert fit(value) == (not validate_value(ROLE, value))


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"not": {"type": "string"}}, id="not"),
        pytest.param({"const": 1}, id="a number as const"),
        pytest.param({"format": "date"}, id="another format"),
        pytest.param({"pattern": "(a+)+$"}, id="a pattern of one's own"),
        pytest.param({"pattern": "^(a|aa){40}$"}, id="a pattern that may never end"),
        pytest.param({"properties": {"a": {"multipleOf": 2}}}, id="multipleOf inside"),
        pytest.param(False, id="false"),
        pytest.param({"type": "text"}, id="no type"),
    ],
)
def test_what_is_not_known_is_left_to_jsonschema(schema: Any) -> None:  # noqa: ANN401 - any JSON
    assert compile_fit(schema) is None


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"oneOf": [{"format": "ocas_ref"}]}, id="oneOf"),
        pytest.param({"prefixItems": [{"format": "ocas_ref"}]}, id="prefixItems"),
        pytest.param(
            {"format": "ocas_ref", "items": {"format": "ocas_ref"}}, id="both"
        ),
    ],
)
def test_refs_in_other_places_are_left_to_the_walk(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not compiled"):
        compile_refs(schema)


BOUNDED = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "array", "object", "integer", "number"]),
        "minLength": st.integers(0, 3),
        "maxLength": st.integers(0, 3),
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "minProperties": st.integers(0, 2),
        "maxProperties": st.integers(0, 2),
        "minimum": st.integers(-2, 2),
        "maximum": st.integers(-2, 2),
        "enum": st.lists(st.sampled_from(["", "x", "ab"]), min_size=1, unique=True),
        "required": st.lists(st.sampled_from(["x", "role"]), unique=True),
    },
)


@given(BOUNDED, VALUES)
def test_a_quick_yes_is_what_jsonschema_says(
    schema: dict[str, Any],
    value: Any,  # noqa: ANN401 - any JSON
) -> None:
    fit = compile_fit(schema)

    assert fit is not None
    told = Draft202012Validator(schema).is_valid(value)
    assert fit(value) == told
    assert (validate_value(schema, value) == ()) == told
