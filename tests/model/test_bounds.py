"""Every bound of the format: written one below and one above, and read back."""

from __future__ import annotations

from itertools import count, repeat
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.acting import DONE, GOOD, acting, failure, go, poke, resume, saying
from tests.builders import (
    TEXT,
    Clock,
    begin,
    edit_tree,
    make_ledger,
    make_role,
    make_workflow,
    record_of,
    reply,
    variant,
)
from tests.history import check_thread, names, paths, state_of
from uwfgit.agents.base import AgentReply, AgentRequest, ToolCall, Turn
from uwfgit.constants import (
    MAX_BLOB_BYTES,
    MAX_PERSON_BYTES,
    MAX_RUNS,
    MAX_STATE_BYTES,
    MAX_STEPS,
    MAX_SUMMARY_BYTES,
    MAX_TIME,
    MAX_TREE_ENTRIES,
    YAML_MAX_BYTES,
)
from uwfgit.engine.run.executor import exec_thread, resume_thread
from uwfgit.engine.run.run import MAX_ASKED_BYTES
from uwfgit.engine.run.thread import cancel_thread, fork_thread
from uwfgit.errors import SizeError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.append import next_run
from uwfgit.model.ledger.branch import append_summary
from uwfgit.model.ledger.keep import list_kept, put_nodes
from uwfgit.model.ledger.ledger import Ledger, load_node
from uwfgit.model.node import make_text
from uwfgit.model.thread.state import encode_state
from uwfgit.model.thread.tip import load_tip
from uwfgit.model.workflow.workflow import Target, Workflow, require_workflow_file
from uwfgit.store.canonical import encode_json
from uwfgit.store.git.settings import Identity
from uwfgit.store.handle import Store
from uwfgit.store.layout import thread_ref
from uwfgit.store.objects import (
    TreeEntry,
    list_tree,
    read_commit,
    write_blob,
    write_commit,
)
from uwfgit.store.refs import move_ref


@pytest.fixture
def thread(ledger: Ledger, tmp_path: Path) -> ThreadId:
    return begin(ledger, tmp_path).thread


def test_a_node_of_16_mib_is_put_and_read_and_one_byte_more_is_refused(
    ledger: Ledger,
) -> None:
    fits, large = (make_text("x" * (MAX_BLOB_BYTES + more)) for more in (0, 1))

    put_nodes(ledger, [fits])
    with pytest.raises(SizeError):
        put_nodes(ledger, [large])

    assert load_node(ledger, fits.hash) == fits
    assert list_kept(ledger) == (fits.hash,)


def _agent_says(ledger: Ledger, thread: ThreadId, body: str) -> int:
    """Let the worker say a body; give the bytes of the node that holds it."""
    report = go(ledger, thread, reply(plan="x", body=body))
    assert report.end == "done", report.problem
    assert report.steps[0].hash is not None
    return len(record_of(ledger, thread).node(report.steps[0].hash).data)


@pytest.mark.slow
def test_a_body_that_fills_its_node_is_a_step_and_one_letter_more_an_attempt(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    two, three = (
        begin(ledger, tmp_path, prompt="Fix the bug").thread for _ in range(2)
    )
    letters = MAX_BLOB_BYTES - 20_000
    letters += MAX_BLOB_BYTES - _agent_says(ledger, thread, "x" * letters)

    whole = _agent_says(ledger, two, "x" * letters)
    report = go(ledger, three, reply(plan="x", body="x" * (letters + 1)))

    assert whole == MAX_BLOB_BYTES
    assert names(ledger.store, two) == ["start", "step"]
    assert report.end == "agent-failed"
    assert names(ledger.store, three) == ["start", "attempt"]
    check_thread(ledger.store, two)
    check_thread(ledger.store, three)


def test_what_is_too_large_is_kept_cut_in_its_middle(
    ledger: Ledger, thread: ThreadId
) -> None:
    said = "first" + "x" * MAX_BLOB_BYTES + "last"
    report = go(ledger, thread, reply(plan="x", body=said))

    attempt = report.steps[0].hash
    assert attempt is not None
    step = record_of(ledger, thread).step(attempt, 1)
    assert (report.end, step.output["phase"]) == ("agent-failed", "size")
    assert step.body.startswith("---\n$status")
    assert "first" in step.body
    assert step.body.endswith("last\n")
    assert "characters cut]" in step.body
    assert "whole reply is kept where this ran" in str(step.output["error"])
    assert str(ledger.store.path) not in str(step.output)
    told, _, place = str(report.steps[0].error).rpartition(" is in ")
    assert told.endswith("(the whole reply")
    assert said in Path(place.removesuffix(")")).read_text("utf-8")
    check_thread(ledger.store, thread)


def test_turns_that_are_too_many_are_cut_and_the_answer_stands(
    ledger: Ledger, thread: ThreadId
) -> None:
    calls = (ToolCall(name="read", arguments={"n": 1}, result="y" * 2**20),)
    turns = tuple(
        Turn(index=n, role="assistant", content=f"turn {n}", tool_calls=calls, at_ms=n)
        for n in range(40)
    )

    report = go(ledger, thread, AgentReply(text=DONE, turns=turns))

    record = record_of(ledger, thread)
    step = record.steps()[0]
    found = record.node(step.detail_hash).payload["turns"]
    results = [len(turn["toolCalls"][0]["result"]) for turn in found]
    assert report.end == "done"
    assert [turn["content"] for turn in found] == [f"turn {n}" for n in range(40)]
    assert results[0] == results[-1] == 2**20
    assert results[20] == 1_000
    assert "cut from their middle" in step.warnings[-1]
    check_thread(ledger.store, thread)


def test_a_folder_of_2000_entries_is_written_and_one_of_2001_is_not(
    store: Store,
) -> None:
    entry = TreeEntry(oid=write_blob(store, b"x"))

    def folder(count: int) -> dict[str, TreeEntry | None]:
        return {f"a/{number}": entry for number in range(count)}

    tree = edit_tree(store, None, folder(MAX_TREE_ENTRIES))
    with pytest.raises(SizeError) as caught:
        edit_tree(store, tree, {"a/one-more": entry})

    assert caught.value.found == MAX_TREE_ENTRIES + 1
    assert "'a/'" in caught.value.message
    assert len(list_tree(store, list_tree(store, tree)["a"].oid)) == MAX_TREE_ENTRIES


def _wide(count: int) -> Workflow:
    """Make a workflow of so many roles, each with a schema of its own."""
    roles = {
        f"r{number}": make_role(variant("done", [], **{f"f{number}": TEXT}))
        for number in range(count)
    }
    over = {"done": Target(role="$END", prompt="Over.")}
    start = Target(role="r0", prompt="Begin.")
    return make_workflow(
        roles=roles,
        graph={"$START": {"new": start, "resume": start}} | dict.fromkeys(roles, over),
    )


@pytest.mark.slow
def test_a_workflow_of_too_many_roles_starts_no_thread(
    ledger: Ledger, tmp_path: Path
) -> None:
    nine_types_and_two = 11
    most = MAX_TREE_ENTRIES - nine_types_and_two

    with pytest.raises(SizeError):
        begin(ledger, tmp_path, workflow=_wide(most + 1))
    thread = begin(ledger, tmp_path, workflow=_wide(most)).thread

    assert len(paths(ledger.store, thread, "nodes/start")) == MAX_TREE_ENTRIES
    check_thread(ledger.store, thread)


def test_a_name_of_1024_bytes_commits_and_a_longer_one_does_not(
    store: Store, clock: Clock, tmp_path: Path
) -> None:
    def named(count: int, *, mail: bool = False) -> Ledger:
        name, address = ("A", "a" * count) if mail else ("é" * (count // 2), "a@b")
        return make_ledger(
            store,
            clock,
            identity=Identity(name=name, email=address, is_default=False),
        )

    thread = begin(named(MAX_PERSON_BYTES), tmp_path).thread
    other = begin(named(MAX_PERSON_BYTES, mail=True), tmp_path, prompt="Two").thread

    for mail in (False, True):
        with pytest.raises(SizeError):
            begin(named(MAX_PERSON_BYTES + 2, mail=mail), tmp_path)
    check_thread(store, thread)
    check_thread(store, other)


def test_a_state_of_64_kib_is_written_and_a_larger_one_is_not(
    ledger: Ledger, tmp_path: Path
) -> None:
    def start(letters: int) -> ThreadId:
        name = "w" + "a" * letters
        return begin(ledger, tmp_path, workflow=make_workflow(name=name)).thread

    room = MAX_STATE_BYTES - len(encode_state(state_of(ledger.store, start(0))))
    with pytest.raises(SizeError):
        start(room + 1)
    thread = start(room)

    assert len(encode_state(state_of(ledger.store, thread))) == MAX_STATE_BYTES
    check_thread(ledger.store, thread)


def test_a_workflow_file_of_1_mib_is_taken_and_a_larger_one_is_not() -> None:
    require_workflow_file(b"#" * YAML_MAX_BYTES)
    with pytest.raises(SizeError):
        require_workflow_file(b"#" * (YAML_MAX_BYTES + 1))


def test_a_summary_of_16_kib_is_written_and_a_longer_one_is_not(
    ledger: Ledger, thread: ThreadId
) -> None:
    cancel_thread(ledger, thread, reason=None, command="test")
    tip = load_tip(ledger.store, thread)
    text = "x" * (MAX_SUMMARY_BYTES - 1)

    with pytest.raises(SizeError):
        append_summary(ledger, tip, text=text + "x", usage=None, judge="m")
    append_summary(ledger, tip, text=text, usage=None, judge="m")

    check_thread(ledger.store, thread)


def test_the_last_second_of_the_format_commits_and_the_next_does_not(
    store: Store, tmp_path: Path
) -> None:
    last, late = (
        make_ledger(store, Clock(repeat(seconds * 1000)))
        for seconds in (MAX_TIME - 1, MAX_TIME)
    )

    thread = begin(last, tmp_path).thread
    with pytest.raises(SizeError):
        begin(late, tmp_path)

    check_thread(store, thread)


def test_a_step_in_the_last_millisecond_is_recorded_and_one_after_it_is_kept_aside(
    store: Store, tmp_path: Path
) -> None:
    last = MAX_TIME * 1000 - 1
    ledger = make_ledger(store, Clock(repeat(last)))
    thread = begin(ledger, tmp_path).thread
    said = reply(plan="the last")

    report = exec_thread(acting(ledger, saying(said)), thread, count=1)
    late = make_ledger(store, Clock(count(last, 1)))
    refused = exec_thread(acting(late, saying(reply("good"))), thread, count=1)

    assert (report.end, refused.end) == ("done", "refused")
    assert "its reply is in" in (refused.problem or "")
    assert state_of(store, thread).steps == 1
    check_thread(store, thread)


def test_the_last_step_has_a_place_and_the_next_has_none(
    ledger: Ledger, thread: ThreadId
) -> None:
    record = record_of(ledger, thread)

    assert next_run(record, MAX_STEPS) == f"nodes/999/{MAX_STEPS}/1"
    with pytest.raises(SizeError):
        next_run(record, MAX_STEPS + 1)


def _with_runs(ledger: Ledger, thread: ThreadId, count: int) -> None:
    """Let the first step's folder hold so many runs, behind uwf's back."""
    store, tip = ledger.store, load_tip(ledger.store, thread)
    entry = TreeEntry(oid=write_blob(store, make_text("x").data))
    folder = f"threads/{thread}/nodes/000/00001"
    changes: dict[str, TreeEntry | None] = {
        f"{folder}/{run}/{make_text('x').name}": entry for run in range(1, count + 1)
    }
    commit = read_commit(store, tip.commit)
    oid = write_commit(
        store,
        tree=edit_tree(store, tip.tree, changes),
        parents=commit.parents,
        author=commit.author,
        committer=commit.committer,
        message=commit.message,
    )
    move_ref(store, thread_ref(thread), old=tip.commit, new=oid, reason="runs")


def test_a_step_has_room_for_1000_runs_and_the_next_is_refused_before_the_agent(
    ledger: Ledger, thread: ThreadId
) -> None:
    asked: list[str] = []
    _with_runs(ledger, thread, MAX_RUNS - 1)

    go(ledger, thread, failure("the 1,000th"))

    def act(request: AgentRequest) -> str:
        asked.append(request.role)
        return DONE

    engine = acting(ledger, act)
    with pytest.raises(SizeError) as caught:
        resume_thread(engine, thread)

    assert len(paths(ledger.store, thread, f"nodes/000/00001/{MAX_RUNS}")) == 3
    assert asked == []
    assert caught.value.hint == f"go on in a fork: uwf thread fork {thread}"
    fork = fork_thread(ledger, thread).thread
    assert go(ledger, fork, DONE).end == "done"


@pytest.mark.slow
def test_a_night_of_tries_leaves_a_thread_that_verifies(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, failure("the first"))
    engine = acting(ledger, saying(*(failure(f"try {n}") for n in range(2, 1_000))))
    for _ in range(2, MAX_RUNS):
        resume_thread(engine, thread)

    assert resume(ledger, thread, DONE).end == "done"
    assert go(ledger, thread, GOOD).end == "done"
    check_thread(ledger.store, thread)
    with pytest.raises(SizeError):
        next_run(record_of(ledger, thread), 1)


def test_a_fork_of_the_2000th_thread_is_refused(
    ledger: Ledger, thread: ThreadId
) -> None:
    store, tip = ledger.store, load_tip(ledger.store, thread)
    state = list_tree(store, list_tree(store, tip.tree)["threads"].oid)[thread]
    other: dict[str, TreeEntry | None] = {
        f"threads/01J{number:023d}": state for number in range(MAX_TREE_ENTRIES - 2)
    }
    commit = read_commit(store, tip.commit)
    oid = write_commit(
        store,
        tree=edit_tree(store, tip.tree, other),
        parents=commit.parents,
        author=commit.author,
        committer=commit.committer,
        message=commit.message,
    )
    move_ref(store, thread_ref(thread), old=tip.commit, new=oid, reason="many")

    fork = fork_thread(ledger, thread)
    go(ledger, fork.thread, DONE)
    with pytest.raises(SizeError):
        fork_thread(ledger, fork.thread)

    assert len(list_tree(store, list_tree(store, fork.tree)["threads"].oid)) == 2_000


def _linking(count: int) -> str:
    return reply(**{f"f{number}": make_text("plan").hash for number in range(count)})


def test_an_answer_links_2000_fields_and_one_more_is_an_attempt(
    ledger: Ledger, tmp_path: Path
) -> None:
    workflow = make_workflow()
    schema = {
        "properties": {"$status": {"const": "done"}},
        "required": ["$status"],
        "additionalProperties": {"type": "string"},
    }
    roles = {
        **workflow.roles,
        "worker": replace(workflow.roles["worker"], schema=schema),
    }
    thread = begin(
        ledger,
        tmp_path,
        workflow=replace(workflow, roles=roles),
        prompt=f"As in {make_text('plan').hash}",
    ).thread
    put_nodes(ledger, [make_text("plan")])

    large = go(ledger, thread, _linking(MAX_TREE_ENTRIES + 1))
    fits = resume(ledger, thread, _linking(MAX_TREE_ENTRIES))

    assert (large.end, fits.end) == ("agent-failed", "done")
    assert names(ledger.store, thread) == ["start", "attempt", "resume"]
    assert "2,001 entries" in (large.problem or "")
    check_thread(ledger.store, thread)


def test_a_note_that_leaves_no_room_for_an_answer_is_refused_before_the_agent(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, DONE)
    prompt = record_of(ledger, thread).steps()[0].edge_prompt
    room = MAX_ASKED_BYTES - len(encode_json([prompt, ""]))

    with pytest.raises(SizeError):
        poke(ledger, thread, DONE, note="x" * (room + 1))
    assert poke(ledger, thread, DONE, note="x" * room).end == "done"

    check_thread(ledger.store, thread)


def test_a_thread_goes_on_after_a_reply_that_was_too_large(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, reply(plan="x", body="y" * (MAX_BLOB_BYTES + 1)))

    assert resume(ledger, thread, DONE).end == "done"
    assert exec_thread(acting(ledger, saying(GOOD)), thread, count=1).end == "done"
    assert state_of(ledger.store, thread).status == "end"
    check_thread(ledger.store, thread)


def test_a_clock_that_no_reader_accepts_is_refused_before_the_agent_is_asked(
    store: Store, tmp_path: Path
) -> None:
    thread = begin(make_ledger(store, Clock(repeat(1_000))), tmp_path).thread
    late = make_ledger(store, Clock(repeat(MAX_TIME * 1000)))
    asked: list[AgentRequest] = []

    def act(request: AgentRequest) -> str:
        asked.append(request)
        return reply(plan="in vain")

    with pytest.raises(SizeError):
        exec_thread(acting(late, act), thread, count=1)

    assert asked == []
