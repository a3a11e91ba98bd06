"""What a CLI says of itself before it is needed: its options, and its login."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from uwfgit.agents.children.process import TimeLimits, run_process
from uwfgit.agents.clis.cli import Cli

_LIMITS: Final = TimeLimits(idle_seconds=15.0, wall_seconds=15.0)
_OPTION: Final = re.compile(r"--[a-z]")


def examine(
    cli: Cli,
    command: str,
    args: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
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
    if (
        status is None
        or status.known_by not in told
        or status.may_do_without(args, environment)
    ):
        return None
    code, told = ask(*status.words)
    # Of a broken configuration it complains with the same code.
    if code == 1 and status.denial.search(told):
        return f"'{name}' has no login; {cli.login}"
    return None
