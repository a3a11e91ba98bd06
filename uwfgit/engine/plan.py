"""Which role comes next, with what prompt, and what a step leads to (pure).

The base prompt of a step is a function of the pinned workflow and of the
steps before it; verify runs the same functions over recorded outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from uwfgit.constants import END, NEW, RESUME, START, STATUS, SUSPEND
from uwfgit.engine.moderator import Routed, RoutingError, route
from uwfgit.model.append import Outcome
from uwfgit.model.record import Step
from uwfgit.model.workflow import Workflow
from uwfgit.store.canonical import Json


def base_prompt(
    workflow: Workflow, newest_first: Iterable[Step], *, task: str, thread: str
) -> Routed | RoutingError:
    """Give role, prompt and location of the step that follows a chain.

    Args:
        workflow: What the thread pins.
        newest_first: The steps before, newest first; read only as far as the
            newest that is no ``$SUSPEND``.
        task: The thread's prompt.
        thread: The thread of the event.
    """
    last = next((step for step in newest_first if step.status != SUSPEND), None)
    if last is None:
        injected = _injected("", task=task, thread=thread)
        return route(workflow.graph, START, {STATUS: NEW}, injected=injected)
    injected = _injected(last.body, task=task, thread=thread)
    routed = route(workflow.graph, last.role, last.output, injected=injected)
    if isinstance(routed, Routed) and routed.role == END:
        return route(workflow.graph, START, {STATUS: RESUME}, injected=injected)
    return routed


def outcome_of(
    workflow: Workflow,
    role: str,
    output: Mapping[str, Json],
    body: str,
    *,
    task: str,
    thread: str,
) -> Outcome:
    """Give the state a thread is in after a step."""
    if output.get(STATUS) == SUSPEND:
        return Outcome(
            status="suspended",
            suspended_role=role,
            suspend_message=str(output.get("reason", "")),
        )
    injected = _injected(body, task=task, thread=thread)
    routed = route(workflow.graph, role, output, injected=injected)
    if isinstance(routed, RoutingError):
        return Outcome(
            status="suspended", suspended_role=role, suspend_message=routed.code
        )
    if routed.role == END:
        return Outcome(status="end", next=END)
    return Outcome(status="idle", current_role=routed.role, next=routed.role)


def is_routing_error(suspend_message: str | None) -> bool:
    """Tell whether a thread waits because its graph gave no next role."""
    return suspend_message is not None and suspend_message.startswith("routing: ")


def _injected(body: str, *, task: str, thread: str) -> dict[str, str]:
    return {"_body": body.strip(), "_prompt": task, "_thread": thread}
