"""Commands about the store itself: init, store and git."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from uwfgit.cli.commands import Passthrough, add_command, make_group, make_single
from uwfgit.cli.context import CommandContext, get_context
from uwfgit.cli.output import format_fields, talk
from uwfgit.cli.screen import shown, shown_lines
from uwfgit.errors import UsageError

init_app = make_single()
store_app = make_group("Say where the store is, or trust one.")
git_app = make_single()

_READS_STDIN: Final = ("--stdin", "--batch")
_SHOWS_PROGRESS: Final = frozenset(
    {"bundle", "clone", "fetch", "fsck", "gc", "maintenance", "pull", "push", "repack"}
)


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
    from uwfgit.store.repository import init_store, resolve_path

    context = get_context(ctx)
    if user and context.options.store is not None:
        raise UsageError("--user and --store name two stores", hint="give one")
    chosen = context.home / "store" if user else context.store_choice.path
    path = resolve_path(chosen)
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
    context.output.emit({"store": str(store.path)}, lambda: str(store.path))


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
    from uwfgit.store.repository import resolve_path, trust_store

    context = get_context(ctx)
    chosen = context.resolve(path) if path else context.store_choice.path
    store = resolve_path(chosen)
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

    The repository variables of the environment, hooks and replace refs are
    left out; what a push would send is scanned for secrets first. All words
    behind 'git' are git's own.
    """
    context = get_context(ctx)
    words = arguments or []
    if not words:
        raise UsageError(
            "git needs its arguments", hint="for example: uwf git log --all"
        )
    is_push = "push" in words
    store = context.open_store(write=is_push, create=False)
    if is_push:
        words = _with_scan(context, words, store.path)
    raise typer.Exit(_run_git(context, words, store.path))


def _with_scan(context: CommandContext, words: list[str], store: Path) -> list[str]:
    """Let git run the store's one hook, which scans what a push would send."""
    if "--no-verify" in words:
        context.output.warn("--no-verify: nothing is scanned for secrets")
    # The door switches hooks off; of two settings the later counts.
    return ["-c", f"core.hooksPath={store / 'hooks'}", *words]


def _run_git(context: CommandContext, words: list[str], store: Path) -> int:
    from uwfgit.store.gitcmd import pass_to_git, run_git

    environment = context.child_environment()
    reads_stdin = any(word.startswith(_READS_STDIN) for word in words)
    if context.output.width is None or _SHOWS_PROGRESS & {*words} or reads_stdin:
        return pass_to_git(words, git_dir=store, environment=environment)
    # On a terminal: git prints names, messages and contents as they are stored.
    done = run_git(words, git_dir=store, environment=environment)
    if done.stderr:
        talk(shown_lines(done.stderr.decode(errors="replace")).rstrip("\n"))
    if done.stdout:
        context.output.emit_document(shown_lines(done.stdout.decode(errors="replace")))
    return done.code
