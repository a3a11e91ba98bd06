"""What may be wrong with a store, what it holds, and the mend of each problem.

The checks read; only a finding's own ``mend`` changes anything.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from uwfgit.errors import CorruptError, name_some
from uwfgit.ids import Oid, ThreadId, is_thread_id
from uwfgit.shell import quote_word
from uwfgit.store.care.maintain import ObjectCount, count_objects
from uwfgit.store.care.size import format_size
from uwfgit.store.database import connect, is_refusal
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store, git_errors
from uwfgit.store.layout import (
    HEAD_REF,
    KEEP_REF,
    MEMORY_PREFIX,
    THREAD_PREFIX,
    TRASH_PREFIX,
    WORKFLOW_PREFIX,
    find_ref_thread,
    is_workflow_name,
    thread_ref,
)
from uwfgit.store.locks.flock import Holder, read_holder
from uwfgit.store.locks.git_lock import list_git_locks, removal_hint
from uwfgit.store.locks.holding import has_leftovers, tidy_up
from uwfgit.store.lookup.table import Lookup
from uwfgit.store.objects import read_commit, read_tag
from uwfgit.store.pack import MANY_LOOSE, MANY_PACKS
from uwfgit.store.refs import BUNDLE, list_refs, list_tracked
from uwfgit.store.safety.config import Setting, check_settings, read_config
from uwfgit.store.safety.refspecs import drop_forced, list_bare, list_forced

Level = Literal["ok", "note", "problem"]

_LEAST_FREE: Final = 20 * 1024 * 1024
_STALE_SECONDS: Final = 3600
_REMOTES: Final = "refs/remotes/"
_TAGS: Final = "refs/tags/"
_OWN: Final = "refs/uwf/"
_GIVEN: Final = (TRASH_PREFIX, MEMORY_PREFIX, f"{_OWN}queue/", f"{_OWN}queues/")
"""Below which uwf keeps refs of its own, beside the kept nodes."""


class HealthFinding(Struct, frozen=True, kw_only=True):
    """One thing that was looked at.

    ``hint`` says how to mend a problem; ``mend`` does it, where that is safe.
    """

    check: str
    level: Level
    message: str
    hint: str | None = None
    mend: Callable[[], object] | None = None


def check_store_settings(store: Store) -> Iterator[HealthFinding]:
    """Compare the store's own git config with what uwf writes there."""
    config = read_config(store.path / "config")
    wrong = check_settings(config)
    for each in wrong:
        found = "missing" if each.found is None else f"'{each.found}'"
        yield HealthFinding(
            check="settings",
            level="problem",
            message=f"{each.key} is {found}, not '{each.wanted}'",
            hint=f"uwf git config {each.key} {each.wanted}",
            mend=_setter(store, each),
        )
    forced = list_forced(config.entries)
    for name in forced:
        yield HealthFinding(
            check="settings",
            level="problem",
            message=f"refspecs of remote '{name}' overwrite threads: a plain fetch or "
            "push takes recorded work away",
            hint=f"uwf doctor --fix, then uwf remote add {quote_word(name)}",
            mend=lambda: _drop_forced(store),
        )
    if not wrong and not forced:
        yield HealthFinding(check="settings", level="ok", message="as uwf wrote them")
    for name in list_bare(config.entries):
        yield HealthFinding(
            check="settings",
            level="note",
            message=f"remote '{name}' has no refspecs: plain git brings and sends no "
            "threads",
            hint=f"uwf remote add {quote_word(name)}",
        )


def _drop_forced(store: Store) -> None:
    with git_errors("change the store's config"):
        drop_forced(store.path / "config", read_config(store.path / "config").entries)


def _setter(store: Store, setting: Setting) -> Callable[[], None]:
    def change() -> None:
        store.repo.config[setting.key] = setting.wanted

    return change


def check_refs(store: Store) -> Iterator[HealthFinding]:
    """Look for refs that no rule gives, and for ones that lead nowhere."""
    refs = list_refs(store, "refs/")
    problems = [
        *_check_main(store, refs),
        *(p for name, oid in refs.items() if (p := _check_ref(store, name, oid))),
    ]
    yield from problems
    threads = sum(name.startswith(THREAD_PREFIX) for name in refs)
    workflows = sum(name.startswith(WORKFLOW_PREFIX) for name in refs)
    if not problems:
        told = f"{len(refs)} in all; of threads {threads}, of workflows {workflows}"
        yield HealthFinding(check="refs", level="ok", message=told)


def _check_main(store: Store, refs: dict[str, Oid]) -> Iterator[HealthFinding]:
    # Of a file that holds no ref, the check of broken ones tells.
    if HEAD_REF not in refs and not os.path.lexists(store.path / HEAD_REF):
        yield HealthFinding(
            check="refs",
            level="problem",
            message=f"'{HEAD_REF}' is missing",
            hint=f"uwf git update-ref {HEAD_REF} {GENESIS_OID}",
        )


def _check_ref(store: Store, name: str, oid: Oid) -> HealthFinding | None:
    if not _is_known(name):
        return HealthFinding(
            check="refs",
            level="problem",
            message=f"'{name}' is not a name that uwf gives; it is not listed",
            hint=f"if nobody needs it: uwf git update-ref -d {quote_word(name)}",
        )
    if name.startswith(_REMOTES):
        return None
    try:
        _read_target(store, name, oid)
    except CorruptError as exc:
        return HealthFinding(
            check="refs",
            level="problem",
            message=f"'{name}' leads nowhere: {exc.message}",
            hint=f"its last commits: uwf git reflog {quote_word(name)}",
        )
    return None


def _read_target(store: Store, name: str, oid: Oid) -> None:
    try:
        read_commit(store, oid)
    except CorruptError:
        if not name.startswith(_TAGS):
            raise
        # An approval is an object of its own; other tags name a commit.
        read_tag(store, oid)


def _is_known(name: str) -> bool:
    if name.startswith(THREAD_PREFIX):
        return find_ref_thread(name) is not None
    if name.startswith(WORKFLOW_PREFIX):
        return is_workflow_name(name.removeprefix(WORKFLOW_PREFIX))
    if name.startswith(_OWN):
        return name == KEEP_REF or name.startswith(_GIVEN)
    return True


def check_lookup(store: Store, lookup: Lookup) -> Iterator[HealthFinding]:
    """Look whether the lookup's file can be read; it is never the truth."""
    path = store.state_dir / "lookup.sqlite3"
    problem = _find_damage(path)
    if problem is not None:
        yield HealthFinding(
            check="lookup",
            level="problem",
            message=f"the lookup {problem}",
            hint="uwf reindex",
            mend=lookup.rebuild,
        )
        return
    made = "is up to date" if path.exists() else "is made when it is first needed"
    yield HealthFinding(check="lookup", level="ok", message=f"the lookup {made}")


def check_local(store: Store) -> Iterator[HealthFinding]:
    """Look whether what only this machine knows of the store can be read."""
    path = store.state_dir / "local.sqlite3"
    aside = path.with_name(f"{path.name}.damaged")
    problem = _find_damage(path)
    if problem is not None:
        remove = "rm -r" if path.is_dir() else "rm"
        yield HealthFinding(
            check="local",
            level="problem",
            message=f"'{path}' {problem}: threads count as others' until they are "
            "trusted again",
            hint=f"put a copy of it back, or: {remove} {quote_word(str(path))}; then "
            "run each thread once with --trust",
        )
    elif aside.exists():
        yield HealthFinding(
            check="local",
            level="note",
            message=f"a damaged file was put aside: '{aside}'",
            hint=f"when nobody needs it: rm {quote_word(str(aside))}",
        )
    else:
        yield HealthFinding(check="local", level="ok", message="can be read")


def _find_damage(path: Path) -> str | None:
    if not path.exists():
        return None
    if path.is_dir():
        return "is a folder, and no file"
    place = f"{path.absolute().as_uri()}?mode=ro"
    try:
        try:
            said = _check_file(place)
        except sqlite3.Error as exc:
            if not is_refusal(exc):
                raise
            # On a full or read-only disk SQLite cannot make the files beside it.
            said = _check_file(f"{place}&immutable=1")
    except sqlite3.Error as exc:
        return f"cannot be read: {exc}"
    return None if said == "ok" else f"is damaged: {said}"


def _check_file(place: str) -> str:
    with closing(connect(place)) as db:
        (said,) = db.execute("PRAGMA quick_check(1)").fetchone()
    return str(said)


def check_disk(store: Store) -> Iterator[HealthFinding]:
    """Look whether the store can be written, and for how much longer."""
    for folder in (store.path, store.path / "objects", store.path / "refs"):
        if not os.access(folder, os.W_OK):
            yield HealthFinding(
                check="disk",
                level="problem",
                message=f"'{folder}' cannot be written",
                hint="commands that only read work; see to its permissions, and "
                "whether its file system is mounted for reading only",
            )
            return
    found = os.statvfs(store.path)
    free = found.f_bavail * found.f_frsize
    is_full = free < _LEAST_FREE
    yield HealthFinding(
        check="disk",
        level="problem" if is_full else "ok",
        message=f"{format_size(free)} are free",
        hint="make room; uwf gc needs some itself" if is_full else None,
    )


def check_objects(store: Store) -> Iterator[HealthFinding]:
    """Count loose objects and packs."""
    count = count_objects(store.path)
    problems = list(_weigh(count))
    yield from problems
    yield HealthFinding(
        check="objects",
        level="note" if problems else "ok",
        message=f"{count.loose:,} loose, {count.packed:,} packed "
        f"(packs: {count.packs}), {format_size(count.size)}",
    )


def _weigh(count: ObjectCount) -> Iterator[HealthFinding]:
    many = f"{count.loose:,} loose objects" if count.loose > MANY_LOOSE else ""
    many = f"{count.packs} packs" if count.packs > MANY_PACKS else many
    if many:
        yield HealthFinding(
            check="objects",
            level="problem",
            message=f"{many} make every command slower",
            hint="uwf gc",
        )
    if count.cruft_packs:
        yield HealthFinding(
            check="objects",
            level="problem",
            message="a cruft pack: what is written again from it is lost later",
            hint="uwf git config gc.cruftPacks false, then uwf gc --prune",
        )


def check_locks(store: Store) -> Iterator[HealthFinding]:
    """Tell who holds what, and find lock files that were left behind."""
    held = list(_iter_held(store))
    for name, holder in held:
        what = f"thread {name}" if is_thread_id(name) else f"lock '{name}'"
        yield HealthFinding(check="locks", level="note", message=f"{what}: {holder}")
    stale = find_stale_locks(store.path)
    # Another's lock may be held by a git that is merely slow.
    mend = (lambda: tidy_up(store)) if has_leftovers(store) else None
    for path in stale:
        yield HealthFinding(
            check="locks",
            level="problem",
            message=f"'{path}' was left by a git that is gone",
            hint=removal_hint(path),
            mend=mend,
        )
    if not held and not stale:
        yield HealthFinding(check="locks", level="ok", message="nobody holds one")


def _iter_held(store: Store) -> Iterator[tuple[str, Holder]]:
    folder = store.locks
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    for path in paths:
        holder = read_holder(path) if path.is_file() else None
        if holder is not None:
            yield path.name, holder


def find_stale_locks(store: Path) -> tuple[Path, ...]:
    """Find lock files of git's that nobody can still be working under."""
    horizon = time.time() - _STALE_SECONDS
    return tuple(path for path in list_git_locks(store) if _mtime(path) < horizon)


def _mtime(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return time.time()


def find_unshared(store: Store) -> tuple[ThreadId, ...]:
    """Return the threads that no remote has, as far as this store knows."""
    refs = list_refs(store, THREAD_PREFIX)
    # Nobody has a thread through a bundle that was opened here.
    shared = {
        thread
        for thread, remotes in list_tracked(store).items()
        if remotes.keys() - {BUNDLE}
    }
    threads = (thread for name in refs if (thread := find_ref_thread(name)))
    return tuple(thread for thread in threads if thread not in shared)


def check_unshared(
    store: Store, find_private: Callable[[Store, Iterable[str]], Collection[str]]
) -> Iterator[HealthFinding]:
    """Tell which threads exist only here, but for those that shall.

    Args:
        store: Whose.
        find_private: Which branches are of threads that are never shared.
    """
    found = find_unshared(store)
    private = find_private(store, map(thread_ref, found))
    unshared = [thread for thread in found if thread_ref(thread) not in private]
    has_remotes = any(store.repo.remotes.names())
    if not unshared:
        yield HealthFinding(
            check="sharing",
            level="ok",
            message="only private threads exist only here"
            if private
            else "no thread exists only here",
        )
        return
    word = "thread exists" if len(unshared) == 1 else "threads exist"
    yield HealthFinding(
        check="sharing",
        level="note",
        message=f"{len(unshared)} {word} only here: {name_some(unshared, most=3)}",
        hint="uwf push --all"
        if has_remotes
        else "uwf remote add NAME URL, then uwf push --all",
    )
