"""Sessions as files of a CLI: read, and put back without leaving its folder."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.agents.base import SessionFilesError
from uwfgit.model.memory.memory import MAX_FILES, MAX_SESSION_BYTES, is_file_name

MAIN: Final = "session"
"""The name of the session's own file; others stand in a folder beside it."""


class Place(Struct, frozen=True, kw_only=True):
    """Where one session is, or would be: its own file, and the folder beside it.

    ``base`` is the folder of the CLI that neither may leave. ``marker`` is a file,
    with its text, by which the CLI knows whose the place is.
    """

    base: Path
    file: Path
    folder: Path | None = None
    marker: tuple[Path, str] | None = None


Locate = Callable[[str, Path, Mapping[str, str]], Place]
"""Makes the place of a session from its id, the step's folder and the environment."""


class LocatedFiles(Struct, frozen=True, kw_only=True):
    """The session files of a kind whose places can be told from an id.

    Attributes:
        locate: Where a session is, or would be put.
        new_id: Makes an id for a copy of a session.
    """

    locate: Locate
    new_id: Callable[[str], str] = lambda _: str(uuid.uuid4())

    def read(
        self, session: str, *, cwd: Path, environment: Mapping[str, str]
    ) -> Mapping[str, bytes]:
        """Read a session's files by name, its own first; empty when it is not here.

        Raises:
            SessionFilesError: They cannot be kept; says why.
        """
        place = self.locate(session, cwd, environment)
        if not place.file.is_file():
            return {}
        files: dict[str, bytes] = {}
        room = MAX_SESSION_BYTES
        for name, path in _list_files(place):
            files[name] = _read_file(path, room)
            room -= len(files[name])
        return files

    def write(
        self,
        session: str,
        files: Mapping[str, bytes],
        *,
        renew: bool,
        cwd: Path,
        environment: Mapping[str, str],
    ) -> str:
        """Put a session's files where the CLI looks for them; see ``SessionFiles``.

        Raises:
            SessionFilesError: They cannot be put there; says why.
        """
        place = self.locate(session, cwd, environment)
        if not renew:
            with suppress(OSError, KeyError):
                # The very same one is there.
                if place.file.read_bytes() == files[MAIN]:
                    return session
        if renew or os.path.lexists(place.file):
            old, session = session, self.new_id(session)
            place = self.locate(session, cwd, environment)
            words = old.encode(), session.encode()
            files = {name: data.replace(*words) for name, data in files.items()}
        try:
            for name, data in files.items():
                _write_file(place, name, data)
            if place.marker is not None and not os.path.lexists(place.marker[0]):
                _write_new(place.base, place.marker[0], place.marker[1].encode())
        except OSError as exc:
            raise SessionFilesError(
                f"its session cannot be put back: {exc.strerror or exc}"
            ) from exc
        return session


def _list_files(place: Place) -> Iterator[tuple[str, Path]]:
    yield MAIN, place.file
    if place.folder is None or not place.folder.is_dir():
        return
    found = sorted(path for path in place.folder.rglob("*") if path.is_file())
    if len(found) >= MAX_FILES:
        raise SessionFilesError(f"its session has more than {MAX_FILES} files")
    for path in found:
        name = f"beside/{path.relative_to(place.folder).as_posix()}"
        if not path.is_symlink() and is_file_name(name):
            yield name, path


def _read_file(path: Path, room: int) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(room + 1)
    except OSError as exc:
        raise SessionFilesError(
            f"its session cannot be read: {exc.strerror or exc}"
        ) from exc
    if len(data) > room:
        size = MAX_SESSION_BYTES // 1024 // 1024
        raise SessionFilesError(f"its session is larger than {size} MiB")
    return data


def _write_file(place: Place, name: str, data: bytes) -> None:
    """Write one file that is not there yet, below the CLI's own folder.

    Raises:
        OSError: It is there, or a link leads out.
        SessionFilesError: The name leads out.
    """
    if not is_file_name(name):
        raise SessionFilesError(f"its session has a file of the name '{name[:80]}'")
    if name == MAIN:
        path = place.file
    elif place.folder is not None and name.startswith("beside/"):
        path = place.folder / name.removeprefix("beside/")
    else:
        return
    _write_new(place.base, path, data)


def _write_new(base: Path, path: Path, data: bytes) -> None:
    _make_folders(base, path.parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise


def _make_folders(base: Path, folder: Path) -> None:
    """Make the folders of a path below ``base``, none of them a link.

    Raises:
        SessionFilesError: One is.
    """
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    here = base
    for part in folder.relative_to(base).parts:
        here /= part
        if here.is_symlink():
            raise SessionFilesError(f"'{here}' is a link, and is not followed")
        here.mkdir(mode=0o700, exist_ok=True)
