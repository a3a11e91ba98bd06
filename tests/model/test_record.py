from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from tests.acting import acting, go, put, saying
from tests.builders import begin, edit_tree, record_of, reply
from tests.collision import COLLIDING, COLLIDING_HASH
from uwfgit.engine.run.executor import exec_thread, poke_thread
from uwfgit.engine.run.thread import fork_thread
from uwfgit.errors import CorruptError, NotFoundError
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.ledger.append import place_nodes
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node import DETAIL_TYPE, STEP_TYPE, TEXT_TYPE, make_text
from uwfgit.model.thread.record import NodePlaces, add_place, open_record, read_node
from uwfgit.model.thread.state import encode_state
from uwfgit.model.thread.task import find_task_line
from uwfgit.model.thread.tip import Tip, load_tip
from uwfgit.store.layout import thread_ref
from uwfgit.store.objects import (
    TreeEntry,
    read_commit,
    write_blob,
    write_commit,
)
from uwfgit.store.raw import BLOB, name_object
from uwfgit.store.refs import move_ref

NOWHERE: Final = ThreadId("01JZZZZZZZZZZZZZZZZZZZZZZZ")
PLAN: Final = make_text("The plan")


@pytest.fixture
def thread(ledger: Ledger, tmp_path: Path) -> ThreadId:
    """A thread of two steps."""
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply(plan="x"), reply("bad", "Not good.", reason="why"))
    return thread


def _edit(ledger: Ledger, thread: ThreadId, path: str, data: bytes | None) -> Tip:
    """Change a file below the thread's folder behind uwf's back."""
    store = ledger.store
    tip = load_tip(store, thread)
    entry = None if data is None else TreeEntry(oid=write_blob(store, data))
    tree = edit_tree(store, tip.tree, {f"threads/{thread}/{path}": entry})
    commit = read_commit(store, tip.commit)
    oid = write_commit(
        store,
        tree=tree,
        parents=commit.parents,
        author=commit.author,
        committer=commit.committer,
        message=commit.message,
    )
    move_ref(store, thread_ref(thread), old=tip.commit, new=oid, reason="tamper")
    return replace(tip, commit=oid, tree=tree)


def test_a_thread_that_is_not_there_is_not_found(ledger: Ledger) -> None:
    with pytest.raises(NotFoundError) as caught:
        load_tip(ledger.store, NOWHERE)

    assert (caught.value.kind, caught.value.name) == ("thread", NOWHERE)


def test_a_tip_is_the_newest_commit_and_its_state(
    ledger: Ledger, thread: ThreadId
) -> None:
    tip = load_tip(ledger.store, thread)

    commit = read_commit(ledger.store, tip.commit)
    assert (tip.thread, tip.tree) == (thread, commit.tree)
    assert tip.committed_at == commit.committer.time
    assert (tip.state.thread, tip.state.steps) == (thread, 2)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(None, id="missing"),
        pytest.param(b"", id="empty"),
        pytest.param(b"{}\n", id="without-keys"),
        pytest.param(b"x" * (64 * 1024 + 1), id="too-large"),
    ],
)
def test_a_thread_without_a_good_state_is_corrupt(
    ledger: Ledger, thread: ThreadId, data: bytes | None
) -> None:
    _edit(ledger, thread, "thread.json", data)

    with pytest.raises(CorruptError):
        load_tip(ledger.store, thread)


def test_a_branch_with_another_threads_state_is_corrupt(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    other = begin(ledger, tmp_path)
    move_ref(
        ledger.store, thread_ref(NOWHERE), old=None, new=other.commit, reason="swap"
    )

    with pytest.raises(CorruptError):
        load_tip(ledger.store, NOWHERE)
    assert load_tip(ledger.store, thread).thread == thread


def test_steps_come_oldest_first_with_their_numbers(
    ledger: Ledger, thread: ThreadId
) -> None:
    record = record_of(ledger, thread)

    one, two = record.steps()

    assert [(s.number, s.role, s.status, s.body) for s in (one, two)] == [
        (1, "worker", "done", "Did it."),
        (2, "critic", "bad", "Not good."),
    ]
    assert (one.prev, two.prev) == (None, one.hash)
    assert {one.start, two.start} == {record.start.hash}
    assert two.output == {"$status": "bad", "reason": "why"}
    assert (two.edge_prompt, two.note) == ("Judge x.", None)
    assert [step.number for step in record.iter_steps()] == [2, 1]


def test_a_start_is_read_typed(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    start = record_of(ledger, thread).start

    assert (start.prompt, start.cwd, start.rules) == ("Fix the bug", str(tmp_path), 1)
    assert (start.cwd_in_repo, start.root_commit) == (None, None)
    assert (start.depth, start.parent) == (0, None)


def test_the_pinned_workflow_is_read_back(ledger: Ledger, thread: ThreadId) -> None:
    workflow = record_of(ledger, thread).workflow

    assert (workflow.name, set(workflow.graph)) == (
        "work",
        {"$START", "worker", "critic"},
    )
    assert workflow.roles["worker"].capabilities == ("doing",)


def test_roles_are_known_from_folder_names_alone(
    ledger: Ledger, thread: ThreadId
) -> None:
    record = record_of(ledger, thread)
    record = replace(record, places={})

    assert record.roles() == {1: "worker", 2: "critic"}


def test_a_role_behind_the_head_is_not_among_the_roles(
    ledger: Ledger, thread: ThreadId
) -> None:
    record = record_of(ledger, thread)
    record.tip = replace(record.tip, state=replace(record.tip.state, steps=1))

    assert record.roles() == {1: "worker"}


def test_a_role_that_only_failed_is_not_among_the_roles(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, "no block at all")

    assert record_of(ledger, thread).roles() == {1: "worker", 2: "critic"}


def test_roles_of_a_fork_come_from_the_threads_it_was_forked_from(
    ledger: Ledger, thread: ThreadId
) -> None:
    child = fork_thread(ledger, thread, at=1).thread
    go(ledger, child, reply("good"))
    grandchild = fork_thread(ledger, child).thread

    assert record_of(ledger, child).roles() == {1: "worker", 2: "critic"}
    assert record_of(ledger, grandchild).roles() == {1: "worker", 2: "critic"}
    assert [s.status for s in record_of(ledger, grandchild).steps()] == ["done", "good"]
    assert [s.status for s in record_of(ledger, thread).steps()] == ["done", "bad"]


def test_a_node_is_read_only_from_the_threads_own_folders(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    other = record_of(ledger, begin(ledger, tmp_path, prompt="Else").thread)

    with pytest.raises(CorruptError):
        record_of(ledger, thread).node(other.start.hash)


def test_a_node_of_another_type_than_expected_is_corrupt(
    ledger: Ledger, thread: ThreadId
) -> None:
    record = record_of(ledger, thread)

    assert record.node(record.tip.state.head, STEP_TYPE).type == STEP_TYPE
    with pytest.raises(CorruptError):
        record.node(record.tip.state.head, DETAIL_TYPE)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"{}\n", id="another-payload"),
        pytest.param(b"{ }\n", id="not-canonical"),
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff", id="not-utf-8"),
    ],
)
def test_a_node_with_other_bytes_than_its_name_says_is_corrupt(
    ledger: Ledger, thread: ThreadId, data: bytes
) -> None:
    head = load_tip(ledger.store, thread).state.head
    tip = _edit(ledger, thread, f"nodes/000/00002/1/{head}.{STEP_TYPE}.json", data)

    record = open_record(ledger.store, tip)

    with pytest.raises(CorruptError):
        record.steps()


def test_a_node_missing_from_the_chain_is_corrupt_and_says_where_to_look(
    ledger: Ledger, thread: ThreadId
) -> None:
    first = record_of(ledger, thread).steps()[0].hash
    tip = _edit(ledger, thread, f"nodes/000/00001/1/{first}.{STEP_TYPE}.json", None)

    with pytest.raises(CorruptError) as caught:
        open_record(ledger.store, tip).steps()

    assert f"uwf verify {thread}" in (caught.value.hint or "")


def test_a_start_or_workflow_that_is_missing_says_where_to_look(
    ledger: Ledger, thread: ThreadId
) -> None:
    without_any = replace(record_of(ledger, thread), places={})
    without_workflow = record_of(ledger, thread)
    del without_workflow.places[without_workflow.start.workflow]

    with pytest.raises(CorruptError) as of_start:
        _ = without_any.start
    with pytest.raises(CorruptError) as of_workflow:
        _ = without_workflow.workflow

    for caught in (of_start, of_workflow):
        assert f"uwf verify {thread}" in (caught.value.hint or "")


def test_of_nodes_that_are_known_only_a_runs_own_is_placed_again(
    ledger: Ledger, thread: ThreadId
) -> None:
    record = record_of(ledger, thread)
    step = record.steps()[-1]
    own, output = record.node(step.hash), record.node(step.output_hash)

    changes, places = place_nodes(record, "run", (output, own), own=own.hash)

    assert [*changes] == [f"run/{own.name}"]
    assert [*places] == [own.hash]


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_chain_of_another_length_than_the_state_says_is_corrupt(
    ledger: Ledger, thread: ThreadId, steps: int
) -> None:
    record = record_of(ledger, thread)
    record.tip = replace(record.tip, state=replace(record.tip.state, steps=steps))

    if steps == 0:
        assert record.steps() == ()
        return
    with pytest.raises(CorruptError) as caught:
        record.steps()
    assert f"uwf verify {thread}" in (caught.value.hint or "")


def test_a_file_that_is_no_node_among_the_nodes_is_corrupt(
    ledger: Ledger, thread: ThreadId
) -> None:
    tip = _edit(ledger, thread, "nodes/000/00002/1/README.md", b"hello")

    with pytest.raises(CorruptError) as caught:
        open_record(ledger.store, tip)
    assert f"uwf verify {thread}" in (caught.value.hint or "")


def test_two_contents_under_one_hash_in_a_thread_are_corrupt(
    ledger: Ledger, tmp_path: Path
) -> None:
    one, other = (make_text(text) for text in COLLIDING)
    thread = begin(ledger, tmp_path).thread

    def act(request: object) -> str:
        put(ledger, request, one)  # type: ignore[arg-type]  # what the agent is given
        return reply(plan=one.hash)

    exec_thread(acting(ledger, act), thread, count=1)
    tip = _edit(ledger, thread, f"nodes/000/00002/1/{other.name}", other.data)

    with pytest.raises(CorruptError) as caught:
        open_record(ledger.store, tip)

    assert COLLIDING_HASH in str(caught.value)
    assert name_object(BLOB, one.data) in str(caught.value)
    assert name_object(BLOB, other.data) in str(caught.value)


@pytest.mark.parametrize(
    ("node_type", "oid"),
    [
        pytest.param(TEXT_TYPE, Oid("34" * 20), id="another-blob"),
        pytest.param(DETAIL_TYPE, Oid("12" * 20), id="another-type"),
    ],
)
def test_a_place_is_taken_once(node_type: Hash, oid: Oid) -> None:
    places: NodePlaces = {}
    first = (PLAN.hash, TEXT_TYPE, Oid("12" * 20))

    add_place(places, *first)
    add_place(places, *first)

    with pytest.raises(CorruptError):
        add_place(places, PLAN.hash, node_type, oid)
    assert places == {PLAN.hash: (TEXT_TYPE, Oid("12" * 20))}


def test_a_text_is_never_read_under_the_name_of_another(ledger: Ledger) -> None:
    oid = write_blob(ledger.store, b"something else")

    with pytest.raises(CorruptError):
        read_node(ledger.store, PLAN.hash, TEXT_TYPE, oid)


def test_the_chain_after_a_poke_leads_around_the_replaced_step(
    ledger: Ledger, thread: ThreadId
) -> None:
    old = record_of(ledger, thread).steps()[1]

    poke_thread(acting(ledger, saying(reply("good"))), thread, note="look again")

    record = record_of(ledger, thread)
    one, two = record.steps()
    assert old.hash not in {one.hash, two.hash}
    assert (two.number, two.prev, two.note) == (2, one.hash, "look again")
    assert record.step(old.hash, 2) == old


def test_threads_that_are_each_a_fork_of_the_other_are_corrupt(
    ledger: Ledger, thread: ThreadId
) -> None:
    fork = fork_thread(ledger, thread)
    assert fork.state.forked_from is not None
    origin = replace(fork.state.forked_from, thread=fork.thread)
    state = replace(fork.state, thread=thread, forked_from=origin)
    entry = TreeEntry(oid=write_blob(ledger.store, encode_state(state)))
    path = f"threads/{thread}/thread.json"
    tip = replace(fork, tree=edit_tree(ledger.store, fork.tree, {path: entry}))

    with pytest.raises(CorruptError) as caught:
        open_record(ledger.store, tip).roles()

    assert str(fork.thread) in caught.value.message
    assert find_task_line(ledger.store, tip) == "Fix the bug"
