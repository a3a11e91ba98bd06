"""The code around a run: kept before and after it, and who else is at work there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.code.chain import Label, When, chain_ref, find_snapshot
from uwfgit.code.snapshots.keep import Keeper, Kept
from uwfgit.code.snapshots.presence import Presence, at_work, list_at_work
from uwfgit.code.worktree import WorkTree
from uwfgit.errors import UwfError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.append import next_run
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.family import iter_above
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.step import Snapshot

_INTERRUPTED: Final = Kept(warnings=("no code snapshot after the run: interrupted",))


class Around(Struct, frozen=True, kw_only=True):
    """What is recorded of the code around a run.

    ``warnings`` say why there is no snapshot, or what one leaves out, each once;
    ``shared`` are the threads that were at work in the same folder meanwhile.
    """

    snapshot: Snapshot | None
    shared: tuple[ThreadId, ...]
    warnings: tuple[str, ...]


NOTHING_AROUND: Final = Around(snapshot=None, shared=(), warnings=())
"""Of a run whose code nobody keeps."""


class Watch(Struct, kw_only=True):
    """What is known of the code around one run."""

    keep: Callable[[When], Kept]
    presence: Presence | None
    is_own: Callable[[ThreadId], bool]
    before: Kept
    """The code as it was before the agent was asked."""
    _after: Kept | None = None

    def end(self, children: Collection[ThreadId] = ()) -> Around:
        """Keep the code as the agent left it; once, however often it is asked.

        Args:
            children: Threads that did the step, or steps of those.
        """
        if self._after is None:
            self._after = _INTERRUPTED
            self._after = self.keep("after")
        before, after = self.before, self._after
        snapshot = None
        if before.tree is not None or after.tree is not None:
            snapshot = Snapshot(before=before.tree, after=after.tree)
        others = () if self.presence is None else self.presence.others()
        shared = (each for each in others if each not in children)
        return Around(
            snapshot=snapshot,
            shared=tuple(each for each in shared if not self.is_own(each)),
            warnings=tuple(dict.fromkeys((*before.warnings, *after.warnings))),
        )


@contextmanager
def watching(
    ledger: Ledger,
    keeper: Keeper,
    record: Record,
    folder: Path,
    *,
    number: int,
    above: tuple[ThreadId, ...],
    tell: Callable[[str], None],
) -> Iterator[Watch | None]:
    """Watch the code of a work tree for the length of a run.

    Yields ``None`` outside of one, and for a thread without code.

    Args:
        keeper: Keeps it.
        number: Of the step that is run.
        above: The threads a step of which it is part of. The record alone does not
            tell: a child that was forked names the parent it had first.
        tell: Told when another thread is at work there.
    """
    thread = record.tip.thread
    tree = WorkTree.find(folder, keeper.environment)
    if tree is None or ledger.local.is_without_code(thread):
        yield None
        return
    state, run = ledger.store.state_dir, next_run(record, number).rpartition("/")[2]

    def is_own(other: ThreadId) -> bool:
        return other in above or _are_family(ledger, record, other)

    for other in list_at_work(state, tree.root):
        if not is_own(other):
            tell(f"note: thread {other} is at work in '{tree.root}' too")

    def keep(when: When) -> Kept:
        label = Label(thread=thread, number=number, run=int(run), when=when)
        return keeper.keep(folder, label, origin=lambda: _find_origin(record, tree))

    with at_work(state, tree.root, thread) as presence:
        yield Watch(keep=keep, presence=presence, is_own=is_own, before=keep("before"))


def _find_origin(record: Record, tree: WorkTree) -> Oid | None:
    """Find the snapshot that a fork's first one goes on from."""
    origin = record.tip.state.forked_from
    if origin is None or origin.number == 0:
        return None
    try:
        wanted = record.step_at(origin.number).code.snapshot
        if wanted is None or wanted.after is None:
            return None
        found = find_snapshot(tree, chain_ref(origin.thread), Oid(wanted.after))
    except UwfError:
        return None
    return None if found is None else found.commit


def _are_family(ledger: Ledger, record: Record, other: ThreadId) -> bool:
    """Whether one of two threads does a step of the other: they take turns."""
    if other in iter_above(ledger.store, record):
        return True
    try:
        theirs = open_record(ledger.store, other)
    except UwfError:
        return False
    return record.tip.thread in iter_above(ledger.store, theirs)
