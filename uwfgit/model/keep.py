"""Nodes put by hand: ``refs/uwf/keep``, one commit without parents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from uwfgit.constants import FORMAT_VERSION
from uwfgit.errors import CorruptError, InvalidError, NotFoundError, Problem
from uwfgit.ids import Hash, Oid
from uwfgit.model.builtin import find_builtin_node, find_builtin_schema
from uwfgit.model.commit import committer
from uwfgit.model.ledger import Ledger, find_kept, find_node
from uwfgit.model.message import format_message
from uwfgit.model.node import META_TYPE, Node
from uwfgit.model.schema import validate_node
from uwfgit.store.canonical import Json, format_path
from uwfgit.store.layout import KEEP_REF, NODES, find_node_name
from uwfgit.store.locks import lock
from uwfgit.store.objects import (
    Entry,
    edit_tree,
    read_commit,
    walk_files,
    write_blob,
    write_commit,
)
from uwfgit.store.refs import find_ref, move_ref


def load_type(ledger: Ledger, node_type: Hash) -> Json:
    """Give the schema of a type.

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
    found = validate_node(node, load_type(ledger, node.type))
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
        CorruptError: Another content is kept under the hash of one.
        RefConflictError, LockedError: Another writer; nothing changed.
    """
    wanted = {node.hash: node for node in _with_types(ledger, nodes)}
    changes: dict[str, Entry | None] = {}
    for node in wanted.values():
        entry = Entry(oid=write_blob(ledger.store, node.data))
        kept = find_kept(ledger, node.hash)
        if kept is not None and kept[1] != entry.oid:
            raise CorruptError(
                f"hash {node.hash} names two contents: {kept[1]} and {entry.oid}",
                hint=f"drop the kept one first: uwf cas drop {node.hash}",
            )
        if kept is None:
            changes[_path(node)] = entry
    if changes:
        _change_keep(ledger, changes, f"put {len(changes)} nodes")


def _with_types(ledger: Ledger, nodes: Iterable[Node]) -> Iterable[Node]:
    for node in nodes:
        if find_builtin_node(node.type) is None:
            schema = find_node(ledger, node.type)
            if schema is not None:
                yield schema
        yield node


def drop_node(ledger: Ledger, node: Hash) -> None:
    """Stop keeping a node put by hand; threads that hold it keep it.

    Raises:
        NotFoundError: It is not kept.
    """
    places = [
        path
        for path, _ in _iter_kept(ledger)
        if (name := find_node_name(path.rpartition("/")[2])) and name[0] == node
    ]
    if not places:
        raise NotFoundError("kept node", node)
    _change_keep(ledger, dict.fromkeys(places), f"drop {node}")


def list_kept(ledger: Ledger, node_type: Hash | None = None) -> tuple[Hash, ...]:
    """Give the hashes of the nodes put by hand, sorted."""
    found = []
    for path, _ in _iter_kept(ledger):
        name = find_node_name(path.rpartition("/")[2])
        if name is not None and node_type in {None, name[1]}:
            found.append(name[0])
    return tuple(sorted(found))


def _iter_kept(ledger: Ledger) -> Iterable[tuple[str, Entry]]:
    keep = find_ref(ledger.store, KEEP_REF)
    if keep is None:
        return ()
    return walk_files(ledger.store, read_commit(ledger.store, keep).tree)


def _path(node: Node) -> str:
    return f"{NODES}/{node.hash[:2]}/{node.name}"


def _change_keep(
    ledger: Ledger, changes: Mapping[str, Entry | None], reason: str
) -> None:
    path = ledger.store.state_dir / "locks" / "keep"
    with lock(path, command=reason, wait=10, what="the kept nodes"):
        old = find_ref(ledger.store, KEEP_REF)
        base = read_commit(ledger.store, old).tree if old else None
        new = _write_keep(ledger, edit_tree(ledger.store, base, changes), reason)
        move_ref(ledger.store, KEEP_REF, old=old, new=new, reason=reason)


def _write_keep(ledger: Ledger, tree: Oid, reason: str) -> Oid:
    person = committer(ledger)
    trailers = [("Uwf-Format", str(FORMAT_VERSION)), ("Uwf-Event", "keep")]
    return write_commit(
        ledger.store,
        tree=tree,
        parents=(),
        author=person,
        committer=person,
        message=format_message(f"keep: {reason}", "", trailers),
    )
