"""Files written whole or not at all: new ones, and ones in place of another."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from uwfgit.errors import InvalidError, StoreError


def write_new(
    path: Path, data: bytes, *, name: str | None = None, mode: int | None = None
) -> None:
    """Write a file with the folders it needs, whole; on failure there is none.

    A part of one would stand in the way of the next try.

    Args:
        path: Where to.
        data: All of it.
        name: How errors call it.
        mode: Its permissions; else the usual ones.

    Raises:
        InvalidError: Something is there already, or is no folder on the way.
        StoreError: It cannot be written.
    """
    shown = name or str(path)
    try:
        _make_folder(path.parent, shown)
        with path.open("xb") as file:
            try:
                file.write(data)
                file.flush()
                if mode is not None:
                    path.chmod(mode)
            except BaseException:
                path.unlink()
                raise
    except FileExistsError as exc:
        message = f"'{shown}' is there already"
        raise InvalidError(message, hint="choose another name") from exc
    except OSError as exc:
        raise StoreError(f"cannot write '{shown}': {exc.strerror}") from exc


def _make_folder(folder: Path, shown: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as exc:
        # A dangling link as well, which no folder can be made at.
        way = next(
            each
            for each in (folder, *folder.parents)
            if each.is_symlink() or each.exists()
        )
        message = f"cannot write '{shown}': '{way}' is not a folder"
        raise InvalidError(
            message, hint="move it away, or choose another place"
        ) from exc


def write_over(
    path: Path, data: bytes, *, mode: int | None = None, fsync: bool = False
) -> None:
    """Put a file in place of whatever has its name; on failure that stays.

    Args:
        path: Where to; its folder is there.
        data: All of it.
        mode: Its permissions; else the usual ones.
        fsync: Wait until it would survive a loss of power.

    Raises:
        OSError: It cannot be written.
    """
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(aside, flags, 0o666 if mode is None else mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if fsync:
                os.fsync(descriptor)
        if mode is not None:
            # Whatever the umask took away.
            aside.chmod(mode)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
