"""Add a section to a store's config."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from uwfgit.errors import InvalidError
from uwfgit.store.handle import git_errors
from uwfgit.store.locks.git_lock import append

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
        append(config, lambda: "".join(lines))


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
