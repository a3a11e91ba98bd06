"""Bring refs of others in: fetched aside, checked there, adopted one by one.

What is refused leaves nothing behind in the store; the good are adopted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import takewhile
from typing import Final, TypeAlias

from msgspec import Struct, field

from uwfgit.engine.run.hold import hold_thread
from uwfgit.engine.run.thread import fork_thread
from uwfgit.errors import LockedError, first_of, name_some
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.event import STEP_EVENTS, read_event
from uwfgit.model.thread.state import decode_state
from uwfgit.model.thread.tip import load_tip
from uwfgit.model.wording import count_of
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.git.refbatch import move_many
from uwfgit.store.git.scratch import adopt_objects, open_scratch
from uwfgit.store.handle import Store
from uwfgit.store.layout import WORKFLOW_PREFIX, find_ref_thread, thread_ref
from uwfgit.store.locks.holding import hold_refs, writing
from uwfgit.store.objects import read_commit
from uwfgit.store.refs import (
    find_ref,
    has_object,
    is_ancestor,
    iter_first_parents,
    scan_refs,
)
from uwfgit.sync.exchange.exchange import (
    CHUNK,
    ExchangeSource,
    Outcomes,
    RefOutcome,
    Result,
    Verify,
    approval_hint,
    chunks,
    diverged_hint,
    halves,
    is_removed,
    removed_message,
)
from uwfgit.sync.exchange.remotes import APPROVED_PREFIX, find_approved
from uwfgit.sync.exchange.signatures import check_approval
from uwfgit.sync.exchange.transport import Wire, fetch_refs, list_refs_there, reason_of
from uwfgit.sync.verify.registry import check_entries

_HELD: Final = 200
"""Threads locked at a time; each lock is an open file."""
"""So many steps are named where some are set aside."""
_WORKFLOW_WAIT: Final = 5.0
_REWOUND: Final = "the remote's branch was rewound or rewritten since the last fetch"
_NOT_BROUGHT: Final = "git does not bring it: is the remote a shallow clone?"

Check: TypeAlias = Callable[[Store, Oid, str], str | None]
"""Says what is wrong with the branch of a registered workflow in some store."""
_Moves: TypeAlias = dict[str, tuple[Oid | None, Oid | None]]


class _Work(Struct, kw_only=True):
    ledger: Ledger
    source: ExchangeSource
    wire: Wire
    verify: Verify
    check: Check
    command: str
    scratch: Store
    told: Outcomes = field(default_factory=Outcomes)
    notes: dict[str, str] = field(default_factory=dict)
    """What else is told of a branch that moves."""

    @property
    def store(self) -> Store:
        return self.ledger.store


def bring_in(
    ledger: Ledger,
    source: ExchangeSource,
    *,
    wire: Wire,
    verify: Verify,
    command: str,
    check: Check = check_entries,
) -> tuple[RefOutcome, ...]:
    """Fetch refs, verify each, and adopt what is good by fast-forward.

    Args:
        ledger: Where to.
        source: Where from, and which.
        wire: How.
        verify: Verifies threads in the scratch repository.
        command: What this is, for whoever meets a lock.
        check: Checks the branch of a registered workflow there.

    Raises:
        AuthError, RemoteError: The remote cannot be reached (any more).
        StoreError: The store cannot be written.
    """
    outcomes: list[RefOutcome] = []
    for chunk in chunks(list(source.names), CHUNK):
        with open_scratch(ledger.store) as scratch:
            work = _Work(
                ledger=ledger,
                source=source,
                wire=wire,
                verify=verify,
                check=check,
                command=command,
                scratch=scratch,
            )
            _fetch(work, chunk)
            _adopt(work, _check(work, chunk))
            outcomes += work.told.all
    return tuple(outcomes)


def _fetch(work: _Work, refs: Sequence[str]) -> None:
    """Fetch into the scratch repository, under the names refs have here."""
    waiting = [refs]
    while waiting:
        part = waiting.pop()
        specs = [f"{work.source.names[ref]}:{ref}" for ref in part]
        done = fetch_refs(work.wire, work.source.url, specs, git_dir=work.scratch.path)
        if done.code == 0:
            continue
        if work.source.is_remote:
            # Raises when the remote is gone, rather than a ref bad.
            list_refs_there(
                work.wire,
                work.source.url,
                name=work.source.name,
                git_dir=work.scratch.path,
                only_branches=True,
            )
        if len(part) > 1:
            # One that cannot be fetched is found by cutting in two.
            waiting += reversed(halves(part))
        else:
            work.told.tell(
                part[0], "refused", f"git cannot fetch it: {reason_of(done)}"
            )


def _check(work: _Work, refs: Sequence[str]) -> dict[str, Oid]:
    """Return what was fetched and is good; tell of the rest why it is refused."""
    fetched = {
        ref: oid
        for prefix in ("refs/heads/", "refs/tags/")
        for ref, oid in sorted(scan_refs(work.scratch, prefix).items())
        if ref in work.source.names
    }
    told = {outcome.ref for outcome in work.told.all}
    for ref in refs:
        # git passes by what a shallow remote has, and calls that a success.
        if ref not in fetched and ref not in told:
            work.told.tell(ref, "refused", _NOT_BROUGHT)
    problems = _verify_threads(work, fetched)
    good = {ref: oid for ref, oid in fetched.items() if ref not in problems}
    for ref, oid in good.items():
        problem = _check_other(work, ref, oid, good)
        if problem is not None:
            problems[ref] = problem
    for ref, problem in problems.items():
        work.told.tell(ref, "refused", problem + _beside(work, ref), new=fetched[ref])
    return {ref: oid for ref, oid in good.items() if ref not in problems}


def _verify_threads(work: _Work, fetched: Mapping[str, Oid]) -> dict[str, str]:
    threads = {t: ref for ref in fetched if (t := find_ref_thread(ref))}
    # What nobody says anything about is not good.
    problems = dict.fromkeys(threads.values(), "it was not verified")
    if threads and work.wire.on_progress is not None:
        work.wire.on_progress(f"verifying {count_of(len(threads), 'thread')}")
    for report in work.verify(work.scratch, list(threads)) if threads else ():
        ref = threads[ThreadId(report.thread)]
        if not report.ok:
            problems[ref] = first_of(report.problems)
        elif report.tip == fetched[ref]:
            del problems[ref]
    return problems


def _check_other(
    work: _Work, ref: str, oid: Oid, good: Mapping[str, Oid]
) -> str | None:
    """Say what is wrong with a workflow's branch or an approval."""
    name = ref.removeprefix(WORKFLOW_PREFIX)
    if name != ref:
        return work.check(work.scratch, oid, name)
    thread = find_approved(ref)
    if thread is None:
        return None
    branch = thread_ref(thread)
    tips = (good.get(branch), find_ref(work.store, branch))
    return check_approval(work.scratch, ref, oid, [tip for tip in tips if tip])


def _adopt(work: _Work, good: Mapping[str, Oid]) -> None:
    """Bring the objects of what is good, then move the refs, thread by thread."""
    wanted = {ref: oid for ref, oid in good.items() if _is_welcome(work, ref, oid)}
    if not wanted:
        return
    held = set(scan_refs(work.store, "refs/heads/").values())
    with (
        writing(work.store),
        adopt_objects(
            work.store,
            work.scratch,
            wanted.values(),
            known=[oid for oid in (GENESIS_OID, *held) if has_object(work.store, oid)],
            environment=work.wire.environment,
        ),
    ):
        threads = {t: oid for ref, oid in wanted.items() if (t := find_ref_thread(ref))}
        for part in chunks(list(threads.items()), _HELD):
            _adopt_threads(work, dict(part))
        for ref, oid in wanted.items():
            if find_ref_thread(ref) is None:
                _adopt_other(work, ref, oid)


def _is_welcome(work: _Work, ref: str, oid: Oid) -> bool:
    """Whether something good is also to be had; tell why it is not."""
    if is_removed(work.store, ref, oid, where=work.scratch):
        work.told.tell(ref, "removed", removed_message(ref), new=oid)
        return False
    before = find_ref(work.store, work.source.tracking(ref))
    if not work.source.is_remote or ref.startswith(APPROVED_PREFIX) or before is None:
        return True
    if is_ancestor(work.scratch, before, oid):
        return True
    work.told.tell(ref, "refused", _REWOUND + _beside(work, ref), old=before, new=oid)
    return False


def _beside(work: _Work, ref: str) -> str:
    """Say what can be done with a thread whose branch there cannot be taken."""
    thread = find_ref_thread(ref)
    if thread is None or find_ref(work.store, ref) is None:
        return ""
    return f"; yours is as it was, and goes there as a fork: uwf thread fork {thread}"


def _adopt_threads(work: _Work, tips: Mapping[ThreadId, Oid]) -> None:
    with ExitStack() as locks:
        held = {}
        for thread, oid in tips.items():
            try:
                locks.enter_context(
                    hold_thread(work.ledger, thread, command=work.command)
                )
            except LockedError as exc:
                work.told.tell(thread_ref(thread), "busy", exc.message, new=oid)
            else:
                held[thread_ref(thread)] = oid
        for ref, oid in held.items():
            _keep_aside(work, ref, oid)
        _move_all(work, held)


def _keep_aside(work: _Work, ref: str, new: Oid) -> None:
    """Keep what a resolve by others sets aside, as a fork when any of it is ours.

    Whoever may push can keep the other side, and nothing of ours would be found.
    """
    store, old = work.store, find_ref(work.store, ref)
    if old is None or not is_ancestor(store, old, new):
        return
    aside = _list_aside(store, old, new)
    count = f"{len(aside)} event{'s' if len(aside) != 1 else ''}"
    thread = find_ref_thread(ref)
    if not aside or thread is None:
        return
    events = [read_event(read_commit(store, oid)) for oid in aside]
    steps = [each.node for each in events if each.node and each.name in STEP_EVENTS]
    note = f"a resolve set {count} aside that this store had"
    if steps:
        note += f" (step {name_some(steps, most=3)})"
    if any(map(work.ledger.local.is_made_here, aside)):
        fork = _fork_once(work.ledger, thread)
        note += f"; some are yours, they are kept as thread {fork}"
    elif steps:
        note += f"; to keep them as a thread: uwf thread fork {steps[0]}"
    else:
        note += f", up to {aside[0]}"
    work.notes[ref] = note


def _fork_once(ledger: Ledger, thread: ThreadId) -> ThreadId:
    """Fork a thread at its head, if a pull that was killed then did not do so."""
    head = load_tip(ledger.store, thread).state.head
    ledger.lookup.refresh()
    for row in ledger.lookup.list_threads():
        if row.state_json is None or row.thread == thread:
            continue
        state = decode_state(row.state_json.encode(), checked=False)
        origin = state.forked_from
        is_same = origin is not None and origin.step == state.head == head
        if is_same and ledger.local.is_made_here(row.commit):
            return row.thread
    return fork_thread(ledger, thread).thread


def _list_aside(store: Store, old: Oid, new: Oid) -> list[Oid]:
    """Return the events below one tip that are not of another's chain, newest first."""
    kept = set()
    for oid in iter_first_parents(store, new):
        if oid == old:
            return []
        kept.add(oid)
    return list(takewhile(lambda oid: oid not in kept, iter_first_parents(store, old)))


def _move_all(work: _Work, tips: Mapping[str, Oid]) -> None:
    """Move branches whose locks are held, all at once or else one by one."""
    plans = {ref: _plan(work, ref, oid) for ref, oid in tips.items()}
    moves = {name: move for _, each in plans.values() for name, move in each.items()}
    environment = work.wire.environment
    if move_many(work.store, moves, reason=work.command, environment=environment):
        for outcome, _ in plans.values():
            _settle(work, outcome)
        return
    for outcome, each in plans.values():
        if move_many(work.store, each, reason=work.command, environment=environment):
            _settle(work, outcome)
        else:
            work.told.tell(
                outcome.ref, "busy", "its branch was moved meanwhile", new=outcome.new
            )


def _plan(work: _Work, ref: str, new: Oid) -> tuple[RefOutcome, _Moves]:
    """Say what becomes of one branch, and which refs that moves."""
    store = work.store
    old = find_ref(store, ref)
    moves: _Moves = {}
    result: Result
    if old is None:
        result, moves[ref] = "new", (None, new)
    elif old == new:
        result = "up-to-date"
    elif is_ancestor(store, old, new):
        result, moves[ref] = "updated", (old, new)
    elif is_ancestor(store, new, old):
        result = "ahead"
    else:
        result = "diverged"
    if work.source.is_remote or result == "diverged":
        name = work.source.tracking(ref)
        before = find_ref(store, name)
        if before != new:
            moves[name] = (before, new)
    message = work.notes.get(ref)
    if result == "diverged":
        message = diverged_hint(store, ref)
    outcome = RefOutcome(ref=ref, result=result, old=old, new=new, message=message)
    return outcome, moves


def _settle(work: _Work, outcome: RefOutcome) -> None:
    if outcome.thread is not None and outcome.new is not None:
        work.ledger.local.record_verified(outcome.new)
    work.told.all.append(outcome)


def _adopt_other(work: _Work, ref: str, oid: Oid) -> None:
    """Adopt a workflow's branch, or an approval."""
    if find_approved(ref):
        _adopt_approval(work, ref, oid)
        return
    name = ref.removeprefix(WORKFLOW_PREFIX)
    try:
        with hold_refs(
            work.store,
            f"workflow-{name}",
            [ref],
            command=work.command,
            what=f"workflow '{name}'",
            wait=_WORKFLOW_WAIT,
        ):
            _move_all(work, {ref: oid})
    except LockedError as exc:
        work.told.tell(ref, "busy", exc.message, new=oid)


def _adopt_approval(work: _Work, ref: str, oid: Oid) -> None:
    old = find_ref(work.store, ref)
    if old is not None and old != oid:
        work.told.tell(ref, "diverged", approval_hint(ref), old=old, new=oid)
        return
    moves: _Moves = {} if old else {ref: (None, oid)}
    environment = work.wire.environment
    if move_many(work.store, moves, reason=work.command, environment=environment):
        work.told.tell(ref, "up-to-date" if old else "new", old=old, new=oid)
    else:
        work.told.tell(ref, "busy", "someone else makes it", new=oid)
