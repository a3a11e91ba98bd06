"""Commands about reviews of threads on a forge: open, update, close, approve, setup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uwfgit.cli.check.checks import make_scan, make_verify
from uwfgit.cli.frame.arguments import ThreadArgument, require_text
from uwfgit.cli.frame.commands import add_command, make_group
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import ask, can_ask, format_fields
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.share.remote_session import (
    open_wire,
    require_same_address,
    take_remote,
)
from uwfgit.errors import UsageError

if TYPE_CHECKING:
    from uwfgit.ids import ThreadId
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.sync.exchange.remotes import Remote
    from uwfgit.sync.review.forges import Ci, Forge
    from uwfgit.sync.review.review import Review

app = make_group("Have threads reviewed where people review.")

RemoteOption = Annotated[
    str | None,
    typer.Option("--remote", metavar="NAME", help="Where; else the one there is."),
]
ForgeOption = Annotated[
    str | None,
    typer.Option(
        "--forge",
        metavar="KIND",
        help="github, gitlab, gitea (Forgejo too) or bitbucket; else by its address.",
    ),
]


@add_command(app, "open")
def open_(
    ctx: typer.Context,
    thread: ThreadArgument,
    first: Annotated[
        int | None, typer.Option("--from", metavar="N", help="The first step.")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--to", metavar="M", help="The last step.")
    ] = None,
    remote: RemoteOption = None,
    forge: ForgeOption = None,
) -> None:
    """Push a thread as a branch for review, beside its base.

    A forge then shows its steps as commits and their outputs as files.
    """
    from uwfgit.sync.review.review import open_review

    send = partial(open_review, first=first, last=last)
    _send(get_context(ctx), send, thread, remote=remote, forge=forge)


@add_command(app, "update")
def update(
    ctx: typer.Context,
    thread: ThreadArgument,
    remote: RemoteOption = None,
    forge: ForgeOption = None,
) -> None:
    """Push what a thread has become to its open review."""
    from uwfgit.sync.review.review import update_review

    _send(get_context(ctx), update_review, thread, remote=remote, forge=forge)


def _send(
    context: CommandContext,
    send: Callable[..., Review],
    thread: str,
    *,
    remote: str | None,
    forge: str | None,
) -> None:
    """Push a review as ``send`` does, and print it."""
    from uwfgit.model.ledger.ledger import resolve_thread
    from uwfgit.model.thread.family import named_children
    from uwfgit.model.thread.record import open_record
    from uwfgit.model.thread.tip import load_tip

    kind = _forge(forge)
    ledger = context.open_ledger(write=True, create=False)
    there = _remote(context, ledger, remote)
    with open_wire(context, there) as wire:
        review = send(
            ledger,
            there,
            resolve_thread(ledger, thread),
            wire=wire,
            verify=make_verify(context),
            scan=make_scan(context, ledger.store),
        )
    tip = load_tip(ledger.store, review.thread)
    children = named_children(open_record(ledger.store, tip, checked=False))
    _tell(context, there, review, kind, children)


@add_command(app, "close")
def close(
    ctx: typer.Context, thread: ThreadArgument, remote: RemoteOption = None
) -> None:
    """Remove a review's branches there; the thread itself stays."""
    from uwfgit.model.ledger.ledger import resolve_thread
    from uwfgit.sync.review.review import close_review

    context = get_context(ctx)
    ledger = context.open_ledger(write=True, create=False)
    found = resolve_thread(ledger, thread)
    there = _remote(context, ledger, remote)
    with open_wire(context, there) as wire:
        gone = close_review(ledger, there, found, wire=wire)
    context.output.emit(
        {"threadId": found, "remote": there.name, "removed": list(gone)},
        lambda: f"removed {', '.join(gone)}" if gone else "no review is open there",
    )


@add_command(app, "approve")
def approve(
    ctx: typer.Context,
    thread: ThreadArgument,
    step: Annotated[
        int | None, typer.Option("--step", metavar="N", help="Which; else the newest.")
    ] = None,
    message: Annotated[
        str | None, typer.Option("--message", "-m", metavar="TEXT", help="Why.")
    ] = None,
    sign: Annotated[
        bool | None,
        typer.Option("--sign/--no-sign", help="Else as git's own settings say."),
    ] = None,
) -> None:
    """Approve a step by a tag on its commit; the next push shares it.

    'uwf verify --signatures' says whose approvals git accepts.
    """
    from uwfgit.model.ledger.ledger import resolve_thread
    from uwfgit.sync.review.review import approve as make_approval

    context = get_context(ctx)
    ledger = context.open_ledger(write=True, create=False)
    found = resolve_thread(ledger, thread)
    if message is not None:
        message = require_text(message, "--message")
        message = context.mask(message, what="--message")
    done = make_approval(
        ledger,
        found,
        verify=make_verify(context),
        step=step,
        message=message,
        sign=sign,
        environment=context.environment,
    )
    payload = {
        "threadId": found,
        "tag": done.tag,
        "oid": done.oid,
        "commit": done.commit,
        "step": done.step,
        "signed": done.signed,
    }
    word = "signed" if done.signed else "not signed"
    context.output.emit(payload, lambda: f"{done.tag} ({word})")
    if context.output.is_text:
        context.output.say(f"share it: uwf push {found}")


@add_command(app, "setup")
def setup(
    ctx: typer.Context,
    ci: Annotated[
        str, typer.Option("--ci", metavar="KIND", help="github, gitea or gitlab.")
    ],
    install: Annotated[
        str | None,
        typer.Option(
            "--install",
            metavar="SOURCE",
            help="Where the job installs uwf from, pinned: 'uwfgit @ git+URL@COMMIT', "
            "or a wheel's URL with #sha256=HASH.",
        ),
    ] = None,
    remote: RemoteOption = None,
) -> None:
    """Add a CI job to the reviews' base that verifies what is reviewed.

    For forges whose servers take no hooks.
    """
    from uwfgit.sync.review.forges import CIS, check_source, make_job
    from uwfgit.sync.review.jobs import set_up

    context = get_context(ctx)
    if ci not in CIS:
        raise UsageError(f"--ci: '{ci}' is none of {', '.join(CIS)}")
    kind: Ci = ci
    if install is None and can_ask():
        install = ask("install uwf from (uwfgit @ git+URL@COMMIT): ").strip()
    source = check_source(install or "uwfgit")
    ledger = context.open_ledger(write=True, create=False)
    there = _remote(context, ledger, remote)
    is_shared = there.kind == "shared"
    with open_wire(context, there) as wire:
        scan = make_scan(context, ledger.store)
        base, oid = set_up(ledger, there, kind, install=source, wire=wire, scan=scan)
    path = make_job(kind, beside_code=is_shared, install=source).path
    context.output.emit(
        {"remote": there.name, "base": base, "oid": oid, "file": path},
        lambda: f"{path} is in branch {base} of {shown(there.name)}",
    )
    if context.output.is_text:
        _tell_needs(context, there, kind, base)


def _tell_needs(context: CommandContext, remote: Remote, ci: Ci, base: str) -> None:
    """Say what a forge has to be told before it runs the job."""
    from uwfgit.sync.review.forges import find_page

    if ci == "gitlab" and remote.kind == "shared":
        context.output.say("turn on merged results pipelines: the job is in the base")
    elif ci == "gitlab":
        page = find_page(remote.url)
        project = shown(page.path) if page else "GROUP/PROJECT"
        context.output.say(
            "in the project's settings, set the CI/CD configuration file to: "
            f".gitlab-ci.yml@{project}:{base}"
        )
    elif ci == "github" and remote.kind == "dedicated":
        context.output.say(f"{base} has to be the repository's default branch")


def _remote(context: CommandContext, ledger: Ledger, name: str | None) -> Remote:
    from uwfgit.sync.exchange.remotes import get_remote

    if name is not None:
        found = get_remote(ledger.store, name)
    else:
        found = take_remote(context, ledger.store, [])[0]
    require_same_address(context, ledger.store, found)
    return found


def _forge(name: str | None) -> Forge | None:
    from uwfgit.sync.review.forges import FORGES

    if name is None:
        return None
    if name == "forgejo":
        return "gitea"
    if name not in FORGES:
        raise UsageError(f"--forge: '{name}' is none of {', '.join(FORGES)}")
    return name


def _tell(
    context: CommandContext,
    remote: Remote,
    review: Review,
    forge: Forge | None,
    children: Sequence[ThreadId],
) -> None:
    """Print a review, and the threads that did steps of it and are not in it."""
    from uwfgit.sync.review.forges import compare_link, find_page

    link = compare_link(remote.url, base=review.base, head=review.head, forge=forge)
    payload: dict[str, Any] = {
        "threadId": review.thread,
        "remote": remote.name,
        "head": review.head,
        "base": review.base,
        "oid": review.oid,
        "baseOid": review.base_oid,
        "link": link,
        "children": list(children),
    }
    fields = [
        ("branch", review.head),
        ("compared with", review.base),
        *([("open it", link)] if link else []),
        *(("not in it", f"{child}, which did a step") for child in children),
    ]
    context.output.emit(payload, lambda: format_fields(context.output, fields))
    page = find_page(remote.url)
    if link is None and page is not None and context.output.is_text:
        context.output.say(
            f"no link: nobody knows the forge at {shown(page.host)}; "
            "--forge KIND makes one"
        )
