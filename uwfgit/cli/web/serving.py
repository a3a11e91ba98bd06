"""What a server is given: stores, keys, and the commands its pages may run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from uwfgit import __version__
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.web.stores import SHAPES, on_bug, serve_store
from uwfgit.errors import StoreError, UsageError, UwfError
from uwfgit.store.handle import Store
from uwfgit.store.repository import open_store
from uwfgit.store.safety.stores import list_stores
from uwfgit.web.edit.files import Desk
from uwfgit.web.serve.app import make_app
from uwfgit.web.serve.gate import Rules, is_loopback
from uwfgit.web.serve.keys import BEARER, Keys, hub_file, load_key
from uwfgit.web.serve.server import Listening, announced, listen, serve
from uwfgit.web.serve.site import Elsewhere, Served, Serving

_LEAST_TOKEN = 32


class Wishes(Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    host: str
    port: int | None
    all_stores: bool
    read_only: bool
    allow_acts: bool
    token_file: Path | None
    public: str | None
    hub: bool

    @property
    def is_near(self) -> bool:
        """Whether only this machine can look."""
        return is_loopback(self.host) and self.public is None


def run_server(
    context: CommandContext, wishes: Wishes, tell: Callable[[Listening], None]
) -> None:
    """Serve until interrupted.

    Raises:
        UsageError: Another host without a token file.
        StoreError, NotFoundError: The port, or a store.
    """
    if not is_loopback(wishes.host) and wishes.token_file is None:
        raise UsageError(
            f"--host {wishes.host}: others could look then",
            hint="give --token-file FILE with the token that they have to send",
        )
    own = context.open_store()
    bearer = _bearer(context, wishes.token_file)
    listening = replace(listen(wishes.host, wishes.port), public=wishes.public)
    acts = not wishes.read_only and (wishes.is_near or wishes.allow_acts)
    keys = Keys(
        key=load_key(context.home, str(listening.port)),
        port=listening.port,
        bearer=bearer,
        now_s=time.time,
    )
    serving = Serving(
        rules=Rules(keys=keys, hosts=listening.hosts),
        stores=_stores(context, own, wishes, acts=acts),
        shapes=SHAPES,
        about=f"uwf {__version__}" + ("" if acts else ", read-only"),
        desk=_desk(context) if acts and wishes.is_near else None,
        on_bug=partial(on_bug, context),
        elsewhere=_clients(context) if wishes.hub else None,
    )
    if not wishes.is_near:
        what = "read and change" if acts else "read"
        warning = "" if wishes.public else "; the line is not encrypted"
        context.output.say(
            f"whoever reaches {listening.origin} with the token can {what} "
            f"{len(serving.stores)} store(s){warning}"
        )
    app = make_app(serving)
    with announced(listening, home=context.home, store=context.store_choice.path):
        serve(app, listening, on_ready=lambda: tell(listening), takes_lines=wishes.hub)


def _desk(context: CommandContext) -> Desk:
    enclosing = context.enclosing
    root = enclosing.root if enclosing is not None else context.cwd
    return Desk(folder=root / ".workflows")


def _bearer(context: CommandContext, path: Path | None) -> Callable[[], str]:
    if path is None:
        load_key(context.home, BEARER)
        return lambda: load_key(context.home, BEARER)

    def read() -> str:
        try:
            text = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as exc:
            raise StoreError(f"cannot read '{path}': {exc}") from exc
        if len(text) < _LEAST_TOKEN:
            raise StoreError(f"'{path}' holds no token of 32 characters or more")
        return text

    read()
    return read


def _stores(
    context: CommandContext, own: Store, wishes: Wishes, *, acts: bool
) -> list[Served]:
    paths = [own.path]
    if wishes.all_stores:
        mine = Path(os.path.realpath(own.path))
        paths += [path for path in list_stores(context.home) if path != mine]
    served = []
    for number, path in enumerate(paths):
        try:
            open_store(path, home=context.home)
        except UwfError as exc:
            context.output.warn(f"not served: {exc.message}")
            continue
        root = f"/stores/{number}" if number else ""
        served.append(serve_store(context, path, root=root, acts=acts))
    return served


def _clients(context: CommandContext) -> Elsewhere:
    from uwfgit.web.hub.clients import Clients
    from uwfgit.web.hub.doors import Doors

    doors = Doors(path=hub_file(context.home))
    return Clients(doors, patience_s=context.settings.hub_timeout_seconds)
