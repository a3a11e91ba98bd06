"""Global options: what they are, and how every command comes to accept them.

They are parameters of the root and, hidden, of every group and command, so
the parser itself tells an option from another option's value
(``-p --json`` is a prompt).
"""

from __future__ import annotations

import copy
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


def _option(*names: str, **facts: Any) -> Any:  # noqa: ANN401 - of Typer's own type
    return typer.Option(*names, is_eager=True, expose_value=False, **facts)


_Version = Annotated[bool, _option("--version", "-V", help="Print the version.")]
_Format = Annotated[
    str | None,
    _option(
        "--format",
        metavar="FORMAT",
        help="Write text, json or yaml (raw-json and raw-yaml are the same).",
    ),
]
_Json = Annotated[bool, _option("--json", help="Short for --format json.")]
_Store = Annotated[
    str | None, _option("--store", metavar="PATH", help="Use this store.")
]
_Color = Annotated[
    str | None,
    _option(
        "--color", metavar="WHEN", help="Colour the output: auto, always or never."
    ),
]
_Quiet = Annotated[bool, _option("--quiet", "-q", help="Leave out notes on stderr.")]
_Verbose = Annotated[
    int,
    _option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help="Say more on stderr.",
    ),
]
_Debug = Annotated[bool, _option("--debug", help="Show tracebacks.")]


def _declare(
    global_version: _Version = False,
    global_format: _Format = None,
    global_json: _Json = False,
    global_store: _Store = None,
    global_color: _Color = None,
    global_quiet: _Quiet = False,
    global_verbose: _Verbose = 0,
    global_debug: _Debug = False,
) -> None:
    """Carry the declarations; never run.

    A parameter of a command with the same name would get the option's value,
    hence the prefix.
    """


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
