"""``uwf web hub``: who may show a store on the hub of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from uwfgit.cli.frame.commands import add_command, make_group
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.shell import quote_word

if TYPE_CHECKING:
    from uwfgit.web.hub.doors import Doors

app = make_group("Say who may show a store on this machine's hub.")

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="What the client is called.")
]


@add_command(app, "add")
def add(
    ctx: typer.Context,
    name: NameArgument,
    renew: Annotated[
        bool, typer.Option("--renew", help="Make another secret; the old one ends.")
    ] = False,
) -> None:
    """Make the secret of a client and print it, this once."""
    context = get_context(ctx)
    secret = _doors(context).add(name, renew=renew)
    context.output.emit({"name": name, "secret": secret}, lambda: secret)
    command = f"uwf connect URL --name {quote_word(name)}"
    context.output.say(f"there, put it into UWF_HUB_SECRET and run: {command}")


@add_command(app, "list")
def list_(ctx: typer.Context) -> None:
    """List the names that may connect."""
    context = get_context(ctx)
    names = _doors(context).names()
    context.output.emit(
        {"items": [{"name": name} for name in names]}, lambda: "\n".join(names)
    )
    if not names:
        context.output.say("no client has a secret: `uwf web hub add NAME` makes one")


@add_command(app, "remove", "rm")
def remove(ctx: typer.Context, name: NameArgument) -> None:
    """Forget a client; what it shows is gone at once."""
    context = get_context(ctx)
    _doors(context).remove(name)
    context.output.emit({"removed": name}, lambda: f"removed '{name}'")


def _doors(context: CommandContext) -> Doors:
    from uwfgit.web.hub.doors import Doors
    from uwfgit.web.serve.keys import hub_file

    return Doors(path=hub_file(context.home))
