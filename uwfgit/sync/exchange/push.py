"""Push: what a remote has and lacks, sent without forcing anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from uwfgit.errors import NotFoundError, RemoteError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.private import find_private
from uwfgit.shell import quote_word
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import (
    HEAD_REF,
    THREAD_PREFIX,
    THREADS,
    find_ref_thread,
    thread_ref,
)
from uwfgit.store.objects import find_entry, list_tree, read_commit
from uwfgit.store.refs import find_ref, has_object, is_ancestor, scan_refs
from uwfgit.sync.exchange.exchange import (
    Outcomes,
    RefOutcome,
    Result,
    Verify,
    approval_hint,
    back_hint,
    compare,
    has_gone_back,
    is_amiss,
    list_own,
    note_tracking,
    with_children,
)
from uwfgit.sync.exchange.known import verify_unknown
from uwfgit.sync.exchange.remotes import (
    APPROVED_PREFIX,
    Remote,
    find_approved,
)
from uwfgit.sync.exchange.sending import Sending, behind_hint, send_refs
from uwfgit.sync.exchange.signatures import check_approval
from uwfgit.sync.exchange.transport import Wire, list_refs_there

Scan: TypeAlias = Callable[[Sequence[tuple[str, Oid, Oid | None]]], Mapping[str, str]]
"""Looks at what is about to leave, each as (ref, new, what the remote has).

It gives what blocks a ref, by ref.
"""


class PushReport(Struct, frozen=True, kw_only=True):
    """What a push did; refs that needed nothing are only counted."""

    remote: Remote
    outcomes: tuple[RefOutcome, ...]
    up_to_date: int
    dry_run: bool

    @property
    def ok(self) -> bool:
        """Whether the remote has all that was to be sent; it may well have more."""
        return not any(map(is_amiss, self.outcomes))


class _Push(Struct, kw_only=True):
    ledger: Ledger
    remote: Remote
    wire: Wire
    told: Outcomes = field(default_factory=Outcomes)
    apart: set[str] = field(default_factory=set)
    """Refs of which the places that a push goes to do not have the same."""


def push(
    ledger: Ledger,
    remote: Remote,
    *,
    wire: Wire,
    verify: Verify,
    scan: Scan,
    named: Sequence[str] = (),
    send_all: bool = False,
    dry_run: bool = False,
) -> PushReport:
    """Send a remote what it lacks of our branches.

    Without names that is what it has and is behind with; new branches are told
    as not shared yet. One that is behind the remote keeps no other back.

    Args:
        ledger: Whose.
        remote: Where to.
        wire: How.
        verify: Verifies what this machine neither made nor verified.
        scan: Says what may not leave.
        named: Our refs to send, new ones too; no others.
        send_all: New branches too.
        dry_run: Only tell.

    Raises:
        AuthError, RemoteError: The remote cannot be reached.
        NotFoundError: A named branch does not exist.
    """
    work = _Push(ledger=ledger, remote=remote, wire=wire)
    mine = _named_refs(ledger, named) if named else _list_branches(ledger)
    theirs = _list_theirs(work)
    wanted = _choose(work, mine, theirs, named=bool(named), send_all=send_all)
    if not named:
        _leave_private(work, wanted, theirs)
    wanted = with_children(ledger.store, wanted, theirs)
    work.told.all = [each for each in work.told.all if each.ref not in wanted]
    wanted = _check(work, wanted, theirs, verify, scan)
    _add_approvals(work, wanted, theirs, scan)
    if wanted and HEAD_REF not in theirs and remote.kind == "dedicated":
        # A remote begins with the commit that all branches start on.
        wanted[HEAD_REF] = GENESIS_OID
    if dry_run:
        wanted.pop(HEAD_REF, None)
        for ref, oid in wanted.items():
            old = theirs.get(ref)
            work.told.tell(ref, "updated" if old else "new", old=old, new=oid)
    else:
        _send(work, wanted, mine, theirs)
    told = [each for each in work.told.all if each.result != "up-to-date"]
    return PushReport(
        remote=remote,
        outcomes=tuple(told),
        up_to_date=len(work.told.all) - len(told),
        dry_run=dry_run,
    )


def _send(
    work: _Push,
    wanted: Mapping[str, Oid],
    mine: Mapping[str, Oid],
    theirs: Mapping[str, Oid],
) -> None:
    """Send refs, and note what the remote has besides them."""
    store = work.ledger.store
    sending = Sending(
        store=store,
        remote=work.remote,
        wire=work.wire,
        theirs=theirs,
        ask=lambda: _list_theirs(work),
        told=work.told,
    )
    send_refs(sending, wanted)
    main = find_ref(store, HEAD_REF)
    note_tracking(
        store,
        work.remote,
        # git has noted itself what it sent.
        {
            ref: oid
            for ref, oid in theirs.items()
            if ref not in wanted and not find_approved(ref)
        },
        mine={**mine, **({HEAD_REF: main} if main else {})},
        gone=mine.keys() - theirs.keys() - wanted.keys(),
        environment=work.wire.environment,
    )


def _list_branches(ledger: Ledger) -> dict[str, Oid]:
    own = list_own(ledger.store).items()
    return {r: oid for r, oid in own if r != HEAD_REF and not find_approved(r)}


def _named_refs(ledger: Ledger, refs: Iterable[str]) -> dict[str, Oid]:
    found = {}
    for ref in refs:
        oid = find_ref(ledger.store, ref)
        if oid is None:
            kind = "thread" if ref.startswith(THREAD_PREFIX) else "workflow"
            raise NotFoundError(kind, ref.rpartition("/")[2])
        found[ref] = oid
    return found


def _list_theirs(work: _Push) -> dict[str, Oid]:
    """List what the remote has, by our names.

    Always asked for: what its address led to when it was last asked may be
    another repository now, and the scan leaves out what is there. Of several
    places, what one of them lacks counts as what the other has of it at least.
    """
    found = [_list_place(work, url) for url in work.remote.push_urls]
    theirs = dict(found[0])
    for other in found[1:]:
        work.apart |= {
            ref
            for ref in theirs.keys() | other.keys()
            if theirs.get(ref) != other.get(ref)
        }
        for ref, oid in other.items():
            known = theirs.setdefault(ref, oid)
            if known != oid and is_ancestor(work.ledger.store, oid, known):
                theirs[ref] = oid
    return theirs


def _list_place(work: _Push, url: str) -> dict[str, Oid]:
    remote = work.remote
    there = list_refs_there(
        work.wire,
        url,
        name=remote.name,
        git_dir=work.ledger.store.path,
        only_branches=remote.kind == "dedicated",
    )
    theirs = {ours: oid for ref, oid in there.items() if (ours := remote.ours(ref))}
    if remote.kind == "dedicated" and HEAD_REF in there:
        main = theirs[HEAD_REF] = there[HEAD_REF]
        is_ours = main == GENESIS_OID or has_object(work.ledger.store, main)
        # Threads stay out of a repository of code that was taken for an empty one.
        if not is_ours and not any(find_ref_thread(ref) for ref in theirs):
            raise RemoteError(
                "its branch main is of another history: there seems to be code in it",
                remote=remote.name,
                hint=f"uwf remote rm {quote_word(remote.name)}, then add it with "
                "--shared, or use an empty repository",
            )
    return theirs


def _choose(
    work: _Push,
    mine: Mapping[str, Oid],
    theirs: Mapping[str, Oid],
    *,
    named: bool,
    send_all: bool,
) -> dict[str, Oid]:
    """Choose what to send; tell why the rest stays."""
    wanted = {}
    for ref, oid in mine.items():
        found = compare(work.ledger.store, oid, theirs.get(ref))
        is_apart = found == "up-to-date" and ref in work.apart
        is_more = found == "ahead" and not named
        if is_more and has_gone_back(work.ledger.store, work.remote, ref, theirs[ref]):
            hint = back_hint(work.remote, ref)
            work.told.tell(ref, "went-back", hint, old=theirs[ref], new=oid)
        elif found == "ahead" or is_apart or (found == "new" and (named or send_all)):
            wanted[ref] = oid
        elif found == "new":
            work.told.tell(ref, "not-shared", new=oid)
        else:
            result: Result = found
            is_refused = named and found in {"behind", "diverged"}
            if is_refused or (
                found == "behind" and _has_unsent(work, ref, oid, theirs)
            ):
                result = "rejected"
            more = behind_hint(ref, found)
            work.told.tell(ref, result, more, old=theirs.get(ref), new=oid)
    return wanted


def _has_unsent(work: _Push, ref: str, oid: Oid, theirs: Mapping[str, Oid]) -> bool:
    """Whether there may be events here that a remote with others does not have."""
    store = work.ledger.store
    if has_object(store, theirs[ref]):
        return False
    known = find_ref(store, work.remote.tracking(ref))
    return known is None or compare(store, oid, known) not in {"up-to-date", "behind"}


def _leave_private(
    work: _Push, wanted: dict[str, Oid], theirs: Mapping[str, Oid]
) -> None:
    """Leave out private threads that nobody named: they are not for this remote."""
    new = [ref for ref in wanted if ref not in theirs]
    for ref, why in find_private(work.ledger.store, new).items():
        work.told.tell(ref, "private", why, new=wanted.pop(ref))


def _check(
    work: _Push,
    wanted: Mapping[str, Oid],
    theirs: Mapping[str, Oid],
    verify: Verify,
    scan: Scan,
) -> dict[str, Oid]:
    """Leave out what does not verify or may not leave, and tell why."""
    tips = {find_ref_thread(ref): oid for ref, oid in wanted.items()}
    threads: dict[ThreadId, Oid] = {
        thread: oid for thread, oid in tips.items() if thread
    }
    problems = {
        thread_ref(thread): f"it does not verify: {problem}"
        for thread, problem in verify_unknown(work.ledger, threads, verify).items()
    }
    leaving = [
        (
            ref,
            oid,
            None
            if ref in work.apart
            else _find_there(work.ledger.store, ref, oid, theirs),
        )
        for ref, oid in wanted.items()
        if ref not in problems
    ]
    if leaving:
        problems |= scan(leaving)
    for ref, problem in problems.items():
        work.told.tell(ref, "refused", problem, new=wanted[ref])
    return {ref: oid for ref, oid in wanted.items() if ref not in problems}


def _find_there(
    store: Store, ref: str, oid: Oid, theirs: Mapping[str, Oid]
) -> Oid | None:
    """Return what the remote has of a branch, or of the one it was forked from."""
    if ref in theirs or not ref.startswith(THREAD_PREFIX):
        return theirs.get(ref)
    folder = find_entry(store, read_commit(store, oid).tree, THREADS)
    names = list_tree(store, folder.oid) if folder is not None else ()
    # The newest of them is the nearest.
    tips = (theirs.get(THREAD_PREFIX + name) for name in sorted(names, reverse=True))
    return next((tip for tip in tips if tip and has_object(store, tip)), None)


def _add_approvals(
    work: _Push,
    wanted: dict[str, Oid],
    theirs: Mapping[str, Oid],
    scan: Scan,
) -> None:
    """Send the approvals of steps that the remote has or gets.

    The others stay: with them commits would leave that nobody looked at.
    """
    store = work.ledger.store
    leaving = []
    for ref, oid in scan_refs(store, APPROVED_PREFIX).items():
        thread = find_approved(ref)
        if theirs.get(ref, oid) != oid:
            work.told.tell(
                ref, "diverged", approval_hint(ref), old=theirs[ref], new=oid
            )
        branch = thread_ref(thread) if thread and ref not in theirs else ""
        tip = wanted.get(branch, theirs.get(branch))
        if tip is not None and check_approval(store, ref, oid, [tip]) is None:
            leaving.append((ref, oid, tip))
    problems = scan(leaving) if leaving else {}
    for ref, oid, _ in leaving:
        if ref in problems:
            work.told.tell(ref, "refused", problems[ref], new=oid)
        else:
            wanted[ref] = oid
