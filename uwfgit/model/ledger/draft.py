"""A step before it is written: its nodes, its place, and the files it changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from uwfgit.constants import MAX_BLOB_BYTES, MAX_STEPS
from uwfgit.errors import InvalidError, StateError
from uwfgit.ids import Hash
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node.node import DETAIL_TYPE, STEP_TYPE, TEXT_TYPE, Node, make_node
from uwfgit.model.node.places import NodePlaces, add_place
from uwfgit.model.thread.derive import link_field, output_file, prompt_file
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.usage import Usage, usage_payload
from uwfgit.store.canonical import Json
from uwfgit.store.layout import (
    LINKS,
    OUTPUT_FILE,
    PROMPT_FILE,
    REPLACED,
    nodes_folder,
    step_folder,
    thread_folder,
)
from uwfgit.store.objects import Entry, blob_oid, find_entry, list_tree, walk_files

Changes: TypeAlias = dict[str, Entry | None]
"""Paths of the repository's root tree to set, or to remove."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDraft:
    """What a cycle gave, before it has a place and a name."""

    role: str
    output: Mapping[str, Json]
    output_type: Hash
    body: str
    detail: Mapping[str, Json]
    agent: str
    edge_prompt: str
    note: str | None
    cwd: str
    started_at_ms: int
    completed_at_ms: int
    usage: Usage | None
    previous_attempts: tuple[Hash, ...]
    code_before: str | None
    code_after: str | None
    extracted_by: str | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a step, or a try at it, stands."""

    number: int
    prev: Hash | None
    base: str
    folder: str
    nodes: str

    @classmethod
    def of(cls, record: Record, draft: StepDraft, *, replaces: bool) -> Place:
        """Find the place of a step, or of a try at it.

        Args:
            record: The thread before it.
            draft: The step.
            replaces: Whether it takes the newest step's place.

        Raises:
            StateError: The thread is full.
        """
        state = record.tip.state
        number, prev = state.steps + 1, state.head if state.steps else None
        if replaces:
            number, prev = state.steps, record.step(state.head, state.steps).prev
        if number > MAX_STEPS:
            raise StateError(f"a thread has at most {MAX_STEPS} steps")
        base = thread_folder(record.tip.thread)
        return cls(
            number=number,
            prev=prev,
            base=base,
            folder=f"{base}/{step_folder(number, draft.role)}",
            nodes=f"{base}/{nodes_folder(number)}",
        )


def step_nodes(
    record: Record, draft: StepDraft, place: Place
) -> tuple[Node, Node, Node]:
    """Make output, detail and StepNode; times never go back behind the parent's."""
    output = make_node(draft.output_type, dict(draft.output))
    detail = make_node(DETAIL_TYPE, dict(draft.detail))
    # Ahead of the parent by a millisecond at least: two tries that are alike are
    # still two nodes when the clock stands.
    completed = max(draft.completed_at_ms, record.tip.state.updated_at_ms + 1)
    payload = {
        "start": record.tip.state.start,
        "prev": place.prev,
        "role": draft.role,
        "output": output.hash,
        "body": draft.body,
        "detail": detail.hash,
        "agent": draft.agent,
        "edgePrompt": draft.edge_prompt,
        "note": draft.note,
        "cwd": draft.cwd,
        "startedAtMs": min(draft.started_at_ms, completed),
        "completedAtMs": completed,
        "usage": usage_payload(draft.usage),
        "previousAttempts": list(draft.previous_attempts) or None,
        "code": {"before": draft.code_before, "after": draft.code_after},
        "extractedBy": draft.extracted_by,
        "warnings": list(draft.warnings),
    }
    return output, detail, make_node(STEP_TYPE, payload)


def place_nodes(
    record: Record, folder: str, nodes: Iterable[Node]
) -> tuple[Changes, NodePlaces]:
    """Place those nodes that the thread does not hold yet.

    Returns:
        The paths to set, and where the new nodes will stand.

    Raises:
        CorruptError: The thread holds another content under a node's hash.
    """
    changes: Changes = {}
    places: NodePlaces = {}
    for node in nodes:
        entry = file_entry(node.data)
        if node.hash in record.places:
            add_place(record.places, node.hash, node.type, entry.oid)
            continue
        add_place(places, node.hash, node.type, entry.oid)
        changes[f"{folder}/{node.name}"] = entry
    return changes, places


def output_changes(folder: str, draft: StepDraft) -> Changes:
    """Set ``output.md`` and ``prompt.md`` into a folder."""
    return {
        f"{folder}/{OUTPUT_FILE}": file_entry(output_file(draft.output, draft.body)),
        f"{folder}/{PROMPT_FILE}": file_entry(
            prompt_file(draft.edge_prompt, draft.note)
        ),
    }


def link_changes(
    record: Record, folder: str, output: Mapping[str, Json], places: NodePlaces
) -> Changes:
    """Set a file for each top-level field that names a text node."""
    changes: Changes = {}
    for key, value in output.items():
        name = link_field(key)
        if name is None or not isinstance(value, str):
            continue
        known = record.places.get(Hash(value)) or places.get(Hash(value))
        if known is not None and known[0] == TEXT_TYPE:
            changes[f"{folder}/{LINKS}/{name}"] = Entry(oid=known[1])
    return changes


def replace_changes(ledger: Ledger, record: Record, place: Place) -> Changes:
    """Move the replaced step's own files aside; an inherited step has none here."""
    folder = find_entry(ledger.store, record.tip.tree, place.folder)
    if folder is None or OUTPUT_FILE not in list_tree(ledger.store, folder.oid):
        return {}
    aside = count_entries(ledger, record, f"{place.folder}/{REPLACED}") + 1
    changes: Changes = {}
    for path, entry in walk_files(ledger.store, folder.oid):
        if not path.startswith(f"{REPLACED}/"):
            changes[f"{place.folder}/{path}"] = None
            changes[f"{place.folder}/{REPLACED}/{aside}/{path}"] = entry
    return changes


def count_entries(ledger: Ledger, record: Record, path: str) -> int:
    """Count what stands in a folder of the newest tree."""
    entry = find_entry(ledger.store, record.tip.tree, path)
    return len(list_tree(ledger.store, entry.oid)) if entry is not None else 0


def file_entry(data: bytes) -> Entry:
    """Return the entry of a file that is still to be written.

    Raises:
        InvalidError: It is larger than any reader would accept.
    """
    if len(data) > MAX_BLOB_BYTES:
        raise InvalidError(
            f"{len(data)} bytes in one piece, the limit is {MAX_BLOB_BYTES}"
        )
    return Entry(oid=blob_oid(data), data=data)
