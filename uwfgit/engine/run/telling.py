"""What a step's role is told: by people, of past steps, and all of it in its prompt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, takewhile
from operator import countOf, itemgetter
from typing import Final

from msgspec import Struct

from uwfgit.constants import MAX_BLOB_BYTES
from uwfgit.engine.ask.prompt import PromptParts, assemble_prompt
from uwfgit.engine.run.run import Run, require_short
from uwfgit.ids import Hash
from uwfgit.model.node import STEP_TYPE
from uwfgit.model.thread.derive import output_file
from uwfgit.model.thread.event import (
    RUN_EVENTS,
    STEP_EVENTS,
    find_cause,
    iter_events,
)
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.step import Step
from uwfgit.store.files import write_private
from uwfgit.store.handle import git_errors
from uwfgit.store.local import AgentSession

_PROMPT_BYTES: Final = MAX_BLOB_BYTES - 2 * 1024 * 1024
"""As JSON, so that a detail has room for turns beside it."""


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
            found.append(note.strip())
    return Notes(
        unanswered=tuple(dict.fromkeys(reversed(unanswered))),
        answered=tuple(dict.fromkeys(reversed(answered))),
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
        said = [note.strip() for note in (*notes, step.note) if note is not None]
        yield step, "\n\n".join(dict.fromkeys(said)) or None


def tell(run: Run, session: AgentSession | None) -> str:
    """Make what the agent is told, in the session or without one; it is on disk then.

    Raises:
        StoreError: It cannot be written there.
        SizeError: It is too long to be recorded.
    """
    state, name = run.record.tip.state, run.cycle.routed.role
    roles = run.record.roles()
    spoken = sum(role == name for number, role in roles.items() if number < run.number)
    notes = find_notes(run.record, role=name, prev=run.prev)
    new = () if run.cycle.note is None else (run.cycle.note,)
    told = session.told if session else None
    if run.replaced is not None and run.replaced.hash == told:
        told = run.prev
    steps = islice(run.record.iter_steps(), 1 if run.replaced else 0, None)
    # Back to one that the session was told.
    untold = takewhile(lambda step: step.hash != told, steps)
    old, reason = run.replaced, None
    if run.cycle.event == "resume" and state.status == "suspended":
        # A supervisor's is for people alone.
        cause = find_cause(run.record.store, run.record.tip.commit)
        reason = None if cause.name == "hold" else state.suspend_message
    parts = PromptParts(
        thread=state.thread,
        number=run.number,
        role_name=name,
        role=run.role,
        listed=run.listed,
        task=run.record.start.prompt,
        spoken=spoken,
        past=with_notes(run.record, untold),
        edge_prompt=run.cycle.routed.prompt,
        suspend_reason=reason,
        earlier_answer=output_file(old.output, old.body).decode() if old else None,
        notes=(*notes.unanswered, *new),
        answered_notes=notes.answered,
        context_chars=run.engine.settings.limits.context_chars,
        live_session=session is not None,
        inputs=run.record.start.values,
    )
    # What was recorded before a secret was known, or stands in the workflow.
    prompt = run.recorder.text(assemble_prompt(parts))
    require_short("the assembled prompt", prompt, most=_PROMPT_BYTES)
    with git_errors(f"write '{run.prompt_file}'"):
        run.prompt_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(run.prompt_file, prompt)
    return prompt
