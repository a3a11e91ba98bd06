"""A thread that two people continued: show both sides, and resolve it.

Content is never merged and nothing is forced: one side is kept by a commit on
top of both, or ours becomes a thread of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from uwfgit.engine.run.hold import hold_thread
from uwfgit.errors import InvalidError, StateError, UsageError, first_of
from uwfgit.ids import Oid, ThreadId, mint_thread_id
from uwfgit.model.ledger.kin import find_takers
from uwfgit.model.ledger.ledger import Ledger, list_threads
from uwfgit.model.thread.event import Event, iter_events, tell_resolve
from uwfgit.model.thread.family import children_by_node
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.tip import Tip, compare_sharing, load_tip, read_tip
from uwfgit.shell import quote_word
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.git.scratch import open_scratch
from uwfgit.store.layout import thread_ref
from uwfgit.store.locks.holding import write_whole
from uwfgit.store.objects import Person, read_commit, write_commit
from uwfgit.store.refs import (
    find_tracked,
    is_ancestor,
    iter_first_parents,
    move_ref,
    move_refs,
)
from uwfgit.sync.diverged.replayed_events import replay_tail
from uwfgit.sync.exchange.exchange import Verify

Way = Literal["both", "theirs", "mine"]

RESOLVER: Final = ("uwf", "uwf@localhost")
"""Who makes a resolve, so that equal choices make one commit."""


class Divergence(Struct, frozen=True, kw_only=True):
    """Both sides of a thread, from the newest event they have in common.

    ``base`` is the newest of our own events that theirs holds too.
    """

    thread: ThreadId
    remote: str
    mine: Oid
    theirs: Oid
    base: Oid


class Sides(Struct, frozen=True, kw_only=True):
    """The events since the common one, on each side; oldest first."""

    mine: tuple[Event, ...]
    theirs: tuple[Event, ...]


class Resolved(Struct, frozen=True, kw_only=True):
    """What resolving did; ``copy`` is the new thread that keeps our side."""

    tip: Tip
    copy: Tip | None = None


def find_divergence(
    ledger: Ledger, thread: ThreadId, *, remote: str | None = None
) -> Divergence:
    """Find the two sides of a diverged thread.

    Raises:
        NotFoundError, CorruptError: As reading the thread says.
        StateError: It has not diverged, or has nothing in common with theirs.
        UsageError: It has diverged from several remotes in several ways.
    """
    store = ledger.store
    mine = load_tip(store, thread).commit
    tracked = find_tracked(store, thread)
    diverged = compare_sharing(store, mine, tracked).diverged
    if remote is not None:
        diverged = tuple(name for name in diverged if name == remote)
    if not diverged:
        ahead = any(
            oid != mine and is_ancestor(store, mine, oid) for oid in tracked.values()
        )
        raise StateError(
            f"thread {thread} has not diverged",
            hint="a remote has more of it: uwf pull" if ahead else None,
        )
    if len({tracked[name] for name in diverged}) > 1:
        raise UsageError(
            f"thread {thread} has diverged from {', '.join(diverged)}",
            hint="resolve one after the other: --remote NAME",
        )
    theirs = tracked[diverged[0]]
    return Divergence(
        thread=thread,
        remote=diverged[0],
        mine=mine,
        theirs=theirs,
        base=_find_base(ledger, thread, mine, theirs),
    )


def _find_base(ledger: Ledger, thread: ThreadId, mine: Oid, theirs: Oid) -> Oid:
    for oid in iter_first_parents(ledger.store, mine):
        if oid == GENESIS_OID:
            break
        if is_ancestor(ledger.store, oid, theirs):
            return oid
    raise StateError(
        f"thread {thread} here and there have no event in common",
        hint=f"keep one: uwf thread rm {thread}, then uwf pull",
    )


def list_sides(ledger: Ledger, divergence: Divergence) -> Sides:
    """Read the events of both sides that the other lacks."""
    store = ledger.store

    def tail(tip: Oid, other: Oid) -> tuple[Event, ...]:
        found = []
        for event in iter_events(store, tip):
            if is_ancestor(store, event.commit.oid, other):
                break
            found.append(event)
        return tuple(reversed(found))

    mine, theirs = divergence.mine, divergence.theirs
    return Sides(mine=tail(mine, theirs), theirs=tail(theirs, mine))


def resolve_thread(
    ledger: Ledger,
    thread: ThreadId,
    *,
    way: Way,
    verify: Verify,
    command: str,
    remote: str | None = None,
) -> Resolved:
    """Resolve a diverged thread in one of the three ways.

    Args:
        ledger: Where.
        thread: Which.
        way: ``both`` gives our side an id of its own and sets the branch to
            the remote's tip; ``theirs`` and ``mine`` keep one side by a commit
            on top of both, so that everyone else fast-forwards.
        verify: Verifies their side, if no one has yet.
        command: What this is, for whoever meets the lock.
        remote: Which remote's side is theirs, when there are several.

    Raises:
        StateError: It has not diverged, or ours would leave the store as the proof
            of another thread's step.
        InvalidError: Their side does not verify.
        LockedError: Someone runs the thread.
    """
    with hold_thread(ledger, thread, command=command):
        divergence = find_divergence(ledger, thread, remote=remote)
        _require_verified(ledger, divergence, verify)
        if way == "both":
            _require_unnamed(ledger, divergence)
            # The new name is chosen once, however often the writing is tried.
            copy = mint_thread_id(ledger.now_ms(), ledger.random(10))
            return write_whole(
                ledger.store, lambda: _keep_both(ledger, divergence, copy)
            )
        kept, given = divergence.mine, divergence.theirs
        if way == "theirs":
            kept, given = given, kept
        return write_whole(
            ledger.store, lambda: _keep_one(ledger, divergence, kept, given)
        )


def _require_verified(ledger: Ledger, divergence: Divergence, verify: Verify) -> None:
    theirs, thread = divergence.theirs, divergence.thread
    if ledger.local.is_verified_here(theirs):
        return
    # Aside, because the branch of that name is ours.
    with open_scratch(ledger.store) as scratch:
        move_ref(scratch, thread_ref(thread), old=None, new=theirs, reason="verify")
        reports = list(verify(scratch, [thread]))
    if [report.tip for report in reports if report.ok] != [theirs]:
        problem = first_of(reports[0].problems) if reports else "it was not verified"
        raise InvalidError(
            f"the side of '{divergence.remote}' does not verify: {problem}",
            hint=f"look at it: uwf git log {quote_word(theirs)}",
        )
    ledger.local.record_verified(theirs)


def find_taker(ledger: Ledger, divergence: Divergence) -> ThreadId | None:
    """Find a thread whose step our side did, by a commit that theirs lacks.

    A new thread that keeps our side has new commits: those that the step names
    would belong to no branch, and git would drop them.
    """
    store, thread = ledger.store, divergence.thread
    record = open_record(store, read_tip(store, thread, divergence.mine))
    for taker in sorted(find_takers(ledger, list_threads(ledger), record)):
        above = open_record(store, taker, checked=False)
        named = (
            child.oid
            for child in children_by_node(above).values()
            if child.thread == thread
        )
        # One of neither side is not lost by what is done with ours.
        if any(
            is_ancestor(store, oid, divergence.mine)
            and not is_ancestor(store, oid, divergence.theirs)
            for oid in named
        ):
            return taker
    return None


def _require_unnamed(ledger: Ledger, divergence: Divergence) -> None:
    taker = find_taker(ledger, divergence)
    if taker is not None:
        raise StateError(
            f"your side of thread {divergence.thread} did a step of thread {taker}, "
            "and has to stay in its history",
            hint=f"keep one on top of both: uwf thread resolve {divergence.thread} "
            "--keep-theirs, or --keep-mine",
        )


def set_aside(
    ledger: Ledger, thread: ThreadId, *, base: Oid, command: str
) -> Resolved | None:
    """Return our events after a commit an id of their own; the branch goes back to it.

    For what was done under a claim that another took meanwhile. ``None`` when
    there is nothing after it.

    Args:
        ledger: Where.
        thread: Which.
        base: The tip that the remote has; one of the thread's commits here.
        command: What this is, for whoever meets the lock.

    Raises:
        StateError: The commit is none of the thread's, or what came after it did a
            step of another, and would leave the store.
        LockedError: Someone runs the thread.
    """
    with hold_thread(ledger, thread, command=command):
        mine = load_tip(ledger.store, thread).commit
        if mine == base:
            return None
        if not is_ancestor(ledger.store, base, mine):
            raise StateError(f"thread {thread} here does not go on from {base}")
        copy = mint_thread_id(ledger.now_ms(), ledger.random(10))
        divergence = Divergence(
            thread=thread, remote="", mine=mine, theirs=base, base=base
        )
        _require_unnamed(ledger, divergence)
        return write_whole(ledger.store, lambda: _keep_both(ledger, divergence, copy))


def _keep_both(ledger: Ledger, divergence: Divergence, copy: ThreadId) -> Resolved:
    store, thread = ledger.store, divergence.thread
    replayed = replay_tail(
        ledger, thread, base=divergence.base, tip=divergence.mine, copy=copy
    )
    moves = {
        thread_ref(copy): (None, replayed.tip.commit),
        # The one move of a branch that is no fast-forward: the first pusher
        # keeps the name.
        thread_ref(thread): (divergence.mine, divergence.theirs),
    }
    for commit in replayed.made_here:
        ledger.local.record_commit(commit)
    ledger.local.let_follow(thread, copy)
    move_refs(store, moves, reason="resolve: keep both")
    return Resolved(tip=read_tip(store, thread, divergence.theirs), copy=replayed.tip)


def _keep_one(
    ledger: Ledger, divergence: Divergence, kept: Oid, given: Oid
) -> Resolved:
    store, thread = ledger.store, divergence.thread
    parents = (kept, given)
    commits = [read_commit(store, oid) for oid in parents]
    name, email = RESOLVER
    last = max(each.committer.time for each in commits)
    person = Person(name=name, email=email, time=last)
    commit = write_commit(
        store,
        tree=commits[0].tree,
        parents=parents,
        author=person,
        committer=person,
        message=tell_resolve(read_tip(store, thread, kept).state, kept).message,
    )
    ledger.local.record_commit(commit)
    move_ref(
        store, thread_ref(thread), old=divergence.mine, new=commit, reason="resolve"
    )
    return Resolved(tip=read_tip(store, thread, commit))


def ways_out(ledger: Ledger, divergence: Divergence) -> Sequence[tuple[str, str]]:
    """Name the ways to resolve a thread, each with what it does."""
    command = f"uwf thread resolve {divergence.thread}"
    both = (f"{command} --keep-both", "yours becomes a new thread; this one is theirs")
    return (
        *(() if find_taker(ledger, divergence) else (both,)),
        (f"{command} --keep-theirs", "theirs goes on; yours stays in the history"),
        (f"{command} --keep-mine", "yours goes on; theirs stays in the history"),
    )
