"""Hooks for git that check what passes by."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from uwfgit.cli.check.checks import allow_findings
from uwfgit.cli.frame.commands import add_command, make_group
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import talk
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.hooks.precommit import install_pre_receive
from uwfgit.cli.hooks.receiving import pre_receive_command
from uwfgit.errors import InvalidError, UsageError
from uwfgit.ids import Oid, is_oid

if TYPE_CHECKING:
    from uwfgit.sync.secrets.scan import Leaving

_NOTHING = "0" * 40
_FIELDS = 4


def pre_push_command(
    ctx: typer.Context,
    remote: Annotated[  # noqa: ARG001 - git gives it
        str, typer.Argument(metavar="REMOTE", help="Where to.")
    ],
    url: Annotated[  # noqa: ARG001 - git gives it; it may hold a password
        str, typer.Argument(metavar="URL", help="Its address.")
    ] = "",
) -> None:
    """Scan what a plain git push is about to send; git calls this."""
    from uwfgit.model.thread.private import find_private
    from uwfgit.sync.secrets.scan import find_leaving, list_findings, way_out

    context = get_context(ctx)
    store = context.open_store()
    leaving = list(_read_leaving())
    for ref, why in find_private(store, [ref for ref, _, _ in leaving]).items():
        raise InvalidError(f"{shown(ref)} may not leave: {why}")
    found = find_leaving(store, leaving, environment=context.environment)
    if not found:
        return
    count = len({finding.id for finding in found})
    what = "a secret" if count == 1 else f"{count} secrets"
    talk(f"error: {what} would leave with this push; nothing was sent")
    for line in list_findings(found):
        talk(f"  {shown(line)}")
    talk(f"hint: {shown(way_out(found, leaving))}")
    raise typer.Exit(1)


def _read_leaving() -> Iterator[Leaving]:
    """Read what git says it will send: local ref, its oid, theirs, its oid."""
    lines = sys.stdin.read().splitlines() if sys.stdin is not None else []
    for line in lines:
        words = line.split(" ")
        if len(words) != _FIELDS or not (is_oid(words[1]) and is_oid(words[3])):
            raise UsageError("git's list of refs is not of the form it has")
        ref, new, _, old = words
        if new != _NOTHING:
            yield ref, Oid(new), None if old == _NOTHING else Oid(old)


def allow_command(
    ctx: typer.Context,
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID...]", help="As the scan shows them."),
    ] = None,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Take it back: let them through no longer.")
    ] = False,
) -> None:
    """Let findings of the secret scan through, now and later.

    For what only looks like a secret. It holds in this store, for every thread
    and remote, until --revoke takes it back. Each is recorded in the store's own
    folder, with your name and the time. Without an ID, list them.
    """
    from uwfgit.sync.secrets.allowed import read_allowed

    context = get_context(ctx)
    if not ids and revoke:
        raise UsageError("--revoke needs an ID", hint="list them: uwf hooks allow")
    if not ids:
        items = sorted(read_allowed(context.open_store()))
        if not items:
            context.output.say("nothing is let through")
        context.output.emit({"items": items}, lambda: "\n".join(items))
        return
    store = context.open_store(write=True, create=False)
    allow_findings(context, store, ids, revoke=revoke)
    word = "revoked" if revoke else "allowed"
    context.output.emit({word: ids}, lambda: f"{word} {', '.join(ids)}")


app = make_group("Install hooks that check workflows and threads.")


@add_command(app, "install")
def install(
    ctx: typer.Context,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="DIR",
            help="Instead: check what is pushed to this bare repository.",
        ),
    ] = None,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared", help="With --server: it holds code, which is left unchecked."
        ),
    ] = False,
) -> None:
    """Install the hook pre-commit in the repository around this folder.

    It checks the workflows that a commit changes, as they are staged. A hook
    that is there is never overwritten: beside pre-commit, husky, core.hooksPath
    or a hook of yours, what to add is printed, and the exit code is 1.

    With --server it is the hook pre-receive of a bare repository that others
    push to; run it as the user who serves that. It refuses threads that do not
    verify, rewinds and deletions of them, and refs that are none of uwf's. When
    the check fails, hangs or is missing, nothing is taken. Where core.hooksPath
    keeps git from running it, nothing is installed.
    """
    context = get_context(ctx)
    if server is not None:
        install_pre_receive(context, server, shared=shared)
    elif shared:
        raise UsageError("--shared goes with --server DIR")
    else:
        _install_pre_commit(context)


add_command(app, "pre-receive", hidden=True)(pre_receive_command)
add_command(app, "pre-push", hidden=True)(pre_push_command)
add_command(app, "allow")(allow_command)


def _install_pre_commit(context: CommandContext) -> None:
    from uwfgit.cli.hooks.precommit import install_pre_commit

    done = install_pre_commit(context)
    is_in_place = done.add is None
    payload = {
        "hook": "pre-commit",
        "path": str(done.path),
        "installed": is_in_place,
        "changed": done.changed,
        "reason": done.reason,
        "add": done.add,
    }
    if done.reason is not None:
        context.output.say(shown(done.reason))
    word = "installed" if done.changed else "unchanged:"
    text = f"{word} {shown(str(done.path))}" if is_in_place else done.add or ""
    context.output.emit(payload, lambda: text)
    raise typer.Exit(0 if is_in_place else 1)
