"""Which hashes in an agent's answer are links, and what they bring along."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct, field

from uwfgit.constants import MAX_LINKED_BYTES, MAX_LINKED_NODES
from uwfgit.errors import CorruptError
from uwfgit.ids import Hash
from uwfgit.model.node import (
    META_TYPE,
    Node,
    find_builtin_node,
    find_builtin_schema,
)
from uwfgit.model.schema.check import find_refs
from uwfgit.model.thread.record import Record
from uwfgit.store.raw import BLOB, name_object

FindNode = Callable[[Hash], Node | None]


class LinkRule(Struct, frozen=True, kw_only=True):
    """What an answer may link besides the thread's own nodes.

    Attributes:
        put: Nodes put during this step; they bring only each other along.
        named: Nodes the user named; they bring all they refer to.
        find: Reads such a node from the store.
    """

    put: frozenset[Hash]
    named: frozenset[Hash]
    find: FindNode

    def allows(self, node: Hash) -> bool:
        """Whether an answer may link a node that the thread lacks."""
        return node in self.put or node in self.named


class Links(Struct, frozen=True, kw_only=True):
    """Nodes to add to the thread, and a warning per hash that is no link."""

    nodes: tuple[Node, ...] = ()
    warnings: tuple[str, ...] = ()


NO_LINKS: Final = Links()


class _Added(Struct, kw_only=True):
    """Nodes gathered so far, and the bytes of them all."""

    nodes: dict[Hash, Node] = field(default_factory=dict)
    size: int = 0


def collect_links(
    record: Record, rule: LinkRule, *, strings: Iterable[Hash], words: Iterable[Hash]
) -> Links:
    """Gather what an answer links: every node reachable, with the types.

    Args:
        record: The thread, whose own nodes are links already.
        rule: What else may be linked.
        strings: Hash-shaped strings of the output; one that is no link is warned of.
        words: Hash-shaped words of the body; one that is no link is just a word.

    Raises:
        CorruptError: A node that would be linked has the hash of another of the
            thread; names both oids.
    """
    added = _Added()
    warnings: list[str] = []
    strings = dict.fromkeys(strings)
    for candidate in dict.fromkeys((*strings, *words)):
        if candidate in record.places:
            if rule.allows(candidate):
                _check_same(record, rule, candidate, root=candidate)
            continue
        if candidate in added.nodes:
            continue
        reason = _add_closure(record, rule, candidate, added)
        if reason is not None and candidate in strings:
            warnings.append(
                f"{candidate} looks like a hash but links nothing: {reason}"
            )
    return Links(nodes=tuple(added.nodes.values()), warnings=tuple(warnings))


def can_link(record: Record, rule: LinkRule, node: Hash) -> bool:
    """Whether an answer may link a node, with all that it brings along.

    Raises:
        CorruptError: As :func:`collect_links`.
    """
    return node in record.places or _add_closure(record, rule, node, _Added()) is None


def _check_same(record: Record, rule: LinkRule, wanted: Hash, *, root: Hash) -> None:
    """Refuse a node that would be linked but for another under its hash here."""
    node = _find_allowed(rule, wanted, root=root)
    known = record.places[wanted]
    if node is None or (node.type, name_object(BLOB, node.data)) == known:
        return
    raise CorruptError(
        f"hash {wanted} names two contents: {known[1]}, the thread's, "
        f"and {name_object(BLOB, node.data)}, put for this answer"
    )


def _add_closure(
    record: Record, rule: LinkRule, root: Hash, added: _Added
) -> str | None:
    """Add what a link brings along, all or nothing; give the reason for nothing."""
    if not rule.allows(root):
        return "not of this thread, put in this step, or named by a person"
    found: dict[Hash, Node] = {}
    size = added.size
    stack = [root]
    while stack:
        wanted = stack.pop()
        if wanted in record.places:
            _check_same(record, rule, wanted, root=root)
            continue
        if wanted in added.nodes or wanted in found:
            continue
        node = _find_allowed(rule, wanted, root=root)
        if node is None:
            return f"it refers to {wanted}, which may not be linked or is missing"
        found[wanted] = node
        size += len(node.data)
        count = len(found) + len(added.nodes)
        if count > MAX_LINKED_NODES or size > MAX_LINKED_BYTES:
            return "it brings too much along"
        stack.extend(node_refs(record, rule.find, node))
    added.nodes |= found
    added.size = size
    return None


def _find_allowed(rule: LinkRule, wanted: Hash, *, root: Hash) -> Node | None:
    builtin = find_builtin_node(wanted)
    if builtin is not None:
        return builtin
    node = rule.find(wanted)
    if node is None:
        return None
    # A type tells nothing of a private thread; all else must be allowed itself.
    allowed = rule.allows(wanted) or root in rule.named or node.type == META_TYPE
    return node if allowed else None


def node_refs(record: Record, find: FindNode, node: Node) -> tuple[Hash, ...]:
    """Return what a node refers to: its type, and the refs its schema declares."""
    kind = node.type
    schema = find_builtin_schema(kind)
    if kind == META_TYPE:
        # A schema's own payload refers to nothing.
        schema = {}
    elif schema is None and kind in record.places:
        schema = record.node(kind, META_TYPE).payload
    elif schema is None:
        found = find(kind)
        schema = found.payload if found and found.type == META_TYPE else {}
    return (kind, *find_refs(schema, node.payload))
