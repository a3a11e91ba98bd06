"""The registry: one branch a workflow, one commit a version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.constants import FORMAT_VERSION
from uwfgit.errors import CorruptError, NotFoundError
from uwfgit.ids import Hash, Oid, is_hash
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node import WORKFLOW_TYPE
from uwfgit.model.thread.derive import format_message, parse_trailers
from uwfgit.model.thread.record import NodePlaces, add_place, read_nodes
from uwfgit.model.workflow.workflow import Workflow, workflow_from_node
from uwfgit.shell import quote_word
from uwfgit.spelling import find_similar
from uwfgit.store.layout import (
    NODES,
    TRASH_PREFIX,
    WORKFLOW_FILE,
    WORKFLOW_PREFIX,
    find_node_name,
    is_workflow_name,
    workflow_folder,
    workflow_ref,
)
from uwfgit.store.objects import (
    Commit,
    find_entry,
    list_tree,
    read_blob,
    read_commit,
)
from uwfgit.store.refs import find_ref, iter_commits, list_refs

ORIGIN: Final = "Uwf-Origin"
"""Names the trailer that says where a version came from."""


class Version(Struct, frozen=True, kw_only=True):
    """One version of a registered workflow.

    ``origin`` says which file of which commit elsewhere it is, if it came from there.
    """

    name: str
    hash: Hash
    oid: Oid
    timestamp_ms: int
    current: bool
    commit: Oid
    origin: str | None = None


class Entered(Struct, frozen=True, kw_only=True):
    """A registered workflow, read."""

    version: Version
    workflow: Workflow
    data: bytes


def workflow_history(ledger: Ledger, name: str) -> tuple[Version, ...]:
    """Return the versions of a registered workflow, newest first.

    Raises:
        NotFoundError: It is not registered.
        CorruptError: Its branch is damaged.
    """
    tip = find_branch(ledger, name)
    if tip is None:
        raise not_registered(ledger, name)
    return tuple(
        read_version(name, commit, current=commit.oid == tip)
        for commit in iter_commits(ledger.store, tip)
    )


def not_registered(ledger: Ledger, name: str) -> NotFoundError:
    """Return the error for a name that is not registered, with what may help."""
    near = find_similar(name, list_workflows(ledger))
    if is_workflow_name(name) and find_ref(ledger.store, trash_ref(name)):
        hint = f"it was removed; bring it back: uwf workflow restore {name}"
    elif near is not None:
        hint = f"did you mean '{near}'?"
    else:
        hint = (
            "none of that name is registered: uwf workflow list shows all there are, "
            "uwf workflow add FILE registers one"
        )
    return NotFoundError("workflow", name, hint=hint)


def list_workflows(ledger: Ledger) -> tuple[str, ...]:
    """Return the names of the registered workflows, sorted; a damaged one's too."""
    names = (
        ref.removeprefix(WORKFLOW_PREFIX)
        for ref in list_refs(ledger.store, WORKFLOW_PREFIX)
    )
    return tuple(name for name in names if is_workflow_name(name))


def load_registered(ledger: Ledger, name: str, version: Hash | None = None) -> Entered:
    """Read a registered workflow, by default its newest version.

    Raises:
        NotFoundError: It, or that version, is not registered.
        CorruptError: Its branch is damaged.
    """
    for found in workflow_history(ledger, name):
        if version in {None, found.hash}:
            return _read(ledger, found)
    raise NotFoundError(
        "version",
        f"{name}@{version}",
        hint=f"see its versions: uwf workflow history {quote_word(name)}",
    )


def list_removed(ledger: Ledger) -> tuple[Version, ...]:
    """Return the removed workflows by name, each at the version it had.

    One that is damaged is left out.
    """
    start = trash_ref("")
    found: list[Version] = []
    for ref in list_refs(ledger.store, TRASH_PREFIX):
        name = ref.removeprefix(start)
        if ref.startswith(start) and is_workflow_name(name):
            with suppress(CorruptError):
                found += islice(iter_removed(ledger, name), 1)
    return tuple(found)


def iter_removed(ledger: Ledger, name: str) -> Iterator[Version]:
    """Yield the versions of a removed workflow, newest first; none if there is none."""
    tip = find_ref(ledger.store, trash_ref(name))
    for commit in iter_commits(ledger.store, tip) if tip else ():
        yield read_version(name, commit, current=False)


def find_branch(ledger: Ledger, name: str) -> Oid | None:
    """Return the newest commit of a registered workflow."""
    return (
        find_ref(ledger.store, workflow_ref(name)) if is_workflow_name(name) else None
    )


def trash_ref(name: str) -> str:
    """Name the ref that keeps the branch of a removed workflow."""
    return f"{TRASH_PREFIX}workflow-{name}"


def format_version(
    event: str, name: str, pinned: Hash, oid: Oid, *, origin: str | None
) -> str:
    """Return the message of the commit that registers a version."""
    trailers = [
        ("Uwf-Format", str(FORMAT_VERSION)),
        ("Uwf-Event", event),
        ("Uwf-Workflow", f"{pinned} {oid}"),
    ]
    if origin is not None:
        trailers.append((ORIGIN, origin))
    return format_message(f"{event} {name}", "", trailers)


def read_version(name: str, commit: Commit, *, current: bool) -> Version:
    """Return the version that a commit registers.

    Raises:
        CorruptError: It registers none.
    """
    trailers = parse_trailers(commit.message)
    pinned, _, oid = trailers.get("Uwf-Workflow", "").partition(" ")
    if not is_hash(pinned):
        raise CorruptError(f"commit {commit.oid} is not a version of workflow '{name}'")
    return Version(
        name=name,
        hash=Hash(pinned),
        oid=Oid(oid),
        timestamp_ms=commit.committer.time * 1000,
        current=current,
        commit=commit.oid,
        origin=trailers.get(ORIGIN),
    )


def _read(ledger: Ledger, version: Version) -> Entered:
    tree = read_commit(ledger.store, version.commit).tree
    inside = workflow_folder(version.name)
    folder = find_entry(ledger.store, tree, f"{inside}/{NODES}")
    file = find_entry(ledger.store, tree, f"{inside}/{WORKFLOW_FILE}")
    if folder is None or file is None:
        raise CorruptError(f"commit {version.commit} lacks workflow '{version.name}'")
    places: NodePlaces = {}
    for name, entry in list_tree(ledger.store, folder.oid).items():
        parsed = find_node_name(name)
        if parsed is not None:
            add_place(places, parsed[0], parsed[1], entry.oid)
    nodes = {node.hash: node for node in read_nodes(ledger.store, places.items())}
    pinned = nodes.get(version.hash)
    if pinned is None or pinned.type != WORKFLOW_TYPE:
        raise CorruptError(f"commit {version.commit} lacks node {version.hash}")
    workflow = workflow_from_node(pinned, nodes.get)
    data = read_blob(ledger.store, file.oid)
    if workflow.inputs:
        # Late: what has no inputs reads no YAML.
        from uwfgit.model.workflow.pinned import in_file_order  # noqa: PLC0415

        workflow = replace(workflow, inputs=in_file_order(workflow.inputs, data))
    return Entered(version=version, workflow=workflow, data=data)
