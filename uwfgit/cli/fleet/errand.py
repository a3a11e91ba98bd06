"""A worker for one thread, as a task: on this machine, or wherever an executor is."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock
from typing import Any

from msgspec import Struct, field

from uwfgit.fleet.spread import Taken
from uwfgit.ids import ThreadId


class Errand(Struct, frozen=True, kw_only=True):
    """How a worker is started where the task runs; it may be sent there pickled.

    Args:
        options: What stands behind ``uwf worker``.
        cwd: In which folder, and with which environment; else those of the task.
    """

    options: tuple[str, ...]
    cwd: str | None = None
    environment: Mapping[str, str] | None = None

    def __call__(self, thread: ThreadId) -> Taken:
        """Run one thread to where it stops."""
        return _await(self.start(thread))

    def start(self, thread: ThreadId) -> subprocess.Popen[bytes]:
        """Start the worker of one thread."""
        words = ["worker", "--once", "--thread", thread, "--json", *self.options]
        return subprocess.Popen(  # noqa: S603 - this very program
            [sys.executable, "-P", "-m", "uwfgit", *words],
            cwd=self.cwd,
            env=None if self.environment is None else dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A Ctrl-C is for whoever started it, who asks it to stop.
            start_new_session=True,
        )


class LocalErrands(Struct, kw_only=True):
    """The workers of one command, which end when it is stopped."""

    errand: Errand
    _at_work: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _is_stopped: bool = False
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, thread: ThreadId) -> Taken:
        """Run one thread to where it stops, or until all are stopped."""
        with self._lock:
            if self._is_stopped:
                return Taken(why="stopped")
            worker = self.errand.start(thread)
            self._at_work.add(worker)
        try:
            return _await(worker)
        finally:
            with self._lock:
                self._at_work.remove(worker)

    def stop(self) -> None:
        """Ask all to give back what they have; asked again they end at once."""
        with self._lock:
            self._is_stopped = True
            for worker in self._at_work:
                with suppress(OSError):
                    worker.send_signal(signal.SIGTERM)


def _await(worker: subprocess.Popen[bytes]) -> Taken:
    with worker:
        out, err = worker.communicate()
    left = (_read(out) or {}).get("left") or {}
    if left:
        return Taken(word=next(iter(left.values())), why=_find_why(err))
    return Taken(why=_find_why(err))


def _find_why(talk: bytes) -> str | None:
    """Return the last reason that a worker told, an error before anything else."""
    error = _read(talk)
    if error is not None and isinstance(error.get("error"), dict):
        return str(error["error"].get("message"))
    for line in reversed(talk.splitlines()):
        told = _read(line)
        if told is not None and isinstance(told.get("why"), str):
            return str(told["why"])
    return None


def _read(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
