"""What may be pushed to a server: every ref by an allow-list, its content checked.

Nothing is written; new objects are wherever the store given looks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.errors import UwfError, first_of
from uwfgit.ids import Oid, ThreadId, is_oid, is_thread_id
from uwfgit.model.memory.merge import check_memory
from uwfgit.model.thread.family import children_by_node
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.tip import read_tip
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import HEAD_REF, MEMORY_PREFIX, is_workflow_name
from uwfgit.store.objects import EMPTY_TREE, read_commit
from uwfgit.store.refs import find_ref, is_ancestor
from uwfgit.sync.exchange.queue_entry import Entry, read_entry
from uwfgit.sync.exchange.queue_state import (
    MAX_AHEAD,
    PAUSE_REF,
    QUEUE_PREFIX,
    check_queue_move,
)
from uwfgit.sync.exchange.remotes import APPROVED_PREFIX, find_approved
from uwfgit.sync.exchange.signatures import check_approval
from uwfgit.sync.review.jobs import skip_jobs
from uwfgit.sync.verify.registry import check_entries
from uwfgit.sync.verify.report import missing_children
from uwfgit.sync.verify.verify import verify_refs

ZERO: Final = "0" * 40
REVIEW_PREFIX: Final = "refs/heads/uwf/"
_THREADS: Final = ("refs/heads/thread/", "refs/uwf/thread/")
_WORKFLOWS: Final = ("refs/heads/workflow/", "refs/uwf/workflow/")
_APPROVALS: Final = (APPROVED_PREFIX, "refs/uwf/approved/")
_OURS: Final = ("refs/uwf/", "refs/replace/", REVIEW_PREFIX)
_BASE: Final = "-base"
_MOST_STATES: Final = 16
"""States of a queued thread that one push may add."""


class Push(Struct, frozen=True, kw_only=True):
    """One ref that is to move; a zero oid stands for none."""

    old: str
    new: str
    ref: str

    @property
    def deletes(self) -> bool:
        """Whether the ref is to go."""
        return self.new == ZERO


def check_pushes(
    store: Store, pushes: Sequence[Push], *, shared: bool, now: int, skip: int = 0
) -> Iterator[str | None]:
    """Say of each ref why it may not move so; ``None`` when it may.

    Args:
        store: The receiving repository, with what was pushed in sight.
        pushes: All that one push would move.
        shared: Whether code lives in that repository: its own branches and
            tags are then nobody's business here.
        now: The time, in seconds since 1970.
        skip: How many of the refs not to look at again.
    """
    pushed = {push.ref: push.new for push in pushes}
    for push in pushes[skip:]:
        try:
            problem = _check(store, push, pushed, shared=shared, now=now)
        except UwfError as exc:
            problem = exc.message
        yield problem


def _check(
    store: Store, push: Push, pushed: dict[str, str], *, shared: bool, now: int
) -> str | None:
    if not (is_oid(push.old) and is_oid(push.new)):
        return "git named no sha1 object"
    if prefix := _prefix(push.ref, _THREADS):
        return _check_thread(store, push, push.ref[len(prefix) :], pushed)
    if prefix := _prefix(push.ref, _WORKFLOWS):
        return _check_workflow(store, push, push.ref[len(prefix) :])
    if prefix := _prefix(push.ref, _APPROVALS):
        name = APPROVED_PREFIX + push.ref[len(prefix) :]
        return _check_approved(store, push, name, pushed)
    if push.ref.startswith(QUEUE_PREFIX):
        return _check_queue(store, push, now)
    return _check_other(store, push, pushed, shared=shared)


def _check_queue(store: Store, push: Push, now: int) -> str | None:
    """Check a move in a queue: each new commit must be a legal next state."""
    name = push.ref.removeprefix(QUEUE_PREFIX)
    if push.ref == PAUSE_REF:
        pause = None if push.deletes else read_commit(store, Oid(push.new))
        if pause is not None and (pause.tree != EMPTY_TREE or pause.parents):
            return "a pause is a commit without files and parents"
        return None
    if not is_thread_id(name):
        return "that is not a name of a queued thread"
    if push.deletes:
        last = read_entry(store, Oid(push.old))
        is_done = last is not None and last.state.word == "done"
        return None if is_done else "only what is done leaves the queue"
    return _check_states(store, push, ThreadId(name), now)


def _check_states(store: Store, push: Push, thread: ThreadId, now: int) -> str | None:
    oid = Oid(push.new)
    for _ in range(_MOST_STATES):
        entry = read_entry(store, oid)
        if entry is None or entry.state.thread != thread:
            return "it is not a state of that thread in a queue"
        problem = _check_state(store, entry, push.old, now)
        if problem is not None or entry.parent is None or entry.parent == push.old:
            return problem
        oid = entry.parent
    return "too many states at once"


def _check_state(store: Store, entry: Entry, old: str, now: int) -> str | None:
    """Check one state against the one before it."""
    if entry.committed_at > now + MAX_AHEAD:
        # A claim of such a date would never be over.
        return "its date is ahead of this server's clock"
    if entry.parent is None and old != ZERO:
        return "not a fast-forward: fetch the queue first"
    before = read_entry(store, entry.parent) if entry.parent is not None else None
    if entry.parent is not None and before is None:
        return "its parent is not a state of a queue"
    return check_queue_move(
        before.state if before else None,
        entry.state,
        before_time=before.committed_at if before else 0,
        after_time=entry.committed_at,
    )


def _check_other(
    store: Store, push: Push, pushed: dict[str, str], *, shared: bool
) -> str | None:
    if push.ref.startswith(MEMORY_PREFIX):
        return _check_memory(store, push, push.ref[len(MEMORY_PREFIX) :])
    if push.ref.startswith(REVIEW_PREFIX):
        return _check_review(store, push, pushed)
    if not shared and push.ref == HEAD_REF:
        return _check_main(store, push)
    is_ours = push.ref.startswith(_OURS)
    # In the way of ours as a file is of a folder; once there, it may only go.
    is_in_the_way = f"{push.ref}/" in (*_THREADS, *_WORKFLOWS, *_APPROVALS, *_OURS)
    if shared and not is_ours and (push.deletes or not is_in_the_way):
        return None
    return "it is not a ref of threads, workflows, approvals or reviews"


def _prefix(ref: str, prefixes: Sequence[str]) -> str:
    return next((prefix for prefix in prefixes if ref.startswith(prefix)), "")


def _check_thread(
    store: Store, push: Push, name: str, pushed: dict[str, str]
) -> str | None:
    if not is_thread_id(name):
        return "that is not a name of a thread's branch"
    if push.deletes:
        return "a thread is not deleted"
    return _check_forward(store, push) or _verify(store, push, pushed)


def _check_forward(store: Store, push: Push) -> str | None:
    if push.old == ZERO or is_ancestor(store, Oid(push.old), Oid(push.new)):
        return None
    return "not a fast-forward: pull first"


def _verify(store: Store, push: Push, pushed: dict[str, str]) -> str | None:
    (report,) = verify_refs(store, [(push.ref, push.new)])
    if not report.ok:
        return first_of(report.problems)
    missing = missing_children(report)
    if missing is None and report.children:
        missing = _find_unkept(store, ThreadId(report.thread), Oid(push.new), pushed)
    return missing and f"{missing}: push the threads that did its steps along"


def _find_unkept(
    store: Store, thread: ThreadId, tip: Oid, pushed: dict[str, str]
) -> str | None:
    """Name a child whose commits came along, and that no branch would keep."""
    record = open_record(store, read_tip(store, thread, tip), checked=False)
    for child in children_by_node(record).values():
        tips = _tips(store, _branches_of(child.thread), pushed)
        if not any(is_ancestor(store, child.oid, each) for each in tips):
            return f"child {child.thread} has no branch here"
    return None


def _check_workflow(store: Store, push: Push, name: str) -> str | None:
    if not is_workflow_name(name):
        return "that is not a name of a workflow"
    if push.deletes:
        return None
    return _check_forward(store, push) or check_entries(store, Oid(push.new), name)


def _check_memory(store: Store, push: Push, name: str) -> str | None:
    if not is_thread_id(name):
        return "that is not the name of a thread's memory"
    if push.deletes:
        return "a memory is not deleted"
    known = None if push.old == ZERO else Oid(push.old)
    return _check_forward(store, push) or check_memory(
        store, Oid(push.new), known=known
    )


def _check_approved(
    store: Store, push: Push, name: str, pushed: dict[str, str]
) -> str | None:
    thread = find_approved(name)
    if thread is None:
        return "that is not a name of an approval"
    if push.deletes:
        return None
    if push.old not in {ZERO, push.new}:
        return "an approval is not changed; delete it first"
    tips = list(_tips(store, _branches_of(thread), pushed))
    return check_approval(store, name, Oid(push.new), tips)


def _branches_of(thread: ThreadId) -> tuple[str, ...]:
    return tuple(prefix + thread for prefix in _THREADS)


def _tips(store: Store, refs: Iterable[str], pushed: dict[str, str]) -> Iterator[Oid]:
    """Yield what refs are at, there and as they are pushed."""
    for ref in refs:
        new, old = pushed.get(ref, ZERO), find_ref(store, ref)
        if new != ZERO:
            yield Oid(new)
        if old is not None:
            yield old


def _check_review(store: Store, push: Push, pushed: dict[str, str]) -> str | None:
    name = push.ref.removeprefix(REVIEW_PREFIX)
    if name == "main":
        return _check_main(store, push)
    if not is_thread_id(name.removesuffix(_BASE)):
        return "that is not a name of a review's branch"
    if push.deletes:
        return None
    if not name.endswith(_BASE):
        return _check_forward(store, push) or _verify(store, push, pushed)
    # What whole threads are compared with may have jobs on top.
    mains = _tips(store, (HEAD_REF, f"{REVIEW_PREFIX}main"), pushed)
    cut = skip_jobs(store, Oid(push.new), mains)
    # Before a thread's first event there is only genesis.
    return (
        None if cut == GENESIS_OID else _verify(store, replace(push, new=cut), pushed)
    )


def _check_main(store: Store, push: Push) -> str | None:
    if push.deletes:
        return "it is what all reviews start from"
    if not is_ancestor(store, GENESIS_OID, Oid(push.new)):
        return "it does not start at uwf's first commit"
    return _check_forward(store, push)
