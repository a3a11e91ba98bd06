"""A thread and the threads that did steps of it, as its own record names them."""

from __future__ import annotations

from collections.abc import Iterator

from uwfgit.constants import MAX_NESTED
from uwfgit.errors import CorruptError, UwfError
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.node import STEP_TYPE, read_payload
from uwfgit.model.thread.record import Record, open_record, read_nodes
from uwfgit.model.thread.step import Child, StepNode
from uwfgit.store.handle import Store
from uwfgit.store.layout import thread_ref
from uwfgit.store.refs import find_ref


def named_children(record: Record) -> tuple[ThreadId, ...]:
    """Return the threads that steps and failed tries name, oldest first, each once.

    Raises:
        CorruptError: A StepNode cannot be read.
    """
    return tuple(sorted({child.thread for child in children_by_node(record).values()}))


def children_by_node(record: Record) -> dict[Hash | None, Child]:
    """Return the child that each step and failed try names, by their nodes.

    Raises:
        CorruptError: A StepNode cannot be read.
    """
    found: dict[Hash | None, Child] = {}
    unread = []
    for node, place in record.places.items():
        if place[0] != STEP_TYPE:
            continue
        step = record.find_read(node)
        if step is None:
            unread.append((node, place))
        elif step.child is not None:
            found[node] = step.child
    for each in read_nodes(record.store, unread, checked=False):
        child = read_payload(each, StepNode).child
        if child is not None:
            found[each.hash] = child
    return found


def find_child(record: Record, node: Hash) -> Child | None:
    """Return the child that a step or a failed try names.

    Raises:
        CorruptError: It cannot be read.
    """
    return record.run(node).child


def iter_above(store: Store, record: Record) -> Iterator[ThreadId]:
    """Yield the threads a step of which one does, nearest first, as far as read.

    A fork does none of them: its StartNode is that of the thread it was forked from.
    """
    for _ in range(MAX_NESTED):
        if record.start.parent is None or record.tip.state.forked_from is not None:
            return
        above = record.start.parent.thread
        yield above
        try:
            record = open_record(store, above, checked=False)
        except UwfError:
            return


def iter_family(store: Store, thread: ThreadId) -> Iterator[ThreadId]:
    """Yield a thread's children here, their children before them, each once.

    Raises:
        CorruptError: The thread, or one of them, cannot be read.
    """
    seen = {thread}
    # No recursion: nobody checked how deep threads from elsewhere are nested.
    waiting = [(thread, _children_here(store, thread))]
    while waiting:
        above, children = waiting[-1]
        child = next((each for each in children if each not in seen), None)
        if child is not None:
            seen.add(child)
            waiting.append((child, _children_here(store, child)))
        else:
            waiting.pop()
            if waiting:
                yield above


def _children_here(store: Store, thread: ThreadId) -> Iterator[ThreadId]:
    if find_ref(store, thread_ref(thread)) is None:
        return
    record = open_record(store, thread, checked=False)
    for child in named_children(record):
        if find_ref(store, thread_ref(child)) is not None:
            yield child


def list_lacking(store: Store, thread: ThreadId) -> tuple[ThreadId, ...]:
    """Return the threads that a thread names as of a commit that is not here."""
    try:
        record = open_record(store, thread, checked=False)
        named = children_by_node(record).values()
    except UwfError:
        return ()
    lacking = {
        child.thread
        for child in named
        if find_ref(store, thread_ref(child.thread)) is None
        or child.oid not in store.repo
    }
    return tuple(sorted(lacking))


def family_of(store: Store, thread: ThreadId) -> tuple[ThreadId, ...]:
    """Return a thread's children as far as they can be read; none of a damaged one."""
    try:
        return tuple(iter_family(store, thread))
    except CorruptError:
        return ()
