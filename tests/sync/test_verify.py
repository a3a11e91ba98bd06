from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pygit2.enums import ObjectType

from tests.builders import (
    begin,
    git,
    make_engine,
    make_role,
    make_workflow,
    object_file,
    reply,
    run,
    variant,
    write_script,
)
from tests.collision import _P1, _P2, _absorb, _undo
from tests.proof import assert_verified, verify_threads
from tests.sync.changes import (
    ONES,
    OTHER,
    ZEROS,
    edit,
    ended,
    hidden,
    put,
    shown,
    signed,
    subject,
    trailer,
)
from tests.sync.forge import (
    Change,
    Draft,
    amend_step,
    codes,
    commit,
    draft_of,
    forge,
    history,
    tree_of,
    write,
)
from tests.sync.forged_histories import FORK, HISTORIES, HONEST, Forge, forked
from tests.sync.forgeries import FORGERIES
from tests.sync.tour import JUDGE, RESUME, START, TRY, WORK, Tour, make_tour, tip_of
from uwfgit.engine.run.executor import poke_thread, resume_thread
from uwfgit.engine.run.thread import fork_thread
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node import META_TYPE, make_node
from uwfgit.model.workflow.workflow import Target, Workflow
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.git.reading import open_reading
from uwfgit.sync.diverged.replayed_events import replay_tail
from uwfgit.sync.verify.verify import _open, _report, verify_thread


def test_a_thread_with_every_event_verifies_and_is_counted(tour: Tour) -> None:
    report = tour.verify(tour.tip)

    assert report.problems == ()
    assert (report.commits, report.checked) == (8, 8)
    assert report.events == {
        "start": 1,
        "step": 3,
        "attempt": 1,
        "resume": 1,
        "poke": 1,
        "cancel": 1,
    }
    assert report.agents == {"scripted": 6}
    assert (report.attempts, report.pokes, report.resolves) == (1, 1, 0)
    assert (report.notes, report.signed) == (2, 0)
    assert (report.status, report.steps) == ("cancelled", 4)
    assert report.workflow_name == "work"


def test_forks_and_pokes_of_inherited_steps_verify(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = make_tour(ledger, tmp_path)
    engine = make_engine(ledger)
    script: dict[str, Any] = {
        "worker": ["x", "x", "x", reply(plan="Again"), "No block."],
        "critic": ["x", reply("good"), "x", reply("good")],
    }
    agent = write_script(tmp_path, script)

    at_start = fork_thread(ledger, thread, at=0)
    at_head = fork_thread(ledger, thread)
    of_fork = fork_thread(ledger, at_head.thread, at=3)
    poke_thread(engine, of_fork.thread, note="Fix it", agent=agent)
    poke_thread(engine, of_fork.thread, note="Fix it well", agent=agent)
    run(ledger, of_fork.thread, agent, 1)
    poke_thread(engine, at_head.thread, note="Decide", agent=agent)
    resume_thread(engine, at_head.thread, agent=agent)

    assert_verified(ledger.store)
    reports = verify_threads(ledger.store, [at_start.thread, of_fork.thread])
    assert [each.steps for each in reports] == [0, 4]


def thread_workflow() -> Workflow:
    """Make a workflow whose prompts name the thread."""
    return make_workflow(
        roles={"worker": make_role(variant("done"), variant("over"))},
        graph={
            "$START": {"new": Target(role="worker", prompt="Begin {{_thread}}")},
            "worker": {
                "done": Target(role="worker", prompt="Go on in {{_thread}}"),
                "over": Target(role="$END", prompt="Over."),
            },
        },
    )


def test_a_prompt_may_name_a_thread_it_was_forked_from(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path, workflow=thread_workflow()).thread
    agent = write_script(tmp_path, {"worker": [reply()] * 9})
    run(ledger, thread, agent, 2)

    fork = fork_thread(ledger, thread).thread
    poke_thread(make_engine(ledger), fork, note="Again", agent=agent)
    run(ledger, fork, agent, 1)

    assert_verified(ledger.store)


def test_a_prompt_may_name_no_other_thread(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path, workflow=thread_workflow()).thread
    run(ledger, thread, write_script(tmp_path, {"worker": [reply()] * 2}), 2)
    change = amend_step(step={"edgePrompt": f"Go on in {OTHER}"})

    tip = forge(ledger.store, tip_of(ledger, thread), {2: change})

    assert codes(verify_thread(ledger.store, tip, thread).problems) == {"prompt"}


def test_a_history_written_anew_without_a_change_has_its_own_oids(tour: Tour) -> None:
    assert forge(tour.store, tour.tip, {}) == tour.tip


def test_a_signed_commit_is_counted(tour: Tour) -> None:
    report = tour.verify(forge(tour.store, tour.tip, {JUDGE: signed(b"U1NI")}))

    assert (report.ok, report.signed) == (True, 1)


@pytest.mark.parametrize("base", range(7))
def test_replayed_events_verify(tour: Tour, base: int) -> None:
    commits = tour.commits()

    copy = replay_tail(
        tour.ledger, tour.thread, base=commits[base], tip=tour.tip, copy=OTHER
    )

    report = verify_thread(tour.store, copy.tip.commit, OTHER)
    assert (report.problems, report.status) == ((), "cancelled")


@pytest.mark.parametrize(
    ("at", "change", "code"),
    [
        pytest.param(
            3, trailer("Uwf-Replayed-From", ZEROS), "trailers", id="from zeros"
        ),
        pytest.param(
            2, trailer("Uwf-Replayed-From", ONES), "trailers", id="a fork that is one"
        ),
        pytest.param(3, subject("critic: good"), "message", id="another subject"),
        pytest.param(4, subject("worker: done"), "message", id="a try that is none"),
        pytest.param(3, ended(1_799_999_999_999), "time", id="ended before the start"),
    ],
)
def test_a_forged_replay_is_refused(
    tour: Tour, at: int, change: Change, code: str
) -> None:
    base = tour.commits()[WORK]
    copy = replay_tail(tour.ledger, tour.thread, base=base, tip=tour.tip, copy=OTHER)

    tip = forge(tour.store, copy.tip.commit, {at: change}, upto=at)

    assert code in codes(verify_thread(tour.store, tip, OTHER).problems)


def test_nothing_is_replayed_after_an_event_that_is_not(tour: Tour) -> None:
    base = tour.commits()[WORK]
    copy = replay_tail(tour.ledger, tour.thread, base=base, tip=tour.tip, copy=OTHER)

    tip = forge(tour.store, copy.tip.commit, {3: trailer("Uwf-Replayed-From", None)})

    (problem,) = verify_thread(tour.store, tip, OTHER).problems
    assert (problem.code, problem.commit) == ("trailers", history(tour.store, tip)[4])


def test_a_fork_made_by_hand_verifies_and_one_that_lies_is_named(tour: Tour) -> None:
    honest = forked(tour.store, tour.tip)
    lies = forked(tour.store, tour.tip, change=subject("critic: good"))

    reports = [verify_thread(tour.store, tip, FORK) for tip in (honest, lies)]

    assert [[each.code for each in report.problems] for report in reports] == [
        [],
        ["message"],
    ]


def collide_outputs(node_type: str) -> tuple[str, str]:
    """Make two plans with which a worker's output has one hash."""
    head = b"[before--]+"  # up to the second stripe of what is hashed
    start = node_type.encode() + b"\xa2\x64plan\x78\x40" + head
    assert len(start) == 32
    state = _absorb((_P1 + _P2) % 2**64, start[:8])
    first, second = b"original", b"harmless"
    for number in range(10**6):
        other = b"evil%04x" % number
        answer = _undo(second, _absorb(state, first), _absorb(state, other))
        if answer.isalnum():
            break
    else:
        pytest.fail("no collision found")
    middle, end = b"-" * 24, b"." * (64 - 11 - 8 - 24 - 8)
    plans = (first + middle + second, other + middle + answer)
    one, two = (f"{(head + plan + end).decode()}" for plan in plans)
    return one, two


def test_what_a_hash_names_in_one_thread_does_not_count_in_the_next(
    ledger: Ledger, tmp_path: Path
) -> None:
    schema = make_node(META_TYPE, dict(make_workflow().roles["worker"].schema))
    plan, other = collide_outputs(schema.hash)
    forged = make_node(schema.hash, {"$status": "done", "plan": other})
    thread = begin(ledger, tmp_path).thread
    script = {"worker": [reply(plan=plan)], "critic": [reply("good")]}
    run(ledger, thread, write_script(tmp_path, script), 2)
    honest = tip_of(ledger, thread)

    def swap(draft: Draft) -> None:
        draft.put(draft.find(rf"{forged.hash}\.{forged.type}\.json"), forged.data)
        path = draft.find("00001-worker/output.md")
        draft.put(path, draft.read(path).replace(plan.encode(), other.encode()))

    tip = forge(ledger.store, honest, {1: swap})
    shared = _open(ledger.store)
    assert _report(shared, honest, thread).ok

    report = _report(shared, tip, thread)

    assert codes(report.problems) == {"prompt"}


@pytest.mark.parametrize(
    ("make", "code"), [pytest.param(*facts, id=name) for name, *facts in HISTORIES]
)
def test_a_forged_history_is_refused(tour: Tour, make: Forge, code: str) -> None:
    report = tour.verify(make(tour.store, tour.tip))

    assert code in codes(report.problems), report.problems


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in HONEST])
def test_what_is_written_anew_and_fits_together_verifies(
    tour: Tour, make: Forge
) -> None:
    assert tour.verify(make(tour.store, tour.tip)).problems == ()


@pytest.mark.parametrize(
    ("at", "change"), [pytest.param(*facts[:2], id=name) for name, *facts in FORGERIES]
)
def test_a_forged_commit_is_named(tour: Tour, at: int, change: Change) -> None:
    tip = forge(tour.store, tour.tip, {at: change}, upto=at)

    problems = tour.verify(tip).problems
    assert {problem.commit for problem in problems} == {tip}
    assert not any(" b'" in problem.message for problem in problems)


@pytest.mark.parametrize(
    ("at", "change"),
    [
        pytest.param(JUDGE, put("notes.md"), id="a file more"),
        pytest.param(
            WORK, edit("00001-worker/output.md", b"x\n"), id="an edited answer"
        ),
        pytest.param(START, edit("TASK.md", b"x\n"), id="an edited task"),
    ],
)
def test_a_forgery_below_honest_commits_is_told_once(
    tour: Tour, at: int, change: Change
) -> None:
    tip = forge(tour.store, tour.tip, {at: change})

    report = tour.verify(tip)

    assert report.checked == 8
    assert {each.commit for each in report.problems} == {history(tour.store, tip)[at]}


def test_hidden_content_in_a_middle_commit_is_found(tour: Tour) -> None:
    tip = forge(tour.store, tour.tip, {JUDGE: hidden, TRY: shown})

    report = tour.verify(tip)

    assert [(each.code, each.path) for each in report.problems] == [
        ("path", f"threads/{tour.thread}/nodes/000/00001/secret.md")
    ] * 2


def test_a_step_after_a_cancel_is_refused(tour: Tour) -> None:
    step = tour.commits()[RESUME]

    draft = draft_of(tour.store, step)
    draft.parents = [tour.tip]

    assert "event" in codes(tour.verify(commit(draft)).problems)


def test_a_chain_that_ends_elsewhere_is_refused(tour: Tour) -> None:
    root = draft_of(tour.store, tour.commits()[0])
    root.parents = []

    report = tour.verify(commit(root))

    assert codes(report.problems) == {"parents"}
    assert report.checked == 0


def test_genesis_alone_is_no_thread(tour: Tour) -> None:
    assert codes(tour.verify(GENESIS_OID).problems) == {"chain"}


@pytest.mark.parametrize(
    ("tip", "code"),
    [
        pytest.param("tree", "kind", id="a tree"),
        pytest.param("none", "missing", id="nothing"),
    ],
)
def test_a_tip_that_is_no_commit_is_refused(tour: Tour, tip: str, code: str) -> None:
    tree = tree_of(tour.store, tour.tip)

    report = tour.verify(tree if tip == "tree" else ZEROS)

    assert codes(report.problems) == {code}


def test_a_thread_under_another_name_is_refused(tour: Tour) -> None:
    report = verify_thread(tour.store, tour.tip, OTHER)

    assert codes(report.problems) == {"thread"}


def test_a_fork_under_a_name_it_comes_from_is_refused(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = make_tour(ledger, tmp_path)
    fork = fork_thread(ledger, thread, at=2)

    def rename(draft: Draft) -> None:
        state = draft.path("thread.json")
        draft.move(state, state.replace(draft.thread, thread))
        draft.trailer("Uwf-Thread", thread)

    tip = forge(ledger.store, fork.commit, {3: rename})

    report = verify_thread(ledger.store, tip, thread)
    assert "event" in codes(report.problems)


# Damage of any kind is a problem, never an exception.


@pytest.mark.parametrize("seed", range(12))
def test_one_changed_byte_in_any_file_of_any_commit_is_found(
    tour: Tour, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311 - for tests
    for _ in range(6):
        at = dice.randrange(8)
        tip = forge(tour.store, tour.tip, {at: _damage(dice)})

        assert not tour.verify(tip).ok


def _damage(dice: random.Random) -> Change:
    def change(draft: Draft) -> None:
        # A comment of workflow.yaml may change: it is a person's file.
        paths = sorted(p for p in draft.files if not p.endswith("workflow.yaml"))
        path = dice.choice(paths)
        data = bytearray(draft.read(path))
        place = dice.randrange(len(data))
        data[place] ^= 1 << dice.randrange(8)
        draft.put(path, bytes(data))

    return change


@pytest.mark.parametrize("seed", range(8))
def test_damaged_commits_never_raise(tour: Tour, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - for tests
    for _ in range(10):
        data = bytearray(tour.store.repo.read(dice.choice(tour.commits()))[1])
        start = dice.randrange(len(data))
        data[start : start + dice.randrange(1, 5)] = dice.randbytes(dice.randrange(4))
        tip = write(tour.store, ObjectType.COMMIT, bytes(data))

        tour.verify(tip)


def test_a_damaged_store_is_a_problem(ledger: Ledger, tmp_path: Path) -> None:
    tip = begin(ledger, tmp_path)
    blob = git(
        ledger.store, "rev-parse", f"{tip.commit}:threads/{tip.thread}/TASK.md"
    ).strip()
    file = object_file(ledger.store, blob)
    file.chmod(0o600)
    file.write_bytes(b"not zlib")

    # The handle that wrote it still has its pack open.
    (report,) = verify_threads(open_reading(ledger.store.path))

    assert codes(report.problems) == {"missing"}
