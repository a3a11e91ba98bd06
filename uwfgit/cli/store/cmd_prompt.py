"""The guides: short texts that tell an agent (or a person) how to use uwf."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Annotated, Final

import typer

from uwfgit.cli.frame.commands import add_command, make_single
from uwfgit.cli.frame.context import get_context
from uwfgit.cli.frame.output import Column, format_table, write
from uwfgit.errors import NotFoundError

_DESCRIPTION: Final = re.compile(r"^description: (.*)$", re.MULTILINE)

app = make_single()


@add_command(app, "prompt")
def prompt(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[list|NAME]", help="Which guide; list names them."),
    ] = None,
) -> None:
    """Show a short guide for agents (and people).

    A guide is markdown with a YAML header of name and description, so that it
    can be saved as a skill file as it is.
    """
    context = get_context(ctx)
    guides = list_guides()
    if name is None or name == "list":
        items = []
        for guide in guides:
            found = _DESCRIPTION.search(read_guide(guide))
            items.append({"name": guide, "description": found[1] if found else ""})
        columns = [Column(title="NAME"), Column(title="DESCRIPTION", flexible=True)]
        rows = [(item["name"], item["description"]) for item in items]
        context.output.emit(
            {"items": items}, lambda: format_table(context.output, columns, rows)
        )
        return
    if name not in guides:
        raise NotFoundError("guide", name, hint=f"guides: {', '.join(guides)}")
    text = read_guide(name)
    if context.output.is_text:
        write(text)
    else:
        context.output.emit({"name": name, "text": text}, str)


def list_guides() -> list[str]:
    """Name the packaged guides."""
    folder = files("uwfgit.cli").joinpath("guides")
    names = (entry.name for entry in folder.iterdir())
    return sorted(name.removesuffix(".md") for name in names if name.endswith(".md"))


def read_guide(name: str) -> str:
    """Read a packaged guide."""
    return files("uwfgit.cli").joinpath("guides", f"{name}.md").read_text("utf-8")
