"""Whose time is up, by a worker's own clock and by the date of a claim."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.fleet.crew import Watch
from tests.fleet.test_queue_state import CLAIMED, DONE, QUEUED, WAITING
from uwfgit.fleet.claims import SLACK, LeaseWatch, is_free
from uwfgit.ids import Oid
from uwfgit.sync.exchange.queue_entry import Entry
from uwfgit.sync.exchange.queue_state import QueueState

LEASE = CLAIMED.lease or 0


def entry(watch: Watch, state: QueueState, *, age: int = 0) -> Entry:
    """Make an entry of a state whose date is so many seconds ago."""
    date = watch.wall_ms() // 1000 - age
    return Entry(
        oid=Oid("c" * 40), parent=None, state=state, committed_at=date, by="Ada"
    )


def watching(watch: Watch, *seen: Entry) -> LeaseWatch:
    lease = LeaseWatch(monotonic=watch, now_ms=watch.wall_ms)
    lease.look({each.state.thread: each for each in seen})
    return lease


@pytest.mark.parametrize(("seconds", "expected"), [(LEASE - 1, False), (LEASE, True)])
def test_a_claim_that_stays_the_same_for_its_lease_is_over(
    seconds: int, *, expected: bool
) -> None:
    watch = Watch()
    claim = entry(watch, CLAIMED, age=-100_000)
    lease = watching(watch, claim)

    watch.now += seconds

    assert lease.is_over(claim) is expected


def test_a_claim_that_is_renewed_is_watched_anew() -> None:
    watch = Watch()
    claim = entry(watch, CLAIMED)
    lease = watching(watch, claim)
    watch.now += LEASE - 1
    renewed = replace(entry(watch, CLAIMED), oid=Oid("d" * 40))
    lease.look({renewed.state.thread: renewed})

    watch.now += LEASE - 1

    assert not lease.is_over(renewed)


@pytest.mark.parametrize(
    ("age", "expected"),
    [(LEASE + SLACK, False), (LEASE + SLACK + 1, True), (-100_000, False)],
)
def test_a_claim_is_over_by_its_date_only_long_after(
    age: int, *, expected: bool
) -> None:
    watch = Watch()
    claim = entry(watch, CLAIMED, age=age)

    assert watching(watch).is_over(claim) is expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(QUEUED, True, id="queued"),
        pytest.param(DONE, False, id="done"),
        pytest.param(CLAIMED, False, id="claimed"),
        pytest.param(WAITING, False, id="for a person"),
        pytest.param(replace(WAITING, retry_at_ms=1), True, id="for a limit, over"),
        pytest.param(replace(WAITING, retry_at_ms=2**41), False, id="for a limit"),
    ],
)
def test_what_is_free_may_be_claimed(state: QueueState, *, expected: bool) -> None:
    watch = Watch()
    there = entry(watch, state)

    assert is_free(there, watching(watch, there), watch.wall_ms()) is expected
