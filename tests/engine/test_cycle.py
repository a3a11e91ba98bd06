"""One cycle: what a step or an attempt leaves in git, whatever the agent does."""

from __future__ import annotations

import itertools
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from tests.acting import (
    BAD,
    DONE,
    GOOD,
    NO_BLOCK,
    Act,
    ActingAgent,
    acting,
    failure,
    go,
    poke,
    resume,
    saying,
    steps_of,
    suspend,
    waits,
)
from tests.builders import (
    TEXT,
    Clock,
    begin,
    git,
    make_engine,
    make_ledger,
    make_workflow,
    record_of,
    reply,
)
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
from uwfgit.agents.base import AgentReply, AgentRequest, Usage
from uwfgit.config import Settings
from uwfgit.engine.run.ends import RunEnd
from uwfgit.engine.run.executor import (
    RunReport,
    StepReport,
    exec_thread,
    poke_thread,
)
from uwfgit.engine.run.thread import cancel_thread, fork_thread
from uwfgit.errors import RefConflictError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.workflow.workflow import Choice, Target
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import thread_ref
from uwfgit.store.locks.flock import lock
from uwfgit.store.refs import find_ref, move_ref

BEGIN_MS: Final = 1_800_000_000_000


# --- the event table of the format: step ---


def test_a_step_that_leads_to_a_role_leaves_the_thread_idle(
    ledger: Ledger, thread: ThreadId
) -> None:
    before = state_of(ledger.store, thread)

    report = go(ledger, thread, DONE)

    step = steps_of(ledger, thread)[0]
    assert state_of(ledger.store, thread) == replace(
        before,
        head=step.hash,
        steps=1,
        current_role="critic",
        updated_at_ms=step.completed_at_ms,
    )
    assert report.steps == (
        StepReport(
            number=1,
            hash=step.hash,
            role="worker",
            status="done",
            thread_status="idle",
            head=step.hash,
            current_role="critic",
            done=False,
            suspended_role=None,
            suspend_message=None,
            error=None,
            said="Did it.",
        ),
    )
    assert (report.end, report.status, report.done) == (RunEnd.DONE, "idle", False)


def test_a_step_adds_two_files_to_read_and_its_nodes(
    ledger: Ledger, thread: ThreadId
) -> None:
    before = files(ledger.store, thread)

    go(ledger, thread, DONE)

    step = steps_of(ledger, thread)[0]
    after = files(ledger.store, thread)
    added = {path: data for path, data in after.items() if before.get(path) != data}
    nodes = {path for path in added if path.startswith("nodes/")}
    assert {path.split("/")[-1].partition(".")[0] for path in nodes} == {
        step.hash,
        step.output_hash,
        step.detail_hash,
    }
    assert all(path.startswith("nodes/000/00001/1/") for path in nodes)
    assert added.keys() - nodes == {
        "history/000/00001-worker/output.md",
        "history/000/00001-worker/prompt.md",
        "thread.json",
    }
    assert added["history/000/00001-worker/output.md"] == (
        b'---\n$status: "done"\nplan: "x"\n---\n\nDid it.\n'
    )
    assert added["history/000/00001-worker/prompt.md"] == b"Begin: Fix the bug\n"


def test_a_step_is_one_commit_with_the_trailers(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, DONE, BAD)

    one, two = steps_of(ledger, thread)
    commit = events(ledger.store, thread)[-1].commit
    assert names(ledger.store, thread) == ["start", "step", "step"]
    assert commit.message == (
        "critic: bad\n\n"
        "> Not fine.\n\n"
        "Uwf-Format: 1\n"
        "Uwf-Event: step\n"
        f"Uwf-Thread: {thread}\n"
        f"Uwf-Node: {two.hash}\n"
        f"Uwf-Prev: {one.hash}\n"
        "Uwf-Role: critic\n"
        "Uwf-Status: bad\n"
        "Uwf-Next: worker\n"
    )
    assert (commit.author.name, commit.author.email) == ("acting", "agent@localhost")
    assert commit.author.time == two.completed_at_ms // 1000
    assert commit.committer.who == "Ada <ada@example.com>"


def test_a_step_records_what_was_asked_and_what_was_said(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    asked: list[AgentRequest] = []

    def act(request: AgentRequest) -> str:
        asked.append(request)
        return DONE

    heads = iter(["a" * 40, "b" * 40])
    engine = acting(ledger, act, code_head=lambda _: next(heads))
    exec_thread(engine, thread, count=1)

    step = steps_of(ledger, thread)[0]
    detail = record_of(ledger, thread).node(step.detail_hash).payload
    assert (step.role, step.body, step.agent) == ("worker", "Did it.", "acting")
    assert (step.prev, step.start) == (None, state_of(ledger.store, thread).start)
    assert (step.edge_prompt, step.note) == ("Begin: Fix the bug", None)
    assert (step.cwd, step.extracted_by) == (str(tmp_path), "frontmatter")
    assert (step.code.before, step.code.after) == ("a" * 40, "b" * 40)
    assert step.started_at_ms < step.completed_at_ms
    assert detail["assembledPrompt"] == asked[0].prompt
    assert [turn["content"] for turn in detail["turns"]] == [DONE]
    assert detail["kind"] == "acting"


def test_a_corrected_answer_says_so(ledger: Ledger, thread: ThreadId) -> None:
    answers = iter([NO_BLOCK, DONE])

    exec_thread(acting(ledger, lambda _: next(answers)), thread, count=1)

    step = steps_of(ledger, thread)[0]
    detail = record_of(ledger, thread).node(step.detail_hash).payload
    assert step.extracted_by == "correction"
    assert [turn["role"] for turn in detail["turns"]] == [
        "assistant",
        "user",
        "assistant",
    ]


def test_a_step_that_reaches_the_end_ends_the_thread(
    ledger: Ledger, thread: ThreadId
) -> None:
    report = go(ledger, thread, DONE, GOOD)

    state = state_of(ledger.store, thread)
    assert (state.status, state.current_role, state.steps) == ("end", None, 2)
    assert state.completed_at_ms == state.updated_at_ms
    assert events(ledger.store, thread)[-1].next == "$END"
    assert (report.end, report.done, report.steps[-1].done) == (RunEnd.DONE, True, True)


def test_a_step_that_suspends_counts_and_waits_for_a_person(
    ledger: Ledger, thread: ThreadId
) -> None:
    report = go(ledger, thread, suspend("Which: one?"))

    state, step = state_of(ledger.store, thread), steps_of(ledger, thread)[0]
    assert waits(state) == ("suspended", "worker", "Which: one?")
    assert (state.head, state.steps, state.current_role) == (step.hash, 1, None)
    assert step.output == {"$status": "$SUSPEND", "reason": "Which: one?"}
    assert step.body == "I need to know."
    event = events(ledger.store, thread)[-1]
    assert (event.name, event.status, event.next) == ("step", "$SUSPEND", None)
    assert (report.end, report.steps[0].error) == (RunEnd.WAITING, None)


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        pytest.param("r" * 1000, "r" * 1000, id="a-thousand"),
        pytest.param("r" * 2000, "r" * 2000, id="as-long-as-is-shown"),
        pytest.param("r" * 2001, "r" * 1999 + "…", id="longer"),
        pytest.param("\x01😀" * 1500, "\x01😀" * 999 + "\x01…", id="wide"),
    ],
)
def test_a_long_reason_is_whole_in_the_step_and_bounded_in_the_state(
    ledger: Ledger, thread: ThreadId, reason: str, shown: str
) -> None:
    go(ledger, thread, suspend(reason))

    assert state_of(ledger.store, thread).suspend_message == shown
    assert steps_of(ledger, thread)[0].output["reason"] == reason


# --- attempts ---


def test_an_answer_that_never_holds_is_an_attempt(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, DONE)
    before = state_of(ledger.store, thread)

    report = go(ledger, thread, NO_BLOCK)

    state, event = state_of(ledger.store, thread), events(ledger.store, thread)[-1]
    attempt = report.steps[0]
    assert state == replace(
        before,
        status="suspended",
        current_role=None,
        suspended_role="critic",
        suspend_message=attempt.error,
        updated_at_ms=state.updated_at_ms,
    )
    assert state.updated_at_ms > before.updated_at_ms
    assert (event.name, event.node, event.prev) == (
        "attempt",
        attempt.hash,
        before.head,
    )
    assert (event.role, event.status, event.next) == ("critic", "error", None)
    assert (attempt.number, attempt.status, attempt.head) == (2, "error", before.head)
    assert (report.end, report.problem) == (RunEnd.AGENT_FAILED, attempt.error)


def test_an_attempt_keeps_all_that_was_said_and_moves_nothing(
    ledger: Ledger, thread: ThreadId
) -> None:
    said = iter(["first try", "second try", "third try"])

    exec_thread(acting(ledger, lambda _: next(said)), thread, count=1)

    found = files(ledger.store, thread, "history")
    assert sorted(found) == [
        "000/00001-worker/attempts/1/output.md",
        "000/00001-worker/attempts/1/prompt.md",
    ]
    output = found["000/00001-worker/attempts/1/output.md"].decode()
    assert output.endswith("\n\nfirst try\n\nsecond try\n\nthird try\n")
    assert '$status: "error"\n' in output
    assert 'phase: "output"\n' in output
    assert len(paths(ledger.store, thread, "nodes/000/00001")) == 3
    assert state_of(ledger.store, thread).steps == 0
    assert steps_of(ledger, thread) == ()


@pytest.mark.parametrize(
    ("said", "end", "body"),
    [
        pytest.param(failure("crashed"), RunEnd.AGENT_FAILED, "", id="silent-crash"),
        pytest.param(
            failure("crashed", text=DONE),
            RunEnd.AGENT_FAILED,
            DONE,
            id="crash-after-a-reply",
        ),
        pytest.param(
            failure("slow", phase="agent"), RunEnd.AGENT_FAILED, "", id="timeout"
        ),
        pytest.param(
            failure("stopped", phase="interrupted"),
            RunEnd.INTERRUPTED,
            "",
            id="stopped",
        ),
        pytest.param(
            failure("crashed", text="half a\0reply"),
            RunEnd.AGENT_FAILED,
            "half a\ufffdreply",
            id="nul",
        ),
    ],
)
def test_an_agent_that_fails_is_an_attempt_with_its_words(
    ledger: Ledger, thread: ThreadId, said: AgentReply, end: RunEnd, body: str
) -> None:
    report = go(ledger, thread, said)

    assert said.failure is not None
    attempt = report.steps[0]
    assert attempt.hash is not None
    step = record_of(ledger, thread).step(attempt.hash, 1)
    assert report.end is end
    assert step.output == {
        "$status": "error",
        "error": said.failure.message,
        "phase": said.failure.phase,
    }
    assert (step.body, step.extracted_by) == (body, None)


def test_attempts_are_counted_up_and_listed_by_the_next_good_step(
    ledger: Ledger, thread: ThreadId
) -> None:
    one = go(ledger, thread, NO_BLOCK).steps[0].hash
    two = resume(ledger, thread, failure()).steps[0].hash
    report = resume(ledger, thread, DONE)

    step = steps_of(ledger, thread)[0]
    assert step.previous_attempts == (one, two)
    assert names(ledger.store, thread) == ["start", "attempt", "attempt", "resume"]
    assert [path for path in paths(ledger.store, thread) if "output" in path] == [
        "000/00001-worker/attempts/1/output.md",
        "000/00001-worker/attempts/2/output.md",
        "000/00001-worker/output.md",
    ]
    assert report.end is RunEnd.DONE


def test_attempts_are_listed_once_and_by_their_own_role_only(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, NO_BLOCK)
    resume(ledger, thread, DONE)

    go(ledger, thread, BAD, DONE)

    assert [s.previous_attempts for s in steps_of(ledger, thread)[1:]] == [None, None]


def test_attempts_that_are_alike_to_the_millisecond_are_all_kept(
    store: Store, tmp_path: Path
) -> None:
    ledger = make_ledger(store, Clock(itertools.repeat(BEGIN_MS)))
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, failure())
    for _ in range(2):
        resume(ledger, thread, failure())

    resume(ledger, thread, DONE)

    assert len(steps_of(ledger, thread)[0].previous_attempts or ()) == 3
    assert len(paths(store, thread, "history/000/00001-worker/attempts")) == 6
    check_thread(store, thread)


def test_a_failed_resume_of_a_suspended_role_waits_with_the_error(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, suspend())

    resume(ledger, thread, failure("crashed"), note="This one.")

    state = state_of(ledger.store, thread)
    assert waits(state) == ("suspended", "worker", "crashed")
    assert state.steps == 1
    assert "000/00002-worker/attempts/1/prompt.md" in paths(ledger.store, thread)
    assert files(ledger.store, thread)[
        "history/000/00002-worker/attempts/1/prompt.md"
    ].endswith(b"\n\n---\n\nThis one.\n")


def test_words_too_large_for_a_node_are_kept_beside_the_store(
    ledger: Ledger, thread: ThreadId
) -> None:
    said = "Some words. " * 200_000

    report = go(ledger, thread, failure("crashed", text=said))

    live = ledger.store.state_dir / "live" / f"{thread}.jsonl"
    assert said in live.read_text(encoding="utf-8")
    assert report.steps[0].error is not None
    assert str(live) in report.steps[0].error
    assert report.end is RunEnd.AGENT_FAILED


@pytest.mark.slow
def test_an_answer_too_large_for_a_node_is_an_attempt_and_its_words_are_kept(
    ledger: Ledger, thread: ThreadId
) -> None:
    said = reply(body="Some words. " * 1_500_000, plan="x")

    report = go(ledger, thread, said)

    live = ledger.store.state_dir / "live" / f"{thread}.jsonl"
    assert report.end is RunEnd.AGENT_FAILED
    assert live.stat().st_size > len(said)
    assert state_of(ledger.store, thread).steps == 0


# --- usage and times ---


def test_usage_is_the_sum_over_steps_and_attempts(
    ledger: Ledger, thread: ThreadId
) -> None:
    def spent(text: str, tokens: int, cost: float | None) -> AgentReply:
        usage = Usage(
            turns=1,
            input_tokens=tokens,
            output_tokens=tokens,
            duration_ms=10,
            cost_usd=cost,
        )
        return AgentReply(text=text, usage=usage)

    go(ledger, thread, spent(DONE, 1, 0.25), spent(BAD, 10, None))
    go(ledger, thread, spent(NO_BLOCK, 100, 0.5))
    resume(ledger, thread, spent(DONE, 1000, 0.5))
    poke(ledger, thread, replace(failure(), usage=spent("", 10_000, 1).usage))

    # The answer that never held was asked for three times.
    total = 1 + 10 + 300 + 1000 + 10_000
    assert state_of(ledger.store, thread).usage == Usage(
        turns=7,
        input_tokens=total,
        output_tokens=total,
        duration_ms=70,
        cost_usd=0.25 + 1.5 + 0.5 + 1,
    )


def test_usage_that_nobody_knows_stays_unknown(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, DONE)

    assert state_of(ledger.store, thread).usage is None


FIFTY_YEARS_MS: Final = 50 * 365 * 24 * 3600 * 1000


@pytest.mark.parametrize(
    "moves",
    [
        pytest.param([0, -3_600_000, -7_200_000, -1], id="goes-backwards"),
        pytest.param([0, FIFTY_YEARS_MS, 0, 1000], id="fifty-years-ahead-and-back"),
        pytest.param([0, 400, 300, 999, 1], id="within-a-second"),
        pytest.param([FIFTY_YEARS_MS], id="ahead-from-the-start"),
    ],
)
def test_times_never_go_back_whatever_the_clock_does(
    store: Store, tmp_path: Path, moves: list[int]
) -> None:
    offsets = itertools.chain.from_iterable(
        itertools.repeat(move, 9) for move in itertools.cycle(moves)
    )
    ledger = make_ledger(store, Clock(BEGIN_MS + move for move in offsets))
    thread = begin(ledger, tmp_path).thread

    go(ledger, thread, DONE, BAD, NO_BLOCK)
    resume(ledger, thread, suspend())
    resume(ledger, thread, DONE)
    poke(ledger, thread, failure())
    poke(ledger, thread, DONE)
    fork = fork_thread(ledger, thread).thread
    go(ledger, fork, BAD)
    cancel_thread(ledger, fork, reason=None, command="cancel")

    for each in (thread, fork):
        check_thread(store, each)
        for step in steps_of(ledger, each):
            assert step.started_at_ms <= step.completed_at_ms
    check_store(store)


# --- what an agent may not do ---


def _moving(ledger: Ledger, thread: ThreadId, to: str | None) -> Act:
    def act(_: AgentRequest) -> str:
        if to is None:
            git(ledger.store, "update-ref", "-d", thread_ref(thread))
        else:
            git(ledger.store, "update-ref", thread_ref(thread), to)
        return DONE

    return act


@pytest.mark.parametrize("to", [GENESIS_OID, None], ids=["moved", "deleted"])
def test_when_the_branch_moved_meanwhile_nothing_is_recorded_and_the_reply_is_kept(
    ledger: Ledger, thread: ThreadId, to: str | None
) -> None:
    report = exec_thread(acting(ledger, _moving(ledger, thread, to)), thread, count=3)

    live = ledger.store.state_dir / "live" / f"{thread}.jsonl"
    assert report.end is RunEnd.AGENT_FAILED
    assert len(report.steps) == 1
    assert (report.steps[0].hash, report.steps[0].status) == (None, None)
    assert report.problem is not None
    assert str(live) in report.problem
    assert "Did it." in live.read_text(encoding="utf-8")
    assert find_ref(ledger.store, thread_ref(thread)) == to
    check_store(ledger.store)


def test_when_the_branch_became_unreadable_meanwhile_the_reply_is_kept(
    ledger: Ledger, thread: ThreadId
) -> None:
    file = ledger.store.path / thread_ref(thread)
    whole = file.read_bytes()

    def act(_: AgentRequest) -> str:
        file.write_bytes(b"garbage\n")
        return DONE

    report = exec_thread(acting(ledger, act), thread, count=1)

    live = ledger.store.state_dir / "live" / f"{thread}.jsonl"
    file.write_bytes(whole)
    assert report.end is not RunEnd.DONE
    assert "Did it." in live.read_text(encoding="utf-8")


def test_a_race_lost_at_the_very_last_moment_keeps_the_reply(
    ledger: Ledger, thread: ThreadId
) -> None:
    before = tip_oid(ledger.store, thread)
    looks = itertools.count()

    def code_head(_: Path) -> None:
        # The second look is the one after the agent's work.
        if next(looks):
            ref = thread_ref(thread)
            move_ref(ledger.store, ref, old=before, new=GENESIS_OID, reason="race")

    engine = acting(ledger, saying(DONE), code_head=code_head)
    try:
        report: RunReport | None = exec_thread(engine, thread, count=1)
    except RefConflictError:
        report = None

    live = ledger.store.state_dir / "live" / f"{thread}.jsonl"
    assert "Did it." in live.read_text(encoding="utf-8")
    assert report is None or report.end is RunEnd.AGENT_FAILED
    assert tip_oid(ledger.store, thread) == GENESIS_OID


@pytest.mark.parametrize("name", ["config", "hooks/post-update"])
def test_an_agent_that_changes_the_stores_own_files_stops_the_run(
    ledger: Ledger, thread: ThreadId, name: str
) -> None:
    def act(_: AgentRequest) -> str:
        file = ledger.store.path / name
        file.parent.mkdir(exist_ok=True)
        with file.open("a", encoding="utf-8") as stream:
            stream.write("# mine now\n")
        return DONE

    report = exec_thread(acting(ledger, act), thread, count=3)

    assert report.end is RunEnd.AGENT_FAILED
    assert len(report.steps) == 1
    assert report.problem is not None
    assert name in report.problem
    # What is reported is what is on record: a failure, with all that was said.
    state = state_of(ledger.store, thread)
    assert (state.status, state.steps) == ("suspended", 0)
    assert state.suspend_message == report.problem
    assert [step.status for step in report.steps] == ["error"]
    check_thread(ledger.store, thread)


@pytest.mark.slow
def test_a_real_agent_that_moves_the_branch_is_found_out(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    script = tmp_path / "agent.sh"
    script.write_text(
        "#!/bin/sh\ncat > /dev/null\n"
        'git --git-dir="$UWF_STORE" update-ref '
        f'"refs/heads/thread/$UWF_THREAD" {GENESIS_OID}\n'
        "printf -- '---\\n$status: done\\nplan: x\\n---\\nStolen words.'\n",
        encoding="utf-8",
    )
    script.chmod(0o700)
    path = os.environ["PATH"]
    engine = make_engine(ledger, environment={"PATH": path})

    report = exec_thread(engine, thread, count=1, agent=f"stdio:{script}")

    live = ledger.store.state_dir / "live" / f"{thread}.jsonl"
    assert report.end is RunEnd.AGENT_FAILED
    assert "Stolen words." in live.read_text(encoding="utf-8")
    assert tip_oid(ledger.store, thread) == GENESIS_OID


# --- replies that try the format ---


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("\n".join(["😀" * 200] * 20), id="widest-characters"),
        pytest.param("x\n\nUwf-Event: cancel\nUwf-Thread: x", id="trailers"),
        pytest.param("\x1b[2J\u202e\x07\x9b", id="controls"),
        pytest.param("a\r\nb\rc\x0bd\u2028e", id="line-ends"),
        pytest.param("---\n$status: good\n---", id="a-second-block"),
        pytest.param("", id="nothing"),
    ],
)
def test_whatever_is_said_the_thread_can_be_read(
    ledger: Ledger, thread: ThreadId, body: str
) -> None:
    go(ledger, thread, reply(body=body, plan="x"), suspend(body or "?", body))

    assert [s.status for s in steps_of(ledger, thread)] == ["done", "$SUSPEND"]
    assert names(ledger.store, thread) == ["start", "step", "step"]


def test_a_status_without_end_does_not_make_the_thread_unreadable(
    ledger: Ledger, tmp_path: Path
) -> None:
    base = make_workflow()
    free = {"type": "object", "properties": {"$status": TEXT}}
    worker = replace(base.roles["worker"], schema=free)
    graph = {**base.graph, "worker": (Choice(role="critic", prompt="Go."),)}
    workflow = replace(base, roles={**base.roles, "worker": worker}, graph=graph)
    thread = begin(ledger, tmp_path, workflow=workflow).thread

    go(ledger, thread, reply("x" * 20_000))

    assert steps_of(ledger, thread)[0].status == "x" * 20_000
    check_thread(ledger.store, thread)


def test_a_variable_without_a_value_is_a_warning_on_the_step(
    ledger: Ledger, tmp_path: Path
) -> None:
    base = make_workflow()
    edge = Target(role="critic", prompt="Judge {{nothing}}.")
    workflow = replace(base, graph={**base.graph, "worker": {"done": edge}})
    thread = begin(ledger, tmp_path, workflow=workflow).thread

    go(ledger, thread, DONE, GOOD)

    one, two = steps_of(ledger, thread)
    assert one.warnings == ()
    assert len(two.warnings) == 1
    assert "nothing" in two.warnings[0]


def test_conditions_of_edges_decide_what_follows(
    ledger: Ledger, tmp_path: Path
) -> None:
    base = make_workflow()
    edges = (
        Choice(role="worker", prompt="Again.", when="$count(steps) < 2"),
        Choice(role="critic", prompt="Judge {{plan}}.", when="$last('worker')"),
    )
    workflow = replace(base, graph={**base.graph, "worker": edges})
    thread = begin(ledger, tmp_path, workflow=workflow).thread

    go(ledger, thread, DONE, DONE, GOOD)

    assert [step.role for step in steps_of(ledger, thread)] == [
        "worker",
        "worker",
        "critic",
    ]


# --- many steps ---


@pytest.mark.slow
def test_steps_cross_from_one_bucket_to_the_next(
    ledger: Ledger, thread: ThreadId
) -> None:
    said = itertools.cycle([DONE, BAD])

    report = exec_thread(acting(ledger, lambda _: next(said)), thread, count=101)

    assert report.end is RunEnd.DONE
    folders = sorted({path[:17] for path in paths(ledger.store, thread)})
    assert folders[97:] == [
        "000/00098-critic/",
        "000/00099-worker/",
        "001/00100-critic/",
        "001/00101-worker/",
    ]
    assert len(paths(ledger.store, thread, "nodes/001/00100")) >= 2
    assert [s.number for s in steps_of(ledger, thread)] == list(range(1, 102))
    fork = fork_thread(ledger, thread, at=99).thread
    go(ledger, fork, GOOD)
    assert [s.number for s in steps_of(ledger, fork)] == list(range(1, 101))


def test_code_is_looked_for_when_nothing_is_waited_for_any_more(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    said: list[object] = []
    with ExitStack() as slot:
        slot.enter_context(lock(ledger.store.locks / "slot-1", command="x", wait=0))

        def let_go(why: str) -> None:
            said.append(why)
            slot.close()

        engine = acting(
            ledger,
            saying(DONE),
            settings=Settings(max_running=1),
            on_wait=let_go,
            find_keeper=said.append,
        )
        report = exec_thread(engine, thread, count=1)

    assert report.end is RunEnd.DONE
    assert said == [
        "waiting for another step to end (concurrency.maxRunning is 1)",
        tmp_path,
    ]


@pytest.mark.parametrize("where", ["model", "session_id", "text"])
def test_words_that_no_record_can_hold_are_kept_beside_it(
    ledger: Ledger, thread: ThreadId, where: str
) -> None:
    said = replace(AgentReply(text=DONE), **{where: f"{DONE}\ud800"})

    report = exec_thread(acting(ledger, saying(said)), thread, count=1)

    (kept,) = (ledger.store.state_dir / "live").iterdir()
    assert (report.end, report.status) == (RunEnd.REFUSED, "idle")
    assert "lone surrogate" in (report.problem or "")
    assert (report.problem or "").endswith(
        f"nothing was recorded, its reply is in {kept}"
    )
    assert "Did it." in kept.read_text()


def test_a_note_that_was_kept_waits_for_a_run_that_is_recorded(
    ledger: Ledger, thread: ThreadId
) -> None:
    ledger.local.set_note(thread, "Be quick.")
    lost = replace(AgentReply(text=DONE), model="\ud800")

    exec_thread(acting(ledger, saying(lost)), thread, count=1)
    waiting = ledger.local.find_note(thread)
    exec_thread(acting(ledger, saying(DONE)), thread, count=1)

    (step,) = steps_of(ledger, thread)
    assert (waiting, step.note) == ("Be quick.", "Be quick.")
    assert ledger.local.find_note(thread) is None


def test_an_agent_is_told_what_its_session_has_cost_so_far(
    ledger: Ledger, thread: ThreadId
) -> None:
    spent = Usage(
        turns=1, input_tokens=5, output_tokens=2, duration_ms=1, cost_usd=None
    )
    asked: list[AgentRequest] = []

    def act(request: AgentRequest) -> AgentReply:
        asked.append(request)
        return AgentReply(text=DONE, session_id="s", session_total=spent)

    agent = ActingAgent(act=act, has_sessions=True)
    engine = make_engine(ledger, choose=lambda *_: agent)
    exec_thread(engine, thread, count=1)
    poke_thread(engine, thread, note="Again.")

    told = [(request.session_id, request.session_total) for request in asked]
    assert told == [(None, None), ("s", spent)]
