"""Which agents are on this machine, and what makes one of them ours to use."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

PROGRAMS: Final[Mapping[str, str]] = {
    "claude-code": "claude",
    "codex": "codex",
    "gemini": "gemini",
    "opencode": "opencode",
    "cursor": "cursor-agent",
    "hermes": "hermes",
}
"""The program of each kind that drives one; each of them knows ``--version``."""

EDIT_ARGS: Final[Mapping[str, tuple[str, ...]]] = {
    "claude-code": ("--permission-mode", "acceptEdits"),
    "codex": ("-c", 'sandbox_mode="workspace-write"'),
    "gemini": ("--approval-mode", "auto_edit"),
    "opencode": ("--auto",),
    "cursor": ("--force",),
}
"""With these a kind may edit files in its folder without a person to ask."""

_PREFIX: Final = "uwf-"


class Installed(Struct, frozen=True, kw_only=True):
    """A program that is an agent; an adapter is named by its program."""

    kind: str
    program: str
    path: Path

    @property
    def name(self) -> str:
        """What it is called: by its kind, or for an adapter by its program."""
        return self.kind if self.kind in PROGRAMS else self.program

    @property
    def command(self) -> str:
        """The command that makes it the default agent."""
        edits = " --edits" if self.kind in EDIT_ARGS else ""
        return f"uwf setup --agent {self.name}{edits}"


def find_installed(
    environment: Mapping[str, str], *, kinds: Iterable[str]
) -> tuple[Installed, ...]:
    """Find the agents on PATH: of these kinds, and adapters called ``uwf-…``."""
    path = environment.get("PATH") or os.defpath
    known = set(kinds)
    found = [
        Installed(kind=kind, program=program, path=Path(where))
        for kind, program in PROGRAMS.items()
        if kind in known and (where := shutil.which(program, path=path))
    ]
    return (*found, *_find_adapters(path, known))


def _find_adapters(path: str, kinds: set[str]) -> Iterator[Installed]:
    seen: set[str] = set()
    for folder in path.split(os.pathsep):
        for file in _list(Path(folder)):
            name = file.name
            is_new = name.startswith(_PREFIX) and name not in seen
            if not is_new or name.removeprefix(_PREFIX) in kinds:
                continue
            if file.is_file() and os.access(file, os.X_OK):
                seen.add(name)
                yield Installed(kind="adapter", program=name, path=file)


def _list(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob(f"{_PREFIX}*"))
    except OSError:
        return []
