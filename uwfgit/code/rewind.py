"""Files as they were: the work tree made to be a snapshot, and the way back kept.

Only files change; HEAD, index and branches stay. What no snapshot holds is never
overwritten or removed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.code.chain import (
    Label,
    Snapshot,
    Tips,
    add_snapshot,
    chain_ref,
    find_snapshot,
    move_chain,
    read_tips,
    write_snapshot,
)
from uwfgit.code.changes import ABSENT, SUBMODULE, Change, list_changes
from uwfgit.code.snapshots.take import Camera, Taken, list_blobs
from uwfgit.code.worktree import WorkTree, name_text
from uwfgit.errors import StateError, StoreError, name_some
from uwfgit.ids import Oid


class Rewound(Struct, frozen=True, kw_only=True):
    """What a rewind did: the snapshot of before it, and what changed on disk."""

    before: Snapshot
    changes: tuple[Change, ...]

    @property
    def submodules(self) -> tuple[bytes, ...]:
        """Submodules that stood at another commit; they were not moved."""
        return tuple(
            each.path
            for each in self.changes
            if SUBMODULE in {each.old_mode, each.new_mode}
        )


def rewind(
    tree: WorkTree,
    camera: Camera,
    label: Label,
    target: Oid,
    *,
    discard: bool,
    time: int,
    newest: Oid | None = None,
) -> Rewound:
    """Make the files of a work tree those of a snapshot.

    Args:
        tree: The work tree.
        camera: Takes the snapshot of now.
        label: Of the snapshots this adds to the thread's chain.
        target: The tree of the wanted snapshot.
        discard: Whether to go on when files changed since the chain's newest.
        time: When.
        newest: What the thread's newest step left, for one that has no chain here:
            a fork, or a thread of others.

    Raises:
        StateError: Files changed by hand; or some that no snapshot holds are in
            the way. Nothing was touched.
        StoreError: The snapshot of now cannot be taken; or git could not write
            all files, which the hint says how to take back.
    """
    tips = read_tips(tree, chain_ref(label.thread))
    last = newest if tips.snapshot is None else tips.snapshot.tree
    with camera.taking(tree, last) as taken:
        if not discard:
            _require_unchanged(tree, last, taken, has_chain=tips.snapshot is not None)
        changes = list_changes(tree, taken.tree, target)
        blocked = tuple(_list_blocked(tree, taken, changes))
        if blocked:
            raise StateError(
                f"in the way, and in no snapshot: {_name(blocked)}",
                hint="move them aside, then try again",
            )
        now = add_snapshot(
            tree, taken.tree, replace(label, when="before"), tips=tips, time=time
        )
        if changes:
            _write_files(tree, taken, target, now)
    _note_rewound(tree, label, target, now, tips, time)
    return Rewound(before=now, changes=changes)


def _require_unchanged(
    tree: WorkTree, last: Oid | None, taken: Taken, *, has_chain: bool
) -> None:
    committed = None if has_chain else tree.resolve("HEAD^{tree}")
    if last is None or taken.tree in (last, committed):
        return
    changed = [each.path for each in list_changes(tree, last or taken.tree, taken.tree)]
    raise StateError(
        f"changed since the thread's last snapshot: {_name(changed)}",
        hint="--yes rewinds all the same; the files of now can be brought back",
    )


def _name(paths: Iterable[bytes]) -> str:
    return name_some([name_text(path) for path in paths])


def _write_files(tree: WorkTree, taken: Taken, target: Oid, now: Snapshot) -> None:
    # What git knows of files that were written anew with the same content.
    tree.run(["update-index", "-q", "--refresh"], index=taken.index)
    words = ["read-tree", "-m", "-u", taken.tree, target]
    done = tree.run(words, index=taken.index)
    if done.code:
        thread = now.label.thread
        raise StoreError(
            f"git could not write all files: {done.complaint}",
            hint=f"back to before: uwf thread rewind {thread} --to {now.commit[:12]} "
            "--yes",
        )


def _note_rewound(
    tree: WorkTree, label: Label, target: Oid, now: Snapshot, tips: Tips, time: int
) -> None:
    """Let the chain go on from the wanted snapshot; what was left stays on it.

    So the lines that came back are still those of the steps that wrote them.
    """
    if now.tree == target:
        return
    ref = chain_ref(label.thread)
    wanted = find_snapshot(tree, ref, target)
    made = write_snapshot(
        tree,
        target,
        replace(label, when="now"),
        previous=wanted or now,
        head=tips.head,
        further=() if wanted is None else (now.commit,),
        time=time,
    )
    move_chain(tree, ref, new=made.commit, old=now.commit)


def _list_blocked(
    tree: WorkTree, taken: Taken, changes: tuple[Change, ...]
) -> Iterator[bytes]:
    """List what a rewind would overwrite or remove that the snapshot does not hold."""
    disk = _Disk(tree=tree, taken=taken)
    for change in changes:
        if change.path in disk.unheld or (
            change.new_mode != ABSENT and not disk.is_free(change)
        ):
            yield change.path


class _Disk:
    """The files there are, against those the snapshot of now holds."""

    def __init__(self, *, tree: WorkTree, taken: Taken) -> None:
        self.root = os.fsencode(tree.root)
        self.held = frozenset(list_blobs(tree, taken.tree))
        left = {each.path.rstrip(b"/") for each in taken.left_out}
        self.unheld = left | _list_assumed(tree, taken.index)

    def is_free(self, change: Change) -> bool:
        """Whether a path can be written without a loss."""
        return self._has_free_folders(change.path) and self._is_free_itself(change)

    def _has_free_folders(self, path: bytes) -> bool:
        parts = path.split(b"/")
        for end in range(1, len(parts)):
            folder = b"/".join(parts[:end])
            if folder in self.unheld:
                return False
            mode = self._mode(folder)
            if mode is None or folder in self.held:
                return True
            if not stat.S_ISDIR(mode):
                return False
        return True

    def _is_free_itself(self, change: Change) -> bool:
        mode = self._mode(change.path)
        if mode is None or change.old_mode != ABSENT:
            return True
        if not stat.S_ISDIR(mode):
            return False
        return all(path in self.held for path in self._walk(change.path))

    def _mode(self, path: bytes) -> int | None:
        try:
            return os.lstat(os.path.join(self.root, path)).st_mode  # noqa: PTH118 - bytes
        except OSError:
            return None

    def _walk(self, folder: bytes) -> Iterator[bytes]:
        top = os.path.join(self.root, folder)  # noqa: PTH118 - bytes
        for parent, folders, names in os.walk(top):
            inner = [os.path.join(parent, each) for each in folders]  # noqa: PTH118 - bytes
            paths = [os.path.join(parent, each) for each in names]  # noqa: PTH118 - bytes
            paths += [path for path in inner if os.path.islink(path)]  # noqa: PTH114 - bytes
            yield from (os.path.relpath(path, self.root) for path in paths)


def _list_assumed(tree: WorkTree, index: Path) -> set[bytes]:
    """List the files that git was told to take as unchanged: it does not look."""
    lines = tree.ask("ls-files", "-v", "-z", index=index).split(b"\0")
    return {line[2:] for line in lines if line[:1].islower()}
