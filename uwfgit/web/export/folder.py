"""Writing an export: into a new folder, or over an earlier export of ours."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.errors import InvalidError, StoreError
from uwfgit.store.files import read_start, write_over
from uwfgit.web.render.frame import GENERATOR

MANIFEST: Final = "uwf-export.json"
"""Names the files of an export, so that the next one can take their place."""

_START_BYTES: Final = 1024


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
        StoreError: A file cannot be written; none of them stays.
    """
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_earlier(folder)
        return _write(folder, pages)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise StoreError(f"cannot write to '{folder}': {reason}") from exc


def check_page(path: Path) -> None:
    """Refuse to put a page in place of anything that is not one of ours.

    Raises:
        InvalidError: Something else has its name.
    """
    try:
        start = read_start(path, most=_START_BYTES)
    except FileNotFoundError:
        return
    except OSError:
        start = b""
    if GENERATOR.encode() not in start:
        raise InvalidError(
            f"'{path}' is there already and is not an earlier export",
            hint="name a new file",
        )


def write_page(path: Path, text: str) -> Written:
    """Write one page, or leave what is there as it is.

    Raises:
        InvalidError: As :func:`check_page` says.
        StoreError: It cannot be written.
    """
    check_page(path)
    data = text.encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_over(path, data)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise StoreError(f"cannot write '{path}': {reason}") from exc
    return Written(files=1, size=len(data))


def _write(folder: Path, pages: Iterable[tuple[str, str]]) -> Written:
    names: list[str] = []
    size = 0
    try:
        for name, text in pages:
            data = text.encode()
            names.append(name)
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
            size += len(data)
        listed = json.dumps({"format": 1, "files": names}, indent=1)
        (folder / MANIFEST).write_text(f"{listed}\n", "utf-8")
    except BaseException:
        # Without its list it would be no export that the next one may replace.
        _remove_part(folder, names)
        raise
    return Written(files=len(names), size=size)


def _remove_part(folder: Path, names: Sequence[str]) -> None:
    with suppress(OSError):
        for name in names:
            (folder / name).unlink(missing_ok=True)
        for each in {(folder / name).parent for name in names} - {folder}:
            each.rmdir()


def _remove_earlier(folder: Path) -> None:
    try:
        listed = json.loads((folder / MANIFEST).read_text("utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    for name in listed if isinstance(listed, list) else ():
        path = folder / str(name)
        # A list that was changed leads nowhere else.
        is_ours = isinstance(name, str) and path.suffix in {".html", ".css"}
        with suppress(OSError, ValueError):
            real, inside = os.path.realpath(path), os.path.realpath(folder)
            if is_ours and Path(real).is_relative_to(inside):
                path.unlink(missing_ok=True)
