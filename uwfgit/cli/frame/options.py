"""Global options: what they are, and how every command comes to accept them.

They are parameters of the root and, hidden, of every group and command, so
the parser itself tells an option from another option's value
(``-p --json`` is a prompt).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Final, Literal

import typer
from msgspec import Struct

Format = Literal["text", "json", "yaml", "github"]
Color = Literal["auto", "always", "never"]

FORMATS: Final[dict[str, Format]] = {
    "text": "text",
    "json": "json",
    "yaml": "yaml",
    "raw-json": "json",
    "raw-yaml": "yaml",
    "github": "github",
}
_CHOICES: Final[dict[str, dict[str, str]]] = {
    "format": {**FORMATS},
    "color": {word: word for word in ("auto", "always", "never")},
}


class GlobalOptions(Struct):
    """The values the command line gave so far; filled while it is parsed."""

    format: Format = "text"
    store: str | None = None
    color: Color = "auto"
    quiet: bool = False
    verbose: int = 0
    debug: bool = False


def _note(ctx: typer.Context, param: typer.CallbackParam, value: Any) -> None:  # noqa: ANN401 - what the parser read
    """Note what an option says, wherever it stands on the line."""
    if value in (None, 0):
        return
    options: GlobalOptions = ctx.obj.options
    name = str(param.name).removeprefix("global_")
    if name == "version":
        from uwfgit import __version__

        ctx.obj.output.emit_document(f"uwf {__version__}")
        raise typer.Exit
    choices = _CHOICES.get(name)
    if choices is not None and value not in choices:
        raise typer.BadParameter(f"'{value}' is none of {', '.join(choices)}")
    if value == "":
        raise typer.BadParameter("the path is empty")
    if name == "json":
        options.format = "json"
    elif name == "verbose":
        options.verbose += value
    else:
        setattr(options, name, value if choices is None else choices[value])


def _declare(
    global_version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            help="Print the version.",
            is_eager=True,
            expose_value=False,
        ),
    ] = False,
    global_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Write text, json or yaml (raw-json and raw-yaml are the same).",
            is_eager=True,
            expose_value=False,
        ),
    ] = None,
    global_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Short for --format json.",
            is_eager=True,
            expose_value=False,
        ),
    ] = False,
    global_store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="PATH",
            help="Use this store.",
            is_eager=True,
            expose_value=False,
        ),
    ] = None,
    global_color: Annotated[
        str | None,
        typer.Option(
            "--color",
            metavar="WHEN",
            help="Colour the output: auto, always or never.",
            is_eager=True,
            expose_value=False,
        ),
    ] = None,
    global_quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Leave out notes on stderr.",
            is_eager=True,
            expose_value=False,
        ),
    ] = False,
    global_verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            show_default=False,
            help="Say more on stderr.",
            is_eager=True,
            expose_value=False,
        ),
    ] = 0,
    global_debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            help="Show tracebacks.",
            is_eager=True,
            expose_value=False,
        ),
    ] = False,
) -> None:
    """Carry the declarations; never run.

    A parameter of a command with the same name would get the option's value,
    hence the prefix.
    """


_WAIT: Final = "--wait"
_SPAN: Final = re.compile(r"[0-9]+[dhm]", re.ASCII)


def fill_wait(words: Sequence[str]) -> list[str]:
    """Return the words with a ``--wait`` that names no time given one of six hours."""
    last = words.index("--") if "--" in words else len(words)
    found = list(words)
    for index in range(last):
        follower = found[index + 1] if index + 1 < last else ""
        if found[index] == _WAIT and not _SPAN.fullmatch(follower):
            found[index] = f"{_WAIT}=6h"
    return found


@lru_cache(maxsize=1)
def root_options() -> tuple[Any, ...]:
    """Return the options as parameters of the root: its own, then the global ones."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command()(_declare)
    options: tuple[Any, ...] = tuple(typer.main.get_command(app).params)
    for option in options:
        # Named in each declaration, it would be looked through for each of them.
        option.callback = _note
    return options


@lru_cache(maxsize=1)
def hidden_options() -> tuple[Any, ...]:
    """Return the global ones as parameters of a command, left out of its help."""
    hidden = tuple(copy.copy(option) for option in root_options()[1:])
    for option in hidden:
        option.hidden = True
    return hidden
