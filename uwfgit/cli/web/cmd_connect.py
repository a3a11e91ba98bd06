"""``uwf connect``: this store on a hub, for as long as the command runs."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from uwfgit.cli.frame.commands import add_command, make_single
from uwfgit.cli.frame.context import get_context
from uwfgit.errors import UsageError

app = make_single()

_SECRET: Final = "UWF_HUB_SECRET"  # noqa: S105 - the variable's name


@add_command(app, "connect")
def connect(
    ctx: typer.Context,
    url: Annotated[
        str, typer.Argument(metavar="URL", help="The hub, as wss://hub.example.org.")
    ],
    name: Annotated[
        str, typer.Option("--name", metavar="N", help="What the hub calls this store.")
    ],
    allow_acts: Annotated[
        bool,
        typer.Option("--allow-acts", help="Let it resume, stop, pause and cancel."),
    ] = False,
    allow_exec: Annotated[
        bool, typer.Option("--allow-exec", help="Let it start and run threads.")
    ] = False,
) -> None:
    """Show this store on a hub, and answer what the hub asks, until interrupted.

    Reading is answered always; whatever else no option names is refused here, whatever
    the hub asks. The secret is UWF_HUB_SECRET, or hub.secret of your configuration.
    """
    import asyncio
    from functools import partial

    from uwfgit.cli.web.cmd_web import require_web

    context = get_context(ctx)
    require_web()
    from uwfgit.cli.web.stores import SHAPES, on_bug, serve_store
    from uwfgit.web.hub.allowed import allowed_acts
    from uwfgit.web.hub.answering import make_answers
    from uwfgit.web.hub.connect import Client, hub_address, stay_connected
    from uwfgit.web.hub.doors import require_name
    from uwfgit.web.hub.frames import Hello

    acts = allowed_acts(acts=allow_acts, runs=allow_exec)
    address = hub_address(url)
    secret = context.variables.get(_SECRET) or context.settings.hub_secret
    if not secret:
        raise UsageError(
            "there is no secret for the hub",
            hint=f"`uwf web hub add NAME` there prints one; put it into {_SECRET}",
        )
    served = serve_store(context, context.open_store().path, acts=bool(acts))
    client = Client(
        url=address,
        name=require_name(name),
        secret=secret,
        app=make_answers(served, SHAPES),
        hello=Hello(acts=acts, agents=tuple(served.agents)),
        tell=context.output.say,
        on_bug=partial(on_bug, context),
    )
    try:
        asyncio.run(stay_connected(client))
    finally:
        served.shelf.close()
