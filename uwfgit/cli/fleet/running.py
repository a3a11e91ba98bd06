"""Steps of a worker, each in a process of its own; the only place that starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from msgspec import Struct

from uwfgit.agents.children.tree import find_members
from uwfgit.agents.children.vitals import read_processes
from uwfgit.cli.frame.app import EXIT_CODES
from uwfgit.errors import LockedError, StoreError
from uwfgit.fleet.hands import RunResult

_REPORT_BYTES: Final = 1024 * 1024
_KILL_SECONDS: Final = 2.0
_SECRETS: Final = (
    "GIT_ASKPASS",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "SSH_AUTH_SOCK",
    "UWF_HUB_SECRET",
)
"""What an agent on a machine that others fill with work must not be able to use."""
_CONFIG: Final = "GIT_CONFIG_"


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a step: nothing in it opens the queue's remote."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _SECRETS and not name.startswith(_CONFIG)
    }


class ChildRun(Struct, kw_only=True):
    """A step at work, as a ``uwf thread`` command in a child process."""

    process: subprocess.Popen[bytes]
    report: IO[bytes]

    def poll(self) -> RunResult | None:
        """Return how the command ended; ``None`` while it runs."""
        code = self.process.poll()
        if code is None:
            return None
        told = _read_report(self.report)
        error, ran = told.get("error"), told.get("ran")
        return RunResult(
            is_ok=code == 0,
            is_busy=code == EXIT_CODES[LockedError],
            error=str(error["message"]) if isinstance(error, dict) else None,
            ran=max(1, ran) if isinstance(ran, int) else 1,
        )

    def stop(self) -> None:
        """Ask the command to stop; it records what its agent said."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the command, and all it started, without waiting for a record."""
        # Asked twice it kills its agent's processes itself, which may have left
        # every group and session that is known here.
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGTERM)
        try:
            self.process.wait(_KILL_SECONDS)
        except subprocess.TimeoutExpired:
            self._signal_all(signal.SIGKILL)

    def freeze(self) -> None:
        """Stop the command and its agent where they are."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        self._signal_all(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(OSError):
            self.process.send_signal(number)

    def _signal_all(self, number: signal.Signals) -> None:
        if self.process.poll() is not None:
            return
        members = find_members(
            read_processes(), root=self.process.pid, is_root_ours=True, also=()
        )
        for member in members:
            with suppress(OSError):
                os.kill(member.pid, number)


def start_run(
    words: Sequence[str], *, cwd: Path, environment: Mapping[str, str]
) -> ChildRun:
    """Start a ``uwf`` command whose end is looked for later.

    Raises:
        StoreError: It cannot be started.
    """
    report = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it was read
    try:
        process = subprocess.Popen(  # noqa: S603 - this very program
            [sys.executable, "-P", "-m", "uwfgit", *words],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=report,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            # A Ctrl-C is the worker's to take; it asks the step to stop.
            start_new_session=True,
        )
    except OSError as exc:
        raise StoreError(f"cannot start a step: {exc.strerror}") from exc
    return ChildRun(process=process, report=report)


def _read_report(report: IO[bytes]) -> dict[str, Any]:
    """Return the object that a command told in JSON; an empty one for none."""
    report.seek(0)
    text = report.read(_REPORT_BYTES).decode("utf-8", "replace")
    report.close()
    for line in (text, *reversed(text.splitlines())):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return {}
