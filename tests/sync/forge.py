"""Forged histories: a thread's commits written anew with one change.

Commits are rewritten as raw bytes, so a forgery may hold what neither git nor
libgit2 would write. Without a change a thread comes out with its own oids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pygit2.enums import ObjectType

from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.node import Node, make_node
from uwfgit.model.thread.derive import run_files
from uwfgit.store.canonical import decode_payload, encode_json
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import find_node_name, step_folder

FILE = b"100644"


@dataclass(slots=True)
class Draft:
    """One commit about to be written; a forgery changes what it likes."""

    store: Store
    thread: ThreadId
    files: dict[str, tuple[bytes, Oid]]
    """Path → raw mode and oid: all that stands in the commit's tree."""
    parents: list[str]
    author: bytes
    committer: bytes
    headers: list[bytes]
    message: bytes
    raw: dict[str, bytes] = field(default_factory=dict)
    """Folder → raw entries to append to its tree."""
    folder_mode: bytes = b"40000"
    ordered: bool = True
    tree: str | None = None
    """Takes the place of the tree made of ``files``."""

    def path(self, name: str) -> str:
        """Give a path of the thread's folder."""
        return f"threads/{self.thread}/{name}"

    def find(self, ending: str) -> str:
        """Give the one path of the thread that matches a regular expression."""
        found = [path for path in self.files if re.search(f"{ending}$", path)]
        assert len(found) == 1, found
        return found[0]

    def read(self, path: str) -> bytes:
        return read(self.store, self.files[path][1])

    def put(self, path: str, data: bytes, mode: bytes = FILE) -> None:
        self.files[path] = (mode, write(self.store, ObjectType.BLOB, data))

    def put_node(self, folder: str, node: Node) -> None:
        self.put(f"{folder}/{node.name}", node.data)

    def move(self, old: str, new: str) -> None:
        self.files[new] = self.files.pop(old)

    def state(self, **changes: object) -> None:
        """Set fields of ``thread.json``."""
        path = self.path("thread.json")
        self.put(path, encode_json({**json.loads(self.read(path)), **changes}))

    def trailers(self) -> dict[str, str]:
        lines = self.message.decode().rstrip("\n").split("\n\n")[-1].split("\n")
        return dict(line.split(": ", 1) for line in lines)

    def trailer(self, key: str, value: str | None) -> None:
        """Set a trailer, or remove it."""
        values: dict[str, str | None] = {**self.trailers(), key: value}
        rest = self.message.decode().rstrip("\n").rpartition("\n\n")[0]
        lines = [f"{name}: {text}" for name, text in values.items() if text is not None]
        self.message = (rest + "\n\n" + "\n".join(lines) + "\n").encode()

    def replace(self, old: str, new: str) -> None:
        """Replace a text of the message."""
        assert old in self.message.decode()
        self.message = self.message.decode().replace(old, new).encode()


Change = Callable[[Draft], None]


def read(store: Store, oid: str) -> bytes:
    data: bytes = store.repo.read(oid)[1]
    return data


def write(store: Store, kind: ObjectType, data: bytes) -> Oid:
    return Oid(str(store.repo.odb.write(kind, data)))


def history(store: Store, tip: Oid) -> list[Oid]:
    """Give a thread's commits, oldest first, without genesis."""
    found: list[Oid] = []
    while tip != GENESIS_OID:
        found.append(tip)
        tip = Oid(_draft(store, tip).parents[0])
    return found[::-1]


def forge(
    store: Store,
    tip: Oid,
    changes: Mapping[int, Change],
    *,
    upto: int | None = None,
    drop: int | None = None,
) -> Oid:
    """Rewrite a thread's history and give its new tip; no ref is moved.

    Args:
        store: Where the thread is.
        tip: Its newest commit.
        changes: What to change of the n-th commit, 0 for the start. Later
            commits make their own changes on top of the forged tree.
        upto: The last commit to write.
        drop: A commit to leave out.
    """
    commits = history(store, tip)
    parent: str = GENESIS_OID
    before = _files(store, _draft(store, GENESIS_OID).tree)
    forged = dict(before)
    last = len(commits) - 1 if upto is None else upto
    for number, oid in enumerate(commits[: last + 1]):
        draft = _draft(store, oid)
        after = _files(store, draft.tree)
        if number == drop:
            before = after
            continue
        for path in before.keys() | after.keys():
            if before.get(path) != after.get(path):
                forged.pop(path, None)
                if path in after:
                    forged[path] = after[path]
        draft.parents[0], draft.tree, draft.files = parent, None, forged
        if number in changes:
            changes[number](draft)
        parent, before, forged = commit(draft), after, dict(draft.files)
    return Oid(parent)


def tree_of(store: Store, oid: str) -> Oid:
    """Give a commit's root tree."""
    return Oid(_draft(store, oid).tree or "")


def commit(draft: Draft) -> Oid:
    """Write a draft's trees and its commit."""
    tree = draft.tree or _write_tree(draft, "", draft.files)
    lines = [
        f"tree {tree}".encode(),
        *(f"parent {parent}".encode() for parent in draft.parents),
        b"author " + draft.author,
        b"committer " + draft.committer,
        *draft.headers,
    ]
    data = b"\n".join(lines) + b"\n\n" + draft.message
    return write(draft.store, ObjectType.COMMIT, data)


def draft_of(store: Store, oid: Oid) -> Draft:
    """Open a commit as it is, to write one like it."""
    draft = _draft(store, oid)
    draft.files, draft.tree = _files(store, draft.tree), None
    return draft


def _draft(store: Store, oid: str) -> Draft:
    head, _, message = read(store, oid).partition(b"\n\n")
    lines = head.split(b"\n")
    found = re.search(rb"Uwf-Thread: (\S+)", message)
    values = dict(line.split(b" ", 1) for line in lines if not line.startswith(b" "))
    return Draft(
        store=store,
        thread=ThreadId(found[1].decode() if found else ""),
        files={},
        parents=[line[7:].decode() for line in lines if line.startswith(b"parent ")],
        author=values[b"author"],
        committer=values[b"committer"],
        headers=[],
        message=message,
        tree=values[b"tree"].decode(),
    )


def _files(
    store: Store, tree: str | None, prefix: str = ""
) -> dict[str, tuple[bytes, Oid]]:
    found: dict[str, tuple[bytes, Oid]] = {}
    data = read(store, tree or "")
    for mode, name, oid in re.findall(rb"([0-7]+) ([^\0]+)\0(.{20})", data, re.DOTALL):
        path = prefix + name.decode()
        if mode == b"40000":
            found |= _files(store, oid.hex(), f"{path}/")
        else:
            found[path] = (mode, Oid(oid.hex()))
    return found


def _write_tree(
    draft: Draft, prefix: str, files: Mapping[str, tuple[bytes, Oid]]
) -> Oid:
    entries: dict[bytes, bytes] = {}
    folders: dict[str, dict[str, tuple[bytes, Oid]]] = {}
    for path, (mode, oid) in files.items():
        name, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(name, {})[rest] = (mode, oid)
        else:
            entries[name.encode()] = _entry(mode, name, oid)
    for name, inner in folders.items():
        oid = _write_tree(draft, f"{prefix}{name}/", inner)
        entries[name.encode() + b"/"] = _entry(draft.folder_mode, name, oid)
    ordered = [entries[key] for key in sorted(entries, reverse=not draft.ordered)]
    data = b"".join(ordered) + draft.raw.get(prefix.rstrip("/"), b"")
    return write(draft.store, ObjectType.TREE, data)


def _entry(mode: bytes, name: str, oid: str) -> bytes:
    return mode + b" " + name.encode() + b"\0" + bytes.fromhex(oid)


def raw_entry(mode: bytes, name: bytes, oid: str) -> bytes:
    """Make a raw entry to append to a tree."""
    return mode + b" " + name + b"\0" + bytes.fromhex(oid)


def added_nodes(draft: Draft, parent: Oid) -> dict[str, Node]:
    """Give the nodes a commit adds, by their paths."""
    before = draft_of(draft.store, parent).files
    found: dict[str, Node] = {}
    for path in draft.files.keys() - before.keys():
        name = find_node_name(path.rpartition("/")[2])
        if name is not None and "/nodes/" in path:
            payload = decode_payload(name[1], draft.read(path))
            found[path] = Node(hash=name[0], type=name[1], payload=payload)
    return found


def amend_step(
    *,
    step: Mapping[str, Any] | None = None,
    output: Mapping[str, Any] | None = None,
    output_type: Hash | None = None,
    detail: Mapping[str, Any] | None = None,
) -> Change:
    """Change what a step-like commit records, and all that follows from it there.

    Hashes, names, derived files, ``head`` and trailers fit the changed nodes, so
    what is found is the change itself. Role and status trailers stay as they are.
    """

    def change(draft: Draft) -> None:
        nodes = added_nodes(draft, Oid(draft.parents[0]))
        by_hash = {node.hash: (path, node) for path, node in nodes.items()}
        path, old = by_hash[Hash(draft.trailers()["Uwf-Node"])]
        folder = path.rpartition("/")[0]
        payload = {**old.payload, **(step or {})}
        changed = {"output": (output, output_type), "detail": (detail, None)}
        for key, (values, node_type) in changed.items():
            if values is None and node_type is None:
                continue
            where, inner = by_hash[Hash(payload[key])]
            del draft.files[where]
            node = make_node(
                node_type or inner.type,
                values if node_type else {**inner.payload, **(values or {})},
            )
            payload[key] = node.hash
            draft.put_node(folder, node)
        _put_step(draft, old, path, payload)

    return change


def _put_step(draft: Draft, old: Node, path: str, payload: Mapping[str, Any]) -> None:
    folder = path.rpartition("/")[0]
    new = make_node(old.type, payload)
    del draft.files[path]
    draft.put_node(folder, new)
    draft.trailer("Uwf-Node", new.hash)
    if json.loads(draft.read(draft.path("thread.json")))["head"] == old.hash:
        draft.state(head=new.hash)
    number = int(folder.split("/")[-2])
    output = json.loads(draft.read(draft.find(rf"{payload['output']}\.\w+\.json")))
    before = draft.path(step_folder(number, old.payload["role"]))
    after = draft.path(step_folder(number, payload["role"]))
    for name in [each for each in draft.files if each.startswith(f"{before}/")]:
        draft.move(name, after + name[len(before) :])
    tries = sorted(p for p in draft.files if p.startswith(f"{after}/attempts/"))
    own = tries[-1].rpartition("/")[0] if _is_attempt(draft) else after
    prompt, note = payload["edgePrompt"], payload["note"]
    files = run_files(output, payload["body"], edge_prompt=prompt, note=note)
    for name, data in files.items():
        draft.put(f"{own}/{name}", data)


def _is_attempt(draft: Draft) -> bool:
    return draft.trailers()["Uwf-Event"] == "attempt"


def resolve(
    store: Store, kept: Oid, given: Oid, *, change: Change | None = None
) -> Oid:
    """Resolve a divergence as section 15 of the design says; give the commit."""
    draft = draft_of(store, kept)
    times = [_time(store, oid) for oid in (kept, given)]
    who = f"uwf <uwf@localhost> {max(times)} +0000".encode()
    draft.parents, draft.author, draft.committer = [kept, given], who, who
    lines = ["Uwf-Format: 1", "Uwf-Event: resolve", f"Uwf-Thread: {draft.thread}"]
    draft.message = f"resolve: keep {kept}\n\n{chr(10).join(lines)}\n".encode()
    if change is not None:
        change(draft)
    return commit(draft)


def _time(store: Store, oid: Oid) -> int:
    return int(_draft(store, oid).committer.split()[-2])


def codes(problems: Iterable[Any]) -> set[str]:
    """Give the codes of problems."""
    return {problem.code for problem in problems}
