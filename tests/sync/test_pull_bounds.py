"""Bounds of the format met by a pull: what fills one comes in, what exceeds it not.

One above is written by a program whose own bound is higher, as a stranger's may be.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import repeat
from typing import Final

import pytest
from msgspec.structs import replace

from tests.builders import (
    TEXT,
    Clock,
    begin,
    git,
    make_role,
    make_workflow,
    record_of,
    variant,
)
from tests.history import paths, state_of
from tests.sync.people import Person, objects_of, refs_of
from tests.sync.test_pull_forged import take
from tests.sync.tour import tip_of
from uwfgit import constants
from uwfgit.engine.run.thread import cancel_thread
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.branch import append_summary
from uwfgit.model.thread.state import encode_state
from uwfgit.model.thread.tip import load_tip
from uwfgit.model.workflow.workflow import Target
from uwfgit.store.git.settings import Identity

Make = Callable[[Person, int], ThreadId]


def _named(person: Person, size: int) -> ThreadId:
    identity = Identity(name="A" * size, email="a@b", is_default=False)
    return begin(replace(person.ledger, identity=identity), person.folder).thread


def _with_state(person: Person, size: int) -> ThreadId:
    def start(letters: int) -> ThreadId:
        workflow = make_workflow(name="w" + "a" * letters)
        return begin(person.ledger, person.folder, workflow=workflow).thread

    least = len(encode_state(state_of(person.store, start(0))))
    thread = start(size - least)
    assert len(encode_state(state_of(person.store, thread))) == size
    return thread


def _summed_up(person: Person, size: int) -> ThreadId:
    thread = begin(person.ledger, person.folder).thread
    cancel_thread(person.ledger, thread, reason=None, command="test")
    tip = load_tip(person.store, thread)
    text = "x" * (size - 1)
    append_summary(person.ledger, tip, text=text, usage=None, judge="m")
    return thread


def _late(person: Person, seconds: int) -> ThreadId:
    clock = Clock(repeat((seconds - 1) * 1000))
    return begin(replace(person.ledger, now_ms=clock), person.folder).thread


def _wide(person: Person, entries: int) -> ThreadId:
    types_and_two = 11
    roles = {
        f"r{number}": make_role(variant("done", [], **{f"f{number}": TEXT}))
        for number in range(entries - types_and_two)
    }
    over = {"done": Target(role="$END", prompt="Over.")}
    start = Target(role="r0", prompt="Begin.")
    graph = {"$START": {"new": start, "resume": start}} | dict.fromkeys(roles, over)
    workflow = make_workflow(roles=roles, graph=graph)
    thread = begin(person.ledger, person.folder, workflow=workflow).thread
    assert len(paths(person.store, thread, "nodes/start")) == entries
    return thread


def _large(person: Person, size: int) -> ThreadId:
    # Its prompt says nothing of the task: a template renders to 1 MiB at most.
    first = Target(role="r0", prompt="Begin.")
    over = {"done": Target(role="$END", prompt="Over.")}
    workflow = make_workflow(
        roles={"r0": make_role(variant("done"))},
        graph={"$START": {"new": first, "resume": first}, "r0": over},
    )

    def start(letters: int) -> ThreadId:
        task = "x" * letters
        return begin(
            person.ledger, person.folder, workflow=workflow, prompt=task
        ).thread

    def length(thread: ThreadId) -> int:
        record = record_of(person.ledger, thread)
        _, oid = record.places[record.tip.state.start]
        return int(git(person.store, "cat-file", "-s", oid))

    thread = start(size - (length(start(1)) - 1))
    assert length(thread) == size
    return thread


BOUNDS: Final[dict[str, Make]] = {
    "MAX_PERSON_BYTES": _named,
    "MAX_STATE_BYTES": _with_state,
    "MAX_SUMMARY_BYTES": _summed_up,
    "MAX_TIME": _late,
    "MAX_TREE_ENTRIES": _wide,
    "MAX_BLOB_BYTES": _large,
}
LONG: Final = ("MAX_TREE_ENTRIES", "MAX_BLOB_BYTES")


def _raise(patch: pytest.MonkeyPatch, name: str) -> None:
    """Let the program write more than the format allows."""
    for module in [each for key, each in sys.modules.items() if key[:7] == "uwfgit."]:
        if hasattr(module, name):
            patch.setattr(module, name, getattr(constants, name) * 2)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        pytest.param(name, make, marks=[pytest.mark.slow] if name in LONG else [])
        for name, make in BOUNDS.items()
    ],
    ids=BOUNDS,
)
def test_what_fills_a_bound_comes_in_and_what_exceeds_it_leaves_nothing(
    ada: Person, bob: Person, name: str, make: Make
) -> None:
    bound = getattr(constants, name)
    fits = make(ada, bound)
    with pytest.MonkeyPatch.context() as patch:
        _raise(patch, name)
        exceeds = make(ada, bound + 1)
        tip = tip_of(ada.ledger, exceeds)
    before = refs_of(bob.store), objects_of(bob.store)

    refused = take(bob, exceeds, ada, tip)

    assert refused.result == "refused", refused
    assert (refs_of(bob.store), objects_of(bob.store)) == before
    assert take(bob, fits, ada, tip_of(ada.ledger, fits)).result == "new"
    assert bob.tip(fits) == ada.tip(fits)
