from __future__ import annotations

import pytest

from uwfgit.cli.store.nodes import fill_absent
from uwfgit.model.node import (
    DETAIL_TYPE,
    STEP_TYPE,
    find_builtin_schema,
    make_node,
    validate_node,
)
from uwfgit.store.canonical import Json

STEP = {
    "start": "EYYWSMTMT9FFT",
    "role": "writer",
    "output": "EYYWSMTMT9FFT",
    "detail": "EYYWSMTMT9FFT",
    "body": "",
    "agent": "a",
    "edgePrompt": "p",
    "cwd": "/",
    "startedAtMs": 1,
    "completedAtMs": 2,
}


def test_a_step_with_keys_left_out_is_a_valid_step() -> None:
    schema = find_builtin_schema(STEP_TYPE)

    filled = fill_absent(schema, STEP)

    assert validate_node(make_node(STEP_TYPE, filled), schema) == ()
    assert filled["code"] == {"before": None, "after": None}
    assert filled["warnings"] == []
    assert filled["previousAttempts"] is None


def test_turns_of_a_detail_are_filled_inside() -> None:
    schema = find_builtin_schema(DETAIL_TYPE)
    turn = {"index": 0, "role": "assistant", "content": "x", "atMs": 1}
    call = {"name": "ls", "arguments": {}}
    detail = {
        "kind": "mine",
        "assembledPrompt": "",
        "turns": [turn, {**turn, "toolCalls": [call]}],
    }

    filled = fill_absent(schema, detail)

    assert validate_node(make_node(DETAIL_TYPE, filled), schema) == ()
    assert filled["turns"][1]["toolCalls"] == [{**call, "result": None}]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        pytest.param(True, {"a": 1}, {"a": 1}, id="no-schema"),
        pytest.param({"required": ["a"]}, {}, {}, id="no-empty-value"),
        pytest.param(
            {"required": ["a"], "properties": {"a": {"type": "string"}}},
            {},
            {},
            id="a-text-stays-missing",
        ),
        pytest.param(
            {"required": ["a"], "properties": {"a": {"type": "null"}}},
            {"a": 3},
            {"a": 3},
            id="given-values-stay",
        ),
        pytest.param({"type": "object"}, "text", "text", id="another-type"),
    ],
)
def test_nothing_is_made_up(schema: Json, value: Json, expected: Json) -> None:
    assert fill_absent(schema, value) == expected
