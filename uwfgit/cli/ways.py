"""Which command goes on with a thread; the one place of the CLI that decides it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from uwfgit.errors import UwfError

if TYPE_CHECKING:
    from uwfgit.engine.report import RunReport
    from uwfgit.ids import ThreadId
    from uwfgit.model.ledger import Ledger


def way_on(ledger: Ledger, thread: ThreadId, status: str) -> str:
    """Name the command that goes on with a thread, in a line for people.

    Args:
        ledger: Where it is.
        thread: Which thread.
        status: The one people see: ``running`` and ``diverged`` too.
    """
    detour = _find_detour(ledger, thread) if status == "suspended" else None
    return f"go on: {detour}" if detour else usual_way(thread, status)


def usual_way(thread: ThreadId, status: str) -> str:
    """Name the command that goes on with a thread whose graph gives a next role."""
    ways = {
        "idle": f"next: uwf thread exec {thread}",
        "suspended": f"go on: uwf thread resume {thread} -p TEXT",
        "end": f"done; read it with: uwf thread read {thread}",
        "cancelled": f"cancelled; go on in a fork: uwf thread fork {thread}",
        "running": f"somebody is running it: uwf thread show {thread}",
        "diverged": f"continued here and there: uwf thread resolve {thread}",
    }
    return ways[status]


def _find_detour(ledger: Ledger, thread: ThreadId) -> str | None:
    """Name what goes on with a suspended thread that resume refuses to run.

    Damaged, or with conditions that cannot be evaluated here, it has none: resume
    says so.
    """
    from uwfgit.engine import following
    from uwfgit.model.record import load_tip, open_record

    try:
        record = open_record(ledger.store, load_tip(ledger.store, thread))
        return following.find_detour(record)
    except UwfError:
        return None


def with_detour(ledger: Ledger, report: RunReport) -> RunReport:
    """Let a run's hint name what goes on where resume would be refused."""
    if report.status != "suspended":
        return report
    detour = _find_detour(ledger, report.thread)
    return replace(report, hint=detour) if detour else report
