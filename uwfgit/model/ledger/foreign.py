"""Which threads others had a hand in; the only place that says so."""

from __future__ import annotations

from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.record import Tip, iter_lineage
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.objects import read_commit


def is_foreign(ledger: Ledger, tip: Tip) -> bool:
    """Whether any event of a thread was made on another machine.

    Costs one look at local state for a thread that this machine alone moved,
    and one more for each event since it was asked last.
    """
    known = ledger.local.find_own(tip.thread)
    if known == tip.commit:
        return False
    if known == "foreign":
        return True
    oid: Oid = tip.commit
    while oid not in {GENESIS_OID, known}:
        if not ledger.local.is_made_here(oid):
            ledger.local.set_own(tip.thread, None)
            return True
        oid = read_commit(ledger.store, oid).parents[0]
    ledger.local.set_own(tip.thread, tip.commit)
    return False


def lineage(ledger: Ledger, tip: Tip) -> tuple[ThreadId, ...]:
    """Return a thread and those it was forked from, the nearest first.

    Raises:
        CorruptError: The state of one cannot be read.
    """
    return tuple(state.thread for state in iter_lineage(ledger.store, tip))
