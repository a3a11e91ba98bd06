"""Threads and steps as markdown that people read, within a quota of characters."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.output import (
    count_of,
    format_duration,
    format_fields,
    format_time,
)
from uwfgit.cli.frame.screen import shown, shown_lines
from uwfgit.cli.thread.payloads import duration_ms
from uwfgit.engine.ask.prompt import fence
from uwfgit.engine.run.telling import with_notes
from uwfgit.errors import NotFoundError, first_of
from uwfgit.ids import ThreadId, find_hash
from uwfgit.model.ledger.prices import Cost, cost_from_payload
from uwfgit.model.thread.attempts import Attempt, find_last_attempt
from uwfgit.model.thread.derive import output_file
from uwfgit.model.thread.hold import HELD, find_hold
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.step import Step
from uwfgit.model.wording import without_mark
from uwfgit.shell import quote_word

if TYPE_CHECKING:
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.thread.step import Child

SEPARATOR: Final = "\n\n---\n\n"
_HEADER_ROOM: Final = 200


def thread_markdown(
    record: Record,
    *,
    status: str,
    quota: int,
    before: str | None,
    with_start: bool,
    above: str | None,
    only: Collection[str | None] | None,
) -> str:
    """Write a thread as markdown, the newest steps within the quota.

    At least one step is shown however long it is; a line names the command
    for the steps left out.

    Args:
        record: The thread.
        status: Its status, ``running`` too.
        quota: Characters that the steps may take.
        before: Show only steps older than this one (hash or number).
        with_start: Show the task in spite of ``before``.
        above: What it is a step of, in a line.
        only: Show no other steps than those of these hashes.

    Raises:
        NotFoundError: There is no step ``before``.
    """
    steps = record.steps()
    if before is not None:
        steps = steps[: _find_index(steps, before, record.tip.thread)]
    if only is not None:
        steps = tuple(step for step in steps if step.hash in only)
    blocks = _step_blocks(record, steps)
    first = _first_within(blocks, quota)
    parts = [_thread_head(record, status, above)]
    if (before is None and only is None) or with_start:
        parts.append(f"## Task\n\n{fence(shown_lines(record.start.prompt).strip())}")
    if first:
        oldest = steps[first].hash
        parts.append(
            f"*{count_of(first, 'earlier step')} left out; read on with* "
            f"`uwf thread read {record.tip.thread} --before {oldest}`"
        )
    if only is not None and not steps:
        parts.append("*No step is new.*")
    head = "\n\n".join(parts)
    failed = None if before is not None else find_last_attempt(record)
    tail = [] if failed is None else [_attempt_block(failed)]
    return SEPARATOR.join([head, *blocks[first:], *tail]) + "\n"


def _attempt_block(failed: Attempt) -> str:
    """Write the failed try a thread waits after."""
    lines = [
        f"## Step {failed.number}: {shown(failed.role)}, failed",
        shown(failed.error),
    ]
    if failed.said:
        lines.append(f"It said last: {shown(failed.said)}")
    return "\n\n".join(lines)


def _find_index(steps: Sequence[Step], before: str, thread: ThreadId) -> int:
    wanted = find_hash(before)
    number = before.rpartition(":")[2]
    for index, step in enumerate(steps):
        if step.hash == wanted or number == str(step.number):
            return index
    raise NotFoundError("step", before, hint=f"list them with: uwf step list {thread}")


def _thread_head(record: Record, status: str, above: str | None) -> str:
    state = record.tip.state
    lines = [
        f"# Thread {state.thread}",
        "",
        f"Workflow: {shown(state.workflow_name)} (`{state.workflow_hash}`)  ",
        f"Status: {status}, {count_of(state.steps, 'step')}",
    ]
    if state.status == "suspended" and state.suspend_message:
        lines[-1] += "  "
        role = shown(state.suspended_role or "-")
        held = find_hold(record.store, record.tip.commit, state)
        has_failed = find_last_attempt(record) and state.retry_at_ms is None
        if held is None:
            word = "Failed" if has_failed else "Waiting"
            lines.append(f"{word}: {role}: {shown(state.suspend_message)}")
        else:
            lines.append(f"{HELD.capitalize()}: {shown(held)}")
    if above is not None:
        lines[-1] += "  "
        lines.append(above)
    return "\n".join(lines)


def _step_blocks(record: Record, steps: Sequence[Step]) -> list[str]:
    blocks = []
    seen: set[str] = set()
    noted = with_notes(record, reversed(steps))
    told = {step.hash: note for step, note in noted}
    for step in steps:
        role = record.workflow.roles.get(step.role)
        # A role that a workflow does has none.
        goal = role.goal if role is not None and step.role not in seen else ""
        seen.add(step.role)
        blocks.append(_step_block(step, goal, told[step.hash]))
    return blocks


def _step_block(step: Step, goal: str, note: str | None) -> str:
    parts = [f"## Step {step.number}: {shown(step.role)} `{step.hash}`", _facts(step)]
    if step.child is not None:
        parts.append(done_by(step.child))
    if goal:
        parts.append(_fenced("Goal", shown_lines(goal)))
    parts.append(_quoted(step.edge_prompt))
    if note:
        parts.append(_fenced("Note", shown_lines(note)))
    parts.append(_fenced("Output", _output_text(step)))
    parts += [f"*warning: {shown(warning)}*" for warning in step.warnings]
    return "\n\n".join(parts)


def _fenced(label: str, text: str) -> str:
    """Put what was said in a fence it cannot close: no heading in it is one of ours."""
    return f"**{label}**\n\n{fence(text.strip())}"


def _facts(step: Step) -> str:
    facts = [
        shown(step.agent),
        format_time(step.completed_at_ms),
        format_duration(duration_ms(step)),
    ]
    return ", ".join(fact for fact in facts if fact)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in shown_lines(text).splitlines())


def _output_text(step: Step) -> str:
    return shown_lines(output_file(step.output, step.body).decode()).strip()


def _first_within(blocks: Sequence[str], quota: int) -> int:
    """Return the index of the oldest block that fits, counted from the newest."""
    used = 0
    for index in range(len(blocks) - 1, -1, -1):
        used += len(blocks[index]) + len(SEPARATOR)
        if used > quota and index < len(blocks) - 1:
            return index + 1
    return 0


def step_markdown(
    thread: ThreadId, step: Step, detail: Mapping[str, Any], *, quota: int
) -> str:
    """Write one step as markdown: what was asked, the output, the agent's turns.

    A single turn without tools is the reply itself and is not repeated.
    """
    head = f"# Step {thread}:{step.number}: {shown(step.role)} `{step.hash}`"
    done = [] if step.child is None else [done_by(step.child)]
    parts = [head, _facts(step), *done, _quoted(step.edge_prompt)]
    if step.note:
        parts.append(_fenced("Note", shown_lines(step.note)))
    parts.append(_fenced("Output", _output_text(step)))
    parts += [f"*warning: {shown(warning)}*" for warning in step.warnings]
    turns = detail.get("turns") or []
    if len(turns) > 1 or any(turn.get("toolCalls") for turn in turns):
        room = quota - sum(len(part) for part in parts) - _HEADER_ROOM
        parts.append(_turns_within(turns, room, thread, step))
    return "\n\n".join(parts) + "\n"


def _turns_within(
    turns: Sequence[Mapping[str, Any]], quota: int, thread: ThreadId, step: Step
) -> str:
    blocks = [turn_markdown(turn, number) for number, turn in enumerate(turns, 1)]
    first = _first_within(blocks, quota)
    lines = ["## Turns"]
    if first:
        lines.append(
            f"*{count_of(first, 'earlier turn')} left out; see all with* "
            f"`uwf step turns {thread} --role {quote_word(step.role)}`"
        )
    return "\n\n".join([*lines, *blocks[first:]])


def turn_markdown(turn: Mapping[str, Any], number: int) -> str:
    """Write one turn: who, what was said, and the tools that were used."""
    content = shown_lines(str(turn.get("content", ""))).strip()
    head = f"**{number}. {shown(str(turn.get('role', '-')))}**"
    # In a fence, or what was said could show a step that never was.
    lines = [f"{head}\n\n{fence(content)}" if content else head]
    for call in turn.get("toolCalls") or []:
        given = call.get("arguments")
        text = (
            given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        )
        lines.append(f"- {shown(str(call.get('name', '-')))}: `{shown(text)}`")
    return "\n".join(lines)


def thread_text(
    context: CommandContext,
    thread: dict[str, Any],
    *,
    kin: Sequence[tuple[str, str]],
    held: str | None,
) -> str:
    """Write a thread's state for people, from its payload.

    Args:
        context: The command's.
        thread: Its payload.
        kin: The threads above and below it, as fields.
        held: Why the supervisor holds it.
    """
    origin = thread["forkedFrom"]
    fields = [
        ("thread", thread["threadId"]),
        ("task", without_mark(thread["task"] or "") or None),
        ("workflow", f"{thread['workflowName']} ({thread['workflowHash']})"),
        ("status", thread["status"]),
        ("role", thread["suspendedRole"] or thread["currentRole"]),
        ("steps", str(thread["steps"])),
        ("head", thread["head"]),
        ("commit", thread["oid"]),
        ("started", f"{format_time(thread['startedAtMs'])} by {thread['by']}"),
        ("updated", format_time(thread["updatedAtMs"])),
        ("usage", _usage_text(thread["usage"], cost_from_payload(thread["cost"]))),
        ("shared", thread["shared"]),
    ]
    if origin is not None:
        fields.append(
            ("fork of", f"{origin['thread']}:{origin['number']} ({origin['step']})")
        )
    fields += kin
    fields += [
        (f"input {name}", json.dumps(value, ensure_ascii=False))
        for name, value in (thread["inputs"] or {}).items()
    ]
    if held is not None:
        fields.append(("waiting", f"{HELD}: {held}"))
    elif thread["suspendMessage"]:
        has_failed = thread["attempt"] and thread["retryAtMs"] is None
        word = "failed" if has_failed else "waiting"
        fields.append((word, thread["suspendMessage"]))
    if thread["retryAtMs"] is not None:
        fields.append(("until", format_time(thread["retryAtMs"])))
    if thread["note"]:
        fields.append(("note", thread["note"]))
    if thread["warnings"]:
        told = f"step {thread['steps']}: {first_of(thread['warnings'])}"
        fields.append(("warnings", told))
    if thread["attempt"] and thread["attempt"]["saidLast"]:
        fields.append(("said last", thread["attempt"]["saidLast"]))
    text = format_fields(context.output, fields)
    if thread["summary"] is None:
        return text
    told = shown_lines(thread["summary"]["text"]).strip()
    return f"{text}\n\nsummary by {shown(thread['summary']['by'])}:\n{told}"


def _usage_text(usage: dict[str, Any] | None, cost: Cost | None) -> str | None:
    if usage is None:
        return None
    parts = [
        count_of(usage["turns"], "turn"),
        f"{usage['inputTokens']} tokens in",
        f"{usage['outputTokens']} out",
        format_duration(usage["durationMs"]) or "-",
    ]
    if cost is not None:
        parts.append(str(cost))
    return ", ".join(parts)


def done_by(child: Child) -> str:
    """Write where the work of a step is read that another thread did."""
    return f"*Done by a thread:* `uwf thread read {child.thread}`"


def parent_note(ledger: Ledger, record: Record) -> str | None:
    """Write what a thread is a step of, in a line of markdown."""
    from uwfgit.model.ledger.kin import find_parent_step

    found = find_parent_step(ledger, record)
    if found is None:
        return None
    return f"Does: {_place(*found)}"


def _place(thread: ThreadId, number: int) -> str:
    return f"step {number} of {thread}" if number else f"a step of {thread}, not here"


def kin_fields(ledger: Ledger, thread: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what ``thread show`` says of a thread's kin, by its payload."""
    from uwfgit.ids import ThreadId
    from uwfgit.model.ledger.kin import find_step_number

    if thread["parent"] is not None:
        above = ThreadId(thread["parent"]["thread"])
        number = find_step_number(ledger, above, thread["parent"]["step"])
        yield "does", _place(above, number)
    for child in thread["children"]:
        yield "child", f"{child} {_state(ledger, ThreadId(child))}"


def _state(ledger: Ledger, thread: ThreadId) -> str:
    from uwfgit.errors import NotFoundError, UwfError
    from uwfgit.model.ledger.standing import is_running
    from uwfgit.model.thread.tip import load_tip

    try:
        state = load_tip(ledger.store, thread).state
    except NotFoundError:
        return "not here"
    except UwfError:
        return "corrupt"
    status = "running" if is_running(ledger.store, thread) else state.status
    return f"{shown(state.workflow_name)}, {status}"


def kin_lines(ledger: Ledger, record: Record) -> Iterator[str]:
    """Yield where the history of a thread goes on above and below, a line each."""
    from uwfgit.model.ledger.kin import find_parent_step

    above = find_parent_step(ledger, record)
    if above is not None:
        yield f"it does {_place(*above)}"
    for step in record.steps():
        if step.child is not None:
            way = f"uwf thread log {step.child.thread}"
            yield f"step {step.number} was done by a thread: {way}"
