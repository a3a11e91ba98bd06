"""What came of a cycle: a step or a failed try on record, else words kept aside.

What was said too much of is cut from its middle: the start says what was asked and
how the work began, the end what came of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from uwfgit.agents.base import Failure, ToolCall, Turn
from uwfgit.code.snapshots.watch import NOTHING_AROUND
from uwfgit.constants import ERROR_STATUS, MAX_BLOB_BYTES, STATUS, SUSPEND
from uwfgit.engine.ask.answer import Answer, answer_of
from uwfgit.engine.ask.ask import Interrupted, Talk
from uwfgit.engine.ask.extract import Extraction
from uwfgit.engine.ask.live import (
    detail_payload,
    keep_words,
    live_path,
    turn_payload,
)
from uwfgit.engine.decide.moderator import outcome_with
from uwfgit.engine.run.ends import CycleEnd, RunEnd
from uwfgit.engine.run.memory import Kept, keep_memory, total_of
from uwfgit.engine.run.run import Run
from uwfgit.errors import (
    ConflictError,
    InvalidError,
    RefConflictError,
    SizeError,
    StoreError,
)
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.ledger.append import StepDraft, append_attempt, append_step
from uwfgit.model.node import ERROR_TYPE, STEP_TYPE, SUSPEND_TYPE
from uwfgit.model.thread.event import STEP_EVENTS, iter_events
from uwfgit.model.thread.family import family_of
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.step import Code, ExtractedBy
from uwfgit.model.wording import first_line, last_line
from uwfgit.store.canonical import Json, encode_json, normalise
from uwfgit.store.handle import git_errors
from uwfgit.store.layout import thread_ref
from uwfgit.store.local import AgentSession
from uwfgit.store.refs import find_ref

_ERROR_CHARS: Final = 4_000
# A blob holds this much text even when every character is escaped.
_MAX_SAID_CHARS: Final = MAX_BLOB_BYTES // 8
_DETAIL_BYTES: Final = 64 * 1024
_WARNINGS: Final = 200
_INDENT: Final = 128
_KEPT_CHARS: Final = 1_000
"""What stays of a text that is cut."""
_TURNS_CUT: Final = "the turns were cut from their middle, to fit the record"


def keep_talk(run: Run, talk: Talk) -> CycleEnd:
    """Record what an agent said, and its session for the next run.

    Where it cannot be recorded, it is kept beside the store. Ctrl-C waits for it
    once, and then ends the run.
    """
    kept = Kept(warning="the agent's session was not kept: interrupted")
    # The record goes on with its branch.
    before = run.record.tip.commit
    try:
        kept = keep_memory(run, talk) if run.agent.has_sessions else Kept()
        return _keep(run, talk, kept)
    except KeyboardInterrupt:
        # What the agent said must not be lost to a moment's impatience.
        tip = find_ref(run.engine.ledger.store, thread_ref(run.thread))
        if tip != before:
            raise
        end = _keep(run, talk, kept)
        is_idle = run.record.tip.state.status == "idle"
        is_over = end.end is not RunEnd.DONE or not is_idle
        return end if is_over else replace(end, end=RunEnd.INTERRUPTED)


def _keep(run: Run, talk: Talk, kept: Kept) -> CycleEnd:
    run.prompt_file.unlink(missing_ok=True)
    remarks = (*run.remarks, *talk.remarks, *filter(None, [kept.warning]))
    talk = replace(talk, remarks=remarks, session=kept.named)
    try:
        tip = find_ref(run.engine.ledger.store, thread_ref(run.thread))
        if tip == run.record.tip.commit:
            end = record_answer(run, talk, _find_answer(run, talk))
            if run.agent.has_sessions:
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


def _find_answer(run: Run, talk: Talk) -> Answer | Failure:
    """Return what a talk amounts to."""
    if isinstance(talk.outcome, Failure):
        return talk.outcome
    if isinstance(talk.outcome, Interrupted):
        return Failure(phase="interrupted", message=talk.outcome.message)
    found = talk.outcome.found
    if isinstance(found, Extraction):
        by: ExtractedBy = "correction" if len(talk.replies) > 1 else "frontmatter"
        return Answer(
            output=found.output,
            output_type=SUSPEND_TYPE if found.suspended else run.output_type,
            body=found.body,
            extracted_by="model" if talk.outcome.is_read else by,
        )
    return answer_of(
        found,
        run.engine.ledger,
        run.record,
        recorder=talk.recorder,
        asked={
            "start": run.record.tip.state.start,
            "prev": run.prev,
            "role": run.cycle.routed.role,
            "edgePrompt": run.cycle.routed.prompt,
            "cwd": str(run.cwd),
        },
        output_type=run.output_type,
        role=run.role,
        is_link=run.is_link,
    )


def _keep_session(run: Run, talk: Talk, kept: Kept, end: CycleEnd) -> None:
    """Keep the session of a talk for the next run of the same role and agent.

    An agent that named none leaves the one before as it is.
    """
    name = talk.last.session_id
    if name is None:
        return
    session = AgentSession(
        id=name,
        # What it said in a failed try is no step, to it neither.
        told=run.prev if end.status == ERROR_STATUS else end.step,
        total=total_of(talk),
        size=kept.size if kept.named else None,
        digest=kept.digest,
    )
    role, agent = run.cycle.routed.role, run.agent.label
    run.engine.ledger.local.set_session(run.thread, role, agent, session)


def _keep_aside(run: Run, talk: Talk, error: str, end: RunEnd) -> CycleEnd:
    """Keep a reply that cannot be recorded."""
    try:
        where = f"its reply is in {_keep_words(run, talk)}"
    except StoreError as exc:
        where = exc.message
    return end_unrecorded(run, f"{error}; nothing was recorded, {where}", end)


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
        with git_errors("keep its reply"):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            keep_words(path, text)
    return path


def record_answer(run: Run, talk: Talk, answer: Answer | Failure) -> CycleEnd:
    """Record an answer as a step, a failure as an attempt.

    Raises:
        ConflictError: Someone else holds the thread, or moved its branch.
        StoreError: It cannot be written; nor can its words beside the store.
        InvalidError: It cannot be recorded, as an attempt neither.
    """
    if isinstance(answer, Failure):
        return _record_attempt(run, talk, answer)
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
            rule=run.rule,
            is_last=run.cycle.is_last(),
        )
    except SizeError as exc:
        failure = Failure(phase="size", message=f"the reply: {exc.message}")
        return _record_attempt(run, talk, failure)
    except InvalidError as exc:
        # What the agent put collides with a node of the thread, or a condition
        # over it takes for ever: its words are kept all the same.
        return _record_attempt(run, talk, Failure(phase="output", message=exc.message))
    status, message = draft.output.get(STATUS), tip.state.suspend_message
    is_suspended = outcome.status == "suspended"
    if is_suspended and status != SUSPEND:
        # Its graph gave no next role.
        error, end, said = message, RunEnd.REFUSED, None
    else:
        error, end = None, RunEnd.WAITING if is_suspended else RunEnd.DONE
        fields = (text for name, text in draft.output.items() if name != STATUS)
        texts = (text for text in fields if isinstance(text, str))
        said = first_line(draft.body) or first_line(next(texts, ""))
    return CycleEnd(
        number=run.number,
        role=run.cycle.routed.role,
        step=tip.state.head,
        status=status if isinstance(status, str) else None,
        error=error,
        end=end,
        said=said,
        warnings=draft.warnings,
    )


def _record_attempt(run: Run, talk: Talk, failure: Failure) -> CycleEnd:
    message = told = failure.message[:_ERROR_CHARS]
    body = talk.said.replace("\0", "\ufffd")
    if len(body) > _MAX_SAID_CHARS:
        # Where that is says something of this machine, and is no use on another.
        told += f" (the whole reply is in {_keep_words(run, talk)})"
        message += " (the whole reply is kept where this ran)"
        body = _cut_middle(body, _MAX_SAID_CHARS)
    output: dict[str, Json] = {
        STATUS: ERROR_STATUS,
        "error": message,
        "phase": failure.phase,
    }
    if failure.retry_at_ms is not None:
        output["retryAtMs"] = failure.retry_at_ms
    answer = Answer(output=output, output_type=ERROR_TYPE, body=body)
    draft = _draft(run, talk, answer)
    node = append_attempt(
        run.engine.ledger,
        run.record,
        draft,
        of_poke=run.replaced is not None,
    )
    is_interrupted = failure.phase == "interrupted"
    return CycleEnd(
        number=run.number,
        role=run.cycle.routed.role,
        step=node,
        status=ERROR_STATUS,
        error=told,
        end=RunEnd.INTERRUPTED if is_interrupted else RunEnd.AGENT_FAILED,
        said=last_line(body),
        warnings=draft.warnings,
    )


def end_unrecorded(run: Run, error: str, end: RunEnd) -> CycleEnd:
    """Return the end of a cycle that added nothing to the thread."""
    return CycleEnd(
        number=run.number,
        role=run.cycle.routed.role,
        step=None,
        status=None,
        error=error,
        end=end,
    )


def _draft(run: Run, talk: Talk, answer: Answer) -> StepDraft:
    ledger = run.engine.ledger
    missing = tuple(
        f"the prompt uses '{name}', which has no value"
        for name in run.cycle.routed.missing
    )
    detail = detail_payload(run.agent.kind, talk.prompt, talk.last, talk.turns)
    cut: tuple[str, ...] = ()
    # Encoding alone would fail at a text that no record can hold, and say not why.
    if len(encode_json(normalise(detail))) > MAX_BLOB_BYTES - _DETAIL_BYTES:
        # As far as one node holds them.
        room = MAX_BLOB_BYTES - len(encode_json(talk.prompt)) - _DETAIL_BYTES
        turns = _shorten_turns(talk.turns, room)
        detail["turns"] = [turn_payload(turn) for turn in turns]
        cut = () if turns == talk.turns else (_TURNS_CUT,)
    if talk.session is not None:
        detail["session"] = dict(talk.session)
    completed_at_ms = answer.completed_at_ms or talk.ended_at_ms or ledger.now_ms()
    children: tuple[ThreadId, ...] = ()
    if run.child is not None:
        child = run.child.thread
        children = (child, *family_of(ledger.store, child))
    pending: tuple[Hash, ...] = ()
    if answer.output_type != ERROR_TYPE:
        pending = _find_pending(run.record, run.cycle.routed.role)
    around = NOTHING_AROUND if run.watch is None else run.watch.end(children)
    warnings = (*missing, *talk.warnings[:_WARNINGS], *cut, *around.warnings)
    return StepDraft(
        role=run.cycle.routed.role,
        output=answer.output,
        output_type=answer.output_type,
        body=answer.body,
        detail=answer.detail or detail,
        agent=run.agent.label,
        edge_prompt=run.cycle.routed.prompt,
        note=run.cycle.note,
        cwd=str(run.cwd),
        started_at_ms=answer.started_at_ms or talk.began_at_ms or run.started_at_ms,
        completed_at_ms=completed_at_ms,
        usage=answer.usage if answer.node_type == STEP_TYPE else talk.usage,
        previous_attempts=pending or None,
        child=run.child,
        code=Code(
            before=run.code_before,
            after=run.engine.code_head(run.cwd),
            snapshot=around.snapshot,
            shared=around.shared,
        ),
        extracted_by=answer.extracted_by,
        warnings=tuple(_cut_middle(text, _ERROR_CHARS) for text in warnings),
    )


def _find_pending(record: Record, role: str) -> tuple[Hash, ...]:
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


def _cut_middle(text: str, limit: int) -> str:
    """Return a text of at most ``limit`` characters, what was cut said in its place."""
    if len(text) <= limit:
        return text
    note = f"\n[{len(text) - limit:,} characters cut]\n"
    kept = max(limit - len(note), 0)
    return text[: kept - kept // 2] + note + text[len(text) - kept // 2 :]


def _shorten_turns(turns: Sequence[Turn], limit: int) -> tuple[Turn, ...]:
    """Return turns whose JSON has at most ``limit`` bytes.

    Cut are results of tools first, then texts and arguments, then whole turns;
    those in the middle before those at the ends, and no more than it takes.
    """
    found: list[Turn | None] = list(turns)
    sizes = [_size(turn) for turn in turns]
    size = sum(sizes)
    order = sorted(range(len(found)), key=lambda n: abs(2 * n + 1 - len(found)))
    for cut in (_cut_results, _cut_texts, lambda _: None):
        for index in order:
            turn = found[index]
            if size <= limit or turn is None:
                break
            found[index] = cut(turn)
            size += _size(found[index]) - sizes[index]
            sizes[index] = _size(found[index])
    return tuple(turn for turn in found if turn is not None)


def _size(turn: Turn | None) -> int:
    # In the record each of some twelve lines is indented by four to ten more.
    return 0 if turn is None else len(encode_json(turn_payload(turn))) + _INDENT


def _cut(text: str | None) -> str | None:
    return None if text is None else _cut_middle(text, _KEPT_CHARS)


def _cut_results(turn: Turn) -> Turn:
    return _with_calls(turn, lambda call: replace(call, result=_cut(call.result)))


def _cut_texts(turn: Turn) -> Turn:
    content = _cut_middle(turn.content, _KEPT_CHARS)
    turn = replace(turn, content=content, reasoning=_cut(turn.reasoning))
    return _with_calls(turn, _cut_arguments)


def _cut_arguments(call: ToolCall) -> ToolCall:
    text = encode_json(call.arguments).decode()
    if len(text) <= _KEPT_CHARS:
        return call
    return replace(call, arguments=_cut_middle(text, _KEPT_CHARS))


def _with_calls(turn: Turn, change: Callable[[ToolCall], ToolCall]) -> Turn:
    if turn.tool_calls is None:
        return turn
    return replace(turn, tool_calls=tuple(map(change, turn.tool_calls)))
