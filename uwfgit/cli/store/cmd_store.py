"""Commands about the store itself: init, store and git."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer

from uwfgit.cli.frame.commands import Passthrough, add_command, make_group, make_single
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import format_fields, talk_width
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.frame.world import child_environment
from uwfgit.cli.store.git_output import GitWords, read_words
from uwfgit.errors import StoreError, UsageError

init_app = make_single()
store_app = make_group("Say where the store is, or trust one.")
git_app = make_single()

_READS_STDIN: Final = ("--stdin", "--batch")
_SHOWS_PROGRESS: Final = frozenset(
    {"bundle", "clone", "fetch", "fsck", "gc", "maintenance", "pull", "push", "repack"}
)
_TAKES_PROGRESS: Final = frozenset({"clone", "fetch", "fsck", "pull", "push"})
_QUIET: Final = frozenset({"-q", "--quiet", "--no-progress", "-h", "--help"})


@add_command(init_app, "init")
def init(
    ctx: typer.Context,
    user: Annotated[
        bool, typer.Option("--user", help="Create the user's own store.")
    ] = False,
) -> None:
    """Create the store this folder would use.

    Inside a work tree that is its repository's store, shared by all its
    worktrees; elsewhere the user's own. With --store PATH it is any other. An
    existing store, or a bare repository, is completed and trusted.
    """
    from uwfgit.store.repository import init_store

    context = get_context(ctx)
    if user and context.options.store is not None:
        raise UsageError("--user and --store name two stores", hint="give one")
    chosen = context.home / "store" if user else context.store_choice.path
    path = Path(os.path.realpath(chosen))
    created = init_store(path, home=context.home)
    done = "created store" if created else "store was there:"
    context.output.emit(
        {"store": str(path), "created": created}, lambda: f"{done} {shown(str(path))}"
    )


@add_command(store_app, "path")
def path(ctx: typer.Context) -> None:
    """Print where the store is.

    Fails when there is none, so that $(uwf store path) never names nothing.
    """
    context = get_context(ctx)
    store = context.open_store()
    context.output.emit_data({"store": str(store.path)}, str(store.path))


@add_command(store_app, "trust")
def trust(
    ctx: typer.Context,
    path: Annotated[
        str | None,
        typer.Argument(metavar="[PATH]", help="The store; else this folder's."),
    ] = None,
) -> None:
    """Trust a store that was not made on this machine.

    Its config and hooks are checked first: a store that would run something is
    refused all the same.
    """
    from uwfgit.store.repository import trust_store

    context = get_context(ctx)
    chosen = context.resolve(path) if path else context.store_choice.path
    store = Path(os.path.realpath(chosen))
    added = trust_store(store, home=context.home)
    context.output.emit(
        {"store": str(store), "trusted": True},
        lambda: format_fields(
            context.output,
            [("store", str(store)), ("trusted", "yes" if added else "yes, before too")],
        ),
    )


@add_command(
    git_app,
    "git",
    cls=Passthrough,
    settings={
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
        "help_option_names": [],
    },
)
def git(
    ctx: typer.Context,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS...", help="What git gets.")
    ] = None,
) -> None:
    """Run git inside the store.

    The repository variables of the environment, replace refs and hooks other
    than uwf's are left out. What a push would send is scanned for secrets
    first, whatever alias it goes by; other commands that send or serve
    objects, as send-pack, bundle create or daemon, are refused and name uwf's
    way. What only prints or writes here, as show, archive or format-patch, is
    not scanned. All words behind 'git' are git's own.

    On a terminal, escapes in what git prints are shown, not obeyed; for git's
    own pager, colours and editor: git --git-dir="$(uwf store path)" ...
    """
    context = get_context(ctx)
    words = arguments or []
    if not words:
        raise UsageError(
            "git needs its arguments", hint="for example: uwf git log --all"
        )
    store = context.open_store()
    environment = child_environment(context.environment)
    read = read_words(words, store=store.path, environment=environment)
    if read.is_push:
        _require_scan(context, read, store.path)
    if read.name != "config":
        raise typer.Exit(_run_git(context, read, store.path, environment))
    from uwfgit.store.repository import keeping_config

    with keeping_config(store.path):
        code = _run_git(context, read, store.path, environment)
    raise typer.Exit(code)


def _require_scan(context: CommandContext, read: GitWords, store: Path) -> None:
    from uwfgit.store.care.integrity import is_scanning
    from uwfgit.store.safety.trust import install_hook

    if read.is_unscanned:
        context.output.warn("--no-verify: nothing is scanned for secrets")
        return
    with suppress(StoreError):
        install_hook(store, "pre-push")
    if not is_scanning(store):
        raise StoreError(
            f"'{store / 'hooks' / 'pre-push'}' is not what uwf writes: "
            "nothing would be scanned for secrets",
            hint="uwf doctor --fix",
        )


def _run_git(
    context: CommandContext,
    read: GitWords,
    store: Path,
    environment: Mapping[str, str],
) -> int:
    from uwfgit.cli.store.git_output import run_shown

    is_live = read.name in _SHOWS_PROGRESS or any(
        word.startswith(_READS_STDIN) for word in read.command
    )
    command = list(read.command)
    takes = not _TAKES_PROGRESS.isdisjoint(command[:1]) and _QUIET.isdisjoint(command)
    if takes and talk_width(quiet=False) is not None:
        # git shows it by itself on a terminal only.
        command.insert(1, "--progress")
    # The door switches hooks off. Of two settings the later counts: here the one
    # hook runs, a user's own -c notwithstanding, and git guesses no command.
    ours = ["-c", f"core.hooksPath={store / 'hooks'}", "-c", "help.autocorrect=0"]
    words = [*read.options, *(ours if command else ()), *command]
    return run_shown(
        context.output,
        words,
        store,
        environment=environment,
        is_live=is_live,
    )
