"""What of an agent's talk is recorded: an answer or a failure, made to fit.

The only place that knows what an adapter's node must agree with. What was said too
much of is cut from its middle: the start says what was asked and how the work began,
the end what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.agents.base import Failure, ToolCall, Turn
from uwfgit.constants import MAX_TIME, STATUS, SUSPEND
from uwfgit.engine.ask.ask import Interrupted, Talk
from uwfgit.engine.ask.extract import Extraction
from uwfgit.engine.ask.live import mask_output, turn_payload
from uwfgit.errors import UwfError
from uwfgit.ids import Hash
from uwfgit.model.ledger.ledger import Ledger, find_kept
from uwfgit.model.node import (
    DETAIL_TYPE,
    ERROR_TYPE,
    STEP_TYPE,
    SUSPEND_TYPE,
    Node,
    find_builtin_schema,
)
from uwfgit.model.schema.check import validate_value
from uwfgit.model.schema.typed import read_payload, require_typed
from uwfgit.model.thread.record import Record, read_node
from uwfgit.model.thread.step import ExtractedBy, StepNode, Usage
from uwfgit.model.workflow.workflow import Role
from uwfgit.store.canonical import Json, encode_json


class Answer(Struct, frozen=True, kw_only=True):
    """An output ready to record; what is ``None`` the engine fills in itself."""

    output: Mapping[str, Json]
    output_type: Hash
    body: str
    detail: Mapping[str, Json] | None = None
    usage: Usage | None = None
    started_at_ms: int | None = None
    completed_at_ms: int | None = None
    extracted_by: ExtractedBy | None = None
    node_type: Hash | None = None


def find_answer(
    ledger: Ledger,
    record: Record,
    talk: Talk,
    *,
    asked: Mapping[str, str | None],
    output_type: Hash,
    role: Role,
    is_link: Callable[[str], bool],
) -> Answer | Failure:
    """Return what a talk amounts to.

    Args:
        ledger: Where an adapter's nodes stand.
        record: The thread.
        talk: All that was said.
        asked: What an adapter's StepNode must say of the step it was asked for.
        output_type: The hash of the role's schema.
        role: The role asked.
        is_link: Whether a string may link.
    """
    if isinstance(talk.outcome, Failure):
        return talk.outcome
    if isinstance(talk.outcome, Interrupted):
        return Failure(phase="interrupted", message=talk.outcome.message)
    found = talk.outcome.found
    if isinstance(found, Extraction):
        by: ExtractedBy = "correction" if len(talk.replies) > 1 else "frontmatter"
        return Answer(
            output=found.output,
            output_type=SUSPEND_TYPE if found.suspended else output_type,
            body=found.body,
            extracted_by="model" if talk.outcome.is_read else by,
        )
    try:
        answer = _from_node(ledger, record, found, asked)
    except UwfError as exc:
        return Failure(phase="agent", message=f"adapter's node: {exc.message}")
    if isinstance(answer, Failure):
        return answer
    # What an adapter stored by itself is masked here; the step gets nodes of its own.
    recorder = talk.recorder
    answer = replace(
        answer,
        output=mask_output(recorder, answer.output),
        body=recorder.text(answer.body),
        detail=answer.detail and recorder.detail(answer.detail),
    )
    return _checked(answer, output_type, role, is_link)


def _from_node(
    ledger: Ledger, record: Record, printed: Hash, asked: Mapping[str, str | None]
) -> Answer | Failure:
    node = _find(ledger, record, printed)
    if node is None:
        return _failure(f"the store has no node {printed}")
    if node.type != STEP_TYPE:
        if not isinstance(node.payload, dict):
            return _failure(f"node {printed} is not an output: not a mapping")
        return Answer(
            output=node.payload, output_type=node.type, body="", node_type=node.type
        )
    wrong = [key for key, value in asked.items() if node.payload[key] != value]
    if wrong:
        return _failure(
            f"step {printed} differs from what was asked in: {', '.join(wrong)}"
        )
    return _from_step(ledger, record, node)


def _from_step(ledger: Ledger, record: Record, step: Node) -> Answer | Failure:
    told = read_payload(step, StepNode)
    output = _find(ledger, record, told.output_hash)
    detail = _find(ledger, record, told.detail_hash)
    if output is None or not isinstance(output.payload, dict):
        return _failure(f"step {step.hash} has no output node")
    if detail is None or detail.type != DETAIL_TYPE:
        return _failure(f"step {step.hash} has no detail node")
    if told.completed_at_ms >= MAX_TIME * 1000:
        return _failure(f"step {step.hash} is of a time no commit can have")
    return Answer(
        output=output.payload,
        output_type=output.type,
        body=told.body,
        detail=detail.payload,
        usage=told.usage,
        started_at_ms=told.started_at_ms,
        completed_at_ms=told.completed_at_ms,
        node_type=STEP_TYPE,
    )


def _checked(
    answer: Answer, output_type: Hash, role: Role, is_link: Callable[[str], bool]
) -> Answer | Failure:
    if answer.output_type == ERROR_TYPE:
        return Failure(phase="agent", message=str(answer.output["error"]))
    if answer.output_type not in {output_type, SUSPEND_TYPE}:
        return _failure(
            f"its output has type {answer.output_type}; "
            f"allowed are {output_type} (the role's), suspend and error"
        )
    suspended = answer.output_type == SUSPEND_TYPE
    if answer.output.get(STATUS) == SUSPEND and not suspended:
        return _failure(f"an output with {SUSPEND} has the type suspend")
    schema: Json = find_builtin_schema(SUSPEND_TYPE) if suspended else role.schema
    found = validate_value(schema, answer.output, is_link=is_link)
    if found:
        return Failure(phase="output", message="; ".join(map(str, found)))
    return answer


def _find(ledger: Ledger, record: Record, wanted: Hash) -> Node | None:
    """Find a node of keep or of the thread; one that does not fit its type is corrupt.

    Raises:
        CorruptError: It is damaged, or plain git put it past every check.
    """
    # Keep's tree first, by name: the lookup may not be writable.
    kept = find_kept(ledger, wanted)
    if kept is not None:
        node = read_node(ledger.store, wanted, *kept)
    elif wanted in record.places:
        node = record.node(wanted)
    else:
        return None
    require_typed(node)
    return node


def _failure(message: str) -> Failure:
    return Failure(phase="agent", message=f"adapter: {message}")


_INDENT: Final = 128
_KEPT_CHARS: Final = 1_000
"""What stays of a text that is cut."""


def cut_middle(text: str, limit: int) -> str:
    """Return a text of at most ``limit`` characters, what was cut said in its place."""
    if len(text) <= limit:
        return text
    note = f"\n[{len(text) - limit:,} characters cut]\n"
    kept = max(limit - len(note), 0)
    return text[: kept - kept // 2] + note + text[len(text) - kept // 2 :]


def shorten_turns(turns: Sequence[Turn], limit: int) -> tuple[Turn, ...]:
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
    return None if text is None else cut_middle(text, _KEPT_CHARS)


def _cut_results(turn: Turn) -> Turn:
    return _with_calls(turn, lambda call: replace(call, result=_cut(call.result)))


def _cut_texts(turn: Turn) -> Turn:
    content = cut_middle(turn.content, _KEPT_CHARS)
    turn = replace(turn, content=content, reasoning=_cut(turn.reasoning))
    return _with_calls(turn, _cut_arguments)


def _cut_arguments(call: ToolCall) -> ToolCall:
    text = encode_json(call.arguments).decode()
    if len(text) <= _KEPT_CHARS:
        return call
    return replace(call, arguments=cut_middle(text, _KEPT_CHARS))


def _with_calls(turn: Turn, change: Callable[[ToolCall], ToolCall]) -> Turn:
    if turn.tool_calls is None:
        return turn
    return replace(turn, tool_calls=tuple(map(change, turn.tool_calls)))
