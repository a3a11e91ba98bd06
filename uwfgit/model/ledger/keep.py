"""Nodes put by hand: ``refs/uwf/keep``, one commit without parents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from uwfgit.constants import FORMAT_VERSION
from uwfgit.errors import CorruptError, InvalidError, NotFoundError, Problem
from uwfgit.ids import Hash
from uwfgit.model.ledger.commit import committer
from uwfgit.model.ledger.ledger import Ledger, find_node
from uwfgit.model.node import (
    META_TYPE,
    Node,
    find_builtin_node,
    find_builtin_schema,
    validate_node,
)
from uwfgit.model.thread.derive import format_message
from uwfgit.model.thread.record import NodePlaces
from uwfgit.store.canonical import Json, format_path
from uwfgit.store.layout import KEEP_REF, NODES, find_node_name
from uwfgit.store.locks.holding import hold_refs, write_whole
from uwfgit.store.objects import (
    TreeEntry,
    format_commit,
    new_file,
    read_blob,
    read_commit,
    walk_files,
)
from uwfgit.store.pack import Batch
from uwfgit.store.raw import BLOB, name_object
from uwfgit.store.refs import find_ref, replace_ref

_WAIT: Final = 10.0
"""Many agents put nodes at once, each for milliseconds."""
_TRAILERS: Final = (("Uwf-Format", str(FORMAT_VERSION)), ("Uwf-Event", "keep"))
_Changes = dict[str, TreeEntry | None]


def load_type(ledger: Ledger, node_type: Hash) -> Json:
    """Return the schema of a type.

    Raises:
        NotFoundError: The store holds no such schema.
    """
    builtin = find_builtin_schema(node_type)
    if builtin is not None:
        return builtin
    node = find_node(ledger, node_type)
    if node is None or node.type != META_TYPE:
        raise NotFoundError(
            "type", node_type, hint="put its schema first: uwf cas schema put JSON"
        )
    return node.payload


def check_node(ledger: Ledger, node: Node) -> None:
    """Refuse a node that its type does not allow.

    Raises:
        InvalidError: With every violation.
        NotFoundError: The type is unknown.
    """
    check_nodes(ledger, [node])


def check_nodes(ledger: Ledger, nodes: Iterable[Node]) -> None:
    """Refuse nodes of which one's type does not allow it; each type is read once.

    Raises:
        InvalidError: With every violation of the first that is not allowed.
        NotFoundError: A type is unknown.
    """
    schemas: dict[Hash, Json] = {}
    for node in nodes:
        if node.type not in schemas:
            schemas[node.type] = load_type(ledger, node.type)
        check_payload(node, schemas[node.type])


def check_payload(node: Node, schema: Json) -> None:
    """Refuse a node that its type's schema does not allow.

    Raises:
        InvalidError: With every violation.
    """
    found = validate_node(node, schema)
    if found:
        raise InvalidError(
            [
                Problem(
                    code="schema",
                    message=violation.message,
                    path=format_path(violation.path) or None,
                )
                for violation in found
            ]
        )


def put_nodes(ledger: Ledger, nodes: Iterable[Node]) -> None:
    """Keep nodes until they are dropped; many in one call make one commit.

    The schema of a type that is not built in is kept along. The nodes were
    checked against their types before.

    Raises:
        CorruptError: Another content is kept, or put along, under the hash of one;
            names both oids.
        RefConflictError, LockedError: Another writer; nothing changed.
    """
    wanted = tuple(nodes)
    _change_keep(ledger, "put", lambda batch: _find_puts(ledger, batch, wanted))


def _find_puts(ledger: Ledger, batch: Batch, nodes: Iterable[Node]) -> _Changes:
    changes: _Changes = {}
    places: NodePlaces = {}
    ledger.kept.refresh()
    for node in _with_types(ledger, nodes):
        entry = new_file(node.data)
        kept = ledger.kept.find(node.hash)
        known = places.setdefault(node.hash, kept or (node.type, entry.oid))
        if known != (node.type, entry.oid):
            raise CorruptError(
                f"hash {node.hash} names two contents: {known[1]} and {entry.oid}",
                hint=f"if it is kept, drop it first: uwf cas drop {node.hash}",
            )
        if kept is None:
            changes[f"{NODES}/{node.hash[:2]}/{node.name}"] = entry
            continue
        try:
            is_whole = (
                name_object(BLOB, read_blob(ledger.store, entry.oid)) == entry.oid
            )
        except CorruptError:
            is_whole = False
        if not is_whole:
            batch.add("blob", node.data)
    return changes


def _with_types(ledger: Ledger, nodes: Iterable[Node]) -> Iterable[Node]:
    seen: set[Hash] = set()
    for node in nodes:
        if node.type not in seen and find_builtin_node(node.type) is None:
            schema = find_node(ledger, node.type)
            if schema is not None:
                yield schema
        seen.add(node.type)
        yield node


def drop_node(ledger: Ledger, node: Hash) -> None:
    """Stop keeping a node put by hand; threads that hold it keep it.

    Raises:
        NotFoundError: It is not kept.
        RefConflictError, LockedError: Another writer; nothing changed.
    """
    _change_keep(ledger, "drop", lambda _: _find_drops(ledger, node))


def _find_drops(ledger: Ledger, node: Hash) -> _Changes:
    places = [
        path
        for path, _ in _iter_kept(ledger)
        if (name := find_node_name(path.rpartition("/")[2])) and name[0] == node
    ]
    if not places:
        raise NotFoundError("kept node", node)
    return dict.fromkeys(places)


def list_kept(ledger: Ledger) -> tuple[Hash, ...]:
    """Return the hashes of the nodes put by hand, sorted."""
    names = (find_node_name(path.rpartition("/")[2]) for path, _ in _iter_kept(ledger))
    return tuple(sorted(name[0] for name in names if name is not None))


def _iter_kept(ledger: Ledger) -> Iterable[tuple[str, TreeEntry]]:
    keep = find_ref(ledger.store, KEEP_REF)
    if keep is None:
        return ()
    return walk_files(ledger.store, read_commit(ledger.store, keep).tree)


def _change_keep(ledger: Ledger, verb: str, find: Callable[[Batch], _Changes]) -> None:
    """Change the kept nodes by what ``find`` says of them while nobody else can."""

    def change() -> None:
        with hold_refs(
            store,
            "keep",
            [KEEP_REF],
            command=f"uwf cas {verb}",
            what="the kept nodes",
            wait=_WAIT,
        ):
            batch = Batch(store=store)
            changes = find(batch)
            old = find_ref(store, KEEP_REF)
            base = read_commit(store, old).tree if old else None
            if not changes:
                with batch.write():
                    return
            reason = f"{verb} {len(changes)} nodes"
            who = committer(ledger)
            data = format_commit(
                tree=batch.edit_tree(base, changes),
                parents=(),
                author=who,
                committer=who,
                message=format_message(f"keep: {reason}", "", _TRAILERS),
            )
            new = batch.add("commit", data)
            with batch.write():
                replace_ref(
                    store, KEEP_REF, old=old, new=new, person=who, reason=reason
                )

    store = ledger.store
    write_whole(store, change, decides_anew=True)
