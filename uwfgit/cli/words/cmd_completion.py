"""``uwf completion``: the script that makes a shell complete uwf's words."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated, Final

import typer

from uwfgit.cli.frame.commands import add_command, make_single
from uwfgit.cli.frame.context import get_context
from uwfgit.cli.frame.output import write
from uwfgit.errors import UsageError

SHELLS: Final = ("bash", "zsh", "fish")

app = make_single()


@add_command(app, "completion")
def completion(
    ctx: typer.Context,
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print the completion script of a shell.

    Commands, options, names of workflows, ids of threads and statuses complete.
    In ~/.bashrc, or behind compinit in ~/.zshrc:

    eval "$(uwf completion bash)"

    In ~/.config/fish/config.fish:

    uwf completion fish | source
    """
    context = get_context(ctx)
    if shell not in SHELLS:
        raise UsageError(
            f"'{shell}' is not a shell known here", hint=f"shells: {', '.join(SHELLS)}"
        )
    text = files("uwfgit.cli").joinpath("shells", f"uwf.{shell}").read_text("utf-8")
    if context.output.is_text:
        write(text)
    else:
        context.output.emit({"shell": shell, "text": text}, str)
