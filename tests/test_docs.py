"""The documents say what the program does."""

from __future__ import annotations

from pathlib import Path

import pytest

from uwfgit.cli.frame.commands import Click
from uwfgit.cli.words.reference import iter_commands, reference_text, root_context

ROOT = Path(__file__).parents[1]
COMMANDS = list(iter_commands(root_context(), hidden=True))


def test_the_reference_of_commands_is_up_to_date() -> None:
    written = (ROOT / "docs" / "cli.md").read_text("utf-8")

    assert written == reference_text(), (
        "run: python -m uwfgit.cli.reference > docs/cli.md"
    )


@pytest.mark.parametrize("ctx", COMMANDS, ids=lambda ctx: ctx.command_path)
def test_every_command_has_help(ctx: Click) -> None:
    first = (ctx.command.help or "").splitlines()[0]

    assert first[0].isupper()
    assert len(first) <= 80


@pytest.mark.parametrize("ctx", COMMANDS, ids=lambda ctx: ctx.command_path)
def test_every_parameter_has_help(ctx: Click) -> None:
    visible = [param for param in ctx.command.params if not param.hidden]

    assert [param.name for param in visible if not param.help] == []
