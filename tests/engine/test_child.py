"""Roles that workflows do: a child's whole life, seen from its parent."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import fields

from tests.acting import ActingAgent, put, suspend
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
from uwfgit.agents.base import AgentReply, AgentRequest
from uwfgit.config import Limits, Settings
from uwfgit.engine.run.executor import exec_thread
from uwfgit.engine.run.thread import cancel_thread, fork_thread
from uwfgit.errors import StateError
from uwfgit.model.ledger.append import StepDraft, append_step
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.ledger.prices import Cost, thread_cost
from uwfgit.model.node import Node, make_text
from uwfgit.model.thread.links import LinkRule
from uwfgit.model.thread.state import StepOutcome
from uwfgit.model.thread.step import Child, StartedFor, StepFields, Usage
from uwfgit.model.thread.tip import load_tip

GOOD: Final[dict[str, Any]] = {
    "preparer": [reply("ready", body="It is ready.")],
    "coder": [reply("coded", what="code"), reply("coded", what="more code")],
    "tester": [
        reply("built", body="All green.", what="a tool"),
        reply("built", body="Greener.", what="a better tool"),
    ],
    "sender": [reply("sent")],
}


@pytest.fixture
def play(ledger: Ledger, tmp_path: Path) -> Play:
    return Play(ledger, tmp_path, start(ledger, tmp_path, parent(), child()), GOOD)


def test_a_child_does_a_role_and_its_last_answer_is_the_roles(
    ledger: Ledger, play: Play
) -> None:
    report = play.go()

    (made,) = children_of(ledger, play.thread)
    tip = load_tip(ledger.store, made)
    step = record_of(ledger, play.thread).steps()[1]
    assert (report.end, report.status, report.ran) == ("done", "end", 5)
    assert dict(step.output) == {"$status": "built", "what": "a tool"}
    assert step.body == "All green."
    assert step.child is not None
    assert (step.child.thread, step.child.oid) == (made, tip.commit)
    assert (step.agent, step.extracted_by) == ("develop", None)
    assert tip.state.status == "end"
    check_thread(ledger.store, play.thread)
    check_thread(ledger.store, made)


def test_a_child_is_started_with_what_its_parent_pins(
    ledger: Ledger, play: Play
) -> None:
    play.go()

    parent_record = record_of(ledger, play.thread)
    (made,) = children_of(ledger, play.thread)
    record = record_of(ledger, made)
    head = parent_record.steps()[0].hash
    assert record.start.workflow == parent_record.start.children["develop"]
    parent = StartedFor(thread=play.thread, step=head)
    assert (record.start.depth, record.start.parent) == (1, parent)
    assert record.start.prompt == "After preparer: It is ready."
    assert record.workflow == child()


def test_a_child_that_asks_lets_its_parent_ask_and_the_answer_goes_down(
    ledger: Ledger, tmp_path: Path
) -> None:
    replies = {**GOOD, "tester": [suspend("Which one?"), *GOOD["tester"]]}
    play = Play(ledger, tmp_path, start(ledger, tmp_path, parent(), child()), replies)

    asked = play.go()
    (made,) = children_of(ledger, play.thread)
    waits = state_of(ledger.store, play.thread)
    answered = play.resume("The first")

    assert asked.end == "waiting"
    assert waits.suspend_message == f"child {made}: Which one?"
    assert answered.end == "done"
    assert children_of(ledger, play.thread) == [made]
    steps = record_of(ledger, play.thread).steps()
    assert [step.status for step in steps] == ["ready", "$SUSPEND", "built"]
    assert record_of(ledger, made).steps()[-1].note == "The first"
    assert steps[2].note == "The first"
    check_thread(ledger.store, play.thread)


def test_a_child_whose_agent_fails_is_a_failed_try_of_its_parent(
    ledger: Ledger, tmp_path: Path
) -> None:
    replies = {**GOOD, "coder": ["no block", "no block", *GOOD["coder"]]}
    play = Play(ledger, tmp_path, start(ledger, tmp_path, parent(), child()), replies)

    failed = play.go()
    (made,) = children_of(ledger, play.thread)
    play.resume()
    rest = play.resume()

    assert failed.end == "agent-failed"
    assert failed.problem is not None
    assert failed.problem.startswith(f"child {made}: ")
    assert rest.end == "done"
    assert children_of(ledger, play.thread) == [made]
    assert names(ledger.store, play.thread) == [
        *("start", "step", "attempt", "attempt", "resume")
    ]
    check_thread(ledger.store, play.thread)


def test_what_does_not_fit_the_role_is_a_failed_try_that_names_both(
    ledger: Ledger, tmp_path: Path
) -> None:
    strict = variant("built", ["url"], url={"type": "string"})
    workflow = line("deliver", ("builder", by("develop", strict), "built"))
    thread = start(ledger, tmp_path, workflow, child())
    play = Play(ledger, tmp_path, thread, GOOD)

    report = play.go()

    (made,) = children_of(ledger, thread)
    assert report.end == "agent-failed"
    assert report.problem is not None
    assert made in report.problem
    assert "role 'builder'" in report.problem
    assert state_of(ledger.store, thread).status == "suspended"
    check_thread(ledger.store, thread)


def test_a_cancelled_child_is_a_failed_try_and_the_next_is_a_new_one(
    ledger: Ledger, tmp_path: Path
) -> None:
    replies = {**GOOD, "tester": [suspend(), *GOOD["tester"]]}
    play = Play(ledger, tmp_path, start(ledger, tmp_path, parent(), child()), replies)
    play.go()
    (made,) = children_of(ledger, play.thread)
    cancel_thread(ledger, made, reason="No", command="test")

    failed = play.resume()
    again = play.resume()

    assert failed.problem == f"child {made} was cancelled"
    assert again.end == "waiting"
    assert len(children_of(ledger, play.thread)) == 2
    check_thread(ledger.store, play.thread)


def test_a_poke_lets_the_child_go_on_after_its_end(ledger: Ledger, play: Play) -> None:
    play.go(count=2)

    poked = play.poke("Better")

    (made,) = children_of(ledger, play.thread)
    step = record_of(ledger, play.thread).steps()[1]
    assert poked.end == "done"
    assert step.body == "Greener."
    assert step.child is not None
    assert step.child.thread == made
    assert record_of(ledger, made).steps()[2].note == "Better"
    check_thread(ledger.store, play.thread)


def test_a_child_that_nothing_names_goes_on(ledger: Ledger, play: Play) -> None:
    """What a parent left that was killed in the middle of its child."""
    play.go(count=1)
    few = Settings(limits=Limits(max_steps=2))
    stopped = exec_thread(
        make_engine(ledger, choose=play.engine.choose, settings=few),
        play.thread,
        count=None,
    )
    (made,) = children_of(ledger, play.thread)
    halfway = names(ledger.store, play.thread)

    rest = play.go()

    assert stopped.end == "refused"
    assert halfway == ["start", "step"]
    assert rest.status == "end"
    assert children_of(ledger, play.thread) == [made]
    check_thread(ledger.store, play.thread)


def test_a_child_that_ended_unseen_is_taken_as_it_is(
    ledger: Ledger, play: Play
) -> None:
    play.go(count=2)
    (made,) = children_of(ledger, play.thread)
    before = load_tip(ledger.store, made).commit
    fork = fork_thread(ledger, play.thread, at=1).thread

    # The fork is a thread of its own: the child is its origin's.
    other = Play.__new__(Play)
    other.ledger, other.thread, other.engine = ledger, fork, play.engine
    other.go(count=1)

    assert load_tip(ledger.store, made).commit == before
    assert len(children_of(ledger, fork)) == 1
    check_thread(ledger.store, fork)


def test_a_fork_forks_a_waiting_child_when_it_first_resumes_it(
    ledger: Ledger, tmp_path: Path
) -> None:
    replies = {**GOOD, "tester": [suspend("Which?"), *GOOD["tester"]]}
    play = Play(ledger, tmp_path, start(ledger, tmp_path, parent(), child()), replies)
    play.go()
    (made,) = children_of(ledger, play.thread)
    waiting = load_tip(ledger.store, made).commit
    fork = fork_thread(ledger, play.thread).thread
    other = Play(ledger, tmp_path, fork, replies)

    report = other.resume("The second")

    step = record_of(ledger, fork).steps()[2]
    assert report.end == "done"
    assert step.child is not None
    assert step.child.thread != made
    assert load_tip(ledger.store, made).commit == waiting
    check_thread(ledger.store, fork)
    assert play.resume("The first").end == "done"
    check_thread(ledger.store, play.thread)


def test_three_levels_are_as_deep_as_threads_go(ledger: Ledger, tmp_path: Path) -> None:
    def level(number: int) -> Any:  # noqa: ANN401 - a workflow
        return line(f"l{number}", ("down", by(f"l{number + 1}", BUILT), "built"))

    deep = [level(1), level(2), line("l3", ("tester", make_role(BUILT), "built"))]
    thread = start(ledger, tmp_path, level(0), *deep)
    play = Play(ledger, tmp_path, thread, GOOD)
    deeper = [
        level(1),
        level(2),
        level(3),
        line("l4", ("t", make_role(BUILT), "built")),
    ]
    other = start(ledger, tmp_path, level(0), *deeper)

    report = play.go()
    with pytest.raises(StateError) as caught:
        exec_thread(play.engine, other, count=None)

    assert (report.status, report.ran) == ("end", 4)
    assert "limits.depth" in caught.value.message
    check_thread(ledger.store, thread)


def test_a_workflow_may_name_itself(ledger: Ledger, tmp_path: Path) -> None:
    role = by("again", BUILT)
    workflow = line("again", ("tester", role, "built"))
    thread = start(ledger, tmp_path, workflow)

    with pytest.raises(StateError) as caught:
        Play(ledger, tmp_path, thread, GOOD).go()

    assert "limits.depth" in caught.value.message
    assert record_of(ledger, thread).start.children == {}


def test_what_a_child_cost_is_its_parents(ledger: Ledger, play: Play) -> None:
    play.go()

    (made,) = children_of(ledger, play.thread)
    step = record_of(ledger, play.thread).steps()[1]
    assert step.usage == state_of(ledger.store, made).usage
    check_thread(ledger.store, play.thread)


def test_a_workflow_can_play_any_role_as_an_agent(
    ledger: Ledger, tmp_path: Path
) -> None:
    workflow = line("deliver", ("builder", make_role(BUILT), "built"))
    thread = start(ledger, tmp_path, workflow)
    plain = Play(ledger, tmp_path, thread, GOOD).engine

    def choose(flag: str | None, name: str, role: str) -> Any:  # noqa: ANN401 - an agent
        if role == "builder":
            return make_engine(ledger).choose(flag, name, role)
        return plain.choose(flag, name, role)

    engine = make_engine(ledger, choose=choose, find_workflow=lambda _: child())
    report = exec_thread(engine, thread, count=None, agent="workflow:develop")

    (made,) = children_of(ledger, thread)
    (step,) = record_of(ledger, thread).steps()
    assert report.status == "end"
    assert (step.agent, step.body) == ("develop", "All green.")
    assert record_of(ledger, thread).start.children == {}
    assert record_of(ledger, made).workflow == child()
    check_thread(ledger.store, thread)


def test_a_thread_without_children_is_as_before(ledger: Ledger, tmp_path: Path) -> None:
    record = record_of(ledger, begin(ledger, tmp_path).thread)

    assert (record.start.children, record.start.parent) == ({}, None)
    assert "children" not in record.node(record.tip.state.start).payload


def test_a_child_links_what_its_parent_has_and_names_and_no_other_threads_nodes(
    ledger: Ledger, tmp_path: Path
) -> None:
    """A reply of the parent's may not pull a private thread's nodes into the child."""
    plan, private = make_text("the plan"), make_text("private")
    other = begin(ledger, tmp_path).thread
    exec_thread(
        make_engine(ledger, choose=lambda *_: _putting(ledger, private)),
        other,
        count=1,
    )
    ready = variant("ready", ["plan"], plan=TEXT)
    graph = line(
        "deliver",
        ("preparer", make_role(ready), "ready"),
        ("builder", by("develop", BUILT), "built"),
    )
    thread = start(ledger, tmp_path, graph, child())
    naming = f"Do {plan.hash} and {private.hash}."
    said = {
        "preparer": reply("ready", body=naming, plan=plan.hash),
        "coder": reply("coded", what=private.hash),
        "tester": reply("built", what=plan.hash),
    }

    def act(request: AgentRequest) -> AgentReply:
        if request.role == "preparer":
            put(ledger, request, plan)
        return AgentReply(text=said[request.role])

    agent = ActingAgent(act=act)
    exec_thread(make_engine(ledger, choose=lambda *_: agent), thread, count=None)

    (made,) = children_of(ledger, thread)
    record = record_of(ledger, made)
    coded, built = record.steps()
    assert (plan.hash in record.places, private.hash in record.places) == (True, False)
    assert "links nothing" in str(coded.warnings)
    assert "links nothing" not in str(built.warnings)
    check_thread(ledger.store, thread)
    check_thread(ledger.store, made)


def _putting(ledger: Ledger, node: Node) -> ActingAgent:
    def act(request: AgentRequest) -> AgentReply:
        put(ledger, request, node)
        return AgentReply(text=reply(plan=node.hash))

    return ActingAgent(act=act)


def test_of_threads_that_each_did_a_step_of_the_other_each_costs_once(
    ledger: Ledger, play: Play
) -> None:
    play.go()
    (made,) = children_of(ledger, play.thread)
    record = record_of(ledger, made)
    step = record.steps()[-1]
    facts = {each.name: getattr(step, each.name) for each in fields(StepFields)}
    usage = Usage(
        turns=1, input_tokens=1, output_tokens=1, duration_ms=1, cost_usd=0.25
    )
    child = Child(thread=play.thread, oid=load_tip(ledger.store, play.thread).commit)
    for change in ({"usage": usage}, {"child": child}):
        append_step(
            ledger,
            record,
            StepDraft(
                **{**facts, **change},
                output=step.output,
                output_type=record.places[step.output_hash][0],
                detail=record.node(step.detail_hash).payload,
            ),
            event="step",
            outcome=StepOutcome(status="idle", current_role=step.role),
            rule=lambda: LinkRule(
                put=frozenset(), named=frozenset(), find=lambda _: None
            ),
        )

    costs = [thread_cost(record_of(ledger, each)) for each in (made, play.thread)]

    assert costs == [Cost(usd=0.25), Cost(usd=0.25)]
