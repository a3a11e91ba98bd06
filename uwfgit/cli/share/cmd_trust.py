"""Commands about whose signed events run unasked: add, list and rm."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uwfgit.cli.frame.commands import add_command, make_group
from uwfgit.cli.frame.context import CONFIG_FILE, CommandContext, get_context
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.frame.world import read_config
from uwfgit.errors import ConfigError, NotFoundError, StateError, UsageError

if TYPE_CHECKING:
    from uwfgit.sync.exchange.signatures import Signed

app = make_group("Say whose signed events of a thread run without asking.")

_KEY = "trust"


@add_command(app, "add")
def add(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME...]",
            help="An ssh principal, a gpg user id, or the fingerprint of a key.",
        ),
    ] = None,
    thread: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="THREAD", help="The key that signed this thread's tip."
        ),
    ] = None,
) -> None:
    """Trust a signer; what they sign drives your agents without asking.

    Never a mail address as a commit tells it: anyone can write any.
    """
    context = get_context(ctx)
    if (thread is None) == (not names):
        raise UsageError("give names, or a thread with --from")
    found = list(names or ())
    if thread is not None:
        signed = _find_signer(context, thread)
        # A fingerprint names one key; the name beside it is whatever a file here says.
        found = [max(signed.keys, key=len, default=signed.signer)]
        context.output.say(
            shown(f"signed by {signed.signer}, key {', '.join(sorted(signed.keys))}")
        )
    known = _read(context)
    _write(context, [*known, *(each for each in found if each not in known)])
    context.output.emit(
        {"added": found}, lambda: "\n".join(f"trusted: {shown(each)}" for each in found)
    )


def _find_signer(context: CommandContext, name: str) -> Signed:
    """Return who signed a thread's tip.

    Raises:
        NotFoundError, AmbiguousError: There is no such thread, or several.
        StateError: It has no good signature.
    """
    from uwfgit.model.ledger.ledger import resolve_thread
    from uwfgit.model.thread.tip import load_tip
    from uwfgit.sync.exchange.signatures import read_signature

    ledger = context.open_ledger()
    thread = resolve_thread(ledger, name)
    tip = load_tip(ledger.store, thread).commit
    signed = read_signature(ledger.store, tip, environment=context.environment)
    if signed is None or not signed.is_good:
        raise StateError(
            f"the newest event of thread {thread} has no good signature",
            hint=f"see why: uwf verify --signatures {thread}",
        )
    return signed


@add_command(app, "list")
def list_(ctx: typer.Context) -> None:
    """List the signers you trust."""
    context = get_context(ctx)
    names = list(context.settings.trust)
    if not names:
        context.output.say("you trust nobody's signature; add one: uwf trust add NAME")
    context.output.emit({"items": names}, lambda: "\n".join(map(shown, names)))


@add_command(app, "rm", "remove")
def remove(
    ctx: typer.Context,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="As 'trust list' shows it.")
    ],
) -> None:
    """Trust a signer no more; threads you agreed to yourself still run."""
    context = get_context(ctx)
    known = _read(context)
    for name in names:
        if name not in known:
            raise NotFoundError("signer", name, hint="list them: uwf trust list")
    _write(context, [each for each in known if each not in names])
    context.output.emit(
        {"removed": names},
        lambda: "\n".join(f"removed {shown(each)}" for each in names),
    )


def _content(context: CommandContext) -> tuple[Path, Mapping[str, Any]]:
    path = context.home / CONFIG_FILE
    content = read_config(path)
    if content is not None and not isinstance(content, Mapping):
        raise ConfigError("the file must hold a mapping", source=path)
    return path, content or {}


def _read(context: CommandContext) -> list[str]:
    path, content = _content(context)
    found = content.get(_KEY) or []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise ConfigError("is not a list of names", source=path, key=_KEY)
    return found


def _write(context: CommandContext, names: list[str]) -> None:
    from uwfgit.cli.store.securing import write_config

    path, content = _content(context)
    write_config(path, {**content, _KEY: names})
