"""Commands about remotes: add, list and rm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace

from uwfgit.cli.frame.commands import add_command, make_group
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import Column, format_table
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import NotFoundError, UsageError
from uwfgit.shell import quote_word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uwfgit.store.handle import Store
    from uwfgit.sync.exchange.remotes import Remote

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
    memory: Annotated[
        bool,
        typer.Option(
            "--memory",
            help="Send what agents remember too: for a remote of your own.",
        ),
    ] = False,
) -> None:
    """Set a remote up; plain git push and fetch then do the right thing.

    A dedicated one holds threads alone, as branches. In a shared one, threads
    stand under refs/uwf/, where they are no branches and run no CI.
    """
    from uwfgit.sync.exchange.remotes import DEFAULT_NAME, check_name, shown_url

    context = get_context(ctx)
    name = check_name(name or context.settings.share or DEFAULT_NAME)
    # What is wrong with the words is said before a store is made for them.
    is_there = context.store_choice.path.exists()
    store = context.open_store(write=True) if is_there else None
    found = _find_address(context, store, name, url)
    store = store or context.open_store(write=True)
    if shared is None:
        shared = found.is_theirs
    remote = _add(context, store, name, found, shared=shared, memory=memory)
    where = shown_url(remote.url)
    payload = {"name": name, "url": where, "kind": remote.kind}
    context.output.emit(payload, lambda: f"{name}  {shown(where)}  ({remote.kind})")
    _tell_added(context, remote)


def _add(
    context: CommandContext,
    store: Store,
    name: str,
    found: _Found,
    *,
    shared: bool,
    memory: bool = False,
) -> Remote:
    from uwfgit.sync.exchange.remotes import add_remote

    return add_remote(
        store,
        name,
        found.url,
        kind="shared" if shared else "dedicated",
        environment=context.environment,
        push_urls=found.push_urls,
        follows=found.follows,
        memory=memory,
    )


def _tell_added(context: CommandContext, remote: Remote) -> None:
    """Say what a remote that was just set up means for those who use it."""
    from uwfgit.sync.exchange.remotes import shown_url

    if remote.push_urls != (remote.url,):
        places = ", ".join(shown(shown_url(each)) for each in remote.push_urls)
        context.output.say(f"pushes go to {places}, as those of this repository do")
    if shown_url(remote.url) != remote.url:
        context.output.warn("the URL holds a password; a credential helper is safer")
    say = context.output.say
    if remote.kind == "shared":
        say("everyone who can read that repository can fetch the threads pushed to it")
        say("its web pages do not list them; nothing there prevents a rewind of them")
        say(
            "to fold raw nodes of a reviewed thread, a work tree needs in "
            ".gitattributes: **/nodes/** -diff linguist-generated gitlab-generated"
        )
    say(
        f"'git push {quote_word(remote.name)}' in the store sends every thread; "
        "'uwf push' those it has, and those you name"
    )


def open_to_pull(context: CommandContext, words: Sequence[str]) -> Store:
    """Open the store that a pull brings threads into; make it in a fresh clone.

    A store without remotes gets the one of the repository around it, as
    ``remote add`` sets it up, if there are threads in that.

    Args:
        context: Of the command.
        words: Those of the pull; the first may name the remote.

    Raises:
        NotFoundError: There is no store, and no remote with threads to make it of.
        AuthError, RemoteError: The repository's remote cannot be asked.
    """
    from uwfgit.cli.share.remote_session import belongs_here, open_wire
    from uwfgit.sync.exchange.remotes import (
        DEFAULT_NAME,
        Remote,
        holds_shared,
        list_remotes,
    )

    is_there = context.store_choice.path.exists()
    store = context.open_store(write=True) if is_there else None
    if (store is not None and list_remotes(store)) or not belongs_here(context):
        return store or context.open_store(write=True, create=False)
    theirs = _repository_remotes(context)
    usual = context.settings.share or DEFAULT_NAME
    name = words[0] if words and words[0] in theirs else usual
    found = theirs.get(name)
    if found is None or not context.may_create():
        return store or context.open_store(write=True, create=False)
    remote = Remote(
        name=name,
        url=found.url,
        push_urls=found.push_urls,
        kind="shared",
        follows=found.follows,
    )
    with open_wire(context, remote) as wire:
        if holds_shared(wire, remote):
            store = store or context.open_store(write=True)
            remote = _add(context, store, name, found, shared=True)
            context.output.say(f"set up remote {name}, shared with the code here")
            _tell_added(context, remote)
            return store
    if store is None:
        hint = f"remote '{name}' has no threads to bring; create it with: uwf init"
        raise NotFoundError("store", str(context.store_choice.path), hint=hint)
    return store


class _Found(Struct, frozen=True, kw_only=True):
    """Where a remote is; ``is_theirs`` when the repository around has it too."""

    url: str
    push_urls: tuple[str, ...] = ()
    follows: str | None = None
    is_theirs: bool = False


def _find_address(
    context: CommandContext, store: Store | None, name: str, url: str | None
) -> _Found:
    from uwfgit.sync.exchange.remotes import absolute_url, find_remote, same_place

    theirs = _repository_remotes(context)
    if url is None:
        known = find_remote(store, name) if store is not None else None
        found = theirs.get(name)
        address = found.url if found is not None else known.url if known else ""
        if not address:
            raise UsageError(
                f"no URL, and this repository has no remote '{name}'",
                hint=f"give one: uwf remote add {quote_word(name)} URL",
            )
    else:
        address = absolute_url(url, context.cwd)
    # One of the same name first: several may be written for one place.
    for each in sorted(theirs, key=lambda each: each != name):
        if same_place(address, theirs[each].url):
            return theirs[each] if url is None else replace(theirs[each], url=address)
    return _Found(url=address)


def _repository_remotes(context: CommandContext) -> dict[str, _Found]:
    """Return the remotes of the repository around, by name, as git reads them."""
    from uwfgit.cli.share.remote_session import belongs_here
    from uwfgit.store.git.settings import ask_addresses, ask_remotes
    from uwfgit.sync.exchange.remotes import absolute_url

    if context.enclosing is None:
        return {}
    root, environment = context.enclosing.root, context.environment
    remotes: dict[str, _Found] = {}
    for name in ask_remotes(root, environment):
        found = ask_addresses(root, name, environment)
        if found is not None and not found.fetch.startswith("-"):
            remotes[name] = _Found(
                url=absolute_url(found.fetch, root),
                push_urls=tuple(absolute_url(each, root) for each in found.push),
                follows=name if belongs_here(context) else None,
                is_theirs=True,
            )
    return remotes


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
