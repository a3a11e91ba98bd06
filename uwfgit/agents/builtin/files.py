"""Files for the builtin agent's tools, confined to the folders it may use.

Not a sandbox: a guard against a model that errs, or that was talked into something
by what it read. Results and refusals alike are texts for the model.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from msgspec import Struct

MAX_READ_BYTES: Final = 512 * 1024
MAX_WRITE_BYTES: Final = 8 * 1024 * 1024
MAX_ENTRIES: Final = 500
_GIT: Final = ".git"


class Workplace(Struct, frozen=True, kw_only=True):
    """Where an agent may read and write: its folder, and what is configured besides."""

    cwd: Path
    folders: tuple[Path, ...] = ()

    def find(self, path: str, *, write: bool) -> Path | str:
        """Return the real path a model's word means, or why it may not have it."""
        if not path or "\0" in path:
            return "error: the path is empty or holds a NUL"
        real = Path(os.path.realpath(self.cwd / path))
        roots = [Path(os.path.realpath(root)) for root in (self.cwd, *self.folders)]
        if not any(real.is_relative_to(root) for root in roots):
            return (
                f"error: '{path}' is outside of the folder you work in; "
                "use a path relative to that folder"
            )
        if write and any(part.lower() == _GIT for part in real.parts):
            # A hook or a setting there is a command that someone runs later.
            return f"error: '{path}' belongs to git itself and is not written to"
        return real


def read_file(place: Workplace, path: str, *, start: float, count: float | None) -> str:
    """Return a file's text, or lines of it; of a folder, what is in it."""
    real = place.find(path, write=False)
    if isinstance(real, str):
        return real
    try:
        if real.is_dir():
            return _list(real)
        data = _read(real)
    except OSError as exc:
        return f"error: cannot read '{path}': {exc.strerror}"
    if isinstance(data, str):
        return f"error: '{path}' {data}"
    text = data.decode(errors="replace")
    if start <= 1 and count is None:
        return text
    # JSON's 2.0 is a whole number too.
    first = max(0, int(start) - 1)
    last = None if count is None else first + max(0, int(count))
    return "".join(text.splitlines(keepends=True)[first:last])


def write_file(place: Workplace, path: str, content: str) -> str:
    """Write a whole file, with the folders above it."""
    real = place.find(path, write=True)
    if isinstance(real, str):
        return real
    data = content.encode(errors="replace")
    if len(data) > MAX_WRITE_BYTES:
        return f"error: more than {MAX_WRITE_BYTES} bytes in one file"
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        _write(real, data)
    except OSError as exc:
        return f"error: cannot write '{path}': {exc.strerror}"
    return f"wrote {len(data)} bytes to {path}"


def patch_file(place: Workplace, path: str, old: str, new: str) -> str:
    """Replace a text that stands exactly once in a file."""
    real = place.find(path, write=True)
    if isinstance(real, str):
        return real
    try:
        data = _read(real)
    except OSError as exc:
        return f"error: cannot read '{path}': {exc.strerror}"
    if isinstance(data, str):
        return f"error: '{path}' {data}"
    wanted = old.encode(errors="replace")
    found = data.count(wanted) if wanted else 0
    if found != 1:
        return f"error: the text to replace stands {found} times in '{path}', not once"
    try:
        _write(real, data.replace(wanted, new.encode(errors="replace")))
    except OSError as exc:
        return f"error: cannot write '{path}': {exc.strerror}"
    return f"replaced it in {path}"


def _list(folder: Path) -> str:
    names = sorted(
        f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
        for entry in os.scandir(folder)
        if entry.name != _GIT
    )
    more = len(names) - MAX_ENTRIES
    lines = names[:MAX_ENTRIES] + ([f"… and {more} more"] if more > 0 else [])
    return "\n".join(lines) or "(empty folder)"


def _read(real: Path) -> bytes | str:
    """Return a plain file's bytes, or what is wrong with it."""
    # A pipe or a device would be waited for, or never end.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(real, flags)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return "is not a file"
        if status.st_size > MAX_READ_BYTES:
            return f"is too large to read whole: {status.st_size} bytes"
        return file.read(MAX_READ_BYTES)


def _write(real: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(real, flags, 0o666)
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(None, "not a file")
        try:
            # First the room: on a full disk the file is left as it was.
            _write_at(descriptor, b"\0" * (len(data) - status.st_size), status.st_size)
        except OSError:
            file.truncate(status.st_size)
            raise
        _write_at(descriptor, data, 0)
        file.truncate(len(data))


def _write_at(descriptor: int, data: bytes, place: int) -> None:
    while data:
        done = os.pwrite(descriptor, data, place)
        data, place = data[done:], place + done
