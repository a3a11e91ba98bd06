"""What a step's role is told: by people, of past steps, and all of it in its prompt."""

from __future__ import annotations

from itertools import islice, starmap, takewhile
from typing import Final

from msgspec.json import decode
from msgspec.structs import replace

from uwfgit.agents.base import AgentRequest
from uwfgit.constants import MAX_BLOB_BYTES
from uwfgit.engine.ask.prompt import PastStep, PromptParts, assemble_prompt
from uwfgit.engine.run.engine import Cycle, Engine
from uwfgit.engine.run.notes import find_notes, with_notes
from uwfgit.engine.run.run import Run, require_short
from uwfgit.ids import ThreadId
from uwfgit.model.thread.derive import output_file
from uwfgit.model.thread.event import find_cause
from uwfgit.model.thread.step import Step, Usage
from uwfgit.store.files import write_private
from uwfgit.store.handle import git_errors
from uwfgit.store.local import AgentSession, Local

_PROMPT_BYTES: Final = MAX_BLOB_BYTES - 2 * 1024 * 1024
"""As JSON, so that a detail has room for turns beside it."""


def with_note(
    engine: Engine, cycle: Cycle, thread: ThreadId, note: str | None
) -> Cycle:
    """Tell a cycle what was kept for the thread's next run, then what is said now."""
    kept = engine.ledger.local.find_note(thread)
    if kept is None and note is None:
        return cycle
    found: set[str] = set()
    said = "\n\n".join(text for text in (kept, note) if text is not None)
    masked = engine.masker.mask(said, found)
    return replace(cycle, note=masked, kept_note=kept, masked=tuple(found))


def use_up_note(local: Local, thread: ThreadId, told: str) -> None:
    """Keep what was said since a run was told; the rest is recorded with it."""
    rest = (local.find_note(thread) or "").removeprefix(told)
    local.set_note(thread, rest.lstrip("\n") or None)


def past_step(step: Step, note: str | None) -> PastStep:
    """Return what the roles after a step are told of it."""
    return PastStep(
        number=step.number,
        role=step.role,
        output=step.output,
        body=step.body,
        agent=step.agent,
        note=note,
    )


def _prompt(run: Run, session: AgentSession | None) -> str:
    """Assemble what the agent is told, in the session or without one."""
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
        past=starmap(past_step, with_notes(run.record, untold)),
        edge_prompt=run.cycle.routed.prompt,
        suspend_reason=reason,
        earlier_answer=output_file(old.output, old.body).decode() if old else None,
        notes=(*notes.unanswered, *new),
        answered_notes=notes.answered,
        context_chars=run.engine.settings.limits.context_chars,
        live_session=session is not None,
        inputs=run.record.start.values,
    )
    return assemble_prompt(parts)


def tell(run: Run, session: AgentSession | None) -> str:
    """Make the prompt; it is on disk afterwards.

    Raises:
        StoreError: It cannot be written there.
        SizeError: It is too long to be recorded.
    """
    # What was recorded before a secret was known, or stands in the workflow.
    prompt = run.recorder.text(_prompt(run, session))
    require_short("the assembled prompt", prompt, most=_PROMPT_BYTES)
    with git_errors(f"write '{run.prompt_file}'"):
        run.prompt_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(run.prompt_file, prompt)
    return prompt


def first_request(run: Run) -> AgentRequest:
    """Make the agent's first call.

    Raises:
        StoreError: Its prompt cannot be written.
    """
    request = run.make_request(tell(run, run.session))
    if run.session is None:
        return request
    total = run.session.total
    return replace(
        request,
        session_id=run.session.id,
        session_total=decode(total, type=Usage) if total else None,
    )
