"""Commands about a thread that another process runs: stop, pause and join."""

from __future__ import annotations

from typing import Annotated

import typer

from uwfgit.cli.context import get_context
from uwfgit.cli.output import write
from uwfgit.cli.runs import ThreadArgument, finish_run, step_line
from uwfgit.cli.ways import way_on
from uwfgit.errors import UsageError


def stop_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    after_step: Annotated[
        bool, typer.Option("--after-step", help="Let the step at hand finish.")
    ] = False,
) -> None:
    """End the running agent of a thread.

    What it said is kept as an attempt, and the thread waits for a person.
    """
    if after_step:
        pause_command(ctx, thread)
        return
    from uwfgit.cli.listing import find_status
    from uwfgit.engine.control import stop_thread
    from uwfgit.model.ledger import resolve_thread

    context = get_context(ctx)
    ledger = context.open_ledger()
    found = resolve_thread(ledger, thread)
    find_status(ledger, found)
    stopped = stop_thread(ledger, found)
    status = find_status(ledger, found)
    context.output.emit(
        {"threadId": found, "status": status, "stopped": stopped},
        lambda: f"stopped {found}" if stopped else f"{found} was not running",
    )
    if stopped and context.output.is_text:
        context.output.say(way_on(ledger, found, status))


def pause_command(ctx: typer.Context, thread: ThreadArgument) -> None:
    """Let a running thread finish its step, and run no further one."""
    from uwfgit.cli.listing import find_status
    from uwfgit.engine.control import pause_thread
    from uwfgit.model.ledger import resolve_thread

    context = get_context(ctx)
    ledger = context.open_ledger()
    found = resolve_thread(ledger, thread)
    status = find_status(ledger, found)
    pausing = pause_thread(ledger, found)
    payload = {
        "threadId": found,
        "status": "running" if pausing else status,
        "stopped": False,
        "pausing": pausing,
    }
    context.output.emit(
        payload,
        lambda: (
            f"{found} pauses after this step" if pausing else f"{found} was not running"
        ),
    )
    if pausing and context.output.is_text:
        context.output.say(f"wait for that: uwf thread join {found}")


def join_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout", metavar="SECONDS", help="Wait no longer; exits 4 then."
        ),
    ] = None,
) -> None:
    """Wait until nobody runs a thread, and tell how it then stands.

    Exits as the run itself would: 3 when the thread waits for a person, 5 when
    its newest step failed.
    """
    from uwfgit.cli.refused import refusal_told
    from uwfgit.engine.control import join_thread
    from uwfgit.model.ledger import resolve_thread

    context = get_context(ctx)
    if timeout is not None and not timeout >= 0:
        raise UsageError(f"--timeout: {timeout:g} is less than 0")
    ledger = context.open_ledger()
    found = resolve_thread(ledger, thread)
    with refusal_told(context, ledger, found):
        report = join_thread(ledger, found, timeout=timeout)
    if context.output.is_text:
        for step in report.steps:
            write(f"{step_line(context, step)}\n")
    finish_run(context, ledger, report)
