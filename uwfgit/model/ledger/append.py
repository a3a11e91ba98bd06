"""Runs recorded: a step that counts, a failed attempt at one, or a hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from uwfgit.constants import MAX_RUNS, MAX_STEPS
from uwfgit.errors import SizeError
from uwfgit.ids import Hash
from uwfgit.model.ledger.commit import (
    FileChanges,
    agent_person,
    committer,
    event_person,
    write_event,
    writes_event,
)
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node import (
    DETAIL_TYPE,
    HOLD_TYPE,
    STEP_TYPE,
    TEXT_TYPE,
    Node,
    make_node,
)
from uwfgit.model.thread.derive import (
    find_hash_strings,
    find_hash_words,
    link_field,
    run_files,
)
from uwfgit.model.thread.event import (
    EventName,
    Told,
    tell_attempt,
    tell_hold,
    tell_step,
)
from uwfgit.model.thread.links import NO_LINKS, LinkRule, collect_links
from uwfgit.model.thread.record import NodePlaces, Record, add_place
from uwfgit.model.thread.state import AGENT_EMAIL, StepOutcome, agent_label
from uwfgit.model.thread.step import (
    Hold,
    Step,
    StepFields,
    Usage,
    read_step,
    write_fields,
)
from uwfgit.model.thread.tip import Tip
from uwfgit.store.canonical import Json
from uwfgit.store.layout import (
    ATTEMPTS,
    LINKS,
    OUTPUT_FILE,
    REPLACED,
    nodes_folder,
    step_folder,
    thread_folder,
)
from uwfgit.store.objects import (
    Person,
    TreeEntry,
    find_entry,
    list_tree,
    new_file,
    walk_files,
)


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
    step, nodes = make_step(record, draft, place)
    added, places = place_nodes(
        record, place.nodes, (*nodes, *links.nodes), own=step.hash
    )
    changes = replace_changes(ledger, record, place) if event == "poke" else {}
    changes |= added
    if strings:
        changes |= link_changes(record, place.folder, draft.output, places)
    person = committer(ledger, not_before=record.tip.committed_at)
    tip = _commit_run(
        ledger,
        record,
        changes,
        told=tell_step(record.tip.state, event, step, outcome, by=person),
        folder=place.folder,
        step=step,
        person=person,
        is_last=is_last or outcome.status != "idle",
    )
    record.advance(tip, places, step, reply=step.role)
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
    step, nodes = make_step(record, draft, place)
    changes, places = place_nodes(record, place.nodes, nodes, own=step.hash)
    tries = count_entries(record, f"{place.folder}/{ATTEMPTS}")
    person = committer(ledger, not_before=record.tip.committed_at)
    tip = _commit_run(
        ledger,
        record,
        changes,
        told=tell_attempt(record.tip.state, step, of_poke=of_poke, by=person),
        folder=f"{place.folder}/{ATTEMPTS}/{tries + 1}",
        step=step,
        person=person,
    )
    record.advance(tip, places, reply=draft.role if draft.body else None)
    return step.hash


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
        to_builtins(Hold(reason=reason, detail=found.hash, usage=usage)),
    )
    run = next_run(record, tip.state.steps + 1)
    changes, places = place_nodes(
        record, f"{thread_folder(tip.thread)}/{run}", (found, hold), own=hold.hash
    )
    person = event_person(ledger, tip)
    new = write_event(
        ledger,
        tip,
        changes,
        told=tell_hold(tip.state, hold.hash, reason, usage, by=person),
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
    folder: str,
    step: Step,
    person: Person,
    is_last: bool = True,
) -> Tip:
    files = run_files(
        step.output, step.body, edge_prompt=step.edge_prompt, note=step.note
    )
    author = Person(
        name=agent_label(step.agent),
        email=AGENT_EMAIL,
        time=step.completed_at_ms // 1000,
        offset=ledger.utc_offset,
    )
    return write_event(
        ledger,
        record.tip,
        changes | {f"{folder}/{name}": new_file(data) for name, data in files.items()},
        told=told,
        author=author,
        person=person,
        old=record.tip.commit,
        is_last=is_last,
        holds_reply=True,
    )


class StepDraft(StepFields, frozen=True, kw_only=True):
    """What a cycle gave, before it has a place and a name."""

    output: Mapping[str, Json]
    output_type: Hash
    detail: Mapping[str, Json]


class StepPlace(Struct, frozen=True, kw_only=True):
    """Where a step, or a try at it, stands."""

    number: int
    prev: Hash | None
    base: str
    folder: str
    nodes: str
    """The folder of its own run."""

    @classmethod
    def of(cls, record: Record, role: str, *, replaces: bool) -> StepPlace:
        """Find the place of a step, or of a try at it.

        Args:
            record: The thread before it.
            role: Whose step it is.
            replaces: Whether it takes the newest step's place.

        Raises:
            SizeError: The thread has no room for it.
        """
        state = record.tip.state
        number, prev = state.steps + 1, state.head if state.steps else None
        if replaces:
            number, prev = state.steps, record.step(state.head, state.steps).prev
        base = thread_folder(record.tip.thread)
        return cls(
            number=number,
            prev=prev,
            base=base,
            folder=f"{base}/{step_folder(number, role)}",
            nodes=f"{base}/{next_run(record, number)}",
        )


def next_run(record: Record, number: int) -> str:
    """Name the folder of a step's next run, within the thread's.

    Raises:
        SizeError: The thread, or the step, has no room for one more.
    """
    thread = record.tip.thread
    hint = f"go on in a fork: uwf thread fork {thread}"
    if number > MAX_STEPS:
        error = SizeError(
            f"thread {thread}", found=number, limit=MAX_STEPS, unit="steps"
        )
        error.hint = (
            f"start another thread with what it found: uwf thread read {thread}"
        )
        raise error
    folder = nodes_folder(number)
    runs = count_entries(record, f"{thread_folder(thread)}/{folder}")
    if runs >= MAX_RUNS:
        what = f"step {number} of thread {thread}"
        error = SizeError(what, found=runs + 1, limit=MAX_RUNS, unit="runs")
        error.hint = hint
        raise error
    return f"{folder}/{runs + 1}"


def make_step(
    record: Record, draft: StepDraft, place: StepPlace
) -> tuple[Step, tuple[Node, Node, Node]]:
    """Make a step and its nodes: output, detail and StepNode.

    Times never go back behind the parent's.
    """
    output = make_node(draft.output_type, dict(draft.output))
    detail = make_node(DETAIL_TYPE, dict(draft.detail))
    # Ahead of the parent by a millisecond at least: two tries that are alike are
    # still two nodes when the clock stands.
    completed = max(draft.completed_at_ms, record.tip.state.updated_at_ms + 1)
    started = min(draft.started_at_ms, completed)
    draft = replace(draft, started_at_ms=started, completed_at_ms=completed)
    payload = {
        **write_fields(draft),
        "start": record.tip.state.start,
        "prev": place.prev,
        "output": output.hash,
        "detail": detail.hash,
    }
    node = make_node(STEP_TYPE, payload)
    return read_step(node, place.number, output.payload), (output, detail, node)


def place_nodes(
    record: Record, folder: str, nodes: Iterable[Node], *, own: Hash
) -> tuple[FileChanges, NodePlaces]:
    """Place those nodes that the thread does not hold yet.

    Args:
        record: The thread.
        folder: The folder of the run that adds them.
        nodes: What it needs.
        own: The hash of the one that stands there whether known or not.

    Returns:
        The paths to set, and where the new nodes will stand.

    Raises:
        CorruptError: The thread holds another content under a node's hash.
    """
    changes: FileChanges = {}
    places: NodePlaces = {}
    for node in nodes:
        entry = new_file(node.data)
        if node.hash in record.places:
            add_place(record.places, node.hash, node.type, entry.oid)
            if node.hash != own:
                continue
        add_place(places, node.hash, node.type, entry.oid)
        changes[f"{folder}/{node.name}"] = entry
    return changes, places


def link_changes(
    record: Record, folder: str, output: Mapping[str, Json], places: NodePlaces
) -> FileChanges:
    """Set a file for each top-level field that names a text node."""
    changes: FileChanges = {}
    for key, value in output.items():
        if not isinstance(value, str):
            continue
        known = record.places.get(Hash(value)) or places.get(Hash(value))
        if known is None or known[0] != TEXT_TYPE:
            continue
        if (name := link_field(key)) is not None:
            changes[f"{folder}/{LINKS}/{name}"] = TreeEntry(oid=known[1])
    return changes


def replace_changes(ledger: Ledger, record: Record, place: StepPlace) -> FileChanges:
    """Move the replaced step's own files aside; an inherited step has none here."""
    folder = find_entry(ledger.store, record.tip.tree, place.folder)
    if folder is None or OUTPUT_FILE not in list_tree(ledger.store, folder.oid):
        return {}
    aside = count_entries(record, f"{place.folder}/{REPLACED}") + 1
    changes: FileChanges = {}
    for path, entry in walk_files(ledger.store, folder.oid):
        if not path.startswith(f"{REPLACED}/"):
            changes[f"{place.folder}/{path}"] = None
            changes[f"{place.folder}/{REPLACED}/{aside}/{path}"] = entry
    return changes


def count_entries(record: Record, path: str) -> int:
    """Count what stands in a folder of the newest tree."""
    entry = find_entry(record.store, record.tip.tree, path)
    return len(list_tree(record.store, entry.oid)) if entry is not None else 0
