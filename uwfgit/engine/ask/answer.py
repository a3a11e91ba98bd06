"""An answer to record; what of an adapter's node is one.

The only place that knows what such a node must agree with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.agents.base import Failure
from uwfgit.constants import MAX_TIME, STATUS, SUSPEND
from uwfgit.engine.ask.live import Recorder, mask_output
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
    read_payload,
    require_typed,
)
from uwfgit.model.schema.check import validate_value
from uwfgit.model.thread.record import Record, read_node
from uwfgit.model.thread.step import ExtractedBy, StepNode, Usage
from uwfgit.model.workflow.workflow import Role
from uwfgit.store.canonical import Json


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


def answer_of(
    printed: Hash,
    ledger: Ledger,
    record: Record,
    *,
    recorder: Recorder,
    asked: Mapping[str, str | None],
    output_type: Hash,
    role: Role,
    is_link: Callable[[str], bool],
) -> Answer | Failure:
    """Return what the node amounts to that an adapter printed.

    Args:
        printed: Its hash.
        ledger: Where it stands, if not in the thread.
        record: The thread.
        recorder: Makes of it what may be recorded.
        asked: What a StepNode must say of the step it was asked for.
        output_type: The hash of the role's schema.
        role: The role asked.
        is_link: Whether a string may link.
    """
    try:
        answer = _from_node(ledger, record, printed, asked)
    except UwfError as exc:
        return Failure(phase="agent", message=f"adapter's node: {exc.message}")
    if isinstance(answer, Failure):
        return answer
    # What an adapter stored by itself is masked here; the step gets nodes of its own.
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
