"""Work on what others wrote, bounded: the only place that sets such limits.

A schema's pattern, or a condition, may take for ever or want all memory there is.
The limits are of processor time, so that a busy or sleeping machine changes nothing.
"""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final, TypeVar

from uwfgit.constants import WORK_BYTES, WORK_SECONDS
from uwfgit.errors import OverrunError

_AGAIN: Final = 1.0
"""Seconds to the next signal, where the exception of one was lost on its way."""
_STATM: Final = "/proc/self/statm"
_STATM_BYTES: Final = 200
_DATA: Final = 5
"""The field of it that counts what RLIMIT_DATA limits, in pages."""

_Result = TypeVar("_Result")


class _Expired(BaseException):
    """The time is up; no ``except Exception`` of a library may stop it."""


def run_bounded(
    work: Callable[[], _Result], what: str, *, seconds: float = WORK_SECONDS
) -> _Result:
    """Do work without side effects, within limits of time and memory.

    Inside other bounded work, the limits of that one hold. Outside the main
    thread, which alone can be interrupted, there are none.

    Args:
        work: The work; it may be abandoned at any point.
        what: What it is, for the error: ``checking the value``.
        seconds: Processor time that it may take.

    Raises:
        OverrunError: It takes longer, or more than ``WORK_BYTES`` of memory. Its
            cause has the traceback of where the work was.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGVTALRM) is _expire:
        return work()
    try:
        return _run(work, seconds)
    except _Expired as exc:
        raise OverrunError(what, limit=f"{seconds:g} seconds") from exc
    except MemoryError as exc:
        limit = f"{WORK_BYTES // 2**20} MiB of memory"
        raise OverrunError(what, limit=limit) from exc


def _run(work: Callable[[], _Result], seconds: float) -> _Result:
    memory = resource.getrlimit(resource.RLIMIT_DATA)
    # Not the timers of real time and of all time: those end whole processes here.
    handler = signal.signal(signal.SIGVTALRM, _expire)
    try:
        used = _find_used()
        if used is not None:
            known = [each for each in memory if each != resource.RLIM_INFINITY]
            lower = min((used + WORK_BYTES, *known))
            resource.setrlimit(resource.RLIMIT_DATA, (lower, memory[1]))
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _AGAIN)
            return work()
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    finally:
        # Again, in case a second signal came just before.
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler)
        resource.setrlimit(resource.RLIMIT_DATA, memory)


def _expire(_number: int, _frame: FrameType | None) -> None:
    raise _Expired


def _find_used() -> int | None:
    """Return the bytes this process has; ``None`` where the system does not tell."""
    try:
        descriptor = os.open(_STATM, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        pages = int(os.read(descriptor, _STATM_BYTES).split()[_DATA])
    finally:
        os.close(descriptor)
    return pages * os.sysconf("SC_PAGE_SIZE")
