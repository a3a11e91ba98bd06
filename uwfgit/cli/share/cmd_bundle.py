"""Commands that share threads in a file: bundle create and open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from uwfgit.cli.check.checks import make_scan, make_verify
from uwfgit.cli.frame.commands import add_command, make_group
from uwfgit.cli.frame.context import get_context
from uwfgit.cli.frame.output import count_of
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.share.cmd_sync import AllowOption, tell_pull
from uwfgit.cli.share.remote_session import open_wire
from uwfgit.store.layout import find_ref_thread

bundle_app = make_group("Share threads in a file.")


@add_command(bundle_app, "create")
def create(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to write.")],
    threads: Annotated[
        list[str], typer.Argument(metavar="THREAD...", help="The threads to put in.")
    ],
    allow: AllowOption = None,
) -> None:
    """Write threads into a file for someone without a common remote.

    Plain git can read it too: a bundle is a repository in a file.
    """
    from uwfgit.model.ledger.ledger import resolve_thread
    from uwfgit.sync.exchange.bundle import create_bundle

    context = get_context(ctx)
    store = context.open_store(write=True, create=False)
    ledger = context.make_ledger(store)
    found = list(dict.fromkeys(resolve_thread(ledger, name) for name in threads))
    path = context.resolve(file)
    with open_wire(context) as wire:
        refs = create_bundle(
            ledger,
            path,
            found,
            wire=wire,
            verify=make_verify(context),
            scan=make_scan(context, store, allow=allow or ()),
        )
    context.output.emit(
        {"file": str(path), "refs": refs},
        lambda: f"{shown(str(path))}: {_count(found, refs)}",
    )


def _count(named: Sequence[str], refs: Iterable[str]) -> str:
    threads = sum(find_ref_thread(ref) is not None for ref in refs)
    more = threads - len(named)
    children = "1 child" if more == 1 else f"{more} children"
    return count_of(len(named), "thread") + (f", with {children}" if more else "")


@add_command(bundle_app, "open")
def open_(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The bundle.")],
) -> None:
    """Bring the threads in a bundle; each is verified before it is ours."""
    from uwfgit.sync.exchange.bundle import open_bundle, require_bundle

    context = get_context(ctx)
    path = context.resolve(file)
    # Before a store is made for what is to come from it.
    require_bundle(path)
    store = context.open_store(write=True)
    ledger = context.make_ledger(store, write=True)
    with open_wire(context) as wire:
        report = open_bundle(
            ledger,
            path,
            wire=wire,
            verify=make_verify(context),
            command=context.command,
        )
    raise typer.Exit(tell_pull(context, store, report))
