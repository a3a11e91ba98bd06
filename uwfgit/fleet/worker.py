"""A worker: takes threads off a queue, runs them, and pushes each step.

Each push of a step moves the thread and its claim together, or neither: who lost
the claim cannot push. Renewals and steps take turns in one loop, so a claim has
one writer. All that a worker does outside git is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from uwfgit.errors import InvalidError, RejectedError, RemoteError
from uwfgit.fleet.claims import LeaseWatch, is_free, is_stuck
from uwfgit.fleet.hands import Hands, RunResult, Terms
from uwfgit.fleet.jobs import Job, Jobs, cost_of
from uwfgit.fleet.queue import Contents, Queue, queue_ref
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.thread.tip import Tip, load_tip, read_tip
from uwfgit.store.layout import thread_ref
from uwfgit.store.refs import find_ref, is_ancestor
from uwfgit.sync.exchange.queue_entry import Entry, read_entry

TICK: Final = 0.2
_RETRY_SECONDS: Final = 5.0
_JUMP_SECONDS: Final = 5.0
"""By so much the clocks must part before the machine was asleep."""
_FIRST_PAUSE: Final = 60.0
_LONGEST_PAUSE: Final = 3600.0
"""Seconds until a thread that was passed by is looked at again; doubled each time."""


class _Skipped(NamedTuple):
    """A thread that was passed by as its entry stood, and until when it is."""

    oid: Oid
    why: str
    pause: float
    until: float


@dataclass(slots=True, kw_only=True)
class Worker:
    """A worker at work."""

    queue: Queue
    hands: Hands
    terms: Terms
    monotonic: Callable[[], float]
    choose: Callable[[Sequence[Entry]], Entry]
    sleep: Callable[[float], None]
    jitter: Callable[[], float]
    jobs: Jobs = field(init=False)
    _watch: LeaseWatch = field(init=False)
    _skipped: dict[ThreadId, _Skipped] = field(default_factory=dict)
    _sent: dict[ThreadId, Oid] = field(default_factory=dict)
    """Claims pushed without an answer: each may have arrived all the same."""
    _next_poll: float = 0.0
    _idle_since: float = 0.0
    _last: tuple[float, float] = (0.0, 0.0)
    _is_over: bool = False
    _found_nothing: bool = False
    _is_paused: bool = False

    def __post_init__(self) -> None:
        self.jobs = Jobs(
            queue=self.queue,
            hands=self.hands,
            terms=self.terms,
            monotonic=self.monotonic,
        )
        self._watch = LeaseWatch(monotonic=self.monotonic, now_ms=self._now_ms)
        self._idle_since = self.monotonic()
        self._last = (self.monotonic(), self._now_ms() / 1000)

    def _now_ms(self) -> int:
        return self.queue.ledger.now_ms()

    def run(self) -> None:
        """Work until told to stop, or until there is nothing to do and that is enough.

        Raises:
            AuthError, RemoteError: The queue could not be read the first time.
            StoreError: The store cannot be written.
        """
        self._look()
        self._next_poll = 0.0
        while not self._is_over and not self.tick():
            self.sleep(TICK)

    def tick(self) -> bool:
        """Look after everything once; whether that was enough."""
        self._notice_sleep()
        before = len(self.jobs.ran)
        for job in tuple(self.jobs.running):
            self.jobs.tend(job)
        if len(self.jobs.ran) > before:
            self._idle_since, self._next_poll = self.monotonic(), 0.0
        self.jobs.renew()
        self._take()
        return self._is_enough()

    def ask_to_stop(self) -> None:
        """Take no more threads; steps get their grace. The second time: end at once."""
        if self.jobs.stop_at is not None:
            self._is_over = True
            for job in self.jobs.running:
                if job.run is not None:
                    job.run.kill()
            return
        self.jobs.stop_at = self.monotonic() + self.terms.grace
        self.hands.tell("stopping", jobs=len(self.jobs.running))

    @property
    def is_stopping(self) -> bool:
        """Whether no more threads are taken."""
        return self.jobs.stop_at is not None

    def _is_enough(self) -> bool:
        if self.jobs.running:
            return False
        if self.is_stopping:
            return True
        if self.terms.once and (self.jobs.ran or self._found_nothing):
            return True
        idle = self.monotonic() - self._idle_since
        return self.terms.idle_exit is not None and idle >= self.terms.idle_exit

    def _notice_sleep(self) -> None:
        """After a sleep of the machine, or of ours, nothing runs unclaimed.

        The monotonic clock stands still while a laptop sleeps and the wall clock
        does not; it runs on while a process is stopped.
        """
        before, now = self._last, (self.monotonic(), self._now_ms() / 1000)
        self._last = now
        passed, drift = now[0] - before[0], (now[1] - before[1]) - (now[0] - before[0])
        if passed < self.terms.lease / 3 and abs(drift) < _JUMP_SECONDS:
            return
        at_work = [
            (job, job.run)
            for job in self.jobs.running
            if job.run is not None and not job.is_lost
        ]
        for _, run in at_work:
            run.freeze()
        if at_work:
            self.jobs.renew_now([job for job, _ in at_work])
        for _, run in at_work:
            run.thaw()

    def _look(self) -> Contents:
        contents = self.queue.fetch()
        self.jobs.silence.clear()
        self._watch.look(contents.entries)
        if contents.is_paused and not self._is_paused:
            self.hands.tell("paused")
        self._is_paused = contents.is_paused
        jitter = self.terms.poll * 0.2 * self.jitter()
        self._next_poll = self.monotonic() + self.terms.poll + jitter
        return contents

    def _take(self) -> None:
        is_full = len(self.jobs.running) >= self.terms.slots
        if is_full or self.is_stopping or (self.terms.once and self.jobs.ran):
            return
        if self.terms.max_cost is not None and self.jobs.cost >= self.terms.max_cost:
            return
        if self.monotonic() < self._next_poll:
            return
        try:
            contents = self._look()
            while len(self.jobs.running) < self.terms.slots and not contents.is_paused:
                choices = self._choices(contents)
                if not choices or (self.terms.once and self.jobs.running):
                    break
                if not self._claim(self.choose(choices)):
                    contents = self._look()
                # A signal may have come meanwhile.
                if self.jobs.stop_at is not None:
                    return
            self._found_nothing = not self.jobs.running
        except RemoteError as exc:
            self._next_poll = self.monotonic() + _RETRY_SECONDS
            self.jobs.tell_silence(exc.message)

    def _choices(self, contents: Contents) -> list[Entry]:
        """Return the oldest threads that this worker may run, as far as can be told."""
        mine = {job.thread for job in self.jobs.running}
        now, moment = self._now_ms(), self.monotonic()
        found: list[Entry] = []
        for entry in contents.entries.values():
            thread = entry.state.thread
            is_open = self._is_ours(entry) or is_free(entry, self._watch, now)
            if thread in mine or not is_open:
                continue
            if self.terms.only not in {None, thread}:
                continue
            skipped = self._skipped_as(entry)
            if skipped is not None and skipped.until > moment:
                continue
            why = self.hands.distrust_entry(entry)
            if why is not None:
                self._skip(entry, why)
                continue
            found.append(entry)
            if len(found) >= 2 * self.terms.slots:
                break
        return found

    def _is_ours(self, entry: Entry) -> bool:
        """Whether it is a claim that we pushed, and did not hear of again."""
        is_claim = entry.state.word == "claimed"
        return is_claim and self._sent.get(entry.state.thread) == entry.oid

    def look_over(self) -> tuple[list[Entry], dict[ThreadId, str]]:
        """Return what this worker would take now, and of the rest why not.

        Raises:
            AuthError, RemoteError: The queue cannot be read.
        """
        contents = self._look()
        offers, reasons = [], {}
        for entry in contents.entries.values():
            why = self._why_not(entry, is_paused=contents.is_paused)
            if why is None:
                offers.append(entry)
            else:
                reasons[entry.state.thread] = why
        return offers, reasons

    def _why_not(self, entry: Entry, *, is_paused: bool) -> str | None:
        if is_paused:
            return "the queue is paused"
        if self.terms.only not in {None, entry.state.thread}:
            return "it is not the one of --thread"
        if not is_free(entry, self._watch, self._now_ms()):
            state = entry.state
            by = f" by {state.worker}" if state.worker else ""
            return f"{state.word}{by}{': ' + state.reason if state.reason else ''}"
        return self.hands.distrust_entry(entry) or self._distrust_here(entry)

    def _distrust_here(self, entry: Entry) -> str | None:
        # One that is not here yet is looked at when it was brought.
        store, thread, head = self.queue.store, entry.state.thread, entry.state.head
        if find_ref(store, thread_ref(thread)) != head:
            return None
        try:
            return self.hands.distrust_thread(read_tip(store, thread, head))
        except InvalidError as exc:
            return exc.message

    def _skipped_as(self, entry: Entry) -> _Skipped | None:
        found = self._skipped.get(entry.state.thread)
        return found if found is not None and found.oid == entry.oid else None

    def _skip(
        self,
        entry: Entry,
        why: str,
        *,
        event: str = "skipped",
        pause: float = _FIRST_PAUSE,
    ) -> None:
        """Pass a thread by for a while: what it lacks may be here later."""
        before = self._skipped_as(entry)
        pause = min(2 * before.pause, _LONGEST_PAUSE) if before else pause
        self._skipped[entry.state.thread] = _Skipped(
            oid=entry.oid, why=why, pause=pause, until=self.monotonic() + pause
        )
        if before is None or before.why != why:
            self.hands.tell(event, thread=entry.state.thread, why=why)

    def _claim(self, entry: Entry) -> bool:
        """Claim a thread and begin; whether it became ours.

        It is brought and looked at first: what is not to be run is not claimed.
        """
        thread = entry.state.thread
        try:
            tip, why = self._bring(entry)
        except InvalidError as exc:
            # Damaged here, or of a format that this program does not know.
            tip, why = None, exc.message
        if tip is None:
            self._skip(entry, why or "")
            return False
        claimed = self.queue.successor(
            entry, word="claimed", worker=self.terms.name, lease=self.terms.lease
        )
        oid = self.queue.write(claimed, parent=entry.oid)
        # One of ours that we did not hear of was no try.
        if not self._is_ours(entry) and is_stuck(self.queue.store, entry):
            return self._set_waiting(entry, oid)
        if not self._try_push(entry, oid):
            return False
        job = Job(
            thread=thread,
            claim=oid,
            pushed=entry.state.head,
            renewed=self.monotonic(),
            cost=cost_of(tip),
        )
        self.jobs.running.append(job)
        self.hands.tell("claimed", thread=thread, workflow=tip.state.workflow_name)
        if tip.state.status in {"end", "cancelled"} or tip.commit != job.pushed:
            job.result = RunResult()
        else:
            job.run = self.hands.start(tip, taken=job.steps)
        return True

    def _bring(self, entry: Entry) -> tuple[Tip | None, str | None]:
        """Bring a thread as it is queued, and judge it; return it, or why not.

        A step of ours that never left, since its worker was killed, is gone on from,
        or set aside when others did that step meanwhile.
        """
        thread, store = entry.state.thread, self.queue.store
        if (why := self.hands.pull(thread)) is not None:
            return None, why
        there = find_ref(store, self.queue.remote.tracking(thread_ref(thread)))
        if there is None or there != entry.state.head:
            return None, "the thread is not where it was queued: its tip is another"
        if (
            why := self.hands.distrust_thread(read_tip(store, thread, there))
        ) is not None:
            return None, why
        if not is_ancestor(store, there, load_tip(store, thread).commit):
            self.jobs.set_aside(thread, there)
        tip = load_tip(store, thread)
        if not is_ancestor(store, there, tip.commit):
            return None, "it went on here in another way: uwf thread resolve"
        return tip, None

    def _set_waiting(self, entry: Entry, claim: Oid) -> bool:
        claimed = read_entry(self.queue.store, claim)
        assert claimed is not None, "we wrote it"  # noqa: S101 - an invariant
        stuck = self.queue.successor(claimed, word="waiting", reason="stuck")
        oid = self.queue.write(stuck, parent=claim)
        if self._try_push(entry, oid):
            self.hands.tell("waiting", thread=entry.state.thread, why="stuck")
        return False

    def _try_push(self, entry: Entry, oid: Oid) -> bool:
        """Push a state; another worker may have been faster, which is no error.

        One that the server refuses for a reason of its own is tried again later.
        """
        thread = entry.state.thread
        self._sent[thread] = oid
        try:
            self.queue.push({queue_ref(thread): oid})
        except RejectedError as exc:
            why = "; ".join(exc.refs.values())
            there = self.queue.fetch().entries.get(thread)
            if there is not None and there.oid == entry.oid:
                # Such as a lock of the server's, which is gone in a moment.
                self._skip(entry, why, event="refused", pause=_RETRY_SECONDS)
            else:
                self.hands.tell("missed", thread=thread, why=why)
            return False
        del self._sent[thread]
        return True
