"""Failed tries of a thread: what was asked, what went wrong, what was said last."""

from __future__ import annotations

from msgspec import Struct

from uwfgit.ids import Hash
from uwfgit.model.node import ERROR_TYPE
from uwfgit.model.thread.event import STEP_EVENTS, Event, iter_events
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.step import Usage
from uwfgit.model.wording import last_line

_ATTEMPT = "attempt"


class Attempt(Struct, frozen=True, kw_only=True):
    """One failed try of the step ``number``; ``said`` is the agent's last line."""

    number: int
    hash: Hash
    role: str
    agent: str
    error: str
    said: str | None
    duration_ms: int
    usage: Usage | None


def list_attempts(record: Record) -> tuple[Attempt, ...]:
    """List the failed tries, oldest first.

    Raises:
        CorruptError: One cannot be read, or is not that of a try.
    """
    found: list[Attempt] = []
    # Of all steps there were: a try goes on from one that a poke replaced later.
    numbers: dict[Hash | None, int] = {None: 0}
    for event in reversed(tuple(iter_events(record.store, record.tip.commit))):
        number = numbers.get(event.prev, 0) + 1
        if event.name == _ATTEMPT:
            found.append(_read(record, event, number))
        elif event.name in STEP_EVENTS:
            numbers[event.node] = number
    return tuple(found)


def find_last_attempt(record: Record) -> Attempt | None:
    """Return the failed try a thread waits after; ``None`` when it does not."""
    if record.tip.state.status != "suspended":
        return None
    event = next(iter(iter_events(record.store, record.tip.commit)), None)
    if event is None or event.name != _ATTEMPT:
        return None
    state = record.tip.state
    head = state.head if state.steps else None
    # Else it was a try at the newest step, by a poke.
    number = state.steps + (event.prev == head)
    return _read(record, event, number)


def _read(record: Record, event: Event, number: int) -> Attempt:
    assert event.node is not None  # noqa: S101 - an attempt's trailers name its node
    step = record.run(event.node)
    output = record.node(step.output_hash, ERROR_TYPE).payload
    return Attempt(
        number=number,
        hash=event.node,
        role=step.role,
        agent=step.agent,
        error=output["error"],
        said=last_line(step.body),
        duration_ms=max(0, step.completed_at_ms - step.started_at_ms),
        usage=step.usage,
    )
