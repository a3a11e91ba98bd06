"""The questions of ``setup`` on a terminal."""

from __future__ import annotations

import getpass
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

from uwfgit.agents.installed import Installed, edit_args
from uwfgit.cli.frame.output import ask, is_yes, talk
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.setup.choice import BUILTIN, Choice, key_variable
from uwfgit.config.providers import PRESETS
from uwfgit.errors import UsageError

_TRIES: Final = 3


def ask_choice(
    installed: Sequence[Installed],
    content: Mapping[str, Any],
    *,
    has_key: Sequence[str],
) -> Choice:
    """Ask which agent, and for the builtin one which model.

    Args:
        installed: The agents that were found.
        content: The configuration as it is.
        has_key: The variables that have a value already.

    Raises:
        UsageError: Nothing that fits was answered.
    """
    talk("Which agent is to do the work?")
    for number, each in enumerate(installed, 1):
        talk(f"  {number}. {shown(each.name):<12} {shown(str(each.path))}")
    last = len(installed) + 1
    talk(f"  {last}. {BUILTIN:<12} a tool loop of uwf's own, over a model's API")
    number = _ask_number(last)
    if number == last:
        return _ask_model(content, has_key)
    chosen = installed[number - 1]
    edits = False
    if edit_args(chosen.kind):
        talk("It runs without a person who could allow it to change a file.")
        edits = is_yes(ask("May it edit files in the folder of its step? [y/N] "))
    return Choice(
        agent=chosen.name,
        kind=chosen.kind,
        command=None if chosen.kind != "adapter" else str(chosen.path),
        edits=edits,
    )


def _ask_model(content: Mapping[str, Any], has_key: Sequence[str]) -> Choice:
    names = list(PRESETS)
    known = f"Providers: {', '.join(names)}, or a name of your own"
    talk(textwrap.fill(known, width=79, subsequent_indent="  "))
    provider = _ask_text("Provider", default="openai")
    base_url = None if provider in PRESETS else _ask_text("Its base URL")
    model = _ask_text("Model, as the provider calls it")
    key = None
    variable = key_variable(content, provider)
    if variable is not None and variable not in has_key:
        key = getpass.getpass(f"API key (kept in .env as {variable}; empty: none): ")
    return Choice(
        agent=BUILTIN,
        kind=BUILTIN,
        provider=provider,
        base_url=base_url,
        model=model,
        key=key.strip() or None if key else None,
    )


def _ask_text(question: str, *, default: str | None = None) -> str:
    tail = f" [{default}]" if default else ""
    for _ in range(_TRIES):
        answer = ask(f"{question}{tail}: ").strip() or default
        if answer:
            return answer
    raise UsageError(f"no answer to '{question}'")


def _ask_number(last: int) -> int:
    for _ in range(_TRIES):
        answer = ask("Number [1]: ").strip() or "1"
        if answer.isdecimal() and 1 <= int(answer) <= last:
            return int(answer)
    raise UsageError(f"'Number' needs a number from 1 to {last}")
