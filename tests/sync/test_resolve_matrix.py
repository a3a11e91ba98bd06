"""Every way to diverge, times every way to resolve: one state, nothing lost."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, get_args

import pytest

from tests.builders import git, reply
from tests.history import events, names, state_of
from tests.proof import assert_verified
from tests.sync.people import (
    ASK,
    BAD,
    DONE,
    GOOD,
    Person,
    make_person,
    refs_of,
    results,
)
from uwfgit.engine.beside.trash import remove_thread
from uwfgit.engine.run.thread import cancel_thread, fork_thread
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.thread.tip import find_sharing
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import THREAD_PREFIX, thread_ref
from uwfgit.store.refs import is_ancestor, scan_refs
from uwfgit.sync.diverged.diverge import Way

WAYS: Final[tuple[Way, ...]] = get_args(Way)
Act = Callable[[Person, ThreadId], object]


def cancel(person: Person, thread: ThreadId) -> None:
    cancel_thread(person.ledger, thread, reason="No time.", command="test")


def fork(person: Person, thread: ThreadId) -> None:
    """Go on, fork there, and go on in both."""
    person.go(thread, BAD)
    copy = fork_thread(person.ledger, thread).thread
    person.go(copy, DONE)
    person.go(thread, DONE)


def suspend_and_resume(person: Person, thread: ThreadId) -> None:
    person.go(thread, ASK)
    person.resume(thread, GOOD, note=person.folder.parent.name)


ACTS: Final[dict[str, Act]] = {
    "exec": lambda person, thread: person.go(thread, BAD, DONE),
    "poke": lambda person, thread: person.poke(thread, reply("done", plan="other")),
    "resume": suspend_and_resume,
    "cancel": cancel,
    "fork": fork,
    "failed attempt": lambda person, thread: person.go(thread, "no block"),
}


def guard(bare: Path) -> None:
    """Let the repository between them take fast-forwards only."""
    git(bare, "config", "receive.denyNonFastForwards", "true")
    git(bare, "config", "receive.denyDeletes", "true")


def tip(person: Person, thread: ThreadId) -> Oid:
    return Oid(str(person.tip(thread)))


def threads_of(store: Store) -> dict[str, str]:
    return {k: v for k, v in refs_of(store).items() if k.startswith(THREAD_PREFIX)}


def moves_of(store: Store) -> Iterator[tuple[str, Oid, Oid, str]]:
    """Give every move of a thread's branch that its reflog tells."""
    folder = store.path / "logs" / THREAD_PREFIX
    for file in sorted(folder.iterdir()):
        for line in file.read_text().splitlines():
            facts, _, reason = line.partition("\t")
            old, new, *_ = facts.split(" ")
            yield file.name, Oid(old), Oid(new), reason


def jumps_of(store: Store) -> list[tuple[str, str]]:
    """Give the moves that were no fast-forwards, and why they were made."""
    return [
        (thread, reason)
        for thread, old, new, reason in moves_of(store)
        if set(old) != {"0"} and not is_ancestor(store, old, new)
    ]


def shared_of(person: Person) -> dict[str, str]:
    """Return the threads that the remote has, without what a pull set aside."""
    tracked = scan_refs(person.store, "refs/remotes/origin/thread/")
    names = {ref.rpartition("/")[2] for ref in tracked}
    return {
        ref: oid
        for ref, oid in threads_of(person.store).items()
        if ref.removeprefix(THREAD_PREFIX) in names
    }


def assert_one_state(*people: Person) -> None:
    first, *others = people
    for person in others:
        assert shared_of(person) == shared_of(first)
    for person in people:
        assert_verified(person.store)
        for ref, oid in threads_of(person.store).items():
            thread = ThreadId(ref.removeprefix(THREAD_PREFIX))
            assert find_sharing(person.store, thread, Oid(oid)).diverged == ()


def nodes_of(person: Person, thread: ThreadId) -> list[str | None]:
    return [each.node for each in events(person.store, thread) if each.node]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_whatever_both_did_each_way_leads_both_to_one_state(
    ada: Person, bob: Person, bare: Path, way: Way
) -> None:
    guard(bare)
    pairs = {ada.begin(DONE): acts for acts in itertools.product(ACTS, ACTS)}
    ada.push(send_all=True)
    bob.pull()
    for thread, (hers, his) in pairs.items():
        ACTS[hers](ada, thread)
        ACTS[his](bob, thread)
    ada.push(send_all=True)
    pulled = results(bob.pull().outcomes)
    assert {thread: pulled[thread] for thread in pairs} == dict.fromkeys(
        pairs, "diverged"
    )
    tips = {thread: (tip(ada, thread), tip(bob, thread)) for thread in pairs}
    his_nodes = {thread: nodes_of(bob, thread) for thread in pairs}
    his_states = {thread: state_of(bob.store, thread).status for thread in pairs}

    done = {thread: bob.resolve(thread, way) for thread in pairs}
    sent = bob.push(send_all=True)
    assert sent.ok, sent.outcomes
    assert ada.pull().ok

    assert_one_state(ada, bob)
    assert {each.result for each in bob.push().outcomes} <= {"not-shared"}
    assert {each.result for each in ada.push().outcomes} <= {"not-shared"}
    assert jumps_of(ada.store) == []
    if way != "both":
        assert jumps_of(bob.store) == []
        for thread, sides in tips.items():
            now = tip(ada, thread)
            assert all(is_ancestor(ada.store, side, now) for side in sides)
        return
    assert jumps_of(bob.store) == [(each, "resolve: keep both") for each in pairs]
    for thread, (hers, _) in tips.items():
        copy = done[thread].copy
        assert copy is not None
        assert tip(ada, thread) == hers
        assert nodes_of(ada, copy.thread) == his_nodes[thread]
        assert state_of(ada.store, copy.thread).status == his_states[thread]


@pytest.fixture
def eve(tmp_path: Path, bare: Path) -> Person:
    person = make_person(tmp_path, "eve", hours=9)
    person.join(bare)
    return person


def of_three(ada: Person, bob: Person, eve: Person) -> ThreadId:
    """Let three people go on with a thread; Eve pushes first."""
    thread = ada.begin(DONE)
    ada.push(thread)
    for person, said in ((bob, BAD), (eve, GOOD)):
        person.pull()
        person.go(thread, said)
    ada.poke(thread, DONE)
    eve.push()
    for person in (ada, bob):
        assert results(person.pull().outcomes) == {thread: "diverged"}
    return thread


def settle(thread: ThreadId, way: Way, *people: Person) -> None:
    """Pull, resolve what has diverged and push, one after the other, until none has."""
    for _ in range(3):
        for person in people:
            found = results(person.pull().outcomes)
            if found.get(thread) == "diverged":
                person.resolve(thread, way)
            assert person.push(send_all=True).ok
    for person in people:
        assert person.pull().outcomes == ()


@pytest.mark.slow
@pytest.mark.parametrize(("hers", "his"), list(itertools.product(WAYS, WAYS)))
def test_two_who_both_resolve_against_a_third_come_to_one_state(
    ada: Person, bob: Person, eve: Person, bare: Path, hers: Way, his: Way
) -> None:
    guard(bare)
    thread = of_three(ada, bob, eve)
    sides = [tip(person, thread) for person in (ada, bob, eve)]
    steps = [nodes_of(person, thread)[-1] for person in (ada, bob, eve)]

    ada.resolve(thread, hers)
    bob.resolve(thread, his)
    ada.push(send_all=True)
    found = results(bob.pull().outcomes)
    if found.get(thread) == "diverged":
        bob.resolve(thread, his)
    assert bob.push(send_all=True).ok
    settle(thread, "theirs", ada, eve, bob)

    assert_one_state(ada, bob, eve)
    assert jumps_of(eve.store) == []
    kept = threads_of(eve.store).values()
    held = git(eve.store, "rev-list", *kept, f"^{GENESIS_OID}").split()
    nodes = {node for ref in threads_of(eve.store) for node in _nodes(eve, ref)}
    for side, step in zip(sides, steps, strict=True):
        assert side in held or step in nodes


def _nodes(person: Person, ref: str) -> list[str | None]:
    return nodes_of(person, ThreadId(ref.removeprefix(THREAD_PREFIX)))


@pytest.mark.parametrize(
    "way",
    [pytest.param(way, marks=[pytest.mark.slow] * (way != "both")) for way in WAYS],
)
def test_a_thread_that_was_resolved_goes_on_diverges_and_is_resolved_again(
    ada: Person, bob: Person, bare: Path, way: Way
) -> None:
    guard(bare)
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    for number in range(2):
        for person, other in ((ada, bob), (bob, ada)):
            other.poke(thread, reply("done", plan=f"{number} {other.folder}"))
            person.poke(thread, reply("done", plan=f"{number} {person.folder}"))
            other.push(send_all=True)
            assert results(person.pull().outcomes)[thread] == "diverged"
            person.resolve(thread, way)
            assert person.push(send_all=True).ok
            other.pull()
            assert_one_state(ada, bob)

    resolves = names(ada.store, thread).count("resolve")
    copies = len(threads_of(ada.store)) - 1
    # A pull keeps as a fork what the other's choice set aside of one's own.
    kept = {"both": 4, "mine": 4, "theirs": 0}[way]
    assert (resolves > 0, copies) == (way != "both", kept)
    ada.go(thread, GOOD)
    ada.push()
    bob.pull()
    assert_one_state(ada, bob)


def test_a_pull_keeps_as_a_fork_once_what_a_killed_one_kept(
    ada: Person, bob: Person
) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    bob.go(thread, BAD)
    bob.push(thread)
    ada.go(thread, GOOD)
    ada.pull()
    ada.resolve(thread, "mine")
    ada.push(thread)
    # All that one killed before it moved the branch has done.
    fork = fork_thread(bob.ledger, thread).thread

    (outcome,) = bob.pull().outcomes

    assert set(threads_of(bob.store)) == {thread_ref(thread), thread_ref(fork)}
    assert outcome.message is not None
    assert fork in outcome.message


@pytest.mark.parametrize(
    "way",
    [pytest.param(way, marks=[pytest.mark.slow] * (way != "both")) for way in WAYS],
)
def test_a_diverged_thread_that_is_removed_here_stays_away_or_is_theirs(
    ada: Person, bob: Person, way: Way
) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    ada.go(thread, GOOD)
    bob.go(thread, BAD)
    ada.push()
    bob.pull()
    done = bob.resolve(thread, way)
    bob.push(send_all=True)
    gone = {thread, *([done.copy.thread] if done.copy else [])}
    for each in gone:
        remove_thread(bob.ledger, each, command="test")

    for _ in range(2):
        assert results(bob.pull().outcomes) == dict.fromkeys(gone, "removed")

    assert threads_of(bob.store) == {}
    ada.pull()
    assert {ThreadId(ref.removeprefix(THREAD_PREFIX)) for ref in shared_of(ada)} == gone
    assert thread_ref(thread) in threads_of(ada.store)
