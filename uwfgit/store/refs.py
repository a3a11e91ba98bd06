"""Refs: resolved, listed, walked, and moved by compare-and-swap.

With those of remotes: what they had at the last fetch, `refs/remotes`, which are read
off git's own files: ten thousand refs through libgit2 take a quarter of a second, and a
listing wants them all.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from uwfgit.errors import CorruptError, LockedError
from uwfgit.ids import Oid, ThreadId, is_oid, is_thread_id
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store, git_errors
from uwfgit.store.layout import THREAD_PREFIX
from uwfgit.store.libgit2 import pygit2
from uwfgit.store.locks.flock import pause
from uwfgit.store.locks.git_lock import removal_hint, remove_dead
from uwfgit.store.locks.holding import (
    NO_MOVES,
    PACKED,
    Moves,
    announce,
    compare,
    move_together,
    require_plain,
)
from uwfgit.store.lookup.refscan import BROKEN, read_target
from uwfgit.store.objects import Commit, Person, format_person, read_commit
from uwfgit.store.pack import sync_folder

REMOTES_PREFIX: Final = "refs/remotes/"
BUNDLE: Final = "bundle"
"""Stands for a remote where a bundle's diverged tips are kept."""

_HEADS: Final = "refs/heads/"
_LOG_BYTES: Final = 4096
_THREAD = re.compile(r"refs/remotes/([^/]+)/thread/([^/]+)")
_LOCK_WAIT: Final = 2.0
_FAILURE_WAIT: Final = 0.1
_NO_OID: Final = "0" * 40


def find_ref(store: Store, name: str) -> Oid | None:
    """Return what a ref points at; ``None`` when there is no such ref.

    What cannot be the name of a ref is none.

    Raises:
        CorruptError: Its file is damaged, or names another ref.
    """
    # libgit2 would take a name for what stands before a NUL.
    if "\0" in name or not pygit2.reference_is_valid_name(name):
        return None
    with git_errors(f"read ref '{name}'"):
        try:
            target = store.repo.lookup_reference(name).target
        except KeyError:
            return None
        except pygit2.GitError as exc:
            raise _damaged(name) from exc
    if not isinstance(target, pygit2.Oid):
        raise _damaged(name)
    return Oid(str(target))


def _damaged(name: str) -> CorruptError:
    return CorruptError(
        f"ref '{name}' is damaged", hint="uwf doctor says what it pointed at"
    )


def list_refs(store: Store, prefix: str) -> dict[str, Oid]:
    """Return the refs below a prefix, sorted by name."""
    with git_errors("list refs"):
        iterator = store.repo.references.iterator()
        found = {
            str(ref.name): Oid(str(ref.target))
            for ref in iterator
            if ref.name.startswith(prefix)
        }
    return dict(sorted(found.items()))


def move_ref(
    store: Store, name: str, *, old: Oid | None, new: Oid | None, reason: str
) -> None:
    """Point ``name`` at ``new`` if, and only if, it still points at ``old``.

    Args:
        old: Expected target; ``None`` means the ref must not exist yet.
        new: The target; ``None`` removes the ref.
        reason: One line for the reflog.

    Raises:
        RefConflictError: Another writer moved the ref first. Nothing changed.
        LockedError: git's own lock of the ref stayed held. Nothing changed.
    """
    move_refs(store, {name: (old, new)}, reason=reason)


def replace_ref(
    store: Store, name: str, *, old: Oid | None, new: Oid, person: Person, reason: str
) -> None:
    """Move one ref as :func:`move_ref` does, at half the waits for the disk.

    The ref is on disk afterwards; the line in its log, which nothing rests on, gets
    there whenever it does.

    Raises:
        RefConflictError, LockedError: As there.
    """

    def replace(*, is_first: bool) -> None:
        path = store.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # git's own lock of the ref, which becomes the ref, as in git.
        lock = path.with_name(f"{path.name}.lock")
        descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                compare(store, name, old=old, new=new, is_first=is_first)
                file.write(f"{new}\n".encode())
                if store.fsync:
                    file.flush()
                    os.fsync(file.fileno())
            log = store.path / "logs" / name
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as lines:
                lines.write(f"{old or _NO_OID} {new} {line}".encode())
            lock.replace(path)
        except BaseException:
            lock.unlink(missing_ok=True)
            raise
        if store.fsync:
            sync_folder(path.parent)

    line = f"{format_person(person)}\t{reason}\n"
    _move_patiently(store, [name], replace, reason=reason)


def move_refs(store: Store, moves: Moves, *, reason: str) -> None:
    """Move several refs under their locks: all expectations hold, or none moves.

    After a kill between the renames, whoever opens the store next, or moves any ref
    of it, moves the rest.

    Args:
        moves: Ref → what it must point at, and what it shall; as in `move_ref`.
        reason: One line for the reflogs.

    Raises:
        RefConflictError: One did not point at what was expected.
        LockedError: git's own lock of one stayed held; names the file.
    """
    require_plain(store, moves)
    names = [*moves]
    if any(new is None for _, new in moves.values()):
        names.append(PACKED)
    move = partial(move_together, store, moves, reason=reason)
    _move_patiently(store, names, move, reason=reason, moves=moves)


class _Move(Protocol):
    def __call__(self, *, is_first: bool) -> None: ...


def _move_patiently(
    store: Store,
    names: Sequence[str],
    move: _Move,
    *,
    reason: str,
    moves: Moves = NO_MOVES,
) -> None:
    told = announce(store, names, command=reason, moves=moves)
    with git_errors("move a ref"), told:
        began, is_first = time.monotonic(), True
        while True:
            try:
                move(is_first=is_first)
            except (pygit2.GitError, ValueError, OSError) as exc:
                # libgit2 reads refs anew: it drops a packed one before it fails to.
                store.repo.set_refdb(pygit2.Refdb.open(store.repo))
                _require_patience(store, names, time.monotonic() - began, exc)
                is_first = False
                pause()
            else:
                return


def _require_patience(
    store: Store, names: Iterable[str], waited: float, exc: Exception
) -> None:
    """Let a failed move be tried again for a while.

    A lock that is held is told from other failures by its file: libgit2 says it
    in the message only, and in several ways. The file may just have gone.

    Raises:
        LockedError: A lock file has been there for too long.
    """
    files = [store.path / f"{name}.lock" for name in names]
    held = next((file for file in files if file.exists()), None)
    if held is None and waited >= _FAILURE_WAIT:
        raise exc
    if held is not None and waited >= _LOCK_WAIT and not remove_dead(store, held):
        what = held.relative_to(store.path).as_posix().removesuffix(".lock")
        error = LockedError(f"ref '{what}'", holder=f"'{held}'")
        error.hint = f"try again; {removal_hint(held)}"
        raise error from exc


def tracking_ref(remote: str, ref: str) -> str:
    """Name the ref that keeps what a remote had of one of our branches."""
    return f"{REMOTES_PREFIX}{remote}/{ref.removeprefix(_HEADS)}"


def list_folders(store: Store) -> list[Path]:
    """List the folders of what remotes had of threads, as far as refs are loose."""
    place = tracking_ref("*", THREAD_PREFIX).removeprefix(REMOTES_PREFIX)
    return sorted((store.path / REMOTES_PREFIX).glob(place))


def read_last_reason(store: Store, name: str) -> str | None:
    """Return why a ref was moved last, as its log says; ``None`` without a log."""
    try:
        with (store.path / "logs" / name).open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _LOG_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return None
    return lines[-1].partition(b"\t")[2].decode(errors="replace") if lines else None


def scan_refs(store: Store, prefix: str) -> dict[str, Oid]:
    """Return the refs below a prefix that ends with a slash, by name.

    A ref whose file holds no oid is left out.
    """
    # Loose ones first: git pack-refs writes the packed ones before it takes
    # those away.
    loose = dict(_iter_loose(store.path / prefix, prefix))
    return {**_read_packed(store.path / "packed-refs", prefix), **loose}


def _iter_loose(folder: Path, prefix: str) -> Iterator[tuple[str, Oid]]:
    try:
        with os.scandir(folder) as entries:
            found = list(entries)
    except OSError:
        return
    for entry in found:
        name = prefix + entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _iter_loose(folder / entry.name, f"{name}/")
        elif entry.is_file(follow_symlinks=False) and (oid := _read_loose(entry.path)):
            yield name, oid


def _read_loose(path: str) -> Oid | None:
    target = read_target(path)
    return None if target == BROKEN else Oid(target.hex())


def _read_packed(path: Path, prefix: str) -> dict[str, Oid]:
    try:
        data = path.read_bytes()
    except OSError:
        return {}
    wanted = f" {prefix}".encode()
    if wanted not in data:
        return {}
    line = re.compile(
        rb"^([0-9a-f]{40}) (" + re.escape(prefix).encode() + rb"[^\n]+)$", re.MULTILINE
    )
    return {
        name.decode("utf-8", "surrogateescape"): Oid(oid.decode())
        for oid, name in line.findall(data)
    }


def list_tracked(store: Store) -> dict[ThreadId, dict[str, Oid]]:
    """Return what each remote had of each thread at the last fetch.

    A remote that is gone from the config counts as long as its refs are here.
    """
    found: dict[ThreadId, dict[str, Oid]] = {}
    for name, oid in scan_refs(store, REMOTES_PREFIX).items():
        match = _THREAD.fullmatch(name)
        if match and is_thread_id(match[2]):
            found.setdefault(ThreadId(match[2]), {})[match[1]] = oid
    return found


def find_tracked(store: Store, thread: ThreadId) -> dict[str, Oid]:
    """Return what ``list_tracked`` gives for one thread, at the cost of that one."""
    loose = {}
    with suppress(OSError), os.scandir(store.path / REMOTES_PREFIX) as entries:
        for entry in entries:
            path = f"{entry.path}/thread/{thread}"
            if entry.is_dir(follow_symlinks=False) and (oid := _read_loose(path)):
                loose[entry.name] = oid
    try:
        data = (store.path / "packed-refs").read_bytes()
    except OSError:
        data = b""
    packed = {}
    # A search for the plain text first: ten thousand lines take a regular
    # expression twenty times as long.
    start = 0
    while (found := data.find(f"/thread/{thread}\n".encode(), start)) >= 0:
        line = data.rfind(b"\n", 0, found) + 1
        start = data.find(b"\n", found)
        text = data[line:start].decode("utf-8", "surrogateescape")
        target, _, name = text.partition(" ")
        match = _THREAD.fullmatch(name)
        if match and is_oid(target):
            packed[match[1]] = Oid(target)
    # In this order, as all of them are read.
    return dict(sorted({**packed, **loose}.items()))


def has_object(store: Store, oid: Oid) -> bool:
    """Whether the store, or what it borrows from, has an object."""
    return store.raw.exists(oid)


def is_ancestor(store: Store, old: Oid, new: Oid) -> bool:
    """Whether ``new`` is ``old`` or was made on top of it.

    Commits that are not there are nobody's ancestors.
    """
    return store.raw.descends(new, old)


def iter_first_parents(store: Store, tip: Oid) -> Iterator[Oid]:
    """Yield a commit and its first parents, newest first.

    Raises:
        CorruptError: One is missing.
    """
    oid: Oid | None = tip
    while oid is not None:
        yield oid
        parents = read_commit(store, oid).parents
        oid = parents[0] if parents else None


def iter_commits(store: Store, tip: Oid) -> Iterator[Commit]:
    """Yield a branch's commits, newest first, along first parents to genesis.

    Raises:
        CorruptError: One is missing, or the branch starts elsewhere.
    """
    oid = tip
    while oid != GENESIS_OID:
        commit = read_commit(store, oid)
        yield commit
        if not commit.parents:
            raise CorruptError(
                f"commit {oid} has no parent; a branch starts at genesis"
            )
        oid = commit.parents[0]
