"""Which tips this machine made or verified, and which it has yet to check."""

from __future__ import annotations

from collections.abc import Mapping

from uwfgit.errors import first_of
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.objects import read_commit
from uwfgit.store.refs import has_object
from uwfgit.sync.exchange.exchange import Verify


def is_known(ledger: Ledger, tip: Oid) -> bool:
    """Whether every commit up to a tip was made or verified here.

    Raises:
        CorruptError: One is missing.
    """
    waiting, seen = [tip], {GENESIS_OID}
    while waiting:
        oid = waiting.pop()
        if oid in seen:
            continue
        seen.add(oid)
        if ledger.local.is_verified_here(oid):
            continue
        if not (ledger.local.is_made_here(oid) and has_object(ledger.store, oid)):
            return False
        waiting += read_commit(ledger.store, oid).parents
    return True


def verify_unknown(
    ledger: Ledger, tips: Mapping[ThreadId, Oid], verify: Verify
) -> dict[ThreadId, str]:
    """Verify the threads whose tip this machine does not know to be good.

    Returns:
        The first problem of each that does not verify. The others are known
        from now on.
    """
    unknown = [thread for thread, tip in tips.items() if not is_known(ledger, tip)]
    problems = {}
    for report in verify(ledger.store, unknown) if unknown else ():
        thread = ThreadId(report.thread)
        if not report.ok:
            problems[thread] = first_of(report.problems)
        elif report.tip == tips[thread]:
            ledger.local.record_verified(tips[thread])
        else:
            problems[thread] = "the branch moved while it was verified"
    return problems
