"""Threads of a queue, each handed to an executor as a worker's one task.

The queue says what became of a thread; what a task says of it only saves a look.
So a task may be lost, or another worker be faster, and nothing is run twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Literal

from msgspec import Struct

from uwfgit.errors import RejectedError, RemoteError
from uwfgit.fleet.claims import LeaseWatch, is_free
from uwfgit.fleet.queue import Contents, Queue
from uwfgit.fleet.steer import queue_again
from uwfgit.ids import ThreadId
from uwfgit.sync.exchange.queue_entry import Entry

POLL: Final = 2.0
_TRIES: Final = 3
"""Tasks that may come back without having had the thread."""

Standing = Literal["queued", "at work", "done", "failed"]


class Taken(Struct, frozen=True, kw_only=True):
    """What became of a task: the word it left in the queue, if it had the thread."""

    word: str | None = None
    why: str | None = None


@dataclass(slots=True, kw_only=True)
class Spread:
    """The threads of a batch at work.

    Args:
        take: Runs one thread to where it stops; an executor may send it elsewhere.
        most: Tasks that the executor has at a time; ``None`` for all there are.
        tell: Told how many threads stand how, again and again.
    """

    queue: Queue
    executor: Executor
    take: Callable[[ThreadId], Taken]
    threads: tuple[ThreadId, ...]
    most: int | None
    monotonic: Callable[[], float]
    sleep: Callable[[float], None]
    tell: Callable[[Mapping[Standing, int]], None]
    over: dict[ThreadId, str | None] = field(default_factory=dict)
    """Each thread that is over → why it did not end, if it did not."""
    _flying: dict[Future[Taken], ThreadId] = field(default_factory=dict)
    _tries: Counter[ThreadId] = field(default_factory=Counter)
    _contents: Contents | None = None
    _next_look: float = 0.0
    _watch: LeaseWatch = field(init=False)

    def __post_init__(self) -> None:
        self._watch = LeaseWatch(
            monotonic=self.monotonic, now_ms=self.queue.ledger.now_ms
        )

    def run(self) -> Mapping[ThreadId, str | None]:
        """Return of each thread why it did not end; ``None`` for those that did.

        Raises:
            AuthError, RemoteError: The queue could not be read the first time.
        """
        self._look()
        while len(self.over) < len(self.threads):
            self._hand_out()
            self.tell(self._count())
            self._land()
            if self.monotonic() >= self._next_look:
                # A remote that does not answer now is asked again.
                with suppress(RemoteError):
                    self._look()
        self.tell(self._count())
        return self.over

    def cancel(self) -> None:
        """Take back the tasks that nobody has begun."""
        for future in self._flying:
            future.cancel()

    def _look(self) -> None:
        self._next_look = self.monotonic() + POLL
        self._contents = self.queue.fetch()
        self._watch.look(self._contents.entries)
        flying = set(self._flying.values())
        for thread in self._open():
            entry = self._contents.entries.get(thread)
            if thread not in flying and (entry is None or is_over(entry)):
                self.over[thread] = None if entry is None else why_not_ended(entry)

    def _open(self) -> Iterable[ThreadId]:
        return [thread for thread in self.threads if thread not in self.over]

    def _hand_out(self) -> None:
        """Make a task of each thread that is free to be taken."""
        contents = self._contents
        if contents is None or contents.is_paused:
            return
        flying, now = set(self._flying.values()), self.queue.ledger.now_ms()
        for thread in self._open():
            if self.most is not None and len(self._flying) >= self.most:
                return
            entry = contents.entries.get(thread)
            if thread in flying or entry is None:
                continue
            if not is_free(entry, self._watch, now):
                continue
            if entry.state.word == "claimed" and not self._release(entry):
                continue
            self._flying[self.executor.submit(self.take, thread)] = thread

    def _release(self, entry: Entry) -> bool:
        """Queue again what a dead worker has; whether nobody was faster.

        A worker of a task has just begun, and has not seen how long nobody was there.
        """
        try:
            queue_again(self.queue, entry, "its lease ran out")
        except (RejectedError, RemoteError):
            return False
        return True

    def _land(self) -> None:
        """Wait a little for tasks, and note what became of those that are over."""
        if not self._flying:
            # Others have all that is left.
            self.sleep(POLL)
        landed, _ = wait(self._flying, timeout=POLL, return_when=FIRST_COMPLETED)
        for future in landed:
            thread = self._flying.pop(future)
            taken = _result(future)
            if taken.word == "done":
                self.over[thread] = None
                continue
            # How the thread stands now is for the queue to say.
            self._next_look = self.monotonic()
            self._tries[thread] += taken.word is None or taken.word == "queued"
            if self._tries[thread] >= _TRIES:
                self.over[thread] = taken.why or "no worker took it"

    def _count(self) -> Mapping[Standing, int]:
        entries = self._contents.entries if self._contents else {}
        ended = sum(why is None for why in self.over.values())
        at_work = {
            thread for future, thread in self._flying.items() if future.running()
        }
        claimed = {t for t, each in entries.items() if each.state.word == "claimed"}
        at_work |= claimed.intersection(self._open())
        return {
            "done": ended,
            "failed": len(self.over) - ended,
            "at work": len(at_work),
            "queued": len(self.threads) - len(self.over) - len(at_work),
        }


def is_over(entry: Entry) -> bool:
    """Whether nothing more becomes of a queued thread by itself."""
    state = entry.state
    return state.word == "done" or (
        state.word == "waiting" and state.retry_at_ms is None
    )


def why_not_ended(entry: Entry) -> str | None:
    """Return why a thread that is over did not come to its end."""
    state = entry.state
    if state.word == "waiting":
        return state.reason or "it waits"
    return state.reason if state.reason == "cancelled" else None


def _result(future: Future[Taken]) -> Taken:
    try:
        return future.result()
    except CancelledError:
        return Taken(why="its task was cancelled")
    except Exception as exc:  # noqa: BLE001 - what an executor lost, or a task could not find, on any machine
        return Taken(why=f"its task failed: {type(exc).__name__}: {exc}")
