"""One cycle: ask the role's agent, then record a step or a failed attempt."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Final

from msgspec.structs import replace

from uwfgit.agents.base import Failure, WorkflowAgent
from uwfgit.code.snapshots.watch import Watch, watching
from uwfgit.engine.ask.ask import Asking, Interrupted, Talk, talk_to
from uwfgit.engine.ask.budget import Meter, require_budget
from uwfgit.engine.ask.live import clear_live, followed, live_path
from uwfgit.engine.run.child import run_child
from uwfgit.engine.run.ends import CycleEnd, RunEnd
from uwfgit.engine.run.engine import Cycle, Engine
from uwfgit.engine.run.hold import hold_slot
from uwfgit.engine.run.memory import find_session
from uwfgit.engine.run.recording import end_unrecorded, keep_talk, record_answer
from uwfgit.engine.run.run import Run
from uwfgit.engine.run.telling import tell
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.commit import require_signing
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.step import add_usage
from uwfgit.store.local import Local
from uwfgit.store.log import log_event
from uwfgit.store.safety.trust import fingerprint

_LOGGED_CHARS: Final = 300


def run_cycle(engine: Engine, record: Record, cycle: Cycle) -> CycleEnd:
    """Run one cycle and record what came of it.

    Raises:
        StateError: The working directory is missing.
        RoutingFailedError: The workflow lacks the role.
        ConfigError: No agent is configured, or not rightly.
        BudgetError: The thread has used up what it may cost.
        StoreError: The prompt cannot be written for the agent, or the step was
            to be signed and could not be.
    """
    # What was kept for the thread's next run, then what is said now.
    kept = engine.ledger.local.find_note(record.tip.thread)
    said = [text for text in (kept, cycle.note) if text is not None]
    if said:
        masked: set[str] = set()
        note = engine.masker.mask("\n\n".join(said), masked)
        cycle = replace(cycle, note=note, masked=tuple(masked))
    run = Run.prepare(engine, record, cycle)
    if run.is_budgeted:
        limits = engine.settings.limits
        used = require_budget(limits, record, run.agent, engine.beside)
        run = replace(run, used=used)
    require_signing(engine.ledger)
    # Of a run that was killed; not seen as this one's while it waits for its slot.
    clear_live(live_path(engine.ledger.store, run.thread))
    engine.on_ready()
    with hold_slot(engine), _watch_code(run) as watch:
        # Time and code as they are right before the agent is asked.
        run = replace(
            run,
            watch=watch,
            started_at_ms=engine.ledger.now_ms(),
            code_before=engine.code_head(run.cwd),
        )
        if isinstance(run.agent, WorkflowAgent):
            end = _run_child(run, run.agent)
        else:
            end = _run_agent(run)
    if end.step is not None and kept is not None:
        # The note that was kept for it is recorded with it.
        _use_up_note(engine.ledger.local, run.thread, kept)
    return end


def _watch_code(run: Run) -> AbstractContextManager[Watch | None]:
    engine = run.engine
    keeper = engine.find_keeper(run.cwd)
    if keeper is None:
        return nullcontext()
    return watching(
        engine.ledger,
        keeper,
        run.record,
        run.cwd,
        number=run.number,
        above=engine.above,
        tell=engine.tell,
    )


def _use_up_note(local: Local, thread: ThreadId, told: str) -> None:
    """Keep what was said since a run was told; the rest is recorded with it."""
    rest = (local.find_note(thread) or "").removeprefix(told)
    local.set_note(thread, rest.lstrip("\n") or None)


def _run_child(run: Run, agent: WorkflowAgent) -> CycleEnd:
    result = run_child(run, agent)
    run = replace(run, child=result.child, linked=result.record)
    if result.answer is None:
        error = f"child {result.child.thread}: {result.why or 'it can go on'}"
        end = end_unrecorded(run, error, RunEnd.REFUSED)
    else:
        talk = Talk(
            prompt=run.recorder.text(run.cycle.routed.prompt),
            outcome=Interrupted(),
            recorder=run.recorder,
            usage=result.usage,
        )
        end = record_answer(run, talk, result.answer)
    return replace(end, below=result.ran)


def _run_agent(run: Run) -> CycleEnd:
    """Run it with a line in the program's log at its beginning and its end."""
    log = partial(
        log_event,
        run.engine.ledger.store,
        thread=run.thread,
        number=run.number,
        role=run.cycle.routed.role,
        agent=run.agent.label,
    )
    if run.agent.has_sessions:
        found = find_session(run)
        remarks = () if found.warning is None else (found.warning,)
        run = replace(run, session=found.session, remarks=remarks)
    log("step-begun", kind=run.agent.kind)
    end = _talk(run)
    facts = {"end": end.end.value}
    # An agent's own words stay in the thread, where ``redact`` finds them.
    if end.error is not None and end.end is not RunEnd.AGENT_FAILED:
        facts["error"] = end.error[:_LOGGED_CHARS]
    taken_ms = run.engine.ledger.now_ms() - run.started_at_ms
    log("step-ended", status=end.status or "-", ms=taken_ms, **facts)
    return end


def _talk(run: Run) -> CycleEnd:
    store, limits = run.engine.ledger.store, run.engine.settings.limits
    guard = fingerprint(store.path)
    meter = None
    if run.is_budgeted:
        meter = Meter(agent=run.agent, limits=limits, before=run.used)
    with followed(
        meter or run.agent,
        live_path(store, run.thread),
        step=run.number,
        role=run.cycle.routed.role,
        recorder=run.recorder,
        watcher=run.engine.watcher,
    ) as agent:
        talk = talk_to(
            agent,
            run.make_request(tell(run, run.session)),
            Asking(
                role=run.role,
                listed=run.listed,
                corrections=limits.corrections,
                is_link=run.is_link,
                recorder=run.recorder,
                retell=lambda: tell(run, None),
                read=run.engine.read_reply,
            ),
        )
        if meter is not None and meter.excess is not None:
            failure = Failure(phase="budget", message=meter.excess)
            usage = add_usage(talk.usage, meter.unheard)
            talk = replace(talk, outcome=failure, usage=usage)
        if tampered := guard ^ fingerprint(store.path):
            # What such an agent reports is no step.
            names = ", ".join(sorted({name for name, _ in tampered}))
            message = f"the agent changed the store's own files: {names}"
            if isinstance(talk.outcome, Failure):
                message = f"{message}; {talk.outcome.message}"
            talk = replace(talk, outcome=Failure(phase="agent", message=message))
        return keep_talk(run, talk)
