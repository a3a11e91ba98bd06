"""``thread redact`` and ``thread forget``: what is to be gone from a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from uwfgit.cli.frame.arguments import ThreadArgument, require_least
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import format_fields
from uwfgit.cli.frame.screen import shown
from uwfgit.model.wording import count_of

if TYPE_CHECKING:
    from uwfgit.sync.secrets.redact import Redacted


def redact_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    finding: Annotated[
        str | None,
        typer.Option(
            "--finding",
            metavar="ID",
            help="Only this one, as shown; also one that was let through.",
        ),
    ] = None,
    forks: Annotated[
        bool,
        typer.Option("--forks", help="Forks too that hold it or share what changes."),
    ] = False,
) -> None:
    """Rewrite a thread without the secrets in it.

    For a thread that no remote has seen. The new one has an id of its own and
    [redacted:RULE] where a secret stood; the old one goes to the trash. Threads
    that did steps of it, or whose steps it did, are rewritten with it; one that
    a fork shares gets a copy for the fork too, with --forks. What was let through
    stays while there is more, unless --finding names it. For a thread that was
    shared, this says how to go on instead.
    """
    from uwfgit.model.ledger.ledger import resolve_thread
    from uwfgit.sync.secrets.redact import redact_thread

    context = get_context(ctx)
    ledger = context.open_ledger(write=True, create=False)
    done = redact_thread(
        ledger,
        resolve_thread(ledger, thread),
        environment=context.environment,
        command=context.command,
        finding=finding,
        forks=forks,
    )
    payload = {
        "threadId": done.tip.thread,
        "status": done.tip.state.status,
        "redacted": True,
        "threads": [{"from": old, "to": new} for old, new in done.threads],
        "findings": list(done.findings),
        "dropped": list(done.dropped),
    }
    context.output.emit(payload, lambda: _text(context, done))
    _warn(context, done)


def _text(context: CommandContext, done: Redacted) -> str:
    fields: list[tuple[str, str | None]] = [
        ("thread", f"{old} is now {new}") for old, new in done.threads
    ]
    fields.append(("taken out", ", ".join(done.findings)))
    if done.dropped:
        fields.append(("dropped", ", ".join(done.dropped)))
    return format_fields(context.output, fields)


def _warn(context: CommandContext, done: Redacted) -> None:
    if done.passed:
        context.output.warn(
            f"stays, for it was let through: {', '.join(done.passed)}; "
            f"to take it out: uwf thread redact {done.tip.thread} --finding ID"
        )
    for ref in done.approvals:
        context.output.warn(f"{ref} stood on the old thread and is gone")
    for ref in done.left:
        context.output.warn(f"{shown(ref)} still holds the secret, in its workflow")
    if context.output.is_text:
        context.output.say(
            "the old thread is in the trash; rid this machine of it: "
            "uwf gc --prune=now --yes"
        )
        context.output.say("what was once in a file is best revoked all the same")


def forget_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    at: Annotated[
        int | None,
        typer.Option(
            "--at", metavar="N", help="Only what runs of step N and later ones left."
        ),
    ] = None,
) -> None:
    """Drop what agents remember of a thread; the thread itself stays whole.

    The files that agents keep on this machine stay, and so does what was pushed.
    The next run of each role begins a new session and is told everything.
    """
    from uwfgit.engine.run.hold import hold_thread
    from uwfgit.model.ledger.ledger import resolve_thread
    from uwfgit.model.memory.memory import forget_memory

    require_least(1, at=at)
    context = get_context(ctx)
    ledger = context.open_ledger(write=True, create=False)
    found = resolve_thread(ledger, thread)
    with hold_thread(ledger, found, command=context.command):
        runs = forget_memory(ledger, found, at=at)
        ledger.local.forget_sessions(found)
    context.output.emit(
        {"threadId": found, "forgotten": runs},
        lambda: f"forgot {count_of(runs, 'run')} of {found}",
    )
