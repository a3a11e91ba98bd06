"""The command ``setup``: an agent and a model, found, asked for, checked, written."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec.structs import replace

from uwfgit.cli.frame.commands import add_command, make_single
from uwfgit.cli.frame.context import CONFIG_FILE, CommandContext, get_context
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.frame.world import DOTENV_FILE, read_config
from uwfgit.errors import ConfigError, UsageError
from uwfgit.shell import quote_word

if TYPE_CHECKING:
    from uwfgit.agents.installed import Installed
    from uwfgit.cli.setup.choice import Choice

app = make_single()

_NEEDS: Final = {
    "scripted": ("script",),
    "gateway": ("url", "gateway"),
    "workflow": ("workflow",),
}
"""What a kind needs besides its name; else it is a command."""


@add_command(app, "setup")
def setup(
    ctx: typer.Context,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="NAME", help="A kind, or a uwf-… program."),
    ] = None,
    edits: Annotated[
        bool, typer.Option("--edits", help="The agent may edit files unasked.")
    ] = False,
    provider: Annotated[
        str | None, typer.Option("--provider", metavar="NAME", help="Of the model.")
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", metavar="URL", help="Where its API is."),
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option("--api-key", metavar="KEY", help="Kept in .env; - is stdin."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The default model.")
    ] = None,
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Do not call the model once.")
    ] = False,
) -> None:
    """Choose the agent that does the work, and the model where it needs one.

    Finds the agents that are installed. On a terminal without options it asks;
    with options it does what they say. What is configured already stays. A model
    is checked with one short call, whose failure is told and stops nothing.
    """
    from uwfgit.agents.installed import find_installed
    from uwfgit.agents.registry import KINDS
    from uwfgit.cli.frame.output import can_ask
    from uwfgit.cli.setup.asking import ask_choice
    from uwfgit.cli.setup.choice import BUILTIN, Choice

    context = get_context(ctx)
    content = _read(context)
    installed = find_installed(context.environment, kinds=KINDS)
    given = (agent, provider, base_url, api_key, model)
    if any(word is not None for word in given):
        kind, command = _find_kind(context, agent, installed)
        name = agent
        if agent is None and provider is not None and "defaultAgent" not in content:
            name = kind = BUILTIN
        if api_key == "-":
            api_key = sys.stdin.readline().strip() if sys.stdin is not None else None
        choice = Choice(
            agent=name,
            kind=kind,
            command=command,
            edits=edits,
            provider=provider,
            base_url=base_url,
            key=api_key,
            model=model,
        )
    elif can_ask():
        known = [name for name, value in context.variables.items() if value]
        choice = ask_choice(installed, content, has_key=known)
    else:
        raise _nothing_chosen(installed)
    _write(context, content, choice)
    _finish(context, choice, checks=not no_check)


def _read(context: CommandContext) -> dict[str, Any]:
    path = context.home / CONFIG_FILE
    content = read_config(path)
    if content is not None and not isinstance(content, Mapping):
        raise ConfigError("the file must hold a mapping", source=path)
    return dict(content or {})


def _nothing_chosen(installed: Sequence[Installed]) -> UsageError:
    ready = [f"`{each.command}`" for each in installed]
    ready.append("`uwf setup --provider openai --model NAME --api-key KEY`")
    return UsageError(
        "nothing to set up: no option was given, and there is no terminal to ask",
        hint=", or ".join(ready),
    )


def _find_kind(
    context: CommandContext, agent: str | None, installed: Sequence[Installed]
) -> tuple[str | None, str | None]:
    """Return the kind that a name means, and the command where it needs one."""
    from uwfgit.agents.registry import KINDS, unknown_kind

    if agent is None:
        return None, None
    known = context.loaded_settings[0].agents.get(agent)
    if known is not None and known.kind is not None:
        return known.kind, None
    kinds = KINDS
    if agent in kinds:
        return agent, None
    for each in installed:
        if each.kind in kinds and agent in (each.name, each.program):
            return each.kind, str(each.path) if each.kind == "adapter" else None
    raise unknown_kind(agent, key="--agent")


def _write(context: CommandContext, content: dict[str, Any], choice: Choice) -> None:
    from uwfgit.cli.setup.choice import (
        change_config,
        change_dotenv,
        check_choice,
        key_variable,
    )
    from uwfgit.cli.store.securing import read_own, write_config, write_privately

    check_choice(content, choice)
    path, dotenv = context.home / CONFIG_FILE, context.home / DOTENV_FILE
    changed = change_config(content, choice, source=str(path))
    _require_whole(context, changed, choice)
    variable = choice.provider and key_variable(content, choice.provider)
    if choice.key is not None and variable:
        text = read_own(dotenv).decode("utf-8", "surrogateescape")
        text = change_dotenv(text, variable, choice.key)
        # First the key: a configuration that names none is worse than a spare line.
        write_privately(dotenv, text.encode("utf-8", "surrogateescape"))
    if changed != content:
        write_config(path, changed)


def _require_whole(
    context: CommandContext, changed: Mapping[str, Any], choice: Choice
) -> None:
    """Refuse an agent that a name alone does not make.

    Raises:
        UsageError: It lacks a command, a script or an address.
    """
    from uwfgit.agents.registry import Surroundings, make_agent
    from uwfgit.cli.setup.choice import BUILTIN
    from uwfgit.config import settings_from

    # What the builtin one lacks is a model, which the check afterwards tells.
    if choice.agent is None or choice.kind == BUILTIN:
        return
    source = context.home / CONFIG_FILE
    settings, _ = settings_from(
        changed,
        None,
        user_source=source,
        repository_source=source,
        home=context.home_for_paths,
        root=None,
    )
    around = Surroundings(
        settings=settings,
        base_dir=context.cwd,
        environment=context.environment,
        variables=context.variables,
    )
    try:
        make_agent(choice.agent, around)
    except ConfigError as exc:
        keys = _NEEDS.get(choice.kind or "", ("command",))
        named = [quote_word(f"agents.{choice.agent}.{key}") for key in keys]
        first = [f"`uwf config set {quoted} …`" for quoted in named]
        raise UsageError(
            f"--agent: {exc.message}", hint=f"first {' and '.join(first)}"
        ) from exc


def _warn_missing(context: CommandContext, choice: Choice) -> list[str]:
    """Say that an agent's program is not there, and how it is installed."""
    from uwfgit.agents.installed import find_install, find_program

    program = choice.command or find_program(choice.kind)
    search = context.environment.get("PATH")
    if program is None or shutil.which(program, path=search) is not None:
        return []
    install = find_install(choice.kind)
    how = f" with `{install}`" if install else ""
    return [f"'{program}' is not on your PATH yet; install it{how}"]


def _finish(context: CommandContext, choice: Choice, *, checks: bool) -> None:
    from uwfgit.cli.setup.choice import BUILTIN

    fresh = replace(context, options=context.options)
    settings = fresh.loaded_settings[0]
    default = settings.default_agent.spec if settings.default_agent else None
    has_model = choice.agent is None and choice.model is not None
    trial = None
    if checks and (choice.kind == BUILTIN or has_model):
        from uwfgit.cli.setup.trial import try_model

        trial = try_model(settings, fresh.variables)
    warnings = _warn_missing(context, choice)
    payload = {
        "configPath": str(context.home / CONFIG_FILE),
        "provider": choice.provider,
        "model": settings.default_model,
        "defaultAgent": default,
        "validation": trial and {"ok": trial.ok, "message": trial.message},
        "adapterWarnings": warnings,
    }
    lines = [f"agent   {shown(default or '-')}"]
    if settings.default_model is not None:
        lines.append(f"model   {shown(settings.default_model)}")
    if trial is not None:
        word = "ok" if trial.ok else "failed"
        lines.append(f"check   {word}: {shown(trial.message)}")
    lines.append(f"wrote   {shown(str(context.home / CONFIG_FILE))}")
    context.output.emit(payload, lambda: "\n".join(lines))
    for warning in warnings:
        context.output.warn(warning)
    context.output.say("next: uwf thread start WORKFLOW -p TASK, or uwf demo")
