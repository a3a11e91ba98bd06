"""Keeping the code before and after a run; what goes wrong is a warning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from uwfgit.code.chain import Label, Snapshot, add_snapshot, chain_ref, read_tips
from uwfgit.code.snapshots.leave_out import warn_left_out
from uwfgit.code.snapshots.take import Camera, Taken
from uwfgit.code.worktree import Deadline, WorkTree
from uwfgit.errors import RefConflictError, StoreError
from uwfgit.ids import Oid

_TRIES = 3


class Kept(Struct, frozen=True, kw_only=True):
    """What came of keeping the code: a tree, or none and a warning why."""

    tree: Oid | None = None
    warnings: tuple[str, ...] = ()


class Keeper(Struct, frozen=True, kw_only=True):
    """Keeps the code of the work trees that runs happen in.

    Attributes:
        camera: Takes the snapshots.
        environment: What git's starts from.
        now: The time in seconds.
        on_kept: Told of a work tree whose code was kept.
    """

    camera: Camera
    environment: Mapping[str, str]
    now: Callable[[], int]
    on_kept: Callable[[WorkTree], None] = lambda _: None

    def keep(
        self,
        folder: Path,
        label: Label,
        *,
        origin: Callable[[], Oid | None] = lambda: None,
    ) -> Kept:
        """Put the files of the work tree around a folder on a thread's chain.

        Never fails: a step must not be lost to its snapshot. Outside of a work
        tree there is nothing to keep.

        Args:
            origin: Gives the snapshot that a fork's first one goes on from.
        """
        tree = WorkTree.find(folder, self.environment)
        if tree is None:
            return Kept()
        try:
            snapshot, taken = take(
                tree, self.camera, label, origin=origin, time=self.now()
            )
            self.on_kept(tree)
        except (StoreError, OSError) as exc:
            hint = getattr(exc, "hint", None)
            why = f"{exc}; {hint}" if hint else str(exc)
            return Kept(warnings=(f"no code snapshot {label.when} the run: {why}",))
        return Kept(tree=snapshot.tree, warnings=tuple(warn_left_out(taken.left_out)))


def take(
    tree: WorkTree,
    camera: Camera,
    label: Label,
    *,
    origin: Callable[[], Oid | None],
    time: int,
) -> tuple[Snapshot, Taken]:
    """Take a snapshot and put it on the chain of the thread it is labelled with.

    Raises:
        StoreError: It cannot be taken.
    """
    ref = chain_ref(label.thread)
    deadline = Deadline.after(camera.bounds.seconds)
    for _ in range(_TRIES):
        tips = read_tips(tree, ref, deadline=deadline)
        last = None if tips.snapshot is None else tips.snapshot.tree
        with camera.taking(tree, last) as taken:
            try:
                made = add_snapshot(
                    tree,
                    taken.tree,
                    label,
                    tips=tips,
                    origin=None if tips.snapshot else origin(),
                    time=time,
                    deadline=deadline,
                )
            except RefConflictError:
                continue
            return made, taken
    raise StoreError(f"others keep moving '{ref}'")
