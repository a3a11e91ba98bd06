"""Which threads of a queue a worker may take, and whose time is up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field

from uwfgit.fleet.queue import iter_states
from uwfgit.ids import Oid, ThreadId
from uwfgit.store.handle import Store
from uwfgit.sync.exchange.queue_entry import Entry
from uwfgit.sync.exchange.queue_state import QueueState

LEASE: Final = 1800
"""Seconds; a worker says again and again that it is there at a third of it."""
SLACK: Final = 300
"""Seconds that clocks of two machines may differ before a claim counts as over."""
STUCK: Final = 3
"""Claims without a new step after which a thread waits for a person."""
_MS: Final = 1000


class LeaseWatch(Struct, kw_only=True):
    """When this worker first saw each claim, by its own clock.

    A claim that stays the same for the length of its lease belongs to nobody,
    whatever the clocks of its machine and ours say.
    """

    monotonic: Callable[[], float]
    now_ms: Callable[[], int]
    _seen: dict[ThreadId, tuple[Oid, float]] = field(default_factory=dict)

    def look(self, entries: Mapping[ThreadId, Entry]) -> None:
        """Note which claims there are now."""
        now = self.monotonic()
        seen = {}
        for thread, entry in entries.items():
            if entry.state.word == "claimed":
                before = self._seen.get(thread)
                is_same = before is not None and before[0] == entry.oid
                seen[thread] = before if before and is_same else (entry.oid, now)
        self._seen = seen

    def is_over(self, entry: Entry) -> bool:
        """Whether a claim's time is up: seen long enough, or long past by its date."""
        lease = entry.state.lease or 0
        oid, since = self._seen.get(entry.state.thread, (None, 0.0))
        if oid == entry.oid and self.monotonic() - since >= lease:
            return True
        return entry.committed_at + lease + SLACK < self.now_ms() // _MS


def is_free(entry: Entry, watch: LeaseWatch, now_ms: int) -> bool:
    """Whether a worker may claim a thread, as far as the queue says."""
    state = entry.state
    if state.word == "queued":
        return True
    if state.word == "waiting":
        return state.retry_at_ms is not None and state.retry_at_ms <= now_ms
    return state.word == "claimed" and watch.is_over(entry)


def is_stuck(store: Store, entry: Entry) -> bool:
    """Whether a thread was claimed again and again without getting on."""
    states = [
        each.state
        for each in iter_states(store, entry.oid)
        if each.state.head == entry.state.head
    ]
    claims = 0
    before: QueueState | None = None
    for state in reversed(states):
        # One of its own, not a word that the claimant is still there.
        was_claimed = before is not None and before.word == "claimed"
        is_same = before is not None and before.worker == state.worker
        claims += state.word == "claimed" and not (was_claimed and is_same)
        before = state
    return claims >= STUCK
