"""What the command line gives a run besides its task."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from uwfgit.cli.frame.arguments import read_file, read_text
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.output import ask, talk
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import InvalidError, UsageError
from uwfgit.model.workflow.inputs import Schemas, parse_input
from uwfgit.model.yaml.core import read_yaml


def read_inputs(
    context: CommandContext, schemas: Schemas, *, given: Sequence[str], file: str | None
) -> dict[str, Any]:
    """Return the values that options and a file give, and a person at a terminal.

    Raises:
        UsageError, InvalidError: As for ``given_inputs``.
    """
    values = given_inputs(context, schemas, given=given, file=file)
    if sys.stdin is not None and sys.stdin.isatty() and context.output.is_text:
        _ask(schemas, values)
    return values


def given_inputs(
    context: CommandContext, schemas: Schemas, *, given: Sequence[str], file: str | None
) -> dict[str, Any]:
    """Return the values that options and a file give.

    Args:
        context: Of the command.
        schemas: What the workflow asks for.
        given: ``NAME=VALUE``, of which later ones win, and all over the file.
        file: A JSON or YAML file of names and values.

    Raises:
        UsageError: An option is not ``NAME=VALUE``.
        InvalidError: The file holds no values.
    """
    values = dict(_read_file(context, file)) if file is not None else {}
    for word in given:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise UsageError(f"'{word}' is not NAME=VALUE", hint="-i url=https://…")
        text = read_text(context, text, what=f"-i {name}")
        context.warn_of_secrets(text, what=f"-i {name}")
        values[name] = parse_input(schemas.get(name, {}), text)
    return values


def _read_file(context: CommandContext, file: str) -> Mapping[str, Any]:
    text = read_file(context, file, what="--inputs")
    located, problems = read_yaml(text.encode(), file=file)
    errors = [each for each in problems if each.severity == "error"]
    if errors:
        raise InvalidError(errors)
    if located is None or not isinstance(located.value, dict):
        raise InvalidError(
            f"'{Path(file).name}' is not a mapping of inputs",
            hint='write {"name": value}',
        )
    return located.value


def _ask(schemas: Schemas, values: dict[str, Any]) -> None:
    """Ask for what is missing, with its description."""
    for name, schema in schemas.items():
        if name in values or "default" in schema:
            continue
        about = schema.get("description")
        if isinstance(about, str):
            talk(shown(about))
        line = ask(f"{name}: ")
        if line.strip():
            values[name] = parse_input(schema, line.rstrip("\n"))
