"""Which threads others had a hand in; the only place that says so."""

from __future__ import annotations

from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.record import Tip
from uwfgit.model.thread.state import decode_state
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.layout import STATE_FILE, thread_folder
from uwfgit.store.objects import find_entry, read_blob, read_commit


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
    """Return a thread and those it was forked from, the nearest first."""
    found = [tip.thread]
    origin = tip.state.forked_from
    while origin is not None and origin.thread not in found:
        found.append(origin.thread)
        path = f"{thread_folder(origin.thread)}/{STATE_FILE}"
        entry = find_entry(ledger.store, tip.tree, path)
        if entry is None:
            break
        origin = decode_state(read_blob(ledger.store, entry.oid)).forked_from
    return tuple(found)
