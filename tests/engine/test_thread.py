"""Threads without a run: start, fork, cancel, rm; and what git makes of them."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from tests.acting import acting, go, saying
from tests.builders import begin, git, make_workflow, record_of, reply, workflow_data
from tests.history import (
    check_store,
    check_thread,
    events,
    files,
    names,
    paths,
    state_of,
    tip_oid,
)
from uwfgit.engine.beside.trash import remove_thread, restore_thread
from uwfgit.engine.run.executor import (
    exec_thread,
    poke_thread,
    resume_thread,
)
from uwfgit.engine.run.hold import hold_thread
from uwfgit.engine.run.thread import Parent, cancel_thread, fork_thread, start_thread
from uwfgit.errors import (
    InvalidError,
    LockedError,
    NotFoundError,
    RoutingFailedError,
    StateError,
    UsageError,
)
from uwfgit.ids import Hash, ThreadId, thread_time_ms
from uwfgit.model.ledger.ledger import Ledger, resolve_removed
from uwfgit.model.node import START_TYPE, format_nodes
from uwfgit.model.thread.state import ForkedFrom
from uwfgit.model.thread.step import StartedFor
from uwfgit.model.thread.tip import load_tip
from uwfgit.model.workflow.workflow import Edges, Target, workflow_nodes
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import thread_ref
from uwfgit.store.raw import BLOB, name_object
from uwfgit.store.refs import find_ref, move_ref

DONE: Final = reply(plan="x")
GOOD: Final = reply("good", "Fine.")
BAD: Final = reply("bad", "Not fine.", reason="slow")
NOWHERE: Final = ThreadId("01JZZZZZZZZZZZZZZZZZZZZZZZ")


@pytest.fixture
def thread(ledger: Ledger, tmp_path: Path) -> ThreadId:
    """A thread at its end after six steps: worker and critic in turn."""
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, DONE, BAD, DONE, BAD, DONE, GOOD)
    return thread


def _hashes(ledger: Ledger, thread: ThreadId) -> list[Hash]:
    return [step.hash for step in record_of(ledger, thread).steps()]


def _poke(ledger: Ledger, thread: ThreadId, said: str) -> None:
    poke_thread(acting(ledger, saying(said)), thread, note="Again.")


# --- start ---


def test_a_started_thread_waits_for_its_first_role(
    ledger: Ledger, tmp_path: Path
) -> None:
    tip = begin(ledger, tmp_path, prompt="Fix the bug\n")

    state, pinned = tip.state, workflow_nodes(make_workflow())[-1]
    assert load_tip(ledger.store, tip.thread) == tip
    assert (state.status, state.current_role, state.steps) == ("idle", "worker", 0)
    assert state.head == state.start
    assert (state.workflow_name, state.workflow_hash, state.workflow_oid) == (
        "work",
        pinned.hash,
        name_object(BLOB, pinned.data),
    )
    assert state.started_at_ms == state.updated_at_ms == tip.committed_at * 1000
    assert state.started_by == state.updated_by == "Ada <ada@example.com>"
    assert (state.forked_from, state.completed_at_ms, state.usage) == (None, None, None)
    check_thread(ledger.store, tip.thread)


def test_a_started_thread_holds_task_workflow_and_all_nodes(
    ledger: Ledger, tmp_path: Path
) -> None:
    tip = begin(ledger, tmp_path, prompt="Fix the bug")

    workflow = make_workflow()
    found = files(ledger.store, tip.thread)
    nodes = {node.name for node in (*format_nodes(), *workflow_nodes(workflow))}
    nodes.add(f"{tip.state.start}.{START_TYPE}.json")
    assert found.keys() == {
        "TASK.md",
        "workflow.yaml",
        "thread.json",
        *(f"nodes/start/{name}" for name in nodes),
    }
    assert found["TASK.md"] == b"Fix the bug\n"
    assert found["workflow.yaml"] == workflow_data(workflow)


def test_a_start_is_one_commit_on_genesis_with_the_trailers(
    ledger: Ledger, tmp_path: Path
) -> None:
    tip = begin(ledger, tmp_path, prompt="Fix the login redirect\n\nIt loops.")

    commit = events(ledger.store, tip.thread)[0].commit
    assert commit.parents == (GENESIS_OID,)
    assert commit.message == (
        "start work: Fix the login redirect It loops.\n\n"
        "> Fix the login redirect\n>\n> It loops.\n\n"
        "Uwf-Format: 1\n"
        "Uwf-Event: start\n"
        f"Uwf-Thread: {tip.thread}\n"
        f"Uwf-Node: {tip.state.start}\n"
        f"Uwf-Workflow: {tip.state.workflow_hash} {tip.state.workflow_oid}\n"
        "Uwf-Next: worker\n"
    )
    assert commit.author == commit.committer
    assert "start work" in git(ledger.store, "reflog", "show", f"thread/{tip.thread}")


def test_a_start_keeps_where_it_was_started(ledger: Ledger, tmp_path: Path) -> None:
    parent = begin(ledger, tmp_path)
    tip = begin(
        ledger,
        tmp_path,
        cwd_in_repo="sub",
        root_commit="a" * 40,
        parent=Parent(
            record=record_of(ledger, parent.thread), head=parent.state.head, most=1
        ),
    )

    start = record_of(ledger, tip.thread).start
    assert (start.cwd, start.cwd_in_repo) == (str(tmp_path), "sub")
    assert (start.root_commit, start.depth) == ("a" * 40, 1)
    assert start.parent == StartedFor(thread=parent.thread, step=parent.state.head)
    check_thread(ledger.store, tip.thread)


def test_an_id_carries_the_time_and_no_two_are_alike(
    ledger: Ledger, tmp_path: Path
) -> None:
    ids = [begin(ledger, tmp_path).thread for _ in range(3)]

    assert len(set(ids)) == 3
    assert ids == sorted(ids)
    assert 1_800_000_000_000 <= thread_time_ms(ids[0]) < 1_800_000_100_000


@pytest.mark.parametrize("prompt", ["", " \n\t"])
def test_a_task_must_say_something(ledger: Ledger, tmp_path: Path, prompt: str) -> None:
    with pytest.raises(InvalidError):
        begin(ledger, tmp_path, prompt=prompt)


@pytest.mark.parametrize("cwd", ["relative", "/not/there", "a-file"])
def test_a_thread_needs_a_folder_that_exists(
    ledger: Ledger, tmp_path: Path, cwd: str
) -> None:
    file = tmp_path / "a-file"
    file.touch()

    with pytest.raises(InvalidError):
        begin(ledger, file if cwd == "a-file" else Path(cwd))


@pytest.mark.parametrize(
    "start",
    [
        pytest.param({}, id="no-start"),
        pytest.param({"new": Target(role="worker", prompt="{{x}}")}, id="blank"),
        pytest.param(
            {"new": Target(role="$END", prompt="Over.")}, id="straight-to-end"
        ),
    ],
)
def test_a_first_prompt_that_leads_nowhere_writes_nothing(
    ledger: Ledger, tmp_path: Path, start: Edges
) -> None:
    base = make_workflow()
    workflow = replace(base, graph={**base.graph, "$START": start})

    with pytest.raises(RoutingFailedError):
        begin(ledger, tmp_path, workflow=workflow)

    assert git(ledger.store, "for-each-ref", "refs/heads/thread/") == ""


@pytest.mark.parametrize(
    "prompt",
    [
        pytest.param("\n".join(["😀" * 200] * 20), id="widest-characters"),
        pytest.param("x\n\nUwf-Event: cancel\n", id="trailers"),
        pytest.param("\x1b[2J\u202e\0\x9b\r", id="controls"),
        pytest.param("{{{secret}}} {{> x}}", id="tags"),
        pytest.param("x" * 1_000_000, id="a-megabyte"),
    ],
)
def test_whatever_the_task_is_the_thread_can_be_read(
    ledger: Ledger, tmp_path: Path, prompt: str
) -> None:
    thread = begin(ledger, tmp_path, prompt=prompt).thread

    go(ledger, thread, DONE)

    record = record_of(ledger, thread)
    assert record.start.prompt == prompt
    assert record.steps()[0].edge_prompt == f"Begin: {prompt}"
    assert names(ledger.store, thread) == ["start", "step"]
    check_thread(ledger.store, thread)
    check_store(ledger.store)


def test_start_pins_the_workflow_whatever_becomes_of_its_file(
    ledger: Ledger, tmp_path: Path
) -> None:
    workflow = make_workflow()
    data = b"# as of today\n" + workflow_data(workflow)
    tip = start_thread(
        ledger, workflow=workflow, data=data, prompt="Do it", cwd=tmp_path
    )

    assert files(ledger.store, tip.thread)["workflow.yaml"] == data
    check_thread(ledger.store, tip.thread)


# --- fork ---


@pytest.mark.parametrize("at", range(7))
def test_a_fork_at_a_step_is_its_commit_and_one_more(
    ledger: Ledger, thread: ThreadId, at: int
) -> None:
    commits = [event.commit.oid for event in events(ledger.store, thread)]
    before = record_of(ledger, thread)
    step = before.start.hash if at == 0 else before.steps()[at - 1].hash

    fork = fork_thread(ledger, thread, at=at)

    event, state = events(ledger.store, fork.thread)[-1], fork.state
    base = git(
        ledger.store, "merge-base", f"thread/{thread}", f"thread/{fork.thread}"
    ).strip()
    assert base == commits[at]
    assert event.commit.parents == (commits[at],)
    assert (event.name, event.thread) == ("fork", fork.thread)
    assert event.commit.message == (
        f"fork from {thread} at step {at}\n\n"
        "Uwf-Format: 1\nUwf-Event: fork\n"
        f"Uwf-Thread: {fork.thread}\nUwf-Forked-From: {thread} {step}\n"
    )
    assert state.forked_from == ForkedFrom(thread=thread, step=step, number=at)
    assert (state.head, state.steps) == (step, at)
    assert list(files(ledger.store, fork.thread)) == ["thread.json"]
    check_thread(ledger.store, fork.thread)


def test_a_fork_shares_every_object_up_to_its_step(
    ledger: Ledger, thread: ThreadId
) -> None:
    fork = fork_thread(ledger, thread, at=2).thread

    new = git(
        ledger.store, "rev-list", "--objects", f"thread/{fork}", f"^thread/{thread}"
    ).splitlines()

    # A commit; the trees of the root, of threads and of the fork; its state.
    assert sorted(line.partition(" ")[2] for line in new) == [
        "",
        "",
        "threads",
        f"threads/{fork}",
        f"threads/{fork}/thread.json",
    ]


def test_a_fork_takes_over_the_state_of_the_commit_it_left_at(
    ledger: Ledger, thread: ThreadId
) -> None:
    origin = state_of(ledger.store, thread)

    fork = fork_thread(ledger, thread).state

    assert fork == replace(
        origin,
        thread=fork.thread,
        forked_from=ForkedFrom(thread=thread, step=origin.head, number=6),
        updated_at_ms=fork.updated_at_ms,
        completed_at_ms=fork.updated_at_ms,
    )
    assert fork.updated_at_ms >= origin.updated_at_ms
    assert fork.status == "end"


def test_both_threads_run_on_independently(ledger: Ledger, thread: ThreadId) -> None:
    fork = fork_thread(ledger, thread, at=1).thread
    before = tip_oid(ledger.store, thread)

    go(ledger, fork, reply("good", "In the fork."))
    after = tip_oid(ledger.store, fork)
    resume_thread(acting(ledger, saying(DONE)), thread)

    assert tip_oid(ledger.store, fork) == after
    assert before != tip_oid(ledger.store, thread)
    assert [s.body for s in record_of(ledger, fork).steps()] == [
        "Did it.",
        "In the fork.",
    ]
    assert len(_hashes(ledger, thread)) == 7
    assert paths(ledger.store, fork) == [
        "000/00002-critic/output.md",
        "000/00002-critic/prompt.md",
    ]
    for each in (thread, fork):
        check_thread(ledger.store, each)


def test_forks_of_forks_read_each_step_from_the_thread_that_ran_it(
    ledger: Ledger, thread: ThreadId
) -> None:
    child = fork_thread(ledger, thread, at=3).thread
    go(ledger, child, reply("bad", "By the child.", reason="c"), DONE)
    grandchild = fork_thread(ledger, child, at=4).thread
    go(ledger, grandchild, reply(body="By the grandchild.", plan="g"))
    inherited = fork_thread(ledger, grandchild, at=2).thread

    found = record_of(ledger, grandchild)
    assert [s.body for s in found.steps()] == [
        "Did it.",
        "Not fine.",
        "Did it.",
        "By the child.",
        "By the grandchild.",
    ]
    assert state_of(ledger.store, grandchild).forked_from == ForkedFrom(
        thread=child, step=_hashes(ledger, child)[3], number=4
    )
    # The commit forked at is the first thread's own.
    assert state_of(ledger.store, inherited).forked_from == ForkedFrom(
        thread=thread, step=_hashes(ledger, thread)[1], number=2
    )
    for each in (thread, child, grandchild, inherited):
        check_thread(ledger.store, each)
    check_store(ledger.store)


def test_a_fork_of_a_fork_without_steps_leaves_where_that_left(
    ledger: Ledger, thread: ThreadId
) -> None:
    child = fork_thread(ledger, thread, at=2).thread

    grandchild = fork_thread(ledger, child)

    assert grandchild.state.forked_from == ForkedFrom(
        thread=thread, step=_hashes(ledger, thread)[1], number=2
    )
    assert f"threads/{child}" not in git(
        ledger.store, "ls-tree", "-r", "--name-only", grandchild.tree
    )


def test_a_fork_from_a_role_lets_it_run_again(ledger: Ledger, thread: ThreadId) -> None:
    worker = fork_thread(ledger, thread, from_role="worker").state
    critic = fork_thread(ledger, thread, from_role="critic").state

    assert (worker.steps, worker.current_role) == (4, "worker")
    assert (critic.steps, critic.current_role) == (5, "critic")


def test_a_fork_from_the_first_role_is_one_at_the_start(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, DONE, GOOD)

    fork = fork_thread(ledger, thread, from_role="worker").state

    assert (fork.steps, fork.current_role, fork.head) == (0, "worker", fork.start)


def test_a_fork_from_a_role_counts_a_poked_step_once(
    ledger: Ledger, thread: ThreadId
) -> None:
    _poke(ledger, thread, BAD)

    fork = fork_thread(ledger, thread, from_role="critic").state

    assert (fork.steps, fork.head) == (5, _hashes(ledger, thread)[4])


def test_a_fork_at_a_replaced_step_goes_on_from_it(
    ledger: Ledger, thread: ThreadId
) -> None:
    old = state_of(ledger.store, thread)
    _poke(ledger, thread, BAD)

    fork = fork_thread(ledger, thread, step=old.head)

    assert (fork.state.head, fork.state.status) == (old.head, "end")
    assert fork.state.forked_from == ForkedFrom(thread=thread, step=old.head, number=6)
    assert record_of(ledger, fork.thread).steps()[-1].body == "Fine."
    check_thread(ledger.store, fork.thread)


def test_a_fork_by_hash_is_a_fork_at_that_step(
    ledger: Ledger, thread: ThreadId
) -> None:
    wanted = _hashes(ledger, thread)[2]

    assert fork_thread(ledger, thread, step=wanted).state.steps == 3


def test_a_fork_after_a_poke_is_at_the_new_step(
    ledger: Ledger, thread: ThreadId
) -> None:
    _poke(ledger, thread, BAD)

    fork = fork_thread(ledger, thread, at=6)

    assert fork.state.head == _hashes(ledger, thread)[5]
    assert record_of(ledger, fork.thread).steps()[-1].body == "Not fine."


def test_a_failed_attempt_cannot_be_forked_at(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path).thread
    attempt = go(ledger, thread, "no block").steps[0].hash

    with pytest.raises(NotFoundError):
        fork_thread(ledger, thread, step=attempt)


def test_a_fork_leaves_the_attempts_after_its_step_behind(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, DONE)
    go(ledger, thread, "no block")

    fork = fork_thread(ledger, thread)

    assert (fork.state.status, fork.state.current_role) == ("idle", "critic")
    go(ledger, fork.thread, GOOD)
    assert record_of(ledger, fork.thread).steps()[1].previous_attempts is None
    check_thread(ledger.store, fork.thread)


def test_a_cancelled_thread_goes_on_in_a_fork(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, DONE)
    cancel_thread(ledger, thread, reason=None, command="cancel")

    fork = fork_thread(ledger, thread).thread

    assert go(ledger, fork, GOOD).status == "end"
    check_thread(ledger.store, fork)


def test_a_suspended_thread_is_forked_suspended(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply("$SUSPEND", reason="which?"))

    fork = fork_thread(ledger, thread).thread
    resume_thread(acting(ledger, saying(DONE)), fork, note="this")

    assert state_of(ledger.store, thread).suspend_message == "which?"
    assert state_of(ledger.store, fork).current_role == "critic"
    check_thread(ledger.store, fork)


@pytest.mark.parametrize("at", [7, -1, 99_999])
def test_a_fork_needs_a_step_that_is_there(
    ledger: Ledger, thread: ThreadId, at: int
) -> None:
    with pytest.raises(NotFoundError):
        fork_thread(ledger, thread, at=at)


@pytest.mark.parametrize("role", ["nobody", "$START", ""])
def test_a_fork_needs_a_role_that_spoke(
    ledger: Ledger, thread: ThreadId, role: str
) -> None:
    with pytest.raises(NotFoundError) as caught:
        fork_thread(ledger, thread, from_role=role)

    assert (caught.value.kind, caught.value.name) == ("role", role)


def test_a_fork_takes_one_choice(ledger: Ledger, thread: ThreadId) -> None:
    with pytest.raises(UsageError):
        fork_thread(ledger, thread, at=1, from_role="worker")


def test_a_step_of_another_thread_cannot_be_forked_at(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    other = begin(ledger, tmp_path).thread
    go(ledger, other, DONE)

    with pytest.raises(NotFoundError):
        fork_thread(ledger, thread, step=_hashes(ledger, other)[0])


# --- cancel ---


def test_a_cancelled_thread_is_kept_and_says_so(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, DONE)
    before = files(ledger.store, thread)
    old = state_of(ledger.store, thread)

    tip = cancel_thread(
        ledger, thread, reason="Not needed\n\nUwf-Event: step", command="cancel"
    )

    after = files(ledger.store, thread)
    commit = events(ledger.store, thread)[-1].commit
    assert tip.state == replace(
        old,
        status="cancelled",
        current_role=None,
        updated_at_ms=tip.state.updated_at_ms,
        completed_at_ms=tip.state.updated_at_ms,
    )
    assert [name for name in after if after[name] != before.get(name)] == [
        "thread.json"
    ]
    assert before.keys() == after.keys()
    assert commit.message == (
        "cancel: Not needed Uwf-Event: step\n\n"
        "> Not needed\n>\n> Uwf-Event: step\n\n"
        f"Uwf-Format: 1\nUwf-Event: cancel\nUwf-Thread: {thread}\n"
    )
    check_thread(ledger.store, thread)


def test_a_suspended_thread_waits_no_longer_once_cancelled(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply("$SUSPEND", reason="which?"))

    state = cancel_thread(ledger, thread, reason=" ", command="cancel").state

    assert (state.status, state.suspended_role) == ("cancelled", None)
    assert events(ledger.store, thread)[-1].commit.message.startswith("cancel\n\nUwf-")
    check_thread(ledger.store, thread)


def test_a_thread_at_its_end_cannot_be_cancelled(
    ledger: Ledger, thread: ThreadId
) -> None:
    before = tip_oid(ledger.store, thread)

    with pytest.raises(StateError):
        cancel_thread(ledger, thread, reason=None, command="cancel")

    assert tip_oid(ledger.store, thread) == before


def test_a_thread_is_cancelled_once(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path).thread
    cancel_thread(ledger, thread, reason=None, command="cancel")

    with pytest.raises(StateError):
        cancel_thread(ledger, thread, reason=None, command="cancel")


def test_a_running_thread_is_neither_cancelled_nor_removed(
    ledger: Ledger, thread: ThreadId
) -> None:
    with hold_thread(ledger, thread, command="exec"):
        with pytest.raises(LockedError):
            cancel_thread(ledger, thread, reason=None, command="cancel")
        with pytest.raises(LockedError):
            remove_thread(ledger, thread, command="rm")


# --- rm ---


def test_a_removed_thread_stands_in_the_trash(ledger: Ledger, thread: ThreadId) -> None:
    tip = tip_oid(ledger.store, thread)

    assert remove_thread(ledger, thread, command="rm") == tip

    assert find_ref(ledger.store, thread_ref(thread)) is None
    assert find_ref(ledger.store, f"refs/uwf/trash/{thread}") == tip
    with pytest.raises(NotFoundError):
        load_tip(ledger.store, thread)


def test_a_removed_thread_comes_back_as_it_was(
    ledger: Ledger, thread: ThreadId
) -> None:
    tip = remove_thread(ledger, thread, command="rm")
    with pytest.raises(NotFoundError) as told:
        load_tip(ledger.store, thread)
    assert told.value.hint == (
        f"it was removed; bring it back: uwf thread restore {thread}"
    )

    assert resolve_removed(ledger, thread[:12].lower()) == thread
    assert resolve_removed(ledger, thread[-6:]) == thread
    assert restore_thread(ledger, thread, command="restore") == tip

    assert tip_oid(ledger.store, thread) == tip
    assert find_ref(ledger.store, f"refs/uwf/trash/{thread}") is None
    with pytest.raises(NotFoundError):
        restore_thread(ledger, thread, command="restore")
    check_thread(ledger.store, thread)


def test_a_thread_that_is_here_is_not_replaced_from_the_trash(
    ledger: Ledger, thread: ThreadId
) -> None:
    tip = remove_thread(ledger, thread, command="rm")
    move_ref(ledger.store, thread_ref(thread), old=None, new=tip, reason="pull")

    with pytest.raises(StateError):
        restore_thread(ledger, thread, command="restore")


def test_forks_of_a_removed_thread_stay_whole(ledger: Ledger, thread: ThreadId) -> None:
    fork = fork_thread(ledger, thread, at=5).thread
    remove_thread(ledger, thread, command="rm")
    git(ledger.store, "update-ref", "-d", f"refs/uwf/trash/{thread}")
    git(ledger.store, "reflog", "expire", "--expire=now", "--all")

    git(ledger.store, "gc", "--quiet", "--prune=now")

    go(ledger, fork, GOOD)
    check_thread(ledger.store, fork)
    check_store(ledger.store)


def test_a_thread_that_came_back_can_be_removed_again(
    ledger: Ledger, thread: ThreadId
) -> None:
    tip = remove_thread(ledger, thread, command="rm")
    git(ledger.store, "update-ref", thread_ref(thread), tip)
    resume_thread(acting(ledger, saying(DONE)), thread)

    second = remove_thread(ledger, thread, command="rm")

    assert second != tip
    assert find_ref(ledger.store, f"refs/uwf/trash/{thread}") == second


def test_a_damaged_thread_can_be_removed(ledger: Ledger, thread: ThreadId) -> None:
    tip = tip_oid(ledger.store, thread)
    move_ref(ledger.store, thread_ref(thread), old=tip, new=GENESIS_OID, reason="x")

    assert remove_thread(ledger, thread, command="rm") == GENESIS_OID


def test_what_is_not_there_cannot_be_changed(ledger: Ledger) -> None:
    with pytest.raises(NotFoundError):
        fork_thread(ledger, NOWHERE)
    with pytest.raises(NotFoundError):
        cancel_thread(ledger, NOWHERE, reason=None, command="cancel")
    with pytest.raises(NotFoundError):
        remove_thread(ledger, NOWHERE, command="rm")


# --- what plain git makes of it ---


def _merge_all(store: Store, refs: tuple[str, ...]) -> str:
    """Merge branches one by one on top of main, as a review would; give the tree."""
    base = git(store, "rev-parse", "refs/heads/main").strip()
    for ref in refs:
        tree = git(store, "merge-tree", "--write-tree", base, ref).strip()
        base = git(
            store,
            *("-c", "user.name=Ada", "-c", "user.email=ada@example.com"),
            *("commit-tree", tree, "-p", base, "-p", ref, "-m", f"merge {ref}"),
        ).strip()
    return git(store, "rev-parse", f"{base}^{{tree}}").strip()


def test_threads_and_forks_merge_into_main_cleanly_in_any_order(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    fork = fork_thread(ledger, thread, at=5).thread
    go(ledger, fork, BAD)
    _poke(ledger, fork, GOOD)
    _poke(ledger, thread, BAD)
    other = begin(ledger, tmp_path, prompt="Another").thread
    go(ledger, other, "no block")
    refs = tuple(f"refs/heads/thread/{each}" for each in (thread, fork, other))

    trees = {_merge_all(ledger.store, order) for order in itertools.permutations(refs)}

    assert len(trees) == 1
    merged = git(ledger.store, "ls-tree", "-r", "--name-only", trees.pop())
    for each in (thread, fork, other):
        folder = f"threads/{each}/"
        own = git(
            ledger.store, "ls-tree", "-r", "--name-only", f"thread/{each}", folder
        )
        assert own.splitlines() == [
            line for line in merged.splitlines() if line.startswith(folder)
        ]
    check_store(ledger.store)


def test_two_tips_of_one_thread_conflict_instead_of_merging_silently(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    start = tip_oid(ledger.store, thread)
    go(ledger, thread, DONE)
    ours = tip_oid(ledger.store, thread)
    git(ledger.store, "update-ref", thread_ref(thread), start)
    go(ledger, thread, reply("$SUSPEND", reason="which?"))
    theirs = tip_oid(ledger.store, thread)

    with pytest.raises(subprocess.CalledProcessError) as caught:
        git(ledger.store, "merge-tree", "--write-tree", ours, theirs)

    assert f"threads/{thread}/thread.json" in caught.value.stdout


def test_git_tells_who_did_how_much_and_what_was_said(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    engine = acting(ledger, saying(DONE), label="deep thought/4.2 🤖")
    exec_thread(engine, thread, count=1)
    go(ledger, thread, BAD, DONE)

    counted = git(ledger.store, "shortlog", "-sn", f"thread/{thread}", "^main")
    log = git(ledger.store, "log", "-p", "--reverse", f"thread/{thread}", "^main")
    assert sorted(line.split("\t")[1] for line in counted.splitlines()) == [
        "Ada",
        "acting",
        "deep-thought-4.2--",
    ]
    assert "+Begin: Fix the bug\n" in log
    assert "+Not fine.\n" in log
    assert "Binary files" in log
    # The raw nodes are folded away.
    assert '"assembledPrompt"' not in log


def test_an_archive_of_a_thread_is_a_folder_to_read(
    ledger: Ledger, thread: ThreadId
) -> None:
    tree = git(
        ledger.store, "archive", "--format=tar", f"thread/{thread}", f"threads/{thread}"
    )

    assert f"threads/{thread}/TASK.md" in tree
    assert f"threads/{thread}/history/000/00006-critic/output.md" in tree
