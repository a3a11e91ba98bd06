"""Commands and groups as Typer classes: global options, aliases, did-you-mean."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo, TyperInfo

from uwfgit.cli.frame.catalog import CATALOG, CatalogEntry
from uwfgit.cli.frame.options import hidden_options, root_options
from uwfgit.errors import UsageError
from uwfgit.spelling import find_similar

Click: TypeAlias = Any
"""A context, parameter or command of the click inside Typer: no public names."""
Value: TypeAlias = Any
"""What the parser gives for a parameter, or what its function gets."""


class PlainValue:
    """Stands in for a parameter's coercion: text as it is, numbers parsed."""

    def __init__(self, parse: Callable[[Value, Click, Click], Value] | None) -> None:
        self._parse = parse

    def coerce(self, value: Value, param: Click, ctx: Click) -> Value:
        """Return the value as its parameter's type.

        Raises:
            typer.BadParameter: It is no number where one is asked for.
        """
        many = param.multiple or param.nargs == -1
        if value is None:
            return [] if many else None
        if self._parse is None or isinstance(value, int | float):
            return list(value) if many else value
        if many:
            return [self._parse(item, param, ctx) for item in value]
        return self._parse(value, param, ctx)


def _parse_integer(value: Value, param: Click, ctx: Click) -> int:
    digits = str(value).strip()
    if not (digits.isascii() and digits.removeprefix("-").isdigit()):
        raise typer.BadParameter(
            f"'{value}' is not a whole number", ctx=ctx, param=param
        )
    if len(digits) > _MOST_DIGITS:
        raise typer.BadParameter(
            f"a number of {len(digits)} digits is too large", ctx=ctx, param=param
        )
    return int(digits)


def _parse_number(value: Value, param: Click, ctx: Click) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if "_" in value or not math.isfinite(number):
        raise typer.BadParameter(f"'{value}' is not a number", ctx=ctx, param=param)
    return number


_PLAIN: Final = {
    str: PlainValue(None),
    bool: PlainValue(None),
    int: PlainValue(_parse_integer),
    float: PlainValue(_parse_number),
}
"""How values of the plain types are read."""

_MEANT: Final = {
    "attach": "uwf thread live THREAD",
    "live": "uwf thread live THREAD",
    "logs": "uwf thread live THREAD",
    "ls": "uwf thread list",
    "ps": "uwf thread running",
    "status": "uwf thread list",
    "tail": "uwf thread live THREAD",
}
"""What people call commands elsewhere, and what they mean by it here."""


def _find_elsewhere(name: str) -> str | None:
    """Find a command of that name in another group."""
    table = json.loads(Path(__file__).parents[1].joinpath(_WORDS).read_bytes())
    found = [path for path in table if path.rpartition(" ")[2] == name and " " in path]
    order = {group: index for index, group in enumerate(_GROUPS)}
    found.sort(key=lambda path: order.get(path.partition(" ")[0], len(order)))
    return f"uwf {found[0]}" if found else None


_WORDS: Final = "words/words.json"
_GROUPS: Final = ("thread", "workflow", "step")
"""Whose command is meant first, where several have one of that name."""

_MOST_DIGITS: Final = 4_000
"""Of a number that is typed; Python reads no more than a few hundred above."""

F = TypeVar("F", bound=Callable[..., None])

CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 88}
EPILOG: Final = "The global options of 'uwf --help' work here too."


class _Parameters:
    """What a command's parameters are: its own and the global ones, read plainly."""

    global_options: ClassVar[Callable[[], Sequence[Any]]] = staticmethod(hidden_options)

    def get_params(self, ctx: Click) -> list[Any]:
        """Return all of them; those of plain types are read without pydantic."""
        params = [*super().get_params(ctx), *self.global_options()]  # type: ignore[misc]  # of the Typer class beside this one
        for param in params:
            descriptor = getattr(param, "type_descriptor", None)
            if descriptor is None or getattr(param, "_runtime_param", None) is not None:
                continue
            annotation = descriptor.annotation
            plain = _PLAIN.get(str if annotation == list[str] else annotation)
            if plain is not None:
                param._runtime_param = plain  # noqa: SLF001 - Typer has no public hook; without it the parameter works as before
        return params


class Command(_Parameters, TyperCommand):
    """A command that also takes the global options, unseen in its help."""

    alone: ClassVar[Mapping[str, tuple[str, str]]] = MappingProxyType({})
    """Options that may stand alone: the value they then have, and the pattern of a
    word behind them that is their value instead."""

    def parse_args(self, ctx: Click, args: list[str]) -> list[str]:
        """Read the words; an option that stands alone is given its value."""
        end = args.index("--") if "--" in args else len(args)
        words = list(args)
        for index, word in enumerate(args[:end]):
            if word not in self.alone:
                continue
            if index and args[index - 1] in value_options(ctx).difference(self.alone):
                # It is the value of the option before it.
                continue
            value, following = self.alone[word]
            after = args[index + 1] if index + 1 < len(args) else "--"
            if not re.fullmatch(following, after):
                words[index] = f"{word}={value}"
        return list(super().parse_args(ctx, words))

    def collect_usage_pieces(self, ctx: Click) -> list[str]:  # noqa: ARG002 - the interface's
        """Name the arguments as their metavars say, without Typer's braces."""
        options = [self.options_metavar] if self.options_metavar else []
        arguments = [
            param.metavar or param.name.upper()
            for param in self.params
            if param.param_type_name == "argument"
        ]
        return [*options, *arguments]

    def format_options(self, ctx: Click, formatter: Click) -> None:
        """Write arguments and options; an argument's type says nothing here."""
        arguments, options = [], []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            if param.param_type_name == "argument":
                name = param.metavar or param.name.upper()
                if name.startswith("["):
                    name = name[1:-1]
                arguments.append((name, param.help or ""))
            else:
                options.append(record)
        for title, rows in (("Arguments", arguments), ("Options", options)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class Passthrough(Command):
    """A command whose words are another program's: no options of ours at all."""

    global_options = staticmethod(tuple)


class _Later(CommandInfo):
    """A command whose module is imported when it is asked for."""

    def __init__(self, name: str, load: Callable[[], CommandInfo]) -> None:
        super().__init__(name)
        self.load = load


Waiting: TypeAlias = CatalogEntry | TyperInfo | CommandInfo
"""What a command is made of."""


class Group(_Parameters, TyperGroup):
    """A group of commands; an unknown one is one line with a suggestion.

    Typer makes a command out of its function's signature, which takes a millisecond;
    each is made when it is asked for.
    """

    waiting: Mapping[str, Waiting] = MappingProxyType({})

    def list_commands(self, ctx: Click) -> list[str]:  # noqa: ARG002 - the interface's
        """Name the commands in the order they were added, groups last."""
        return list(self.waiting)

    def get_command(self, ctx: Click, cmd_name: str) -> Click:
        """Make a command, once."""
        if cmd_name in self.waiting and cmd_name not in self.commands:
            self.commands[cmd_name] = _make_command(self.waiting[cmd_name], cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Click, args: list[str]) -> Click:
        """Find the command that the next word names.

        Raises:
            UsageError: There is none.
        """
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            raise self._unknown(ctx, name)
        return super().resolve_command(ctx, args)

    def list_visible(self, ctx: Click) -> list[str]:
        """Name the commands that help shows."""
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        return [name for name, each in found.items() if each and not each.hidden]

    def format_commands(self, ctx: Click, formatter: Click) -> None:
        """Write each command with its whole line, wrapped and never cut."""
        rows = []
        for name in self.list_visible(ctx):
            line = (self.get_command(ctx, name).help or "").partition("\n")[0]
            rows.append((name, line.removesuffix(".")))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _unknown(self, ctx: Click, name: str) -> UsageError:
        listing = f"'{ctx.command_path} --help' lists them"
        message = f"unknown command '{name}' for '{ctx.command_path}'"
        near = find_similar(name, self.list_commands(ctx))
        if near is not None and near.casefold() == name.casefold():
            return UsageError(f"{message}; did you mean '{near}'?")
        meant = _MEANT.get(name) or _find_elsewhere(name)
        if meant is not None:
            return UsageError(f"{message}; did you mean '{meant}'?", hint=listing)
        tail = f"; did you mean '{near}'?" if near else ""
        return UsageError(f"{message}{tail}", hint=None if near else listing)


class Root(Group):
    """The top: knows its commands by a table and imports the one that runs."""

    global_options = staticmethod(lambda: root_options()[1:])
    waiting = MappingProxyType({entry.name: entry for entry in CATALOG})

    def list_commands(self, ctx: Click) -> list[str]:  # noqa: ARG002 - the interface's
        """Name the commands in the order of the table."""
        return [entry.name for entry in CATALOG if not entry.hidden]

    def format_commands(self, ctx: Click, formatter: Click) -> None:  # noqa: ARG002 - the interface's
        """Write the table's lines; no command's module is imported."""
        for title in dict.fromkeys(entry.section for entry in CATALOG):
            rows = [
                (entry.name, entry.help)
                for entry in CATALOG
                if entry.section == title and not entry.hidden
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _make_command(waiting: Waiting, name: str) -> Click:
    """Make a command, or a group whose own commands wait until they are asked for."""
    match waiting:
        case CatalogEntry():
            module = import_module(f"uwfgit.cli.{waiting.module}")
            app = getattr(module, waiting.attribute)
        case TyperInfo():
            app = waiting.typer_instance
        case _:
            return typer.main.get_command_from_info(
                waiting.load() if isinstance(waiting, _Later) else waiting,
                pretty_exceptions_short=True,
                rich_markup_mode=None,
            )
    if app.registered_callback is None:
        command: Click = typer.main.get_command(app)
    else:
        empty = copy(app)
        empty.registered_commands, empty.registered_groups = [], []
        command = typer.main.get_command(empty)
        inside = (*app.registered_commands, *app.registered_groups)
        command.waiting = {str(info.name): info for info in inside}
    command.name = name
    return command


def value_options(ctx: Click) -> frozenset[str]:
    """Name the options of a command that take the next word as their value."""
    return frozenset(
        name
        for param in ctx.command.get_params(ctx)
        if param.param_type_name == "option" and not (param.is_flag or param.count)
        for name in param.opts
    )


def make_group(help_text: str) -> typer.Typer:
    """Make a group that commands can be added to."""
    app = typer.Typer(
        cls=Group,
        help=help_text,
        epilog=EPILOG,
        rich_markup_mode=None,
        add_completion=False,
        context_settings=dict(CONTEXT),
    )
    # A group stays a group also while it has a single command.
    app.callback()(lambda: None)
    return app


def make_single() -> typer.Typer:
    """Make an app for one top-level command."""
    return typer.Typer(rich_markup_mode=None, add_completion=False)


def add_command(
    app: typer.Typer,
    name: str,
    *aliases: str,
    cls: type[TyperCommand] = Command,
    hidden: bool = False,
    settings: dict[str, Any] | None = None,
) -> Callable[[F], F]:
    """Add a function as a command, and under other, unlisted spellings."""

    def add(function: F) -> F:
        # Docstrings end their first line with a full stop, help does not.
        first, _, rest = (getdoc(function) or "").partition("\n")
        for spelling in (name, *aliases):
            app.command(
                spelling,
                cls=cls,
                help=f"{first.removesuffix('.')}\n{rest}",
                epilog=EPILOG,
                hidden=hidden or spelling != name,
                context_settings={**CONTEXT, **(settings or {})},
            )(function)
        return function

    return add


def add_later(
    app: typer.Typer,
    name: str,
    *aliases: str,
    where: str,
    cls: str | None = None,
    hidden: bool = False,
    settings: str | None = None,
) -> None:
    """Add a command of another module, which is imported when it is asked for.

    Args:
        where: ``module:function``, below ``uwfgit.cli``.
        cls, settings: Names in that module of what :func:`add_command` takes.
    """
    path, _, function = where.partition(":")

    def load(spelling: str) -> CommandInfo:
        module = import_module(f"uwfgit.cli.{path}")
        alone = make_single()
        add_command(
            alone,
            spelling,
            cls=getattr(module, cls) if cls else Command,
            hidden=hidden or spelling != name,
            settings=getattr(module, settings) if settings else None,
        )(getattr(module, function))
        return alone.registered_commands[0]

    for spelling in (name, *aliases):
        app.registered_commands.append(_Later(spelling, partial(load, spelling)))
