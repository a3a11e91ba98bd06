"""What ``doctor`` looks at outside the store: git, configuration, agents, keys."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.agents.base import ChecksUp
from uwfgit.agents.children.complaints import check_command
from uwfgit.agents.children.process import TimeLimits, run_process
from uwfgit.agents.installed import find_installed, find_program
from uwfgit.agents.registry import KINDS, Surroundings, make_agent
from uwfgit.cli.frame.context import CONFIG_FILE, REPOSITORY_FILE, CommandContext
from uwfgit.cli.frame.world import DOTENV_FILE, read_dotenv
from uwfgit.config import AgentSettings
from uwfgit.errors import UwfError
from uwfgit.store.care.health import HealthFinding
from uwfgit.store.care.maintain import GEOMETRIC, read_git_version

if TYPE_CHECKING:
    from uwfgit.model.ledger.ledger import Ledger

_OLDEST: Final = (2, 25)
_VERSION_SECONDS: Final = 10.0
_VERSION_CHARS: Final = 80


class FoundAgent(Struct, frozen=True, kw_only=True):
    """An alias of the configuration, and the program behind it."""

    name: str
    kind: str | None
    path: str | None = None
    version: str | None = None
    problem: str | None = None
    hint: str | None = None


class FoundKey(Struct, frozen=True, kw_only=True):
    """Where a provider's key stands: a variable, ``.env`` or the configuration."""

    provider: str
    variable: str | None
    source: str | None


def check_git(environment: Mapping[str, str]) -> Iterator[HealthFinding]:
    """Tell git's version, and what an old one cannot do."""
    try:
        version = read_git_version(environment)
    except UwfError as exc:
        yield HealthFinding(
            check="git", level="problem", message=exc.message, hint=exc.hint
        )
        return
    text = ".".join(map(str, version))
    if version < _OLDEST:
        yield HealthFinding(
            check="git",
            level="problem",
            message=f"git {text} is too old",
            hint="install git 2.25 or later",
        )
    elif version < GEOMETRIC:
        yield HealthFinding(
            check="git",
            level="note",
            message=f"git {text}: uwf gc packs less well than with 2.32 or later",
        )
    else:
        yield HealthFinding(check="git", level="ok", message=f"git {text}")


def check_config(context: CommandContext) -> Iterator[HealthFinding]:
    """Tell what has no effect in the configuration, or why it cannot be read."""
    try:
        _, warnings = context.loaded_settings
    except UwfError as exc:
        yield HealthFinding(
            check="config", level="problem", message=exc.message, hint=exc.hint
        )
        return
    ours, inside = context.home / CONFIG_FILE, context.enclosing
    theirs = None if inside is None else inside.root / REPOSITORY_FILE
    for warning in warnings:
        yield HealthFinding(
            check="config",
            level="problem",
            message=warning,
            hint=f"edit {theirs if warning.startswith(f'{theirs}: ') else ours}",
        )
    if not warnings:
        yield HealthFinding(check="config", level="ok", message="every key is known")


def check_signing(context: CommandContext, ledger: Ledger) -> Iterator[HealthFinding]:
    """Check that commits can be signed, if the user wants them to be."""
    from uwfgit.model.ledger.commit import require_signing

    try:
        mode = ledger.signer.signing().mode
        require_signing(replace(ledger, identity=context.identity))
    except UwfError as exc:
        yield HealthFinding(
            check="signing", level="problem", message=exc.message, hint=exc.hint
        )
        return
    if mode != "never":
        yield HealthFinding(check="signing", level="ok", message=f"uwf.sign is {mode}")


def find_agents(context: CommandContext) -> tuple[FoundAgent, ...]:
    """Find the program of each alias, and ask those that are known their version."""
    try:
        settings, _ = context.loaded_settings
    except UwfError:
        return ()
    if not settings.agents:
        return ()
    with ThreadPoolExecutor(max_workers=len(settings.agents)) as pool:
        found = pool.map(lambda a: _find_agent(context, a), settings.agents.values())
        return tuple(found)


def _find_agent(context: CommandContext, agent: AgentSettings) -> FoundAgent:
    problem = hint = None
    try:
        made = make_agent(agent.name, _around(context))
        kind: str | None = made.kind
        if isinstance(made, ChecksUp):
            told = made.check_up(context.environment, cwd=context.cwd)
            problem, _, hint = (told or "").partition("; ")
    except UwfError as exc:
        kind, problem, hint = agent.kind, exc.message, exc.hint
    program = agent.command or find_program(kind)
    if program is None:
        return FoundAgent(name=agent.name, kind=kind, problem=problem, hint=hint)
    problem, hint = problem or None, hint or None
    path = shutil.which(program, path=context.environment.get("PATH"))
    if path is None and problem is None:
        told = check_command(program, cwd=context.cwd, environment=context.environment)
        problem, _, hint = (told or "").partition("; ")
    version = None
    if path is not None and find_program(kind) is not None:
        version = _read_version(context, path)
    return FoundAgent(
        name=agent.name,
        kind=kind,
        path=path,
        version=version,
        problem=problem,
        hint=hint,
    )


def _around(context: CommandContext) -> Surroundings:
    return Surroundings(
        settings=context.loaded_settings[0],
        base_dir=context.cwd,
        environment=context.environment,
        variables=context.variables,
    )


def check_default_agent(context: CommandContext) -> Iterator[HealthFinding]:
    """Check that there is an agent to run with, or say how to get one."""
    try:
        settings, _ = context.loaded_settings
    except UwfError:
        return
    choice = settings.default_agent
    if choice is None:
        yield from _suggest_agents(context)
    elif choice.spec not in settings.agents:
        # An alias is looked at with the others.
        try:
            make_agent(choice.spec, _around(context))
        except UwfError as exc:
            yield HealthFinding(
                check="agents",
                level="problem",
                message=f"defaultAgent: {exc.message}",
                hint=exc.hint,
            )


def _suggest_agents(context: CommandContext) -> Iterator[HealthFinding]:
    found = find_installed(context.environment, kinds=KINDS)
    yield HealthFinding(
        check="agents",
        level="note",
        message="no agent is chosen: defaultAgent is not set",
        hint="uwf setup" if not found else None,
    )
    for each in found:
        yield HealthFinding(
            check="agents",
            level="note",
            message=f"{each.program} is installed: {each.path}",
            hint=each.command,
        )


def _read_version(context: CommandContext, path: str) -> str | None:
    result = run_process(
        [path, "--version"],
        prompt="",
        cwd=context.home if context.home.is_dir() else context.cwd,
        environment=context.environment,
        limits=TimeLimits(idle_seconds=_VERSION_SECONDS, wall_seconds=_VERSION_SECONDS),
    )
    first = result.stdout.strip().partition("\n")[0].strip()
    return first[:_VERSION_CHARS] or None


def check_agents(agents: Iterable[FoundAgent]) -> Iterator[HealthFinding]:
    """Tell which agents can be used."""
    for agent in agents:
        told = f"{agent.name} ({agent.kind or 'no kind'})"
        if agent.problem is not None:
            yield HealthFinding(
                check="agents",
                level="problem",
                message=f"{told}: {agent.problem}",
                hint=agent.hint or f"uwf config get agents.{agent.name}",
            )
            continue
        parts = [part for part in (agent.version, agent.path) if part]
        tail = f": {', '.join(parts)}" if parts else ""
        yield HealthFinding(check="agents", level="ok", message=f"{told}{tail}")


def find_keys(context: CommandContext) -> tuple[FoundKey, ...]:
    """Find where the key of each configured provider stands; none is read out."""
    try:
        settings, _ = context.loaded_settings
    except UwfError:
        return ()
    file = read_dotenv(context.home / DOTENV_FILE)
    found = []
    for name, provider in settings.providers.items():
        variable = provider.api_key_env
        source = None
        if variable is not None and context.environment.get(variable):
            source = "environment"
        elif variable is not None and file.get(variable):
            source = DOTENV_FILE
        elif provider.api_key is not None:
            source = CONFIG_FILE
        found.append(FoundKey(provider=name, variable=variable, source=source))
    return tuple(found)


def check_keys(keys: Iterable[FoundKey]) -> Iterator[HealthFinding]:
    """Tell which keys are there, and which lie where they should not."""
    for key in keys:
        if key.source == CONFIG_FILE:
            # The check of the configuration has told how to mend it.
            yield HealthFinding(
                check="keys",
                level="note",
                message=f"the key of '{key.provider}' stands in {CONFIG_FILE}",
            )
        elif key.source is not None:
            yield HealthFinding(
                check="keys",
                level="ok",
                message=f"'{key.provider}': {key.variable} in {key.source}",
            )
        elif key.variable is not None:
            yield HealthFinding(
                check="keys",
                level="problem",
                message=f"'{key.provider}' has no key: {key.variable} is not set",
                hint=f"set {key.variable}, or put it into <UWF_HOME>/{DOTENV_FILE}",
            )
