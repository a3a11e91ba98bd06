"""Commands about single steps: list, show, read, turns and fork."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uwfgit.cli.code.cmd_changes import (
    DIFF_SETTINGS,
    diff_command,
    list_step_files,
)
from uwfgit.cli.code.place import file_line
from uwfgit.cli.frame.arguments import ThreadArgument, require_least
from uwfgit.cli.frame.commands import add_command, make_group
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import (
    Column,
    Output,
    count_of,
    format_duration,
    format_fields,
    format_json,
    format_table,
    format_time,
)
from uwfgit.cli.frame.screen import shown, shown_lines
from uwfgit.cli.thread.cmd_open import ask_command
from uwfgit.cli.thread.next_command import way_on
from uwfgit.constants import READ_CHARS
from uwfgit.model.picture.columns import wrap

if TYPE_CHECKING:
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.thread.record import Record
    from uwfgit.model.thread.step import Step
    from uwfgit.model.thread.tip import Tip

app = make_group("Look at single steps of a thread.")

"""Characters of a text for people, unless they ask for another number."""

StepArgument = Annotated[
    str, typer.Argument(metavar="STEP", help="A step's hash, or THREAD:NUMBER.")
]


@add_command(app, "list")
def list_steps(ctx: typer.Context, thread: ThreadArgument) -> None:
    """List the steps of a thread, oldest first, failed tries where they belong."""
    from uwfgit.cli.thread.next_command import way_on
    from uwfgit.cli.thread.payloads import attempt_item, step_item
    from uwfgit.model.ledger.ledger import find_tip
    from uwfgit.model.thread.attempts import find_last_attempt, list_attempts
    from uwfgit.model.thread.record import open_record

    context = get_context(ctx)
    ledger = context.open_ledger()
    tip = find_tip(ledger, thread)
    record = open_record(ledger.store, tip, checked=False)
    items = [step_item(record, step) for step in record.steps()]
    attempts = [attempt_item(attempt) for attempt in list_attempts(record)]
    if not items and context.output.is_text:
        context.output.say("no steps yet")
    context.output.emit(
        {"threadId": tip.thread, "items": items, "attempts": attempts},
        lambda: _items_text(context, [*items, *attempts]),
    )
    waiting = find_last_attempt(record) if context.output.is_text else None
    if waiting is not None:
        if waiting.said:
            context.output.say(f"the last try said last: {shown(waiting.said)}")
        context.output.say(way_on(ledger, tip.thread, tip.state.status))


def _items_text(context: CommandContext, items: list[dict[str, Any]]) -> str:
    if not items:
        return ""
    columns = [
        Column(title="STEP", right=True),
        Column(title="HASH"),
        Column(title="ROLE", flexible=True),
        Column(title="STATUS", flexible=True),
        Column(title="AGENT", flexible=True),
        Column(title="DURATION", right=True),
    ]
    items = sorted(items, key=lambda item: (item["number"], "error" not in item))
    rows: list[tuple[str | None, ...]] = [
        (
            str(item["number"]),
            item["hash"],
            item["role"],
            item["status"],
            item["agent"],
            format_duration(item["durationMs"]),
        )
        for item in items
    ]
    counts = [len(item.get("warnings", ())) for item in items]
    if any(counts):
        columns.append(Column(title="WARNINGS", right=True))
        rows = [
            (*row, str(count or "")) for row, count in zip(rows, counts, strict=True)
        ]
    return format_table(context.output, columns, rows)


@add_command(app, "show")
def show_step(ctx: typer.Context, step: StepArgument) -> None:
    """Show everything recorded of a step."""
    from uwfgit.cli.thread.payloads import step_payload
    from uwfgit.model.ledger.ledger import resolve_step

    context = get_context(ctx)
    ledger = context.open_ledger()
    record, found = resolve_step(ledger, step)
    detail = _load_detail(record, found)
    payload = {
        **step_payload(record, found, detail),
        "files": list_step_files(context, ledger, record, found),
    }
    context.output.emit(payload, lambda: _step_text(context, payload))


def _load_detail(record: Record, step: Step) -> Any:  # noqa: ANN401 - a JSON value
    from uwfgit.model.node import DETAIL_TYPE

    return record.node(step.detail_hash, DETAIL_TYPE).payload


def _step_text(context: CommandContext, step: dict[str, Any]) -> str:
    from uwfgit.model.ledger.prices import cost_from_payload

    detail = step["detail"]
    usage = step["usage"]
    cost = cost_from_payload(step["cost"])
    files = step["files"]
    if files is not None:
        files = "\n".join(map(file_line, files)) or "none changed"
    fields = [
        ("step", f"{step['threadId']}:{step['number']}"),
        ("hash", step["hash"]),
        ("role", step["role"]),
        ("reported", step["status"]),
        ("agent", step["agent"]),
        *([("done by", step["child"]["thread"])] if step["child"] else []),
        ("kind", detail.get("kind")),
        ("model", detail.get("model")),
        ("started", format_time(step["startedAtMs"])),
        ("duration", format_duration(step["durationMs"])),
        (
            "tokens",
            f"{usage['inputTokens']} in, {usage['outputTokens']} out"
            if usage
            else None,
        ),
        ("cost", None if cost is None else str(cost).removeprefix("cost ")),
        ("folder", step["cwd"]),
        ("code", f"{step['code']['before'] or '-'} -> {step['code']['after'] or '-'}"),
        ("files", files),
        ("shared", " ".join(step["code"].get("shared", [])) or None),
        ("asked", step["edgePrompt"]),
        ("note", step["note"]),
        ("attempts", " ".join(step["previousAttempts"]) or None),
        ("warnings", "\n".join(step["warnings"]) or None),
        ("turns", str(len(detail.get("turns") or []))),
    ]
    head = format_fields(context.output, fields, status="")
    output = _output_text(context.output, step["output"])
    body = wrap(shown_lines(step["body"]).strip(), context.output.width)
    return f"{head}\n\noutput\n{output}" + (f"\n\n{body}" if body else "")


def _output_text(output: Output, value: dict[str, Any]) -> str:
    if output.width is None:
        return format_json(value)
    fields = [
        (shown(name), each if isinstance(each, str) else format_json(each))
        for name, each in value.items()
    ]
    return format_fields(output, fields, status="")


@add_command(app, "read")
def read_step(
    ctx: typer.Context,
    step: StepArgument,
    quota: Annotated[
        int, typer.Option("--quota", metavar="N", help="Characters for the turns.")
    ] = READ_CHARS,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="The whole prompt the agent got instead.")
    ] = False,
) -> None:
    """Read a step as markdown."""
    from uwfgit.cli.thread.reading import step_markdown
    from uwfgit.model.ledger.ledger import resolve_step

    context = get_context(ctx)
    require_least(1, quota=quota)
    record, found = resolve_step(context.open_ledger(), step)
    detail = _load_detail(record, found)
    if prompt:
        text = shown_lines(detail.get("assembledPrompt") or "not recorded\n")
    else:
        text = step_markdown(record.tip.thread, found, detail, quota=quota)
    head = {"threadId": record.tip.thread, "hash": found.hash}
    emit_markdown(context, head, text)


def emit_markdown(context: CommandContext, head: dict[str, Any], text: str) -> None:
    """Print markdown for people, or an object that holds it."""
    if context.output.is_text:
        context.output.emit_document(text)
    else:
        context.output.emit({**head, "text": text}, str)


@add_command(app, "turns")
def turns(
    ctx: typer.Context,
    thread: ThreadArgument,
    role: Annotated[
        str | None, typer.Option("--role", metavar="ROLE", help="Only of this role.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help="At most so many turns.")
    ] = None,
    offset: Annotated[
        int, typer.Option("--offset", metavar="N", help="Leave out the first N turns.")
    ] = 0,
    live: Annotated[
        bool, typer.Option("--live", help="Those of the step that runs now, so far.")
    ] = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", "-f", help="Go on until nothing runs; implies --live."
        ),
    ] = False,
) -> None:
    """Show what agents said and did, turn by turn, in all steps of a thread.

    With --live those of the running step, as they come; an adapter and a script
    show theirs at their end only.
    """
    if follow:
        from uwfgit.cli.live.following import follow_live

        follow_live(get_context(ctx), thread, role=role)
        return
    from uwfgit.engine.ask.live import read_live
    from uwfgit.model.ledger.ledger import find_tip
    from uwfgit.model.ledger.standing import is_running
    from uwfgit.model.thread.record import open_record

    context = get_context(ctx)
    require_least(0, limit=limit, offset=offset)
    ledger = context.open_ledger()
    tip = find_tip(ledger, thread)
    head: dict[str, Any] = {"threadId": tip.thread}
    none = "no turns recorded"
    if live:
        head["running"] = is_running(ledger.store, tip.thread)
        none = "no turns so far" if head["running"] else "no step is running"
        found = read_live(ledger.store, tip.thread) if head["running"] else []
        found = [turn for turn in found if role in (None, turn["of"])]
    else:
        found = list(_iter_turns(open_record(ledger.store, tip), role))
    items = [{"number": number, **turn} for number, turn in enumerate(found, 1)]
    page = items[offset : None if limit is None else offset + limit]
    if context.output.is_text:
        text = _turns_text(tip.thread, items, page, none=none)
        context.output.emit_document(text)
    else:
        context.output.emit({**head, "items": page}, str)


def _iter_turns(record: Record, role: str | None) -> Iterator[dict[str, Any]]:
    for step in record.steps():
        if role is not None and step.role != role:
            continue
        for turn in _load_detail(record, step).get("turns") or []:
            yield {"step": step.number, "of": step.role, **turn}


def _turns_text(
    thread: str, items: list[dict[str, Any]], page: list[dict[str, Any]], *, none: str
) -> str:
    from uwfgit.cli.thread.reading import turn_markdown

    parts = [f"# Turns of thread {thread}"]
    counts: dict[int, int] = {}
    for item in items:
        counts[item["step"]] = counts.get(item["step"], 0) + 1
    heading = None
    for item in page:
        if item["step"] != heading:
            heading = item["step"]
            count = count_of(counts[heading], "turn")
            parts.append(f"## Step {heading}: {shown(item['of'])} ({count})")
        parts.append(turn_markdown(item, item["number"]))
    if not page:
        parts.append(none)
    return "\n\n".join(parts) + "\n"


add_command(app, "ask")(ask_command)
add_command(app, "diff", settings=DIFF_SETTINGS)(diff_command)


@add_command(app, "fork")
def fork(ctx: typer.Context, step: StepArgument) -> None:
    """Branch a new thread off at a step."""
    fork_step(get_context(ctx), step)


def fork_step(context: CommandContext, text: str) -> None:
    """Fork at a step named by hash or as THREAD:NUMBER."""
    from uwfgit.engine.run.thread import fork_thread
    from uwfgit.model.ledger.ledger import resolve_step, resolve_thread

    ledger = context.open_ledger(write=True, create=False)
    thread, colon, number = text.rpartition(":")
    if colon and number == "0":
        tip = fork_thread(ledger, resolve_thread(ledger, thread), at=0)
    else:
        record, found = resolve_step(ledger, text)
        tip = fork_thread(ledger, record.tip.thread, step=found.hash)
    emit_fork(context, ledger, tip)


def place_of(ledger: Ledger, text: str) -> tuple[str, int]:
    """Return the thread and number of a step named by hash or as THREAD:NUMBER."""
    from uwfgit.model.ledger.ledger import resolve_step

    thread, colon, number = text.rpartition(":")
    if colon and number == "0":
        return thread, 0
    record, found = resolve_step(ledger, text)
    return record.tip.thread, found.number


def emit_fork(context: CommandContext, ledger: Ledger, tip: Tip) -> None:
    """Print a new fork and the command that runs it."""
    ledger.local.set_last(tip.thread)
    origin = tip.state.forked_from
    assert origin is not None  # noqa: S101 - what a fork is
    payload = {
        "threadId": tip.thread,
        "forkedFrom": {"thread": origin.thread, "step": origin.step},
    }
    fields = [
        ("thread", tip.thread),
        ("fork of", f"{origin.thread}:{origin.number} ({origin.step})"),
    ]
    context.output.emit(payload, lambda: format_fields(context.output, fields))
    if context.output.is_text:
        context.output.say(way_on(ledger, tip.thread, tip.state.status))
