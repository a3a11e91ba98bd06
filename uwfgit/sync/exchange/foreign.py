"""Threads that others made: who had a hand in them, and who vouches for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct

from uwfgit.errors import CorruptError
from uwfgit.ids import Oid
from uwfgit.model.ledger.ledger import Ledger, lineage
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.tip import Tip
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.objects import read_commit
from uwfgit.store.refs import is_ancestor
from uwfgit.sync.exchange.exchange import Verify
from uwfgit.sync.exchange.known import verify_unknown
from uwfgit.sync.exchange.signatures import read_signature

_MOST_PEOPLE = 20


def list_unagreed(ledger: Ledger, tip: Tip) -> tuple[Oid, ...]:
    """Return the events of others that the user has not agreed to, newest first.

    To agree covers all up to the tip that was shown, in forks too, as long as the
    workflow is that one. What this machine made needs nobody's agreement, and a
    resolve counts as the side it keeps.
    """
    agreed = {
        found.tip
        for thread in lineage(ledger, tip)
        if (found := ledger.local.find_trusted(thread)) is not None
        and found.workflow == tip.state.workflow_oid
    }
    return tuple(_iter_unagreed(ledger, tip.commit, agreed))


def list_newest(ledger: Ledger, tip: Tip) -> tuple[Oid, ...]:
    """Return the newest event of others, if any, whatever the user agreed to."""
    return tuple(islice(_iter_unagreed(ledger, tip.commit, ()), 1))


def _iter_unagreed(ledger: Ledger, oid: Oid, agreed: Collection[Oid]) -> Iterator[Oid]:
    while oid != GENESIS_OID and oid not in agreed:
        commit = read_commit(ledger.store, oid)
        if len(commit.parents) == 1 and not ledger.local.is_made_here(oid):
            if any(is_ancestor(ledger.store, oid, each) for each in agreed):
                return
            yield oid
        oid = commit.parents[0]


def find_voucher(
    ledger: Ledger,
    events: Sequence[Oid],
    principals: Collection[str],
    *,
    environment: Mapping[str, str],
) -> str | None:
    """Return who of the listed signed the newest of some events of others.

    That covers all events before it. The names are those git reports of a good
    signature: an ssh principal, or a gpg user id, key id or fingerprint.

    Raises:
        StoreError: There is no git binary.
    """
    if not principals or not events:
        return None
    return find_signer(ledger.store, events[0], principals, environment=environment)


def find_signer(
    store: Store,
    commit: Oid,
    principals: Collection[str],
    *,
    environment: Mapping[str, str],
) -> str | None:
    """Return who of the listed signed a commit; ``None`` when none of them did.

    Raises:
        StoreError: There is no git binary.
    """
    if not principals:
        return None
    signed = read_signature(store, commit, environment=environment)
    if signed is None or not signed.is_good:
        return None
    listed = {name.casefold() for name in principals}
    # Upper and lower case of a key id are one; of a principal they are not.
    keys = {key.casefold() for key in signed.keys}
    if signed.signer in principals or not listed.isdisjoint(keys):
        return signed.signer
    return None


class Hands(Struct, frozen=True, kw_only=True):
    """Who committed a thread's events, newest first, as the commits say."""

    people: tuple[str, ...]
    more: int


def list_hands(ledger: Ledger, events: Iterable[Oid]) -> Hands:
    """Return who committed some events; nobody vouches for the names."""
    people = list(
        dict.fromkeys(read_commit(ledger.store, oid).committer.who for oid in events)
    )
    return Hands(
        people=tuple(people[:_MOST_PEOPLE]), more=max(len(people) - _MOST_PEOPLE, 0)
    )


def require_verified(ledger: Ledger, record: Record, verify: Verify) -> None:
    """Verify a foreign thread whose head this machine did not verify yet.

    Raises:
        CorruptError: It does not verify.
    """
    thread, tip = record.tip.thread, record.tip.commit
    if ledger.local.is_verified_here(tip):
        return
    problems = verify_unknown(ledger, {thread: tip}, verify)
    if thread in problems:
        raise CorruptError(
            f"thread {thread} does not verify: {problems[thread]}",
            hint=f"see all of it: uwf verify {thread}",
        )
    ledger.local.record_verified(tip)
