"""What follows in a recorded thread, by the rules of ``engine.decide.plan``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from msgspec.structs import replace

from uwfgit.constants import RULES_VERSION, START
from uwfgit.engine.decide.moderator import Routed, RoutingError
from uwfgit.engine.decide.plan import base_prompt, outcome_of
from uwfgit.ids import Hash
from uwfgit.model.ledger.draft import StepDraft, StepPlace, step_nodes
from uwfgit.model.thread.record import Record, Start, start_from_payload
from uwfgit.model.thread.state import StepOutcome
from uwfgit.model.thread.step import Step, read_step
from uwfgit.model.workflow.workflow import Workflow, workflow_nodes
from uwfgit.store.canonical import Json


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
    made = start_from_payload(
        Hash(""), {**start, "workflow": pinned, "rules": RULES_VERSION}
    )
    return replace(made, values=inputs)


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
    return outcome_of(
        record.workflow,
        draft.role,
        draft.output,
        draft.body,
        task=record.start.prompt,
        thread=record.tip.thread,
        start=record.start,
        newest_first=_chain_with(record, draft, replaces=replaces),
    )


def _chain_with(record: Record, draft: StepDraft, *, replaces: bool) -> Iterator[Step]:
    """Yield the steps as they will be with this one, newest first."""
    place = StepPlace.of(record, draft.role, replaces=replaces)
    output, _, node = step_nodes(record, draft, place)
    yield read_step(node, place.number, output.payload)
    yield from islice(record.iter_steps(), 1 if replaces else 0, None)
