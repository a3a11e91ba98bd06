"""What a worker is told, and what it does beside the queue: handed in by the edge."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from uwfgit.fleet.claims import LEASE
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.thread.tip import Tip
from uwfgit.sync.exchange.queue_entry import Entry


class RunResult(Struct, frozen=True, kw_only=True):
    """How a step ended: well or not, and the command's error, if it had one.

    ``is_busy`` says that it met somebody else at the thread. ``ran`` is how many steps
    it took, those of threads that did it with it.
    """

    is_ok: bool = True
    is_busy: bool = False
    error: str | None = None
    ran: int = 1


class Run(Protocol):
    """One step at work in a process of its own."""

    def poll(self) -> RunResult | None:
        """Return how it ended, or ``None`` while it runs."""

    def stop(self) -> None:
        """Ask it to stop; what its agent said is recorded."""

    def kill(self) -> None:
        """End it at once, with all it started."""

    def freeze(self) -> None:
        """Let it do nothing until it is thawed."""

    def thaw(self) -> None:
        """Let it go on."""


class Hands(Protocol):
    """What a worker does beside the queue."""

    def pull(self, thread: ThreadId) -> str | None:
        """Bring a thread and verify it; return why it is not to be had."""

    def distrust_entry(self, entry: Entry) -> str | None:
        """Return why a queue commit is not to be followed."""

    def distrust_thread(self, tip: Tip) -> str | None:
        """Return why a thread is not to be run."""

    def start(self, tip: Tip, *, taken: int) -> Run:
        """Start one step of a thread, of which so many were taken under the claim."""

    def blocked(self, thread: ThreadId, new: Oid, old: Oid) -> str | None:
        """Return what keeps the thread's new commits from leaving."""

    def send_children(self, thread: ThreadId) -> str | None:
        """Send the threads that did steps of one; return what keeps them here.

        Raises:
            AuthError, RemoteError: The remote cannot be reached.
        """

    def send_beside(self, thread: ThreadId) -> None:
        """Send what belongs to a thread's steps and travels apart from it."""

    def set_aside(self, thread: ThreadId, base: Oid) -> ThreadId | None:
        """Keep what is not on the remote under an id of its own; return that."""

    def tell(self, event: str, **facts: str | float | None) -> None:
        """Say what happens."""


class Terms(Struct, frozen=True, kw_only=True):
    """How a worker works; times in seconds.

    ``max_steps`` bounds the steps of one claim, so that a loop ends.
    """

    name: str
    slots: int = 1
    max_steps: int = 100
    lease: int = LEASE
    poll: float = 30.0
    grace: float = 20.0
    once: bool = False
    drain: bool = False
    idle_exit: float | None = None
    max_cost: float | None = None
    only: ThreadId | None = None
