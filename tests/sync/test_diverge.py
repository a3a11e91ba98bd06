"""Two people continue one thread; nothing is lost, and nothing is forced."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.builders import git, make_engine, object_file, reply
from tests.history import check_store, events, names, state_of
from tests.proof import assert_verified
from tests.sync.people import ASK, BAD, DONE, GOOD, Person, results
from uwfgit.engine.run.executor import exec_thread
from uwfgit.engine.run.thread import cancel_thread, fork_thread
from uwfgit.errors import CorruptError, InvalidError, StateError, UsageError
from uwfgit.ids import ThreadId
from uwfgit.model.thread.tip import find_sharing
from uwfgit.store.refs import is_ancestor
from uwfgit.sync.diverged.diverge import Way, find_divergence, list_sides


def diverge(ada: Person, bob: Person, *, common: tuple[str, ...] = (DONE,)) -> ThreadId:
    """Let both have a thread and go on with it; Ada pushes first, Bob pulls."""
    thread = ada.begin(*common)
    ada.push(thread)
    bob.pull()
    ada.go(thread, GOOD)
    bob.go(thread, BAD, DONE)
    ada.push(thread)
    return thread


def shared(person: Person, thread: ThreadId) -> tuple[str, tuple[str, ...]]:
    tip = person.tip(thread)
    assert tip is not None
    found = find_sharing(person.store, thread, tip)
    return found.shared, found.diverged


def test_a_pull_of_a_diverged_thread_keeps_both_tips(ada: Person, bob: Person) -> None:
    thread = diverge(ada, bob)
    mine = bob.tip(thread)

    report = bob.pull()

    assert results(report.outcomes) == {thread: "diverged"}
    assert bob.tip(thread) == mine
    tracked = git(bob.store, "rev-parse", f"refs/remotes/origin/thread/{thread}")
    assert tracked.strip() == ada.tip(thread)
    assert shared(bob, thread) == ("behind", ("origin",))
    assert not bob.pull().ok


def test_a_diverged_thread_cannot_be_pushed(ada: Person, bob: Person) -> None:
    thread = diverge(ada, bob)

    named = bob.push(thread)
    unnamed = bob.push()
    bob.pull()
    pulled = bob.push()

    assert results(named.outcomes) == {thread: "rejected"}
    assert results(unnamed.outcomes) == {thread: "rejected"}
    assert results(pulled.outcomes) == {thread: "diverged"}
    # What Bob made has not arrived, whether he knows of Ada's side or not.
    assert (named.ok, unnamed.ok, pulled.ok) == (False, False, False)


def test_exec_of_a_diverged_thread_names_the_way_out(ada: Person, bob: Person) -> None:
    thread = diverge(ada, bob)
    bob.pull()

    with pytest.raises(StateError) as caught:
        exec_thread(make_engine(bob.ledger), thread, count=1, agent="scripted:none")

    assert caught.value.hint is not None
    assert f"uwf thread resolve {thread}" in caught.value.hint


def test_both_sides_are_told_from_the_common_event(ada: Person, bob: Person) -> None:
    thread = diverge(ada, bob)
    bob.pull()

    divergence = find_divergence(bob.ledger, thread)
    sides = list_sides(bob.ledger, divergence)

    assert [event.role for event in sides.mine] == ["critic", "worker"]
    assert [(e.role, e.status) for e in sides.theirs] == [("critic", "good")]
    assert divergence.base == events(bob.store, thread)[1].commit.oid


@pytest.mark.parametrize("way", ["theirs", "mine"])
def test_keeping_one_side_is_a_fast_forward_for_everybody(
    ada: Person, bob: Person, way: Way
) -> None:
    thread = diverge(ada, bob)
    bob.pull()
    mine, theirs = bob.tip(thread), ada.tip(thread)
    assert mine is not None
    assert theirs is not None
    kept = state_of(bob.store, thread) if way == "mine" else state_of(ada.store, thread)

    bob.resolve(thread, way)

    tip = bob.tip(thread)
    assert tip is not None
    assert is_ancestor(bob.store, mine, tip)
    assert is_ancestor(bob.store, theirs, tip)
    assert state_of(bob.store, thread) == kept
    assert names(bob.store, thread)[-1] == "resolve"
    assert results(bob.push(thread).outcomes) == {thread: "updated"}
    assert results(ada.pull().outcomes) == {thread: "updated"}
    assert ada.tip(thread) == tip
    assert shared(ada, thread) == shared(bob, thread) == ("yes", ())
    for person in (ada, bob):
        assert_verified(person.store)


def test_keeping_both_gives_our_side_an_id_of_its_own(ada: Person, bob: Person) -> None:
    thread = diverge(ada, bob)
    bob.pull()
    mine = events(bob.store, thread)[2:]
    before = state_of(bob.store, thread)
    bob.ledger.local.set_folder(thread, bob.folder)
    bob.ledger.local.set_without_code(thread)

    resolved = bob.resolve(thread, "both")

    assert resolved.copy is not None
    copy = resolved.copy.thread
    assert bob.ledger.local.find_folder(copy) == bob.folder
    assert bob.ledger.local.is_without_code(copy)
    assert bob.tip(thread) == ada.tip(thread)
    fork, *replayed = events(bob.store, copy)[2:]
    assert fork.name == "fork"
    assert [event.node for event in replayed] == [event.node for event in mine]
    assert [event.commit.author for event in replayed] == [
        e.commit.author for e in mine
    ]
    assert [e.commit.committer for e in replayed] == [e.commit.committer for e in mine]
    after = state_of(bob.store, copy)
    assert (after.head, after.steps, after.usage) == (
        before.head,
        before.steps,
        before.usage,
    )
    assert f"Uwf-Replayed-From: {mine[-1].commit.oid}" in replayed[-1].commit.message
    assert_verified(bob.store)
    check_store(bob.store)
    assert results(bob.push(copy).outcomes) == {copy: "new"}
    assert results(ada.pull().outcomes) == {copy: "new"}
    assert ada.tip(copy) == bob.tip(copy)
    assert shared(bob, thread) == ("yes", ())


def test_what_is_missing_of_our_side_is_not_named_by_another_thread(
    ada: Person, bob: Person
) -> None:
    thread = diverge(ada, bob)
    bob.pull()
    tree = git(bob.store, "ls-tree", "-r", f"refs/heads/thread/{thread}")
    (oid,) = (
        line.split()[2]
        for line in tree.splitlines()
        if line.endswith("worker/output.md") and "/00003-" in line
    )
    object_file(bob.store, oid).unlink()
    bob.store.raw.forget_packs()

    with pytest.raises(CorruptError, match=f"object {oid} .*is missing"):
        bob.resolve(thread, "both")

    assert names(bob.store, thread)[-1] != "resolve"


@pytest.mark.parametrize("way", ["theirs", "mine"])
def test_equal_choices_on_both_sides_make_one_commit(
    ada: Person, bob: Person, way: Way
) -> None:
    thread = diverge(ada, bob)
    bob.pull()
    ada.join(bob.store.path, name="bob")
    ada.pull(of="bob")
    assert shared(ada, thread)[1] == ("bob",)

    bob.resolve(thread, way)
    ada.resolve(thread, "mine" if way == "theirs" else "theirs")

    assert ada.tip(thread) == bob.tip(thread)
    assert ada.push(thread).ok
    assert results(bob.push(thread).outcomes) == {}


def test_unequal_choices_can_be_resolved_again(ada: Person, bob: Person) -> None:
    thread = diverge(ada, bob)
    bob.pull()
    ada.join(bob.store.path, name="bob")
    ada.pull(of="bob")
    bob.resolve(thread, "mine")
    ada.resolve(thread, "mine")
    ada.push(thread)
    bob.pull()

    assert shared(bob, thread) == ("behind", ("origin",))
    bob.resolve(thread, "theirs")

    assert bob.push(thread).ok
    assert results(ada.pull().outcomes) == {thread: "updated"}
    assert ada.tip(thread) == bob.tip(thread)
    assert_verified(ada.store)


def cancels(person: Person, thread: ThreadId) -> None:
    cancel_thread(
        person.ledger, thread, reason="No time.\n\nReally: none", command="test"
    )


def pokes(person: Person, thread: ThreadId) -> None:
    person.poke(thread, reply("done", plan="another"))
    person.go(thread, BAD)
    person.poke(thread, GOOD)
    person.poke(thread, BAD, note="Stricter")


def asks_and_resumes(person: Person, thread: ThreadId) -> None:
    person.go(thread, ASK)
    person.resume(thread, GOOD)
    person.resume(thread, DONE, note="Once more")


def fails(person: Person, thread: ThreadId) -> None:
    person.go(thread, "no answer at all")
    person.resume(thread, "still none")
    person.resume(thread, GOOD)
    person.poke(thread, "nor this")


def answers_in_long_lines(person: Person, thread: ThreadId) -> None:
    person.go(thread, reply("bad", reason="x", body="\n".join(["ž" * 200] * 30)))


@pytest.mark.parametrize(
    ("act", "common"),
    [
        (cancels, (DONE,)),
        (pokes, (DONE,)),
        (pokes, (DONE, BAD, DONE)),
        (asks_and_resumes, (DONE,)),
        (fails, (DONE, BAD, DONE)),
        (answers_in_long_lines, (DONE,)),
    ],
)
def test_whatever_happened_on_our_side_can_be_kept_beside_theirs(
    ada: Person,
    bob: Person,
    act: Callable[[Person, ThreadId], None],
    common: tuple[str, ...],
) -> None:
    thread = ada.begin(*common)
    ada.push(thread)
    bob.pull()
    ada.poke(thread, reply("done", plan="mine"))
    ada.push(thread)
    act(bob, thread)
    bob.pull()
    before = state_of(bob.store, thread)

    resolved = bob.resolve(thread, "both")

    assert resolved.copy is not None
    after = resolved.copy.state
    assert (after.status, after.head, after.steps, after.usage) == (
        before.status,
        before.head,
        before.steps,
        before.usage,
    )
    assert_verified(bob.store)
    check_store(bob.store)


def test_a_resolve_in_our_end_is_left_out_when_it_is_kept_beside_theirs(
    ada: Person, bob: Person
) -> None:
    thread = diverge(ada, bob)
    bob.pull()
    bob.resolve(thread, "mine")
    ada.poke(thread, BAD)
    ada.push(thread)
    bob.pull()

    resolved = bob.resolve(thread, "both")

    assert resolved.copy is not None
    assert names(bob.store, resolved.copy.thread)[2:] == ["fork", "step", "step"]
    assert bob.tip(thread) == ada.tip(thread)
    assert_verified(bob.store)


def test_forks_on_both_sides_do_not_diverge(ada: Person, bob: Person) -> None:
    thread = diverge(ada, bob)
    forks = [fork_thread(person.ledger, thread, at=1).thread for person in (ada, bob)]

    ada.push(send_all=True)
    bob.push(forks[1])
    for person in (ada, bob):
        person.pull()

    assert [ada.tip(fork) for fork in forks] == [bob.tip(fork) for fork in forks]


def test_a_side_that_does_not_verify_is_not_taken(ada: Person, bob: Person) -> None:
    thread = diverge(ada, bob)
    git(bob.store, "fetch", "--quiet", "origin")
    mine = bob.tip(thread)
    spoiled = git(
        bob.store,
        *("-c", "user.name=x", "-c", "user.email=x", "commit-tree"),
        f"refs/remotes/origin/thread/{thread}^{{tree}}",
        "-p",
        f"refs/remotes/origin/thread/{thread}",
        "-m",
        "no event",
    ).strip()
    git(bob.store, "update-ref", f"refs/remotes/origin/thread/{thread}", spoiled)

    with pytest.raises(InvalidError):
        bob.resolve(thread, "theirs")

    assert bob.tip(thread) == mine


def test_a_thread_that_has_not_diverged_has_nothing_to_resolve(
    ada: Person, bob: Person
) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    ada.go(thread, GOOD)
    ada.push(thread)
    git(bob.store, "fetch", "--quiet", "origin")

    with pytest.raises(StateError) as caught:
        bob.resolve(thread, "mine")

    assert caught.value.hint == "a remote has more of it: uwf pull"


def test_several_remotes_with_several_tips_have_to_be_chosen_from(
    ada: Person, bob: Person
) -> None:
    thread = diverge(ada, bob)
    bob.pull()
    ada.poke(thread, BAD)
    bob.join(ada.store.path, name="ada")
    bob.pull(of="ada")

    with pytest.raises(UsageError):
        find_divergence(bob.ledger, thread)

    assert find_divergence(bob.ledger, thread, remote="ada").theirs == ada.tip(thread)
