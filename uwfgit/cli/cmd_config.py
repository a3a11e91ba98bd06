"""Commands about the configuration: list, get and set."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from uwfgit.cli.commands import add_command, make_group
from uwfgit.cli.context import CONFIG_FILE, CommandContext, get_context
from uwfgit.cli.output import Column, format_json, format_table
from uwfgit.cli.screen import shown
from uwfgit.cli.world import read_config
from uwfgit.config import get_key, masked, set_key
from uwfgit.errors import ConfigError

app = make_group("Show and change settings.")

KeyArgument = Annotated[
    str, typer.Argument(metavar="KEY", help="For example limits.maxSteps.")
]


@add_command(app, "list")
def list_(
    ctx: typer.Context,
    show_origin: Annotated[
        bool, typer.Option("--show-origin", help="Say which file each value is from.")
    ] = False,
) -> None:
    """List all settings in force, defaults included; secrets are masked."""
    context = get_context(ctx)
    entries = context.settings.entries
    shown_values = {e.key: masked(e.value, path=e.path) for e in entries}
    if show_origin:
        payload: dict[str, Any] = {
            e.key: {"value": shown_values[e.key], "origin": e.origin} for e in entries
        }
    else:
        payload = shown_values
    columns = [Column(title="KEY"), Column(title="VALUE")]
    if show_origin:
        columns.append(Column(title="ORIGIN"))
    rows = [
        (e.key, _flat(shown_values[e.key]), *([e.origin] if show_origin else []))
        for e in entries
    ]
    context.output.emit(payload, lambda: format_table(context.output, columns, rows))


def _flat(value: object) -> str:
    return value if isinstance(value, str) else format_json(value).replace("\n", " ")


@add_command(app, "get")
def get(ctx: typer.Context, key: KeyArgument) -> None:
    """Print one setting in force, or a group of them."""
    context = get_context(ctx)
    value = get_key(_as_tree(context), key)
    visible = masked(value, path=tuple(key.split(".")))
    context.output.emit(visible, lambda: _value_text(visible))


def _as_tree(context: CommandContext) -> dict[str, object]:
    tree: dict[str, object] = {}
    for entry in context.settings.entries:
        level = tree
        for part in entry.path[:-1]:
            level = cast("dict[str, object]", level.setdefault(part, {}))
        level[entry.path[-1]] = entry.value
    return tree


def _value_text(value: object) -> str:
    return shown(value) if isinstance(value, str) else format_json(value)


@add_command(app, "set")
def set_(
    ctx: typer.Context,
    key: KeyArgument,
    value: Annotated[
        str, typer.Argument(metavar="VALUE", help="Lists are JSON arrays.")
    ],
) -> None:
    """Change one setting in the user's configuration.

    The file is written anew; comments in it are lost.
    """
    context = get_context(ctx)
    path = context.home / CONFIG_FILE
    content = read_config(path)
    if content is not None and not isinstance(content, Mapping):
        raise ConfigError("the file must hold a mapping", source=path)
    changed = set_key(content or {}, key, value, source=str(path))
    _write_config(path, changed)
    stored = masked(get_key(changed, key), path=tuple(key.split(".")))
    context.output.emit({key: stored}, lambda: f"{shown(key)} = {_value_text(stored)}")


def _write_config(path: Path, content: Mapping[str, object]) -> None:
    from uwfgit.model.yamldump import dump_yaml

    data = dump_yaml(dict(content)).encode()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # mkstemp makes the file 0600; the file is replaced whole or not at all.
        descriptor, name = tempfile.mkstemp(prefix=".config-", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except OSError as exc:
        raise ConfigError(f"cannot be written: {exc.strerror}", source=path) from exc
