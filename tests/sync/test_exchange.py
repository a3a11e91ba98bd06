"""Push and pull between two people, in every way a thread can change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.acting import acting, put
from tests.builders import git, make_workflow, object_file, reply, workflow_data
from tests.collision import COLLIDING
from tests.history import check_store
from tests.proof import assert_verified, verify_threads
from tests.sync.forge import forge
from tests.sync.people import (
    BAD,
    DONE,
    GOOD,
    Person,
    approve,
    make_person,
    objects_of,
    refs_of,
    results,
    smuggle,
)
from uwfgit.agents.base import AgentRequest
from uwfgit.engine.beside.trash import remove_thread
from uwfgit.engine.run.executor import exec_thread
from uwfgit.engine.run.hold import hold_thread
from uwfgit.engine.run.thread import cancel_thread, fork_thread
from uwfgit.errors import AmbiguousError, NotFoundError, RemoteError
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.ledger.ledger import find_node, resolve_step
from uwfgit.model.ledger.registering import (
    add_workflow,
    remove_workflow,
    rollback_workflow,
)
from uwfgit.model.ledger.registry import workflow_history
from uwfgit.model.node import Node, make_text
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.tip import find_sharing, load_tip
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.layout import thread_ref, workflow_ref
from uwfgit.store.refs import find_ref, move_ref


def test_a_new_thread_is_sent_only_when_it_is_named(ada: Person, bare: Path) -> None:
    thread = ada.begin(DONE)

    unnamed = ada.push()
    assert results(unnamed.outcomes) == {thread: "not-shared"}
    assert refs_of(bare) == {}
    named = ada.push(thread)

    assert results(named.outcomes) == {thread: "new"}
    assert refs_of(bare) == {
        "refs/heads/main": GENESIS_OID,
        thread_ref(thread): ada.tip(thread),
    }


def test_a_push_sends_what_the_remote_has_and_is_behind_with(
    ada: Person, bob: Person, bare: Path
) -> None:
    ours, theirs, new = ada.begin(DONE), ada.begin(DONE), ada.begin()
    ada.push(ours, theirs)
    bob.pull()
    bob.go(theirs, GOOD)
    bob.push()
    ada.go(ours, GOOD)

    report = ada.push()

    assert results(report.outcomes) == {
        ours: "updated",
        theirs: "behind",
        new: "not-shared",
    }
    assert report.ok
    assert refs_of(bare)[thread_ref(ours)] == ada.tip(ours)
    assert ada.push().up_to_date == 1


def test_all_sends_new_threads_and_workflows_too(ada: Person, bare: Path) -> None:
    thread = ada.begin(DONE)
    workflow = make_workflow()
    add_workflow(ada.ledger, workflow, workflow_data(workflow))

    report = ada.push(send_all=True)

    assert results(report.outcomes) == {thread: "new", workflow_ref("work"): "new"}
    assert set(refs_of(bare)) == {
        "refs/heads/main",
        thread_ref(thread),
        workflow_ref("work"),
    }


def test_a_dry_run_sends_nothing(ada: Person, bare: Path) -> None:
    thread = ada.begin(DONE)

    report = ada.push(thread, dry_run=True)

    assert results(report.outcomes) == {thread: "new"}
    assert refs_of(bare) == {}


def test_what_the_scan_holds_back_stays(ada: Person, bare: Path) -> None:
    held, free = ada.begin(DONE), ada.begin(DONE)
    seen: list[tuple[str, Oid, Oid | None]] = []

    def scan(leaving: Sequence[tuple[str, Oid, Oid | None]]) -> Mapping[str, str]:
        seen.extend(leaving)
        return {thread_ref(held): "a key in output.md"}

    report = ada.push(held, free, scan=scan)

    assert results(report.outcomes) == {held: "refused", free: "new"}
    assert not report.ok
    assert thread_ref(held) not in refs_of(bare)
    assert {(ref, old) for ref, _, old in seen} == {
        (thread_ref(held), None),
        (thread_ref(free), None),
    }


def test_a_remote_that_refuses_one_thread_gets_the_others(
    ada: Person, bare: Path
) -> None:
    threads = [ada.begin(DONE) for _ in range(5)]
    hook = bare / "hooks" / "pre-receive"
    hook.write_text(
        f"#!/bin/sh\nwhile read old new ref; do case $ref in *{threads[2]})"
        " echo 'we do not like it' >&2; exit 1;; esac; done\n"
    )
    hook.chmod(0o755)

    report = ada.push(send_all=True)

    assert results(report.outcomes) == {
        **dict.fromkeys(threads, "new"),
        threads[2]: "rejected",
    }
    (bad,) = (each for each in report.outcomes if each.result == "rejected")
    assert "we do not like it" in (bad.message or "")
    assert not report.ok
    hook.unlink()
    assert results(ada.push(threads[2]).outcomes) == {threads[2]: "new"}


def test_a_head_nobody_here_made_or_verified_is_verified_before_it_is_pushed(
    ada: Person, bob: Person, bare: Path
) -> None:
    thread = ada.begin(DONE, GOOD)
    bad = forge(ada.store, Oid(str(ada.tip(thread))), {1: lambda d: d.state(steps=7)})
    smuggle(ada, bob.store.path, bad, thread_ref(thread))

    report = bob.push(thread)

    assert results(report.outcomes) == {thread: "refused"}
    assert thread_ref(thread) not in refs_of(bare)


def test_code_that_was_taken_for_an_empty_repository_gets_no_threads(
    ada: Person, bare: Path
) -> None:
    tree = git(bare, "mktree", "--missing")
    commit = git(
        bare,
        *("-c", "user.name=x", "-c", "user.email=x"),
        *("commit-tree", tree.strip(), "-m", "code"),
    ).strip()
    git(bare, "update-ref", "refs/heads/main", commit)
    thread = ada.begin(DONE)

    with pytest.raises(RemoteError):
        ada.push(thread)

    assert refs_of(bare) == {"refs/heads/main": commit}


def test_pulled_threads_are_the_same_and_verify(ada: Person, bob: Person) -> None:
    threads = [ada.begin(DONE), ada.begin(DONE, BAD, DONE, GOOD)]
    threads.append(fork_thread(ada.ledger, threads[1], at=2).thread)
    ada.push(send_all=True)

    report = bob.pull()

    assert results(report.outcomes) == dict.fromkeys(threads, "new")
    assert [bob.tip(each) for each in threads] == [ada.tip(each) for each in threads]
    assert_verified(bob.store)
    check_store(bob.store)
    assert list((bob.store.path / "objects" / "pack").glob("*.keep")) == []
    assert list((bob.store.state_dir / "scratch").iterdir()) == []
    again = bob.pull()
    assert (again.outcomes, again.up_to_date) == ((), 3)


def test_a_thread_goes_back_and_forth(ada: Person, bob: Person) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    for person, other, said in ((bob, ada, BAD), (ada, bob, DONE), (bob, ada, GOOD)):
        person.pull()
        person.go(thread, said)
        assert results(person.push().outcomes) == {thread: "updated"}
        assert results(other.pull().outcomes) == {thread: "updated"}
    cancel = fork_thread(bob.ledger, thread).thread
    bob.resume(thread)
    bob.poke(thread, reply("done", plan="better"))
    bob.push(send_all=True)

    ada.pull()

    assert ada.tip(thread) == bob.tip(thread)
    assert ada.tip(cancel) == bob.tip(cancel)
    assert_verified(ada.store)


def test_one_thread_can_be_pulled_by_the_end_of_its_id(
    ada: Person, bob: Person
) -> None:
    threads = [ada.begin(DONE), ada.begin(DONE)]
    ada.push(send_all=True)

    bob.pull(only=threads[0][-8:].lower())

    assert [bob.tip(thread) for thread in threads] == [ada.tip(threads[0]), None]
    with pytest.raises(NotFoundError):
        bob.pull(only="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    with pytest.raises(AmbiguousError):
        bob.pull(only="01")


def test_a_pull_of_a_bad_thread_adopts_the_good_and_leaves_nothing_of_it(
    ada: Person, bob: Person, bare: Path
) -> None:
    good, bad = ada.begin(DONE), ada.begin(DONE, GOOD)
    ada.push(send_all=True)
    tip = Oid(str(ada.tip(bad)))
    forged = forge(ada.store, tip, {2: lambda d: d.put("threads/x", b"hidden\n")})
    smuggle(ada, bare, forged, thread_ref(bad))

    report = bob.pull()

    assert results(report.outcomes) == {good: "new", bad: "refused"}
    assert not report.ok
    assert bob.tip(bad) is None
    assert f"refs/remotes/origin/thread/{bad}" not in refs_of(bob.store)
    left = objects_of(bob.store)
    assert forged not in left
    assert git(ada.store, "rev-parse", f"{forged}:threads/x").strip() not in left
    assert_verified(bob.store)


def test_a_thread_that_cannot_even_be_fetched_keeps_no_other_back(
    ada: Person, bob: Person, bare: Path
) -> None:
    threads = [ada.begin(DONE) for _ in range(3)]
    ada.push(send_all=True)
    tree = git(bare, "rev-parse", f"{ada.tip(threads[1])}^{{tree}}").strip()
    object_file(bare, tree).unlink()

    report = bob.pull()

    assert results(report.outcomes) == {
        threads[0]: "new",
        threads[1]: "refused",
        threads[2]: "new",
    }


@pytest.mark.parametrize(
    "name", ["01m8fv0g61k8rny396jmtgnrk5", "x", "01M8FV0G61K8RNY396JMTGNRK5/x"]
)
def test_a_ref_that_no_thread_may_be_called_is_told_and_not_taken(
    ada: Person, bob: Person, bare: Path, name: str
) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    git(bare, "update-ref", f"refs/heads/thread/{name}", str(ada.tip(thread)))

    report = bob.pull()

    assert results(report.outcomes) == {
        f"refs/heads/thread/{name}": "refused",
        thread: "new",
    }


@pytest.mark.parametrize("name", ["thread", "workflow"])
def test_a_branch_where_the_folder_of_threads_should_be_is_told_and_not_taken(
    ada: Person, bob: Person, bare: Path, name: str
) -> None:
    thread = ada.begin(DONE)
    smuggle(ada, bare, Oid(str(ada.tip(thread))), f"refs/heads/{name}")

    report = bob.pull()

    assert results(report.outcomes) == {f"refs/heads/{name}": "refused"}
    assert set(refs_of(bob.store)) == {"refs/heads/main"}


def test_a_thread_that_went_back_and_on_otherwise_has_diverged(
    ada: Person, bob: Person, bare: Path
) -> None:
    thread = ada.begin(DONE, GOOD)
    ada.push(thread)
    bob.pull()
    before = bob.tip(thread)
    git(bare, "update-ref", thread_ref(thread), f"{before}~1")
    assert results(bob.pull().outcomes) == {thread: "went-back"}
    other = forge(ada.store, Oid(str(before)), {}, upto=1)
    assert other == git(bare, "rev-parse", thread_ref(thread)).strip()
    ada.ledger.lookup.refresh()
    move_ref(
        ada.store, thread_ref(thread), old=ada.tip(thread), new=other, reason="test"
    )
    ada.go(thread, BAD)
    smuggle(ada, bare, Oid(str(ada.tip(thread))), thread_ref(thread))

    report = bob.pull()

    assert results(report.outcomes) == {thread: "diverged"}
    assert "uwf thread resolve" in (report.outcomes[0].message or "")
    assert bob.tip(thread) == before
    asked = [bob.push(), bob.push(thread)]
    assert [results(each.outcomes) for each in asked] == [
        {thread: "diverged"},
        {thread: "rejected"},
    ]
    assert not asked[1].ok


def test_a_private_thread_that_nobody_named_is_passed_by(
    ada: Person, bare: Path
) -> None:
    private, other = ada.begin(DONE, private=True), ada.begin(DONE)

    report = ada.push(send_all=True)

    assert results(report.outcomes) == {private: "private", other: "new"}
    assert report.ok
    assert thread_ref(private) not in refs_of(bare)


def test_a_removed_thread_does_not_come_back_until_there_is_something_new(
    ada: Person, bob: Person
) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    bob.go(thread, GOOD)
    remove_thread(bob.ledger, thread, command="test")

    assert results(bob.pull().outcomes) == {thread: "removed"}
    assert bob.tip(thread) is None
    ada.go(thread, BAD)
    ada.push()

    assert results(bob.pull().outcomes) == {thread: "new"}
    assert bob.tip(thread) == ada.tip(thread)


def test_a_thread_that_is_held_is_busy_and_keeps_no_other_back(
    ada: Person, bob: Person
) -> None:
    threads = [ada.begin(DONE), ada.begin(DONE)]
    ada.push(send_all=True)

    with hold_thread(bob.ledger, threads[0], command="test"):
        report = bob.pull()

    assert results(report.outcomes) == {threads[0]: "busy", threads[1]: "new"}
    assert report.is_busy
    assert results(bob.pull().outcomes) == {threads[0]: "new"}


def test_two_contents_of_one_hash_in_two_threads_are_told(
    ada: Person, bob: Person
) -> None:
    one, other = (make_text(text) for text in COLLIDING)
    threads = [_planned(person, node) for person, node in ((ada, one), (bob, other))]
    ada.push(threads[0])

    report = bob.pull()

    assert [(each.hash, each.threads) for each in report.collisions] == [
        (one.hash, tuple(sorted(threads)))
    ]


def _planned(person: Person, plan: Node) -> ThreadId:
    """Run a thread whose planner puts its plan into a node of its own."""
    thread = person.begin()

    def act(request: AgentRequest) -> str:
        put(person.ledger, request, plan)
        return reply("done", plan=plan.hash)

    exec_thread(acting(person.ledger, act), thread, count=1)
    return thread


def registered(person: Person) -> list[str]:
    return [each.hash for each in workflow_history(person.ledger, "work")]


def add(person: Person, description: str) -> None:
    workflow = make_workflow(description=description)
    add_workflow(person.ledger, workflow, workflow_data(workflow))


def test_registered_workflows_are_adopted_only_when_asked_for(
    ada: Person, bob: Person
) -> None:
    add(ada, "one")
    add(ada, "two")
    ada.push(send_all=True)

    assert results(bob.pull().outcomes) == {workflow_ref("work"): "available"}
    assert find_ref(bob.store, workflow_ref("work")) is None

    assert results(bob.pull(workflows=True).outcomes) == {workflow_ref("work"): "new"}
    assert registered(bob) == registered(ada)
    add(bob, "three")
    assert results(bob.push().outcomes) == {workflow_ref("work"): "updated"}
    ada.pull(workflows=True)
    assert registered(bob) == registered(ada)


def test_versions_registered_on_both_sides_are_told_and_nothing_is_lost(
    ada: Person, bob: Person
) -> None:
    add(ada, "one")
    ada.push(send_all=True)
    bob.pull(workflows=True)
    add(ada, "two")
    add(bob, "three")
    ada.push()

    report = bob.pull(workflows=True)

    assert results(report.outcomes) == {workflow_ref("work"): "diverged"}
    assert results(bob.push().outcomes) == {workflow_ref("work"): "diverged"}
    mine, _ = registered(bob)
    assert report.outcomes[0].message == (
        "both registered versions; to go on from theirs: "
        "uwf workflow rm work && uwf pull --workflows, "
        f"then yours again: uwf workflow rollback work {mine}"
    )
    remove_workflow(bob.ledger, "work")
    assert results(bob.pull(workflows=True).outcomes) == {workflow_ref("work"): "new"}
    rollback_workflow(bob.ledger, "work", Hash(mine))
    assert results(bob.push().outcomes) == {workflow_ref("work"): "updated"}
    ada.pull(workflows=True)
    assert registered(ada) == registered(bob)
    assert registered(ada)[0] == mine
    assert len(registered(ada)) == 3


@pytest.mark.parametrize(
    ("path", "data"),
    [
        pytest.param("workflows/work/extra.txt", b"x\n", id="a file too many"),
        pytest.param("workflows/other/workflow.yaml", b"x\n", id="of another"),
        pytest.param("README.md", b"x\n", id="genesis changed"),
        pytest.param("workflows/work/workflow.yaml", b"name: work\n", id="no workflow"),
    ],
)
def test_a_registry_branch_that_is_not_what_adding_gives_is_refused(
    ada: Person, bob: Person, bare: Path, path: str, data: bytes
) -> None:
    add(ada, "one")
    ada.push(send_all=True)
    _spoil(bare, workflow_ref("work"), path, data)

    report = bob.pull(workflows=True)

    assert results(report.outcomes) == {workflow_ref("work"): "refused"}
    assert find_ref(bob.store, workflow_ref("work")) is None


def _spoil(bare: Path, ref: str, path: str, data: bytes) -> None:
    """Put a file into the newest commit of a branch."""
    file = bare.parent / "spoil"
    file.write_bytes(data)
    blob = git(bare, "hash-object", "-w", str(file)).strip()
    index = ("-c", "core.bare=true")
    git(bare, *index, "read-tree", ref)
    git(bare, *index, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
    tree = git(bare, *index, "write-tree").strip()
    raw = git(bare, "cat-file", "commit", ref)
    lines = [f"tree {tree}", *raw.split("\n")[1:]]
    file.write_text("\n".join(lines))
    commit = git(bare, "hash-object", "-t", "commit", "-w", str(file)).strip()
    git(bare, "update-ref", ref, commit)


def test_a_third_person_gets_what_two_made(
    ada: Person, bob: Person, bare: Path, tmp_path: Path
) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    bob.go(thread, GOOD)
    bob.push()
    eve = make_person(tmp_path, "eve", hours=9)
    eve.join(bare)

    eve.pull()

    assert eve.tip(thread) == bob.tip(thread)
    assert not eve.ledger.local.is_made_here(Oid(str(eve.tip(thread))))
    assert eve.ledger.local.is_verified_here(Oid(str(eve.tip(thread))))


def test_a_cancelled_thread_travels(ada: Person, bob: Person) -> None:
    thread = ada.begin(DONE)
    cancel_thread(ada.ledger, thread, reason=None, command="test")
    ada.push(thread)

    bob.pull()

    assert bob.tip(thread) == ada.tip(thread)


def test_approvals_travel_with_their_thread(ada: Person, bob: Person) -> None:
    thread, other = ada.begin(DONE), ada.begin(DONE)
    ref = approve(ada, thread, "1")
    approve(ada, other, "1")

    ada.push(thread)
    report = bob.pull()

    assert results(report.outcomes) == {thread: "new", ref: "new"}
    assert find_ref(bob.store, ref) == find_ref(ada.store, ref)


def test_an_approval_counts_under_its_own_name_only(
    ada: Person, bob: Person, bare: Path
) -> None:
    thread = ada.begin(DONE)
    ref = approve(ada, thread, "1", tag=f"approved/{thread}/2")
    ada.push(thread)
    assert ref not in refs_of(bare)
    smuggle(ada, bare, Oid(git(ada.store, "rev-parse", ref).strip()), ref)

    report = bob.pull()

    assert results(report.outcomes) == {thread: "new", ref: "refused"}
    assert find_ref(bob.store, ref) is None


def test_two_who_approved_the_same_step_are_told_and_keep_their_own(
    ada: Person, bob: Person, bare: Path
) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    ref = approve(bob, thread, "1")
    bob.push(thread)
    mine = approve(ada, thread, "1", note="Mine.")

    pushed, pulled = ada.push(thread), ada.pull()

    for report in (pushed, pulled):
        assert results(report.outcomes) == {ref: "diverged"}
        assert report.ok
        assert f"uwf git tag -d approved/{thread}/1" in str(report.outcomes[0].message)
    assert mine == ref
    assert refs_of(bare)[ref] == find_ref(bob.store, ref) != find_ref(ada.store, ref)


@pytest.mark.parametrize("how", ["push", "pull"])
def test_a_thread_that_a_remote_lost_counts_as_shared_no_more(
    ada: Person, bare: Path, how: str
) -> None:
    thread, other = ada.begin(DONE), ada.begin(DONE)
    ada.push(thread, other)
    git(bare, "update-ref", "-d", thread_ref(thread))

    def shared(thread: ThreadId) -> str:
        tip = ada.tip(thread)
        assert tip is not None
        return find_sharing(ada.store, thread, tip).shared

    assert shared(thread) == "yes"
    _ = ada.push() if how == "push" else ada.pull()

    assert shared(thread) == "never"
    assert shared(other) == "yes"
    assert results(ada.push().outcomes) == {thread: "not-shared"}


def test_a_branch_that_went_back_is_told_and_sent_again_by_name_only(
    ada: Person, bare: Path
) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    ada.go(thread, GOOD)
    ada.push()
    assert find_ref(ada.store, f"refs/remotes/origin/thread/{thread}") == ada.tip(
        thread
    )
    git(bare, "update-ref", thread_ref(thread), f"{thread_ref(thread)}~1")
    there = git(bare, "rev-parse", thread_ref(thread))

    assert results(ada.pull().outcomes) == {thread: "went-back"}
    assert results(ada.push().outcomes) == {thread: "went-back"}
    assert results(ada.pull().outcomes) == {thread: "went-back"}
    assert git(bare, "rev-parse", thread_ref(thread)) == there
    tracked = find_ref(ada.store, f"refs/remotes/origin/thread/{thread}")
    assert tracked == there.strip()

    assert results(ada.push(thread).outcomes) == {thread: "updated"}
    assert ada.push().outcomes == ()
    assert ada.pull().outcomes == ()


def test_a_branch_that_was_rewritten_leaves_a_way(ada: Person, bare: Path) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    who = ["-c", "user.name=Eve", "-c", "user.email=eve@example.org"]
    parent, tree = f"{thread_ref(thread)}~1", f"{thread_ref(thread)}^{{tree}}"
    other = git(bare, *who, "commit-tree", "-p", parent, "-m", "mine", tree).strip()
    git(bare, "update-ref", thread_ref(thread), other)

    report = ada.pull()

    assert results(report.outcomes) == {thread: "refused"}
    assert f"uwf thread fork {thread}" in (report.outcomes[0].message or "")


def test_a_resolve_by_others_leaves_my_steps_as_a_fork(
    ada: Person, bob: Person
) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    bob.go(thread, BAD)
    bob.push()
    mine = load_tip(bob.store, thread).state.head
    ada.go(thread, GOOD)
    assert results(ada.pull().outcomes) == {thread: "diverged"}
    ada.resolve(thread, "mine")
    ada.push()

    report = bob.pull()

    (outcome,) = report.outcomes
    assert outcome.result == "updated"
    assert "a resolve set 1 event aside" in (outcome.message or "")
    rows = bob.ledger.lookup.list_threads()
    forks = [row.thread for row in rows if row.thread != thread]
    assert len(forks) == 1
    assert forks[0] in (outcome.message or "")
    assert load_tip(bob.store, forks[0]).state.head == mine


@pytest.mark.parametrize("is_new", [False, True], ids=["refreshed", "filled anew"])
def test_a_step_that_a_resolve_set_aside_is_found_by_its_hash(
    ada: Person, bob: Person, bare: Path, tmp_path: Path, *, is_new: bool
) -> None:
    eve = make_person(tmp_path, "eve", hours=9)
    eve.join(bare)
    thread = ada.begin(DONE)
    ada.push(thread)
    for person in (bob, eve):
        person.pull()
    bob.go(thread, BAD, DONE)
    bob.push()
    record = open_record(bob.store, thread)
    aside = [step.hash for step in record.iter_steps()][:2]
    eve.pull()
    ada.go(thread, GOOD)
    ada.pull()
    ada.resolve(thread, "mine")
    ada.push()

    (outcome,) = eve.pull().outcomes
    for person in (ada, eve):
        if is_new:
            person.ledger.lookup.rebuild()
        else:
            person.ledger.lookup.refresh()

    assert outcome.message is not None
    assert f"(step {', '.join(aside)})" in outcome.message
    assert f"uwf thread fork {aside[0]}" in outcome.message
    for person in (ada, eve):
        for step in aside:
            assert resolve_step(person.ledger, step)[1].hash == step
            assert find_node(person.ledger, step) is not None
        assert len(person.ledger.lookup.list_threads()) == 1
    fork = fork_thread(eve.ledger, thread, step=aside[0])
    assert (fork.state.head, fork.state.steps) == (aside[0], 3)
    assert [each.ok for each in verify_threads(eve.store, [fork.thread])] == [True]
