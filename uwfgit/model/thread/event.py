"""Events: the table of what each does and tells, and reading them from commits.

The one place that says what an event may follow, what it does to ``thread.json``,
and what stands in its message. The writer, verify and the replay of a thread's end
read it; what an event adds to the tree is the writer's and verify's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, Protocol, cast, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.constants import ERROR_STATUS, FORMAT_VERSION
from uwfgit.errors import CorruptError
from uwfgit.ids import Hash, Oid, ThreadId, is_hash, is_thread_id
from uwfgit.model.thread.derive import (
    NONE,
    format_message,
    format_status,
    parse_trailers,
)
from uwfgit.model.thread.state import (
    STATUSES,
    ForkedFrom,
    StepOutcome,
    ThreadState,
    ThreadStatus,
    short_message,
)
from uwfgit.model.thread.step import Start, Step, Usage, add_usage
from uwfgit.store.handle import Store
from uwfgit.store.objects import Commit
from uwfgit.store.refs import iter_commits

EventName = Literal[
    "start",
    "step",
    "resume",
    "poke",
    "attempt",
    "fork",
    "hold",
    "summary",
    "cancel",
    "resolve",
]
EVENT_NAMES: Final = get_args(EventName)
STEP_EVENTS: Final = ("step", "resume", "poke")
"""Events that add a step to the logical chain, or replace its last."""
SUPERVISOR: Final = "supervisor: "
"""What the message of a hold begins with."""
RUN_EVENTS: Final = (*STEP_EVENTS, "attempt")
"""Events whose node is a StepNode: those, and a failed try at one."""
_ENDS: Final = frozenset({"end", "cancelled"})


class Row(Struct, frozen=True, kw_only=True):
    """One row of the table."""

    follows: frozenset[str] = frozenset(STATUSES)
    """The states a thread may be in before it."""
    is_replayable: bool = True
    """Whether it can be written again in a copy of its thread."""
    settles: bool = True
    """Whether it leaves the thread in a state of its own."""
    makes: Callable[[ThreadState], ThreadState] | None = None
    """What it makes of the state, where it is a person's word: that adds nothing to
    the tree, and its reason stands in the message alone."""


def _after(*statuses: ThreadStatus) -> frozenset[str]:
    return frozenset(statuses)


def _give_up(before: ThreadState) -> ThreadState:
    return replace(
        before,
        status="cancelled",
        current_role=None,
        suspended_role=None,
        suspend_message=None,
        retry_at_ms=None,
    )


TABLE: Final[Mapping[str, Row]] = {
    "start": Row(follows=frozenset(), is_replayable=False),
    "step": Row(follows=_after("idle")),
    "resume": Row(follows=_after("suspended", "end")),
    "poke": Row(follows=_after("idle", "suspended", "end")),
    "attempt": Row(follows=_after("idle", "suspended", "end")),
    "hold": Row(follows=_after("idle")),
    "summary": Row(follows=_after("suspended", "end", "cancelled"), settles=False),
    "fork": Row(is_replayable=False, settles=False),
    "cancel": Row(follows=_after("idle", "suspended"), makes=_give_up),
    "resolve": Row(is_replayable=False, settles=False),
}
WORDS: Final[Mapping[str, Callable[[ThreadState], ThreadState]]] = {
    name: row.makes for name, row in TABLE.items() if row.makes is not None
}
"""The events that are a person's word, and what each makes of the state."""


class By(Protocol):
    """Who commits an event, and when."""

    @property
    def who(self) -> str:
        """``Name <mail>``."""

    @property
    def time(self) -> int:
        """In seconds since 1970."""


class Told(Struct, frozen=True, kw_only=True):
    """What an event leaves besides nodes and files of its own.

    ``subject`` and ``quoted`` are whole; a message has them as far as they fit.
    """

    state: ThreadState
    subject: str
    quoted: str = ""
    trailers: Mapping[str, str] = field(default_factory=dict)

    @property
    def message(self) -> str:
        """The commit message."""
        return format_message(self.subject, self.quoted, self.trailers.items())


def event_trailers(event: str, thread: str, **more: str) -> dict[str, str]:
    """Give an event's trailers, in their order; ``more`` by the ends of their names."""
    return {
        "Uwf-Format": str(FORMAT_VERSION),
        "Uwf-Event": event,
        "Uwf-Thread": thread,
        **{f"Uwf-{name.replace('_', '-')}": value for name, value in more.items()},
    }


def _moved(state: ThreadState, by: By, *, at_ms: int | None = None) -> ThreadState:
    """Give a state the time of an event, never an earlier one, and its committer."""
    now = max(state.updated_at_ms, by.time * 1000 if at_ms is None else at_ms)
    completed = now if state.status in _ENDS else None
    return replace(
        state, updated_at_ms=now, completed_at_ms=completed, updated_by=by.who
    )


def tell_start(
    start: Start, *, thread: ThreadId, workflow: str, oid: Oid, role: str, by: By
) -> Told:
    """Tell of a start.

    Args:
        start: The StartNode.
        thread: The new thread.
        workflow: The pinned workflow's name.
        oid: The blob of its node.
        role: The role the first exec runs.
        by: Who starts it, and when.
    """
    now = by.time * 1000
    state = ThreadState(
        format=FORMAT_VERSION,
        thread=thread,
        status="idle",
        workflow_name=workflow,
        workflow_hash=start.workflow,
        workflow_oid=oid,
        start=start.hash,
        head=start.hash,
        steps=0,
        current_role=role,
        suspended_role=None,
        suspend_message=None,
        retry_at_ms=None,
        forked_from=None,
        started_at_ms=now,
        updated_at_ms=now,
        completed_at_ms=None,
        usage=None,
        started_by=by.who,
        updated_by=by.who,
    )
    pinned = f"{start.workflow} {oid}"
    return Told(
        state=state,
        subject=f"start {workflow}: {start.prompt.strip()}",
        quoted=start.prompt,
        trailers=event_trailers(
            "start", thread, Node=start.hash, Workflow=pinned, Next=role or NONE
        ),
    )


def tell_step(
    before: ThreadState, event: EventName, step: Step, outcome: StepOutcome, *, by: By
) -> Told:
    """Tell of a step, resume or poke."""
    message = outcome.suspend_message
    state = replace(
        before,
        status=outcome.status,
        head=step.hash,
        steps=step.number,
        current_role=outcome.current_role,
        suspended_role=outcome.suspended_role,
        suspend_message=None if message is None else short_message(message),
        retry_at_ms=None,
        usage=add_usage(before.usage, step.usage),
    )
    return _tell_run(state, event, step, outcome.next, by=by)


def tell_attempt(before: ThreadState, step: Step, *, of_poke: bool, by: By) -> Told:
    """Tell of a failed try; one of a poke leaves the state as it was.

    Args:
        before: The state before it.
        step: What it adds.
        of_poke: Whether it was to replace the newest step.
        by: Who records it, and when.
    """
    state = replace(before, usage=add_usage(before.usage, step.usage))
    if not of_poke:
        state = replace(
            state,
            status="suspended",
            current_role=None,
            suspended_role=step.role,
            suspend_message=short_message(str(step.output.get("error", ""))),
            retry_at_ms=step.output.get("retryAtMs"),
        )
    return _tell_run(state, "attempt", step, NONE, by=by)


def _tell_run(
    state: ThreadState, event: EventName, step: Step, following: str, *, by: By
) -> Told:
    result = "answered" if step.status is None else step.status
    if event == "attempt" and step.status == ERROR_STATUS:
        result = f"failed: {step.output.get('error')}"
    how = "" if event in {"step", "attempt"} else f" ({event})"
    return Told(
        state=_moved(state, by, at_ms=step.completed_at_ms),
        subject=f"{step.role}: {result}{how}",
        quoted=step.body,
        trailers=event_trailers(
            event,
            state.thread,
            Node=step.hash,
            Prev=step.prev or NONE,
            Role=step.role,
            Status=format_status(step.status),
            Next=following,
        ),
    )


def tell_hold(
    before: ThreadState, hold: Hash, reason: str, usage: Usage | None, *, by: By
) -> Told:
    """Tell that a supervisor stopped a thread."""
    state = replace(
        before,
        status="suspended",
        current_role=None,
        suspended_role=before.current_role,
        suspend_message=short_message(SUPERVISOR + reason),
        usage=add_usage(before.usage, usage),
    )
    role = before.current_role or NONE
    return Told(
        state=_moved(state, by),
        subject=f"hold: {reason}",
        quoted=reason,
        trailers=event_trailers("hold", before.thread, Node=hold, Role=role),
    )


def tell_summary(
    before: ThreadState, text: str, usage: Usage | None, *, by: By
) -> Told:
    """Tell of a summary; ``usage`` is the thread's with what it cost."""
    state = replace(_moved(before, by), usage=usage)
    return Told(
        state=replace(state, completed_at_ms=before.completed_at_ms),
        subject=f"summary: {text.strip()}",
        quoted=text,
        trailers=event_trailers("summary", before.thread),
    )


def origin_of(before: ThreadState) -> ForkedFrom:
    """Say where a fork leaves from that follows a state."""
    return ForkedFrom(thread=before.thread, step=before.head, number=before.steps)


def tell_fork(
    before: ThreadState, thread: ThreadId, *, by: By, origin: ForkedFrom | None = None
) -> Told:
    """Tell of a fork: the state of the commit it leaves from, renamed.

    Args:
        before: That state.
        thread: The new thread.
        by: Who forks, and when.
        origin: The step forked at, should it be one that a poke replaced.
    """
    left = origin or origin_of(before)
    state = replace(before, thread=thread, forked_from=left)
    return Told(
        state=_moved(state, by),
        subject=f"fork from {left.thread} at step {left.number}",
        trailers=event_trailers(
            "fork", thread, Forked_From=f"{left.thread} {left.step}"
        ),
    )


def tell_word(before: ThreadState, event: str, reason: str | None, *, by: By) -> Told:
    """Tell of a person's word; the message alone has the reason."""
    return Told(
        state=_moved(WORDS[event](before), by),
        subject=f"{event}: {reason}" if reason and reason.strip() else event,
        quoted=reason or "",
        trailers=event_trailers(event, before.thread),
    )


def tell_resolve(before: ThreadState, kept: Oid) -> Told:
    """Tell of a resolve, which leaves everything as on the side it keeps."""
    return Told(
        state=before,
        subject=f"resolve: keep {kept}",
        trailers=event_trailers("resolve", before.thread),
    )


class Event(Struct, frozen=True, kw_only=True):
    """One commit of a thread, as its trailers tell it."""

    commit: Commit
    name: EventName
    thread: ThreadId
    node: Hash | None
    prev: Hash | None
    role: str | None
    status: str | None
    next: str | None


def read_event(commit: Commit) -> Event:
    """Read an event off a commit's trailers.

    Raises:
        CorruptError: The trailers are missing or malformed.
    """
    trailers = parse_trailers(commit.message)
    name = trailers.get("Uwf-Event", "")
    thread = trailers.get("Uwf-Thread", "")
    if name not in EVENT_NAMES or not is_thread_id(thread):
        raise CorruptError(f"commit {commit.oid} is not an event of a thread")
    following, written = trailers.get("Uwf-Next"), trailers.get("Uwf-Status", NONE)
    status = None if written == NONE else written
    if written[:1] == '"':
        status = _unquoted(written)
    node, prev = (trailers.get(key, "") for key in ("Uwf-Node", "Uwf-Prev"))
    return Event(
        commit=commit,
        name=cast("EventName", name),
        thread=ThreadId(thread),
        node=Hash(node) if is_hash(node) else None,
        prev=Hash(prev) if is_hash(prev) else None,
        role=trailers.get("Uwf-Role"),
        status=status,
        next=None if following == NONE else following,
    )


def _unquoted(value: str) -> str:
    try:
        decoded = json.loads(value)
    except ValueError:
        return value
    return decoded if isinstance(decoded, str) else value


def iter_events(store: Store, tip: Oid) -> Iterator[Event]:
    """Yield a thread's events, newest first, along first parents to genesis.

    Raises:
        CorruptError: A commit is missing or is no event.
    """
    for commit in iter_commits(store, tip):
        yield read_event(commit)


def find_cause(store: Store, tip: Oid) -> Event:
    """Find the event that left a thread in its state, its origin's for a fork.

    Raises:
        CorruptError: A commit is missing or is no event.
    """
    for event in iter_events(store, tip):
        if TABLE[event.name].settles:
            return event
    raise CorruptError(f"the thread at {tip} was never started")
