"""Threads whose nodes hold anything at all, under hashes that are right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from tests.sync.forge import Draft, forge
from uwfgit.ids import Hash, Oid
from uwfgit.model.node import FORMAT_TYPES, Node, make_node
from uwfgit.model.thread.record import Record
from uwfgit.store.canonical import Json
from uwfgit.store.layout import find_node_name

Place: TypeAlias = tuple[str | int, ...]

GONE: Final[Any] = object()
"""Stands for: leave it out."""


def iter_places(value: Json, place: Place = ()) -> Iterator[Place]:
    """Yield every place in a payload, the whole first."""
    yield place
    if isinstance(value, dict):
        for key, item in value.items():
            yield from iter_places(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from iter_places(item, (*place, index))


def put_at(value: Json, place: Place, new: Json) -> Json:
    """Return a payload with another value at one place."""
    if not place:
        return None if new is GONE else new
    first, *rest = place
    made = value.copy()
    if rest:
        made[first] = put_at(value[first], tuple(rest), new)
    elif new is GONE:
        del made[first]
    else:
        made[first] = new
    return made


@dataclass(slots=True)
class _Retyping:
    """The nodes of a thread made again, those first that others name."""

    old: dict[Hash, Node]
    payloads: dict[Hash, Json]
    made: dict[Hash, Node] = field(default_factory=dict)

    def value(self, old: Json) -> Json:
        if isinstance(old, dict):
            return {key: self.value(item) for key, item in old.items()}
        if isinstance(old, list):
            return [self.value(item) for item in old]
        return self.name(Hash(old)) if isinstance(old, str) else old

    def name(self, old: Hash) -> Hash:
        node = self.old.get(old)
        if node is None or old in FORMAT_TYPES.values():
            return old
        if old not in self.made:
            payload = self.payloads.get(old, node.payload)
            self.made[old] = make_node(self.name(node.type), self.value(payload))
        return self.made[old].hash

    def change(self, draft: Draft) -> None:
        for path in list(draft.files):
            folder, _, file = path.rpartition("/")
            found = find_node_name(file)
            if found is not None and found[0] in self.made:
                del draft.files[path]
                draft.put_node(folder, self.made[found[0]])
            elif file == "thread.json":
                draft.put(path, self.text(draft.read(path)))
        draft.message = self.text(draft.message)

    def text(self, data: bytes) -> bytes:
        for old, new in self.made.items():
            data = data.replace(old.encode(), new.hash.encode())
        return data


def retype(record: Record, changed: Hash, payload: Json) -> Oid:
    """Rewrite a thread with another payload for one node; no ref is moved.

    All that names the node names the new one: nodes, file names, ``thread.json``
    and messages. What is derived of it stays as it was.
    """
    nodes = {name: record.node(name) for name in record.places}
    work = _Retyping(old=nodes, payloads={changed: payload})
    for name in nodes:
        work.name(name)
    changes = dict.fromkeys(range(len(nodes)), work.change)
    return forge(record.store, record.tip.commit, changes)
