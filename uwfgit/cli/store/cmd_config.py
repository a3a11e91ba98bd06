"""Commands about the configuration: list, get, set and secure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from uwfgit.cli.frame.commands import add_command, make_group
from uwfgit.cli.frame.context import CONFIG_FILE, CommandContext, get_context
from uwfgit.cli.frame.output import Column, format_json, format_table
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.frame.world import DOTENV_FILE, read_config
from uwfgit.config import (
    get_key,
    is_group,
    masked,
    parse_dotted,
    set_group,
    set_key,
    unset_key,
)
from uwfgit.config.table import KeyPath
from uwfgit.errors import ConfigError

if TYPE_CHECKING:
    from uwfgit.cli.store.securing import Move, MovedKey

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
        (
            e.key,
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False),
            *([e.origin] if show_origin else []),
        )
        for e in entries
        for value in (shown_values[e.key],)
    ]
    context.output.emit(payload, lambda: format_table(context.output, columns, rows))


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
        str,
        typer.Argument(
            metavar="VALUE", help="A list: a JSON array; a group: a mapping."
        ),
    ],
) -> None:
    """Change one setting, or a group of them, in the user's configuration.

    A group, such as agents.NAME, takes a mapping, and is then no more than that:
    '{kind: stdio, command: my-agent}'. The file is rewritten; comments in it are lost.
    """
    context = get_context(ctx)
    path = context.home / CONFIG_FILE
    content = read_config(path)
    if content is not None and not isinstance(content, Mapping):
        raise ConfigError("the file must hold a mapping", source=path)
    group = _read_group(key, value)
    if group is None:
        changed = set_key(content or {}, key, value, source=str(path))
        values: Mapping[KeyPath, object] = {parse_dotted(key) or (key,): value}
    else:
        changed, values = set_group(content or {}, key, group, source=str(path))
    for leaf, item in values.items():
        if isinstance(item, str):
            _check_agent(context, leaf, item, changed)
    _save(path, changed)
    stored = masked(get_key(changed, key), path=tuple(key.split(".")))
    context.output.emit({key: stored}, lambda: f"{shown(key)} = {_value_text(stored)}")


def _read_group(key: str, text: str) -> Mapping[str, object] | None:
    """Read the mapping that a group of keys is set by; ``None`` for any other text."""
    if not is_group(key) or not text.lstrip().startswith("{"):
        return None
    from uwfgit.model.yaml.core import parse_yaml

    return cast("Mapping[str, object]", parse_yaml(text, file="VALUE").value)


def _check_agent(
    context: CommandContext, path: KeyPath, value: str, content: Mapping[str, Any]
) -> None:
    """Refuse a kind, or a word for an agent, that nothing could be made of."""
    head, *rest = path
    if head not in {"agents", "defaultAgent", "agentOverrides"}:
        return
    from uwfgit.agents.registry import (
        KINDS,
        Surroundings,
        find_agent,
        unknown_kind,
    )
    from uwfgit.config import Settings

    kind: str | None = None
    if head == "agents" and rest[1:] == ["kind"]:
        kind = value
    elif head != "agents":
        aliases = content.get("agents")
        if isinstance(aliases, Mapping) and value in aliases:
            return
        around = Surroundings(
            settings=Settings(),
            base_dir=context.cwd,
            environment=context.environment,
            variables={},
        )
        kind = find_agent(value, around).kind
    if kind is not None and kind not in KINDS:
        raise unknown_kind(kind, key=".".join(path))


@add_command(app, "unset")
def unset(ctx: typer.Context, key: KeyArgument) -> None:
    """Remove one setting, or a group of them, from the user's configuration.

    The default, or the repository's value, counts again.
    """
    context = get_context(ctx)
    path = context.home / CONFIG_FILE
    content = read_config(path)
    changed = unset_key(content if isinstance(content, Mapping) else {}, key)
    _save(path, changed)
    payload = {"key": key, "removed": True}
    context.output.emit(payload, lambda: f"removed {shown(key)}")


def _save(path: Path, content: Mapping[str, Any]) -> None:
    from uwfgit.cli.store.securing import write_config

    write_config(path, content)


@add_command(app, "secure")
def secure(ctx: typer.Context) -> None:
    """Move API keys from the configuration into the .env file beside it.

    A provider then names the variable that holds its key. Everything else in both
    files stays as it is; a variable that has another value stops the command.
    """
    from uwfgit.cli.store.securing import plan_move, write_privately

    context = get_context(ctx)
    config, dotenv = context.home / CONFIG_FILE, context.home / DOTENV_FILE
    move = plan_move(config, dotenv)
    keys = move.keys if move is not None else ()
    if move is not None:
        # First where they go to: a key may stand twice, but must not be lost.
        write_privately(dotenv, move.dotenv)
        write_privately(config, move.config)
        for moved in keys:
            _warn_of_moved(context, move, moved)
    else:
        context.output.say(f"no API key stands in {shown(str(config))}")
    payload = {
        "file": str(dotenv),
        "moved": [{"key": each.key, "variable": each.variable} for each in keys],
    }
    lines = (f"{each.key}: moved to {each.variable} in {dotenv}" for each in keys)
    context.output.emit(payload, lambda: "\n".join(map(shown, lines)))


def _warn_of_moved(context: CommandContext, move: Move, moved: MovedKey) -> None:
    """Say where the key still stands, or that another one counts."""
    if lines := move.lines_left(moved):
        where = ", ".join(map(str, lines))
        context.output.warn(
            f"{CONFIG_FILE}: the value of {moved.key} also stands in line {where}"
        )
    if (context.environment.get(moved.variable) or moved.value) != moved.value:
        context.output.warn(
            f"{moved.variable} has another value in the environment, which counts"
        )
