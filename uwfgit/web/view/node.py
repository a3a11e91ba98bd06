"""A node as a page shows it: itself, and what it links to."""

from __future__ import annotations

from msgspec import Struct

from uwfgit.errors import NotFoundError
from uwfgit.ids import Hash, Oid
from uwfgit.model.node import META_TYPE, Node
from uwfgit.model.schema.check import find_refs
from uwfgit.model.thread.record import Record


class NodeView(Struct, frozen=True, kw_only=True):
    """A node of a thread, the nodes it names, and its blob in git."""

    node: Node
    refs: tuple[Hash, ...]
    oid: Oid


def view_node(record: Record, name: Hash) -> NodeView:
    """Read a node of a thread for its page.

    Raises:
        NotFoundError: The thread has no such node.
        CorruptError: It is damaged.
    """
    if name not in record.places:
        raise NotFoundError("node", name)
    node = record.node(name)
    schema = record.node(node.type) if node.type in record.places else None
    is_typed = schema is not None and schema.type == META_TYPE
    refs = find_refs(schema.payload, node.payload) if schema and is_typed else ()
    return NodeView(node=node, refs=refs, oid=record.places[name][1])
