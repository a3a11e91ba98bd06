"""What a CLI says of itself before it is needed: its options, and its login."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from uwfgit.agents.children.process import TimeLimits, run_process
from uwfgit.agents.clis.cli import Cli

_LIMITS: Final = TimeLimits(idle_seconds=15.0, wall_seconds=15.0)
_OPTION: Final = re.compile(r"--[a-z]")


def examine(
    cli: Cli, command: str, *, cwd: Path, environment: Mapping[str, str]
) -> str | None:
    """Say why a program is no good, and how to fix that, in one line."""

    def ask(*words: str) -> tuple[int | None, str]:
        result = run_process(
            (command, *words),
            prompt="",
            cwd=cwd,
            environment=environment,
            limits=_LIMITS,
        )
        return result.exit_code, f"{result.stdout}{result.stderr_tail}"

    name = Path(command).name
    code, told = ask(*cli.help)
    # One that does not answer is not known to be old.
    if code != 0 or not _OPTION.search(told):
        return None
    for option in cli.options:
        if option not in told:
            update = f"bring it up to date with `{cli.update}`"
            return f"'{name}' is too old: it does not know {option}; {update}"
    status = cli.login_status
    # Words that it does not know it would take for a prompt.
    if status and status[0] in told and ask(*status)[0] == 1:
        return f"'{name}' has no login; {cli.login}"
    return None
