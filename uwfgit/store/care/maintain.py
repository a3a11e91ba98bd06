"""Keeping a store small: hands the work to git; the only place that runs its gc."""

from __future__ import annotations

import os
import re
import shutil
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.errors import LockedError, StoreError
from uwfgit.ids import Oid
from uwfgit.store.git.gitcmd import GitResult, run_git
from uwfgit.store.git.streaming import leave_to_git
from uwfgit.store.handle import Store
from uwfgit.store.layout import MEMORY_PREFIX, THREAD_PREFIX, TRASH_PREFIX
from uwfgit.store.libgit2 import pygit2
from uwfgit.store.locks.flock import Lock, lock
from uwfgit.store.locks.git_lock import ANY, list_git_locks, lock_stays
from uwfgit.store.locks.holding import alone, announce
from uwfgit.store.pack import tidy_packs
from uwfgit.store.refs import find_ref, list_refs, move_refs

_FOLDERS: Final = 256
"""The folder that git's own estimate looks into."""
_INDEX_HEAD: Final = b"\xfftOc\x00\x00\x00\x02"
_FANOUT: Final = 256 * 4


class ObjectCount(Struct, frozen=True, kw_only=True):
    """Objects of a store and the bytes of their files.

    An object that stands in two packs counts twice, as it takes room twice.
    """

    loose: int
    packed: int
    packs: int
    cruft_packs: int
    size: int

    @property
    def objects(self) -> int:
        """All of them."""
        return self.loose + self.packed


def count_objects(store: Path) -> ObjectCount:
    """Count the objects of the store at a path; an unreadable pack holds none."""
    loose = list(_iter_loose(store / "objects"))
    files = list(_scan(store / "objects" / "pack"))
    packs = [Path(file.path) for file in files if file.name.endswith(".pack")]
    return ObjectCount(
        loose=len(loose),
        packed=sum(_read_count(path.with_suffix(".idx")) for path in packs),
        packs=len(packs),
        cruft_packs=sum(path.with_suffix(".mtimes").exists() for path in packs),
        size=sum(map(_size, (*loose, *files))),
    )


def _iter_loose(objects: Path) -> Iterator[os.DirEntry[str]]:
    for number in range(_FOLDERS):
        yield from _scan(objects / f"{number:02x}")


def _scan(folder: Path) -> Iterator[os.DirEntry[str]]:
    # A folder may vanish, and its files, while git packs them.
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def _read_count(index: Path) -> int:
    try:
        with index.open("rb") as file:
            head = file.read(len(_INDEX_HEAD) + _FANOUT)
    except OSError:
        return 0
    if len(head) != len(_INDEX_HEAD) + _FANOUT or not head.startswith(_INDEX_HEAD):
        return 0
    return int(struct.unpack(">I", head[-4:])[0])


Prune = Literal["never", "old", "now"]
"""What happens to what nothing names any more: stay, go after two weeks, go."""

GRACE: Final = "2.weeks.ago"
_GRACE_SECONDS: Final = 14 * 24 * 3600
GEOMETRIC: Final = (2, 32)
"""The version of git that first repacks geometrically."""
_ALONE_SECONDS: Final = 10.0
REPACK: Final = "repack"
"""The lock of whoever has git throw packs away; a second would miss them."""
_REPACK_SECONDS: Final = 60.0
_VERSION: Final = re.compile(r"git version ([0-9]+)\.([0-9]+)")


class GcReport(Struct, frozen=True, kw_only=True):
    """What a store held before and after; sizes are those of its object files."""

    threads: int
    refs: int
    objects_before: int
    objects_after: int
    bytes_before: int
    bytes_after: int


def collect_garbage(
    store: Store,
    *,
    prune: Prune,
    environment: Mapping[str, str],
    on_phase: Callable[[str], None],
) -> GcReport:
    """Pack a store's refs and objects, and throw away what it is told to.

    Others may read and write meanwhile; only ``now`` keeps writers waiting,
    since it takes also what one of them has just written.

    Args:
        store: Opened for writing.
        prune: ``old`` and ``now`` also empty the trash.
        environment: Finds git.
        on_phase: Told what is being done.

    Raises:
        StoreError: There is no git, or it failed.
        LockedError: Somebody wrote all the time; nothing was thrown away.
    """
    version = read_git_version(environment)
    before = count_objects(store.path)
    tidy_packs(store)
    with lock(store.locks / REPACK, command="uwf gc", wait=_REPACK_SECONDS):
        _collect(store, prune, version, environment, on_phase)
    after = count_objects(store.path)
    refs = list_refs(store, "refs/")
    return GcReport(
        threads=sum(name.startswith(THREAD_PREFIX) for name in refs),
        refs=len(refs),
        objects_before=before.objects,
        objects_after=after.objects,
        bytes_before=before.size,
        bytes_after=after.size,
    )


def _collect(
    store: Store,
    prune: Prune,
    version: tuple[int, int],
    environment: Mapping[str, str],
    on_phase: Callable[[str], None],
) -> None:
    with announce(store, [ANY], command="uwf gc") as told:
        run = _Runner(
            store=store, environment=environment, on_phase=on_phase, held=(told,)
        )
        _run_gc(run, prune, version)


def _run_gc(run: _Runner, prune: Prune, version: tuple[int, int]) -> None:
    store = run.store
    # One of before may name commits that are pruned, and git believes it.
    for name in ("commit-graph", "commit-graphs"):
        _remove(store.path / "objects" / "info" / name)
    run.git("packing refs", "pack-refs", "--all")
    if prune == "never":
        # First by history: git finds good deltas only where it knows the paths.
        run.git("packing objects", "repack", "-d", "-q")
        run.git("merging packs", *merge_words(version))
    else:
        with _prune_guard(store, prune) as held:
            run = replace(run, held=(*run.held, *held))
            _empty_trash(store, prune)
            if prune == "now":
                words = ("reflog", "expire", "--expire-unreachable=now", "--all")
                run.git("expiring reflogs", *words)
            grace = "now" if prune == "now" else GRACE
            run.git("packing objects", "gc", "--quiet", f"--prune={grace}")


def read_git_version(environment: Mapping[str, str]) -> tuple[int, int]:
    """Return git's version.

    Raises:
        StoreError: There is no git, or it does not say.
    """
    result = run_git(["version"], git_dir=None, environment=environment)
    match = _VERSION.search(result.text)
    if match is None:
        raise StoreError(f"git does not tell its version: {result.complaint}")
    return int(match[1]), int(match[2])


class _Runner(Struct, frozen=True, kw_only=True):
    store: Store
    environment: Mapping[str, str]
    on_phase: Callable[[str], None]
    held: tuple[Lock, ...] = ()

    def git(self, phase: str, *words: str) -> None:
        self.on_phase(phase)
        path = self.store.path
        # Should we be killed, git goes on, and must keep writers away for itself.
        result = run_git(
            words, git_dir=path, environment=self.environment, held=self.held
        )
        if result.code:
            _require_unlocked(path)
            message = f"git {words[0]} failed: {_first_reason(result)}"
            raise StoreError(message, hint="uwf doctor says what is wrong")


def _require_unlocked(path: Path) -> None:
    """Say so when git failed because another one is at work, or was killed.

    Raises:
        LockedError: Names the file.
    """
    for held in list_git_locks(path):
        raise lock_stays(held)


def _first_reason(result: GitResult) -> str:
    """Return what git names first; advice, of which it has much, comes after it."""
    lines = result.stderr.decode("utf-8", "replace").splitlines()
    named = (line for line in lines if line.startswith(("fatal:", "error:")))
    return next(named, result.complaint)


@contextmanager
def _prune_guard(store: Store, prune: Prune) -> Iterator[tuple[Lock, ...]]:
    if prune != "now":
        # Within the grace git takes nothing that a writer may still need.
        yield ()
        return
    with alone(store, command="uwf gc --prune=now", wait=_ALONE_SECONDS) as held:
        yield (held,)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _empty_trash(store: Store, prune: Prune) -> None:
    horizon = time.time() - _GRACE_SECONDS
    moves: dict[str, tuple[Oid | None, Oid | None]] = {
        name: (oid, None)
        for name, oid in list_refs(store, TRASH_PREFIX).items()
        if prune == "now" or _trashed_at(store, name) <= horizon
    }
    if not moves:
        return
    memories = {MEMORY_PREFIX + name.removeprefix(TRASH_PREFIX) for name in moves}
    # What agents remember goes with the thread, unless that was brought back.
    moves |= {
        name: (oid, None)
        for name, oid in list_refs(store, MEMORY_PREFIX).items()
        if name in memories
        and find_ref(store, THREAD_PREFIX + name.removeprefix(MEMORY_PREFIX)) is None
    }
    move_refs(store, moves, reason="gc")
    for name in moves:
        _drop_log(store, name)
        branch = THREAD_PREFIX + name.removeprefix(TRASH_PREFIX)
        if find_ref(store, branch) is None:
            _drop_log(store, branch)


def _drop_log(store: Store, name: str) -> None:
    # libgit2 leaves it when a ref goes in a transaction, and git's gc keeps
    # all that a log names for months.
    with suppress(OSError):
        (store.path / "logs" / name).unlink(missing_ok=True)


def _trashed_at(store: Store, name: str) -> float:
    """Tell when a ref came into the trash; without a log it came just now."""
    try:
        log = list(store.repo.lookup_reference(name).log())
    except (KeyError, pygit2.GitError):
        log = []
    return float(log[0].committer.time) if log else time.time()


def merge_words(version: tuple[int, int]) -> tuple[str, ...]:
    """Return what git is told so that it merges packs and loses no object."""
    # What is unreachable may be half an event: older gits make it loose again.
    how = "--geometric=2" if version >= GEOMETRIC else "-A"
    return ("repack", "-d", "-q", how)


def merge_packs(store: Store, environment: Mapping[str, str]) -> bool:
    """Let git merge a store's packs; return whether it does.

    It works on by itself, one at a time in a store, and nobody waits for it.
    Without git, or while someone else is at it, nothing happens.
    """
    with (
        suppress(LockedError, StoreError),
        lock(store.locks / REPACK, command="git repack", wait=0) as held,
    ):
        store.raw.forget_packs()
        words = merge_words(read_git_version(environment))
        return leave_to_git(
            words, git_dir=store.path, environment=environment, held=held
        )
    return False
