"""A record for other tools has the shape that agent-trace.dev publishes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from tests.code.repo import THREAD
from uwfgit.code.blame.agent_trace import make_record
from uwfgit.code.blame.porcelain import Commit
from uwfgit.code.blame.steps import KnownStep
from uwfgit.code.blame.why import Origin
from uwfgit.ids import Hash, Oid

SCHEMA = json.loads(
    (Path(__file__).parents[1] / "data" / "agent-trace-record.json").read_bytes()
)
"""The published rules, in words of our own."""

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


def test_the_version_is_the_specifications() -> None:
    assert record()["version"] == "0.1.0"


def _talk(made: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = made["files"][0]["conversations"][1]
    return found


SPOILT: dict[str, Callable[[dict[str, Any]], object]] = {
    "a version of two parts": lambda made: made.update(version="1.0"),
    "no id": lambda made: made.pop("id"),
    "an id that is no uuid": lambda made: made.update(id="1"),
    "a time without a zone": lambda made: made.update(timestamp="2026-01-01T00:00:00"),
    "a key of our own": lambda made: made.update(prompt="x"),
    "half a revision": lambda made: made["vcs"].update(revision="abc"),
    "a tool without a version": lambda made: made["tool"].pop("version"),
    "an absolute path": lambda made: made["files"][0].update(path="/a"),
    "a thread without a scheme": lambda made: _talk(made).update(url="01J8"),
    "another contributor": lambda made: _talk(made)["contributor"].update(type="bot"),
    "line 0": lambda made: _talk(made)["ranges"][0].update(start_line=0),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_the_rules_refuse_what_is_no_record(
    spoil: Callable[[dict[str, Any]], object],
) -> None:
    made = record()
    spoil(made)

    with pytest.raises(ValidationError):
        Draft202012Validator(SCHEMA).validate(made)


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
