"""Hooks for git that check what passes by."""

from __future__ import annotations

from typing import Annotated

import typer

from uwfgit.cli.commands import add_command, make_group
from uwfgit.cli.context import CommandContext, get_context
from uwfgit.cli.leaving import allow_command, pre_push_command
from uwfgit.cli.receiving import pre_receive_command
from uwfgit.cli.screen import shown
from uwfgit.cli.serverhook import install_pre_receive
from uwfgit.errors import UsageError

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
    from uwfgit.cli.precommit import install_pre_commit

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
