"""Commands that move several refs, killed at each call that renames or syncs.

Whatever the instant: the next command finds all of it done, or nothing.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.builders import git, make_workflow, reply, workflow_data
from tests.planted import GITHUB
from tests.proof import verify_threads
from tests.stress.killed import Killing
from tests.sync.people import BAD, DONE, WIRE, Person, let_pass
from uwfgit.engine.beside.trash import remove_thread
from uwfgit.engine.run.thread import fork_thread
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.registering import add_workflow, remove_workflow
from uwfgit.model.thread.tip import load_tip
from uwfgit.store.layout import (
    THREAD_PREFIX,
    TRASH_PREFIX,
    WORKFLOW_PREFIX,
    thread_ref,
)
from uwfgit.store.local import Agreed, Local
from uwfgit.store.refs import find_ref, list_refs
from uwfgit.store.repository import open_store
from uwfgit.sync.exchange.bundle import create_bundle

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
NAME: Final = "work"
BRANCH: Final = f"{WORKFLOW_PREFIX}{NAME}"
TRASH: Final = f"{TRASH_PREFIX}workflow-{NAME}"


_ASIDE: Final = """
import os, sys, time
from pathlib import Path
from tests.builders import make_ledger
from uwfgit.store.repository import open_store
from uwfgit.sync.diverged.diverge import set_aside

path, thread, base = Path(os.environ["UWF_STORE"]), *sys.argv[1:]
store = open_store(path, home=Path(os.environ["UWF_HOME"]), write=True)
ledger = make_ledger(store, lambda: time.time_ns() // 1_000_000, random=os.urandom)
set_aside(ledger, thread, base=base, command="test")
"""
"""What a worker does with steps that were made under a claim it had lost."""


def killed(person: Person, *words: str) -> Killing:
    """Give a command of the program, to be killed."""
    base = person.store.path.parent
    return Killing(
        folder=base,
        store=person.store.path,
        home=base / ".uwf",
        words=words if words[0] == "-c" else ("-m", "uwfgit", *words),
    )


def kill_each(
    person: Person,
    *words: str,
    is_finished: bool = False,
    is_sample: bool = False,
) -> Iterator[dict[str, Oid]]:
    """Kill a command at each call; give the refs that the next command saw.

    Args:
        person: Whose command.
        words: The command, or ``-c`` and a program.
        is_finished: The next command is the same one.
        is_sample: Only between two refs that it moves.
    """
    killing = killed(person, *words)
    for _ in killing.kill_everywhere(is_sample=is_sample):
        if is_finished:
            killing.finish()
        yield look_at(killing.store, killing.home)


def look_at(path: Path, home: Path) -> dict[str, Oid]:
    """Open a store as the next command does; all of it is sound. Give its refs."""
    opened = open_store(path, home=home, fsync=False)
    refs = list_refs(opened, "refs/")
    assert not list((opened.locks / "moves").glob("*"))
    git(opened, "fsck", "--strict", "--no-dangling")
    threads = [
        ThreadId(ref.removeprefix(THREAD_PREFIX))
        for ref in refs
        if ref.startswith(THREAD_PREFIX)
    ]
    assert all(report.ok for report in verify_threads(opened, threads))
    return refs


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_workflow_is_there_or_in_the_trash(ada: Person) -> None:
    workflow = make_workflow(name=NAME)
    add_workflow(ada.ledger, workflow, workflow_data(workflow))
    tip = find_ref(ada.store, BRANCH)

    seen = kill_each(ada, "workflow", "rm", NAME)

    kinds = Counter((refs.get(BRANCH), refs.get(TRASH)) for refs in seen)
    assert set(kinds) == {(tip, None), (None, tip)}


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    "is_sample",
    [
        pytest.param(True, id="between"),
        pytest.param(False, id="everywhere", marks=pytest.mark.slow),
    ],
)
def test_a_thread_with_forks_is_removed_or_as_it_was(
    ada: Person, *, is_sample: bool
) -> None:
    thread = ada.begin(DONE, BAD)
    forks = [fork_thread(ada.ledger, thread, at=at).thread for at in (0, 1)]
    git(ada.store, "pack-refs", "--all")
    ada.go(thread, DONE)
    before = list_refs(ada.store, "refs/")
    ref = thread_ref(thread)
    after = {**before, TRASH_PREFIX + thread: before[ref]}
    del after[ref]

    seen = list(kill_each(ada, "thread", "rm", thread, is_sample=is_sample))

    assert all(thread_ref(fork) in after for fork in forks)
    assert all(refs in (before, after) for refs in seen)
    assert after in seen


@pytest.mark.slow
def test_a_thread_is_restored_or_in_the_trash(ada: Person) -> None:
    thread = ada.begin(DONE)
    remove_thread(ada.ledger, thread, command="test")
    before = list_refs(ada.store, "refs/")
    trash = TRASH_PREFIX + thread
    after = {**before, thread_ref(thread): before[trash]}
    del after[trash]

    seen = list(kill_each(ada, "thread", "restore", thread))

    assert all(refs in (before, after) for refs in seen)
    assert before in seen
    assert after in seen


@pytest.mark.parametrize(
    "is_sample",
    [
        pytest.param(True, id="between"),
        pytest.param(False, id="everywhere", marks=pytest.mark.slow),
    ],
)
def test_all_threads_of_a_bundle_come_or_none(
    ada: Person, bob: Person, tmp_path: Path, *, is_sample: bool
) -> None:
    threads = [ada.begin(DONE), ada.begin(DONE, BAD)]
    file = tmp_path / "them.bundle"
    create_bundle(
        ada.ledger, file, threads, wire=WIRE, verify=verify_threads, scan=let_pass
    )
    tips = {thread_ref(thread): ada.tip(thread) for thread in threads}

    seen = kill_each(bob, "bundle", "open", str(file), is_sample=is_sample)

    kinds = [{ref: refs.get(ref) for ref in tips} for refs in seen]
    assert all(kind in (tips, dict.fromkeys(tips)) for kind in kinds)
    assert tips in kinds


@pytest.mark.parametrize(
    "is_sample",
    [
        pytest.param(True, id="between"),
        pytest.param(False, id="everywhere", marks=pytest.mark.slow),
    ],
)
def test_a_pull_that_was_killed_forgets_no_trust_and_no_folder(
    ada: Person, bob: Person, tmp_path: Path, *, is_sample: bool
) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    tip = load_tip(bob.store, thread)
    agreed = Agreed(workflow=tip.state.workflow_oid, tip=tip.commit)
    bob.ledger.local.set_trusted(thread, agreed)
    bob.ledger.local.set_folder(thread, bob.folder)
    bob.ledger.local.close()
    ada.go(thread, BAD)
    ada.push(thread)
    script = tmp_path / "replies.yaml"
    script.write_text(f"replies: {{worker: [{json.dumps(DONE)}, {json.dumps(DONE)}]}}")
    words = ("thread", "exec", thread, "--agent", f"scripted:{script}", "--trust")
    going_on = killed(bob, *words)

    for _ in kill_each(bob, "pull", is_sample=is_sample):
        with Local(bob.store) as local:
            assert local.find_folder(thread) == bob.folder
            assert local.find_trusted(thread) == agreed
    # Nothing but trust in what is new: no folder is asked for.
    going_on.finish()


@pytest.mark.slow
def test_steps_made_under_a_lost_claim_are_set_aside_or_as_they_were(
    ada: Person,
) -> None:
    thread = ada.begin(DONE)
    base = ada.tip(thread)
    assert base
    ada.go(thread, BAD)
    before = list_refs(ada.store, "refs/")

    kinds: Counter[bool] = Counter()
    for refs in kill_each(ada, "-c", _ASIDE, thread, base):
        if refs != before:
            assert refs[thread_ref(thread)] == base
            assert len(refs) == len(before) + 1
        kinds[refs == before] += 1

    assert kinds[True] > 0
    assert kinds[False] > 1


@pytest.mark.slow
def test_a_clone_that_was_killed_is_made_whole_by_the_next_command(
    ada: Person, bare: Path, tmp_path: Path
) -> None:
    threads = [ada.begin(DONE), ada.begin(DONE, BAD)]
    ada.push(*threads)
    (tmp_path / "carol").mkdir()
    store, home = tmp_path / "carol" / "store", tmp_path / "carol" / ".uwf"
    words = ("-m", "uwfgit", "clone", f"file://{bare}", str(store))
    killing = Killing(folder=store.parent, store=store, home=home, words=words)

    for _ in killing.kill_everywhere():
        _finish_clone(words, home)
        refs = look_at(store, home)
        assert {thread_ref(thread) for thread in threads} <= refs.keys()


def _finish_clone(words: tuple[str, ...], home: Path) -> None:
    """Do what a person does who meets a clone that was killed, or one that was not."""
    environment = {**os.environ, "UWF_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if done.returncode:
        named = re.search(r"uwf (pull --store .*)", done.stderr)
        assert named, done.stderr
        subprocess.run(
            [sys.executable, "-m", "uwfgit", *shlex.split(named[1])],
            capture_output=True,
            check=True,
            env=environment,
        )
