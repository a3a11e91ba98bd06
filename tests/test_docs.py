"""The documents say what the program does."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.write_docs import DOCUMENTS
from uwfgit.cli.frame.commands import Click
from uwfgit.cli.words.reference import iter_commands, root_context
from uwfgit.config.table import KEYS, Key

ROOT = Path(__file__).parents[1]
COMMANDS = list(iter_commands(root_context(), hidden=True))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_made_of_the_code_is_up_to_date(name: str) -> None:
    written = (ROOT / "docs" / name).read_text("utf-8")

    assert written == DOCUMENTS[name](), "run: python scripts/write_docs.py"


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_every_configuration_key_says_what_it_is(key: Key) -> None:
    assert key.about.endswith(".")
    assert "|" not in key.about


@pytest.mark.parametrize("ctx", COMMANDS, ids=lambda ctx: ctx.command_path)
def test_every_command_has_help(ctx: Click) -> None:
    first = (ctx.command.help or "").splitlines()[0]

    assert first[0].isupper()
    assert len(first) <= 80


@pytest.mark.parametrize("ctx", COMMANDS, ids=lambda ctx: ctx.command_path)
def test_every_parameter_has_help(ctx: Click) -> None:
    visible = [param for param in ctx.command.params if not param.hidden]

    assert [param.name for param in visible if not param.help] == []
