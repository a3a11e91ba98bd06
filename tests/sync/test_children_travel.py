"""A parent and its children between stores: sent, brought, bundled and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.builders import git, reply
from tests.engine.nested import Play, child, children_of, parent, start
from tests.proof import verify_threads
from tests.sync.people import Person
from uwfgit.engine.beside.trash import require_no_parent
from uwfgit.engine.run.thread import cancel_thread
from uwfgit.errors import StateError
from uwfgit.ids import ThreadId
from uwfgit.model.thread.family import family_of
from uwfgit.model.thread.tip import load_tip
from uwfgit.store.layout import thread_ref
from uwfgit.store.refs import find_ref
from uwfgit.sync.receive import ZERO, Push, check_pushes

REPLIES: Final[dict[str, Any]] = {
    "preparer": [reply("ready")],
    "coder": [reply("coded", what="code")],
    "tester": [reply("built", what="a tool")],
    "sender": [reply("sent")],
}


def begin(person: Person) -> tuple[ThreadId, ThreadId]:
    """Run a thread whose step another did; returns both."""
    thread = start(person.ledger, person.folder, parent(), child())
    Play(person.ledger, person.folder, thread, REPLIES).go()
    (made,) = children_of(person.ledger, thread)
    return thread, made


def test_a_parent_that_is_pushed_takes_its_children_along(
    ada: Person, bob: Person, bare: Path
) -> None:
    thread, made = begin(ada)

    report = ada.push(thread)
    bob.pull()

    sent = git(bare, "for-each-ref", "--format=%(refname)", "refs/heads/thread/")
    assert sent.split() == sorted([thread_ref(thread), thread_ref(made)])
    assert all(outcome.result == "new" for outcome in report.outcomes)
    (proof,) = verify_threads(bob.store, [thread])
    assert (proof.ok, proof.children_here, proof.children) == (True, 1, 1)


def test_a_server_refuses_a_parent_without_its_children(
    ada: Person, bob: Person
) -> None:
    thread, _ = begin(ada)
    tip = load_tip(ada.store, thread).commit
    refs = f"{thread_ref(thread)}:{thread_ref(thread)}"
    git(bob.store, "fetch", "-q", str(ada.store.path), refs)
    push = Push(old=ZERO, new=tip, ref=thread_ref(thread))

    (alone,) = check_pushes(bob.store, [push], shared=False, now=0)
    (whole,) = check_pushes(ada.store, [push], shared=False, now=0)

    assert alone is not None
    assert alone.startswith("children 0 of 1 here")
    assert whole is None


def test_a_server_refuses_a_parent_whose_child_no_branch_would_keep(
    ada: Person, bob: Person
) -> None:
    thread, made = begin(ada)
    for each in (thread, made):
        refs = f"{thread_ref(each)}:{thread_ref(each)}"
        git(bob.store, "fetch", "-q", str(ada.store.path), refs)
    tip, below = load_tip(ada.store, thread).commit, load_tip(ada.store, made).commit
    git(bob.store, "update-ref", "-d", thread_ref(made))
    push = Push(old=ZERO, new=tip, ref=thread_ref(thread))
    along = Push(old=ZERO, new=below, ref=thread_ref(made))

    (alone,) = check_pushes(bob.store, [push], shared=False, now=0)
    together = list(check_pushes(bob.store, [along, push], shared=False, now=0))

    assert alone is not None
    assert alone.startswith(f"child {made} has no branch here")
    assert together == [None, None]


def test_a_child_whose_parent_lives_is_not_removed_unasked(ada: Person) -> None:
    thread, made = begin(ada)

    with pytest.raises(StateError) as caught:
        require_no_parent(ada.ledger, made)
    require_no_parent(ada.ledger, thread)

    assert caught.value.hint is not None
    assert caught.value.hint.endswith("--yes")


def test_cancelling_a_parent_cancels_the_child_it_waits_for(ada: Person) -> None:
    waiting = {**REPLIES, "tester": ["---\n$status: $SUSPEND\nreason: Which?\n---\n"]}
    thread = start(ada.ledger, ada.folder, parent(), child())
    Play(ada.ledger, ada.folder, thread, waiting).go()
    (made,) = children_of(ada.ledger, thread)

    cancel_thread(ada.ledger, thread, reason="Enough", command="test")

    assert load_tip(ada.store, thread).state.status == "cancelled"
    assert load_tip(ada.store, made).state.status == "cancelled"


def test_a_family_is_read_off_the_record(ada: Person) -> None:
    thread, made = begin(ada)

    assert family_of(ada.store, thread) == (made,)
    assert family_of(ada.store, made) == ()
    assert find_ref(ada.store, thread_ref(made)) is not None
