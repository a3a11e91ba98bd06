from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from uwfgit.ids import Oid, ThreadId
from uwfgit.sync.exchange.queue_state import (
    MAX_LEASE,
    QueueState,
    check_queue_move,
    format_queue_state,
    is_worker_name,
    parse_queue_state,
)

QUEUED = QueueState(
    word="queued",
    thread=ThreadId("01J8Z3K4M5N6P7Q8R9S0T1V2W3"),
    head=Oid("a" * 40),
    workflow=Oid("b" * 40),
    nonce="0123456789abcdef",
)
CLAIMED = replace(QUEUED, word="claimed", worker="w1", lease=60)
WAITING = replace(QUEUED, word="waiting", reason="Which one?")
DONE = replace(QUEUED, word="done", reason="end")


@given(
    reason=st.none() | st.text(max_size=400),
    retry=st.none() | st.integers(min_value=0, max_value=2**41),
)
def test_what_is_written_is_read_back(reason: str | None, retry: int | None) -> None:
    state = replace(WAITING, reason=reason, retry_at_ms=retry)

    message = format_queue_state(state)

    assert message.isascii()
    assert parse_queue_state(message) == state


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("Uwf-Lease: 60", "Uwf-Lease: 31536000000", id="a-lease-of-ages"),
        pytest.param("Uwf-Lease: 60", f"Uwf-Lease: {MAX_LEASE + 1}", id="over-long"),
        pytest.param("Uwf-Lease: 60", "Uwf-Lease: -1", id="negative"),
        pytest.param("Uwf-Lease: 60", "Uwf-Lease: 060", id="padded"),
        pytest.param("Uwf-Lease: 60\n", "", id="no-lease"),
        pytest.param("Uwf-Worker: w1", "Uwf-Worker: \x1b[31mred", id="escape"),
        pytest.param("Uwf-Worker: w1", "Uwf-Worker: a b", id="blank-in-the-name"),
        pytest.param("Uwf-Worker: w1", f"Uwf-Worker: {'w' * 65}", id="long-name"),
        pytest.param("Uwf-Queue: claimed", "Uwf-Queue: mine", id="unknown-word"),
        pytest.param("Uwf-Queue: claimed", "Uwf-Queue: done", id="a-claim-of-done"),
        pytest.param("Uwf-Nonce: ", "Uwf-More: x\nUwf-Nonce: ", id="unknown-trailer"),
        pytest.param("Uwf-Head: ", "Uwf-Head: x", id="no-oid"),
        pytest.param("queue 01J8", "queue 11J8", id="another-subject"),
    ],
)
def test_what_uwf_would_not_write_is_no_state(old: str, new: str) -> None:
    message = format_queue_state(CLAIMED)

    assert old in message
    assert parse_queue_state(message.replace(old, new, 1)) is None


def test_a_reason_nested_without_end_is_none_of_ours() -> None:
    message = format_queue_state(WAITING)
    reason = '"Which one?"'

    assert reason in message
    assert parse_queue_state(message.replace(reason, "[" * 100_000)) is None


@pytest.mark.parametrize(
    ("before", "after", "legal"),
    [
        (None, QUEUED, True),
        (None, CLAIMED, False),
        (None, DONE, False),
        (QUEUED, CLAIMED, True),
        (QUEUED, QUEUED, False),
        (QUEUED, DONE, False),
        (QUEUED, WAITING, False),
        (CLAIMED, CLAIMED, True),
        (CLAIMED, QUEUED, True),
        (CLAIMED, WAITING, True),
        (CLAIMED, DONE, True),
        (WAITING, QUEUED, True),
        (WAITING, CLAIMED, True),
        (WAITING, DONE, False),
        (DONE, QUEUED, False),
        (DONE, CLAIMED, False),
    ],
)
def test_the_table_of_moves(
    before: QueueState | None, after: QueueState, *, legal: bool
) -> None:
    problem = check_queue_move(before, after, before_time=1000, after_time=1001)

    assert (problem is None) is legal


@pytest.mark.parametrize(
    ("seconds", "legal"), [(0, False), (-1, False), (1, True), (100, True)]
)
def test_another_s_claim_is_taken_only_after_its_time(
    seconds: int, *, legal: bool
) -> None:
    other = replace(CLAIMED, worker="w2")
    at = 1000 + 60 - 60 + seconds  # its lease, less the slack between two clocks

    problem = check_queue_move(CLAIMED, other, before_time=1000, after_time=at)

    assert (problem is None) is (legal or seconds == 0)


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 65, "a/b", "-\n"])
def test_a_worker_s_name_is_plain(name: str) -> None:
    assert not is_worker_name(name)
