"""The files of a work tree as one git tree, made without touching anything there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from uwfgit.code.snapshots.leave_out import Bounds, IsSecret, LeftOut, leave_out
from uwfgit.code.snapshots.status import ARGUMENTS, Status, parse_status
from uwfgit.code.worktree import Deadline, WorkTree
from uwfgit.errors import StoreError
from uwfgit.ids import Oid
from uwfgit.store.git.gitcmd import GitResult

_MOST_WORDS: Final = 500
"""Paths that one call of git is given."""
_FAILURES: Final = 20
"""Files that git may refuse one by one before it is not the files' fault."""


class Taken(Struct, frozen=True, kw_only=True):
    """A snapshot: its tree, and an index that says the same, for this block only."""

    tree: Oid
    index: Path
    left_out: tuple[LeftOut, ...]


class Camera(Struct, frozen=True, kw_only=True):
    """Takes snapshots; ``folder`` is where copies of an index stand meanwhile.

    ``is_secret`` says of an untracked file whether the scan would stop it.
    """

    folder: Path
    home: Path
    is_secret: IsSecret
    bounds: Bounds = field(default_factory=Bounds)

    @contextmanager
    def taking(
        self, tree: WorkTree, last: Oid | None, *, objects: Path | None = None
    ) -> Iterator[Taken]:
        """Take a snapshot of a work tree; what is new in it is in its repository.

        Args:
            tree: The work tree.
            last: The tree of the snapshot before, if there is one.
            objects: Where new objects go in place of the repository.

        Raises:
            StoreError: It cannot be taken, or would cost too much. Nothing but
                unreachable objects is left behind.
        """
        if tree.root == Path(os.path.realpath(self.home)):
            raise StoreError("the work tree is the home folder")
        deadline = Deadline.after(self.bounds.seconds)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            room = tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=self.folder)
        except OSError as exc:
            raise StoreError(f"cannot copy the index: {exc.strerror}") from exc
        try:
            index = Path(room) / "index"
            _copy_index(tree, index)
            desk = _Desk(tree=tree, index=index, objects=objects, deadline=deadline)
            left = self._fill(desk, last)
            oid = Oid(desk.ask("write-tree").decode().strip())
            yield Taken(tree=oid, index=index, left_out=left)
        finally:
            shutil.rmtree(room, ignore_errors=True)

    def _fill(self, desk: _Desk, last: Oid | None) -> tuple[LeftOut, ...]:
        """Bring the copy of the index up to what the files are."""
        tree, deadline = desk.tree, desk.deadline
        status = parse_status(desk.ask(*ARGUMENTS))
        left = leave_out(
            tree,
            status,
            bounds=self.bounds,
            is_secret=self.is_secret,
            known=_known_blobs(tree, last, status.untracked, deadline),
            index=desk.index,
            deadline=deadline,
        )
        return (*left, *_add(desk, status))


def write_staged(tree: WorkTree, room: Path, objects: Path) -> Oid:
    """Write what is staged as a tree, among objects that nobody keeps.

    Raises:
        StoreError: There are conflicts, or git cannot.
    """
    index = room / "staged-index"
    _copy_index(tree, index)
    written = tree.ask("write-tree", index=index, objects=objects)
    return Oid(written.decode().strip())


def sweep(folder: Path) -> None:
    """Remove the copies of an index that killed processes left."""
    with suppress(OSError):
        for each in folder.iterdir():
            pid = each.name.partition("-")[0]
            if pid.isdigit() and not _is_alive(int(pid)):
                shutil.rmtree(each, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _copy_index(tree: WorkTree, copy: Path) -> None:
    """Copy the index with its time: else git misses a change of equal size."""
    try:
        shutil.copy2(tree.index, copy)
    except FileNotFoundError:
        # A fresh repository has none.
        return
    except OSError as exc:
        raise StoreError(f"cannot copy the index: {exc.strerror}") from exc


def _known_blobs(
    tree: WorkTree, last: Oid | None, paths: Sequence[bytes], deadline: Deadline
) -> Callable[[], Mapping[bytes, str]]:
    """Return what reads, once and when asked, some blobs of the last snapshot."""
    found: dict[bytes, str] | None = None

    def read() -> Mapping[bytes, str]:
        nonlocal found
        if found is None:
            wanted = paths if len(paths) <= _MOST_WORDS else ()
            found = {} if last is None else list_blobs(tree, last, wanted, deadline)
        return found

    return read


def list_blobs(
    tree: WorkTree,
    oid: Oid,
    paths: Sequence[bytes] = (),
    deadline: Deadline | None = None,
) -> dict[bytes, str]:
    """List the objects of a tree by path; of one that is not here, nothing.

    Args:
        paths: Only these; without any, all.
    """
    words = ["ls-tree", "-r", "-z", "--full-tree", oid, "--", *map(os.fsdecode, paths)]
    done = tree.run(words, deadline=deadline)
    if done.code:
        return {}
    lines = (line.partition(b"\t") for line in done.stdout.split(b"\0") if line)
    return {path: head.split(b" ")[2].decode() for head, _, path in lines}


class _Desk(Struct, frozen=True, kw_only=True):
    """Where one snapshot is made: git with the copy of the index."""

    tree: WorkTree
    index: Path
    objects: Path | None
    deadline: Deadline

    def run(self, *words: str, lines: bytes = b"") -> GitResult:
        return self.tree.run(
            words,
            input=lines,
            index=self.index,
            objects=self.objects,
            deadline=self.deadline,
        )

    def ask(self, *words: str, lines: bytes = b"") -> bytes:
        done = self.run(*words, lines=lines)
        if done.code:
            raise StoreError(f"git {words[0]} failed: {done.complaint}")
        return done.stdout


def _add(desk: _Desk, status: Status) -> tuple[LeftOut, ...]:
    beyond = [path for path in status.gone if _is_beyond_link(desk.tree.root, path)]
    if beyond:
        # git takes no path whose folder has become a link, to remove it neither.
        lines = b"".join(b"0 %s\t%s\0" % (status.zero, path) for path in beyond)
        desk.ask("update-index", "-z", "--index-info", lines=lines)
    gone = [path for path in status.gone if path not in set(beyond)]
    paths = [*gone, *status.unmerged, *status.changed, *status.untracked]
    failed: list[bytes] = []
    if paths:
        _add_paths(desk, paths, failed)
    return tuple(LeftOut(path=path, why="git cannot add it") for path in failed)


def _is_beyond_link(root: Path, path: bytes) -> bool:
    folder = os.fsencode(root)
    for part in path.split(b"/")[:-1]:
        folder = os.path.join(folder, part)  # noqa: PTH118 - bytes
        if os.path.islink(folder):  # noqa: PTH114 - bytes
            return True
    return False


def _add_paths(desk: _Desk, paths: Sequence[bytes], failed: list[bytes]) -> None:
    """Add files to the copy of the index; of those that fail, half by half.

    git adds all or nothing: one filter that fails would cost all the others.
    """
    words = ("update-index", "-z", "--add", "--remove", "--replace", "--stdin")
    done = desk.run(*words, lines=b"".join(path + b"\0" for path in paths))
    if done.code == 0:
        return
    if len(paths) == 1:
        failed.append(paths[0])
        if len(failed) > _FAILURES:
            raise StoreError(f"git cannot add files: {done.complaint}")
        return
    half = len(paths) // 2
    _add_paths(desk, paths[:half], failed)
    _add_paths(desk, paths[half:], failed)
