"""Threads that another process runs: stop it, let it pause, wait for it."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from uwfgit.constants import SUSPEND
from uwfgit.engine.decide.moderator import is_routing_error
from uwfgit.engine.run.ends import RunEnd
from uwfgit.engine.run.hold import ask_to_pause, thread_lock_path
from uwfgit.engine.run.report import (
    ATTEMPT,
    RunReport,
    StepReport,
    make_run_report,
    report_waiting,
    steps_since,
    with_problem,
)
from uwfgit.errors import LockedError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.event import find_cause
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.tip import load_tip
from uwfgit.store.locks.flock import Holder, read_dead_holder, read_holder

STOP_SECONDS: Final = 20.0
"""What a holder may take to stop its agent's tree and to record the attempt."""
_PAUSE: Final = 0.1
_GOES_ON: Final = {"idle": "exec", "suspended": "resume"}
"""Where a thread stands after a run that was killed, and what goes on with it."""


def find_runner(ledger: Ledger, thread: ThreadId) -> Holder | None:
    """Tell who holds a thread's lock; ``None`` for nobody."""
    return read_holder(thread_lock_path(ledger, thread))


def stop_thread(ledger: Ledger, thread: ThreadId) -> bool:
    """End the run of a thread, its agent too, and wait for that.

    The one who runs it records the interrupted attempt. One who only changes
    the thread may be done before it notices.

    Returns:
        False when nobody ran it.

    Raises:
        LockedError: Its holder is on another machine, or does not let go.
    """
    holder = find_runner(ledger, thread)
    if holder is None:
        return False
    _terminate(thread, holder)
    deadline = time.monotonic() + STOP_SECONDS
    while find_runner(ledger, thread) == holder:
        if time.monotonic() >= deadline:
            raise LockedError(f"thread {thread}", holder=str(holder))
        time.sleep(_PAUSE)
    return True


def _terminate(thread: ThreadId, holder: Holder) -> None:
    error = LockedError(f"thread {thread}", holder=str(holder))
    # 0 and 1 stand for whole groups of processes, or for the system.
    if holder.host != socket.gethostname() or holder.pid <= 1:
        error.hint = f"stop it there: uwf thread stop {thread}"
        raise error
    try:
        os.kill(holder.pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as exc:
        error.hint = "it is another user's process"
        raise error from exc


def pause_thread(ledger: Ledger, thread: ThreadId) -> bool:
    """Ask for the run of a thread to stop after the step at hand; wait for nothing.

    Returns:
        False when nobody runs it.

    Raises:
        StoreError: The store cannot be written.
    """
    holder = find_runner(ledger, thread)
    if holder is not None:
        ask_to_pause(ledger, thread, holder)
    return holder is not None


def join_thread(
    ledger: Ledger, thread: ThreadId, *, timeout: float | None = None
) -> RunReport:
    """Wait until nobody runs a thread; tell what was done meanwhile.

    Args:
        ledger: Where it is.
        thread: Which thread.
        timeout: Seconds; then the report says ``running`` and exit code 4.

    Raises:
        NotFoundError: There is no such thread, or it was removed meanwhile.
        CorruptError: It is damaged.
    """
    began = load_tip(ledger.store, thread).commit
    deadline = None if timeout is None else time.monotonic() + timeout
    while (holder := find_runner(ledger, thread)) is not None:
        left = _PAUSE if deadline is None else deadline - time.monotonic()
        if left <= 0:
            break
        time.sleep(min(left, _PAUSE))
    record = open_record(ledger.store, thread)
    lock = thread_lock_path(ledger, thread)
    return _describe(record, steps_since(record, began), holder, lock)


def _describe(
    record: Record, steps: tuple[StepReport, ...], holder: Holder | None, lock: Path
) -> RunReport:
    state = record.tip.state
    thread = state.thread
    if holder is not None:
        report = make_run_report(
            state,
            steps,
            end=RunEnd.HELD,
            problem=f"still running: {holder}",
            hint=f"wait on: uwf thread join {thread}; or: uwf thread stop {thread}",
        )
        return replace(report, status="running", done=False)
    report = make_run_report(
        state, steps, end=read_end(record), problem=state.suspend_message
    )
    dead = read_dead_holder(lock) if state.status in _GOES_ON else None
    if dead is None and state.status == "suspended":
        return replace(report_waiting(record, report), end=report.end)
    if dead is None:
        return report
    return with_problem(
        report,
        RunEnd.REFUSED,
        f"its runner died: {dead}",
        f"go on with: uwf thread {_GOES_ON[state.status]} {thread}",
        code="killed",
    )


def read_end(record: Record) -> RunEnd:
    """Say how a thread's newest run ended, by the event that left it as it is.

    Raises:
        CorruptError: There is none, or it cannot be read.
    """
    state = record.tip.state
    cause = find_cause(record.store, record.tip.commit)
    if cause.name == ATTEMPT:
        return RunEnd.AGENT_FAILED
    asked = cause.status == SUSPEND or cause.name == "hold"
    if state.status == "cancelled" or (
        not asked and is_routing_error(state.suspend_message)
    ):
        return RunEnd.REFUSED
    return RunEnd.WAITING if state.status == "suspended" else RunEnd.DONE
