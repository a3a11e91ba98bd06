"""The events hold and summary: written, verified, forged, and in all that reads them.

Whoever lists, copies, sends or redacts a thread meets them like any other.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

import pytest

from tests.builders import (
    Clock,
    begin,
    make_engine,
    make_ledger,
    record_of,
    reply,
    run,
    write_script,
)
from tests.history import check_thread, files, names, paths, state_of
from tests.sync.forge import Change, forge
from tests.sync.judged import DETAIL, FORGED, HOLD, USAGE, hold, make_judged, summarise
from tests.sync.tour import Tour, tip_of
from uwfgit.engine.run.executor import exec_thread, resume_thread
from uwfgit.engine.run.thread import cancel_thread, fork_thread
from uwfgit.ids import mint_thread_id
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.event import find_cause, iter_events
from uwfgit.model.thread.step import Usage
from uwfgit.model.thread.tip import load_tip
from uwfgit.store.repository import init_store, open_store
from uwfgit.sync.diverged.replayed_events import replay_tail
from uwfgit.sync.secrets.redact import redact_thread
from uwfgit.sync.verify.verify import verify_thread


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Tour:
    folder = tmp_path_factory.mktemp("judged")
    init_store(folder / "store", home=folder, fsync=False)
    store = open_store(folder / "store", home=folder, write=True, fsync=False)
    ledger = make_ledger(store, Clock(count(1_800_000_000_500, 700)))
    thread = make_judged(ledger, folder)
    return Tour(ledger, thread, tip_of(ledger, thread))


def codes(report: object) -> set[str]:
    return {problem.code for problem in report.problems}  # type: ignore[attr-defined]


def test_a_thread_that_was_held_and_summarised_verifies(judged: Tour) -> None:
    store, thread = judged.store, judged.thread

    check_thread(store, thread)
    report = judged.verify(judged.tip)

    assert names(store, thread) == [
        *("start", "step", "hold", "resume", "summary", "resume", "summary", "summary")
    ]
    assert (report.events["hold"], report.events["summary"]) == (1, 3)
    assert files(store, thread)["SUMMARY.md"] == b"All is well, indeed.\n"


def test_a_hold_suspends_and_names_its_role_and_reason(judged: Tour) -> None:
    tip = judged.commits()[HOLD]
    event = next(iter_events(judged.store, tip))

    assert (event.name, event.role, event.commit.author.name) == (
        *("hold", "critic", "judge-1"),
    )
    assert paths(judged.store, judged.thread, "nodes/000/00002")[0].startswith("1/")
    assert find_cause(judged.store, tip).name == "hold"


def test_what_a_hold_and_a_summary_cost_is_the_threads(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    hold(ledger, thread, "No.")
    held = state_of(ledger.store, thread)
    summarise(ledger, thread, "Nothing was done.")
    summed = state_of(ledger.store, thread)

    assert (held.status, held.suspended_role) == ("suspended", "worker")
    assert held.suspend_message == "supervisor: No."
    assert held.usage == USAGE
    assert summed.usage == Usage(
        turns=2, input_tokens=10, output_tokens=4, duration_ms=18, cost_usd=None
    )
    assert (summed.status, summed.suspend_message) == (
        *(held.status, held.suspend_message),
    )
    check_thread(ledger.store, thread)


def test_the_agent_is_not_told_why_its_thread_was_held(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    agent = write_script(tmp_path, {"worker": [reply(plan="x")]})
    hold(ledger, thread, "It will fail at this.")

    resume_thread(make_engine(ledger), thread, agent=agent)

    record = record_of(ledger, thread)
    detail = record.node(record.steps()[0].detail_hash).payload
    assert "It will fail" not in detail["assembledPrompt"]


def test_exec_of_a_held_thread_says_by_whom_and_how_it_goes_on(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    hold(ledger, thread, "It goes in circles.")

    report = exec_thread(make_engine(ledger), thread, count=1)

    assert report.end == "waiting"
    assert report.problem is not None
    assert "held by the supervisor: It goes in circles." in report.problem
    assert report.hint == f"release it with: uwf thread resume {thread}"


def test_a_summary_leaves_an_end_as_it_was(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path).thread
    cancel_thread(ledger, thread, reason="Enough", command="test")
    before = state_of(ledger.store, thread)

    summarise(ledger, thread, "It was given up.")

    after = state_of(ledger.store, thread)
    assert after.completed_at_ms == before.completed_at_ms
    assert after.updated_at_ms > before.updated_at_ms
    check_thread(ledger.store, thread)


@pytest.mark.parametrize(
    ("at", "change", "code"),
    [pytest.param(*facts[1:], id=facts[0]) for facts in FORGED],
)
def test_a_forged_hold_or_summary_is_refused_and_named(
    judged: Tour, at: int, change: Change, code: str
) -> None:
    tip = forge(judged.store, judged.tip, {at: change}, upto=at)

    report = judged.verify(tip)

    assert code in codes(report), report.problems
    assert {problem.commit for problem in report.problems} == {tip}


def test_a_fork_of_a_held_thread_stands_as_it_did(judged: Tour) -> None:
    fork = fork_thread(judged.ledger, judged.thread, at=2).thread

    check_thread(judged.store, fork)
    assert "SUMMARY.md" not in files(judged.store, fork)


def test_holds_and_summaries_are_replayed(judged: Tour) -> None:
    ledger, commits = judged.ledger, judged.commits()
    copy = mint_thread_id(1_900_000_000_000, b"0123456789")

    replayed = replay_tail(
        ledger, judged.thread, base=commits[1], tip=judged.tip, copy=copy
    )

    report = verify_thread(judged.store, replayed.tip.commit, copy)
    assert report.problems == ()
    assert replayed.tip.state.usage == state_of(judged.store, judged.thread).usage


def test_a_secret_in_a_hold_and_in_a_summary_is_redacted(
    ledger: Ledger, tmp_path: Path
) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    thread = begin(ledger, tmp_path).thread
    agent = write_script(tmp_path, {"worker": [reply(plan="x")]})
    hold(ledger, thread, f"It printed {token}.")
    summarise(ledger, thread, f"It printed {token}, twice.")
    resume_thread(make_engine(ledger), thread, agent=agent)

    path = {"PATH": os.environ["PATH"]}
    done = redact_thread(ledger, thread, environment=path, command="test")

    copy = done.tip.thread
    assert names(ledger.store, copy) == ["start", "hold", "summary", "resume"]
    told = b"".join(files(ledger.store, copy).values())
    assert token.encode() not in told
    assert b"redacted:" in files(ledger.store, copy)["SUMMARY.md"]
    usage = state_of(ledger.store, copy).usage
    assert usage is not None
    assert usage.input_tokens == 2 * USAGE.input_tokens
    check_thread(ledger.store, copy)


def test_the_lookup_finds_no_step_in_a_hold(judged: Tour) -> None:
    ledger = judged.ledger
    ledger.lookup.rebuild()
    event = next(iter_events(judged.store, judged.commits()[HOLD]))
    assert event.node is not None

    assert ledger.lookup.find_steps(event.node) == ()
    assert len(ledger.lookup.find_nodes(event.node)) == 1
    state = load_tip(judged.store, judged.thread).state
    assert [row.number for row in ledger.lookup.find_steps(state.head)] == [3]


def test_a_step_beside_holds_of_equal_bytes_verifies(
    ledger: Ledger, tmp_path: Path
) -> None:
    """Two holds that are alike are one node, in two folders."""
    thread = begin(ledger, tmp_path).thread
    agent = write_script(tmp_path, {"worker": ["no block", "no block", "no block"]})
    hold(ledger, thread, "No.")
    run(ledger, thread, agent)
    resume_thread(make_engine(ledger), thread, agent=agent)

    assert DETAIL["kind"] == "supervisor"
    check_thread(ledger.store, thread)
