"""What a server is given: stores, keys, and the commands its pages may run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from uwfgit import __version__
from uwfgit.cli.frame.app import keep_bug
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.thread.background import run_apart
from uwfgit.cli.thread.payloads import row_payload, shown_payload, step_item
from uwfgit.errors import StoreError, UsageError, UwfError
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.workflow.document import graph_payload, roles_payload
from uwfgit.store.handle import Store
from uwfgit.store.repository import open_store, resolve_path
from uwfgit.store.safety.stores import list_stores
from uwfgit.web.edit.files import Desk
from uwfgit.web.serve.acts import Command, Outcome
from uwfgit.web.serve.app import make_app
from uwfgit.web.serve.gate import Rules
from uwfgit.web.serve.keys import BEARER, Keys, load_key
from uwfgit.web.serve.server import Listening, is_loopback, listen, serve
from uwfgit.web.serve.shelf import Shelf
from uwfgit.web.serve.site import Served, Serving, Shapes

_LEAST_TOKEN = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the command line asks for."""

    host: str
    port: int | None
    all_stores: bool
    read_only: bool
    allow_acts: bool
    token_file: Path | None


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
    listening = listen(wishes.host, wishes.port)
    acts = not wishes.read_only and (is_loopback(wishes.host) or wishes.allow_acts)
    keys = Keys(
        key=load_key(context.home, str(listening.port)),
        port=listening.port,
        bearer=bearer,
        now_s=time.time,
    )
    serving = Serving(
        rules=Rules(keys=keys, hosts=listening.hosts),
        stores=_stores(context, own, wishes, acts=acts),
        shapes=Shapes(
            thread=shown_payload,
            row=row_payload,
            step=step_item,
            roles=roles_payload,
            graph=graph_payload,
        ),
        about=f"uwf {__version__}" + ("" if acts else ", read-only"),
        desk=_desk(context) if acts and is_loopback(wishes.host) else None,
        on_bug=partial(_on_bug, context),
    )
    if not is_loopback(wishes.host):
        what = "read and change" if acts else "read"
        context.output.say(
            f"whoever reaches {listening.origin} with the token can {what} "
            f"{len(serving.stores)} store(s); the line is not encrypted"
        )
    serve(make_app(serving), listening, on_ready=lambda: tell(listening))


def _desk(context: CommandContext) -> Desk:
    enclosing = context.enclosing
    root = enclosing.root if enclosing is not None else context.cwd
    return Desk(folder=root / ".workflows")


def _on_bug(context: CommandContext, exc: Exception) -> str:
    message, path = keep_bug(exc, context)
    return f"{message}; the traceback is in {path}" if path else message


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
    agents = tuple(sorted(context.settings.agents))
    paths = [own.path]
    if wishes.all_stores:
        mine = resolve_path(own.path)
        paths += [path for path in list_stores(context.home) if path != mine]
    served = []
    for number, path in enumerate(paths):
        try:
            open_store(path, home=context.home)
        except UwfError as exc:
            context.output.warn(f"not served: {exc.message}")
            continue
        root = f"/stores/{number}" if number else ""
        shelf = Shelf(_opener(context, path), name=_name(path), root=root)
        run = _runner(context, path)
        served.append(Served(shelf=shelf, run=run, acts=acts, agents=agents))
    return served


def _opener(
    context: CommandContext, path: Path
) -> Callable[[], AbstractContextManager[Ledger]]:
    """Return what opens a store, and closes it, in the thread that asks it."""

    @contextmanager
    def opened() -> Iterator[Ledger]:
        with ExitStack() as closing:
            own = replace(context, closing=closing)
            yield own.make_ledger(open_store(path, home=context.home))

    return opened


def _name(path: Path) -> str:
    """Name a store by the work tree it belongs to, or by its folder."""
    parts = path.parts
    if parts[-2:] == (".git", "uwf"):
        return shown(path.parent.parent.name)
    return shown(path.name)


def _runner(context: CommandContext, path: Path) -> Callable[[Command], Outcome]:
    def run(command: Command) -> Outcome:
        form = ("--color", "never") if command.is_text else ("--json",)
        words = [*command.words, *form, "--store", str(path)]
        with _written(command.inputs) as path_words:
            given = [*words, *path_words]
            code, out, err = run_apart(context, given, stdin=command.stdin)
        if command.is_text:
            return Outcome(code=code, value={"out": out, "err": err})
        value = _object(out)
        error = value.get("error") or _object(err).get("error")
        if error is None and code not in {0, 3} and not value:
            last = err.strip().splitlines()[-1:] or [f"exit code {code}"]
            error = {"code": "failed", "message": last[0], "hint": None}
        return Outcome(code=code, value=value, error=error)

    return run


@contextmanager
def _written(inputs: Mapping[str, Any] | None) -> Iterator[tuple[str, ...]]:
    """Yield the words that hand inputs over, in a file for as long as it is needed."""
    if inputs is None:
        yield ()
        return
    with NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(dict(inputs), file)
        file.flush()
        yield (f"--inputs={file.name}",)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
