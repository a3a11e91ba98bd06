"""Nodes: bytes, hash, schema and closure, each node once a run.

A hash is resolved in the nodes of the thread as of its commit, and nowhere
else; one hash has one content there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final, TypeAlias

from msgspec import Struct, field

from uwfgit.constants import MAX_BLOB_BYTES, MAX_LINKED_BYTES
from uwfgit.errors import CorruptError
from uwfgit.ids import Hash, Oid
from uwfgit.model.node import (
    BUILTIN_NAMES,
    Node,
    find_builtin_node,
    node_file_name,
    validate_node,
)
from uwfgit.model.schema.check import check_schema, find_refs
from uwfgit.model.schema.fit import Collect, Test, compile_fit, compile_refs
from uwfgit.model.thread.record import NodePlaces
from uwfgit.store.canonical import (
    META_TYPE,
    Json,
    decode_payload,
    format_path,
    node_hash,
)
from uwfgit.store.layout import find_node_name
from uwfgit.store.raw import BLOB
from uwfgit.sync.verify.rawtree import Objects, TreeChanges
from uwfgit.sync.verify.report import VerifyFindings, refusal

_BUILTIN: Final = frozenset(BUILTIN_NAMES.values())
_MAX_BYTES: Final = MAX_LINKED_BYTES + 3 * MAX_BLOB_BYTES
"""What is linked, and the step, its output and its detail."""
Places: TypeAlias = Mapping[Hash, tuple[Hash, Oid]]
"""Where nodes stand: hash → type and blob."""

_KEPT_NODES: Final = 16
_KEPT_SCHEMAS: Final = 256


class _Schema(Struct, frozen=True, kw_only=True):
    payload: Json
    is_sound: bool
    fit: Test | None
    refs: Collect


class NodeReader(Struct, kw_only=True):
    """Reads nodes, and keeps the schemas and the last few nodes it read."""

    objects: Objects
    _nodes: dict[tuple[Hash, Hash, Oid], Node] = field(default_factory=dict)
    _schemas: dict[Oid, _Schema] = field(default_factory=dict)

    def read(self, node: Hash, node_type: Hash, oid: Oid) -> Node:
        """Read a node that stands under a name.

        Raises:
            CorruptError: It is missing, too large, not in the one form its
                payload has, or of another hash.
        """
        key = (node, node_type, oid)
        known = self._nodes.get(key)
        if known is None:
            known = _decode(node, node_type, self.objects.read(oid, BLOB))
            if len(self._nodes) >= _KEPT_NODES:
                del self._nodes[next(iter(self._nodes))]
            self._nodes[key] = known
        return known

    def schema(self, node_type: Hash, oid: Oid) -> _Schema:
        """Read the schema node of a type, ready for use."""
        known = self._schemas.get(oid)
        if known is None:
            if len(self._schemas) >= _KEPT_SCHEMAS:
                self._schemas.clear()
            payload = self.read(node_type, META_TYPE, oid).payload
            is_sound = all(each.severity != "error" for each in check_schema(payload))
            fit = compile_fit(payload) if is_sound else None
            refs: Collect = _no_refs
            if is_sound:
                try:
                    refs = compile_refs(payload) or _no_refs
                except ValueError:
                    refs = partial(find_refs, payload)
            known = _Schema(payload=payload, is_sound=is_sound, fit=fit, refs=refs)
            self._schemas[oid] = known
        return known


def _decode(node: Hash, node_type: Hash, data: bytes) -> Node:
    try:
        payload = decode_payload(node_type, data)
    except CorruptError as exc:
        raise refusal("node", f"node {node}: {exc}") from exc
    if node_hash(node_type, payload) != node:
        raise refusal("hash", f"the content of node {node} has another hash")
    if node in _BUILTIN:
        own = find_builtin_node(node)
        if own is None or own.data != data:
            raise refusal("collision", f"node {node} is not the built-in type")
    return Node(hash=node, type=node_type, payload=payload)


def _no_refs(_value: Json) -> Iterable[Hash]:
    return ()


def load_node(
    reader: NodeReader, places: Places, node: Hash, expected: Hash | None = None
) -> Node:
    """Read a node of a thread.

    Raises:
        CorruptError: The thread lacks it, it is damaged, or of another type.
    """
    place = places.get(node)
    if place is None:
        raise refusal("closure", f"the thread lacks node {node}")
    if expected is not None and place[0] != expected:
        raise refusal("type", f"node {node} has type {place[0]}, not {expected}")
    return reader.read(node, *place)


def take_added(
    changes: TreeChanges,
    folder: str,
    known: NodePlaces,
    findings: VerifyFindings,
    *,
    own: str = "",
) -> NodePlaces:
    """Take the nodes that a commit adds to a folder out of its changes.

    What is no added node stays, to be told as a change that no rule gives.

    Args:
        own: The node that stands in its event's folder, known before or not.
    """
    added: NodePlaces = {}
    for path in [each for each in changes if each.startswith(f"{folder}/")]:
        old, new = changes[path]
        name = find_node_name(path[len(folder) + 1 :])
        if old is not None or new is None or name is None:
            continue
        del changes[path]
        node, place = name[0], (name[1], new)
        earlier = known.get(node) or added.get(node)
        if earlier is None or (node == own and earlier == place):
            added[node] = place
        elif earlier == place:
            findings.note("duplicate", f"node {node} stands in the thread", path)
        else:
            message = f"hash {node} names two contents: {earlier[1]} and {new}"
            findings.note("collision", message, path)
    return added


def without(known: NodePlaces, own: Hash) -> NodePlaces:
    """Return the nodes known before an event, but for the one that is its own."""
    if own not in known:
        return known
    return {node: place for node, place in known.items() if node != own}


def close_over(
    reader: NodeReader,
    roots: Iterable[Hash],
    *,
    known: NodePlaces,
    added: NodePlaces,
    folder: str,
    findings: VerifyFindings,
) -> frozenset[Hash]:
    """Check every node that is reachable from the roots and not known before.

    Told are nodes that are missing, damaged or do not fit their schema, and
    added ones that nothing reaches; returned those that are whole and fit.
    """
    sound: set[Hash] = set()
    met: set[Hash] = set()
    waiting = list(roots)
    limit = reader.objects.bytes_read + _MAX_BYTES
    while waiting:
        node = waiting.pop()
        if node in met or node in known:
            continue
        met.add(node)
        place = added.get(node)
        if place is None:
            findings.note("closure", f"node {node} is missing", folder)
            continue
        path = f"{folder}/{node_file_name(node, place[0])}"
        checked = _check(reader, node, known, added, findings, path)
        if reader.objects.bytes_read > limit:
            raise refusal("size", "the nodes of one event are too large", folder)
        sound |= {node} if checked.fits else set()
        waiting += checked.refs
    for node in added.keys() - met:
        path = f"{folder}/{node_file_name(node, added[node][0])}"
        findings.note("extra", f"nothing in this event leads to node {node}", path)
    return frozenset(sound)


class _Checked(Struct, frozen=True, kw_only=True):
    fits: bool
    refs: tuple[Hash, ...] = ()


def _check(
    reader: NodeReader,
    node: Hash,
    known: NodePlaces,
    added: NodePlaces,
    findings: VerifyFindings,
    path: str,
) -> _Checked:
    node_type, oid = added[node]
    try:
        found = reader.read(node, node_type, oid)
        place = known.get(node_type) or added.get(node_type)
        if place is None:
            raise refusal("closure", f"the thread lacks type {node_type}")
        if place[0] != META_TYPE:
            raise refusal("type", f"type {node_type} is not a schema")
        schema = reader.schema(node_type, place[1])
    except CorruptError as exc:
        for problem in exc.problems:
            findings.note(problem.code, problem.message, path)
        return _Checked(fits=False)
    fits = _fits(found, schema, findings, path)
    return _Checked(fits=fits, refs=(node_type, *schema.refs(found.payload)))


def _fits(node: Node, schema: _Schema, findings: VerifyFindings, path: str) -> bool:
    if node.type != META_TYPE:
        if not schema.is_sound:
            findings.note("schema", f"type {node.type} is not a valid schema", path)
            return False
        if schema.fit is not None and schema.fit(node.payload):
            return True
    violations = validate_node(node, schema.payload)
    for violation in violations:
        where = format_path(violation.path) or "(root)"
        message = f"node {node.hash}: {where}: {violation.message}"
        findings.note("schema", message, path)
    return not violations
