from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.builders import make_workflow
from uwfgit.engine.decide.conditions import is_installed
from uwfgit.engine.simulate.simulate import (
    THREAD,
    Asked,
    Refused,
    Said,
    Silent,
    SimulatedAnswer,
    SimulatedStep,
    Simulation,
    simulate,
)
from uwfgit.errors import Problem
from uwfgit.model.workflow.workflow import Choice, Target, Workflow
from uwfgit.store.canonical import Json

Answers = Callable[[Asked], SimulatedAnswer]


def said(status: str, body: str = "", **fields: Json) -> Said:
    return Said(output={"$status": status, **fields}, body=body)


def saying(*answers: SimulatedAnswer) -> Answers:
    ahead = iter(answers)
    return lambda _: next(ahead, Silent(reason="no more"))


def run(
    *answers: SimulatedAnswer, workflow: Workflow | None = None, max_steps: int = 20
) -> Simulation:
    return simulate(
        workflow or make_workflow(),
        task="the task",
        answer=saying(*answers),
        max_steps=max_steps,
    )


def seen(found: Simulation) -> list[tuple[int, str, str | None, str]]:
    return [(step.number, step.role, step.status, step.prompt) for step in found.steps]


def test_it_goes_as_a_thread_would() -> None:
    found = run(
        said("done", plan="x"),
        said("bad", reason="slow"),
        said("done", plan="y"),
        said("good"),
    )

    assert seen(found) == [
        (1, "worker", "done", "Begin: the task"),
        (2, "critic", "bad", "Judge x."),
        (3, "worker", "done", "Fix it: slow"),
        (4, "critic", "good", "Judge y."),
        (5, "$END", None, "Over."),
    ]
    assert (found.status, found.message) == ("end", None)


def test_where_nobody_answers_it_stops() -> None:
    found = run(said("done", plan="x"))

    assert [step.status for step in found.steps] == ["done", None]
    assert (found.status, found.message) == ("idle", "no more")


def test_a_role_that_asks_for_a_person_is_asked_again() -> None:
    found = run(said("$SUSPEND", reason="?"), said("done", plan="x"))

    assert [(s.role, s.status) for s in found.steps[:2]] == [
        ("worker", "$SUSPEND"),
        ("worker", "done"),
    ]
    assert found.steps[0].prompt == found.steps[1].prompt


def test_a_refused_answer_takes_no_number() -> None:
    problem = Problem(code="reply-field", message="is missing", path="plan")
    found = run(Refused(problems=(problem,)), said("done", plan="x"))

    assert [(s.number, s.status) for s in found.steps[:2]] == [
        (1, "error"),
        (1, "done"),
    ]
    assert found.steps[0].problems == (problem,)


def test_an_answer_without_an_edge_ends_it_as_suspended() -> None:
    found = run(said("lost"))

    assert found.status == "suspended"
    assert found.message == "routing: no-edge worker lost"


def test_a_first_prompt_that_is_blank_ends_it_at_once() -> None:
    graph = {
        **make_workflow().graph,
        "$START": {"new": Target(role="worker", prompt="{{nothing}}")},
    }

    found = run(workflow=make_workflow(graph=graph))

    assert (found.steps, found.status) == ((), "suspended")
    assert "renders blank" in (found.message or "")


def test_a_loop_is_bounded() -> None:
    answers = [said("done", plan="x"), said("bad", reason="y")] * 10

    found = run(*answers, max_steps=6)

    assert len(found.steps) == 6
    assert found.message == "stopped after 6 steps"


def test_what_had_no_value_is_told_and_the_folder() -> None:
    graph = {
        **make_workflow().graph,
        "worker": {
            "done": Target(
                role="critic",
                prompt="{{_body}} {{lost}} {{_thread}}",
                location="{{plan}}",
            )
        },
    }

    found = run(said("done", " text ", plan="a/b"), workflow=make_workflow(graph=graph))

    second = found.steps[1]
    assert second.prompt == f"text  {THREAD}"
    assert (second.missing, second.location) == (("lost",), "a/b")


@pytest.mark.skipif(not is_installed(), reason="the extra jsonata is not installed")
def test_conditions_are_evaluated_over_the_answers() -> None:
    graph = {
        **make_workflow().graph,
        "critic": (
            Choice(role="worker", prompt="Again.", when="$count(steps) < 3"),
            Choice(role="$END", prompt="Enough: {{reason}}"),
        ),
    }
    bad = said("bad", reason="slow")
    done = said("done", plan="x")

    found = run(done, bad, done, bad, workflow=make_workflow(graph=graph))

    assert [step.prompt for step in found.steps][2:] == [
        "Again.",
        "Judge x.",
        "Enough: slow",
    ]
    assert found.status == "end"


def test_prompts_are_told_before_their_answers() -> None:
    told: list[str] = []

    def answer(asked: Asked) -> SimulatedAnswer:
        told.append(f"asked {asked.role} {asked.of_role} {asked.of_all}")
        return said("done", plan="x") if asked.role == "worker" else said("good")

    def tell(word: str) -> Callable[[SimulatedStep], None]:
        return lambda step: told.append(f"{word} {step.role}")

    simulate(
        make_workflow(),
        task="x",
        answer=answer,
        max_steps=9,
        on_prompt=tell("prompt"),
        on_step=tell("step"),
    )

    assert told == [
        "prompt worker",
        "asked worker 0 0",
        "step worker",
        "prompt critic",
        "asked critic 0 1",
        "step critic",
        "prompt $END",
        "step $END",
    ]
