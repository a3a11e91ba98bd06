"""Which role comes next, with what prompt, and what a step leads to.

The base prompt of a step is a function of the pinned workflow and of the
steps before it; verify runs the same functions over recorded outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from msgspec.structs import replace

from uwfgit.constants import (
    END,
    INPUTS,
    NEW,
    RESUME,
    RULES_VERSION,
    START,
    STATUS,
    SUSPEND,
)
from uwfgit.engine.decide.conditions import make_evaluator
from uwfgit.engine.decide.moderator import Routed, RoutingError, route
from uwfgit.model.node import START_TYPE, make_node
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.state import StepOutcome
from uwfgit.model.thread.step import Start, Step, read_start, read_step
from uwfgit.model.workflow.workflow import Workflow, workflow_nodes
from uwfgit.store.canonical import Json

if TYPE_CHECKING:
    # What only looks ahead needs nothing of what records.
    from uwfgit.model.ledger.append import StepDraft


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
    follow = _router(
        workflow,
        last.body if last else "",
        () if last is None else chain((last,), steps),
        task=task,
        thread=thread,
        start=start,
        inputs=inputs,
    )
    if last is None:
        return follow(START, {STATUS: NEW})
    routed = follow(last.role, last.output)
    if isinstance(routed, Routed) and routed.role == END:
        return follow(START, {STATUS: RESUME})
    return routed


def _router(
    workflow: Workflow,
    body: str,
    newest_first: Iterable[Step],
    *,
    task: str,
    thread: str,
    start: Start | None,
    inputs: Mapping[str, Json] | None,
) -> Callable[[str, Mapping[str, Json]], Routed | RoutingError]:
    """Return what routes from a role and its output, with all that these see."""
    values = start.values if start is not None else inputs
    evaluate = None
    if workflow.has_lists:
        evaluate = make_evaluator(
            newest_first, task=task, thread=thread, start=start, inputs=values
        )
    injected = injected_values(body, task=task, thread=thread, inputs=values)
    return partial(route, workflow.graph, injected=injected, evaluate=evaluate)


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
    follow = _router(
        workflow,
        body,
        newest_first,
        task=task,
        thread=thread,
        start=start,
        inputs=inputs,
    )
    routed = follow(role, output)
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


def first_prompt(
    workflow: Workflow,
    start: Mapping[str, Json],
    *,
    thread: str,
    inputs: Mapping[str, Json] | None = None,
) -> Routed | RoutingError:
    """Return role, prompt and location of a thread's first step.

    Args:
        workflow: What the thread will pin.
        start: Its StartNode's payload, as far as the caller chooses it.
        thread: Its id.
        inputs: What the run is given.

    Raises:
        ConfigError: There are conditions, which cannot be evaluated here.
    """
    return base_prompt(
        workflow,
        (),
        task=start["prompt"],
        thread=thread,
        start=_first_start(workflow, start, inputs),
        inputs=inputs,
    )


def _first_start(
    workflow: Workflow, start: Mapping[str, Json], inputs: Mapping[str, Json] | None
) -> Start | None:
    """Return what conditions of ``$START`` see of a StartNode that is not made yet."""
    if not isinstance(workflow.graph.get(START), tuple):
        return None
    pinned = workflow_nodes(workflow)[-1].hash
    node = make_node(START_TYPE, {**start, "workflow": pinned, "rules": RULES_VERSION})
    return replace(read_start(node), values=inputs)


def next_prompt(record: Record, *, skip: int = 0) -> Routed | RoutingError:
    """Return role, prompt and location of a thread's next step.

    Args:
        record: The thread.
        skip: So many of its newest steps do not count.

    Raises:
        ConfigError: There are conditions, which cannot be evaluated here.
    """
    return base_prompt(
        record.workflow,
        islice(record.iter_steps(), skip, None),
        task=record.start.prompt,
        thread=record.tip.thread,
        start=record.start,
    )


def find_detour(record: Record) -> str | None:
    """Say why no resume can run a suspended thread, and what goes on with it.

    ``None`` where its graph gives a next role. Told from the record: a person's
    answer may be due to a message that reads like a routing error, and after a
    failed poke the message is the agent's.

    Raises:
        ConfigError: There are conditions, which cannot be evaluated here.
    """
    state = record.tip.state
    if state.status != "suspended":
        return None
    routed = next_prompt(record)
    if not isinstance(routed, RoutingError):
        return None
    # A fork at its end would wait just the same.
    return (
        f"{routed.message}; have the step done again: "
        f"uwf thread poke {state.thread} -p TEXT; or branch off before it: "
        f"uwf thread fork {state.thread} --at {max(state.steps - 1, 0)}"
    )


def outcome_with(record: Record, draft: StepDraft, *, replaces: bool) -> StepOutcome:
    """Return the state a thread will be in with one step more.

    Args:
        record: The thread.
        draft: The step.
        replaces: Whether it takes the place of the newest.

    Raises:
        ConfigError: There are conditions, which cannot be evaluated here.
    """
    steps: Iterable[Step] = ()
    if record.workflow.has_lists:
        steps = _chain_with(record, draft, replaces=replaces)
    return outcome_of(
        record.workflow,
        draft.role,
        draft.output,
        draft.body,
        task=record.start.prompt,
        thread=record.tip.thread,
        start=record.start,
        newest_first=steps,
    )


def _chain_with(record: Record, draft: StepDraft, *, replaces: bool) -> Iterator[Step]:
    """Yield the steps as they will be with this one, newest first."""
    from uwfgit.model.ledger.append import StepPlace, step_nodes  # noqa: PLC0415 - for conditions alone

    place = StepPlace.of(record, draft.role, replaces=replaces)
    output, _, node = step_nodes(record, draft, place)
    yield read_step(node, place.number, output.payload)
    yield from islice(record.iter_steps(), 1 if replaces else 0, None)
