from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from tests.builders import make_step, make_workflow
from uwfgit.engine.decide.moderator import RESUME_PROMPT, Routed, RoutingError
from uwfgit.engine.decide.plan import base_prompt, is_routing_error, outcome_of
from uwfgit.model.thread.state import StepOutcome
from uwfgit.model.thread.step import Step
from uwfgit.model.workflow.workflow import Choice, Target, Workflow
from uwfgit.store.canonical import Json

FLOW: Final = make_workflow(
    graph={
        "$START": {
            "new": Target(role="worker", prompt="Begin {{_thread}}: {{_prompt}}"),
            "resume": Target(role="critic", prompt="Again: {{_body}}|{{$status}}"),
        },
        "worker": {
            "done": Target(
                role="critic", prompt="Judge {{plan}}: {{_body}}", location="{{plan}}"
            ),
            "blank": Target(role="critic", prompt="{{nothing}} "),
        },
        "critic": {
            "good": Target(role="$END", prompt="Over."),
            "bad": Target(role="worker", prompt="Fix {{reason}}"),
        },
        "listed": (Choice(role="critic", prompt="Go on."),),
        "closed": (),
    }
)


def _step(role: str, body: str = "", **output: Json) -> Step:
    said = {key.replace("status", "$status"): item for key, item in output.items()}
    return make_step(role, body=body, output=said)


SUSPENDED: Final = _step("critic", status="$SUSPEND", reason="why?")


def _base(*newest_first: Step, flow: Workflow = FLOW) -> Routed | RoutingError:
    return base_prompt(flow, newest_first, task="the task", thread="T")


def test_a_thread_begins_with_new() -> None:
    assert _base() == Routed(role="worker", prompt="Begin T: the task", location=None)


def test_a_step_follows_the_newest_before_it() -> None:
    older = _step("critic", status="bad", reason="x")
    newest = _step("worker", "\n Did it. \n", status="done", plan="p")

    assert _base(newest, older) == Routed(
        role="critic", prompt="Judge p: Did it.", location="p"
    )


@pytest.mark.parametrize("count", [1, 2, 5])
def test_suspended_steps_are_passed_over(count: int) -> None:
    done = _step("worker", status="done", plan="p")

    assert _base(*[SUSPENDED] * count, done) == _base(done)


def test_with_only_suspended_steps_a_thread_begins_anew() -> None:
    assert _base(SUSPENDED, SUSPENDED) == _base()


def test_an_ended_thread_goes_on_with_resume_and_what_was_said_last() -> None:
    good = _step("critic", "Well done.", status="good")

    assert _base(good) == Routed(
        role="critic", prompt="Again: Well done.|resume", location=None
    )


def test_a_resumed_thread_that_waits_begins_with_resume_again() -> None:
    good = _step("critic", "Well done.", status="good")

    assert _base(SUSPENDED, good) == _base(good)


def test_without_resume_the_first_role_reviews() -> None:
    graph = {**FLOW.graph, "$START": {"new": Target(role="worker", prompt="x")}}

    found = _base(_step("critic", status="good"), flow=make_workflow(graph=graph))

    assert found == Routed(role="worker", prompt=RESUME_PROMPT, location=None)


def test_no_more_steps_are_read_than_needed() -> None:
    def steps() -> Iterator[Step]:
        yield SUSPENDED
        yield _step("worker", status="done", plan="p")
        pytest.fail("an older step was read")

    found = base_prompt(FLOW, steps(), task="t", thread="T")

    assert isinstance(found, Routed)


def test_an_injected_value_wins_over_a_field_of_its_name() -> None:
    flow = make_workflow(
        graph={"worker": {"done": Target(role="critic", prompt="{{_prompt}}")}}
    )

    found = _base(_step("worker", status="done", _prompt="forged"), flow=flow)

    assert isinstance(found, Routed)
    assert found.prompt == "the task"


def _outcome(role: str, output: Mapping[str, Json]) -> StepOutcome:
    return outcome_of(FLOW, role, output, "", task="the task", thread="T")


@pytest.mark.parametrize(
    ("role", "output", "expected"),
    [
        pytest.param(
            "worker",
            {"$status": "done", "plan": "p"},
            StepOutcome(status="idle", current_role="critic", next="critic"),
            id="a-role",
        ),
        pytest.param(
            "critic",
            {"$status": "good"},
            StepOutcome(status="end", next="$END"),
            id="the-end",
        ),
        pytest.param(
            "listed",
            {"x": 1},
            StepOutcome(status="idle", current_role="critic", next="critic"),
            id="a-list-without-status",
        ),
        pytest.param(
            "critic",
            {"$status": "$SUSPEND", "reason": "which?"},
            StepOutcome(
                status="suspended", suspended_role="critic", suspend_message="which?"
            ),
            id="a-person-is-asked",
        ),
        pytest.param(
            "unknown",
            {"$status": "$SUSPEND", "reason": "which?"},
            StepOutcome(
                status="suspended", suspended_role="unknown", suspend_message="which?"
            ),
            id="the-moderator-is-not-asked",
        ),
        *(
            pytest.param(
                role,
                output,
                StepOutcome(
                    status="suspended",
                    suspended_role=role,
                    suspend_message=f"routing: {code}",
                ),
                id=code.partition(" ")[0],
            )
            for role, output, code in (
                ("worker", {"x": 1}, "no-status worker -"),
                ("unknown", {"$status": "done"}, "no-node unknown done"),
                ("worker", {"$status": "lost"}, "no-edge worker lost"),
                ("closed", {"$status": "done"}, "no-match closed done"),
                ("worker", {"$status": "blank"}, "blank worker blank"),
            )
        ),
    ],
)
def test_a_step_leaves_the_thread_in_one_state(
    role: str, output: dict[str, Any], expected: StepOutcome
) -> None:
    assert _outcome(role, output) == expected


@pytest.mark.parametrize(
    ("message", "is_error"),
    [
        pytest.param(None, False, id="none"),
        pytest.param("which?", False, id="a-question"),
        pytest.param("routing: blank worker done", True, id="routing"),
    ],
)
def test_a_routing_error_is_told_by_its_message(
    message: str | None,
    is_error: bool,  # noqa: FBT001 - a table's column
) -> None:
    assert is_routing_error(message) is is_error
