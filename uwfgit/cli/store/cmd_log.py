"""Commands about the program's own log: list, show and clean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from uwfgit.cli.frame.arguments import parse_time, require_least
from uwfgit.cli.frame.commands import add_command, make_group
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import Column, count_of, format_table, format_time
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.frame.world import now_ms
from uwfgit.errors import NotFoundError

if TYPE_CHECKING:
    from uwfgit.store.log import LogFile

_TOLD: Final = ("time", "event", "pid")
"""What a line needs no name for, or leaves out."""

app = make_group("Look at the program's own log.")

_KEPT: Final = "30d"


@add_command(app, "list")
def list_(ctx: typer.Context) -> None:
    """List the log's files: days, background workers, crashes."""
    context = get_context(ctx)
    items = [_item(log) for log in _find(context)]
    columns = [
        Column(title="NAME", flexible=True),
        Column(title="KIND"),
        Column(title="BYTES", right=True),
        Column(title="CHANGED"),
    ]
    rows = [
        (
            item["name"],
            item["kind"],
            f"{item['bytes']:,}",
            format_time(item["changedAtMs"]),
        )
        for item in items
    ]
    context.output.emit(
        {"items": items},
        lambda: format_table(context.output, columns, rows) if rows else "",
    )
    if not items and context.output.is_text:
        context.output.say("nothing is logged")


def _find(context: CommandContext) -> tuple[LogFile, ...]:
    from uwfgit.store.log import LOGS, list_logs

    return list_logs(context.open_store().state_dir / LOGS)


def _item(log: LogFile) -> dict[str, Any]:
    return {
        "name": log.name,
        "kind": log.kind,
        "bytes": log.size,
        "changedAtMs": int(log.changed * 1000),
        "path": str(log.path),
    }


@add_command(app, "show")
def show(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="A day, or a thread for its worker's; else all days."
        ),
    ] = None,
    thread: Annotated[
        str | None,
        typer.Option("--thread", metavar="THREAD", help="Only events of this thread."),
    ] = None,
    event: Annotated[
        str | None,
        typer.Option("--event", metavar="NAME", help="Only events of this name."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", help="The newest so many.")
    ] = 100,
) -> None:
    """Show what was logged, the newest last: steps begun and ended, leftovers removed.

    A file that is not a day's is printed as it is.
    """
    from uwfgit.model.ledger.ledger import resolve_thread
    from uwfgit.store.log import read_events

    context = get_context(ctx)
    require_least(0, limit=limit)
    files = [
        log
        for log in _find(context)
        if name in (None, log.name)
        or (log.kind == "worker" and log.name.startswith(str(name).upper()))
    ]
    if name is not None and not files:
        raise NotFoundError("log", name, hint="`uwf log list` shows what there is")
    if name is not None and files[0].kind != "day":
        _show_whole(context, files[0])
        return
    wanted = resolve_thread(context.open_ledger(), thread) if thread else None
    days = sorted(log.path for log in files if log.kind == "day")
    found = [
        each
        for day in days
        for each in read_events(day)
        if event in (None, each["event"]) and wanted in (None, each.get("thread"))
    ]
    found = found[max(0, len(found) - limit) :]
    context.output.emit({"items": found}, lambda: "\n".join(map(_line, found)))
    if not found and context.output.is_text:
        context.output.say("nothing like that is logged")


def _show_whole(context: CommandContext, log: LogFile) -> None:
    text = log.path.read_bytes().decode(errors="replace")
    if context.output.is_text:
        context.output.emit_document(text)
    else:
        context.output.emit({**_item(log), "text": text}, str)


def _line(event: Mapping[str, Any]) -> str:
    facts = [f"{name}={value}" for name, value in event.items() if name not in _TOLD]
    moment = str(event.get("time", ""))[:19].replace("T", " ")
    return shown(f"{moment}  {event['event']:<16}  {' '.join(facts)}")


@add_command(app, "clean")
def clean(
    ctx: typer.Context,
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="TIME", help="30d unless given; or a date."),
    ] = None,
) -> None:
    """Remove what was logged before a time; files of running workers stay."""
    from uwfgit.model.ledger.standing import find_running

    context = get_context(ctx)
    limit = parse_time(before or _KEPT, option="--before", now_ms=now_ms()) / 1000
    store = context.open_store()
    running = find_running(store)
    removed = []
    for log in _find(context):
        if log.changed < limit and log.name not in running:
            log.path.unlink(missing_ok=True)
            removed.append(_item(log))
    context.output.emit(
        {"items": removed},
        lambda: f"removed {count_of(len(removed), 'file')}",
    )
