"""Nodes put by hand, found by their hash in the tree of ``refs/uwf/keep``."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from uwfgit.errors import CorruptError
from uwfgit.ids import Hash, Oid
from uwfgit.model.thread.record import NodePlace
from uwfgit.store.handle import Store
from uwfgit.store.layout import KEEP_REF, NODES, find_node_name
from uwfgit.store.objects import TreeEntry, list_tree
from uwfgit.store.refs import find_ref


class Kept(Struct, kw_only=True):
    """Keep's tree as of the last refresh; each of its folders is read once."""

    store: Store
    commit: Oid | None = None
    _roots: Mapping[str, TreeEntry] = field(default_factory=dict)
    _folders: dict[str, dict[Hash, tuple[NodePlace, ...]]] = field(default_factory=dict)

    def refresh(self) -> None:
        """Notice that others changed what is kept; costs the look at one ref.

        Raises:
            CorruptError: Keep's commit or tree cannot be read.
        """
        commit = find_ref(self.store, KEEP_REF)
        if commit != self.commit:
            self._roots = {} if commit is None else self._list_roots(commit)
            self._folders = {}
            # Not before: what cannot be read is told to each who looks.
            self.commit = commit

    def _list_roots(self, commit: Oid) -> Mapping[str, TreeEntry]:
        tree = self.store.raw.read_links(commit).tree
        nodes = list_tree(self.store, tree).get(NODES)
        return list_tree(self.store, nodes.oid) if nodes else {}

    def find(self, node: Hash) -> NodePlace | None:
        """Find a node's type and blob.

        Raises:
            CorruptError: Two contents stand under the hash, or a tree is missing.
        """
        name = node[:2]
        folder = self._folders.get(name)
        if folder is None:
            entry = self._roots.get(name)
            files = list_tree(self.store, entry.oid) if entry else {}
            folder = self._folders[name] = {}
            for file, blob in files.items():
                if parts := find_node_name(file):
                    known = folder.get(parts[0], ())
                    folder[parts[0]] = (*known, (parts[1], blob.oid))
        found = folder.get(node, ())
        if len(found) > 1:
            raise CorruptError(
                f"hash {node} names two contents: {found[0][1]} and {found[1][1]}",
                hint="one of the two was made to collide; drop it with: uwf cas drop",
            )
        return found[0] if found else None
