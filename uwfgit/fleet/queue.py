"""The queue on a remote: what stands in it, and moving it by plain pushes.

Every change is the push of a commit whose parent is the state before: a
compare-and-swap, since any other change is a sibling. What was fetched last is
kept under ``refs/uwf/queues/<remote>/``; nothing else reads those refs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.errors import CorruptError, RemoteError
from uwfgit.ids import Oid, ThreadId, is_thread_id
from uwfgit.model.ledger.commit import committer
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.store.care.tracking import scan_refs
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.git.refbatch import move_many
from uwfgit.store.git.scratch import adopt_objects, open_scratch
from uwfgit.store.handle import Store
from uwfgit.store.objects import (
    format_commit,
    read_commit,
    write_object,
)
from uwfgit.store.raw import COMMIT, TREE
from uwfgit.sync.exchange.exchange import CHUNK, chunks
from uwfgit.sync.exchange.queue_entry import Entry, read_entry
from uwfgit.sync.exchange.queue_state import (
    EMPTY_TREE,
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
    """What a remote's queue holds; ``bad`` says of refs why they are passed by."""

    entries: Mapping[ThreadId, Entry]
    bad: Mapping[str, str]
    is_paused: bool


class Queue(Struct, frozen=True, kw_only=True):
    """The queue of one remote."""

    ledger: Ledger
    remote: Remote
    wire: Wire

    @property
    def store(self) -> Store:
        """Where the copies of its refs are."""
        return self.ledger.store

    def fetch(self) -> Contents:
        """Return what the queue holds now; only what is new is brought.

        Raises:
            AuthError, RemoteError: The remote cannot be reached.
        """
        there = self._list()
        copies = f"{COPIES}{self.remote.name}/"
        here = scan_refs(self.store, copies)
        wanted = {
            f"{copies}{name}": oid
            for name, oid in there.items()
            if here.get(f"{copies}{name}") != oid
        }
        bad: dict[str, str] = {}
        for part in chunks(list(wanted), CHUNK):
            bad |= self._bring(copies, part, here)
        gone = [ref for ref in here if ref[len(copies) :] not in there]
        if gone:
            self._move({ref: (here[ref], None) for ref in gone})
        return self._read(copies, bad)

    def _list(self) -> dict[str, Oid]:
        """Return the remote's queue refs, by the last part of their names."""
        refs = list_refs_there(
            self.wire,
            self.remote.url,
            name=self.remote.name,
            git_dir=self.store.path,
            patterns=[f"{QUEUE_PREFIX}*"],
        )
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
        self, copies: str, refs: Sequence[str], here: Mapping[str, Oid]
    ) -> dict[str, str]:
        """Fetch queue refs aside, and keep those that hold nothing but states."""
        bad = {}
        with open_scratch(self.store) as scratch:
            specs = [f"+{QUEUE_PREFIX}{ref[len(copies) :]}:{ref}" for ref in refs]
            done = fetch_refs(self.wire, self.remote.url, specs, git_dir=scratch.path)
            if done.code:
                raise RemoteError(reason_of(done), remote=self.remote.name)
            fetched = scan_refs(scratch, copies)
            good = {}
            for ref, oid in fetched.items():
                problem = _check_chain(scratch, oid, here.get(ref))
                if problem is None:
                    good[ref] = oid
                else:
                    bad[ref[len(copies) :]] = problem
            moves = {ref: (here.get(ref), oid) for ref, oid in good.items()}
            if moves:
                with adopt_objects(
                    self.store,
                    scratch,
                    good.values(),
                    known=[GENESIS_OID, *(oid for oid in here.values())],
                    environment=self.wire.environment,
                ):
                    self._move(moves)
        return bad

    def _move(self, moves: Mapping[str, tuple[Oid | None, Oid | None]]) -> None:
        move_many(
            self.store,
            dict(moves),
            reason="queue: fetch",
            environment=self.wire.environment,
        )

    def _read(self, copies: str, bad: dict[str, str]) -> Contents:
        entries = {}
        refs = scan_refs(self.store, copies)
        for ref, oid in refs.items():
            name = ref[len(copies) :]
            if not is_thread_id(name) or name in bad:
                continue
            entry = read_entry(self.store, oid)
            if entry is None or entry.state.thread != name:
                bad[name] = "its newest commit is not a state of that thread"
            else:
                entries[ThreadId(name)] = entry
        return Contents(entries=entries, bad=bad, is_paused=f"{copies}PAUSE" in refs)

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
            self.wire,
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
            self.wire,
            self.remote.name,
            f"{QUEUE_PREFIX}{name}",
            expected=oid,
            git_dir=self.store.path,
        )

    def pause(self) -> bool:
        """Keep every worker from taking more; whether that was new."""
        copy = f"{COPIES}{self.remote.name}/PAUSE"
        if copy in scan_refs(self.store, f"{COPIES}{self.remote.name}/"):
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
        copies = f"{COPIES}{self.remote.name}/"
        oid = scan_refs(self.store, copies).get(f"{copies}PAUSE")
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
