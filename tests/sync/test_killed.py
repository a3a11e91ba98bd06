"""Commands that move several refs, killed at each call that renames or syncs.

Whatever the instant: the next command finds all of it done, or nothing.
"""

from __future__ import annotations

import shutil
from collections import Counter
from typing import Final

import pytest

from tests.builders import git, make_workflow, reply, workflow_data
from tests.planted import GITHUB
from tests.stress.killed import Killing
from tests.sync.people import BAD, DONE, Person
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.registering import add_workflow, remove_workflow
from uwfgit.store.layout import (
    THREAD_PREFIX,
    TRASH_PREFIX,
    WORKFLOW_PREFIX,
    thread_ref,
)
from uwfgit.store.locks.holding import lock_path
from uwfgit.store.refs import find_ref, list_refs
from uwfgit.store.repository import open_store
from uwfgit.sync.verify.verify import verify_threads

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("strace") is None, reason="no strace"),
]
NAME: Final = "work"
BRANCH: Final = f"{WORKFLOW_PREFIX}{NAME}"
TRASH: Final = f"{TRASH_PREFIX}workflow-{NAME}"


def kill_each(
    person: Person, *words: str, is_finished: bool = False
) -> list[dict[str, Oid]]:
    """Kill a command at each call; give the refs that the next command saw.

    Args:
        person: Whose command.
        words: The command.
        is_finished: The next command is the same one.
    """
    home = person.store.path.parent / ".uwf"
    killing = Killing(store=person.store.path, home=home, words=words)
    seen = []
    for _ in killing.kill_everywhere():
        if is_finished:
            killing.finish()
        opened = open_store(person.store.path, home=home, fsync=False)
        seen.append(list_refs(opened, "refs/"))
        assert not list(lock_path(opened, "moves").glob("*"))
        git(opened, "fsck", "--strict", "--no-dangling")
        threads = [
            ThreadId(ref.removeprefix(THREAD_PREFIX))
            for ref in seen[-1]
            if ref.startswith(THREAD_PREFIX)
        ]
        assert all(report.ok for report in verify_threads(opened, threads))
    return seen


def test_a_thread_is_redacted_or_as_it_was(ada: Person) -> None:
    thread = ada.begin(DONE, reply("bad", reason=f"not {GITHUB}"))
    before = list_refs(ada.store, "refs/")
    ref, trash = thread_ref(thread), TRASH_PREFIX + thread

    seen = kill_each(ada, "thread", "redact", thread)

    kinds: Counter[bool] = Counter()
    for refs in seen:
        if ref in refs:
            assert refs == before
        else:
            assert refs[trash] == before[ref]
            assert len(refs) == len(before) + 1
        kinds[ref in refs] += 1
    assert kinds[True] > 0
    assert kinds[False] > 1


def test_both_sides_are_kept_or_it_is_as_it_was(ada: Person, bob: Person) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    ada.go(thread, BAD)
    ada.push(thread)
    bob.go(thread, reply("bad", reason="other"))
    bob.pull()
    before = list_refs(bob.store, "refs/")
    theirs = ada.tip(thread)

    seen = kill_each(bob, "thread", "resolve", thread, "--keep-both")

    kinds: Counter[bool] = Counter()
    for refs in seen:
        if refs != before:
            assert refs[thread_ref(thread)] == theirs
            assert len(refs) == len(before) + 1
        kinds[refs == before] += 1
    assert kinds[True] > 0
    assert kinds[False] > 1


def test_a_workflow_is_there_or_in_the_trash(ada: Person) -> None:
    workflow = make_workflow(name=NAME)
    add_workflow(ada.ledger, workflow, workflow_data(workflow))
    tip = find_ref(ada.store, BRANCH)

    seen = kill_each(ada, "workflow", "rm", NAME)

    kinds = Counter((refs.get(BRANCH), refs.get(TRASH)) for refs in seen)
    assert set(kinds) == {(tip, None), (None, tip)}


def test_a_workflow_comes_back_at_the_wanted_version_or_not_at_all(
    ada: Person,
) -> None:
    first = make_workflow(name=NAME, description="First")
    second = make_workflow(name=NAME, description="Second")
    hash_ = add_workflow(ada.ledger, first, workflow_data(first)).hash
    add_workflow(ada.ledger, second, workflow_data(second))
    tip = remove_workflow(ada.ledger, NAME)

    seen = kill_each(ada, "workflow", "rollback", NAME, hash_)

    assert {refs.get(TRASH) for refs in seen} == {tip, None}
    for refs in seen:
        assert (BRANCH in refs) == (TRASH not in refs)
        assert refs.get(BRANCH) != tip


def test_a_pull_goes_on_where_a_killed_one_stood(ada: Person, bob: Person) -> None:
    thread, other = ada.begin(DONE), ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    bob.go(thread, reply("bad", reason="other"))
    bob.push(thread)
    ada.go(thread, BAD)
    ada.pull()
    ada.resolve(thread, "mine")
    ada.push(thread, other)

    seen = kill_each(bob, "pull", is_finished=True)

    # The two that came, and what was set aside of bob's.
    for refs in seen:
        threads = [ref for ref in refs if ref.startswith(THREAD_PREFIX)]
        assert len(threads) == len({thread, other}) + 1
        assert refs[thread_ref(thread)] == ada.tip(thread)
