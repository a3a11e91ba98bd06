"""Which role comes next, with what prompt; the only place that decides (pure).

The base prompt of a step is a function of the pinned workflow and of the steps
before it, and so is the state that a step leads to; verify runs the same functions
over recorded outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

from uwfgit.constants import (
    END,
    INPUTS,
    NEW,
    RESUME,
    START,
    STATUS,
    SUSPEND,
)
from uwfgit.engine.decide.conditions import (
    Evaluate,
    Fault,
    make_evaluator,
    missing_extra,
)
from uwfgit.model.template.render import TemplateError, render
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.state import StepOutcome
from uwfgit.model.thread.step import Start, Step
from uwfgit.model.workflow.workflow import (
    Choice,
    Edges,
    Target,
    Workflow,
)
from uwfgit.store.canonical import Json

if TYPE_CHECKING:
    # What only looks ahead needs nothing of what records.
    from uwfgit.model.ledger.append import StepDraft

RESUME_PROMPT: Final = "Review the previous run and continue."
"""What ``$START``'s ``new`` role is told where a workflow lacks ``resume``."""

_TEMPLATE_CHARS: Final = 200

RoutingKind: TypeAlias = Literal["no-status", "no-node", "no-edge", "no-match", "blank"]


class Routed(Struct, frozen=True, kw_only=True):
    """Where a thread goes: the role, its rendered prompt and folder.

    ``missing`` names the variables that rendered empty, for a warning.
    """

    role: str
    prompt: str
    location: str | None
    missing: tuple[str, ...] = ()


class RoutingError(Struct, frozen=True, kw_only=True):
    """Why there is no next role; a value, since a thread records it."""

    kind: RoutingKind
    role: str
    status: str | None
    message: str

    @property
    def code(self) -> str:
        """The suspend message of a thread that stopped so; part of the format."""
        return f"routing: {self.kind} {self.role} {self.status or '-'}"


def route(
    graph: Mapping[str, Edges],
    last_role: str,
    last_output: Mapping[str, Json],
    *,
    injected: Mapping[str, Json],
    evaluate: Evaluate | None = None,
) -> Routed | RoutingError:
    """Pick the edge for what a role reported, and render its prompt.

    A StartNode counts as role ``$START`` with ``$status`` ``new`` or
    ``resume``. ``$END`` is a target like any other.

    Args:
        graph: The workflow's graph.
        last_role: The role whose output decides.
        last_output: Its output; the templates' values.
        injected: Values of the engine, which win over fields of one name.
        evaluate: Evaluates conditions; asked only where a list has some.

    Raises:
        ConfigError: The role's edges have conditions and there is no
            ``evaluate``.
    """
    said = last_output.get(STATUS)
    status = said if isinstance(said, str) and said else None
    target = _find_target(graph, last_role, status, evaluate)
    if isinstance(target, RoutingError):
        return target
    values = {**last_output, **injected}
    try:
        prompt = render(target.prompt, values)
        location = render(target.location or "", values)
    except TemplateError as exc:
        # Checked when the workflow was read, so this is a rendering too large.
        return _refuse_prompt(
            target, last_role, status, f": {exc}: {_one_line(target.prompt)}"
        )
    if not prompt.text.strip():
        return _refuse_prompt(
            target, last_role, status, f" renders blank: '{_one_line(target.prompt)}'"
        )
    return Routed(
        role=target.role,
        prompt=prompt.text,
        location=location.text if location.text.strip() else None,
        missing=tuple(dict.fromkeys((*prompt.missing, *location.missing))),
    )


def _find_target(
    graph: Mapping[str, Edges],
    role: str,
    status: str | None,
    evaluate: Evaluate | None,
) -> Target | RoutingError:
    edges = graph.get(role)
    if isinstance(edges, tuple):
        return _choose(edges, role, status, evaluate)
    if status is None:
        return _refuse("no-status", role, status, f"role '{role}' gave no $status")
    if edges is None:
        return _refuse("no-node", role, status, f"role '{role}' has no edges")
    target, new = edges.get(status), edges.get(NEW)
    if target is None and (role, status) == (START, RESUME) and new is not None:
        return Target(role=new.role, prompt=RESUME_PROMPT, location=new.location)
    if target is None:
        known = ", ".join(f"'{name}'" for name in edges)
        message = f"role '{role}' has no edge for '{status}' (it has {known or 'none'})"
        return _refuse("no-edge", role, status, message)
    return target


def _choose(
    targets: tuple[Choice, ...],
    role: str,
    status: str | None,
    evaluate: Evaluate | None,
) -> Target | RoutingError:
    for target in targets:
        if target.when is None:
            return target
        if evaluate is None:
            raise missing_extra()
        holds = evaluate(target.when)
        if isinstance(holds, Fault):
            shown = _one_line(target.when)
            message = f"condition '{shown}' of role '{role}' fails: {holds.message}"
            return _refuse("no-match", role, status, message)
        if holds:
            return target
    tried = "; ".join(_one_line(target.when or "") for target in targets)
    message = f"role '{role}' has no edge that matches ({tried or 'it has none'})"
    return _refuse("no-match", role, status, message)


def _one_line(expression: str) -> str:
    return " ".join(expression.split())[:_TEMPLATE_CHARS]


def _refuse_prompt(
    target: Target, role: str, status: str | None, why: str
) -> RoutingError:
    on = f" on '{status}'" if status is not None else ""
    where = f"the prompt of role '{role}'{on} to '{target.role}'"
    return _refuse("blank", role, status, f"{where}{why}")


def _refuse(
    kind: RoutingKind, role: str, status: str | None, message: str
) -> RoutingError:
    return RoutingError(kind=kind, role=role, status=status, message=message)


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
    follow = make_router(
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


def make_router(
    workflow: Workflow,
    body: str,
    newest_first: Iterable[Step],
    *,
    task: str,
    thread: str,
    start: Start | None = None,
    inputs: Mapping[str, Json] | None = None,
) -> Callable[[str, Mapping[str, Json]], Routed | RoutingError]:
    """Return what routes from a role and its output, with all that these see.

    Args:
        workflow: What the thread pins.
        body: What the role wrote below its output.
        newest_first: The steps, its own first; read only where its edges have
            conditions.
        task: The thread's prompt.
        thread: The thread of the event.
        start: The thread's StartNode, for its inputs and conditions.
        inputs: What the run is given, where there is no StartNode.
    """
    values = start.values if start is not None else inputs
    evaluate = None
    if workflow.has_lists:
        evaluate = make_evaluator(
            newest_first, task=task, thread=thread, start=start, inputs=values
        )
    injected: dict[str, Json] = {
        "_body": body.strip(),
        "_prompt": task,
        "_thread": thread,
        **({} if values is None else {INPUTS: dict(values)}),
    }
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
    follow = make_router(
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
    from uwfgit.model.ledger.append import StepPlace, make_step  # noqa: PLC0415 - for conditions alone

    place = StepPlace.of(record, draft.role, replaces=replaces)
    step, _ = make_step(record, draft, place)
    yield step
    yield from islice(record.iter_steps(), 1 if replaces else 0, None)
