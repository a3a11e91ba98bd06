"""Which step a failed try was a try at."""

from __future__ import annotations

from pathlib import Path

from tests.acting import NO_BLOCK, go, poke, suspend
from tests.builders import begin, record_of, reply
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.attempts import find_last_attempt, list_attempts


def test_a_try_keeps_its_number_when_a_poke_replaces_the_step_before_it(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply(plan="x"), NO_BLOCK)

    poke(ledger, thread, reply(plan="y"))

    attempts = list_attempts(record_of(ledger, thread))
    assert [(each.number, each.role) for each in attempts] == [(2, "critic")]


def test_a_failed_poke_was_a_try_at_the_step_it_was_to_replace(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply(plan="x"), suspend())

    poke(ledger, thread, NO_BLOCK)

    record = record_of(ledger, thread)
    last = find_last_attempt(record)
    assert last is not None
    assert [each.number for each in (*list_attempts(record), last)] == [2, 2]


def test_the_try_that_a_thread_waits_after_is_at_the_next_step(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, NO_BLOCK)
    first = find_last_attempt(record_of(ledger, thread))
    other = begin(ledger, tmp_path).thread
    go(ledger, other, reply(plan="x"), NO_BLOCK)
    second = find_last_attempt(record_of(ledger, other))

    assert first is not None
    assert second is not None
    assert (first.number, second.number) == (1, 2)
