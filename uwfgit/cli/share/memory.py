"""What agents remember, beside a push or a pull of threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from uwfgit.cli.frame.context import CommandContext
from uwfgit.model.wording import count_of

if TYPE_CHECKING:
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.sync.exchange.pull import PullReport
    from uwfgit.sync.exchange.push import PushReport, Scan
    from uwfgit.sync.exchange.remotes import Remote
    from uwfgit.sync.exchange.transport import Wire

_SENT: Final = ("new", "updated")
_BROUGHT: Final = ("new", "updated", "diverged")


def with_memory(
    context: CommandContext,
    ledger: Ledger,
    report: PushReport,
    named: Sequence[str],
    *,
    wire: Wire,
    scan: Scan,
    wanted: bool,
) -> PushReport:
    """Send the memory of what a push sent, or say that it stays here."""
    from uwfgit.store.layout import find_ref_thread, thread_ref
    from uwfgit.store.refs import find_ref
    from uwfgit.sync.exchange.memory import list_memories, push_memory

    mine = list_memories(ledger.store)
    if not mine:
        return report
    chosen = [find_ref_thread(ref) for ref in named] if named else list(mine)
    sent = {each.thread for each in report.outcomes if each.result in _SENT}
    # Those that the remote has, as far as this push knows.
    threads = [
        thread
        for thread in chosen
        if thread in mine
        and (
            thread in sent
            or find_ref(ledger.store, report.remote.tracking(thread_ref(thread)))
            is not None
        )
    ]
    if wanted:
        more = push_memory(
            ledger, report.remote, threads, wire=wire, scan=scan, dry_run=report.dry_run
        )
        return replace(report, outcomes=(*report.outcomes, *more))
    left = len(sent.intersection(threads))
    if left:
        context.output.say(
            f"what agents remember of {count_of(left, 'thread')} stays here "
            "(push --memory sends it)"
        )
    return report


def pulled_memory(
    ledger: Ledger, remote: Remote, report: PullReport, *, wire: Wire
) -> PullReport:
    """Bring the memory of what a pull brought; of all, from a remote of one's own."""
    threads = [
        each.thread
        for each in report.outcomes
        if each.thread is not None and each.result in _BROUGHT
    ]
    if not threads and not remote.memory:
        return report
    from uwfgit.store.layout import THREAD_PREFIX, find_ref_thread
    from uwfgit.store.refs import scan_refs
    from uwfgit.sync.exchange.memory import pull_memory

    mine = map(find_ref_thread, scan_refs(ledger.store, THREAD_PREFIX))
    wanted = [thread for thread in mine if thread] if remote.memory else threads
    more = pull_memory(ledger, remote, wanted, wire=wire)
    return replace(report, outcomes=(*report.outcomes, *more))
