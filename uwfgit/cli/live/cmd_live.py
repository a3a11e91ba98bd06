"""The command ``thread live``."""

from __future__ import annotations

from typing import Annotated

import typer

from uwfgit.cli.frame.context import get_context
from uwfgit.errors import UsageError


def live_command(
    ctx: typer.Context,
    thread: Annotated[
        str | None,
        typer.Argument(
            metavar="[THREAD]", help="Which; without it the newest that runs."
        ),
    ] = None,
    latest: Annotated[
        bool, typer.Option("--latest", help="The newest thread that runs.")
    ] = False,
    role: Annotated[
        str | None, typer.Option("--role", metavar="ROLE", help="Only of this role.")
    ] = None,
) -> None:
    """Watch a running thread: what its agents say, as they say it, until it stops.

    With --json one turn a line, then one line with how the thread stands.
    """
    from uwfgit.cli.live.following import find_running_thread, follow_live

    context = get_context(ctx)
    if thread is not None and latest:
        raise UsageError("--latest names a thread already")
    follow_live(context, thread or find_running_thread(context), role=role)
