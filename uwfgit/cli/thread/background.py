"""Runs of other processes: begun with ``--background``, or ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from uwfgit import errors
from uwfgit.cli.frame.app import EXIT_BUG, RUN_EXITS
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.engine import end_run
from uwfgit.cli.frame.world import VARIABLE
from uwfgit.engine.run.control import find_runner, join_thread, stop_thread
from uwfgit.engine.run.ends import RunEnd
from uwfgit.engine.run.hold import end_left, hold_thread, say_left, thread_lock_path
from uwfgit.engine.run.report import RunReport, make_run_report
from uwfgit.errors import StateError, StoreError, UwfError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.tip import load_tip
from uwfgit.store.locks.flock import read_dead_holder
from uwfgit.store.log import LOGS

_ORDINARY: Final = (0, 1, 3, 4, 5)
_LINE_BYTES: Final = 65_536


def stop_run(context: CommandContext, ledger: Ledger, thread: ThreadId) -> bool:
    """End the run of a thread, and wait for that; false when nobody ran it.

    Raises:
        StateError: This command is called by the agent of that run, and would end
            with it, before it has done what it is for.
    """
    step = context.environment.get("UWF_STEP", "")
    if step.startswith(f"{thread}:") and find_runner(ledger, thread) is not None:
        raise StateError(
            f"thread {thread} is run by this step, which cannot end itself",
            hint="report $status: $SUSPEND with the reason, and a person decides",
        )
    if stop_thread(ledger, thread):
        return True
    ended = _end_left(context, ledger, thread)
    if ended:
        context.output.say(say_left(ended))
    return bool(ended)


def _end_left(context: CommandContext, ledger: Ledger, thread: ThreadId) -> int:
    """End the agents of a run that was killed, be it at a child's step."""
    if read_dead_holder(thread_lock_path(ledger, thread)) is None:
        return 0
    # Held before its children are: two that name each other come to an end.
    with hold_thread(ledger, thread, command=context.command):
        ended = end_left(ledger, thread, end_run)
    ledger.lookup.refresh()
    children = ledger.lookup.find_children(thread)
    return ended + sum(_end_left(context, ledger, child) for child in children)


class Worker(Struct, frozen=True, kw_only=True):
    """A process that runs a thread by itself, and where it writes."""

    pid: int
    log: Path


def run_in_background(
    context: CommandContext,
    ledger: Ledger,
    thread: ThreadId,
    words: Sequence[str],
    *,
    note: str | None,
) -> tuple[RunReport, Worker]:
    """Start a worker; return when it holds the thread, or has ended already.

    Args:
        context: The command's.
        ledger: Where the thread is.
        thread: Which thread.
        words: The command that the worker runs, without ``--background``.
        note: What it finds on stdin.

    Raises:
        UwfError: Why the worker runs nothing, as it would itself have said.
    """
    log = ledger.store.state_dir / LOGS / f"{thread}.log"
    receiver, sender = os.pipe()
    try:
        process = _spawn(context, words, log=log, ready=sender, note=note)
    finally:
        os.close(sender)
    worker = Worker(pid=process.pid, log=log)
    message = _listen(process, receiver, note)
    if message.get("ready"):
        # It is not waited for; Python would say so when it lets go of it.
        process.returncode = 0
        state = load_tip(ledger.store, thread).state
        report = make_run_report(state, (), end=RunEnd.DONE)
        return replace(report, status="running", done=False), worker
    code = process.wait()
    if code == EXIT_BUG:
        raise RuntimeError(f"in the worker; see {log}")
    if "error" in message:
        raise _make_error(message["error"])
    if code not in _ORDINARY:
        raise StoreError(f"the worker ended with exit code {code}", hint=f"see {log}")
    # It found nothing to run.
    end = next(RunEnd(end) for end, known in RUN_EXITS.items() if known == code)
    return replace(join_thread(ledger, thread), end=end), worker


def _spawn(
    context: CommandContext,
    words: Sequence[str],
    *,
    log: Path,
    ready: int,
    note: str | None,
) -> subprocess.Popen[bytes]:
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(log, flags, 0o600)
    except OSError as exc:
        raise StoreError(f"cannot write '{log}': {exc.strerror}") from exc
    try:
        return subprocess.Popen(  # noqa: S603 - this very program
            # -P: no module is ever taken from the working directory.
            [sys.executable, "-P", "-m", "uwfgit", *words],
            stdin=subprocess.DEVNULL if note is None else subprocess.PIPE,
            stdout=descriptor,
            stderr=descriptor,
            env={**context.environment, VARIABLE: str(ready)},
            pass_fds=(ready,),
            start_new_session=True,
        )
    except OSError as exc:
        raise StoreError(f"cannot start a worker: {exc.strerror}") from exc
    finally:
        os.close(descriptor)


def _listen(
    process: subprocess.Popen[bytes], receiver: int, note: str | None
) -> dict[str, Any]:
    try:
        if process.stdin is not None:
            with suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write((note or "").encode(errors="surrogateescape"))
        with os.fdopen(receiver, "rb") as line:
            data = line.readline(_LINE_BYTES)
    except KeyboardInterrupt:
        process.terminate()
        raise
    try:
        message = json.loads(data)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _make_error(facts: dict[str, Any]) -> UwfError:
    """Make the worker's error anew, of its class, for its exit code."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    kind = next(
        (k for k in kinds if issubclass(k, UwfError) and k.code == facts["code"]),
        UwfError,
    )
    error = kind.__new__(kind)
    UwfError.__init__(error, facts["message"], hint=facts["hint"])
    return error
