"""What people do to a queue: put threads in, take them back, set them free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from uwfgit.errors import RejectedError, StateError
from uwfgit.fleet.queue import Contents, Queue, queue_ref
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.thread.tip import Tip
from uwfgit.sync.exchange.exchange import CHUNK, chunks
from uwfgit.sync.exchange.queue_entry import Entry
from uwfgit.sync.exchange.queue_state import QueueState


def put_all(
    queue: Queue, contents: Contents, tips: Iterable[Tip]
) -> Mapping[ThreadId, str | None]:
    """Queue threads that the remote has, each at its newest event; say of each why not.

    One may be in the queue already, a worker may have it, another was faster, or the
    server refused.

    Raises:
        AuthError, RemoteError: The remote cannot be reached.
    """
    problems: dict[ThreadId, str | None] = {}
    written: dict[ThreadId, Oid] = {}
    for tip in tips:
        problems[tip.thread] = None
        try:
            written[tip.thread] = _write_queued(queue, contents, tip)
        except (StateError, RejectedError) as exc:
            problems[tip.thread] = exc.message
    for part in chunks(list(written), CHUNK):
        try:
            queue.push({queue_ref(thread): written[thread] for thread in part})
        except RejectedError:
            # One of them, or some, moved meanwhile: that keeps no other back.
            for thread in part:
                try:
                    queue.push({queue_ref(thread): written[thread]})
                except RejectedError as exc:
                    problems[thread] = "; ".join(exc.refs.values())
    return problems


def _write_queued(queue: Queue, contents: Contents, tip: Tip) -> Oid:
    """Write that a thread is queued; what is done leaves the queue for it."""
    entry = contents.entries.get(tip.thread)
    if entry is not None and entry.state.word == "done":
        queue.delete(tip.thread, entry.oid)
        entry = None
    if entry is not None and entry.state.word != "waiting":
        by = f" by worker {entry.state.worker}" if entry.state.worker else ""
        raise StateError(f"thread {tip.thread} is {entry.state.word} already{by}")
    state = QueueState(
        word="queued",
        thread=tip.thread,
        head=tip.commit,
        workflow=tip.state.workflow_oid,
        nonce=queue.nonce(),
    )
    return queue.write(state, parent=entry.oid if entry is not None else None)


def cancel(queue: Queue, entry: Entry, *, worker: str) -> None:
    """Take a thread out of the queue: claimed by nobody else, and done.

    Raises:
        StateError: A worker has it.
        RejectedError: A worker was faster.
        AuthError, RemoteError: The remote cannot be reached.
    """
    state = entry.state
    if state.word == "done":
        return
    if state.word == "claimed":
        raise StateError(
            f"worker {state.worker} has thread {state.thread}",
            hint=f"`uwf fleet release {state.thread}` when it is dead",
        )
    claimed = queue.write(
        queue.successor(entry, word="claimed", worker=worker, lease=60),
        parent=entry.oid,
    )
    done = queue.write(
        queue.successor(entry, word="done", reason="cancelled"), parent=claimed
    )
    queue.push({queue_ref(state.thread): done})


def queue_again(queue: Queue, entry: Entry, reason: str) -> None:
    """Queue a thread again as it stands.

    Raises:
        RejectedError: Another was faster, or the server refused.
        AuthError, RemoteError: The remote cannot be reached.
    """
    queued = queue.successor(entry, word="queued", reason=reason)
    oid = queue.write(queued, parent=entry.oid)
    queue.push({queue_ref(entry.state.thread): oid})


def retry(
    queue: Queue, contents: Contents, *, only_stuck: bool
) -> Iterator[tuple[ThreadId, str | None]]:
    """Queue again what waits; yield each thread with why it could not be.

    Raises:
        AuthError, RemoteError: The remote cannot be reached.
    """
    for thread, entry in sorted(contents.entries.items()):
        state = entry.state
        if state.word == "waiting" and (state.reason == "stuck" or not only_stuck):
            try:
                queue_again(queue, entry, "retried")
            except RejectedError as exc:
                yield thread, "; ".join(exc.refs.values())
            else:
                yield thread, None


def clear(queue: Queue, contents: Contents) -> tuple[ThreadId, ...]:
    """Take everything that is done out of the queue; return which that was.

    Raises:
        AuthError, RemoteError: The remote cannot be reached.
    """
    gone = []
    for thread, entry in sorted(contents.entries.items()):
        if entry.state.word == "done":
            try:
                queue.delete(thread, entry.oid)
            except RejectedError:
                continue  # Queued again in this moment.
            gone.append(thread)
    return tuple(gone)
