"""Commands that share threads with remotes: push, pull and clone."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from uwfgit.cli.check.checks import make_check, make_scan, make_verify
from uwfgit.cli.frame.app import EXIT_CODES
from uwfgit.cli.frame.commands import add_command, make_single
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import count_of
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.share.clone_folder import is_begun, is_there, new_store
from uwfgit.cli.share.cmd_remote import open_to_pull
from uwfgit.cli.share.memory import pulled_memory, with_memory
from uwfgit.cli.share.remote_session import (
    find_branch,
    open_wire,
    pull_payload,
    pull_text,
    push_payload,
    push_text,
    require_known,
    require_same_address,
    take_remote,
    take_source,
    warn_collisions,
)
from uwfgit.errors import LockedError, NotFoundError, UsageError, UwfError

if TYPE_CHECKING:
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.store.handle import Store
    from uwfgit.sync.exchange.exchange import RefOutcome
    from uwfgit.sync.exchange.pull import PullReport
    from uwfgit.sync.exchange.remotes import Remote
    from uwfgit.sync.exchange.transport import Wire


push_app = make_single()
pull_app = make_single()
clone_app = make_single()

WorkflowsOption = Annotated[
    bool, typer.Option("--workflows", help="Adopt registered workflows too.")
]
AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="ID",
        help="Let this finding of the secret scan through, from now on in this store; "
        "to take it back: uwf hooks allow --revoke ID.",
    ),
]


CodeRemoteOption = Annotated[
    str | None,
    typer.Option(
        "--code-remote",
        metavar="NAME",
        help="The code's remote, if not the usual.",
    ),
]


@add_command(push_app, "push")
def push(  # noqa: PLR0917 - its options, as typer reads them
    ctx: typer.Context,
    remote: Annotated[
        str | None,
        typer.Argument(metavar="[REMOTE]", help="Where to; else the one there is."),
    ] = None,
    threads: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[THREAD...]",
            help="Which threads; workflow/NAME is a registered workflow.",
        ),
    ] = None,
    send_all: Annotated[
        bool, typer.Option("--all", help="Threads too that it does not have yet.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Only say what would be sent.")
    ] = False,
    memory: Annotated[
        bool,
        typer.Option("--memory", help="Send what agents remember of them too."),
    ] = False,
    allow: AllowOption = None,
    code: Annotated[
        bool,
        typer.Option(
            "--code", help="Send the code around steps instead, to the code's remote."
        ),
    ] = False,
    code_remote: CodeRemoteOption = None,
    with_commits: Annotated[
        bool,
        typer.Option(
            "--with-commits", help="With --code: also commits that it does not have."
        ),
    ] = False,
) -> None:
    """Send threads to a remote; nothing is ever forced.

    Without threads: those it already has and is behind with. A thread it has
    never seen has to be named, or --all given. What agents remember of a thread
    stays here without --memory: it holds all that they read.
    """
    from uwfgit.sync.exchange.push import push as push_threads

    context = get_context(ctx)
    store = context.open_store(write=True, create=False)
    ledger = context.make_ledger(store)
    words = [word for word in (remote, *(threads or ())) if word is not None]
    if code:
        from uwfgit.cli.code.cmd_exchange import code_text, push_code

        payload = push_code(
            context,
            ledger,
            words,
            remote=code_remote,
            send_all=send_all,
            with_commits=with_commits,
            dry_run=dry_run,
            allow=allow or (),
        )
        context.output.emit(payload, lambda: code_text(payload))
        return
    if words:
        require_known(ledger, words[0])
    there, names = take_remote(context, store, words)
    if names and send_all:
        raise UsageError("--all and threads exclude each other")
    require_same_address(context, store, there)
    named = [find_branch(ledger, name) for name in names]
    scan = make_scan(context, store, allow=allow or (), dry_run=dry_run)
    with open_wire(context, there) as wire:
        report = push_threads(
            ledger,
            there,
            wire=wire,
            verify=make_verify(context),
            scan=scan,
            named=named,
            send_all=send_all,
            dry_run=dry_run,
        )
        report = with_memory(
            context,
            ledger,
            report,
            named,
            wire=wire,
            scan=scan,
            wanted=memory or there.memory,
        )
    context.output.emit(push_payload(report), lambda: push_text(context.output, report))
    raise typer.Exit(0 if report.ok else 1)


@add_command(pull_app, "pull")
def pull(
    ctx: typer.Context,
    remote: Annotated[
        str | None,
        typer.Argument(metavar="[REMOTE]", help="Where from; else the one there is."),
    ] = None,
    thread: Annotated[
        str | None,
        typer.Argument(
            metavar="[THREAD]", help="Only this thread, and what did steps of it."
        ),
    ] = None,
    workflows: WorkflowsOption = False,
    code: Annotated[
        bool,
        typer.Option("--code", help="Look for the code of all threads, not only new."),
    ] = False,
    code_remote: CodeRemoteOption = None,
) -> None:
    """Bring what a remote has of threads; each is verified before it is ours.

    A thread that others continued as well is left as it is and shown as
    diverged: 'uwf thread resolve' shows both sides. One removed here does not
    come back until there is something new in it. In a fresh clone it makes the
    store, and sets up the remote of the clone as 'uwf remote add' does, if there
    are threads in it.
    """
    context = get_context(ctx)
    words = [word for word in (remote, thread) if word is not None]
    store = open_to_pull(context, words)
    ledger = context.make_ledger(store, write=True)
    there, names = take_source(context, ledger, words)
    if len(names) > 1:
        raise UsageError(
            f"'{names[0]}' is not a remote, and pull brings one thread, or all",
            hint="name one thread",
        )
    with open_wire(context, there) as wire:
        report = pull_threads(
            context,
            ledger,
            there,
            wire,
            only=names[0] if names else None,
            workflows=workflows,
        )
    status = tell_pull(context, store, report)
    _bring_code(context, ledger, report, every=code, remote=code_remote)
    raise typer.Exit(status)


def _bring_code(
    context: CommandContext,
    ledger: Ledger,
    report: PullReport,
    *,
    every: bool,
    remote: str | None,
) -> None:
    """Bring the code of what was pulled, as far as the code's remote has it."""
    came = [each.thread for each in report.outcomes if each.thread and each.new]
    if every:
        came = list(ledger.lookup.find_threads(prefix=""))
    if not came:
        return
    from uwfgit.cli.code.cmd_exchange import pull_code

    brought = pull_code(context, ledger, came, remote=remote)
    if brought and context.output.is_text:
        context.output.say(f"with the code of {count_of(len(brought), 'thread')}")


def pull_threads(
    context: CommandContext,
    ledger: Ledger,
    remote: Remote,
    wire: Wire,
    *,
    only: str | None = None,
    workflows: bool = False,
) -> PullReport:
    """Bring what a remote has, each thread verified, with what agents remember.

    Raises:
        AuthError, RemoteError: The remote cannot be reached.
        NotFoundError, AmbiguousError: It has no such thread, or several.
    """
    from uwfgit.sync.exchange.pull import finish, look

    found = look(ledger, remote, wire=wire, only=only, workflows=workflows)
    brought: tuple[RefOutcome, ...] = ()
    if found.source is not None:
        # Imported only now: a pull that finds nothing new is the usual one.
        from uwfgit.sync.exchange.incoming import bring_in

        brought = bring_in(
            ledger,
            found.source,
            wire=wire,
            verify=make_verify(context),
            check=make_check(context),
            command=context.command,
        )
    report = finish(ledger, found, brought, wire=wire)
    report = pulled_memory(ledger, remote, report, wire=wire)
    if only is None:
        return report
    return _with_children(context, ledger, remote, wire, report)


def _with_children(
    context: CommandContext,
    ledger: Ledger,
    remote: Remote,
    wire: Wire,
    report: PullReport,
) -> PullReport:
    """Bring what did steps of the one thread that was asked for, where it is there."""
    from uwfgit.model.thread.family import list_lacking

    named = {each.thread for each in report.outcomes if each.thread is not None}
    lacking = [child for each in named for child in list_lacking(ledger.store, each)]
    for child in lacking:
        try:
            below = pull_threads(context, ledger, remote, wire, only=child)
        except NotFoundError:
            # verify says what is missing.
            continue
        report = replace(
            report,
            outcomes=(*report.outcomes, *below.outcomes),
            collisions=(*report.collisions, *below.collisions),
        )
    return report


def tell_pull(context: CommandContext, store: Store, report: PullReport) -> int:
    """Print a pull and give its exit code: refused beats busy."""
    context.output.emit(
        pull_payload(report), lambda: pull_text(context.output, report, store)
    )
    warn_collisions(context, report)
    if not report.ok:
        return EXIT_CODES[UwfError]
    return EXIT_CODES[LockedError] if report.is_busy else 0


@add_command(clone_app, "clone")
def clone(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="A repository of threads.")],
    folder: Annotated[
        str | None,
        typer.Argument(metavar="[DIR]", help="Where to; else named after the URL."),
    ] = None,
    thread: Annotated[
        str | None,
        typer.Option("--thread", metavar="THREAD", help="Bring only this thread."),
    ] = None,
    shared: Annotated[
        bool | None,
        typer.Option(
            "--shared/--dedicated", help="It holds code too, or not; else looked at."
        ),
    ] = None,
    workflows: WorkflowsOption = False,
) -> None:
    """Make a store of a remote's threads; the remote is its 'origin'."""
    context = get_context(ctx)
    if not folder:
        folder = url.rstrip("/").rpartition("/")[2].rpartition(":")[2]
        folder = folder.removesuffix(".git")
        if not folder or folder.startswith("-"):
            raise UsageError(
                f"'{url}' gives no name for a folder", hint="name one: DIR"
            )
        folder += ".git"
    target = context.resolve(folder)
    with open_wire(context) as wire:
        code = _clone(
            context, wire, url, target, only=thread, shared=shared, workflows=workflows
        )
    raise typer.Exit(code)


def _clone(
    context: CommandContext,
    wire: Wire,
    url: str,
    target: Path,
    *,
    only: str | None,
    shared: bool | None,
    workflows: bool,
) -> int:
    from uwfgit.store.git.refbatch import pack_refs
    from uwfgit.store.repository import open_store
    from uwfgit.sync.exchange.remotes import (
        DEFAULT_NAME,
        absolute_url,
        add_remote,
        find_kind,
        find_remote,
    )

    path, address = Path(os.path.realpath(target)), absolute_url(url, context.cwd)
    goes_on = False
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        goes_on = is_begun(path, address, home=context.home)
        if not goes_on:
            raise is_there(path, home=context.home)
    kind = find_kind(wire, address, name=DEFAULT_NAME, shared=shared)
    with nullcontext() if goes_on else new_store(path, home=context.home):
        store = open_store(path, home=context.home, write=True)
        remote = find_remote(store, DEFAULT_NAME) or add_remote(
            store, DEFAULT_NAME, address, kind=kind, environment=wire.environment
        )
        ledger = context.make_ledger(store, write=True)
        report = _pull_new(context, ledger, remote, wire, only, workflows=workflows)
        pack_refs(store, environment=wire.environment)
    context.output.say(f"created store {shown(str(path))}; use it with --store")
    return tell_pull(context, store, report)


def _pull_new(
    context: CommandContext,
    ledger: Ledger,
    remote: Remote,
    wire: Wire,
    only: str | None,
    *,
    workflows: bool,
) -> PullReport:
    """Pull into a new store; when nothing is to be had, say why that is so.

    Raises:
        UsageError: The remote is of another kind, or holds code.
    """
    from uwfgit.sync.exchange.remote_kind import require_kind

    try:
        report = pull_threads(
            context, ledger, remote, wire, only=only, workflows=workflows
        )
    except NotFoundError:
        require_kind(ledger.store, remote, wire=wire)
        raise
    if not (report.outcomes or report.up_to_date):
        require_kind(ledger.store, remote, wire=wire)
    return report
