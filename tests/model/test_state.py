from __future__ import annotations

import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins
from msgspec.structs import replace

from uwfgit.constants import MAX_STATE_BYTES, SUSPEND_CHARS
from uwfgit.errors import CorruptError, EarlierFormatError, FormatVersionError
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.thread.derive import format_message, format_status
from uwfgit.model.thread.event import event_trailers, read_event, tell_summary
from uwfgit.model.thread.state import (
    ForkedFrom,
    ThreadState,
    decode_state,
    encode_state,
)
from uwfgit.model.thread.step import Usage
from uwfgit.store.canonical import Json
from uwfgit.store.objects import Commit, Person

THREAD: Final = ThreadId("01JZZZZZZZZZZZZZZZZZZZZZZZ")
OTHER: Final = ThreadId("01JZZZZZZZZZZZZZZZZZZZZZZ0")
PLAIN: Final = ThreadState(
    format=1,
    thread=THREAD,
    status="idle",
    workflow_name="work",
    workflow_hash=Hash("BRE05MZJZQ3FG"),
    workflow_oid=Oid("12" * 20),
    start=Hash("F3PQMVR38S5WZ"),
    head=Hash("EMJAFM1R0P47T"),
    steps=3,
    current_role="dev",
    suspended_role=None,
    suspend_message=None,
    retry_at_ms=None,
    forked_from=None,
    completed_at_ms=None,
    usage=None,
    started_at_ms=1_800_000_000_000,
    updated_at_ms=1_800_000_000_001,
    started_by="Ada <ada@example.com>",
    updated_by="Bob <bob@example.com>",
)
FULL: Final = replace(
    PLAIN,
    status="suspended",
    current_role=None,
    suspended_role="dev",
    suspend_message="which: one?\n\u202e",
    forked_from=ForkedFrom(thread=OTHER, step=Hash("89CG2387DJBDT"), number=2),
    completed_at_ms=1_800_000_000_001,
    usage=Usage(turns=1, input_tokens=2, output_tokens=3, duration_ms=4, cost_usd=0.25),
)

EXPECTED: Final = b"""\
{
  "completedAtMs": null,
  "currentRole": "dev",
  "forkedFrom": null,
  "format": 1,
  "head": "EMJAFM1R0P47T",
  "retryAtMs": null,
  "start": "F3PQMVR38S5WZ",
  "startedAtMs": 1800000000000,
  "startedBy": "Ada <ada@example.com>",
  "status": "idle",
  "steps": 3,
  "suspendMessage": null,
  "suspendedRole": null,
  "threadId": "01JZZZZZZZZZZZZZZZZZZZZZZZ",
  "updatedAtMs": 1800000000001,
  "updatedBy": "Bob <bob@example.com>",
  "usage": null,
  "workflowHash": "BRE05MZJZQ3FG",
  "workflowName": "work",
  "workflowOid": "1212121212121212121212121212121212121212"
}
"""


def test_a_state_has_fixed_bytes() -> None:
    assert encode_state(PLAIN) == EXPECTED


@pytest.mark.parametrize("state", [PLAIN, FULL], ids=["plain", "full"])
def test_a_state_is_read_back(state: ThreadState) -> None:
    assert decode_state(encode_state(state)) == state


def test_where_a_fork_left_is_written_in_three_keys() -> None:
    assert to_builtins(FULL)["forkedFrom"] == {
        "thread": OTHER,
        "step": "89CG2387DJBDT",
        "number": 2,
    }


@given(st.text(max_size=SUSPEND_CHARS), st.text(min_size=1), st.integers(0, 99_999))
def test_any_text_and_number_is_read_back(message: str, name: str, number: int) -> None:
    state = replace(FULL, suspend_message=message, updated_by=name, steps=number)

    assert decode_state(encode_state(state)) == state


def test_the_longest_message_stays_within_the_bound() -> None:
    state = replace(FULL, suspend_message="\x01" * SUSPEND_CHARS)

    assert len(encode_state(state)) < MAX_STATE_BYTES


def _with(**changes: Json) -> dict[str, Json]:
    return {**to_builtins(FULL), **changes}


def _without(key: str) -> dict[str, Json]:
    return {name: item for name, item in to_builtins(FULL).items() if name != key}


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param([], id="a-list"),
        pytest.param(None, id="null"),
        pytest.param({}, id="empty"),
        *(
            pytest.param(_without(key), id=f"no-{key}")
            for key in to_builtins(FULL)
            if key != "retryAtMs"
        ),
        pytest.param(_with(extra=1), id="one-key-more"),
        pytest.param(_with(format=0), id="format-0"),
        pytest.param(_with(format="1"), id="format-as-text"),
        pytest.param(_with(format=True), id="format-true"),
        pytest.param(_with(threadId=THREAD.lower()), id="lower-case-thread"),
        pytest.param(_with(threadId="x"), id="no-thread"),
        pytest.param(_with(status="running"), id="status-running"),
        pytest.param(_with(status=None), id="status-null"),
        pytest.param(_with(workflowHash="x"), id="no-hash"),
        pytest.param(_with(head="emjafm1r0p47t"), id="lower-case-head"),
        pytest.param(_with(start=None), id="start-null"),
        pytest.param(_with(workflowOid="12" * 32), id="oid-of-sha256"),
        pytest.param(_with(workflowOid="AB" * 20), id="upper-case-oid"),
        pytest.param(_with(steps=True), id="steps-true"),
        pytest.param(_with(steps=1.5), id="steps-a-fraction"),
        pytest.param(_with(steps="3"), id="steps-as-text"),
        pytest.param(_with(currentRole=1), id="role-a-number"),
        pytest.param(_with(updatedAtMs=None), id="no-time"),
        pytest.param(_with(completedAtMs="x"), id="time-as-text"),
        pytest.param(_with(usage={}), id="usage-without-keys"),
        pytest.param(_with(usage=[]), id="usage-a-list"),
        pytest.param(
            _with(usage={**to_builtins(FULL)["usage"], "turns": True}),
            id="turns-true",
        ),
        pytest.param(
            _with(usage={**to_builtins(FULL)["usage"], "cacheReadTokens": None}),
            id="cache-null",
        ),
        pytest.param(
            _with(usage={**to_builtins(FULL)["usage"], "more": 1}),
            id="usage-one-key-more",
        ),
        pytest.param(
            _with(forkedFrom={**to_builtins(FULL)["forkedFrom"], "more": 1}),
            id="forked-from-one-key-more",
        ),
        pytest.param(_with(forkedFrom={}), id="forked-from-nowhere"),
        pytest.param(
            _with(forkedFrom={"thread": "x", "step": "89CG2387DJBDT", "number": 1}),
            id="forked-from-no-thread",
        ),
        pytest.param(
            _with(forkedFrom={"thread": OTHER, "step": "x", "number": 1}),
            id="forked-from-no-step",
        ),
        pytest.param(
            _with(forkedFrom={"thread": OTHER, "step": "89CG2387DJBDT", "number": "1"}),
            id="forked-from-number-as-text",
        ),
    ],
)
def test_a_state_that_is_malformed_is_corrupt(payload: Json) -> None:
    with pytest.raises(CorruptError):
        decode_state(_encode(payload))


def test_a_state_of_an_earlier_format_is_told_from_a_corrupt_one() -> None:
    with pytest.raises(EarlierFormatError):
        decode_state(_encode(_without("retryAtMs")))


@pytest.mark.parametrize(
    "key", ["steps", "retryAtMs", "startedAtMs", "updatedAtMs", "completedAtMs"]
)
def test_a_number_below_zero_is_corrupt(key: str) -> None:
    with pytest.raises(CorruptError):
        decode_state(_encode(_with(**{key: -1})))


def test_bytes_that_are_not_canonical_are_corrupt() -> None:
    with pytest.raises(CorruptError):
        decode_state(json.dumps(to_builtins(FULL)).encode())


def test_a_newer_format_is_named_whatever_else_it_holds() -> None:
    with pytest.raises(FormatVersionError) as caught:
        decode_state(_encode({"format": 2, "else": "unknown"}))

    assert (caught.value.found, caught.value.supported) == ("2", "1")


def _encode(payload: Json) -> bytes:
    text = json.dumps(payload, sort_keys=True, indent=2, ensure_ascii=False)
    return f"{text}\n".encode()


def test_an_event_takes_no_state_back_in_time() -> None:
    early = Person(name="Eve", email="eve@example.com", time=1_700_000_000)

    told = tell_summary(PLAIN, "All well.", None, by=early)

    assert told.state.updated_at_ms == PLAIN.updated_at_ms
    assert told.state.updated_by == early.who


@pytest.mark.parametrize("status", [None, "done", "-", '"so"', "größer", '"'])
def test_a_status_is_read_back_from_the_message_of_a_commit(status: str | None) -> None:
    trailers = event_trailers("step", THREAD, Status=format_status(status))
    who = Person(name="Eve", email="eve@example.com", time=1_700_000_000)
    commit = Commit(
        oid=Oid("12" * 20),
        tree=Oid("34" * 20),
        parents=(),
        author=who,
        committer=who,
        message=format_message("x", "", trailers.items()),
    )

    assert read_event(commit).status == status
