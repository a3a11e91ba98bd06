"""The queue on a remote: what stands in it, and moving it by plain pushes.

Every change is the push of a commit whose parent is the state before: a
compare-and-swap, since any other change is a sibling. What was fetched last is
kept under ``refs/uwf/queues/<remote>/``; nothing else reads those refs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.errors import CorruptError, RemoteError
from uwfgit.ids import Oid, ThreadId, is_thread_id
from uwfgit.model.ledger.commit import committer
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.git.refbatch import move_many
from uwfgit.store.git.scratch import adopt_objects, open_scratch
from uwfgit.store.handle import Store
from uwfgit.store.objects import (
    EMPTY_TREE,
    format_commit,
    read_commit,
    write_object,
)
from uwfgit.store.raw import COMMIT, TREE
from uwfgit.store.refs import scan_refs
from uwfgit.sync.exchange.exchange import CHUNK, chunks
from uwfgit.sync.exchange.queue_entry import Entry, read_entry
from uwfgit.sync.exchange.queue_state import (
    MAX_AHEAD,
    PAUSE_REF,
    QUEUE_PREFIX,
    QueueState,
    format_queue_state,
)
from uwfgit.sync.exchange.remotes import Remote
from uwfgit.sync.exchange.transport import (
    Update,
    Wire,
    delete_ref_there,
    fetch_refs,
    list_refs_there,
    push_refs,
    reason_of,
)

COPIES: Final = "refs/uwf/queues/"
_MOST: Final = 100_000
"""Queue refs that are looked at; a remote may claim to have millions."""
_AUDIT: Final = 1000
"""States of one thread that are read back."""


class Contents(Struct, frozen=True, kw_only=True):
    """What a remote's queue holds, oldest first; of ``bad`` refs why they are not."""

    entries: Mapping[ThreadId, Entry]
    bad: Mapping[str, str]
    is_paused: bool


class _Look(Struct, kw_only=True):
    """What the last look at a queue found.

    Of thousands of states few are new at the next one, and no ref and no commit is
    read twice. ``refs`` are the remote's; ``here`` are the copies by the last part of
    their names, ``None`` when they have to be read.
    """

    refs: Mapping[str, Oid] | None = None
    here: dict[str, Oid] | None = None
    contents: Contents | None = None
    entries: Mapping[Oid, Entry] = field(default_factory=dict)


class Queue(Struct, frozen=True, kw_only=True):
    """The queue of one remote."""

    ledger: Ledger
    remote: Remote
    wire: Wire
    _last: _Look = field(default_factory=_Look)

    @property
    def store(self) -> Store:
        """Where the copies of its refs are."""
        return self.ledger.store

    @property
    def _calm(self) -> Wire:
        """How to talk without a word of it: a queue is looked at again and again."""
        return replace(self.wire, on_progress=None)

    @property
    def _copies(self) -> str:
        return f"{COPIES}{self.remote.name}/"

    def fetch(self) -> Contents:
        """Return what the queue holds now; only what is new is brought.

        Raises:
            AuthError, RemoteError: The remote cannot be reached.
        """
        last = self._last
        refs = list_refs_there(
            self._calm,
            self.remote.url,
            name=self.remote.name,
            git_dir=self.store.path,
            patterns=[f"{QUEUE_PREFIX}*"],
        )
        if last.contents is not None and refs == last.refs:
            return last.contents
        there = self._choose(refs)
        here = last.here if last.here is not None else self._scan()
        last.refs = last.here = None
        wanted = [name for name, oid in there.items() if here.get(name) != oid]
        bad: dict[str, str] = {}
        is_ours = True
        for part in chunks(wanted, CHUNK):
            is_ours = self._bring(part, here, bad) and is_ours
        gone = {name: oid for name, oid in here.items() if name not in there}
        if gone:
            is_ours = self._move(here, dict.fromkeys(gone)) and is_ours
        if not is_ours:
            # Another command of this store moved them meanwhile.
            here = self._scan()
        contents = self._read(here, bad)
        last.refs, last.here, last.contents = refs, here, contents
        last.entries = {entry.oid: entry for entry in contents.entries.values()}
        return contents

    def _scan(self) -> dict[str, Oid]:
        found = scan_refs(self.store, self._copies)
        return {ref[len(self._copies) :]: oid for ref, oid in found.items()}

    def _choose(self, refs: Mapping[str, Oid]) -> dict[str, Oid]:
        """Return the refs of a queue, by the last part of their names."""
        names = {
            ref.removeprefix(QUEUE_PREFIX): oid
            for ref, oid in refs.items()
            if ref.startswith(QUEUE_PREFIX)
        }
        known = {n: o for n, o in names.items() if is_thread_id(n) or n == "PAUSE"}
        if len(known) > _MOST:
            raise RemoteError(
                f"its queue has {len(known):,} threads, more than {_MOST:,}",
                remote=self.remote.name,
            )
        return known

    def _bring(
        self, names: Sequence[str], here: dict[str, Oid], bad: dict[str, str]
    ) -> bool:
        """Fetch queue refs aside, and keep those that hold nothing but states.

        Return whether the copies were as they were known to be.
        """
        copies = self._copies
        with open_scratch(self.store) as scratch:
            specs = [f"+{QUEUE_PREFIX}{name}:{copies}{name}" for name in names]
            done = fetch_refs(self._calm, self.remote.url, specs, git_dir=scratch.path)
            if done.code:
                raise RemoteError(reason_of(done), remote=self.remote.name)
            good: dict[str, Oid] = {}
            for ref, oid in scan_refs(scratch, copies).items():
                name = ref[len(copies) :]
                problem = _check_chain(scratch, oid, here.get(name))
                if problem is None:
                    good[name] = oid
                else:
                    bad[name] = problem
            if not good:
                return True
            known = [here[name] for name in good if name in here]
            with adopt_objects(
                self.store,
                scratch,
                good.values(),
                known=[GENESIS_OID, *known],
                environment=self.wire.environment,
            ):
                return self._move(here, good)

    def _move(self, here: dict[str, Oid], to: Mapping[str, Oid | None]) -> bool:
        """Move copies, and what is known of them; whether that was as it is."""
        copies = self._copies
        moves = {f"{copies}{name}": (here.get(name), new) for name, new in to.items()}
        moved = move_many(
            self.store,
            moves,
            reason="queue: fetch",
            environment=self.wire.environment,
        )
        for name, new in to.items() if moved else ():
            if new is None:
                del here[name]
            else:
                here[name] = new
        return moved

    def _read(self, here: Mapping[str, Oid], bad: dict[str, str]) -> Contents:
        found = []
        for name, oid in here.items():
            if not is_thread_id(name) or name in bad:
                continue
            entry = self._last.entries.get(oid) or read_entry(self.store, oid)
            if entry is None or entry.state.thread != name:
                bad[name] = "its newest commit is not a state of that thread"
            else:
                found.append(entry)
        found.sort(key=lambda entry: (entry.committed_at, entry.state.thread))
        entries = {entry.state.thread: entry for entry in found}
        return Contents(entries=entries, bad=bad, is_paused="PAUSE" in here)

    def write(self, state: QueueState, *, parent: Oid | None) -> Oid:
        """Write a state as a commit on top of another; no ref moves.

        It is signed when the user signs events, whichever of them.

        Raises:
            StoreError: It was to be signed, and cannot be.
        """
        write_object(self.store, TREE, b"")
        person = committer(self.ledger, not_before=self._date_of(parent))
        data = format_commit(
            tree=EMPTY_TREE,
            parents=(parent,) if parent else (),
            author=person,
            committer=person,
            message=format_queue_state(state),
        )
        signer = self.ledger.signer
        if signer.wants(is_last=True):
            data = signer.sign(self.store, data)
        oid = write_object(self.store, COMMIT, data)
        self.ledger.local.record_commit(oid)
        return oid

    def _date_of(self, parent: Oid | None) -> int:
        """Return the date that the next state is not to be before, in seconds.

        One that is far ahead is no clock's: who followed it could write nothing more.
        """
        if parent is None:
            return 0
        time = read_commit(self.store, parent).committer.time
        return time if time <= self.ledger.now_ms() // 1000 + MAX_AHEAD else 0

    def nonce(self) -> str:
        """Return what makes two states of one second and one person differ."""
        return self.ledger.random(8).hex()

    def successor(self, entry: Entry, **changes: object) -> QueueState:
        """Return the state after another: its own facts, but for the changes."""
        bare = replace(
            entry.state,
            nonce=self.nonce(),
            worker=None,
            lease=None,
            reason=None,
            retry_at_ms=None,
        )
        return replace(bare, **changes)

    def push(self, moves: Mapping[str, Oid]) -> None:
        """Move refs of the remote, all of them or none, forcing nothing.

        Args:
            moves: The remote's names of refs → where they shall point.

        Raises:
            RejectedError: One of them moved meanwhile, or the server refused.
            AuthError, RemoteError: The remote cannot be reached.
        """
        updates = [Update(oid=oid, ref=ref) for ref, oid in moves.items()]
        push_refs(
            self._calm,
            self.store,
            self.remote.name,
            updates,
            # A step without its claim, or the other way round, fences nobody.
            all_or_none=True,
        )

    def delete(self, name: str, oid: Oid) -> None:
        """Take a ref out of the queue, if it still points there.

        Raises:
            RejectedError: It moved meanwhile, or the server refused.
            AuthError, RemoteError: The remote cannot be reached.
        """
        delete_ref_there(
            self._calm,
            self.remote.name,
            f"{QUEUE_PREFIX}{name}",
            expected=oid,
            git_dir=self.store.path,
        )

    def pause(self) -> bool:
        """Keep every worker from taking more; whether that was new."""
        if "PAUSE" in self._scan():
            return False
        write_object(self.store, TREE, b"")
        person = committer(self.ledger)
        data = format_commit(
            tree=EMPTY_TREE,
            parents=(),
            author=person,
            committer=person,
            message=f"queue: paused\n\nUwf-Nonce: {self.nonce()}\n",
        )
        self.push({PAUSE_REF: write_object(self.store, COMMIT, data)})
        return True

    def unpause(self) -> bool:
        """Let workers take threads again; whether they were kept from it."""
        oid = self._scan().get("PAUSE")
        if oid is None:
            return False
        self.delete("PAUSE", oid)
        return True


def queue_ref(thread: ThreadId) -> str:
    """Name a thread's ref in a queue, as remotes call it."""
    return f"{QUEUE_PREFIX}{thread}"


def iter_states(store: Store, oid: Oid) -> Iterator[Entry]:
    """Yield a thread's states, newest first, as far back as they are states."""
    next_: Oid | None = oid
    for _ in range(_AUDIT):
        entry = read_entry(store, next_) if next_ is not None else None
        if entry is None:
            return
        yield entry
        next_ = entry.parent


def _check_chain(store: Store, oid: Oid, known: Oid | None) -> str | None:
    """Say what else than states hangs on a fetched queue ref.

    With it foreign trees and files would come into the store.
    """
    next_: Oid | None = oid
    while next_ is not None and next_ != known:
        try:
            commit = read_commit(store, next_)
        except CorruptError as exc:
            return exc.message
        if commit.tree != EMPTY_TREE or len(commit.parents) > 1:
            return "a commit in its chain is not a state of a queue"
        next_ = commit.parents[0] if commit.parents else None
    return None
