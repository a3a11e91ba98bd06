"""exec, resume and poke: when they run, what they leave, when they refuse."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests.acting import (
    BAD,
    DONE,
    GOOD,
    NO_BLOCK,
    acting,
    failure,
    go,
    poke,
    put,
    resume,
    saying,
    steps_of,
    suspend,
    waits,
)
from tests.builders import (
    Clock,
    begin,
    make_ledger,
    make_workflow,
    reply,
)
from tests.history import (
    check_thread,
    events,
    files,
    names,
    paths,
    state_of,
    tip_oid,
)
from uwfgit.agents.base import AgentReply, AgentRequest
from uwfgit.config import Settings
from uwfgit.engine.run import recording
from uwfgit.engine.run.ends import RunEnd
from uwfgit.engine.run.executor import (
    RunReport,
    StepReport,
    exec_thread,
    poke_thread,
    resume_thread,
)
from uwfgit.engine.run.hold import hold_thread
from uwfgit.engine.run.thread import cancel_thread, fork_thread
from uwfgit.errors import LockedError, NotFoundError, StateError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node import make_text
from uwfgit.model.workflow.workflow import Choice, Target
from uwfgit.store.handle import Store

BEGIN_MS: Final = 1_800_000_000_000


# --- how often exec runs ---


def test_exec_runs_a_loop_until_the_end(ledger: Ledger, thread: ThreadId) -> None:
    said = saying(DONE, BAD, DONE, BAD, DONE, GOOD)
    told: list[StepReport] = []

    report = exec_thread(acting(ledger, said), thread, count=None, on_step=told.append)

    found = steps_of(ledger, thread)
    assert [(s.number, s.role, s.status) for s in found] == [
        (1, "worker", "done"),
        (2, "critic", "bad"),
        (3, "worker", "done"),
        (4, "critic", "bad"),
        (5, "worker", "done"),
        (6, "critic", "good"),
    ]
    assert found[2].edge_prompt == "Fix it: slow"
    assert [s.prev for s in found] == [None, *(s.hash for s in found[:-1])]
    assert tuple(told) == report.steps
    assert (report.end, report.done) == (RunEnd.DONE, True)


@pytest.mark.parametrize(("count", "ran"), [(1, 1), (2, 2), (9, 2), (None, 2)], ids=str)
def test_exec_runs_as_often_as_asked_and_stops_at_the_end(
    ledger: Ledger, thread: ThreadId, count: int | None, ran: int
) -> None:
    report = exec_thread(acting(ledger, saying(DONE, GOOD)), thread, count=count)

    assert len(report.steps) == ran


@pytest.mark.parametrize(
    ("said", "end"),
    [
        pytest.param(suspend(), RunEnd.WAITING, id="suspended"),
        pytest.param(NO_BLOCK, RunEnd.AGENT_FAILED, id="failed"),
    ],
)
def test_exec_stops_when_a_person_is_needed(
    ledger: Ledger, thread: ThreadId, said: str, end: RunEnd
) -> None:
    report = exec_thread(acting(ledger, saying(DONE, said)), thread, count=9)

    assert (len(report.steps), report.end) == (2, end)


def test_an_interrupt_while_a_step_is_recorded_ends_the_run_after_it(
    ledger: Ledger, thread: ThreadId
) -> None:
    times = itertools.count(1)

    def code_head(_: Path) -> str | None:
        # Before the agent is asked, then for the record, and for it once more.
        if next(times) == 2:
            raise KeyboardInterrupt
        return None

    engine = acting(ledger, saying(DONE, BAD, DONE), code_head=code_head)
    told: list[StepReport] = []
    report = exec_thread(engine, thread, count=3, on_step=told.append)

    assert names(ledger.store, thread) == ["start", "step"]
    assert report.end is RunEnd.INTERRUPTED
    assert report.problem == "interrupted"
    assert report.hint == f"go on with: uwf thread exec {thread}"
    assert report.steps == tuple(told)
    assert [(step.status, step.error) for step in told] == [("done", None)]


def test_an_interrupt_after_a_step_was_recorded_records_it_no_second_time(
    ledger: Ledger, thread: ThreadId, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(recording, "first_line", interrupted)
    engine = acting(ledger, saying(DONE, BAD, DONE))

    report = exec_thread(engine, thread, count=3)

    assert names(ledger.store, thread) == ["start", "step"]
    assert report.end is RunEnd.INTERRUPTED


def test_all_is_bounded_so_that_a_loop_ends(ledger: Ledger, thread: ThreadId) -> None:
    limits = replace(Settings().limits, max_steps=4)
    engine = acting(
        ledger,
        saying(*itertools.chain.from_iterable([(DONE, BAD)] * 9)),
        settings=replace(Settings(), limits=limits),
    )

    report = exec_thread(engine, thread, count=None)

    assert (len(report.steps), report.status) == (4, "idle")
    assert report.end is RunEnd.REFUSED
    assert report.problem is not None
    assert report.hint is not None


def test_one_exec_of_three_cycles_writes_what_three_of_one_write(
    tmp_path: Path, store: Store, home: Path
) -> None:
    from uwfgit.store.repository import init_store, open_store  # noqa: PLC0415 - only here

    other = tmp_path / "other"
    init_store(other, home=home, fsync=False)
    stores = [store, open_store(other, home=home, write=True, fsync=False)]
    ledgers = [make_ledger(s, Clock(itertools.count(BEGIN_MS, 1000))) for s in stores]
    one, three = (begin(each, tmp_path).thread for each in ledgers)

    go(ledgers[0], one, DONE, BAD, DONE)
    for said in (DONE, BAD, DONE):
        go(ledgers[1], three, said)

    assert one == three
    assert tip_oid(stores[0], one) == tip_oid(stores[1], three)


def test_exec_of_an_ended_thread_does_nothing(ledger: Ledger, thread: ThreadId) -> None:
    go(ledger, thread, DONE, GOOD)
    before = tip_oid(ledger.store, thread)

    report = exec_thread(acting(ledger, saying()), thread, count=None)

    assert (report.steps, report.done, report.end) == ((), True, RunEnd.DONE)
    assert tip_oid(ledger.store, thread) == before


def test_exec_of_a_suspended_thread_says_how_to_resume(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, suspend())
    before = tip_oid(ledger.store, thread)

    report = exec_thread(acting(ledger, saying()), thread, count=1)

    assert (report.steps, report.done) == ((), False)
    assert report.end is RunEnd.WAITING
    assert report.hint is not None
    assert f"uwf thread resume {thread}" in report.hint
    assert tip_oid(ledger.store, thread) == before


def test_a_cancelled_thread_cannot_run(ledger: Ledger, thread: ThreadId) -> None:
    go(ledger, thread, DONE)
    cancel_thread(ledger, thread, reason=None, command="cancel")
    engine = acting(ledger, saying())

    runs: list[Callable[[], RunReport]] = [
        lambda: exec_thread(engine, thread, count=1),
        lambda: resume_thread(engine, thread),
        lambda: poke_thread(engine, thread, note="x"),
    ]
    for run in runs:
        with pytest.raises(StateError):
            run()


def test_a_thread_that_is_not_there_cannot_run(ledger: Ledger) -> None:
    with pytest.raises(NotFoundError):
        go(ledger, ThreadId("01JZZZZZZZZZZZZZZZZZZZZZZZ"), DONE)


def test_a_running_thread_is_held(ledger: Ledger, thread: ThreadId) -> None:
    def act(_: AgentRequest) -> str:
        with pytest.raises(LockedError):
            resume(ledger, thread, DONE)
        return DONE

    assert exec_thread(acting(ledger, act), thread, count=1).end is RunEnd.DONE
    with hold_thread(ledger, thread, command="test"):
        pass


# --- resume ---


def test_resume_runs_the_base_prompt_again_with_the_note_kept_apart(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, DONE, suspend("Which one?"))
    prompts: list[str] = []

    def act(request: AgentRequest) -> str:
        prompts.append(request.prompt)
        return GOOD

    resume_thread(acting(ledger, act), thread, note="The left one.")

    before, step = steps_of(ledger, thread)[1:]
    assert (step.role, step.number, step.prev) == ("critic", 3, before.hash)
    assert step.edge_prompt == before.edge_prompt == "Judge x."
    assert step.note == "The left one."
    assert names(ledger.store, thread)[-1] == "resume"
    assert files(ledger.store, thread)["history/000/00003-critic/prompt.md"] == (
        b"Judge x.\n\n---\n\nThe left one.\n"
    )
    assert "Which one?" in prompts[0]
    assert "The left one." in prompts[0]


def test_three_rounds_of_suspend_and_resume_keep_the_base_prompt(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, DONE, suspend("1?"))
    for number in (2, 3):
        resume(ledger, thread, suspend(f"{number}?"), note=f"answer {number - 1}")
        assert waits(state_of(ledger.store, thread)) == (
            "suspended",
            "critic",
            f"{number}?",
        )
    resume(ledger, thread, BAD, note="answer 3")

    found = steps_of(ledger, thread)[1:]
    assert [s.status for s in found] == ["$SUSPEND", "$SUSPEND", "$SUSPEND", "bad"]
    assert {s.edge_prompt for s in found} == {"Judge x."}
    assert [s.note for s in found] == [None, "answer 1", "answer 2", "answer 3"]
    state = state_of(ledger.store, thread)
    assert (state.status, state.current_role, state.steps) == ("idle", "worker", 5)


@pytest.mark.parametrize("is_forked", [False, True], ids=["own", "inherited"])
def test_later_roles_read_the_answer_that_stood_behind_a_poked_step(
    ledger: Ledger,
    thread: ThreadId,
    is_forked: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    go(ledger, thread, DONE, suspend("Which colour?"))
    resume(ledger, thread, BAD, note="Blue.")
    if is_forked:
        thread = fork_thread(ledger, thread, at=3).thread
    poke(ledger, thread, BAD, note="Shorter.")
    prompts: list[str] = []

    def act(request: AgentRequest) -> str:
        prompts.append(request.prompt)
        return DONE

    exec_thread(acting(ledger, act), thread, count=1)

    assert "A person had told it:\n\n> Blue.\n>\n> Shorter.\n" in prompts[0]


def test_resume_without_a_note_has_none(ledger: Ledger, thread: ThreadId) -> None:
    go(ledger, thread, suspend())

    resume(ledger, thread, DONE)

    assert steps_of(ledger, thread)[1].note is None


def test_resume_of_an_ended_thread_goes_on_as_the_graph_says(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, DONE, GOOD)

    resume(ledger, thread, DONE, note="More, please.")

    step, state = steps_of(ledger, thread)[2], state_of(ledger.store, thread)
    assert (step.role, step.edge_prompt, step.note) == (
        "worker",
        "Go on.",
        "More, please.",
    )
    assert (state.status, state.current_role) == ("idle", "critic")
    assert (state.steps, state.completed_at_ms) == (3, None)


def test_a_resumed_end_that_suspends_is_resumed_the_same_way(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, DONE, GOOD)
    resume(ledger, thread, suspend(), note="More.")

    resume(ledger, thread, DONE, note="This.")

    assert [s.edge_prompt for s in steps_of(ledger, thread)[2:]] == ["Go on."] * 2


def test_an_idle_thread_cannot_be_resumed(ledger: Ledger, thread: ThreadId) -> None:
    with pytest.raises(StateError) as caught:
        resume(ledger, thread, DONE)

    assert caught.value.hint is not None
    assert "exec" in caught.value.hint


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(suspend("routing: static or dynamic?"), id="a-question"),
        pytest.param(failure("routing: table is full"), id="a-failure"),
    ],
)
def test_a_reason_that_reads_like_a_routing_error_can_be_answered(
    ledger: Ledger, thread: ThreadId, said: str | AgentReply
) -> None:
    go(ledger, thread, said)

    assert resume(ledger, thread, DONE, note="Static.").end is RunEnd.DONE


# --- poke ---


def _ended(ledger: Ledger, thread: ThreadId) -> None:
    go(ledger, thread, DONE, GOOD)


def _idle(ledger: Ledger, thread: ThreadId) -> None:
    go(ledger, thread, DONE, BAD)


def _suspended(ledger: Ledger, thread: ThreadId) -> None:
    go(ledger, thread, DONE, suspend())


def _failed(ledger: Ledger, thread: ThreadId) -> None:
    go(ledger, thread, DONE, BAD, NO_BLOCK)


@pytest.mark.parametrize("prepare", [_ended, _idle, _suspended, _failed])
def test_poke_replaces_the_newest_step(
    ledger: Ledger,
    thread: ThreadId,
    prepare: Callable[[Ledger, ThreadId], None],
) -> None:
    prepare(ledger, thread)
    first, old = steps_of(ledger, thread)
    old_files = files(ledger.store, thread, "history/000/00002-critic")
    prompts: list[str] = []

    def act(request: AgentRequest) -> str:
        prompts.append(request.prompt)
        return reply("good", "On second thoughts.")

    report = poke_thread(acting(ledger, act), thread, note="Look again.")

    new, state = steps_of(ledger, thread)[1], state_of(ledger.store, thread)
    assert (new.number, new.role, new.prev) == (2, "critic", first.hash)
    assert (new.edge_prompt, new.cwd) == (old.edge_prompt, old.cwd)
    assert (new.note, new.status) == ("Look again.", "good")
    assert (state.head, state.steps, state.status) == (new.hash, 2, "end")
    assert names(ledger.store, thread)[-1] == "poke"
    folder = files(ledger.store, thread, "history/000/00002-critic")
    moved = {
        path.removeprefix("replaced/1/"): data
        for path, data in folder.items()
        if path.startswith("replaced/1/")
    }
    assert moved == old_files
    assert sorted(folder.keys() - {f"replaced/1/{path}" for path in moved}) == [
        "output.md",
        "prompt.md",
    ]
    assert old.body in prompts[0]
    assert "Look again." in prompts[0]
    assert (report.end, report.steps[0].number) == (RunEnd.DONE, 2)


def test_poke_moves_links_and_attempts_along(ledger: Ledger, thread: ThreadId) -> None:
    plan = make_text("The plan")

    def act(request: AgentRequest) -> str:
        put(ledger, request, plan)
        return reply(plan=plan.hash)

    go(ledger, thread, NO_BLOCK)
    resume_thread(acting(ledger, act), thread)

    poke(ledger, thread, DONE)

    assert paths(ledger.store, thread) == [
        "000/00001-worker/output.md",
        "000/00001-worker/prompt.md",
        "000/00001-worker/replaced/1/attempts/1/output.md",
        "000/00001-worker/replaced/1/attempts/1/prompt.md",
        "000/00001-worker/replaced/1/links/plan.md",
        "000/00001-worker/replaced/1/output.md",
        "000/00001-worker/replaced/1/prompt.md",
    ]


def test_every_poke_keeps_what_it_replaced(ledger: Ledger, thread: ThreadId) -> None:
    go(ledger, thread, reply(body="one", plan="x"))

    poke(ledger, thread, reply(body="two", plan="x"))
    poke(ledger, thread, reply(body="three", plan="x"))

    found = files(ledger.store, thread, "history/000/00001-worker")
    outputs = {path: data.decode() for path, data in found.items() if "output" in path}
    assert {path: data.split("\n\n")[1] for path, data in outputs.items()} == {
        "output.md": "three\n",
        "replaced/1/output.md": "one\n",
        "replaced/2/output.md": "two\n",
    }
    assert state_of(ledger.store, thread).steps == 1


@pytest.mark.parametrize("prepare", [_ended, _idle, _suspended, _failed])
def test_a_failed_poke_leaves_the_state_as_it_was(
    ledger: Ledger,
    thread: ThreadId,
    prepare: Callable[[Ledger, ThreadId], None],
) -> None:
    prepare(ledger, thread)
    before, steps = state_of(ledger.store, thread), steps_of(ledger, thread)

    report = poke(ledger, thread, failure("crashed", text="some words"))

    after = state_of(ledger.store, thread)
    done = None if before.completed_at_ms is None else after.updated_at_ms
    assert after == replace(
        before, updated_at_ms=after.updated_at_ms, completed_at_ms=done
    )
    assert steps_of(ledger, thread) == steps
    event = events(ledger.store, thread)[-1]
    assert (event.name, event.prev, event.role) == (
        "attempt",
        steps[0].hash,
        "critic",
    )
    attempts = "history/000/00002-critic/attempts/1/output.md"
    assert b"some words" in files(ledger.store, thread)[attempts]
    assert (report.end, report.steps[0].number) == (RunEnd.AGENT_FAILED, 2)


def test_a_good_poke_lists_the_failed_ones_and_they_move_along(
    ledger: Ledger, thread: ThreadId
) -> None:
    _idle(ledger, thread)
    failed = [poke(ledger, thread, failure()).steps[0].hash for _ in range(2)]

    poke(ledger, thread, GOOD)

    assert steps_of(ledger, thread)[1].previous_attempts == tuple(failed)
    folder = paths(ledger.store, thread, "history/000/00002-critic")
    assert [path for path in folder if "attempts" in path and "output" in path] == [
        "replaced/1/attempts/1/output.md",
        "replaced/1/attempts/2/output.md",
    ]


def test_poke_of_an_inherited_step_adds_the_new_one_and_moves_nothing(
    ledger: Ledger, thread: ThreadId
) -> None:
    _idle(ledger, thread)
    inherited = files(ledger.store, thread)
    fork = fork_thread(ledger, thread).thread
    old = steps_of(ledger, fork)[1]

    poke(ledger, fork, failure())
    poke(ledger, fork, GOOD)

    new = steps_of(ledger, fork)[1]
    assert (new.number, new.prev) == (2, old.prev)
    assert paths(ledger.store, fork) == [
        "000/00002-critic/attempts/1/output.md",
        "000/00002-critic/attempts/1/prompt.md",
        "000/00002-critic/output.md",
        "000/00002-critic/prompt.md",
    ]
    assert files(ledger.store, thread) == inherited
    check_thread(ledger.store, fork)

    poke(ledger, fork, BAD)

    assert "000/00002-critic/replaced/1/attempts/1/output.md" in paths(
        ledger.store, fork
    )
    check_thread(ledger.store, fork)


def test_a_thread_without_a_step_cannot_be_poked(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, NO_BLOCK)

    with pytest.raises(StateError):
        poke(ledger, thread, DONE)


def test_poke_can_lead_elsewhere_and_the_thread_goes_on_from_there(
    ledger: Ledger, thread: ThreadId
) -> None:
    _ended(ledger, thread)

    poke(ledger, thread, BAD)
    go(ledger, thread, DONE)

    assert [s.role for s in steps_of(ledger, thread)] == ["worker", "critic", "worker"]
    assert steps_of(ledger, thread)[2].edge_prompt == "Fix it: slow"


# --- routing errors ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A workflow in which the critic's answer leads nowhere."""

    edges: Any
    said: str
    status: str
    is_authored: bool = False


LOST: Final = {
    "no-node": Lost(edges=None, said=GOOD, status="good"),
    "no-edge": Lost(edges={}, said=GOOD, status="good"),
    "no-match": Lost(edges=(), said=GOOD, status="good"),
    # The one that a workflow without a mistake can meet.
    "blank": Lost(
        edges={
            "good": Target(role="$END", prompt="Over."),
            "bad": Target(role="worker", prompt="{{reason}}"),
        },
        said=reply("bad", reason=" \n"),
        status="bad",
        is_authored=True,
    ),
}


def _lose(ledger: Ledger, cwd: Path, kind: str) -> tuple[ThreadId, RunReport]:
    lost, base = LOST[kind], make_workflow()
    graph = {**base.graph, "critic": lost.edges}
    if lost.edges is None:
        del graph["critic"]
    thread = begin(ledger, cwd, workflow=replace(base, graph=graph)).thread
    go(ledger, thread, DONE)
    return thread, go(ledger, thread, lost.said)


@pytest.mark.parametrize("kind", LOST)
def test_a_routing_error_suspends_the_thread_with_its_code(
    ledger: Ledger, tmp_path: Path, kind: str
) -> None:
    thread, report = _lose(ledger, tmp_path, kind)

    code = f"routing: {kind} critic {LOST[kind].status}"
    state, step = state_of(ledger.store, thread), report.steps[0]
    assert waits(state) == ("suspended", "critic", code)
    assert (state.steps, state.head) == (2, step.hash)
    assert events(ledger.store, thread)[-1].next is None
    assert (step.error, step.status) == (code, LOST[kind].status)
    assert (report.end, report.problem) == (RunEnd.REFUSED, code)
    check_thread(ledger.store, thread, is_authored=LOST[kind].is_authored)


def test_a_list_needs_no_status(ledger: Ledger, tmp_path: Path) -> None:
    base = make_workflow()
    free = replace(base.roles["worker"], schema={"type": "object"})
    graph = {**base.graph, "worker": (Choice(role="critic", prompt="Go."),)}
    workflow = replace(base, roles={**base.roles, "worker": free}, graph=graph)
    thread = begin(ledger, tmp_path, workflow=workflow).thread

    report = go(ledger, thread, "---\nx: 1\n---\n")

    assert (report.end, report.steps[0].status) == (RunEnd.DONE, None)
    event = events(ledger.store, thread)[-1]
    assert (event.status, event.next) == (None, "critic")
    assert event.commit.message.startswith("worker: answered\n")
    check_thread(ledger.store, thread)


@pytest.mark.parametrize("kind", LOST)
def test_resume_after_a_routing_error_is_refused_and_names_poke_and_fork(
    ledger: Ledger, tmp_path: Path, kind: str
) -> None:
    thread, _ = _lose(ledger, tmp_path, kind)

    with pytest.raises(StateError) as caught:
        resume(ledger, thread, DONE)

    assert caught.value.hint is not None
    assert "thread poke" in caught.value.hint
    assert "thread fork" in caught.value.hint


def test_resume_is_refused_after_a_failed_poke_too(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread, _ = _lose(ledger, tmp_path, "blank")
    poke(ledger, thread, failure())

    with pytest.raises(StateError):
        resume(ledger, thread, DONE)


def test_poke_mends_a_routing_error(ledger: Ledger, tmp_path: Path) -> None:
    thread, _ = _lose(ledger, tmp_path, "blank")

    report = poke(ledger, thread, GOOD)

    assert (report.end, report.status) == (RunEnd.DONE, "end")
    check_thread(ledger.store, thread)


def test_a_fork_before_a_routing_error_runs_on(ledger: Ledger, tmp_path: Path) -> None:
    thread, _ = _lose(ledger, tmp_path, "blank")

    fork = fork_thread(ledger, thread, at=1).thread

    assert go(ledger, fork, GOOD).status == "end"
    check_thread(ledger.store, fork)


def test_exec_after_a_routing_error_waits_for_a_person(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread, _ = _lose(ledger, tmp_path, "blank")

    assert exec_thread(acting(ledger, saying()), thread, count=1).end is RunEnd.WAITING
