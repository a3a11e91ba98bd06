"""``thread resolve``: both sides of a diverged thread, and the ways on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uwfgit.cli.check.checks import make_verify
from uwfgit.cli.frame.arguments import ThreadArgument
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import Column, format_fields, format_table, format_time
from uwfgit.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from uwfgit.ids import ThreadId
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.thread.event import Event
    from uwfgit.sync.diverged.diverge import Divergence, Way


def resolve_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    keep_both: Annotated[
        bool,
        typer.Option(
            "--keep-both", help="Yours becomes a new thread; this one is theirs."
        ),
    ] = False,
    keep_theirs: Annotated[
        bool,
        typer.Option(
            "--keep-theirs", help="Theirs goes on; yours stays in the history."
        ),
    ] = False,
    keep_mine: Annotated[
        bool,
        typer.Option("--keep-mine", help="Yours goes on; theirs stays in the history."),
    ] = False,
    remote: Annotated[
        str | None,
        typer.Option("--remote", metavar="NAME", help="Whose side is theirs."),
    ] = None,
) -> None:
    """Show both sides of a diverged thread, or keep one or both.

    Content is never merged and nothing is forced: after a push, everybody else
    fast-forwards.
    """
    from uwfgit.model.ledger.ledger import resolve_thread

    context = get_context(ctx)
    ledger = context.open_ledger(write=True, create=False)
    found = resolve_thread(ledger, thread)
    _require_remote(ledger, found, remote)
    way = _way(both=keep_both, theirs=keep_theirs, mine=keep_mine)
    if way is None:
        _show(context, ledger, found, remote)
    else:
        _resolve(context, ledger, found, way, remote)


def _require_remote(ledger: Ledger, thread: ThreadId, name: str | None) -> None:
    """See to it that what is named is a remote, or has been one of the thread's.

    Raises:
        NotFoundError: It is none.
    """
    from uwfgit.store.refs import find_tracked
    from uwfgit.sync.exchange.remotes import find_remote

    store = ledger.store
    if name is None or name in find_tracked(store, thread):
        return
    if find_remote(store, name) is None:
        raise NotFoundError("remote", name, hint="list them: uwf remote list")


def _way(*, both: bool, theirs: bool, mine: bool) -> Way | None:
    flags: dict[Way, bool] = {"both": both, "theirs": theirs, "mine": mine}
    chosen = [way for way, is_given in flags.items() if is_given]
    if len(chosen) > 1:
        raise UsageError(
            "--keep-both, --keep-theirs and --keep-mine exclude each other"
        )
    return chosen[0] if chosen else None


def _resolve(
    context: CommandContext,
    ledger: Ledger,
    thread: ThreadId,
    way: Way,
    remote: str | None,
) -> None:
    from uwfgit.sync.diverged.diverge import resolve_thread

    done = resolve_thread(
        ledger,
        thread,
        way=way,
        verify=make_verify(context),
        command=context.command,
        remote=remote,
    )
    copy = done.copy.thread if done.copy is not None else None
    payload = {
        "threadId": thread,
        "status": done.tip.state.status,
        "resolved": True,
        "kept": way,
        "oid": done.tip.commit,
        "newThreadId": copy,
    }
    fields = [
        ("thread", thread),
        ("status", done.tip.state.status),
        ("commit", done.tip.commit),
        *([("yours", copy)] if copy else []),
    ]
    context.output.emit(payload, lambda: format_fields(context.output, fields))
    if context.output.is_text:
        context.output.say(f"share it: uwf push {copy or thread}")


def _show(
    context: CommandContext, ledger: Ledger, thread: ThreadId, remote: str | None
) -> None:
    from uwfgit.sync.diverged.diverge import find_divergence, list_sides, ways_out

    divergence = find_divergence(ledger, thread, remote=remote)
    sides = list_sides(ledger, divergence)
    ways = ways_out(ledger, divergence)
    payload = {
        "threadId": thread,
        "status": "diverged",
        "resolved": False,
        "remote": divergence.remote,
        "base": divergence.base,
        "mine": _side(divergence.mine, sides.mine),
        "theirs": _side(divergence.theirs, sides.theirs),
        "ways": [{"command": command, "does": does} for command, does in ways],
    }
    context.output.emit(payload, lambda: _text(context, divergence, payload))


def _side(tip: str, events: Sequence[Event]) -> dict[str, Any]:
    return {"oid": tip, "events": [_event(event) for event in events]}


def _event(event: Event) -> dict[str, Any]:
    return {
        "oid": event.commit.oid,
        "event": event.name,
        "role": event.role,
        "status": event.status,
        "subject": event.commit.message.partition("\n")[0],
        "by": event.commit.committer.who,
        "atMs": event.commit.committer.time * 1000,
    }


def _text(
    context: CommandContext, divergence: Divergence, payload: dict[str, Any]
) -> str:
    columns = [
        Column(title="YOURS", flexible=True),
        Column(title=f"THEIRS ({divergence.remote})", flexible=True),
    ]
    sides = (payload["mine"]["events"], payload["theirs"]["events"])
    rows = [
        (_line(mine), _line(theirs))
        for mine, theirs in zip_longest(*sides, fillvalue=None)
    ]
    ways = "\n".join(
        f"  {way['command']}\n      {way['does']}" for way in payload["ways"]
    )
    table = format_table(context.output, columns, rows)
    return f"since {divergence.base[:12]}:\n{table}\n\nchoose:\n{ways}"


def _line(event: dict[str, Any] | None) -> str | None:
    if event is None:
        return None
    at = format_time(event["atMs"]) or "-"
    return f"{event['oid'][:8]} {event['subject']} ({event['by']}, {at})"
