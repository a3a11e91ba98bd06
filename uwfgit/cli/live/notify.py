"""Telling a person who looked away that a thread ended or waits for them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.output import ring

if TYPE_CHECKING:
    from uwfgit.engine.run.report import RunReport

_COMMAND_SECONDS: Final = 10.0
_LONG_SECONDS: Final = 30.0
"""Who waited less is still looking, and needs no bell."""


def tell_end(context: CommandContext, report: RunReport, *, began: float) -> None:
    """Run the user's ``notify`` command, or ring the terminal's bell.

    The command finds ``UWF_THREAD``, ``UWF_STATUS`` and ``UWF_MESSAGE`` in its
    environment; that it fails is a warning and nothing more.

    Args:
        context: The command's.
        report: Of a run with a step at least.
        began: When it did, by the monotonic clock.
    """
    command = context.settings.notify
    if command is not None:
        _run_command(context, command, report)
    elif time.monotonic() - began >= _LONG_SECONDS:
        ring(quiet=context.options.quiet)


def _run_command(context: CommandContext, command: str, report: RunReport) -> None:
    from uwfgit.agents.children.process import TimeLimits, run_process

    last = report.steps[-1]
    facts = {
        "UWF_THREAD": report.thread,
        "UWF_STATUS": report.status,
        # A hold is no word of the step before it.
        "UWF_MESSAGE": last.error
        or last.suspend_message
        or report.problem
        or last.said
        or "",
    }
    result = run_process(
        ("/bin/sh", "-c", command),
        prompt="",
        cwd=context.home,
        environment={**context.environment, **facts},
        limits=TimeLimits(
            idle_seconds=_COMMAND_SECONDS,
            wall_seconds=_COMMAND_SECONDS,
            idle_setting="notify",
            wall_setting="notify",
        ),
    )
    if result.failure is not None:
        context.output.warn(f"notify: {result.failure.message}")
