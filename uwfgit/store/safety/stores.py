"""The list of this user's stores, ``<UWF_HOME>/stores``; its only reader and writer.

One absolute path a line. A store that is not on it was not made, cloned or
trusted on this machine.
"""

from __future__ import annotations

import os
import shlex
import stat
import tempfile
from pathlib import Path

from uwfgit.errors import StoreError, UntrustedError
from uwfgit.store.locks.flock import lock

_NAME = "stores"


def list_stores(home: Path) -> tuple[Path, ...]:
    """List the stores this user made, cloned or trusted, oldest first.

    They need not exist any more.

    Raises:
        UntrustedError: The list is another user's, or others may write to it.
        StoreError: It cannot be read.
    """
    path = home / _NAME
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            _check_list(path, os.fstat(file.fileno()))
            return tuple(Path(line) for line in file.read().split("\n") if line)
    except FileNotFoundError:
        return ()
    except OSError as exc:
        raise StoreError(f"cannot read '{path}': {exc.strerror}") from exc


def register_store(path: Path, *, home: Path) -> bool:
    """Put a store on the list, unless it is there; return whether it was added.

    The list is replaced whole, under a lock, so two commands lose nothing.

    Raises:
        LockedError: Another command kept the list busy.
        StoreError: It cannot be written.
    """
    line = str(path)
    if "\n" in line or "\r" in line:
        raise StoreError(f"a store's path may not hold a line break: {line!r}")
    with lock(home / f"{_NAME}.lock", command="uwf", wait=5, what="the store list"):
        known = list_stores(home)
        if path in known:
            return False
        _replace(home / _NAME, [*map(str, known), line])
    return True


def _check_list(path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise UntrustedError(f"'{path}' belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UntrustedError(
            f"'{path}' may be written by others",
            hint=f"chmod go-w {shlex.quote(str(path))}",
        )


def _replace(path: Path, lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    try:
        # mkstemp makes the file 0600.
        descriptor, name = tempfile.mkstemp(prefix=f".{_NAME}-", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError as exc:
        raise StoreError(f"cannot write '{path}': {exc.strerror}") from exc


def unregister_store(path: Path, *, home: Path) -> None:
    """Take a store off the list, should it be there.

    Raises:
        LockedError: Another command kept the list busy.
        StoreError: It cannot be written.
    """
    if path not in list_stores(home):
        return
    with lock(home / f"{_NAME}.lock", command="uwf", wait=5, what="the store list"):
        rest = [str(known) for known in list_stores(home) if known != path]
        _replace(home / _NAME, rest)
