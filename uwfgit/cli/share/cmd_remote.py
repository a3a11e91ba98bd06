"""Commands about remotes: add, list and rm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from uwfgit.cli.frame.commands import add_command, make_group
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import Column, format_table
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import UsageError

if TYPE_CHECKING:
    from uwfgit.store.handle import Store
    from uwfgit.sync.exchange.remotes import Kind, Remote

app = make_group("Name the repositories that threads are shared with.")

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="What the remote is called here.")
]


@add_command(app, "add")
def add(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="What it is called here; else origin."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="[URL]", help="Its address; else that of this repository's remote."
        ),
    ] = None,
    shared: Annotated[
        bool | None,
        typer.Option(
            "--shared/--dedicated",
            help="It holds code too, or threads alone; else shared when it is a "
            "remote of this repository.",
        ),
    ] = None,
) -> None:
    """Set a remote up; plain git push and fetch then do the right thing.

    A dedicated one holds threads alone, as branches. In a shared one, threads
    stand under refs/uwf/, where they are no branches and run no CI.
    """
    from uwfgit.sync.exchange.remotes import (
        DEFAULT_NAME,
        add_remote,
        check_name,
        shown_url,
    )

    context = get_context(ctx)
    name = check_name(name or context.settings.share or DEFAULT_NAME)
    # What is wrong with the words is said before a store is made for them.
    is_there = context.store_choice.path.exists()
    store = context.open_store(write=True) if is_there else None
    address, kind = _find_address(context, store, name, url, shared=shared)
    store = store or context.open_store(write=True)
    remote = add_remote(
        store, name, address, kind=kind, environment=context.environment
    )
    where = shown_url(remote.url)
    payload = {"name": name, "url": where, "kind": remote.kind}
    context.output.emit(payload, lambda: f"{name}  {shown(where)}  ({remote.kind})")
    if where != remote.url:
        context.output.warn("the URL holds a password; a credential helper is safer")
    _tell_what_it_means(context, remote)


def _find_address(
    context: CommandContext,
    store: Store | None,
    name: str,
    url: str | None,
    *,
    shared: bool | None,
) -> tuple[str, Kind]:
    from uwfgit.sync.exchange.remotes import absolute_url, find_remote, same_place

    theirs = _repository_urls(context)
    if url is not None:
        address = absolute_url(url, context.cwd)
    else:
        known = find_remote(store, name) if store is not None else None
        found = known.url if known is not None and known.url else theirs.get(name)
        if not found:
            raise UsageError(
                f"no URL, and this repository has no remote '{name}'",
                hint=f"give one: uwf remote add {name} URL",
            )
        address = found
    if shared is None:
        shared = any(same_place(address, each) for each in theirs.values())
    return address, "shared" if shared else "dedicated"


def _repository_urls(context: CommandContext) -> dict[str, str]:
    from uwfgit.sync.exchange.remotes import list_repository_urls

    enclosing = context.enclosing
    if enclosing is None:
        return {}
    return list_repository_urls(
        enclosing.common_dir / "config",
        base=enclosing.root,
        environment=context.environment,
    )


def _tell_what_it_means(context: CommandContext, remote: Remote) -> None:
    say = context.output.say
    if remote.kind == "shared":
        say("everyone who can read that repository can fetch the threads pushed to it")
        say("its web pages do not list them; nothing there prevents a rewind of them")
        say(
            "to fold raw nodes of a reviewed thread, a work tree needs in "
            ".gitattributes: **/nodes/** -diff linguist-generated gitlab-generated"
        )
    say(f"'git push {remote.name}' in the store sends every thread; 'uwf push' asks")


@add_command(app, "list")
def list_(ctx: typer.Context) -> None:
    """List the remotes of this store."""
    from uwfgit.sync.exchange.remotes import list_remotes, shown_url

    context = get_context(ctx)
    remotes = list_remotes(context.open_store())
    items = [
        {"name": each.name, "url": shown_url(each.url), "kind": each.kind}
        for each in remotes
    ]
    columns = [Column(title="NAME"), Column(title="URL"), Column(title="KIND")]
    rows = [(item["name"], item["url"], item["kind"]) for item in items]
    if not rows:
        context.output.say("no remotes; add one: uwf remote add NAME URL")
    context.output.emit(
        {"items": items},
        lambda: format_table(context.output, columns, rows) if rows else "",
    )


@add_command(app, "rm", "remove")
def remove(ctx: typer.Context, name: NameArgument) -> None:
    """Forget a remote; what it has stays there, and all threads stay here."""
    from uwfgit.sync.exchange.remotes import remove_remote

    context = get_context(ctx)
    store = context.open_store(write=True, create=False)
    remove_remote(store, name, environment=context.environment)
    context.output.emit(
        {"name": name, "removed": True}, lambda: f"removed {shown(name)}"
    )
