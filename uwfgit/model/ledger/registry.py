"""The registry: one branch a workflow, one commit a version."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from uwfgit.constants import FORMAT_VERSION
from uwfgit.errors import CorruptError, NotFoundError, StateError
from uwfgit.ids import Hash, Oid, is_hash
from uwfgit.model.ledger.commit import add_commit, committer, publish
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node.builtin import format_nodes
from uwfgit.model.node.node import WORKFLOW_TYPE
from uwfgit.model.node.places import NodePlaces, add_place, read_nodes
from uwfgit.model.thread.message import format_message, parse_trailers
from uwfgit.model.workflow.workflow import (
    Workflow,
    require_workflow_file,
    workflow_from_nodes,
    workflow_nodes,
)
from uwfgit.spelling import find_similar
from uwfgit.store.ancestry import iter_commits
from uwfgit.store.genesis import GENESIS_OID
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
from uwfgit.store.locks.holding import hold_refs
from uwfgit.store.locks.moving import NO_MOVES, Moves
from uwfgit.store.locks.writing import write_whole
from uwfgit.store.objects import (
    Commit,
    TreeEntry,
    blob_oid,
    find_entry,
    list_tree,
    read_blob,
    read_commit,
)
from uwfgit.store.pack.batch import Batch
from uwfgit.store.refs import find_ref, list_refs, move_refs

T = TypeVar("T")

_WAIT: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of a registered workflow."""

    name: str
    hash: Hash
    oid: Oid
    timestamp_ms: int
    current: bool
    commit: Oid


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """What registering did; ``changed`` is false for the version it had."""

    name: str
    hash: Hash
    oid: Oid
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """A registered workflow, read."""

    version: Version
    workflow: Workflow
    data: bytes


def add_workflow(ledger: Ledger, workflow: Workflow, data: bytes) -> Registered:
    """Register a workflow, or a new version of it.

    Args:
        ledger: Where to.
        workflow: A valid workflow.
        data: The bytes of its ``workflow.yaml``.

    Raises:
        RefConflictError, LockedError: Another writer; nothing changed.
    """
    return _change(ledger, workflow.name, "add", lambda: _add(ledger, workflow, data))


def _add(ledger: Ledger, workflow: Workflow, data: bytes) -> Registered:
    require_workflow_file(data)
    *schemas, pinned = workflow_nodes(workflow)
    name = workflow.name
    old = find_ref(ledger.store, workflow_ref(name))
    folder = workflow_folder(name)
    changes: dict[str, TreeEntry | None] = {
        f"{folder}/{NODES}": None,
        f"{folder}/{WORKFLOW_FILE}": _file(data),
    }
    for node in (*format_nodes(), *schemas, pinned):
        changes[f"{folder}/{NODES}/{node.name}"] = _file(node.data)
    base = read_commit(ledger.store, old or GENESIS_OID).tree
    batch = Batch(store=ledger.store)
    tree = batch.edit_tree(base, changes)
    oid = blob_oid(pinned.data)
    changed = old is None or base != tree
    if changed:
        found = (pinned.hash, oid)
        _write(ledger, batch, name, "add", tree=tree, old=old, pinned=found)
    return Registered(name=name, hash=pinned.hash, oid=oid, changed=changed)


def workflow_history(ledger: Ledger, name: str) -> tuple[Version, ...]:
    """Return the versions of a registered workflow, newest first.

    Raises:
        NotFoundError: It is not registered.
        CorruptError: Its branch is damaged.
    """
    tip = _find_branch(ledger, name)
    if tip is None:
        raise _not_registered(ledger, name)
    return tuple(
        _version(name, commit, current=commit.oid == tip)
        for commit in iter_commits(ledger.store, tip)
    )


def _not_registered(ledger: Ledger, name: str) -> NotFoundError:
    near = find_similar(name, list_workflows(ledger))
    if is_workflow_name(name) and find_ref(ledger.store, _trash_ref(name)):
        hint = f"it was removed; bring it back: uwf workflow rollback {name}"
    elif near is not None:
        hint = f"did you mean '{near}'?"
    else:
        hint = "see what there is: uwf workflow list"
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
        hint=f"see its versions: uwf workflow history {shlex.quote(name)}",
    )


def rollback_workflow(
    ledger: Ledger, name: str, version: Hash | None = None
) -> Registered:
    """Make an older version current again, as a new commit.

    A workflow that was removed comes back from the trash first.

    Args:
        ledger: Where to.
        name: The workflow.
        version: By default the one before the current, or the one a workflow had
            when it was removed; one of a branch of that name in the trash, too.

    Raises:
        NotFoundError: It, or that version, is not registered.
        StateError: There is no other version.
    """
    return _change(ledger, name, "rollback", lambda: _roll_back(ledger, name, version))


def _roll_back(ledger: Ledger, name: str, version: Hash | None) -> Registered:
    removed = tuple(_removed_versions(ledger, name))
    if removed and _find_branch(ledger, name) is None:
        return _restore(ledger, name, removed, version)
    versions = workflow_history(ledger, name)
    wanted = _choose((*versions, *(removed if version else ())), version)
    changed = wanted.hash != versions[0].hash
    if changed:
        _write_rollback(ledger, name, wanted, versions[0].commit)
    return Registered(name=name, hash=wanted.hash, oid=wanted.oid, changed=changed)


def _restore(
    ledger: Ledger, name: str, removed: tuple[Version, ...], version: Hash | None
) -> Registered:
    wanted = _choose(removed, version or removed[0].hash)
    tip = removed[0].commit
    trash: Moves = {_trash_ref(name): (tip, None)}
    if wanted.hash == removed[0].hash:
        moves = {**trash, workflow_ref(name): (None, tip)}
        move_refs(ledger.store, moves, reason="rollback")
    else:
        _write_rollback(ledger, name, wanted, tip, trash)
    return Registered(name=name, hash=wanted.hash, oid=wanted.oid, changed=True)


def _write_rollback(
    ledger: Ledger, name: str, wanted: Version, tip: Oid, trash: Moves = NO_MOVES
) -> None:
    """Write a commit with a version's files after a tip, which may be in the trash."""
    _write(
        ledger,
        Batch(store=ledger.store),
        name,
        "rollback",
        tree=read_commit(ledger.store, wanted.commit).tree,
        old=tip,
        pinned=(wanted.hash, wanted.oid),
        trash=trash,
    )


def _removed_versions(ledger: Ledger, name: str) -> Iterator[Version]:
    tip = find_ref(ledger.store, _trash_ref(name))
    for commit in iter_commits(ledger.store, tip) if tip else ():
        yield _version(name, commit, current=False)


def _choose(versions: tuple[Version, ...], wanted: Hash | None) -> Version:
    name = versions[0].name
    for found in versions:
        if wanted is None and found.hash != versions[0].hash:
            return found
        if found.hash == wanted:
            return found
    if wanted is None:
        raise StateError(f"workflow '{name}' has no version before this one")
    raise NotFoundError(
        "version",
        f"{name}@{wanted}",
        hint=f"see its versions: uwf workflow history {shlex.quote(name)}",
    )


def remove_workflow(ledger: Ledger, name: str) -> Oid:
    """Move a workflow's branch to the trash and give its tip.

    Raises:
        NotFoundError: It is not registered.
    """
    return _change(ledger, name, "rm", lambda: _remove(ledger, name))


def _remove(ledger: Ledger, name: str) -> Oid:
    tip = _find_branch(ledger, name)
    if tip is None:
        raise _not_registered(ledger, name)
    trash = _trash_ref(name)
    moves = {
        trash: (find_ref(ledger.store, trash), tip),
        workflow_ref(name): (tip, None),
    }
    move_refs(ledger.store, moves, reason="rm")
    return tip


def _find_branch(ledger: Ledger, name: str) -> Oid | None:
    return (
        find_ref(ledger.store, workflow_ref(name)) if is_workflow_name(name) else None
    )


def _trash_ref(name: str) -> str:
    return f"{TRASH_PREFIX}workflow-{name}"


def _change(ledger: Ledger, name: str, verb: str, change: Callable[[], T]) -> T:
    """Change a workflow's branch while nobody else can."""
    if not is_workflow_name(name):
        raise NotFoundError("workflow", name)

    def run() -> T:
        with hold_refs(
            ledger.store,
            f"workflow-{name}",
            [workflow_ref(name), _trash_ref(name)],
            command=f"uwf workflow {verb}",
            what=f"workflow '{name}'",
            wait=_WAIT,
        ):
            return change()

    return write_whole(ledger.store, run, decides_anew=True)


def _file(data: bytes) -> TreeEntry:
    return TreeEntry(oid=blob_oid(data), data=data)


def _write(
    ledger: Ledger,
    batch: Batch,
    name: str,
    event: str,
    *,
    tree: Oid,
    old: Oid | None,
    pinned: tuple[Hash, Oid],
    trash: Moves = NO_MOVES,
) -> None:
    person = committer(ledger)
    trailers = [
        ("Uwf-Format", str(FORMAT_VERSION)),
        ("Uwf-Event", event),
        ("Uwf-Workflow", f"{pinned[0]} {pinned[1]}"),
    ]
    commit = add_commit(
        ledger,
        batch,
        tree=tree,
        parent=old or GENESIS_OID,
        author=person,
        person=person,
        message=format_message(f"{event} {name}", "", trailers),
    )
    # The branch is not there yet when it comes out of the trash.
    expected = None if trash else old
    ref = workflow_ref(name)
    publish(ledger, batch, ref, expected, commit, reason=event, beside=trash)


def _version(name: str, commit: Commit, *, current: bool) -> Version:
    pinned, _, oid = (
        parse_trailers(commit.message).get("Uwf-Workflow", "").partition(" ")
    )
    if not is_hash(pinned):
        raise CorruptError(f"commit {commit.oid} is not a version of workflow '{name}'")
    return Version(
        name=name,
        hash=Hash(pinned),
        oid=Oid(oid),
        timestamp_ms=commit.committer.time * 1000,
        current=current,
        commit=commit.oid,
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
    try:
        workflow = workflow_from_nodes(pinned, nodes)
    except (KeyError, TypeError, AttributeError) as exc:
        raise CorruptError(f"node {pinned.hash} is not a workflow") from exc
    return Entered(
        version=version, workflow=workflow, data=read_blob(ledger.store, file.oid)
    )
