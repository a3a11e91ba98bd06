"""What can become of a child, of its parent, and of forks of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields, replace

from tests.acting import ActingAgent, suspend
from tests.builders import (
    TEXT,
    begin,
    make_engine,
    make_role,
    record_of,
    reply,
    variant,
)
from tests.engine.nested import (
    BUILT,
    Play,
    by,
    child,
    children_of,
    line,
    parent,
    start,
)
from tests.history import check_thread, names, state_of
from uwfgit.agents.base import AgentReply, AgentRequest, Failure
from uwfgit.config import Limits, Settings
from uwfgit.engine.beside.trash import remove_thread
from uwfgit.engine.run.executor import exec_thread, poke_thread, resume_thread
from uwfgit.engine.run.thread import cancel_thread, fork_thread
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.append import StepDraft, append_step
from uwfgit.model.ledger.ledger import Ledger, list_threads
from uwfgit.model.thread.family import iter_above
from uwfgit.model.thread.links import LinkRule
from uwfgit.model.thread.state import StepOutcome
from uwfgit.model.thread.step import Child, StartedFor, StepFields
from uwfgit.model.thread.tip import load_tip
from uwfgit.model.workflow.workflow import Target, Workflow
from uwfgit.store.local import Local

READY = reply("ready", body="It is ready.")
CODED = reply("coded", what="code")
TESTED = reply("built", body="All green.", what="a tool")
BETTER = reply("built", body="Greener.", what="a better tool")
SENT = reply("sent")
PLAIN: dict[str, Any] = {
    "preparer": [READY],
    "coder": [CODED, CODED],
    "tester": [TESTED, BETTER],
    "sender": [SENT, SENT],
}


def play_of(ledger: Ledger, folder: Path, **replies: Any) -> Play:  # noqa: ANN401 - of roles
    thread = start(ledger, folder, parent(), child())
    return Play(ledger, folder, thread, {**PLAIN, **replies})


def test_a_fork_made_before_the_child_began_begins_its_own(
    ledger: Ledger, tmp_path: Path
) -> None:
    play = play_of(ledger, tmp_path)
    play.go(count=1)
    fork = fork_thread(ledger, play.thread).thread
    other = Play(ledger, tmp_path, fork, PLAIN)

    assert (play.go().end, other.go().end) == ("done", "done")

    (mine,), (theirs,) = children_of(ledger, play.thread), children_of(ledger, fork)
    assert mine != theirs
    assert record_of(ledger, theirs).start.parent == StartedFor(
        thread=fork, step=record_of(ledger, fork).steps()[0].hash
    )
    for thread in (play.thread, fork, mine, theirs):
        check_thread(ledger.store, thread)


def test_a_fork_of_a_child_does_no_step_of_its_parent(
    ledger: Ledger, tmp_path: Path
) -> None:
    play = play_of(ledger, tmp_path)
    play.go(count=2)
    (made,) = children_of(ledger, play.thread)

    fork = fork_thread(ledger, made).thread

    above = [
        tuple(iter_above(ledger.store, record_of(ledger, each)))
        for each in (made, fork)
    ]
    assert above == [(play.thread,), ()]


def test_a_fork_made_after_the_child_ended_shares_it_until_it_is_poked(
    ledger: Ledger, tmp_path: Path
) -> None:
    play = play_of(ledger, tmp_path)
    play.go(count=2)
    (made,) = children_of(ledger, play.thread)
    ended = load_tip(ledger.store, made).commit
    fork = fork_thread(ledger, play.thread).thread
    other = Play(ledger, tmp_path, fork, PLAIN)
    other.go()
    shared = record_of(ledger, fork).steps()[1].child

    again = fork_thread(ledger, play.thread).thread
    poked = Play(ledger, tmp_path, again, PLAIN).poke("Greener")

    own = record_of(ledger, again).steps()[1]
    assert shared is not None
    assert (shared.thread, shared.oid) == (made, ended)
    assert poked.end == "done"
    assert own.body == "Greener."
    assert own.child is not None
    assert own.child.thread != made
    assert load_tip(ledger.store, made).commit == ended
    for thread in (play.thread, fork, again, made, own.child.thread):
        check_thread(ledger.store, ThreadId(thread))


def test_the_child_of_a_fork_is_cancelled_with_the_fork_alone(
    ledger: Ledger, tmp_path: Path
) -> None:
    asking = {"tester": [suspend("Which?"), suspend("Really?"), TESTED]}
    play = play_of(ledger, tmp_path, **asking)
    play.go()
    (made,) = children_of(ledger, play.thread)
    fork = fork_thread(ledger, play.thread).thread
    Play(ledger, tmp_path, fork, {**PLAIN, **asking}).resume("The second")
    forked = record_of(ledger, fork).steps()[-1].child
    assert forked is not None

    cancel_thread(ledger, fork, reason=None, command="test")

    own = ThreadId(forked.thread)
    assert own != made
    assert state_of(ledger.store, own).status == "cancelled"
    assert state_of(ledger.store, made).status == "suspended"
    assert play.resume("The first").end == "waiting"
    for thread in (play.thread, fork, made, own):
        check_thread(ledger.store, thread)


def test_a_parent_is_cancelled_whose_child_is_not_here(
    ledger: Ledger, tmp_path: Path
) -> None:
    play = play_of(ledger, tmp_path, tester=[suspend("Which?")])
    play.go()
    (made,) = children_of(ledger, play.thread)
    remove_thread(ledger, made, command="test")

    cancel_thread(ledger, play.thread, reason=None, command="test")

    assert state_of(ledger.store, play.thread).status == "cancelled"


def test_a_thread_that_no_child_is_stays_whatever_a_record_says(
    ledger: Ledger, tmp_path: Path
) -> None:
    play = play_of(ledger, tmp_path)
    play.go(count=1)
    other = begin(ledger, tmp_path)
    record = record_of(ledger, play.thread)
    step = record.steps()[-1]
    facts = {each.name: getattr(step, each.name) for each in fields(StepFields)}
    claimed = {"child": Child(thread=other.thread, oid=other.commit)}
    append_step(
        ledger,
        record,
        StepDraft(
            **{**facts, **claimed},
            output=step.output,
            output_type=record.places[step.output_hash][0],
            detail=record.node(step.detail_hash).payload,
        ),
        event="step",
        outcome=StepOutcome(status="idle", current_role="builder"),
        rule=lambda: LinkRule(put=frozenset(), named=frozenset(), find=lambda _: None),
    )

    cancel_thread(ledger, play.thread, reason=None, command="test")

    assert state_of(ledger.store, play.thread).status == "cancelled"
    assert state_of(ledger.store, other.thread).status == "idle"


def test_a_fork_that_only_shares_a_waiting_child_leaves_it_when_it_is_cancelled(
    ledger: Ledger, tmp_path: Path
) -> None:
    play = play_of(ledger, tmp_path, tester=[suspend("Which?"), TESTED])
    play.go()
    (made,) = children_of(ledger, play.thread)
    fork = fork_thread(ledger, play.thread).thread

    cancel_thread(ledger, fork, reason=None, command="test")

    assert state_of(ledger.store, made).status == "suspended"
    assert play.resume("The first").end == "done"


@pytest.mark.parametrize("fate", ["answered", "cancelled"])
def test_a_fork_asks_again_whatever_became_of_the_child_since(
    ledger: Ledger, tmp_path: Path, fate: str
) -> None:
    asking = {"tester": [suspend("Which?"), TESTED]}
    play = play_of(ledger, tmp_path, **asking)
    play.go()
    (made,) = children_of(ledger, play.thread)
    fork = fork_thread(ledger, play.thread).thread
    if fate == "answered":
        play.resume("The first")
    else:
        cancel_thread(ledger, play.thread, reason=None, command="test")
    before = load_tip(ledger.store, made).commit

    done = Play(ledger, tmp_path, fork, {**PLAIN, **asking}).resume("The second")

    last = record_of(ledger, fork).steps()[-1]
    assert (done.end, last.status) == ("done", "built")
    assert last.child is not None
    assert last.child.thread != made
    notes = [
        step.note for step in record_of(ledger, ThreadId(last.child.thread)).steps()
    ]
    assert notes == [None, None, "The second"]
    assert load_tip(ledger.store, made).commit == before
    check_thread(ledger.store, fork)
    check_thread(ledger.store, ThreadId(last.child.thread))


class KilledError(BaseException):
    """The process is gone in the middle of a step."""


def fork_while_the_child_asks(
    ledger: Ledger, tmp_path: Path
) -> tuple[ThreadId, Mapping[str, Sequence[str]], set[ThreadId]]:
    """Fork a thread whose child asks; give the scripts and all threads there are."""
    asking = {"tester": [suspend("Which?"), TESTED]}
    play = play_of(ledger, tmp_path, **asking)
    play.go()
    fork = fork_thread(ledger, play.thread).thread
    ledger.lookup.refresh()
    return fork, {**PLAIN, **asking}, {row.thread for row in list_threads(ledger)}


class DyingLocal(Local):
    """Is killed as it notes which thread does a step."""

    is_noted: bool = False

    def set_child(self, step: str, child: ThreadId) -> bool:
        if self.is_noted:
            super().set_child(step, child)
        raise KilledError


@pytest.mark.parametrize("is_noted", [False, True])
def test_a_fork_that_was_killed_as_it_got_its_child_has_one_of_them(
    ledger: Ledger,
    tmp_path: Path,
    is_noted: bool,  # noqa: FBT001 - of the table
) -> None:
    fork, scripts, before = fork_while_the_child_asks(ledger, tmp_path)
    dying = DyingLocal(ledger.store)
    dying.is_noted = is_noted
    with pytest.raises(KilledError):
        Play(replace(ledger, local=dying), tmp_path, fork, scripts).resume()

    done = Play(ledger, tmp_path, fork, scripts).resume("The second")

    ledger.lookup.refresh()
    child = record_of(ledger, fork).steps()[-1].child
    assert child is not None
    assert done.end == "done"
    assert {row.thread for row in list_threads(ledger)} - before == {child.thread}


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["goes on", "cancelled"])
def test_a_fork_goes_on_in_the_child_it_had_got_unless_that_was_cancelled(
    ledger: Ledger,
    tmp_path: Path,
    is_cancelled: bool,  # noqa: FBT001 - of the table
) -> None:
    fork, scripts, before = fork_while_the_child_asks(ledger, tmp_path)

    def kill(_: AgentRequest) -> AgentReply:
        raise KilledError

    killed = make_engine(ledger, choose=lambda *_: ActingAgent(act=kill))
    with pytest.raises(KilledError):
        resume_thread(killed, fork, note="The second")
    ledger.lookup.refresh()
    (begun,) = {row.thread for row in list_threads(ledger)} - before
    if is_cancelled:
        cancel_thread(ledger, begun, reason=None, command="test")

    done = Play(ledger, tmp_path, fork, scripts).resume("The second")

    last = record_of(ledger, fork).steps()[-1]
    assert (done.end, last.status) == ("done", "built")
    assert last.child is not None
    assert (last.child.thread == begun) == (not is_cancelled)


def deep() -> list[Workflow]:
    """Make four workflows, each of which is done by the next."""
    middle = [
        line(f"l{number}", ("down", by(f"l{number + 1}", BUILT), "built"))
        for number in range(3)
    ]
    return [*middle, line("l3", ("tester", make_role(BUILT), "built"))]


def test_a_question_three_levels_down_goes_up_and_its_answer_down(
    ledger: Ledger, tmp_path: Path
) -> None:
    top, *rest = deep()
    thread = start(ledger, tmp_path, top, *rest)
    play = Play(ledger, tmp_path, thread, {"tester": [suspend("Which?"), TESTED]})

    asked = play.go()
    line_of = [thread]
    while found := children_of(ledger, line_of[-1]):
        line_of += found
    waiting = [state_of(ledger.store, each).suspend_message for each in line_of]
    answered = play.resume("The first")

    first, second, third, fourth = line_of
    assert (asked.end, answered.end) == ("waiting", "done")
    assert waiting == [
        f"child {second}: child {third}: child {fourth}: Which?",
        f"child {third}: child {fourth}: Which?",
        f"child {fourth}: Which?",
        "Which?",
    ]
    assert [state_of(ledger.store, each).status for each in line_of] == ["end"] * 4
    assert record_of(ledger, fourth).start.depth == 3
    assert record_of(ledger, first).steps()[-1].body == "All green."
    for each in line_of:
        check_thread(ledger.store, each)


def test_a_poke_at_the_top_lets_all_below_do_it_again(
    ledger: Ledger, tmp_path: Path
) -> None:
    top, *rest = deep()
    thread = start(ledger, tmp_path, top, *rest)
    play = Play(ledger, tmp_path, thread, PLAIN)
    play.go()

    assert play.poke("Greener").end == "done"

    (below,) = children_of(ledger, thread)
    one, two = record_of(ledger, below).steps()
    assert (one.note, two.note) == (None, "Greener")
    assert children_of(ledger, below) == [one.child.thread, two.child.thread]  # type: ignore[union-attr] # both were done by a thread
    for each in (thread, below, *children_of(ledger, below)):
        check_thread(ledger.store, each)


def test_a_workflow_that_names_itself_ends_when_it_says_so(
    ledger: Ledger, tmp_path: Path
) -> None:
    """Each level cuts once more, until the third does it itself."""
    cut = make_role(variant("small", ["what"], what=TEXT), variant("large"))
    again = by("split", variant("small", ["what"], what=TEXT))
    graph = {
        "$START": {
            "new": Target(role="cutter", prompt="Begin: {{_prompt}}"),
            "resume": Target(role="cutter", prompt="Once more."),
        },
        "cutter": {
            "small": Target(role="$END", prompt="Done."),
            "large": Target(role="rest", prompt="The rest."),
        },
        "rest": {"small": Target(role="$END", prompt="Done.")},
    }
    workflow = Workflow(
        version=1,
        name="split",
        description="Split",
        roles={"cutter": cut, "rest": again},
        graph=graph,
    )
    thread = start(ledger, tmp_path, workflow)
    depths: list[int] = []

    def act(request: AgentRequest) -> str:
        depths.append(record_of(ledger, request.thread).start.depth)
        is_deep = depths[-1] == 2
        return reply("small", what="a piece") if is_deep else reply("large")

    engine = make_engine(ledger, choose=lambda *_: ActingAgent(act=act))

    report = exec_thread(engine, thread, count=None)

    assert (report.status, depths) == ("end", [0, 1, 2])
    assert dict(record_of(ledger, thread).steps()[-1].output) == {
        "$status": "small",
        "what": "a piece",
    }
    (made,) = children_of(ledger, thread)
    assert record_of(ledger, made).start.workflow == (
        record_of(ledger, thread).start.workflow
    )
    for each in (thread, made, *children_of(ledger, made)):
        check_thread(ledger.store, each)


def test_what_a_child_waits_for_by_the_clock_is_handed_up(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = start(ledger, tmp_path, parent(), child())
    said = {"preparer": READY, "coder": CODED, "tester": TESTED, "sender": SENT}
    ends = 1_900_000_000_000
    limit = Failure(phase="limit", message="limit reached", retry_at_ms=ends)

    def act(request: AgentRequest) -> AgentReply:
        if request.role == "coder" and request.now_ms() < ends:
            return AgentReply(text="", failure=limit)
        return AgentReply(text=said[request.role])

    engine = make_engine(ledger, choose=lambda *_: ActingAgent(act=act))
    stopped = exec_thread(engine, thread, count=None)
    state = state_of(ledger.store, thread)
    (made,) = children_of(ledger, thread)
    later = make_engine(_at(ledger, ends + 1), choose=lambda *_: ActingAgent(act=act))
    rest = exec_thread(later, thread, count=None)

    assert stopped.end == "agent-failed"
    assert (state.status, state.retry_at_ms) == ("suspended", ends)
    assert state_of(ledger.store, made).status == "end"
    assert rest.status == "end"
    assert children_of(ledger, thread) == [made]
    check_thread(ledger.store, thread)
    check_thread(ledger.store, made)


def _at(ledger: Ledger, now_ms: int) -> Ledger:
    return replace(ledger, now_ms=lambda: now_ms)


@pytest.mark.parametrize("is_parent", [True, False], ids=["parent", "child"])
def test_a_poke_and_a_resume_leave_no_second_child(
    ledger: Ledger, tmp_path: Path, *, is_parent: bool
) -> None:
    """Whoever goes on with a waiting child, its parent takes what it ended with."""
    play = play_of(ledger, tmp_path, tester=[suspend("Which?"), TESTED, BETTER])
    play.go()
    (made,) = children_of(ledger, play.thread)
    if not is_parent:
        resume_thread(play.engine, made, note="The first, told to the child")
        assert state_of(ledger.store, made).status == "end"

    resumed = play.resume("The first")
    poked = poke_thread(play.engine, play.thread, note="Greener")
    rest = play.go()

    assert (resumed.end, poked.end, rest.status) == ("done", "done", "end")
    assert children_of(ledger, play.thread) == [made]
    assert names(ledger.store, play.thread)[-1] == "step"
    check_thread(ledger.store, play.thread)
    check_thread(ledger.store, made)


def test_the_steps_of_a_child_count_for_its_parents_limit(
    ledger: Ledger, tmp_path: Path
) -> None:
    play = play_of(ledger, tmp_path)
    three = Settings(limits=Limits(max_steps=3))
    engine = make_engine(ledger, choose=play.engine.choose, settings=three)

    first = exec_thread(engine, play.thread, count=None)
    rest = exec_thread(engine, play.thread, count=None)

    assert (first.end, rest.status) == ("refused", "end")
    check_thread(ledger.store, play.thread)
