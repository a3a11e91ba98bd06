"""Threads on their way into new ones: what is called how, in their texts too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from uwfgit.constants import STATUS
from uwfgit.ids import HASH_SHAPE, Hash, Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.mask import Masker
from uwfgit.model.node import META_TYPE, Node, find_builtin_node, make_node
from uwfgit.model.thread.derive import find_hash_strings
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.tip import Tip
from uwfgit.store.canonical import Json

_THREAD: Final = re.compile(r"(?<![0-9A-Za-z_])[0-7][0-9A-HJKMNP-TV-Z]{25}(?!\w)")
_WORD: Final = re.compile(rf"(?<![0-9A-Za-z_]){HASH_SHAPE}(?![0-9A-Za-z_])", re.ASCII)


class Redone(Struct, frozen=True, kw_only=True):
    """The new thread, and those of its commits that count as made here.

    ``source`` is the tip of the old one that it was made of.
    """

    tip: Tip
    source: Oid
    made_here: tuple[Oid, ...]


class Copies(Struct, kw_only=True):
    """Threads that are written again together, and what of them is done.

    Attributes:
        names: Their new ids, by the old ones.
        parents: Whose step each of them does.
        done: Those that are whole.
        hashes: What the nodes of each are called, by what they were.
        commits: The new commit that stands for an old one.
    """

    names: Mapping[ThreadId, ThreadId]
    parents: Mapping[ThreadId, ThreadId] = field(default_factory=dict)
    done: dict[ThreadId, Redone] = field(default_factory=dict)
    hashes: dict[ThreadId, dict[Hash, Hash]] = field(default_factory=dict)
    commits: dict[Oid, Oid] = field(default_factory=dict)


class Redo(Struct, kw_only=True):
    """One thread on its way into a new one; ``thread`` is that one's id."""

    copies: Copies
    ledger: Ledger
    source: Record
    masker: Masker
    thread: ThreadId
    last: Oid
    """The newest event that is written again."""
    hashes: dict[Hash, Hash] = field(default_factory=dict)
    """Of nodes made again: what they were called, and are called."""
    nodes: dict[Hash, Node] = field(default_factory=dict)
    """Linked nodes that were made again, by their new hash."""
    found: set[str] = field(default_factory=set)
    """What was taken out in the event at hand."""

    def text(self, text: str) -> str:
        """Return a text without what must go, and with the nodes' new names."""
        masked = self.masker.mask(text, self.found)
        masked = _WORD.sub(lambda m: self.hashes.get(Hash(m[0]), Hash(m[0])), masked)
        if not self.copies.parents:
            return masked
        # What a thread was told of another names it.
        names = self.copies.names
        return _THREAD.sub(lambda m: names.get(ThreadId(m[0]), ThreadId(m[0])), masked)

    def value(self, value: Json) -> Json:
        """Return a JSON value with its strings changed; keys and statuses stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                key: item if key == STATUS else self.value(item)
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        return value

    def node(self, old: Hash) -> Hash:
        """Make a node again, and before it all that it refers to."""
        known = self.hashes.get(old)
        if known is not None:
            return known
        if find_builtin_node(old) is not None or old not in self.source.places:
            return old
        node = self.source.node(old)
        node_type = node.type if node.type == META_TYPE else self.node(node.type)
        for name in find_hash_strings(node.payload):
            self.node(name)
        new = make_node(node_type, self.value(node.payload))
        self.hashes[old] = new.hash
        self.nodes[new.hash] = new
        return new.hash
