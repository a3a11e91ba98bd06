"""Which stores are this user's; the only reader and writer of what says so.

``<UWF_HOME>/stores`` holds one absolute path a line, to find them by. What a store
is trusted by is a random id in its own folder that ``<UWF_HOME>/store-ids`` holds
too: another one in the same place has none that is known, and one that was moved
brings its own along. A store without was not made, cloned or trusted here.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from uwfgit.errors import StoreError, UntrustedError
from uwfgit.shell import quote_word
from uwfgit.store.files import read_start, write_over
from uwfgit.store.locks.flock import lock

_NAME = "stores"
_IDS = "store-ids"
_ID_FILE = "uwf/id"
_ID = re.compile(rb"[0-9a-f]{32}")


def make_id(home: Path) -> str:
    """Make the id of a store that is about to be this user's.

    Raises:
        LockedError: Another command kept the list busy.
        StoreError: It cannot be written.
    """
    made = secrets.token_hex(16)
    with _hold_list(home):
        _replace(home / _IDS, [*_read_lines(home / _IDS), made])
    return made


def write_id(path: Path, made: str) -> None:
    """Give a store its id.

    Raises:
        OSError: It cannot be written.
    """
    file = path / _ID_FILE
    file.parent.mkdir(mode=0o700, exist_ok=True)
    write_over(file, f"{made}\n".encode(), mode=0o600)


def is_known(path: Path, *, home: Path) -> bool:
    """Whether a store was made, cloned or trusted by this user on this machine.

    Raises:
        UntrustedError: The list is another user's, or others may write to it.
        StoreError: It or the store cannot be read.
    """
    try:
        found = read_start(path / _ID_FILE, most=64).strip()
    except PermissionError as exc:
        raise StoreError(f"cannot read store '{path}': {exc.strerror}") from exc
    except OSError:
        return False
    if _ID.fullmatch(found) is None:
        return False
    return found.decode() in _read_lines(home / _IDS)


def list_stores(home: Path) -> tuple[Path, ...]:
    """List the stores this user made, cloned or trusted, oldest first.

    They need not exist any more.

    Raises:
        UntrustedError: The list is another user's, or others may write to it.
        StoreError: It cannot be read.
    """
    return tuple(map(Path, _read_lines(home / _NAME)))


def _read_lines(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid():
                raise UntrustedError(f"'{path}' belongs to another user")
            if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise UntrustedError(
                    f"'{path}' may be written by others",
                    hint=f"chmod go-w {quote_word(str(path))}",
                )
            return [line for line in file.read().split("\n") if line]
    except FileNotFoundError:
        return []
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
    with _hold_list(home):
        known = list_stores(home)
        if path in known:
            return False
        _replace(home / _NAME, [*map(str, known), line])
    return True


@contextmanager
def _hold_list(home: Path) -> Iterator[None]:
    name = home / f"{_NAME}.lock"
    try:
        held = lock(name, command="uwf", wait=5, what="the store list")
        with held:
            yield
    except StoreError as exc:
        if not os.access(home if home.is_dir() else home.parent, os.W_OK):
            exc.hint = "set UWF_HOME to a folder that you may write to"
        raise


def _replace(path: Path, lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    try:
        data = text.encode("utf-8", "surrogateescape")
        write_over(path, data, mode=0o600, fsync=True)
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
    with _hold_list(home):
        rest = [str(known) for known in list_stores(home) if known != path]
        _replace(home / _NAME, rest)
