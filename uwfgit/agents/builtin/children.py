"""Tools of the builtin agent that are programs: a shell command, ``uwf cas``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.agents.base import Failure
from uwfgit.agents.children.complaints import one_line
from uwfgit.agents.children.process import ProcessResult, TimeLimits, run_process

COMMAND_SECONDS: Final = 120.0
MAX_COMMAND_SECONDS: Final = 3600.0
_CAS_SECONDS: Final = 60.0
_SHOWN_CHARS: Final = 32_000
_SHELL: Final = ("/bin/sh", "-c")


class Shell(Struct, frozen=True, kw_only=True):
    """Where commands run and what they see."""

    cwd: Path
    environment: Mapping[str, str]


def run_command(shell: Shell, command: str, *, seconds: float) -> str | Failure:
    """Run a shell command; give its exit code and output as text for the model.

    Returns:
        A failure only when the user interrupted it.
    """
    seconds = min(max(1.0, seconds), MAX_COMMAND_SECONDS)
    result = _run(shell, (*_SHELL, command), "", seconds)
    if result.failure is not None and result.failure.phase == "interrupted":
        return result.failure
    parts = [f"exit code: {result.exit_code}"]
    if result.failure is not None and (result.exit_code or 0) <= 0:
        parts = [f"error: {result.failure.message}"]
    for name, text in (("stdout", result.stdout), ("stderr", result.stderr_tail)):
        if text:
            parts.append(f"--- {name}\n{_cut(text)}")
    return "\n".join(parts)


def cas_get(shell: Shell, node: str) -> str | Failure:
    """Return the payload of a node."""
    return _cas(shell, ("get", node, "--format", "json"), "")


def cas_put(shell: Shell, text: str) -> str | Failure:
    """Store a text; give its hash."""
    return _cas(shell, ("put-text", "-"), text)


def _cas(shell: Shell, words: tuple[str, ...], given: str) -> str | Failure:
    # Through the program, as every agent does: what is put is noted for this run.
    result = _run(shell, ("uwf", "cas", *words), given, _CAS_SECONDS)
    if result.failure is None:
        return _cut(result.stdout.strip())
    if result.failure.phase == "interrupted":
        return result.failure
    said = one_line(result.stderr_tail, _SHOWN_CHARS) or result.failure.message
    return said if said.startswith("error:") else f"error: {said}"


def _run(
    shell: Shell, argv: tuple[str, ...], given: str, seconds: float
) -> ProcessResult:
    return run_process(
        argv,
        prompt=given,
        cwd=shell.cwd,
        environment=shell.environment,
        limits=TimeLimits(
            idle_seconds=seconds,
            wall_seconds=seconds,
            idle_setting="this call's seconds",
            wall_setting="this call's seconds",
        ),
    )


def _cut(text: str) -> str:
    """Return both ends of a long text: the cause often stands at one of them."""
    if len(text) <= _SHOWN_CHARS:
        return text
    half = _SHOWN_CHARS // 2
    left = len(text) - 2 * half
    return f"{text[:half]}\n[{left} characters left out]\n{text[-half:]}"
