"""Runs recorded: a step that counts, or a failed attempt at one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from uwfgit.ids import Hash
from uwfgit.model.ledger.commit import (
    agent_person,
    committer,
    event_person,
    recorded_by,
    write_event,
    writes_event,
)
from uwfgit.model.ledger.draft import (
    FileChanges,
    StepDraft,
    StepPlace,
    count_entries,
    link_changes,
    next_run,
    output_changes,
    place_nodes,
    replace_changes,
    step_nodes,
)
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node.node import DETAIL_TYPE, HOLD_TYPE, make_node
from uwfgit.model.node.places import NodePlaces
from uwfgit.model.thread.derive import find_hash_strings, find_hash_words
from uwfgit.model.thread.event import (
    EventName,
    Told,
    tell_attempt,
    tell_hold,
    tell_step,
)
from uwfgit.model.thread.links import NO_LINKS, LinkRule, collect_links
from uwfgit.model.thread.record import Record, Tip
from uwfgit.model.thread.state import (
    AGENT_EMAIL,
    StepOutcome,
    agent_label,
)
from uwfgit.model.thread.step import Step, read_step
from uwfgit.model.thread.usage import Usage, usage_payload
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
    outcome: StepOutcome,
    rule: Callable[[], LinkRule],
    is_last: bool = True,
) -> Tip:
    """Record a step and move the thread's head to it.

    Args:
        ledger: Where to.
        record: The thread; brought up to date.
        draft: What the cycle gave.
        event: ``step``, ``resume`` or ``poke``; a poke replaces the newest step.
        outcome: The state afterwards.
        rule: Says what the answer may link; asked where it may link something.
        is_last: Whether the command may end with it though the thread goes on.

    Raises:
        RefConflictError: The branch moved meanwhile. Nothing was recorded.
    """
    place = StepPlace.of(record, draft.role, replaces=event == "poke")
    strings, words = find_hash_strings(draft.output), find_hash_words([draft.body])
    links = NO_LINKS
    if strings or words:
        links = collect_links(record, rule(), strings=strings, words=words)
        draft = replace(draft, warnings=(*draft.warnings, *links.warnings))
    output, detail, node = step_nodes(record, draft, place)
    added, places = place_nodes(
        record, place.nodes, (output, detail, node, *links.nodes), own=node
    )
    changes = replace_changes(ledger, record, place) if event == "poke" else {}
    changes |= added
    changes |= output_changes(place.folder, draft)
    changes |= link_changes(record, place.folder, draft.output, places)
    step = read_step(node, place.number, output.payload)
    person = committer(ledger, not_before=record.tip.committed_at)
    tip = _commit_run(
        ledger,
        record,
        changes,
        told=tell_step(record.tip.state, event, step, outcome, by=recorded_by(person)),
        step=step,
        person=person,
        places=places,
        is_last=is_last or outcome.status != "idle",
    )
    record.note_step(step)
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
    place = StepPlace.of(record, draft.role, replaces=of_poke)
    output, detail, node = step_nodes(record, draft, place)
    changes, places = place_nodes(record, place.nodes, (output, detail, node), own=node)
    tries = count_entries(record, f"{place.folder}/{ATTEMPTS}")
    folder = f"{place.folder}/{ATTEMPTS}/{tries + 1}"
    changes |= output_changes(folder, draft)
    step = read_step(node, place.number, output.payload)
    person = committer(ledger, not_before=record.tip.committed_at)
    _commit_run(
        ledger,
        record,
        changes,
        told=tell_attempt(
            record.tip.state, step, of_poke=of_poke, by=recorded_by(person)
        ),
        step=step,
        person=person,
        places=places,
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
    judge: str,
) -> Tip:
    """Record that a supervisor stopped a thread; a person decides.

    Args:
        ledger: Where to.
        record: The thread, which is idle; brought up to date.
        reason: Why.
        detail: How that was found out.
        usage: What it cost.
        judge: The model's or agent's label.

    Raises:
        SizeError: The thread has no room for it.
        RefConflictError: The branch moved meanwhile. Nothing was recorded.
    """
    tip = record.tip
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
    new = write_event(
        ledger,
        tip,
        changes,
        told=tell_hold(tip.state, hold.hash, reason, usage, by=recorded_by(person)),
        author=agent_person(judge, person),
        person=person,
        old=tip.commit,
    )
    record.advance(new, places)
    return new


def _commit_run(
    ledger: Ledger,
    record: Record,
    changes: FileChanges,
    *,
    told: Told,
    step: Step,
    person: Person,
    places: NodePlaces,
    is_last: bool = True,
) -> Tip:
    author = Person(
        name=agent_label(step.agent),
        email=AGENT_EMAIL,
        time=step.completed_at_ms // 1000,
        offset=ledger.utc_offset,
    )
    new = write_event(
        ledger,
        record.tip,
        changes,
        told=told,
        author=author,
        person=person,
        old=record.tip.commit,
        is_last=is_last,
        holds_reply=True,
    )
    record.advance(new, places)
    return new
