from __future__ import annotations

from pathlib import Path

from tests.acting import BAD, DONE, GOOD, go
from tests.builders import begin, record_of, reply
from uwfgit.engine.run.thread import fork_thread
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.compare import Comparison, compare_chains


def compare(ledger: Ledger, a: ThreadId, b: ThreadId) -> Comparison:
    return compare_chains(record_of(ledger, a).steps(), record_of(ledger, b).steps())


def test_forks_are_compared_from_where_they_part(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, DONE, BAD)
    fork = fork_thread(ledger, thread, at=1).thread
    go(ledger, thread, reply(plan="mended"))
    go(ledger, fork, GOOD)

    found = compare(ledger, thread, fork)

    assert found.fork_point is not None
    assert (found.fork_point.number, found.fork_point.role) == (1, "worker")
    second, third = found.pairs
    assert (second.number, second.differs) == (
        2,
        ("status", "output.reason", "body"),
    )
    assert (third.number, third.b, third.differs) == (3, None, ())
    assert (found.sum_a.steps, found.sum_b.steps) == (2, 1)


def test_a_thread_and_itself_do_not_part(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, DONE)

    found = compare(ledger, thread, thread)

    assert found.pairs == ()
    assert found.fork_point is not None


def test_threads_that_share_nothing_are_compared_from_the_start(
    ledger: Ledger, tmp_path: Path
) -> None:
    one = begin(ledger, tmp_path, prompt="one").thread
    other = begin(ledger, tmp_path, prompt="other").thread
    go(ledger, one, DONE)
    go(ledger, other, DONE)

    found = compare(ledger, one, other)

    assert found.fork_point is None
    assert [(pair.number, pair.differs) for pair in found.pairs] == [(1, ())]


def test_usage_of_the_steps_behind_the_fork_point_is_added_up(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, DONE)
    fork = fork_thread(ledger, thread, at=1).thread
    go(ledger, fork, BAD, DONE)

    found = compare(ledger, thread, fork)

    assert (found.sum_a.steps, found.sum_a.duration_ms) == (0, 0)
    assert found.sum_b.steps == 2
    assert found.sum_b.duration_ms > 0
