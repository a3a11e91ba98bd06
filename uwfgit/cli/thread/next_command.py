"""Which command goes on with a thread; the one place of the CLI that decides it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from uwfgit.cli.frame.context import CommandContext
from uwfgit.errors import CorruptError, EarlierFormatError, FormatVersionError, UwfError

if TYPE_CHECKING:
    from uwfgit.engine.run.report import RunReport
    from uwfgit.ids import ThreadId
    from uwfgit.model.ledger.ledger import Ledger

USUAL_WAYS: Final = {
    "idle": "next: uwf thread exec {thread}",
    "suspended": "go on: uwf thread resume {thread} -p TEXT",
    "end": "done; read it with: uwf thread read {thread}",
    "cancelled": "cancelled; go on in a fork: uwf thread fork {thread}",
    "running": "someone is running it; watch it: uwf thread live {thread}",
    "diverged": "continued here and there: uwf thread resolve {thread}",
}
"""Status → the command that goes on with a thread whose graph gives a next role."""

_HOUR_MS: Final = 3_600_000
_USUAL_WAIT: Final = 6
"""For how many hours ``--wait`` waits that names no time."""


def tell_refusal(
    context: CommandContext, ledger: Ledger, thread: ThreadId, error: UwfError
) -> None:
    """Print how a thread stands, and the error why it cannot be run.

    For programs only, as the run's own object; people get the error's two
    lines. The error goes on either way: it knows the exit code. A thread that
    is not there has no such object, and the error is printed alone.
    """
    if context.output.is_text:
        return
    from uwfgit.cli.thread.payloads import error_payload, refused_payload

    try:
        stands = _find_standing(ledger, thread)
    except UwfError:
        return
    told = error_payload(
        error.code,
        context.mask_message(error.message),
        error.hint and context.mask_message(error.hint),
    )
    if error.needs:
        told["needs"] = list(error.needs)
    context.output.emit(refused_payload(thread, stands, told), str)
    context.is_told = True


def _find_standing(ledger: Ledger, thread: ThreadId) -> dict[str, Any] | None:
    """Return a thread as ``thread show`` does; ``None`` for a corrupt one."""
    from uwfgit.cli.thread.payloads import thread_payload
    from uwfgit.model.ledger.standing import is_running
    from uwfgit.model.thread.tip import find_sharing, load_tip

    try:
        tip = load_tip(ledger.store, thread)
        sharing = find_sharing(ledger.store, thread, tip.commit)
    except (CorruptError, EarlierFormatError, FormatVersionError):
        return None
    return thread_payload(
        tip, running=is_running(ledger.store, thread), sharing=sharing
    )


def way_on(ledger: Ledger, thread: ThreadId, status: str) -> str:
    """Name the command that goes on with a thread, in a line for people.

    Args:
        ledger: Where it is.
        thread: Which thread.
        status: The one people see: ``running`` and ``diverged`` too.
    """
    usual = USUAL_WAYS[status].format(thread=thread)
    if status != "suspended":
        return usual
    other = _find_detour(ledger, thread) or _find_end_of_limit(ledger, thread)
    if other:
        return f"go on: {other}"
    word = _RESUMED.get(_find_cause(ledger, thread))
    return f"{word}: uwf thread resume {thread}" if word else usual


_RESUMED: Final = {"attempt": "try again", "hold": "release it"}
"""What a thread that stopped so needs no word of a person for."""


def _find_cause(ledger: Ledger, thread: ThreadId) -> str:
    from uwfgit.model.thread.event import find_cause
    from uwfgit.model.thread.tip import load_tip

    try:
        return find_cause(ledger.store, load_tip(ledger.store, thread).commit).name
    except CorruptError:
        # A damaged history is for others to tell.
        return ""


def _find_detour(ledger: Ledger, thread: ThreadId) -> str | None:
    """Name what goes on with a suspended thread that resume refuses to run.

    Damaged, or with conditions that cannot be evaluated here, it has none: resume
    says so.
    """
    from uwfgit.engine.decide.moderator import find_detour
    from uwfgit.model.thread.record import open_record

    try:
        record = open_record(ledger.store, thread)
        return find_detour(record)
    except UwfError:
        return None


def _find_end_of_limit(ledger: Ledger, thread: ThreadId) -> str | None:
    """Name what goes on with a thread that waits for a vendor's limit.

    To resume it before that is a failure more.
    """
    from uwfgit.model.thread.tip import load_tip
    from uwfgit.model.wording import format_time

    try:
        until = load_tip(ledger.store, thread).state.retry_at_ms
    except UwfError:
        return None
    if until is None:
        return None
    hours = -((ledger.now_ms() - until) // _HOUR_MS)
    if hours <= 0:
        return f"uwf thread exec {thread}"
    wait = "--wait" if hours <= _USUAL_WAIT else f"--wait={hours}h"
    ends = format_time(until)
    return f"the limit ends at {ends}, wait for it: uwf thread exec {thread} {wait}"


def with_detour(ledger: Ledger, report: RunReport) -> RunReport:
    """Let a run's hint name what goes on where plain resume would be no use.

    Args:
        ledger: Where the thread is.
        report: Of a run that left it suspended.
    """
    other = _find_detour(ledger, report.thread)
    other = other or _find_end_of_limit(ledger, report.thread)
    return replace(report, hint=other) if other else report
