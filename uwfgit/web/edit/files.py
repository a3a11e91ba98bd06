"""The files an editor may open: those in one ``.workflows/``, nothing behind a link.

The only place of the web room that writes.
"""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.constants import YAML_MAX_BYTES
from uwfgit.errors import ConflictError, NotFoundError, StoreError
from uwfgit.model.yaml.line_ends import with_ends_of
from uwfgit.store.files import write_over
from uwfgit.store.layout import is_workflow_name

SUFFIXES: Final = (".yaml", ".yml")


class ChangedFileError(ConflictError):
    """The file is no longer what was read."""

    code = "changed"


class Opened(Struct, frozen=True, kw_only=True):
    """A file as it was read; ``mark`` tells whether it still is that."""

    name: str
    path: Path
    text: str
    mark: str


class Desk(Struct, frozen=True, kw_only=True):
    """A folder of workflow files that may be opened and saved."""

    folder: Path

    def names(self) -> tuple[str, ...]:
        """Name the files that can be opened."""
        try:
            entries = tuple(os.scandir(self.folder))
        except OSError:
            return ()
        found = {
            Path(entry.name).stem
            for entry in entries
            if entry.is_file(follow_symlinks=False)
            and Path(entry.name).suffix in SUFFIXES
            and is_workflow_name(Path(entry.name).stem)
        }
        return tuple(sorted(found))

    def open(self, name: str) -> Opened:
        """Read a file.

        Raises:
            NotFoundError: There is none of this name, or it is a link.
            StoreError: It cannot be read.
        """
        path = self._find(name)
        data = _read(path)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as exc:
            raise StoreError(f"'{path}' is not UTF-8") from exc
        return Opened(name=name, path=path, text=text, mark=mark_of(data))

    def _find(self, name: str) -> Path:
        if is_workflow_name(name) and not self.folder.is_symlink():
            for suffix in SUFFIXES:
                path = self.folder / f"{name}{suffix}"
                if path.is_file() and not path.is_symlink():
                    return path
        raise NotFoundError("workflow file", name)

    def save(self, name: str, text: str, *, was: str) -> Opened:
        """Write a file, if, and only if, it is still what was read.

        It is replaced whole, and keeps its permissions.

        Raises:
            ChangedFileError: Someone changed it meanwhile; nothing is written.
            NotFoundError, StoreError: As :meth:`open`, or it cannot be written.
        """
        path = self._find(name)
        before = _read(path)
        if mark_of(before) != was:
            raise ChangedFileError(
                f"'{path.name}' was changed on disk since it was opened",
                hint="copy what you wrote, open it again, and put it in there",
            )
        # A browser ends lines in one way only.
        data = with_ends_of(before.decode("utf-8", "replace"), text).encode()
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            write_over(path, data, mode=mode, fsync=True)
        except OSError as exc:
            reason = exc.strerror or str(exc)
            raise StoreError(f"cannot write '{path}': {reason}") from exc
        return Opened(name=name, path=path, text=text, mark=mark_of(data))


def mark_of(data: bytes) -> str:
    """Tell a file's content by its hash."""
    return sha256(data).hexdigest()


def _read(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            return stream.read(YAML_MAX_BYTES + 1)
    except OSError as exc:
        raise StoreError(f"cannot read '{path}': {exc.strerror}") from exc
