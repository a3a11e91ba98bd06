"""Add a section to a store's config; the only place that writes one by hand."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from uwfgit.errors import InvalidError, LockedError
from uwfgit.store.locks import pause
from uwfgit.store.repository import git_errors

_WAIT: Final = 2.0
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def append_section(
    config: Path, section: str, name: str, values: Sequence[tuple[str, str]]
) -> None:
    """Append ``[section "name"]`` with its values, all of them or none.

    The file is replaced by git's own protocol, so it loses nothing to a git
    that writes it at the same time.

    Raises:
        InvalidError: A name or value cannot stand on one line.
        LockedError: Another process keeps the config locked.
        StoreError: It cannot be written.
    """
    for text in (name, *(value for _, value in values)):
        if _CONTROL.search(text):
            raise InvalidError(f"control characters in {text!r}")
    lines = [f"[{section} {_quote(name)}]\n"]
    lines += [f"\t{key} = {_quote(value)}\n" for key, value in values]
    with git_errors(f"write '{config}'"):
        _append(config, "".join(lines))


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _append(config: Path, added: str) -> None:
    beside = config.with_name(f"{config.name}.lock")
    descriptor = _take(beside)
    try:
        text = config.read_bytes()
        if text and not text.endswith(b"\n"):
            text += b"\n"
        with os.fdopen(descriptor, "wb") as file:
            file.write(text + added.encode("utf-8", "surrogateescape"))
            file.flush()
            os.fchmod(file.fileno(), stat.S_IMODE(config.stat().st_mode))
            os.fsync(file.fileno())
        beside.rename(config)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _take(path: Path) -> int:
    deadline = time.monotonic() + _WAIT
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError as exc:
            if time.monotonic() >= deadline:
                raise LockedError(f"'{path}'") from exc
        pause()
