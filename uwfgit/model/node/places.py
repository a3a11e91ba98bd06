"""A thread's nodes: where they stand in its tree, and reading them."""

from __future__ import annotations

from collections.abc import Iterable

from uwfgit.constants import MAX_BLOB_BYTES
from uwfgit.errors import CorruptError
from uwfgit.ids import Hash, Oid
from uwfgit.model.node.node import Node
from uwfgit.store.canonical import decode_payload, node_hash, parse_payload
from uwfgit.store.handle import Store
from uwfgit.store.layout import NODES, THREADS, find_node_name
from uwfgit.store.objects import find_entry, list_names, list_tree
from uwfgit.store.raw import BLOB

NodePlace = tuple[Hash, Oid]
"""A node's type, and its blob."""
NodePlaces = dict[Hash, NodePlace]
"""Where a thread's nodes stand: hash → type and blob."""


def read_node(store: Store, node: Hash, node_type: Hash, oid: Oid) -> Node:
    """Read a node's blob and check that it is what its name says.

    Raises:
        CorruptError: Missing, not canonical, or of another hash.
    """
    # Not by read_nodes: for one alone that takes a fifth longer.
    data = store.raw.read(oid, BLOB, limit=MAX_BLOB_BYTES)
    payload = decode_payload(node_type, data)
    if node_hash(node_type, payload) != node:
        raise CorruptError(f"blob {oid} is not node {node}")
    return Node(hash=node, type=node_type, payload=payload)


def read_nodes(
    store: Store, wanted: Iterable[tuple[Hash, NodePlace]], *, checked: bool = True
) -> tuple[Node, ...]:
    """Read many nodes at once, in their order.

    One kind of work after the other, each for all of them: taking turns costs
    half as much again.

    Args:
        store: Where they are.
        wanted: Their names and places.
        checked: Whether each is compared with its name, as :func:`read_node` does.

    Raises:
        CorruptError: One is missing, or not what it should be.
    """
    named = tuple(wanted)
    read = store.raw.read
    blobs = [read(oid, BLOB, limit=MAX_BLOB_BYTES) for _, (_, oid) in named]
    parse = decode_payload if checked else parse_payload
    nodes = tuple(
        Node(hash=node, type=kind, payload=parse(kind, data))
        for (node, (kind, _)), data in zip(named, blobs, strict=True)
    )
    for node, (_, (_, oid)) in zip(nodes, named, strict=True) if checked else ():
        if node_hash(node.type, node.payload) != node.hash:
            raise CorruptError(f"blob {oid} is not node {node.hash}")
    return nodes


def list_nodes(store: Store, tree: Oid) -> NodePlaces:
    """Find every node of a thread, those of the threads it was forked from too.

    Raises:
        CorruptError: Two contents stand under one hash, or a tree is missing.
    """
    places: NodePlaces = {}
    threads = find_entry(store, tree, THREADS)
    if threads is None:
        return places
    for thread in list_tree(store, threads.oid).values():
        folder = find_entry(store, thread.oid, NODES)
        if folder is None:
            continue
        for file, oid in list_names(store, folder.oid):
            name = find_node_name(file)
            if name is None:
                raise CorruptError(f"'{file}' is not a node's file name")
            add_place(places, name[0], name[1], oid)
    return places


def add_place(places: NodePlaces, node: Hash, node_type: Hash, oid: Oid) -> None:
    """Note where a node stands.

    Raises:
        CorruptError: The hash already names another content.
    """
    known = places.setdefault(node, (node_type, oid))
    if known != (node_type, oid):
        raise CorruptError(
            f"hash {node} names two contents: {known[1]} and {oid}",
            hint="one of the two was made to collide; do not use it",
        )
