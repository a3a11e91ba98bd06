"""Runs recorded: a step that counts, or a failed attempt at one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from uwfgit.constants import ERROR_STATUS, STATUS
from uwfgit.ids import Hash
from uwfgit.model.ledger.commit import (
    after_event,
    agent_person,
    committer,
    completed_at,
    event_person,
    write_event,
    writes_event,
)
from uwfgit.model.ledger.draft import (
    Changes,
    Place,
    StepDraft,
    count_entries,
    link_changes,
    next_run,
    output_changes,
    place_nodes,
    replace_changes,
    step_nodes,
)
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node.node import DETAIL_TYPE, ERROR_TYPE, HOLD_TYPE, Node, make_node
from uwfgit.model.node.places import NodePlaces
from uwfgit.model.thread.derive import find_hash_strings, find_hash_words
from uwfgit.model.thread.links import LinkRule, collect_links
from uwfgit.model.thread.message import (
    NONE,
    EventName,
    event_trailers,
    format_message,
    format_status,
)
from uwfgit.model.thread.record import Record, Tip, step_from_payload
from uwfgit.model.thread.state import (
    AGENT_EMAIL,
    Outcome,
    ThreadState,
    agent_label,
    hold_message,
    short_message,
)
from uwfgit.model.thread.usage import Usage, add_usage, usage_payload
from uwfgit.store.canonical import Json
from uwfgit.store.layout import ATTEMPTS, thread_folder
from uwfgit.store.objects import Person


@writes_event
def append_step(
    ledger: Ledger,
    record: Record,
    draft: StepDraft,
    *,
    event: EventName,
    outcome: Outcome,
    rule: LinkRule,
    is_last: bool = True,
) -> Tip:
    """Record a step and move the thread's head to it.

    Args:
        ledger: Where to.
        record: The thread; brought up to date.
        draft: What the cycle gave.
        event: ``step``, ``resume`` or ``poke``; a poke replaces the newest step.
        outcome: The state afterwards.
        rule: What the answer may link.
        is_last: Whether the command may end with it though the thread goes on.

    Raises:
        RefConflictError: The branch moved meanwhile. Nothing was recorded.
    """
    state = record.tip.state
    place = Place.of(record, draft.role, replaces=event == "poke")
    strings = find_hash_strings(draft.output)
    links = collect_links(
        record, rule, strings=strings, words=find_hash_words([draft.body])
    )
    draft = replace(draft, warnings=(*draft.warnings, *links.warnings))
    output, detail, node = step_nodes(record, draft, place)
    added, places = place_nodes(
        record, place.nodes, (output, detail, node, *links.nodes), own=node
    )
    changes = replace_changes(ledger, record, place) if event == "poke" else {}
    changes |= added
    changes |= output_changes(place.folder, draft)
    changes |= link_changes(record, place.folder, draft.output, places)
    state = replace(
        state,
        head=node.hash,
        steps=place.number,
        status=outcome.status,
        current_role=outcome.current_role,
        suspended_role=outcome.suspended_role,
        suspend_message=outcome.suspend_message
        and short_message(outcome.suspend_message),
        retry_at_ms=None,
    )
    state = _after_run(ledger, record, state, node, draft)
    tip = _commit_run(
        ledger,
        record,
        changes,
        state=state,
        draft=draft,
        node=node,
        places=places,
        event=event,
        next_role=outcome.next,
        is_last=is_last or outcome.status != "idle",
    )
    record.note_step(
        step_from_payload(node.hash, place.number, node.payload, output.payload)
    )
    return tip


@writes_event
def append_attempt(
    ledger: Ledger, record: Record, draft: StepDraft, *, of_poke: bool
) -> Hash:
    """Record a failed try; the head stays, the thread waits for a person.

    Args:
        ledger: Where to.
        record: The thread; brought up to date.
        draft: Its output is an error output, its body all the agent said.
        of_poke: Whether it was to replace the newest step; then the state
            stays as it was.

    Raises:
        RefConflictError: The branch moved meanwhile. Nothing was recorded.
    """
    place = Place.of(record, draft.role, replaces=of_poke)
    output, detail, node = step_nodes(record, draft, place)
    changes, places = place_nodes(record, place.nodes, (output, detail, node), own=node)
    tries = count_entries(record, f"{place.folder}/{ATTEMPTS}")
    folder = f"{place.folder}/{ATTEMPTS}/{tries + 1}"
    changes |= output_changes(folder, draft)
    state = record.tip.state
    if not of_poke:
        state = replace(
            state,
            status="suspended",
            current_role=None,
            suspended_role=draft.role,
            suspend_message=short_message(str(draft.output["error"])),
            retry_at_ms=draft.output.get("retryAtMs"),
        )
    state = _after_run(ledger, record, state, node, draft)
    _commit_run(
        ledger,
        record,
        changes,
        state=state,
        draft=draft,
        node=node,
        places=places,
        event="attempt",
        next_role=NONE,
    )
    return node.hash


@writes_event
def append_hold(
    ledger: Ledger,
    record: Record,
    *,
    reason: str,
    detail: Mapping[str, Json],
    usage: Usage | None,
    by: str,
) -> Tip:
    """Record that a supervisor stopped a thread; a person decides.

    Args:
        ledger: Where to.
        record: The thread, which is idle; brought up to date.
        reason: Why.
        detail: How that was found out.
        usage: What it cost.
        by: The model's or agent's label.

    Raises:
        SizeError: The thread has no room for it.
        RefConflictError: The branch moved meanwhile. Nothing was recorded.
    """
    tip = record.tip
    role = tip.state.current_role or NONE
    found = make_node(DETAIL_TYPE, dict(detail))
    hold = make_node(
        HOLD_TYPE,
        {"reason": reason, "detail": found.hash, "usage": usage_payload(usage)},
    )
    run = next_run(record, tip.state.steps + 1)
    changes, places = place_nodes(
        record, f"{thread_folder(tip.thread)}/{run}", (found, hold), own=hold
    )
    person = event_person(ledger, tip)
    state = replace(
        tip.state,
        status="suspended",
        current_role=None,
        suspended_role=tip.state.current_role,
        suspend_message=hold_message(reason),
        usage=add_usage(tip.state.usage, usage),
    )
    message = format_message(
        f"hold: {reason}",
        reason,
        event_trailers(
            "hold", tip.thread, (("Uwf-Node", hold.hash), ("Uwf-Role", role))
        ),
    )
    new = write_event(
        ledger,
        tip,
        changes,
        state=after_event(state, person),
        author=agent_person(by, person),
        person=person,
        message=message,
        old=tip.commit,
    )
    record.advance(new, places)
    return new


def _after_run(
    ledger: Ledger, record: Record, state: ThreadState, node: Node, draft: StepDraft
) -> ThreadState:
    completed = node.payload["completedAtMs"]
    return replace(
        state,
        updated_at_ms=completed,
        completed_at_ms=completed_at(state, completed),
        usage=add_usage(record.tip.state.usage, draft.usage),
        updated_by=str(committer(ledger)),
    )


def _commit_run(  # noqa: PLR0913 - one argument a fact
    ledger: Ledger,
    record: Record,
    changes: Changes,
    *,
    state: ThreadState,
    draft: StepDraft,
    node: Node,
    places: NodePlaces,
    event: EventName,
    next_role: str,
    is_last: bool = True,
) -> Tip:
    tip = record.tip
    status = draft.output.get(STATUS)
    status = status if isinstance(status, str) else None
    prev = node.payload["prev"]
    trailers = (
        ("Uwf-Node", node.hash),
        ("Uwf-Prev", prev or NONE),
        ("Uwf-Role", draft.role),
        ("Uwf-Status", format_status(status)),
        ("Uwf-Next", next_role),
    )
    result = status if status is not None else "answered"
    if draft.output_type == ERROR_TYPE and status == ERROR_STATUS:
        result = f"failed: {draft.output['error']}"
    how = "" if event in {"step", "attempt"} else f" ({event})"
    message = format_message(
        f"{draft.role}: {result}{how}",
        draft.body,
        event_trailers(event, tip.thread, trailers),
    )
    author = Person(
        name=agent_label(draft.agent),
        email=AGENT_EMAIL,
        time=node.payload["completedAtMs"] // 1000,
        offset=ledger.utc_offset,
    )
    new = write_event(
        ledger,
        tip,
        changes,
        state=state,
        author=author,
        person=committer(ledger, not_before=tip.committed_at),
        message=message,
        old=tip.commit,
        is_last=is_last,
        holds_reply=True,
    )
    record.advance(new, places)
    return new
