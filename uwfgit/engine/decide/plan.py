"""Which role comes next, with what prompt, and what a step leads to (pure).

The base prompt of a step is a function of the pinned workflow and of the
steps before it; verify runs the same functions over recorded outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from uwfgit.constants import END, INPUTS, NEW, RESUME, START, STATUS, SUSPEND
from uwfgit.engine.decide.conditions import make_evaluator
from uwfgit.engine.decide.moderator import Routed, RoutingError, route
from uwfgit.model.thread.record import Start
from uwfgit.model.thread.state import StepOutcome
from uwfgit.model.thread.step import Step
from uwfgit.model.workflow.workflow import Workflow
from uwfgit.store.canonical import Json


def base_prompt(
    workflow: Workflow,
    newest_first: Iterable[Step],
    *,
    task: str,
    thread: str,
    start: Start | None = None,
    inputs: Mapping[str, Json] | None = None,
) -> Routed | RoutingError:
    """Return role, prompt and location of the step that follows a chain.

    Args:
        workflow: What the thread pins.
        newest_first: The steps before, newest first; read only as far as the
            newest that is no ``$SUSPEND``, and all of them where the edges
            have conditions.
        task: The thread's prompt.
        thread: The thread of the event.
        start: The thread's StartNode, for its inputs and conditions.
        inputs: What the run is given, where there is no StartNode.

    Raises:
        ConfigError: There are conditions, which cannot be evaluated here.
    """
    steps = iter(newest_first)
    last = next((step for step in steps if step.status != SUSPEND), None)
    values = start.values if start is not None else inputs
    injected = injected_values(
        last.body if last else "", task=task, thread=thread, inputs=values
    )
    evaluate = make_evaluator(
        () if last is None else chain((last,), steps),
        task=task,
        thread=thread,
        start=start,
        inputs=values,
    )

    def go(role: str, output: Mapping[str, Json]) -> Routed | RoutingError:
        return route(workflow.graph, role, output, injected=injected, evaluate=evaluate)

    if last is None:
        return go(START, {STATUS: NEW})
    routed = go(last.role, last.output)
    if isinstance(routed, Routed) and routed.role == END:
        return go(START, {STATUS: RESUME})
    return routed


def outcome_of(
    workflow: Workflow,
    role: str,
    output: Mapping[str, Json],
    body: str,
    *,
    task: str,
    thread: str,
    start: Start | None = None,
    newest_first: Iterable[Step] = (),
    inputs: Mapping[str, Json] | None = None,
) -> StepOutcome:
    """Return the state a thread is in after a step.

    Args:
        inputs: What the run is given, where there is no StartNode.
        newest_first: The steps, this one first; read only where its edges have
            conditions.

    Raises:
        ConfigError: There are conditions, which cannot be evaluated here.
    """
    if output.get(STATUS) == SUSPEND:
        return StepOutcome(
            status="suspended",
            suspended_role=role,
            suspend_message=str(output.get("reason", "")),
        )
    values = start.values if start is not None else inputs
    evaluate = make_evaluator(
        newest_first, task=task, thread=thread, start=start, inputs=values
    )
    injected = injected_values(body, task=task, thread=thread, inputs=values)
    routed = route(workflow.graph, role, output, injected=injected, evaluate=evaluate)
    if isinstance(routed, RoutingError):
        return StepOutcome(
            status="suspended", suspended_role=role, suspend_message=routed.code
        )
    if routed.role == END:
        return StepOutcome(status="end", next=END)
    return StepOutcome(status="idle", current_role=routed.role, next=routed.role)


def is_routing_error(suspend_message: str | None) -> bool:
    """Whether a thread waits because its graph gave no next role."""
    return suspend_message is not None and suspend_message.startswith("routing: ")


def injected_values(
    body: str,
    *,
    task: str,
    thread: str,
    inputs: Mapping[str, Json] | None = None,
) -> dict[str, Json]:
    """Return the values the engine adds to a role's output, for templates."""
    values: dict[str, Json] = {
        "_body": body.strip(),
        "_prompt": task,
        "_thread": thread,
    }
    return values if inputs is None else {**values, INPUTS: dict(inputs)}
