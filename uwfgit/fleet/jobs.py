"""The claims of a worker: what runs under each, pushed step by step, and renewed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.errors import RejectedError, RemoteError, UwfError
from uwfgit.fleet.hands import Hands, Run, RunResult, Terms
from uwfgit.fleet.queue import Queue, queue_ref
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.thread.hold import why_suspended
from uwfgit.model.thread.tip import Tip, load_tip
from uwfgit.model.wording import count_of
from uwfgit.store.layout import thread_ref
from uwfgit.sync.exchange.queue_entry import read_entry
from uwfgit.sync.exchange.queue_state import QueueState

_RETRY_SECONDS: Final = 5.0


class Job(Struct, kw_only=True):
    """A thread that this worker claimed, and what it does with it."""

    thread: ThreadId
    claim: Oid
    """The newest state that we pushed."""
    pushed: Oid
    """The thread's tip on the remote."""
    renewed: float
    sent: set[Oid] = field(default_factory=set)
    """States pushed without an answer: each may have arrived all the same."""
    run: Run | None = None
    result: RunResult | None = None
    """How the newest step ended, while that is not pushed yet."""
    steps: int = 0
    """How many are over."""
    ran: int = 0
    """How many that were, those of threads that did them with them."""
    retry: float = 0.0
    is_lost: bool = False
    is_stopped: bool = False
    cost: float = 0.0


class Jobs(Struct, kw_only=True):
    """What a worker has claimed.

    ``ran`` maps each thread that it let go of to the word it left in the queue.
    ``stop_at`` is when steps lose their grace, by the monotonic clock; ``silence`` what
    was told of why the remote does not answer.
    """

    queue: Queue
    hands: Hands
    terms: Terms
    monotonic: Callable[[], float]
    running: list[Job] = field(default_factory=list)
    ran: dict[ThreadId, str] = field(default_factory=dict)
    cost: float = 0.0
    stop_at: float | None = None
    silence: set[str] = field(default_factory=set)

    def tell_silence(self, why: str, *, thread: ThreadId | None = None) -> None:
        """Say that the remote does not answer: once, however often it is asked."""
        if why not in self.silence:
            self.silence.add(why)
            about = {} if thread is None else {"thread": thread}
            self.hands.tell("unreachable", **about, why=why)

    def tend(self, job: Job) -> None:
        """Look after one claim: press its step, or push what the step left."""
        if job.run is not None:
            self._press(job)
            job.result = job.run.poll()
            if job.result is None:
                return
            job.run, job.steps = None, job.steps + 1
            job.ran += job.result.ran
        if self.monotonic() < job.retry:
            return
        try:
            self._settle(job)
        except RemoteError as exc:
            # The step is on record here; the remote gets it when it answers again.
            job.retry = self.monotonic() + _RETRY_SECONDS
            self.tell_silence(exc.message, thread=job.thread)

    def _press(self, job: Job) -> None:
        """Stop a step whose time is up, or whose claim is another's."""
        if job.run is None or job.is_stopped:
            return
        now = self.monotonic()
        is_due = self.stop_at is not None and now >= self.stop_at
        if job.is_lost or (is_due and not self.terms.drain):
            job.run.stop()
            job.is_stopped = True

    def _settle(self, job: Job) -> None:
        """Push what a step left, with what becomes of the claim; or go on.

        Raises:
            AuthError, RemoteError: The remote cannot be reached.
        """
        tip = load_tip(self.queue.store, job.thread)
        if job.is_lost:
            self._lose(job)
            return
        state = self._next_state(job, tip)
        head = tip.commit
        if head != job.pushed:
            why = self.hands.blocked(job.thread, head, job.pushed)
            # Before the step itself: who goes on with it finds them there.
            why = why or self.hands.send_children(job.thread)
            if why is None:
                self.hands.send_beside(job.thread)
            else:
                state, head = self._state(job, "waiting", reason=why), job.pushed
        if not self._push(job, state, head):
            return
        if state.word == "claimed":
            job.run, job.result = self.hands.start(tip, taken=job.steps), None
            return
        self._let_go(job, state)

    def _next_state(self, job: Job, tip: Tip) -> QueueState:
        """Return what the queue has to say after a step."""
        state, result = tip.state, job.result
        if state.status in {"end", "cancelled"}:
            return self._state(job, "done", reason=state.status)
        if job.is_stopped or self.stop_at is not None:
            return self._state(job, "queued", reason="the worker was stopped")
        if state.status == "suspended":
            return self._state(
                job,
                "waiting",
                reason=why_suspended(self.queue.store, tip.commit, state),
                retry_at_ms=state.retry_at_ms,
            )
        if result is not None and result.is_busy:
            return self._state(job, "queued", reason=result.error)
        why = None
        if result is not None and not result.is_ok:
            why = result.error or "it was refused"
        elif job.ran >= self.terms.max_steps:
            why = f"limits.maxSteps is reached after {count_of(job.ran, 'step')}"
        return (
            self._state(job, "waiting", reason=why) if why else self._claim_state(job)
        )

    def _state(self, job: Job, word: str, **facts: object) -> QueueState:
        entry = read_entry(self.queue.store, job.claim)
        assert entry is not None, "we wrote it"  # noqa: S101 - an invariant
        return self.queue.successor(entry, word=word, **facts)

    def _claim_state(self, job: Job) -> QueueState:
        return self._state(
            job, "claimed", worker=self.terms.name, lease=self.terms.lease
        )

    def _push(self, job: Job, state: QueueState, head: Oid) -> bool:
        """Move the thread and its claim together; whether both moved."""
        state = _at_head(state, head)
        new = self.queue.write(state, parent=job.claim)
        moves = {queue_ref(job.thread): new}
        if head != job.pushed:
            moves[self.queue.remote.theirs(thread_ref(job.thread))] = head
        job.sent.add(new)
        try:
            self.queue.push(moves)
        except RejectedError as exc:
            self._refused(job, exc)
            return False
        self._note_pushed(job, new, head)
        return True

    def _note_pushed(self, job: Job, claim: Oid, head: Oid) -> None:
        if head != job.pushed:
            self.hands.tell("pushed", thread=job.thread, tip=head)
        job.claim, job.pushed, job.renewed = claim, head, self.monotonic()
        job.sent.clear()

    def _refused(self, job: Job, error: RejectedError) -> None:
        """Find out why a push was refused, and leave the thread to whom it belongs."""
        entry = self.queue.fetch().entries.get(job.thread)
        if entry is not None and entry.oid in job.sent:
            # It had arrived; only the answer was lost.
            self._note_pushed(job, entry.oid, entry.state.head)
            if entry.state.word != "claimed":
                self._let_go(job, entry.state)
            # Else what the step left is settled anew, on top of it.
            return
        if entry is not None and entry.oid == job.claim:
            # The claim is ours: it is the thread that someone moved, or a rule of
            # the server's.
            why = "; ".join(dict.fromkeys(error.refs.values()))
            state = _at_head(
                self._state(job, "waiting", reason=f"push refused: {why}"), job.pushed
            )
            self.queue.push(
                {queue_ref(job.thread): self.queue.write(state, parent=job.claim)}
            )
            self.set_aside(job.thread, job.pushed)
            self._let_go(job, state)
            return
        self._lose(job)

    def _lose(self, job: Job) -> None:
        self.hands.tell("lost", thread=job.thread)
        self.set_aside(job.thread, job.pushed)
        self._drop(job, "lost")

    def set_aside(self, thread: ThreadId, base: Oid) -> None:
        """Give what the remote does not have of a thread an id of its own; tell it."""
        try:
            copy = self.hands.set_aside(thread, base)
        except UwfError as exc:
            self.hands.tell("not-set-aside", thread=thread, why=exc.message)
            return
        if copy is not None:
            self.hands.tell("set-aside", thread=thread, copy=copy)

    def _let_go(self, job: Job, state: QueueState) -> None:
        self.hands.tell(
            state.word, thread=job.thread, why=state.reason, until=state.retry_at_ms
        )
        self._drop(job, state.word)

    def _drop(self, job: Job, word: str) -> None:
        self.running.remove(job)
        self.ran[job.thread] = word
        spent = cost_of(load_tip(self.queue.store, job.thread)) - job.cost
        self.cost += max(spent, 0.0)

    def renew(self) -> None:
        """Say again that we are there, of all claims in one push."""
        now = self.monotonic()
        due = [
            job
            for job in self.running
            if job.run is not None
            and not job.is_lost
            and now - job.renewed >= self.terms.lease / 3
            and now >= job.retry
        ]
        if due:
            self.renew_now(due)

    def renew_now(self, jobs: Sequence[Job]) -> None:
        """Renew some claims; what turns out to be lost is marked so."""
        written = {
            job.thread: self.queue.write(
                _at_head(self._claim_state(job), job.pushed), parent=job.claim
            )
            for job in jobs
        }
        for job in jobs:
            job.sent.add(written[job.thread])
        try:
            self.queue.push({queue_ref(t): oid for t, oid in written.items()})
        except RejectedError:
            self._find_lost(jobs)
        except RemoteError as exc:
            self._stay_on(jobs, exc)
        else:
            self.silence.clear()
            for job in jobs:
                self._note_pushed(job, written[job.thread], job.pushed)
                job.retry = 0.0

    def _find_lost(self, jobs: Sequence[Job]) -> None:
        """Tell the claims that are another's; the others are renewed next time."""
        try:
            entries = self.queue.fetch().entries
        except RemoteError as exc:
            self._stay_on(jobs, exc)
            return
        for job in jobs:
            entry = entries.get(job.thread)
            if entry is not None and entry.oid in job.sent:
                job.claim = entry.oid
            elif entry is None or entry.oid != job.claim:
                job.is_lost = True

    def _stay_on(self, jobs: Sequence[Job], error: RemoteError) -> None:
        """Go on without the remote for as long as nobody else can have the claim."""
        now = self.monotonic()
        for job in jobs:
            job.retry = now + _RETRY_SECONDS
            self.tell_silence(error.message, thread=job.thread)
            if now - job.renewed >= self.terms.lease and job.run and not job.is_stopped:
                job.run.stop()
                job.is_stopped = True


def cost_of(tip: Tip) -> float:
    """Return what a thread cost so far, in dollars, as far as its agents say."""
    usage = tip.state.usage
    return (usage.cost_usd or 0.0) if usage is not None else 0.0


def _at_head(state: QueueState, head: Oid) -> QueueState:
    return replace(state, head=head)
