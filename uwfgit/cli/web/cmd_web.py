"""``uwf web``: threads in a browser, served to this machine's user."""

from __future__ import annotations

import re
import time
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from uwfgit.cli.frame.commands import add_command, make_group
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.frame.world import require_extra
from uwfgit.cli.web.cmd_hub import app as hub_app
from uwfgit.errors import StateError, StoreError, UsageError

if TYPE_CHECKING:
    from uwfgit.web.serve.server import Listening, Running

app = make_group("Look at threads in a browser, and act on them.")
app.add_typer(hub_app, name="hub")

_PORTS = 2**16
_PUBLIC = re.compile(
    r"https://([a-z0-9-]+(?:\.[a-z0-9-]+)*(?::[0-9]{1,5})?)/?", re.ASCII
)
_PARTS = ("starlette", "uvicorn", "websockets")


@app.callback(invoke_without_command=True)
def web(  # noqa: PLR0917 - one parameter an option
    ctx: typer.Context,
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", help="Else 8642, or any.")
    ] = None,
    host: Annotated[
        str,
        typer.Option("--host", metavar="H", help="Else only this machine can look."),
    ] = "127.0.0.1",
    all_stores: Annotated[
        bool, typer.Option("--all", help="This user's other stores too.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Nothing can be changed from it.")
    ] = False,
    allow_acts: Annotated[
        bool,
        typer.Option(
            "--allow-acts",
            help="With another --host, or --public: let it change things.",
        ),
    ] = False,
    token_file: Annotated[
        str | None,
        typer.Option(
            "--token-file", metavar="FILE", help="With another --host: who may look."
        ),
    ] = None,
    public: Annotated[
        str | None,
        typer.Option(
            "--public",
            metavar="URL",
            help="Where a proxy with TLS stands in front: https://hub.example.org.",
        ),
    ] = None,
    hub: Annotated[
        bool,
        typer.Option("--hub", help="Show the stores of clients too: 'uwf connect'."),
    ] = False,
    open_: Annotated[
        bool, typer.Option("--open", help="Open it in the browser.")
    ] = False,
) -> None:
    """Serve the store's threads to a browser on this machine.

    The printed address opens once, within a minute; 'uwf web link' prints another.
    Ctrl-C ends it.
    """
    if ctx.invoked_subcommand is not None:
        return
    context = get_context(ctx)
    require_web()
    from uwfgit.cli.web.serving import Wishes, run_server

    wishes = Wishes(
        host=host,
        port=None if port is None else _check_port(port),
        all_stores=all_stores,
        read_only=read_only,
        allow_acts=allow_acts,
        token_file=context.resolve(token_file) if token_file else None,
        public=None if public is None else _public_host(public),
        hub=hub,
    )

    def tell(listening: Listening) -> None:
        _tell(context, listening.origin, listening.port, open_=open_)

    run_server(context, wishes, tell)


def _check_port(port: int) -> int:
    if not 0 < port < _PORTS:
        raise UsageError(f"--port: {port} is not a port")
    return port


def require_web() -> None:
    """Refuse to serve without the parts that serving needs.

    Raises:
        StateError: They are not installed; says how, as this uwf was installed.
    """
    require_extra("web", _PARTS, what="the web view")


def _public_host(url: str) -> str:
    """Return what a browser sends as ``Host`` at a public address.

    Raises:
        UsageError: It is not one.
    """
    found = _PUBLIC.fullmatch(url.lower())
    if found is None:
        raise UsageError(
            f"--public: '{url}' is not an address with TLS",
            hint="such as https://hub.example.org, without a path",
        )
    return found[1].removesuffix(":443")


def _address(context: CommandContext, origin: str, port: int) -> str:
    from uwfgit.web.serve.keys import load_key, make_code

    code = make_code(load_key(context.home, str(port)), time.time())
    return f"{origin}/enter?code={code}"


def _tell(context: CommandContext, origin: str, port: int, *, open_: bool) -> None:
    """Print the address with its code, or hand it to the browser unseen."""
    address = _address(context, origin, port)
    if open_ and _open(context, address):
        context.output.say(f"serving {origin}; Ctrl-C ends it")
        return
    context.output.emit({"url": address}, lambda: f"open {address}")
    context.output.say("the address opens once, within a minute; Ctrl-C ends it")


def _open(context: CommandContext, address: str) -> bool:
    """Open the address through a file of this user's: no list of processes shows it."""
    import html

    from uwfgit.store.files import write_private
    from uwfgit.web.serve.keys import keys_folder

    path = keys_folder(context.home) / "open.html"
    target = html.escape(address)
    refresh = f'<meta http-equiv="refresh" content="0;url={target}">'
    try:
        write_private(path, f"<!doctype html><title>uwf</title>{refresh}\n")
    except OSError as exc:
        raise StoreError(f"cannot write '{path}': {exc.strerror}") from exc
    return webbrowser.open(path.as_uri())


@add_command(app, "link")
def link(
    ctx: typer.Context,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", help="Of the server, when several run."),
    ] = None,
    public: Annotated[
        str | None,
        typer.Option(
            "--public", metavar="URL", help="Its public address, else what it was told."
        ),
    ] = None,
) -> None:
    """Print a new address that opens the running server, once and within a minute."""
    context = get_context(ctx)
    require_web()
    named = None if public is None else f"https://{_public_host(public)}"
    running = _running(context, None if port is None else _check_port(port))
    address = _address(context, named or running.origin, running.port)
    context.output.emit({"url": address}, lambda: address)


def _running(context: CommandContext, port: int | None) -> Running:
    """Return the server that is meant: by its port, by the store here, the only one.

    Raises:
        StateError: None runs.
        UsageError: Several do; names them.
    """
    from uwfgit.web.serve.server import list_running

    found = [each for each in list_running(context.home) if port in {None, each.port}]
    if not found:
        where = "" if port is None else f" on port {port}"
        raise StateError(f"no server is running{where}", hint="`uwf web` starts one")
    here = str(context.store_choice.path)
    found = [each for each in found if each.store == here] or found
    if len(found) > 1:
        each_one = (f"{each.origin} ({shown(each.store)})" for each in found)
        raise UsageError(
            f"several servers are running: {', '.join(each_one)}",
            hint="choose one by --port",
        )
    return found[0]


@add_command(app, "token")
def token(
    ctx: typer.Context,
    renew: Annotated[
        bool, typer.Option("--renew", help="Make a new one; the old one ends.")
    ] = False,
) -> None:
    """Print the token that lets scripts use the API: Authorization: Bearer TOKEN."""
    from uwfgit.web.serve.keys import BEARER, load_key

    context = get_context(ctx)
    found = load_key(context.home, BEARER, renew=renew)
    context.output.emit({"token": found}, lambda: found)
