"""Files read and written with care: others' in bounds, ours whole, and private.

A file that anyone may have put in a work tree is read here alone: a tracked link may
lead to a device that never ends, or to a pipe nobody writes to. A file is written
whole or not at all: a new one, and one in place of another.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

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


_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY
_DESCRIPTORS: Final = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
_MIB: Final = 1024 * 1024


def read_plain(path: Path, *, most: int, any_kind: bool = False) -> bytes:
    """Read a regular file, whole; links are followed.

    Args:
        path: The file. One of this process' own descriptors may be a pipe: a shell
            names those so, and no link leads there under that name.
        most: Bytes that it may have.
        any_kind: The user named it just now, so it may be a pipe under any name.

    Raises:
        OSError: It cannot be read, is no regular file, or is too large.
    """
    data = read_start(path, most=most + 1, any_kind=any_kind)
    if len(data) > most:
        message = f"it is larger than {most // _MIB} MiB"
        raise OSError(errno.EFBIG, message, str(path))
    return data


def read_start(path: Path, *, most: int, any_kind: bool = False) -> bytes:
    """Read the first bytes of a regular file, as :func:`read_plain` does.

    Raises:
        OSError: It cannot be read, or is no regular file.
    """
    is_open_to_all = any_kind or str(path).startswith(_DESCRIPTORS)
    # Without this flag, opening a pipe waits for who writes to it.
    flags = _FLAGS if is_open_to_all else _FLAGS | os.O_NONBLOCK
    with os.fdopen(os.open(path, flags), "rb") as stream:
        mode = os.fstat(stream.fileno()).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not (is_open_to_all or stat.S_ISREG(mode)):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return stream.read(most)


_PRIVATE: Final = 0o077


_guard: Final = threading.Lock()
_before: Final[list[int]] = []
"""The umask at the start of each block that is not over, the process's own first."""


@contextmanager
def only_mine() -> Iterator[None]:
    """Let nobody else read or write what the block makes; afterwards all is as before.

    For what libgit2 writes, which knows no other way. The umask is the whole
    process's: no agent may be started in the block.
    """
    with _guard:
        _before.append(os.umask(_PRIVATE))
    try:
        yield
    finally:
        with _guard:
            before = _before.pop()
            if not _before:
                os.umask(before)


def write_private(path: Path, text: str) -> None:
    """Write a text file with mode 0600, in place of what stood there.

    Raises:
        OSError: It cannot be written.
    """
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor, for its mode
        stream.write(text)


def folder_below(root: Path, path: str) -> Path | None:
    """Find a folder by someone else's text; nothing outside is so much as looked at.

    Links are not followed: what a start records is resolved.
    """
    if path.startswith("/") or ".." in path.split("/") or "\0" in path:
        return None
    folder = root
    for part in Path(path).parts:
        folder /= part
        if os.path.islink(folder):  # noqa: PTH114 - pathlib's raises at a long name
            return None
    return folder if os.path.isdir(folder) else None  # noqa: PTH112 - as above
