"""The reference of all commands, ``docs/cli.md``, from the command tree."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from uwfgit.cli.frame.app import EXIT_MEANINGS, make_program
from uwfgit.cli.frame.catalog import CATALOG
from uwfgit.cli.frame.commands import Click

_WIDTH = 80
_HEAD = """\
# Commands

<!-- Written by `python scripts/write_docs.py`; do not edit. -->

stdout is data, stderr is talk. Global options stand anywhere before `--`, except
behind `uwf git`. With `--json` a command prints one JSON object; an error
is one object `{"error": {"code", "message", "hint"}}` on stderr, with `problems` when
several things are wrong, and `needs` naming the options without which a thread of
others does not run.
"""


def iter_commands(ctx: Click, *, hidden: bool = False) -> Iterator[Click]:
    """Yield the context of every command below one, groups before their commands."""
    for name in ctx.command.list_commands(ctx):
        command = ctx.command.get_command(ctx, name)
        if command.hidden and not hidden:
            continue
        settings = {**command.context_settings, "terminal_width": _WIDTH}
        inner = typer.Context(command, info_name=name, parent=ctx, **settings)
        yield inner
        if hasattr(command, "list_commands"):
            yield from iter_commands(inner, hidden=hidden)


def root_context() -> Click:
    """Return the context of ``uwf`` itself."""
    root = make_program()
    settings = {**root.context_settings, "terminal_width": _WIDTH}
    return typer.Context(root, info_name="uwf", **settings)


def reference_text() -> str:
    """Write the reference of all commands as markdown."""
    root = root_context()
    rows = [f"| {codes} | {meaning} |" for codes, meaning in EXIT_MEANINGS.items()]
    exits = "\n".join(["| exit | meaning |", "|---|---|", *rows, ""])
    parts = [_HEAD, _help_block(root), exits]
    lines = {entry.name: entry.help for entry in CATALOG}
    for ctx in iter_commands(root):
        depth = ctx.command_path.count(" ")
        title = f"{'#' * min(depth + 1, 4)} {ctx.command_path}"
        about = lines.get(ctx.command_path.removeprefix("uwf "))
        parts.append(f"{title}\n\n{about}.\n" if about and depth == 1 else f"{title}\n")
        parts.append(_help_block(ctx))
    return "\n".join(parts)


def _help_block(ctx: Click) -> str:
    lines = [line.rstrip() for line in ctx.get_help().splitlines()]
    return "```text\n" + "\n".join(lines) + "\n```\n"
