"""What commits add: nodes, steps and states, read off raw trees and commits.

Trees are compared as bytes and entered only where they differ, so a commit
costs the same however long its thread is. An object that cannot be read ends only
the ref it belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec import Struct, field

from uwfgit.errors import CorruptError
from uwfgit.ids import HASH_SHAPE, THREAD_SHAPE, Hash, ThreadId
from uwfgit.store import layout
from uwfgit.store.canonical import TEXT_TYPE
from uwfgit.store.raw import (
    COMMIT,
    MAX_COMMIT_BYTES,
    RawObjects,
    parse_links,
)

NodeKey = tuple[bytes, bytes, bytes]
"""Hash and type in ASCII, and the raw oid."""
StepKey = tuple[str, str]
"""Hash, and the thread in whose folder the step stands."""

_NAME = (
    rf"({HASH_SHAPE})\."
    rf"({TEXT_TYPE}(?=\.md\0)|(?!{TEXT_TYPE}){HASH_SHAPE}(?=\.json\0))\.(?:md|json)"
)
_ENTRY = re.compile(
    rf"(?:100644 {_NAME}|40000 ([^\0/]+)|[0-7]+ [^\0]+)\0(.{{20}})".encode(), re.DOTALL
)
_TRAILER = re.compile(rf"\nUwf-Node: ({HASH_SHAPE})\n".encode())
_NUMBER = re.compile(rb"[0-9]{5}")
_OWNER = rf"threads/{THREAD_SHAPE}|workflows/{layout.WORKFLOW_SHAPE}"
_TO_NODES = re.compile(
    rf"threads|workflows|{_OWNER}|(?:(?:{_OWNER})/)?nodes(?:/[^/]+){{0,3}}".encode()
)
"""The folders that hold nodes, at most three levels deep, and those on the way."""


class RawCommit(Struct, frozen=True):
    """What the lookup needs of a commit; raw oids."""

    oid: bytes
    tree: bytes
    parent: bytes | None
    aside: tuple[bytes, ...]
    """Further parents: what a resolve did not keep."""
    node: str | None
    """The node its trailer names: a hint, the tree counts."""


def read_commit(objects: RawObjects, oid: bytes) -> RawCommit:
    """Return tree and parents of a commit, and the node it names.

    Raises:
        CorruptError: It is missing, damaged, or not a commit.
    """
    name = oid.hex()
    data = objects.read(name, COMMIT, limit=MAX_COMMIT_BYTES)
    tree, parents = parse_links(name, data)
    node = _TRAILER.search(data, data.rfind(b"\n\n") + 1)
    return RawCommit(
        oid,
        bytes.fromhex(tree),
        bytes.fromhex(parents[0]) if parents else None,
        tuple(map(bytes.fromhex, parents[1:])),
        node[1].decode() if node else None,
    )


class Found(Struct, kw_only=True):
    """Rows gathered from commits, until they are written."""

    nodes: set[NodeKey] = field(default_factory=set)
    own_steps: dict[StepKey, tuple[bytes, int]] = field(default_factory=dict)
    """Found on the thread's own branch."""
    other_steps: dict[StepKey, tuple[bytes, int]] = field(default_factory=dict)
    """Found on another's: inherited by a fork, or claimed."""

    def add_step(
        self, key: StepKey, commit: bytes, number: int, *, branch: ThreadId | None
    ) -> None:
        """Keep where a step was added; the first commit of a branch counts."""
        steps = self.own_steps if key[1] == branch else self.other_steps
        steps.setdefault(key, (commit, number))


class Chain(Struct, frozen=True, kw_only=True):
    """Commits of a ref by first parents, oldest first."""

    commits: tuple[RawCommit, ...]
    base: bytes | None
    """The commit the oldest one stands on; ``None`` at a root."""
    is_whole: bool
    """Whether the walk got to where it should stop or to a root."""


def read_chain(objects: RawObjects, tip: bytes, stop: Callable[[bytes], bool]) -> Chain:
    """Walk first parents from ``tip`` down to a commit that ``stop`` accepts."""
    commits: list[RawCommit] = []
    oid: bytes | None = tip
    is_whole = True
    while oid is not None and not stop(oid):
        try:
            commits.append(read_commit(objects, oid))
        except CorruptError:
            is_whole = False
            break
        oid = commits[-1].parent
    return Chain(commits=tuple(reversed(commits)), base=oid, is_whole=is_whole)


def read_asides(
    objects: RawObjects, chain: Chain, stop: Callable[[bytes], bool]
) -> Iterator[Chain]:
    """Yield the chains that resolves on a chain set aside, and on those in turn.

    Args:
        objects: Where the commits are.
        chain: Where they begin.
        stop: Accepts a commit below which all is known; what is on a chain is.
    """
    seen = {commit.oid for commit in chain.commits}
    waiting = [oid for commit in chain.commits for oid in commit.aside]
    while waiting:
        aside = read_chain(objects, waiting.pop(), lambda oid: oid in seen or stop(oid))
        seen.update(commit.oid for commit in aside.commits)
        waiting += [oid for commit in aside.commits for oid in commit.aside]
        yield aside


def collect_chain(
    objects: RawObjects,
    chain: Chain,
    found: Found,
    *,
    branch: ThreadId | None,
    step_type: Hash,
) -> None:
    """Add what each commit of a branch's chain adds, as far as it can be read."""
    before = _find_tree(objects, chain.base) if chain.commits else None
    for commit in chain.commits:
        for path, rows in find_added(objects, before, commit.tree):
            found.nodes.update(rows)
            # What an unreadable base held already cannot be told apart.
            if before is not None or commit.parent is None:
                for key, number in find_steps(path, rows, step_type):
                    found.add_step(key, commit.oid, number, branch=branch)
        before = commit.tree


def _find_tree(objects: RawObjects, commit: bytes | None) -> bytes | None:
    try:
        return None if commit is None else read_commit(objects, commit).tree
    except CorruptError:
        return None


def find_steps(
    path: tuple[bytes, ...], rows: list[NodeKey], step_type: Hash
) -> list[tuple[StepKey, int]]:
    """Return the steps in one folder of nodes, and their number."""
    wanted = step_type.encode()
    steps = [row[0].decode() for row in rows if row[1] == wanted]
    number = _find_number(path) if steps else None
    if number is None:
        return []
    return [((step, path[1].decode()), number) for step in steps]


def _find_number(path: tuple[bytes, ...]) -> int | None:
    match path:
        case (b"threads", _, b"nodes", _, name, _) if _NUMBER.fullmatch(name):
            number = int(name)
            folder = b"/".join(path[2:5]).decode(errors="replace")
            return number if folder == layout.nodes_folder(number) else None
        case _:
            return None


def find_added(
    objects: RawObjects,
    old: bytes | None,
    new: bytes,
    *,
    seen: set[bytes] | None = None,
) -> Iterator[tuple[tuple[bytes, ...], list[NodeKey]]]:
    """Yield the nodes a root tree has beyond an older one, folder by folder.

    Nodes count below a ``nodes`` folder of a thread, of a workflow, or of the
    root (keep), at most three levels deep. A folder that cannot be read is empty.

    Args:
        seen: Folders of which threads not to enter again; those entered are added.
    """
    skipped = set() if seen is None else seen
    stack: list[tuple[tuple[bytes, ...], bytes | None, bytes]] = [((), old, new)]
    while stack:
        path, old, new = stack.pop()
        rows, folders = _compare(
            _read_or_empty(objects, old), _read_or_empty(objects, new)
        )
        if rows and b"nodes" in path:
            yield path, rows
        for name, below, oid in folders:
            # With the thread: a replayed thread's folders are those of its origin.
            key = b"".join((*path[1:2], oid))
            if key not in skipped and _TO_NODES.fullmatch(b"/".join((*path, name))):
                skipped.add(key)
                stack.append(((*path, name), below, oid))


def holds_node(objects: RawObjects, tip: bytes, wanted: tuple[bytes, bytes]) -> bool:
    """Whether a commit's tree holds a node: its hash, and its blob's oid."""
    tree = _find_tree(objects, tip)
    return tree is not None and any(
        (node, oid) == wanted
        for _, rows in find_added(objects, None, tree)
        for node, _, oid in rows
    )


def _read_or_empty(objects: RawObjects, tree: bytes | None) -> bytes:
    try:
        return b"" if tree is None else objects.read_tree(tree.hex())
    except CorruptError:
        return b""


def _compare(
    before: bytes, after: bytes
) -> tuple[list[NodeKey], list[tuple[bytes, bytes | None, bytes]]]:
    """Return new nodes, and new or changed folders with the oid they had."""
    known: dict[bytes, bytes] = {}
    if after.startswith(before):
        # The usual case in the widest trees: a step appended to its bucket.
        entries = _ENTRY.findall(after, len(before))
    else:
        earlier = _ENTRY.findall(before)
        known = {name: oid for _, _, name, oid in earlier if name}
        skipped = set(earlier)
        entries = [entry for entry in _ENTRY.findall(after) if entry not in skipped]
    return (
        [(node, kind, oid) for node, kind, _, oid in entries if node],
        [(name, known.get(name), oid) for _, _, name, oid in entries if name],
    )
