"""A record for other tools has the shape that agent-trace.dev publishes."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.code.repo import THREAD
from uwfgit.code.blame.agent_trace import make_record
from uwfgit.code.blame.porcelain import Commit
from uwfgit.code.blame.steps import KnownStep
from uwfgit.code.blame.why import Origin
from uwfgit.ids import Hash, Oid

_WHO = {
    "type": "object",
    "additionalProperties": False,
    "required": ["type"],
    "properties": {
        "type": {"enum": ["human", "ai", "mixed", "unknown"]},
        "model_id": {"type": "string", "maxLength": 250},
    },
}
_LINE = {"type": "integer", "minimum": 1}
_RANGE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["start_line", "end_line"],
    "properties": {
        "start_line": _LINE,
        "end_line": _LINE,
        "content_hash": {"type": "string"},
        "contributor": _WHO,
    },
}
_TALK = {
    "type": "object",
    "additionalProperties": False,
    "required": ["ranges"],
    "properties": {
        "url": {"type": "string", "format": "uri"},
        "contributor": _WHO,
        "ranges": {"type": "array", "items": _RANGE},
        "related": {"type": "array"},
    },
}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["version", "id", "timestamp", "files"],
    "properties": {
        "version": {"type": "string", "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+$"},
        "id": {
            "type": "string",
            "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}"
            "-[0-9a-f]{12}$",
        },
        "timestamp": {
            "type": "string",
            "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$",
        },
        "vcs": {
            "type": "object",
            "additionalProperties": False,
            "required": ["type", "revision"],
            "properties": {
                "type": {"enum": ["git", "jj", "hg", "svn"]},
                "revision": {"type": "string"},
            },
        },
        "tool": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name", "version"],
            "properties": {"name": {"type": "string"}, "version": {"type": "string"}},
        },
        "files": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["path", "conversations"],
                "properties": {
                    "path": {"type": "string"},
                    "conversations": {"type": "array", "items": _TALK},
                },
            },
        },
        "metadata": {"type": "object"},
    },
}
"""The published schema's rules, in words of our own."""

STEP = KnownStep(
    thread=THREAD,
    number=2,
    hash=Hash("0000000000002"),
    detail=Hash("0000000000003"),
    role="developer",
    agent="claude",
    status="done",
    prompt="Do it secretly.",
    note=None,
    before=None,
    after=None,
    head_before=None,
    head_after=None,
    started_at=1,
    completed_at=2,
)
COMMIT = Commit(
    oid=Oid("a" * 40),
    author="Ada",
    mail="ada@example.org",
    authored_at=1,
    committed_at=1,
    summary="s",
)
ORIGINS = (
    Origin(number=1, text=b"a", commit=COMMIT),
    Origin(number=2, text=b"b", steps=(STEP,)),
    Origin(number=3, text=b"c", steps=(STEP,)),
    Origin(number=4, text=b"d", steps=(STEP,), commit=COMMIT),
    Origin(number=6, text=b"e", steps=(STEP,)),
)


def record(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - as make_record takes them
    facts: dict[str, Any] = {
        "models": {STEP.hash: "anthropic/claude-opus-4-5"},
        "revision": "b" * 40,
        "tool_version": "1.2.3",
        "now": 1_800_000_000,
        "random": bytes(range(16)),
    }
    return make_record([("src/a.py", ORIGINS)], **(facts | changes))


@pytest.mark.parametrize("revision", [None, "b" * 40])
def test_a_record_validates(revision: str | None) -> None:
    Draft202012Validator(SCHEMA).validate(record(revision=revision))


def test_lines_are_grouped_by_who_wrote_them() -> None:
    talks = record()["files"][0]["conversations"]

    told = [
        (
            talk["contributor"]["type"],
            [(each["start_line"], each["end_line"]) for each in talk["ranges"]],
        )
        for talk in talks
    ]
    assert told == [
        ("human", [(1, 1)]),
        ("ai", [(2, 3), (6, 6)]),
        ("unknown", [(4, 4)]),
    ]
    assert talks[1]["contributor"]["model_id"] == "anthropic/claude-opus-4-5"
    assert talks[1]["url"] == f"urn:uwf:{THREAD}:2"


def test_no_prompt_and_no_address_is_in_it() -> None:
    text = str(record())

    assert "secretly" not in text
    assert "example.org" not in text
