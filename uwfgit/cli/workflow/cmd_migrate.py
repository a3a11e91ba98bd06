"""``workflow migrate``: older workflow files in the current form."""

from __future__ import annotations

import os
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.screen import paint_diff, shown, shown_lines
from uwfgit.cli.workflow.problems import problem_lines, problem_payload
from uwfgit.errors import StoreError

if TYPE_CHECKING:
    from uwfgit.model.workflow.migrate import Migration


def migrate_command(
    ctx: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A workflow file, or its name.")
    ],
    write: Annotated[
        bool, typer.Option("--write", help="Change the file, not only show how.")
    ] = False,
) -> None:
    """Bring an older workflow file to the current form.

    Shows the difference; comments and layout stay. Such a file runs as it is,
    so this is for whoever edits it next. What cannot be done is named, and the
    exit code is then 1. Doing it twice changes nothing more.
    """
    from uwfgit.model.workflow.migrate import migrate_file, write_migrated

    context = get_context(ctx)
    path = context.resolve(file)
    if not path.exists() and not path.is_symlink():
        from uwfgit.cli.workflow.workflows import find_file

        path = find_file(context, file)
        file = os.path.relpath(path, context.cwd)
    # Problems name the file as the user did, so that editors find it.
    named = path if file.startswith("~") else Path(file)
    migration = migrate_file(path, shown=named)
    is_written = write and migration.text != migration.before
    if is_written:
        try:
            write_migrated(path, migration)
        except OSError as exc:
            raise StoreError(f"cannot write '{file}': {exc.strerror}") from exc
    payload = _payload(file, migration, written=is_written)
    context.output.emit(payload, lambda: _diff_text(context, file, migration))
    if context.output.is_text:
        _talk(context, file, migration, written=is_written)
    raise typer.Exit(1 if migration.problems else 0)


def _payload(file: str, migration: Migration, *, written: bool) -> dict[str, Any]:
    return {
        "file": file,
        "text": migration.text,
        "written": written,
        "changes": [
            {
                "line": change.place.line,
                "column": change.place.column,
                "path": change.path,
                "form": change.form,
                "action": change.action,
            }
            for change in migration.changes
        ],
        "problems": [problem_payload(problem) for problem in migration.problems],
    }


def _diff_text(context: CommandContext, file: str, migration: Migration) -> str:
    named = _named_for_patch(context, file)
    lines = unified_diff(
        migration.before.splitlines(),
        migration.text.splitlines(),
        fromfile=f"a/{named}",
        tofile=f"b/{named}",
        lineterm="",
    )
    text = shown_lines("\n".join(lines))
    if not context.output.is_colored:
        return text
    return paint_diff(text)


def _named_for_patch(context: CommandContext, file: str) -> str:
    """Name a file as ``git apply`` wants it: from here, or from its work tree."""
    path = context.resolve(file)
    roots = (context.cwd, *(each for each in path.parents if (each / ".git").exists()))
    inside = [root for root in roots if path.is_relative_to(root)]
    return str(path.relative_to(inside[0] if inside else path.anchor))


def _talk(
    context: CommandContext, file: str, migration: Migration, *, written: bool
) -> None:
    output = context.output
    for change in migration.changes:
        place = f"{change.place.line}:{change.place.column}"
        output.say(shown(f"{place}: {change.form}: {change.action}"))
    for line in problem_lines(context, migration.problems):
        output.say(line)
    if written:
        output.say(f"wrote {shown(file)}")
    elif migration.text != migration.before:
        output.say("nothing was written; --write changes the file")
    elif not migration.problems:
        output.say(f"{shown(file)} is of the current form")
