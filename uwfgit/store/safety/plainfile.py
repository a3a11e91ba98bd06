"""Files that anyone may have put in a work tree: the only place that reads them.

A tracked link may lead to a device that never ends, or to a pipe nobody writes to.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

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
