"""Whether a store's refs and objects are whole, and what mends those that are not."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from uwfgit.errors import CorruptError, StoreError, name_some
from uwfgit.ids import Oid
from uwfgit.shell import quote_word
from uwfgit.store.care.health import HealthFinding
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.git.gitcmd import GitResult, find_git, run_git
from uwfgit.store.handle import Store, git_errors
from uwfgit.store.layout import (
    HEAD_REF,
    MEMORY_PREFIX,
    THREAD_PREFIX,
    TRASH_PREFIX,
    WORKFLOW_PREFIX,
)
from uwfgit.store.locks.git_lock import replacing
from uwfgit.store.lookup.refscan import list_broken
from uwfgit.store.objects import read_commit
from uwfgit.store.refs import list_refs
from uwfgit.store.safety.ref_logs import list_logged
from uwfgit.store.safety.trust import install_hook, is_own_hook

_MOST_BYTES: Final = 65_536
_PRE_PUSH: Final = "pre-push"


def find_hooks_path(
    environment: Mapping[str, str],
    *,
    git_dir: Path | None = None,
    cwd: Path | None = None,
) -> Path | None:
    """Return the folder in which git looks for hooks instead of a repository's own.

    Args:
        git_dir: The repository; without it the one around ``cwd``.
        cwd: Its work tree.

    Raises:
        StoreError: There is no git binary.
    """
    found = run_git(
        ("config", "--type=path", "--null", "--get-all", "core.hooksPath"),
        git_dir=git_dir,
        cwd=cwd,
        environment=environment,
    )
    # The last is what the one door to git itself sets.
    values = [os.fsdecode(each) for each in found.stdout.split(b"\0")[:-1]]
    base = git_dir or cwd or Path()
    return base / values[-2] if len(values) > 1 else None


def is_run_hook(path: Path, command: str) -> bool:
    """Whether git would run the hook at ``path``, and it names a command."""
    try:
        with path.open("rb") as stream:
            is_named = command.encode() in stream.read(_MOST_BYTES)
    except OSError:
        return False
    return is_named and os.access(path, os.X_OK)


def is_scanning(store: Path) -> bool:
    """Whether a store's own hook would scan what a push sends."""
    path = store / "hooks" / _PRE_PUSH
    return is_own_hook(path) and os.access(path, os.X_OK)


def check_hook(
    store: Store, *, environment: Mapping[str, str]
) -> Iterator[HealthFinding]:
    """Look whether a plain ``git push`` would be scanned for secrets."""
    path = store.path / "hooks" / _PRE_PUSH
    if not is_scanning(store.path):
        yield HealthFinding(
            check="hook",
            level="problem",
            message=f"'{path}' {_find_fault(path)}: a plain 'git push' is not scanned "
            "for secrets",
            hint="uwf doctor --fix writes it; what stands there is put aside",
            mend=lambda: _write_hooks_again(store.path),
        )
        return
    other = None
    if find_git(environment) is not None:
        other = find_hooks_path(environment, git_dir=store.path)
    if other is None or is_run_hook(other / _PRE_PUSH, f"uwf hooks {_PRE_PUSH}"):
        yield HealthFinding(
            check="hook", level="ok", message="a plain 'git push' is scanned"
        )
        return
    yield HealthFinding(
        check="hook",
        level="note",
        message="your git config sets core.hooksPath: a plain 'git push' is not "
        "scanned for secrets",
        hint="use 'uwf push' or 'uwf git push', or call what stands in "
        f"'{path}' in '{other / _PRE_PUSH}' too",
    )


def _find_fault(path: Path) -> str:
    if not os.path.lexists(path):
        return "is missing"
    if not is_own_hook(path):
        return "is not what uwf writes"
    return "is not executable"


def _write_hooks_again(git_dir: Path) -> None:
    path = git_dir / "hooks" / _PRE_PUSH
    if os.path.lexists(path) and not is_own_hook(path):
        with git_errors(f"put '{path}' aside"):
            path.rename(path.with_name(f"{_PRE_PUSH}.{secrets.token_hex(4)}.old"))
    install_hook(git_dir, _PRE_PUSH)


_FOLDERS: Final = (
    HEAD_REF.rpartition("/")[0] + "/",
    THREAD_PREFIX,
    WORKFLOW_PREFIX,
    "refs/uwf/",
    TRASH_PREFIX,
    MEMORY_PREFIX,
)
_WRITING_SECONDS: Final = 3600
_ZERO: Final = Oid("0" * 40)
_OID: Final = re.compile(r"(?<!pack-)\b[0-9a-f]{40}\b")
_LOST: Final = re.compile(
    r"(?:missing (?:blob|tree|commit|tag)|error:|fatal:).*", re.IGNORECASE
)
_RESTORE: Final = (
    "a copy of this store has it: remove the damaged file, if there is one, then "
    "uwf git fetch --refetch REMOTE, or copy the other's objects/ over"
)


def check_broken_refs(store: Store) -> Iterator[HealthFinding]:
    """Look for refs whose files hold no target, and for ones that vanished.

    A power cut leaves an empty file on some file systems. What the ref pointed
    at stands last in its log.
    """
    for folder in _FOLDERS:
        for name in list_broken(store.path, folder):
            yield _broken(store, name)
    refs = list_refs(store, "refs/")
    for name, oid in _list_logged(store, THREAD_PREFIX):
        trashed = TRASH_PREFIX + name.removeprefix(THREAD_PREFIX)
        path = store.path / name
        if name not in refs and trashed not in refs and not os.path.lexists(path):
            yield HealthFinding(
                check="refs",
                level="problem",
                message=f"'{name}' is gone, and nobody removed it",
                hint=f"uwf git update-ref {quote_word(name)} {oid}",
            )


def _broken(store: Store, name: str) -> HealthFinding:
    oid, source = _find_logged(store, name), "by its log it pointed at"
    if oid is None and name == HEAD_REF:
        oid, source = GENESIS_OID, "in a new store it points at"
    if oid is None:
        return HealthFinding(
            check="refs",
            level="problem",
            message=f"'{name}' is damaged",
            hint="its log does not tell what it pointed at; a remote may have it: "
            f"rm {quote_word(str(store.path / name))}, then uwf pull",
        )
    return HealthFinding(
        check="refs",
        level="problem",
        message=f"'{name}' is damaged; {source} {oid}",
        hint="uwf doctor --fix",
        mend=partial(_restore, store.path / name, oid),
    )


def _restore(path: Path, oid: Oid) -> None:
    """Write a ref's file anew, as git does.

    Raises:
        LockedError: Somebody holds git's lock of it.
        StoreError: It cannot be written.
    """
    with git_errors(f"write '{path}'"), replacing(path) as file:
        file.write(f"{oid}\n".encode())


def _list_logged(store: Store, prefix: str) -> Iterator[tuple[str, Oid]]:
    """Yield refs below a prefix by their logs, with what they pointed at last."""
    folder = store.path / "logs" / prefix
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        oid = _find_logged(store, prefix + path.name)
        if oid is not None:
            yield prefix + path.name, oid


def _find_logged(store: Store, name: str) -> Oid | None:
    """Return the newest commit in a ref's log, if it is there."""
    oid = next(iter(list_logged(store.path, name)), _ZERO)
    if oid != _ZERO:
        with suppress(CorruptError):
            return read_commit(store, oid).oid
    return None


def check_integrity(
    store: Store,
    *,
    environment: Mapping[str, str],
    on_phase: Callable[[str], None],
) -> Iterator[HealthFinding]:
    """Let git read every object; takes as long as that takes.

    Args:
        store: Which store.
        environment: Finds git; without one, nothing is looked at.
        on_phase: Told what is being done.
    """
    on_phase("reading all objects")
    words = ("fsck", "--no-dangling", "--no-progress")
    try:
        result = run_git(words, git_dir=store.path, environment=environment)
    except StoreError:
        # That git is missing is a finding of its own.
        return
    oids = _lost_oids(result)
    if oids:
        told = "object is" if len(oids) == 1 else "objects are"
        yield HealthFinding(
            check="objects",
            level="problem",
            message=f"{len(oids)} {told} missing or damaged: {name_some(oids, most=3)}",
            hint=f"{_RESTORE}; uwf verify names the threads",
        )
    elif result.code:
        yield HealthFinding(
            check="objects",
            level="problem",
            message=f"git fsck complains: {result.complaint}",
            hint="uwf git fsck says all of it",
        )


def check_packs(store: Store) -> Iterator[HealthFinding]:
    """Look for packs whose index is damaged, or was never written."""
    horizon = time.time() - _WRITING_SECONDS
    folder = store.path / "objects" / "pack"
    for pack in sorted(folder.glob("pack-*.pack")):
        index = pack.with_suffix(".idx")
        try:
            data = index.read_bytes()
            is_whole = hashlib.sha1(data[:-20]).digest() == data[-20:]  # noqa: S324 - git's own
        except OSError:
            # Whoever writes a pack writes its index last.
            with suppress(OSError):
                if pack.stat().st_mtime < horizon:
                    yield _indexless(pack, "has no index: nothing in it is found")
            continue
        if not is_whole:
            yield _indexless(pack, "has a damaged index")


def _indexless(pack: Path, what: str) -> HealthFinding:
    index = quote_word(str(pack.with_suffix(".idx")))
    return HealthFinding(
        check="objects",
        level="problem",
        message=f"'{pack}' {what}",
        hint=f"rm -f {index}; uwf git index-pack {quote_word(str(pack))}",
    )


def _lost_oids(result: GitResult) -> list[Oid]:
    """Name each object that git complains of, in its order."""
    text = f"{result.text}\n{result.stderr.decode('utf-8', 'replace')}"
    found: dict[Oid, None] = {}
    for line in text.splitlines():
        if _LOST.match(line):
            found.update(dict.fromkeys(Oid(oid) for oid in _OID.findall(line)))
    found.pop(_ZERO, None)
    return list(found)
