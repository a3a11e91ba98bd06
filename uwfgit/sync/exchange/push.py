"""Push: what a remote has and lacks, sent without forcing anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct, field

from uwfgit.errors import NotFoundError, RejectedError, RemoteError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.store.ancestry import has_object, is_ancestor
from uwfgit.store.care.tracking import scan_refs
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import (
    HEAD_REF,
    THREAD_PREFIX,
    THREADS,
    WORKFLOW_PREFIX,
    find_ref_thread,
    thread_ref,
)
from uwfgit.store.objects import find_entry, list_tree, read_commit
from uwfgit.store.refs import find_ref
from uwfgit.sync.exchange.children import with_children
from uwfgit.sync.exchange.exchange import (
    CHUNK,
    FAILED,
    RefOutcome,
    Result,
    Verify,
    approval_hint,
    back_hint,
    chunks,
    compare,
    halves,
    has_gone_back,
    note_tracking,
)
from uwfgit.sync.exchange.known import verify_unknown
from uwfgit.sync.exchange.remotes import (
    APPROVED_PREFIX,
    Remote,
    find_approved,
    is_exchanged,
)
from uwfgit.sync.exchange.signatures import check_approval
from uwfgit.sync.exchange.transport import Update, Wire, list_refs_there, push_refs

Scan: TypeAlias = Callable[[Sequence[tuple[str, Oid, Oid | None]]], Mapping[str, str]]
"""Looks at what is about to leave, each as (ref, new, what the remote has).

It gives what blocks a ref, by ref.
"""

_COLLATERAL: Final = "(atomic "
"""Stands in git's reason for a ref that was refused for another's sake only."""
_SENT: Mapping[str, Result] = {"*": "new", "=": "up-to-date", " ": "updated"}


class PushReport(Struct, frozen=True, kw_only=True):
    """What a push did; refs that needed nothing are only counted."""

    remote: Remote
    outcomes: tuple[RefOutcome, ...]
    up_to_date: int
    dry_run: bool

    @property
    def ok(self) -> bool:
        """Whether all that was to be sent has arrived."""
        return not any(outcome.result in FAILED for outcome in self.outcomes)


class _Push(Struct, kw_only=True):
    ledger: Ledger
    remote: Remote
    wire: Wire
    outcomes: list[RefOutcome] = field(default_factory=list)
    is_cut: bool = False
    """Whether something is sent for the second time."""
    there: Mapping[str, Oid] | None = None
    """What the remote has, asked again because it refused something."""
    apart: set[str] = field(default_factory=set)
    """Refs of which the places that a push goes to do not have the same."""

    def tell(
        self, ref: str, result: Result, message: str | None = None, **oids: Oid | None
    ) -> None:
        outcome = RefOutcome(ref=ref, result=result, message=message, **oids)
        self.outcomes.append(outcome)


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
    mine = _named_refs(ledger, named) if named else _all_refs(ledger)
    theirs = _list_theirs(work)
    wanted = _choose(work, mine, theirs, named=bool(named), send_all=send_all)
    wanted = with_children(ledger.store, wanted, theirs)
    work.outcomes = [each for each in work.outcomes if each.ref not in wanted]
    wanted = _check(work, wanted, theirs, verify, scan)
    _add_approvals(work, wanted, theirs, scan)
    _add_main(work, wanted, theirs)
    if dry_run:
        wanted.pop(HEAD_REF, None)
        for ref, oid in wanted.items():
            old = theirs.get(ref)
            work.tell(ref, "updated" if old else "new", old=old, new=oid)
    else:
        _send_all(work, wanted, theirs)
        note_tracking(
            ledger.store,
            remote,
            # git has noted itself what it sent.
            {
                ref: oid
                for ref, oid in theirs.items()
                if ref not in wanted and not find_approved(ref)
            },
            mine=mine | _main(ledger),
            gone=mine.keys() - theirs.keys() - wanted.keys(),
            environment=wire.environment,
        )
    return _report(work, dry_run=dry_run)


def _all_refs(ledger: Ledger) -> dict[str, Oid]:
    prefixes = (THREAD_PREFIX, WORKFLOW_PREFIX)
    return {
        ref: oid
        for prefix in prefixes
        for ref, oid in sorted(scan_refs(ledger.store, prefix).items())
        if is_exchanged(ref)
    }


def _main(ledger: Ledger) -> dict[str, Oid]:
    main = find_ref(ledger.store, HEAD_REF)
    return {HEAD_REF: main} if main else {}


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
        theirs[HEAD_REF] = there[HEAD_REF]
        _refuse_code(work, theirs)
    return theirs


def _refuse_code(work: _Push, theirs: Mapping[str, Oid]) -> None:
    """Keep threads out of a repository of code that was taken for an empty one."""
    main = theirs[HEAD_REF]
    is_ours = main == GENESIS_OID or has_object(work.ledger.store, main)
    if not is_ours and not any(find_ref_thread(ref) for ref in theirs):
        raise RemoteError(
            "its branch main is of another history: there seems to be code in it",
            remote=work.remote.name,
            hint=f"uwf remote rm {work.remote.name}, then add it with --shared, "
            "or use an empty repository",
        )


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
        if found == "ahead" and not named and _went_back(work, ref, theirs[ref]):
            hint = back_hint(work.remote, ref)
            work.tell(ref, "went-back", hint, old=theirs[ref], new=oid)
        elif found == "ahead" or is_apart or (found == "new" and (named or send_all)):
            wanted[ref] = oid
        elif found == "new":
            work.tell(ref, "not-shared", new=oid)
        else:
            result: Result = found
            if named and found in {"behind", "diverged"}:
                result = "rejected"
            work.tell(ref, result, _hint(ref, found), old=theirs.get(ref), new=oid)
    return wanted


def _went_back(work: _Push, ref: str, theirs: Oid) -> bool:
    return has_gone_back(work.ledger.store, work.remote, ref, theirs)


def _hint(ref: str, result: Result) -> str | None:
    thread = find_ref_thread(ref)
    if result == "diverged" and thread:
        return f"see both sides: uwf thread resolve {thread}"
    if result in {"behind", "diverged"}:
        return f"the remote has more: uwf pull{'' if thread else ' --workflows'}"
    return None


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
        work.tell(ref, "refused", problem, new=wanted[ref])
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
            work.tell(ref, "diverged", approval_hint(ref), old=theirs[ref], new=oid)
        branch = thread_ref(thread) if thread and ref not in theirs else ""
        tip = wanted.get(branch, theirs.get(branch))
        if tip is not None and check_approval(store, ref, oid, [tip]) is None:
            leaving.append((ref, oid, tip))
    problems = scan(leaving) if leaving else {}
    for ref, oid, _ in leaving:
        if ref in problems:
            work.tell(ref, "refused", problems[ref], new=oid)
        else:
            wanted[ref] = oid


def _add_main(work: _Push, wanted: dict[str, Oid], theirs: Mapping[str, Oid]) -> None:
    """Begin a dedicated remote with the commit that all branches start on."""
    if wanted and HEAD_REF not in theirs and work.remote.kind == "dedicated":
        wanted[HEAD_REF] = GENESIS_OID


def _send_all(
    work: _Push, wanted: Mapping[str, Oid], theirs: Mapping[str, Oid]
) -> None:
    # What the others start on goes first, should they have to go one by one.
    ordered = sorted(wanted.items(), key=lambda item: item[0] != HEAD_REF)
    waiting = [*chunks(ordered, CHUNK)][::-1]
    has_begun = False
    while waiting:
        part = waiting.pop()
        try:
            waiting += _send_part(work, part, theirs)
        except RemoteError as exc:
            # What is over is told all the same, and the rest can be sent again.
            if not has_begun:
                raise
            left = [*part, *(each for rest in waiting[::-1] for each in rest)]
            for ref, oid in left:
                if ref != HEAD_REF:
                    old = theirs.get(ref)
                    work.tell(ref, "rejected", exc.message, old=old, new=oid)
            return
        has_begun = True


def _send_part(
    work: _Push, part: Sequence[tuple[str, Oid]], theirs: Mapping[str, Oid]
) -> Sequence[Sequence[tuple[str, Oid]]]:
    """Send some refs; give the parts in which to try it again, the last one first."""
    reasons = _send(work, part, theirs)
    if not reasons:
        return ()
    work.is_cut = True
    # All or none: git says of one that is fine itself only that.
    causes = {ref: why for ref, why in reasons.items() if _COLLATERAL not in why}
    bad = [each for each in part if work.remote.theirs(each[0]) in causes]
    good = [each for each in part if each not in bad]
    if len(part) > 1 and not (good and bad):
        # A hook says so of all; one that is refused is found by cutting in two.
        return halves(part)[::-1]
    for ref, oid in bad or part:
        _tell_rejected(work, ref, oid, reasons[work.remote.theirs(ref)])
    return [good] if bad and good else ()


def _send(
    work: _Push, part: Sequence[tuple[str, Oid]], theirs: Mapping[str, Oid]
) -> Mapping[str, str]:
    """Push some refs; give the reasons when none was taken."""
    updates = [Update(oid=oid, ref=work.remote.theirs(ref)) for ref, oid in part]
    try:
        letters = push_refs(work.wire, work.ledger.store, work.remote.name, updates)
    except RejectedError as exc:
        return exc.refs
    for ref, oid in part:
        letter = letters.get(work.remote.theirs(ref), " ")
        result = _SENT.get(letter, "updated")
        if result == "up-to-date" and work.is_cut:
            # It was taken already, when another of those before was not: a server
            # does not count a hidden ref into all-or-none.
            result = "updated" if ref in theirs else "new"
        if ref != HEAD_REF:
            work.tell(ref, result, old=theirs.get(ref), new=oid)
    return {}


def _tell_rejected(work: _Push, ref: str, oid: Oid, reason: str) -> None:
    """Say why one ref was not taken: by what is there, else in git's words."""
    if work.there is None:
        work.there = _list_theirs(work)
    there = work.there.get(ref)
    if ref == HEAD_REF and there:
        return  # Somebody else began it in the meantime.
    found = compare(work.ledger.store, oid, there)
    if found in {"behind", "diverged"}:
        work.tell(ref, "rejected", _hint(ref, found), old=there, new=oid)
    else:
        work.tell(ref, "rejected", reason, old=there, new=oid)


def _report(work: _Push, *, dry_run: bool) -> PushReport:
    told = [each for each in work.outcomes if each.result != "up-to-date"]
    return PushReport(
        remote=work.remote,
        outcomes=tuple(told),
        up_to_date=len(work.outcomes) - len(told),
        dry_run=dry_run,
    )
