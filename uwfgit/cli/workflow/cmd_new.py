"""``workflow new`` and ``workflow schema``: a start for people who write workflows."""

from __future__ import annotations

import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

import typer

from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import Column, format_json, format_table, write
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.workflow.examples import example_files, list_examples
from uwfgit.errors import UsageError
from uwfgit.store.files import write_new

FOLDER: Final = ".workflows"
SCHEMA_FILE: Final = "workflow.schema.json"
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def new_command(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Its name: solve-issue, for example."),
    ] = None,
    example: Annotated[
        str | None,
        typer.Option("--from", metavar="EXAMPLE", help="Begin with this example."),
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="Only list the examples.")
    ] = False,
) -> None:
    """Write a workflow to start from: .workflows/NAME.yaml.

    It is valid as it is, and its comments explain the rest. The folder is the
    nearest .workflows above, else a new one at the top of the repository. A
    file that is there is never overwritten. With --from it is one of the
    examples, whose name it has unless NAME says another; workflows that its roles
    name, and files it includes, are written beside it.
    """
    context = get_context(ctx)
    if show_list:
        _list_examples(context)
        return
    name = name or example
    if name is None:
        raise UsageError("give the workflow a name", hint="or see --list")
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"'{name}' cannot be a workflow's name",
            hint="use lower-case letters, digits and single hyphens: solve-issue",
        )
    if example is not None:
        _write_example(context, name, example)
        return
    path = _find_folder(context) / f"{name}.yaml"
    shown_path = _relative(context, path)
    schema = shown_path.with_name(SCHEMA_FILE)
    text = starter_text(name, file=str(shown_path), schema=str(schema))
    write_new(path, text.encode(), name=str(shown_path))
    payload = {
        "name": name,
        "file": str(path),
        "text": text,
        "changes": [f"created {shown_path}"],
    }
    context.output.emit(payload, lambda: f"created {shown(str(shown_path))}")
    if context.output.is_text:
        context.output.say(f"next: edit it, then: uwf workflow graph {name}")


def _list_examples(context: CommandContext) -> None:
    items = list_examples()
    columns = [Column(title="EXAMPLE"), Column(title="DESCRIPTION", flexible=True)]
    rows = [(each.name, each.description) for each in items]
    payload = {
        "items": [
            {"name": each.name, "description": each.description} for each in items
        ]
    }
    context.output.emit(payload, lambda: format_table(context.output, columns, rows))
    if context.output.is_text:
        context.output.say("begin with one: uwf workflow new --from EXAMPLE")


def _write_example(context: CommandContext, name: str, example: str) -> None:
    folder = _find_folder(context)
    changes = []
    for path, text in example_files(example, name=name):
        target = folder / path
        is_own = path == f"{name}.yaml"
        if target.exists() and not is_own:
            continue
        shown_path = str(_relative(context, target))
        write_new(target, text.encode(), name=shown_path)
        changes.append(f"created {shown_path}")
    payload = {
        "name": name,
        "file": str(folder / f"{name}.yaml"),
        "text": (folder / f"{name}.yaml").read_text("utf-8"),
        "changes": changes,
    }
    context.output.emit(payload, lambda: "\n".join(map(shown, changes)))
    if context.output.is_text:
        context.output.say(f"next: edit it, then: uwf workflow graph {name}")


def starter_text(name: str, *, file: str, schema: str) -> str:
    """Return the text of a new workflow."""
    text = files("uwfgit.cli").joinpath("starter.yaml").read_text("utf-8")
    return (
        text.replace("NAME", name)
        .replace("SCHEMA", schema)
        .replace("validate FILE", f"validate {file}")
    )


def _find_folder(context: CommandContext) -> Path:
    here = context.cwd.resolve()
    root = context.enclosing.root if context.enclosing is not None else here
    for directory in (here, *here.parents):
        if (directory / FOLDER).is_dir():
            return directory / FOLDER
        if directory == root:
            break
    return root / FOLDER


def _relative(context: CommandContext, path: Path) -> Path:
    return Path(os.path.relpath(path, context.cwd.resolve()))


def schema_command(ctx: typer.Context) -> None:
    """Print the JSON Schema of a workflow file, for editors.

    Put it beside the workflow files:

    uwf workflow schema > .workflows/workflow.schema.json

    and this line at the top of each. An editor with a YAML language server
    then checks and completes as you type:

    # yaml-language-server: $schema=workflow.schema.json

    For !include, its setting yaml.customTags needs the entry "!include scalar".
    """
    from uwfgit.model.workflow.editor_schema import editor_schema

    context = get_context(ctx)
    schema = editor_schema()
    if context.output.is_text:
        write(format_json(schema) + "\n")
    else:
        context.output.emit(schema, str)
