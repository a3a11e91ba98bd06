"""Commands about a remote's queue: list, release, retry, clear, pause and unpause."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from uwfgit.cli.frame.commands import add_command, add_later, make_group
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.share.remote_session import open_wire, take_remote
from uwfgit.errors import AmbiguousError, NotFoundError, StateError, UsageError
from uwfgit.shell import quote_word
from uwfgit.spelling import match_ids

if TYPE_CHECKING:
    from uwfgit.fleet.queue import Contents, Queue
    from uwfgit.ids import ThreadId
    from uwfgit.sync.exchange.queue_entry import Entry

app = make_group("See and steer the queue of a remote.")
add_later(app, "map", where="fleet.cmd_map:map_command")

RemoteArgument = Annotated[
    str | None,
    typer.Argument(metavar="[REMOTE]", help="Whose queue; else the one there is."),
]
_COLORS: Final = {"done": "end", "claimed": "running", "waiting": "suspended"}
_WATCH_SECONDS: Final = 2.0


@contextmanager
def open_queue(
    context: CommandContext, remote: str | None, *, write: bool = True
) -> Iterator[Queue]:
    """Open the queue of a remote, by default the one that other commands would use.

    Raises:
        NotFoundError, UsageError, RemoteError: As choosing a remote says.
    """
    from uwfgit.fleet.queue import Queue

    ledger = context.open_ledger(write=write, create=False)
    there, rest = take_remote(context, ledger.store, [remote] if remote else [])
    if rest:
        raise NotFoundError("remote", rest[0], hint="list them: `uwf remote list`")
    with open_wire(context) as wire:
        yield Queue(ledger=ledger, remote=there, wire=wire)


def check_name(name: str) -> str:
    """Return what a worker, or a batch, is called, if it may be called so.

    Raises:
        UsageError: It may not.
    """
    from uwfgit.sync.exchange.queue_state import is_worker_name

    if not is_worker_name(name):
        raise UsageError(f"--name: '{name}' is not 1 to 64 of A-Z a-z 0-9 . _ -")
    return name


@add_command(app, "list", "ls")
def list_(
    ctx: typer.Context,
    remote: RemoteArgument = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again and again, until Ctrl-C.")
    ] = False,
) -> None:
    """List the threads of a queue: who has them, since when, and what they wait for."""
    context = get_context(ctx)
    with open_queue(context, remote) as queue:
        while True:
            contents = queue.fetch()
            items = [_item(queue, entry) for entry in contents.entries.values()]
            payload = {"items": items, "paused": contents.is_paused}
            context.output.emit(payload, lambda p=payload: _text(context, p))  # type: ignore[misc]
            for name, why in sorted(contents.bad.items()):
                context.output.warn(f"queue ref {name}: {why}")
            if not watch:
                return
            time.sleep(_WATCH_SECONDS)


def _item(queue: Queue, entry: Entry) -> dict[str, Any]:
    state = entry.state
    return {
        "threadId": state.thread,
        "state": state.word,
        "worker": state.worker,
        "leaseSeconds": state.lease,
        "reason": state.reason,
        "retryAtMs": state.retry_at_ms,
        "head": state.head,
        "oid": entry.oid,
        "by": entry.by,
        "sinceMs": entry.committed_at * 1000,
        "ageMs": max(queue.ledger.now_ms() - entry.committed_at * 1000, 0),
    }


def _text(context: CommandContext, payload: dict[str, Any]) -> str:
    lines = ["the queue is paused: uwf fleet unpause"] if payload["paused"] else []
    for item in payload["items"]:
        word = context.output.paint(
            item["state"].ljust(8), _COLORS.get(item["state"], "")
        )
        age = _age(item["ageMs"] // 1000)
        more = item["worker"] or item["reason"] or ""
        lease = item["leaseSeconds"] if item["state"] == "claimed" else None
        if lease is not None and item["ageMs"] > lease * 1000:
            more += "  its lease is over"
        lines.append(f"{item['threadId']}  {word}  {age:>4}  {shown(more)}".rstrip())
    return "\n".join(lines or ["the queue is empty"])


def _age(seconds: int) -> str:
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


@add_command(app, "release")
def release(
    ctx: typer.Context,
    thread: Annotated[
        str, typer.Argument(metavar="THREAD", help="Whose claim is given up.")
    ],
    remote: RemoteArgument = None,
) -> None:
    """Give a claimed thread back to the queue, as when its worker is dead.

    A worker that lives after all loses the claim: what it does from then on is
    set aside on its machine, and not lost.
    """
    from uwfgit.fleet.steer import queue_again

    context = get_context(ctx)
    with open_queue(context, remote) as queue:
        entry = _find(queue, queue.fetch(), thread)
        if entry.state.word != "claimed":
            raise StateError(
                f"thread {entry.state.thread} is not claimed, it is {entry.state.word}"
            )
        queue_again(queue, entry, "released by hand")
        payload = {"threadId": entry.state.thread, "state": "queued"}
        context.output.emit(payload, lambda: f"released {entry.state.thread}")


def _find(queue: Queue, contents: Contents, name: str) -> Entry:
    """Find a thread of the queue by its id, or a unique start or end of it.

    Raises:
        NotFoundError, AmbiguousError: It is not in the queue, or several are.
    """
    found = match_ids(name, contents.entries)
    if len(found) > 1:
        raise AmbiguousError("queued thread", name, found)
    if not found:
        hint = f"`uwf fleet list {quote_word(queue.remote.name)}`"
        raise NotFoundError("queued thread", name, hint=hint)
    return contents.entries[found[0]]


@add_command(app, "retry")
def retry(
    ctx: typer.Context,
    remote: RemoteArgument = None,
    stuck: Annotated[
        bool, typer.Option("--stuck", help="Only those claimed often without a step.")
    ] = False,
) -> None:
    """Queue again the threads that wait."""
    from uwfgit.fleet.steer import retry as queue_again

    context = get_context(ctx)
    with open_queue(context, remote) as queue:
        items = [
            {"threadId": thread, "queued": why is None, "why": why}
            for thread, why in queue_again(queue, queue.fetch(), only_stuck=stuck)
        ]
    context.output.emit({"items": items}, lambda: _told(items, "queued"))
    raise typer.Exit(0 if all(item["queued"] for item in items) else 1)


def _told(items: list[dict[str, Any]], word: str) -> str:
    lines = [
        f"{word}  {item['threadId']}"
        if item.get("why") is None
        else f"left    {item['threadId']}  {shown(str(item['why']))}"
        for item in items
    ]
    return "\n".join(lines or [f"nothing to be {word}"])


@add_command(app, "clear")
def clear(
    ctx: typer.Context,
    remote: RemoteArgument = None,
    done: Annotated[bool, typer.Option("--done", help="Those that are done.")] = False,
) -> None:
    """Take the threads that are done out of the queue; the threads themselves stay."""
    from uwfgit.fleet.steer import clear as take_out

    if not done:
        raise UsageError("say what to clear", hint="`uwf fleet clear --done`")
    context = get_context(ctx)
    with open_queue(context, remote) as queue:
        gone = take_out(queue, queue.fetch())
    items: list[dict[str, Any]] = [{"threadId": thread} for thread in gone]
    context.output.emit({"items": items}, lambda: _told(items, "cleared"))


@add_command(app, "pause")
def pause(ctx: typer.Context, remote: RemoteArgument = None) -> None:
    """Let no worker take more threads; those at work go on."""
    _set_paused(ctx, remote, paused=True)


@add_command(app, "unpause")
def unpause(ctx: typer.Context, remote: RemoteArgument = None) -> None:
    """Let workers take threads again."""
    _set_paused(ctx, remote, paused=False)


def _set_paused(ctx: typer.Context, remote: str | None, *, paused: bool) -> None:
    context = get_context(ctx)
    with open_queue(context, remote) as queue:
        queue.fetch()
        changed = queue.pause() if paused else queue.unpause()
    word = "paused" if paused else "open"
    context.output.emit(
        {"paused": paused, "changed": changed},
        lambda: f"the queue is {word}" if changed else f"the queue was {word} already",
    )


def queue_threads(
    ctx: typer.Context,
    threads: Annotated[
        list[str], typer.Argument(metavar="THREAD...", help="Which threads.")
    ],
    remote: Annotated[
        str | None,
        typer.Option("--remote", metavar="NAME", help="Whose queue; else the one."),
    ] = None,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Take them out of the queue again.")
    ] = False,
) -> None:
    """Push threads and queue them there, for workers to run.

    Only what is queued is run. A thread that waits is queued again.
    """
    from uwfgit.model.ledger.ledger import resolve_thread

    context = get_context(ctx)
    with open_queue(context, remote) as queue:
        found = [resolve_thread(queue.ledger, name) for name in threads]
        act = _cancel if cancel else put_threads
        items = act(context, queue, found)
    word = "cancelled" if cancel else "queued"
    context.output.emit({"items": items}, lambda: _told(items, word))
    raise typer.Exit(0 if all(item["why"] is None for item in items) else 1)


def put_threads(
    context: CommandContext, queue: Queue, threads: Sequence[ThreadId]
) -> list[dict[str, Any]]:
    """Push threads and queue them; say of each why it could not be."""
    from uwfgit.cli.check.checks import make_scan, make_verify
    from uwfgit.fleet.steer import put_all
    from uwfgit.model.thread.tip import load_tip
    from uwfgit.store.layout import thread_ref
    from uwfgit.sync.exchange.exchange import FAILED
    from uwfgit.sync.exchange.push import push

    report = push(
        queue.ledger,
        queue.remote,
        wire=queue.wire,
        verify=make_verify(context),
        scan=make_scan(context, queue.store),
        named=[thread_ref(thread) for thread in threads],
    )
    problems = {
        each.thread: each.message or each.result
        for each in report.outcomes
        if each.thread is not None and each.result in FAILED
    }
    tips = [load_tip(queue.store, each) for each in threads if each not in problems]
    found = {**put_all(queue, queue.fetch(), tips), **problems}
    return [{"threadId": thread, "why": found[thread]} for thread in threads]


def _cancel(
    _: CommandContext, queue: Queue, threads: Sequence[ThreadId]
) -> list[dict[str, Any]]:
    from uwfgit.errors import RejectedError
    from uwfgit.fleet.steer import cancel

    contents = queue.fetch()
    items: list[dict[str, Any]] = []
    for thread in threads:
        entry = contents.entries.get(thread)
        why = None if entry else "it is not in the queue"
        if entry is not None:
            try:
                cancel(queue, entry, worker=f"cancel-{queue.nonce()}")
            except StateError as exc:
                why = exc.message
            except RejectedError as exc:
                why = "; ".join(exc.refs.values())
        items.append({"threadId": thread, "why": why})
    return items
