"""One cycle: ask the role's agent, then record a step or a failed attempt."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from uwfgit.agents.base import Failure, Phase, Turn, WorkflowAgent
from uwfgit.code.snapshots.watch import watching
from uwfgit.constants import ERROR_STATUS, MAX_BLOB_BYTES, SUSPEND
from uwfgit.engine.ask.answer import Answer, find_answer
from uwfgit.engine.ask.ask import Asking, Interrupted, Talk, talk_to
from uwfgit.engine.ask.budget import Meter, find_used, require_budget
from uwfgit.engine.ask.live import (
    clear_live,
    followed,
    keep_words,
    live_path,
    turn_payload,
)
from uwfgit.engine.decide.next_step import outcome_with
from uwfgit.engine.decide.plan import is_routing_error
from uwfgit.engine.run.child import run_child
from uwfgit.engine.run.ends import CycleEnd, CycleLog, RunEnd
from uwfgit.engine.run.engine import Cycle, Engine
from uwfgit.engine.run.hold import hold_slot
from uwfgit.engine.run.memory import Kept, find_session, keep_memory
from uwfgit.engine.run.notes import find_pending
from uwfgit.engine.run.run import Run
from uwfgit.engine.run.sessions import keep_session
from uwfgit.engine.run.shorten import cut_middle, shorten_turns
from uwfgit.errors import (
    ConflictError,
    InvalidError,
    RefConflictError,
    SizeError,
    StoreError,
)
from uwfgit.ids import Hash
from uwfgit.model.ledger.append import append_attempt, append_step
from uwfgit.model.ledger.commit import require_signing
from uwfgit.model.ledger.draft import StepDraft
from uwfgit.model.node.node import ERROR_TYPE, STEP_TYPE
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.step import Code
from uwfgit.model.thread.usage import add_usage
from uwfgit.model.wording import headline, last_line
from uwfgit.store.canonical import Json, encode_json
from uwfgit.store.care.guard import changed_files, fingerprint
from uwfgit.store.handle import git_errors
from uwfgit.store.layout import thread_ref
from uwfgit.store.refs import find_ref

_ERROR_CHARS = 4_000
# A blob holds this much text even when every character is escaped.
MAX_SAID_CHARS: Final = MAX_BLOB_BYTES // 8
_DETAIL_BYTES: Final = 64 * 1024
_WARNINGS: Final = 200
_TURNS_CUT: Final = "the turns were cut from their middle, to fit the record"


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
    run = Run.prepare(engine, record, cycle)
    require_budget(engine.settings.limits, record, run.agent)
    require_signing(engine.ledger)
    # Of a run that was killed; not seen as this one's while it waits for its slot.
    clear_live(live_path(engine.ledger.store, run.thread))
    engine.on_ready()
    code = watching(
        engine.ledger,
        engine.keeper,
        record,
        run.cwd,
        number=run.number,
        tell=engine.tell,
    )
    with hold_slot(engine), code as watch:
        run = run.begin(watch)
        if isinstance(run.agent, WorkflowAgent):
            return _run_child(run, run.agent)
        return _logged(_remember(run))


def _logged(run: Run) -> CycleEnd:
    """Run it with a line in the program's log at its beginning and its end."""
    log = CycleLog(
        store=run.engine.ledger.store,
        thread=run.thread,
        number=run.number,
        role=run.cycle.routed.role,
        agent=run.agent.label,
    )
    log.begin(kind=run.agent.kind)
    end = _run(run)
    log.end(end, run.engine.ledger.now_ms() - run.started_at_ms)
    return end


def _run_child(run: Run, agent: WorkflowAgent) -> CycleEnd:
    result = run_child(run, agent)
    answer = result.answer
    run = replace(run, child=result.child, linked=result.record)
    if answer is None:
        error = f"child {result.child.thread}: {result.why or 'it can go on'}"
        end = _end(run, None, status=None, error=error, end=RunEnd.REFUSED)
    else:
        talk = Talk(
            prompt=run.recorder.text(run.cycle.routed.prompt),
            outcome=Interrupted(),
            recorder=run.recorder,
            usage=result.usage,
        )
        end = (
            _record_step(run, talk, answer)
            if isinstance(answer, Answer)
            else _record_attempt(
                run, talk, answer.message, answer.phase, answer.retry_at_ms
            )
        )
    return replace(end, below=result.ran)


def _remember(run: Run) -> Run:
    found = find_session(run)
    remarks = () if found.warning is None else (found.warning,)
    return replace(run, session=found.session, remarks=remarks)


def _run(run: Run) -> CycleEnd:
    store = run.engine.ledger.store
    guard = fingerprint(store)
    meter = Meter(
        agent=run.agent,
        limits=run.engine.settings.limits,
        before=find_used(run.engine.settings.limits, run.record),
    )
    with followed(
        meter,
        live_path(store, run.thread),
        step=run.number,
        role=run.cycle.routed.role,
        recorder=run.recorder,
        watcher=run.engine.watcher,
    ) as agent:
        talk = talk_to(
            agent,
            run.request(),
            Asking(
                role=run.role,
                listed=run.listed,
                corrections=run.engine.settings.limits.corrections,
                is_link=run.is_link,
                recorder=run.recorder,
                retell=lambda: run.tell(None),
                read=run.engine.read_reply,
            ),
        )
        if meter.excess is not None:
            failure = Failure(phase="budget", message=meter.excess)
            usage = add_usage(talk.usage, meter.unheard)
            talk = replace(talk, outcome=failure, usage=usage)
        tampered = changed_files(guard, fingerprint(store))
        kept = keep_memory(run, talk)
        remarks = (*run.remarks, *talk.remarks, *filter(None, [kept.warning]))
        talk = replace(talk, remarks=remarks, session=kept.payload)
        return _keep_surely(run, _tampered(talk, tampered) if tampered else talk, kept)


def _keep_surely(run: Run, talk: Talk, kept: Kept) -> CycleEnd:
    try:
        return _keep(run, talk, kept)
    except KeyboardInterrupt:
        # What the agent said must not be lost to a moment's impatience.
        tip = find_ref(run.engine.ledger.store, thread_ref(run.thread))
        if tip != run.record.tip.commit:
            raise
        return _keep(run, talk, kept)


def _keep(run: Run, talk: Talk, kept: Kept) -> CycleEnd:
    """Record what was said; where that cannot be, keep it beside the store."""
    run.prompt_file.unlink(missing_ok=True)
    try:
        tip = find_ref(run.engine.ledger.store, thread_ref(run.thread))
        if tip == run.record.tip.commit:
            end = _record_answer(run, talk)
            _keep_session(run, talk, kept, end)
            return end
    except RefConflictError as exc:
        return _keep_aside(run, talk, exc.message, RunEnd.AGENT_FAILED)
    except ConflictError as exc:
        return _keep_aside(run, talk, exc.message, RunEnd.HELD)
    except (StoreError, InvalidError) as exc:
        return _keep_aside(run, talk, exc.message, RunEnd.REFUSED)
    error = "the thread's branch moved while the agent worked"
    return _keep_aside(run, talk, error, RunEnd.AGENT_FAILED)


def _keep_session(run: Run, talk: Talk, kept: Kept, end: CycleEnd) -> None:
    if run.agent.has_sessions:
        keep_session(
            run.engine.ledger.local,
            talk,
            thread=run.thread,
            role=run.cycle.routed.role,
            agent=run.agent.label,
            # What it said in a failed try is no step, to it neither.
            told=run.prev if end.status == ERROR_STATUS else end.step,
            size=kept.size if kept.commit else None,
            digest=kept.digest,
        )


def _tampered(talk: Talk, files: Iterable[str]) -> Talk:
    """Make a failure of it: what such an agent reports is no step."""
    message = f"the agent changed the store's own files: {', '.join(files)}"
    if isinstance(talk.outcome, Failure):
        message = f"{message}; {talk.outcome.message}"
    return replace(talk, outcome=Failure(phase="agent", message=message))


def _keep_aside(run: Run, talk: Talk, error: str, end: RunEnd) -> CycleEnd:
    """Keep a reply that cannot be recorded."""
    try:
        where = f"its reply is in {_keep_words(run, talk)}"
    except StoreError as exc:
        where = exc.message
    error = f"{error}; nothing was recorded, {where}"
    return _end(run, None, status=None, error=error, end=end)


def _keep_words(run: Run, talk: Talk) -> Path:
    """Write what was said beside the store, where no event could hold it.

    Raises:
        StoreError: That cannot be written either, nor a file in the user's home.
    """
    lines = [
        json.dumps({"role": turn.role, "content": turn.content, "atMs": turn.at_ms})
        for turn in talk.turns
    ]
    text = "\n".join(lines) + "\n"
    path = live_path(run.engine.ledger.store, run.thread)
    try:
        keep_words(path, text)
    except OSError:
        # The store's disk is full or read-only; the user's need not be.
        path = run.engine.home / path.parent.name / path.name
        with git_errors("cannot keep its reply"):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            keep_words(path, text)
    return path


def _record_answer(run: Run, talk: Talk) -> CycleEnd:
    answer = find_answer(
        run.engine.ledger,
        run.record,
        talk,
        asked=_asked(run),
        output_type=run.output_type,
        role=run.role,
        is_link=run.is_link,
    )
    if isinstance(answer, Answer):
        return _record_step(run, talk, answer)
    return _record_attempt(run, talk, answer.message, answer.phase, answer.retry_at_ms)


def _asked(run: Run) -> dict[str, str | None]:
    return {
        "start": run.record.tip.state.start,
        "prev": run.prev,
        "role": run.cycle.routed.role,
        "edgePrompt": run.cycle.routed.prompt,
        "cwd": str(run.cwd),
    }


def _record_step(run: Run, talk: Talk, answer: Answer) -> CycleEnd:
    record = run.record
    draft = _draft(run, talk, answer)
    try:
        outcome = outcome_with(record, draft, replaces=run.replaced is not None)
        tip = append_step(
            run.engine.ledger,
            record,
            draft,
            event=run.cycle.event,
            outcome=outcome,
            rule=run.rule(),
            is_last=run.cycle.is_last(),
        )
    except SizeError as exc:
        return _record_attempt(run, talk, f"the reply: {exc.message}", "size")
    except InvalidError as exc:
        # What the agent put collides with a node of the thread, or a condition
        # over it takes for ever: its words are kept all the same.
        return _record_attempt(run, talk, exc.message, "output")
    _note_reply(run)
    status = draft.output.get("$status")
    status = status if isinstance(status, str) else None
    message = tip.state.suspend_message
    if status != SUSPEND and is_routing_error(message):
        return _end(
            run, tip.state.head, status=status, error=message, end=RunEnd.REFUSED
        )
    code = RunEnd.WAITING if tip.state.status == "suspended" else RunEnd.DONE
    said = headline(draft.body, draft.output)
    return _end(run, tip.state.head, status=status, error=None, end=code, said=said)


def _record_attempt(
    run: Run, talk: Talk, message: str, phase: Phase, retry_at_ms: int | None = None
) -> CycleEnd:
    message = message[:_ERROR_CHARS]
    body = talk.said.replace("\0", "\ufffd")
    if len(body) > MAX_SAID_CHARS:
        message += f" (the whole reply is in {_keep_words(run, talk)})"
        body = cut_middle(body, MAX_SAID_CHARS)
    output: dict[str, Json] = {
        "$status": ERROR_STATUS,
        "error": message,
        "phase": phase,
    }
    if retry_at_ms is not None:
        output["retryAtMs"] = retry_at_ms
    answer = Answer(output=output, output_type=ERROR_TYPE, body=body)
    node = append_attempt(
        run.engine.ledger,
        run.record,
        _draft(run, talk, answer),
        of_poke=run.replaced is not None,
    )
    if talk.said:
        _note_reply(run)
    interrupted = phase == "interrupted"
    return _end(
        run,
        node,
        status=ERROR_STATUS,
        error=message,
        end=RunEnd.INTERRUPTED if interrupted else RunEnd.AGENT_FAILED,
        said=last_line(body),
    )


def _note_reply(run: Run) -> None:
    if run.record.replies is not None:
        run.record.replies.append(run.cycle.routed.role)


def _draft(run: Run, talk: Talk, answer: Answer) -> StepDraft:
    ledger = run.engine.ledger
    missing = tuple(
        f"the prompt uses '{name}', which has no value"
        for name in run.cycle.routed.missing
    )
    turns = _fitting_turns(talk)
    cut = () if turns == tuple(talk.turns) else (_TURNS_CUT,)
    completed_at_ms = answer.completed_at_ms or talk.ended_at_ms or ledger.now_ms()
    run.watch.end()
    said = talk.warnings[:_WARNINGS]
    warnings = (*missing, *said, *cut, *run.watch.warnings)
    return StepDraft(
        role=run.cycle.routed.role,
        output=answer.output,
        output_type=answer.output_type,
        body=answer.body,
        detail=answer.detail or _detail(run, talk, turns),
        agent=run.agent.label,
        edge_prompt=run.cycle.routed.prompt,
        note=run.cycle.note,
        cwd=str(run.cwd),
        started_at_ms=answer.started_at_ms or talk.began_at_ms or run.started_at_ms,
        completed_at_ms=completed_at_ms,
        usage=answer.usage if answer.node_type == STEP_TYPE else talk.usage,
        previous_attempts=find_pending(run.record, run.cycle.routed.role)
        if answer.output_type != ERROR_TYPE
        else (),
        child=run.child,
        code=Code(
            before=run.code_before,
            after=run.engine.code_head(run.cwd),
            snapshot=run.watch.snapshot,
            shared=run.watch.shared,
        ),
        extracted_by=answer.extracted_by,
        warnings=tuple(cut_middle(text, _ERROR_CHARS) for text in warnings),
    )


def _fitting_turns(talk: Talk) -> tuple[Turn, ...]:
    """Return the turns of a talk as far as one node holds them."""
    room = MAX_BLOB_BYTES - len(encode_json(talk.prompt)) - _DETAIL_BYTES
    return shorten_turns(talk.turns, room)


def _detail(run: Run, talk: Talk, turns: Iterable[Turn]) -> dict[str, object]:
    return {
        "kind": run.agent.kind,
        "agentVersion": talk.last.agent_version,
        "sessionId": talk.last.session_id,
        "model": talk.last.model,
        "exitCode": talk.last.exit_code,
        "assembledPrompt": talk.prompt,
        "turns": [turn_payload(turn) for turn in turns],
        **({} if talk.session is None else {"session": dict(talk.session)}),
    }


def _end(
    run: Run,
    step: Hash | None,
    *,
    status: str | None,
    error: str | None,
    end: RunEnd,
    said: str | None = None,
) -> CycleEnd:
    return CycleEnd(
        number=run.number,
        role=run.cycle.routed.role,
        step=step,
        status=status,
        error=error,
        end=end,
        said=said,
    )
