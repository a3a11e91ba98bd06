"""Threads that go to the trash, and come back, with those that did steps of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from uwfgit.engine.run.hold import hold_thread
from uwfgit.errors import CorruptError, NotFoundError, StateError, UwfError
from uwfgit.ids import Oid, ThreadId, find_thread_id
from uwfgit.model.ledger.kin import find_takers, iter_below
from uwfgit.model.ledger.ledger import Ledger, list_threads
from uwfgit.model.thread.family import named_children
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.tip import read_tip
from uwfgit.store.layout import TRASH_PREFIX, thread_ref
from uwfgit.store.locks.holding import write_whole
from uwfgit.store.refs import find_ref, list_refs, move_refs


def require_no_parent(ledger: Ledger, thread: ThreadId) -> None:
    """Refuse a thread that another one names as who did a step of it.

    Raises:
        StateError: The other is here, and could not be proven without it.
    """
    try:
        record = open_record(ledger.store, thread)
    except CorruptError:
        return
    if record.start.parent is None:
        return
    takers = find_takers(ledger, list_threads(ledger), record)
    if takers:
        raise StateError(
            f"thread {thread} did a step of thread {min(takers)}",
            hint=f"remove it all the same: uwf thread rm {thread} --yes",
        )


def list_going(ledger: Ledger, thread: ThreadId) -> tuple[ThreadId, ...]:
    """Return the threads that go with a thread: those that did steps of it alone."""
    try:
        record = open_record(ledger.store, thread)
        below = list(iter_below(ledger, record))
    except CorruptError:
        return ()
    if not below:
        return ()
    rows, going = list_threads(ledger), {thread}
    # Those above come before those below them.
    for child in below:
        if find_takers(ledger, rows, child) <= going:
            going.add(child.tip.thread)
    return tuple(sorted(going - {thread}))


def remove_thread(ledger: Ledger, thread: ThreadId, *, command: str) -> Oid:
    """Move a thread's branch to the trash, and those that go with it; give its tip.

    A damaged thread can be removed too.

    Raises:
        NotFoundError: There is no such thread.
        LockedError: It, or one of them, is running.
    """
    going = list_going(ledger, thread)
    with _hold(ledger, [thread, *going], command=command):
        return write_whole(
            ledger.store, lambda: _remove(ledger, thread, going), decides_anew=True
        )


@contextmanager
def _hold(
    ledger: Ledger, threads: Iterable[ThreadId], *, command: str
) -> Iterator[None]:
    with ExitStack() as held:
        for thread in threads:
            held.enter_context(hold_thread(ledger, thread, command=command))
        yield


def _remove(ledger: Ledger, thread: ThreadId, going: Iterable[ThreadId]) -> Oid:
    store, moves = ledger.store, dict[str, tuple[Oid | None, Oid | None]]()
    for each in (thread, *going):
        commit = find_ref(store, thread_ref(each))
        if commit is None:
            raise NotFoundError("thread", each)
        trash = TRASH_PREFIX + each
        moves[trash] = (find_ref(store, trash), commit)
        moves[thread_ref(each)] = (commit, None)
    move_refs(store, moves, reason="rm")
    commit = moves[TRASH_PREFIX + thread][1]
    assert commit is not None  # noqa: S101 - found above
    return commit


def list_coming(ledger: Ledger, thread: ThreadId) -> tuple[ThreadId, ...]:
    """Return the threads in the trash that come back with one: what did its steps."""
    removed = dict(_iter_removed(ledger))
    found: dict[ThreadId, None] = {}
    waiting = [thread]
    while waiting:
        above = waiting.pop()
        named = named_children(removed[above]) if above in removed else ()
        # Started for a step of it; a fork has the parent of the thread it came from.
        begun = (
            each
            for each, record in removed.items()
            if record.tip.state.forked_from is None
            and record.start.parent is not None
            and record.start.parent.thread == above
        )
        for child in (*named, *begun):
            is_here = find_ref(ledger.store, thread_ref(child)) is not None
            is_new = child != thread and child not in found
            if child in removed and is_new and not is_here:
                found[child] = None
                waiting.append(child)
    return tuple(sorted(found))


def _iter_removed(ledger: Ledger) -> Iterator[tuple[ThreadId, Record]]:
    """Yield the threads in the trash that can be read."""
    store = ledger.store
    for ref, commit in list_refs(store, TRASH_PREFIX).items():
        thread = find_thread_id(ref.removeprefix(TRASH_PREFIX))
        with suppress(UwfError):
            if thread is not None:
                tip = read_tip(store, thread, commit)
                yield thread, open_record(store, tip, checked=False)


def restore_thread(ledger: Ledger, thread: ThreadId, *, command: str) -> Oid:
    """Move a removed thread's branch back, and those that went with it; give its tip.

    Raises:
        NotFoundError: The trash does not have it.
        StateError: There is a thread of that id.
    """
    coming = list_coming(ledger, thread)
    with _hold(ledger, [thread, *coming], command=command):
        return write_whole(
            ledger.store, lambda: _restore(ledger, thread, coming), decides_anew=True
        )


def _restore(ledger: Ledger, thread: ThreadId, coming: Iterable[ThreadId]) -> Oid:
    trash = TRASH_PREFIX + thread
    commit = find_ref(ledger.store, trash)
    if commit is None:
        hint = "see what is there: uwf thread list --trash"
        raise NotFoundError("removed thread", thread, hint=hint)
    if find_ref(ledger.store, thread_ref(thread)) is not None:
        raise StateError(
            f"thread {thread} is here already",
            hint=f"the removed one is {trash}: uwf git log {trash}",
        )
    moves = _back(thread, commit)
    for each in coming:
        moves |= _back(each, find_ref(ledger.store, TRASH_PREFIX + each))
    move_refs(ledger.store, moves, reason="restore")
    return commit


def _back(
    thread: ThreadId, commit: Oid | None
) -> dict[str, tuple[Oid | None, Oid | None]]:
    return {thread_ref(thread): (None, commit), TRASH_PREFIX + thread: (commit, None)}
