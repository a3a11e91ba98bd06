"""What people told the runs of a thread, and which of them failed, off its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import countOf, itemgetter

from msgspec import Struct

from uwfgit.ids import Hash
from uwfgit.model.node.node import STEP_TYPE
from uwfgit.model.thread.event import RUN_EVENTS, STEP_EVENTS, iter_events
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.step import Step


class Notes(Struct, frozen=True, kw_only=True):
    """What was said, oldest first.

    ``unanswered`` came to runs that failed, ``answered`` to the run that is now done
    again and to those it took the place of.
    """

    unanswered: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()


def find_notes(record: Record, *, role: str, prev: Hash | None) -> Notes:
    """Find what was said for a step that is about to run.

    Args:
        record: The thread.
        role: Whose step it is.
        prev: The step before it.
    """
    unanswered: list[str] = []
    answered: list[str] = []
    found = unanswered
    for event in iter_events(record.store, record.tip.commit):
        if event.node is None or event.name not in RUN_EVENTS:
            continue
        is_step = event.name in STEP_EVENTS
        if event.prev != prev or event.role != role:
            if is_step:
                break
            continue
        found = answered if is_step else found
        note = record.run(event.node).note
        if note is not None:
            found.append(note)
    return Notes(
        unanswered=_once(reversed(unanswered)), answered=_once(reversed(answered))
    )


def with_notes(
    record: Record, newest_first: Iterable[Step]
) -> Iterator[tuple[Step, str | None]]:
    """Yield steps of a thread, each with what people had said for it.

    A step that was done again stands for those it took the place of: what they
    were told, such as the answer to a question, counts for it as well.
    """
    # Most threads have no other runs than their steps.
    types = map(itemgetter(0), record.places.values())
    has_more = countOf(types, STEP_TYPE) > record.tip.state.steps
    events = iter_events(record.store, record.tip.commit)
    runs: dict[tuple[Hash | None, str | None], list[Hash]] = {}
    seen: set[Hash] = set()
    for step in newest_first:
        if not has_more:
            yield step, step.note and step.note.strip()
            continue
        while step.prev is None or step.prev not in seen:
            event = next(events, None)
            if event is None:
                break
            if event.node is not None and event.name in RUN_EVENTS:
                runs.setdefault((event.prev, event.role), []).append(event.node)
                seen.add(event.node)
        found = [n for n in runs.get((step.prev, step.role), ()) if n != step.hash]
        tries = [n for n in step.previous_attempts or () if n not in found]
        notes = [record.run(each).note for each in (*tries, *reversed(found))]
        said = _once(note for note in (*notes, step.note) if note is not None)
        yield step, "\n\n".join(said) or None


def _once(notes: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note.strip() for note in notes))


def find_pending(record: Record, role: str) -> tuple[Hash, ...]:
    """Return the failed attempts of a role since its newest good step, oldest first."""
    found: list[Hash] = []
    for event in iter_events(record.store, record.tip.commit):
        if event.role != role or event.node is None:
            continue
        if event.name in STEP_EVENTS:
            break
        if event.name == "attempt":
            found.append(event.node)
    return tuple(reversed(found))
