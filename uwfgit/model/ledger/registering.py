"""Change the registry: add versions of workflows, roll back, remove and restore."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.errors import NotFoundError, StateError
from uwfgit.ids import Hash, Oid
from uwfgit.model.ledger.commit import NewCommit, commit_batch, committer
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.ledger.registry import (
    Version,
    find_branch,
    format_version,
    iter_removed,
    not_registered,
    read_version,
    trash_ref,
    workflow_history,
)
from uwfgit.model.node import format_nodes
from uwfgit.model.workflow.origin import Origin, parse_origin
from uwfgit.model.workflow.workflow import (
    Workflow,
    require_workflow_file,
    workflow_nodes,
)
from uwfgit.shell import quote_word
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.layout import (
    NODES,
    WORKFLOW_FILE,
    is_workflow_name,
    workflow_folder,
    workflow_ref,
)
from uwfgit.store.locks.holding import NO_MOVES, Moves, hold_refs, write_whole
from uwfgit.store.objects import (
    TreeEntry,
    new_file,
    read_commit,
)
from uwfgit.store.pack import Batch
from uwfgit.store.raw import BLOB, name_object
from uwfgit.store.refs import find_ref, move_refs

T = TypeVar("T")

_WAIT: Final = 5.0


class Registered(Struct, frozen=True, kw_only=True):
    """What registering did; ``changed`` is false for the version it had."""

    name: str
    hash: Hash
    oid: Oid
    changed: bool
    origin: str | None = None


class _Pinned(NamedTuple):
    """What a version's commit says of it."""

    hash: Hash
    oid: Oid
    origin: str | None


def add_workflow(
    ledger: Ledger, workflow: Workflow, data: bytes, *, origin: Origin | None = None
) -> Registered:
    """Register a workflow, or a new version of it.

    Args:
        ledger: Where to.
        workflow: A valid workflow.
        data: The bytes of its ``workflow.yaml``.
        origin: The commit it was read from. The same text at another commit of
            the same file is no new version.

    Raises:
        RefConflictError, LockedError: Another writer; nothing changed.
    """
    return _change(
        ledger, workflow.name, "add", lambda: _add(ledger, workflow, data, origin)
    )


def _add(
    ledger: Ledger, workflow: Workflow, data: bytes, origin: Origin | None
) -> Registered:
    require_workflow_file(data)
    *schemas, pinned = workflow_nodes(workflow)
    name = workflow.name
    old = find_ref(ledger.store, workflow_ref(name))
    folder = workflow_folder(name)
    changes: dict[str, TreeEntry | None] = {
        f"{folder}/{NODES}": None,
        f"{folder}/{WORKFLOW_FILE}": new_file(data),
    }
    for node in (*format_nodes(), *schemas, pinned):
        changes[f"{folder}/{NODES}/{node.name}"] = new_file(node.data)
    base = read_commit(ledger.store, old or GENESIS_OID).tree
    batch = Batch(store=ledger.store)
    tree = batch.edit_tree(base, changes)
    oid = name_object(BLOB, pinned.data)
    came = None
    if old is not None:
        tip = read_commit(ledger.store, old)
        came = read_version(name, tip, current=True).origin
    changed = base != tree or _is_elsewhere(came, origin)
    if changed:
        came = None if origin is None else str(origin)
        found = _Pinned(pinned.hash, oid, came)
        _write(ledger, batch, name, "add", tree=tree, old=old, pinned=found)
    return Registered(
        name=name,
        hash=pinned.hash,
        oid=oid,
        changed=changed,
        origin=came,
    )


def _is_elsewhere(known: str | None, origin: Origin | None) -> bool:
    """Whether a text that is registered comes from another file by now."""
    if origin is None or known is None:
        return origin is not None
    before = replace(parse_origin(known), oid=None)
    return str(before) != str(replace(origin, oid=None))


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
    removed = tuple(iter_removed(ledger, name))
    if removed and find_branch(ledger, name) is None:
        return _restore(ledger, name, removed, version)
    versions = workflow_history(ledger, name)
    wanted = _choose((*versions, *(removed if version else ())), version)
    changed = wanted.hash != versions[0].hash
    if changed:
        _write_rollback(ledger, name, wanted, versions[0].commit)
    return _registered(wanted, changed=changed)


def _restore(
    ledger: Ledger, name: str, removed: tuple[Version, ...], version: Hash | None
) -> Registered:
    wanted = _choose(removed, version or removed[0].hash)
    tip = removed[0].commit
    trash: Moves = {trash_ref(name): (tip, None)}
    if wanted.hash == removed[0].hash:
        moves = {**trash, workflow_ref(name): (None, tip)}
        move_refs(ledger.store, moves, reason="rollback")
    else:
        _write_rollback(ledger, name, wanted, tip, trash)
    return _registered(wanted, changed=True)


def _registered(version: Version, *, changed: bool) -> Registered:
    return Registered(
        name=version.name,
        hash=version.hash,
        oid=version.oid,
        changed=changed,
        origin=version.origin,
    )


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
        pinned=_Pinned(wanted.hash, wanted.oid, wanted.origin),
        trash=trash,
    )


def restore_workflow(ledger: Ledger, name: str) -> Registered:
    """Bring a removed workflow back, at the version it had.

    Raises:
        NotFoundError: None of that name was removed.
        StateError: One of that name is registered.
    """

    def run() -> Registered:
        removed = tuple(iter_removed(ledger, name))
        if find_branch(ledger, name) is not None:
            raise StateError(
                f"workflow '{name}' is registered",
                hint=f"its older versions: uwf workflow history {quote_word(name)}",
            )
        if not removed:
            hint = "see what was removed: uwf workflow list --trash"
            raise NotFoundError("removed workflow", name, hint=hint)
        return _restore(ledger, name, removed, None)

    return _change(ledger, name, "restore", run)


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
        hint=f"see its versions: uwf workflow history {quote_word(name)}",
    )


def remove_workflow(ledger: Ledger, name: str) -> Oid:
    """Move a workflow's branch to the trash and give its tip.

    Raises:
        NotFoundError: It is not registered.
    """
    return _change(ledger, name, "rm", lambda: _remove(ledger, name))


def _remove(ledger: Ledger, name: str) -> Oid:
    tip = find_branch(ledger, name)
    if tip is None:
        raise not_registered(ledger, name)
    trash = trash_ref(name)
    moves = {
        trash: (find_ref(ledger.store, trash), tip),
        workflow_ref(name): (tip, None),
    }
    move_refs(ledger.store, moves, reason="rm")
    return tip


def _change(ledger: Ledger, name: str, verb: str, change: Callable[[], T]) -> T:
    """Change a workflow's branch while nobody else can."""
    if not is_workflow_name(name):
        raise NotFoundError("workflow", name)

    def run() -> T:
        with hold_refs(
            ledger.store,
            f"workflow-{name}",
            [workflow_ref(name), trash_ref(name)],
            command=f"uwf workflow {verb}",
            what=f"workflow '{name}'",
            wait=_WAIT,
        ):
            return change()

    return write_whole(ledger.store, run, decides_anew=True)


def _write(
    ledger: Ledger,
    batch: Batch,
    name: str,
    event: str,
    *,
    tree: Oid,
    old: Oid | None,
    pinned: _Pinned,
    trash: Moves = NO_MOVES,
) -> None:
    person = committer(ledger)
    message = format_version(event, name, pinned.hash, pinned.oid, origin=pinned.origin)
    new = NewCommit(
        tree=tree,
        parent=old or GENESIS_OID,
        author=person,
        person=person,
        message=message,
    )
    # The branch is not there yet when it comes out of the trash.
    expected = None if trash else old
    ref = workflow_ref(name)
    commit_batch(ledger, batch, new, ref=ref, old=expected, reason=event, beside=trash)
