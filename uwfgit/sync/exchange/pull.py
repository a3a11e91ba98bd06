"""Pull: what a remote has and we lack.

A pull that finds nothing new is over after a look; what is to be brought is
:mod:`uwfgit.sync.exchange.incoming`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from msgspec import Struct

from uwfgit.errors import AmbiguousError, NotFoundError
from uwfgit.ids import Hash, Oid, ThreadId, find_thread_id
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.spelling import match_ids
from uwfgit.store.layout import (
    HEAD_REF,
    THREAD_PREFIX,
    WORKFLOW_PREFIX,
    find_ref_thread,
    thread_ref,
)
from uwfgit.store.refs import find_ref, has_object
from uwfgit.sync.exchange.exchange import (
    ExchangeSource,
    RefOutcome,
    back_hint,
    compare,
    diverged_hint,
    has_gone_back,
    is_amiss,
    is_removed,
    list_own,
    note_tracking,
    removed_message,
)
from uwfgit.sync.exchange.remotes import Remote, find_approved
from uwfgit.sync.exchange.transport import Wire, list_refs_there

_NAMED = 20
"""Refs that may not be called so: a remote can have millions of them."""


class Collision(Struct, frozen=True, kw_only=True):
    """A hash that names different contents in different threads."""

    hash: Hash
    threads: tuple[ThreadId, ...]


class PullReport(Struct, frozen=True, kw_only=True):
    """What a pull did; branches that had nothing new are only counted."""

    source: str
    outcomes: tuple[RefOutcome, ...]
    up_to_date: int
    collisions: tuple[Collision, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing was refused, and ours follows what is there or leads it."""
        return not any(map(is_amiss, self.outcomes))

    @property
    def is_busy(self) -> bool:
        """Whether someone held a branch that would have moved."""
        return any(outcome.result == "busy" for outcome in self.outcomes)


class Look(Struct, frozen=True, kw_only=True):
    """What a remote has, what becomes of most of it, and what is to be brought.

    ``source`` is ``None`` when there is nothing to bring; ``gone`` names those of
    our branches that the remote is known not to have.
    """

    remote: Remote
    theirs: Mapping[str, Oid]
    mine: Mapping[str, Oid]
    told: tuple[RefOutcome, ...]
    source: ExchangeSource | None
    gone: frozenset[str]


def look(
    ledger: Ledger,
    remote: Remote,
    *,
    wire: Wire,
    only: str | None = None,
    workflows: bool = False,
) -> Look:
    """Ask a remote what it has, and choose what to bring of it.

    Args:
        ledger: Where to.
        remote: Where from.
        wire: How.
        only: The one thread to bring: its id, or a unique start or end of it.
        workflows: Adopt registered workflows, rather than tell of them.

    Raises:
        AuthError, RemoteError: The remote cannot be reached.
        NotFoundError, AmbiguousError: It has no such thread, or several.
    """
    there = list_refs_there(
        wire,
        remote.url,
        name=remote.name,
        git_dir=ledger.store.path,
        only_branches=remote.kind == "dedicated",
    )
    theirs = {ours: oid for ref, oid in there.items() if (ours := remote.ours(ref))}
    misnamed = [] if only else list(_misnamed(remote, there))
    if only is not None:
        thread = _find_there(theirs, only, remote)
        theirs = {
            ref: oid
            for ref, oid in theirs.items()
            if thread in {find_ref_thread(ref), find_approved(ref)}
        }
    mine = list_own(ledger.store)
    told, wanted = _choose(ledger, remote, theirs, mine, workflows=workflows)
    if remote.kind == "dedicated" and HEAD_REF in there:
        theirs[HEAD_REF] = there[HEAD_REF]
    names = {ref: remote.theirs(ref) for ref in wanted}
    source = ExchangeSource(
        url=remote.url, name=remote.name, names=names, is_remote=True
    )
    return Look(
        remote=remote,
        theirs=theirs,
        mine=mine,
        told=(*misnamed, *told),
        source=source if names else None,
        gone=frozenset() if only else frozenset(mine) - frozenset(theirs),
    )


def finish(
    ledger: Ledger, found: Look, brought: Iterable[RefOutcome], *, wire: Wire
) -> PullReport:
    """Keep what the remote had, and sum up.

    Args:
        ledger: Where to.
        found: What looking gave.
        brought: What became of all that was to be brought.
        wire: The environment git starts from.
    """
    branches = {ref: oid for ref, oid in found.theirs.items() if not find_approved(ref)}
    note_tracking(
        ledger.store,
        found.remote,
        branches,
        mine=found.mine,
        gone=found.gone,
        environment=wire.environment,
    )
    return make_report(ledger, found.remote.name, [*found.told, *brought])


def _misnamed(remote: Remote, there: Iterable[str]) -> Iterator[RefOutcome]:
    """Refuse refs that stand where threads do; the first of them by their names."""
    found = (ref for ref in there if remote.is_misnamed(ref))
    for ref in islice(found, _NAMED):
        yield RefOutcome(ref=ref, result="refused", message="no name of a thread")
    more = sum(1 for _ in found)
    if more:
        names = "1 more name" if more == 1 else f"{more:,} more names"
        message = f"and {names} that no thread may have"
        yield RefOutcome(ref=f"{THREAD_PREFIX}*", result="refused", message=message)


def _find_there(theirs: Iterable[str], text: str, remote: Remote) -> ThreadId:
    """Find a thread of the remote by its id, or a unique start or end of it.

    Raises:
        NotFoundError, AmbiguousError: There is none, or are several.
    """
    threads = [thread for ref in theirs if (thread := find_ref_thread(ref))]
    found = match_ids(text, threads)
    if not found:
        name = find_thread_id(text) or text
        raise NotFoundError(
            "thread", name, hint=f"remote '{remote.name}' does not have it"
        )
    if len(found) > 1:
        raise AmbiguousError("thread", text, found)
    return found[0]


def _choose(
    ledger: Ledger,
    remote: Remote,
    theirs: Mapping[str, Oid],
    mine: Mapping[str, Oid],
    *,
    workflows: bool,
) -> tuple[list[RefOutcome], list[str]]:
    """Tell what becomes of refs that need no fetch, and return those that do."""
    told: list[RefOutcome] = []
    wanted: list[str] = []
    for ref, oid in theirs.items():
        if find_approved(ref):
            if mine.get(ref) != oid:
                wanted.append(ref)
            continue
        outcome = _settled(ledger, remote, ref, oid, mine.get(ref), workflows=workflows)
        if outcome is None:
            wanted.append(ref)
        else:
            told.append(outcome)
    branches = {ref for ref in wanted if find_ref_thread(ref)} | mine.keys()
    return told, [
        ref
        for ref in wanted
        if not (thread := find_approved(ref)) or thread_ref(thread) in branches
    ]


def _settled(
    ledger: Ledger,
    remote: Remote,
    ref: str,
    theirs: Oid,
    mine: Oid | None,
    *,
    workflows: bool,
) -> RefOutcome | None:
    """Say what becomes of a branch when nothing of it has to be fetched."""
    store = ledger.store
    if mine is not None:
        found = compare(store, mine, theirs)
        if found == "ahead" and has_gone_back(store, remote, ref, theirs):
            hint = back_hint(remote, ref)
            return RefOutcome(
                ref=ref, result="went-back", old=mine, new=theirs, message=hint
            )
        if found in {"up-to-date", "ahead"}:
            return RefOutcome(ref=ref, result=found, old=mine, new=theirs)
        # Kept as it is only after it was verified, or fetched by plain git.
        is_kept = find_ref(store, remote.tracking(ref)) == theirs and (
            find_ref_thread(ref) is None or ledger.local.is_verified_here(theirs)
        )
        if found == "diverged" and is_kept:
            message = diverged_hint(store, ref)
            return RefOutcome(
                ref=ref, result="diverged", old=mine, new=theirs, message=message
            )
    elif has_object(store, theirs) and is_removed(store, ref, theirs, where=store):
        message = removed_message(ref)
        return RefOutcome(ref=ref, result="removed", new=theirs, message=message)
    if ref.startswith(WORKFLOW_PREFIX) and not workflows:
        message = "adopt it with: uwf pull --workflows"
        return RefOutcome(
            ref=ref, result="available", old=mine, new=theirs, message=message
        )
    return None


def make_report(
    ledger: Ledger, source: str, outcomes: Iterable[RefOutcome]
) -> PullReport:
    """Sum up what was brought, and look for hashes that now name two contents."""
    outcomes = list(outcomes)
    told = [each for each in outcomes if each.result not in {"up-to-date", "ahead"}]
    moved = {
        each.thread
        for each in told
        if each.thread is not None and each.result in {"new", "updated"}
    }
    threads: dict[Hash, set[ThreadId]] = {}
    if moved:
        ledger.lookup.refresh()
        for row in ledger.lookup.list_collisions():
            found = ledger.lookup.threads_with_node(row.hash, row.oid)
            threads.setdefault(row.hash, set()).update(found)
    return PullReport(
        source=source,
        outcomes=tuple(told),
        up_to_date=len(outcomes) - len(told),
        collisions=tuple(
            Collision(hash=node, threads=tuple(sorted(found_in)))
            for node, found_in in threads.items()
            if found_in & moved
        ),
    )
