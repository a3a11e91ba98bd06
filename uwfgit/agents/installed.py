"""Which agents are on this machine, and what makes one of them ours to use."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.agents.clis.kinds import CLI_KINDS, load_cli

_PREFIX: Final = "uwf-"


class Installed(Struct, frozen=True, kw_only=True):
    """A program that is an agent; an adapter is named by its program."""

    kind: str
    program: str
    path: Path

    @property
    def name(self) -> str:
        """What it is called: by its kind, or for an adapter by its program."""
        return self.kind if self.kind in CLI_KINDS else self.program

    @property
    def command(self) -> str:
        """The command that makes it the default agent."""
        edits = " --edits" if edit_args(self.kind) else ""
        return f"uwf setup --agent {self.name}{edits}"


def find_program(kind: str | None) -> str | None:
    """Find the program that a kind drives; ``None`` for a kind without one."""
    cli = CLI_KINDS.get(kind or "")
    return None if cli is None else cli.program


def find_install(kind: str | None) -> str | None:
    """Find the command that installs the program a kind drives, if there is one."""
    return None if kind not in CLI_KINDS else load_cli(kind or "").install


def edit_args(kind: str) -> tuple[str, ...]:
    """Return what lets a kind edit files without a person to ask, if it can be let."""
    cli = CLI_KINDS.get(kind)
    return () if cli is None else cli.edit_args


def find_installed(
    environment: Mapping[str, str], *, kinds: Iterable[str]
) -> tuple[Installed, ...]:
    """Find the agents on PATH: of these kinds, and adapters called ``uwf-…``."""
    path = environment.get("PATH") or os.defpath
    known = set(kinds)
    found = [
        Installed(kind=kind, program=cli.program, path=Path(where))
        for kind, cli in CLI_KINDS.items()
        if kind in known and (where := shutil.which(cli.program, path=path))
    ]
    return (*found, *_find_adapters(path, known))


def _find_adapters(path: str, kinds: set[str]) -> Iterator[Installed]:
    # Ours that plays a file of replies: nobody's choice for work to be done.
    seen = {"uwf-mock"}
    for folder in path.split(os.pathsep):
        try:
            files = sorted(Path(folder).glob(f"{_PREFIX}*"))
        except OSError:
            continue
        for file in files:
            name = file.name
            is_new = name.startswith(_PREFIX) and name not in seen
            if not is_new or name.removeprefix(_PREFIX) in kinds:
                continue
            if file.is_file() and os.access(file, os.X_OK):
                seen.add(name)
                yield Installed(kind="adapter", program=name, path=file)
