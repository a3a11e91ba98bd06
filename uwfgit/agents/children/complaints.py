"""What went wrong with a command, in one line that is safe to show (no processes)."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import unicodedata
from collections.abc import Mapping
from pathlib import Path

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)")


def check_command(
    command: str, *, cwd: Path, environment: Mapping[str, str]
) -> str | None:
    """Say why a command cannot be started there; ``None`` when it can."""
    if not cwd.is_dir():
        return f"the folder '{cwd}' is not there any more"
    if "/" not in command:
        if shutil.which(command, path=environment.get("PATH", os.defpath)) is None:
            mend = (
                "put the words after the first into its args"
                if " " in command
                else "install it, or give its whole path in the agent's command"
            )
            return f"command '{command}' not found on PATH; {mend}"
        return None
    if not (cwd / command).is_file():
        return f"command '{command}' is not there"
    if not os.access(cwd / command, os.X_OK):
        return f"command '{command}' is not executable; try `chmod +x`"
    return None


def explain_start(command: str, exc: OSError | ValueError) -> str:
    """Say why the system did not start a command."""
    if isinstance(exc, ValueError):
        return f"cannot start '{command}': an argument or a variable holds a NUL"
    if exc.errno == errno.ENOEXEC:
        return f"cannot start '{command}': not a program, and without a #! line"
    if exc.errno == errno.ENOENT:
        # The file itself was there a moment ago.
        return f"cannot start '{command}': its #! line names no program"
    if exc.errno == errno.E2BIG:
        return f"cannot start '{command}': its arguments or variables are too long"
    return f"cannot start '{command}': {exc.strerror}"


def explain_end(name: str, code: int) -> str | None:
    """Say how a command failed; ``None`` for a good end. Signals are negative."""
    if code == 0:
        return None
    if code > 0:
        return f"'{name}' exited with code {code}"
    known = {item.value: item.name for item in signal.Signals}
    ending = known.get(-code, f"signal {-code}")
    return f"'{name}' was killed by {ending}"


def one_line(text: str, limit: int) -> str:
    """Return the end of a text as one line that is safe to show.

    Escape sequences, control and direction characters are taken out; lines are
    joined with `` / ``.
    """
    plain = _ESCAPE.sub("", text[-8 * limit :])
    lines = (_without_controls(line).strip() for line in plain.splitlines())
    joined = " / ".join(line for line in lines if line)
    return joined if len(joined) <= limit else f"…{joined[-limit:]}"


def _without_controls(text: str) -> str:
    return "".join(
        " " if char == "\t" else char
        for char in text
        if char == "\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs")
    )
