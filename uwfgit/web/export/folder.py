"""Writing an export: into a new folder, or over an earlier export of ours."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.errors import InvalidError, StoreError

MANIFEST: Final = "uwf-export.json"
"""Names the files of an export, so that the next one can take their place."""


class Written(Struct, frozen=True, kw_only=True):
    """What came to be in the folder."""

    files: int
    size: int


def check_folder(folder: Path) -> None:
    """Refuse a folder with anything in it that is no export.

    Raises:
        InvalidError: It is no folder, or holds something else.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InvalidError(f"'{folder}' is not a folder", hint="name a new folder")
    if any(folder.iterdir()) and not (folder / MANIFEST).is_file():
        raise InvalidError(
            f"'{folder}' is not empty and holds no earlier export",
            hint="name a new folder",
        )


def write_folder(folder: Path, pages: Iterable[tuple[str, str]]) -> Written:
    """Write pages into a folder; those of an earlier export go first.

    Raises:
        InvalidError: As :func:`check_folder` says.
        StoreError: A file cannot be written.
    """
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_earlier(folder)
        return _write(folder, pages)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise StoreError(f"cannot write to '{folder}': {reason}") from exc


def write_single(path: Path, text: str) -> Written:
    """Write one page.

    Raises:
        StoreError: It cannot be written.
    """
    data = text.encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise StoreError(f"cannot write '{path}': {reason}") from exc
    return Written(files=1, size=len(data))


def _write(folder: Path, pages: Iterable[tuple[str, str]]) -> Written:
    names, size = [], 0
    for name, text in pages:
        data = text.encode()
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        names.append(name)
        size += len(data)
    listed = json.dumps({"format": 1, "files": names}, indent=1)
    (folder / MANIFEST).write_text(f"{listed}\n", "utf-8")
    return Written(files=len(names), size=size)


def _remove_earlier(folder: Path) -> None:
    try:
        listed = json.loads((folder / MANIFEST).read_text("utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    for name in listed if isinstance(listed, list) else ():
        path = folder / str(name)
        # A list that was changed leads nowhere else.
        is_ours = isinstance(name, str) and path.suffix in {".html", ".css"}
        if is_ours and path.resolve().is_relative_to(folder.resolve()):
            path.unlink(missing_ok=True)
