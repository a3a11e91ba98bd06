"""Which agent a word means; the only place that knows all kinds."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uwfgit.agents.base import Agent, AgentReply, Failure, WorkflowAgent
from uwfgit.agents.clis.kinds import CLI_KINDS, load_cli
from uwfgit.agents.installed import find_installed
from uwfgit.config import AgentSettings, JudgeSettings, Settings
from uwfgit.errors import ConfigError
from uwfgit.shell import quote_word
from uwfgit.spelling import suggest
from uwfgit.store.canonical import Json

if TYPE_CHECKING:
    from uwfgit.agents.builtin.judge import AgentJudge, ModelJudge


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What words and settings are read against.

    ``base_dir`` is where relative files start from; the ``environment`` has PATH,
    and ``variables`` has the keys: the environment's over the ``.env`` file's.
    """

    settings: Settings
    base_dir: Path
    environment: Mapping[str, str]
    variables: Mapping[str, str] = field(repr=False)


Factory = Callable[[AgentSettings, Surroundings], Agent]


def _make_scripted(agent: AgentSettings, around: Surroundings) -> Agent:  # noqa: ARG001 - as every kind is made
    from uwfgit.agents.scripted import ScriptedAgent, read_script  # noqa: PLC0415 - only when used

    if agent.script is None:
        raise _lacks(agent, "a script", "scripted:FILE")
    return ScriptedAgent(label=agent.name, script=read_script(agent.script))


def _make_command(agent: AgentSettings, around: Surroundings) -> Agent:  # noqa: ARG001 - as every kind is made
    from uwfgit.agents.adapter import AdapterAgent  # noqa: PLC0415 - only when used
    from uwfgit.agents.stdio import StdioAgent  # noqa: PLC0415 - only when used

    make = AdapterAgent if agent.kind == "adapter" else StdioAgent
    return make(
        label=agent.name,
        argv=_read_argv(agent, f"{agent.kind}:COMMAND LINE"),
        env=agent.env,
        timeout_seconds=agent.timeout_seconds,
    )


def _make_headless(agent: AgentSettings, around: Surroundings) -> Agent:  # noqa: ARG001 - as every kind is made
    from uwfgit.agents.clis.headless import HeadlessAgent  # noqa: PLC0415 - only when used

    kind = agent.kind or ""
    return HeadlessAgent(
        cli=load_cli(kind),
        label=agent.name,
        command=agent.command or CLI_KINDS[kind].program,
        args=agent.args,
        env=agent.env,
        model=agent.model,
        max_turns=agent.max_turns,
        tools=agent.tools,
        timeout_seconds=agent.timeout_seconds,
    )


def _make_builtin(agent: AgentSettings, around: Surroundings) -> Agent:
    from uwfgit.agents.builtin.make import make_builtin  # noqa: PLC0415 - only when used

    return make_builtin(agent, settings=around.settings, variables=around.variables)


def _make_gateway(agent: AgentSettings, around: Surroundings) -> Agent:  # noqa: ARG001 - as every kind is made
    from uwfgit.agents.gateway import GatewayAgent  # noqa: PLC0415 - only when used

    if agent.url is None or agent.gateway is None:
        raise _lacks(agent, "a url and a gateway", "URL NAME")
    return GatewayAgent(
        label=agent.name,
        url=agent.url,
        gateway=agent.gateway,
        timeout_seconds=agent.timeout_seconds,
    )


def _make_workflow(agent: AgentSettings, around: Surroundings) -> Agent:  # noqa: ARG001 - as every kind is made
    if agent.workflow is None:
        raise _lacks(agent, "a workflow", "workflow:NAME")
    label = agent.workflow if agent.name == "workflow" else agent.name
    return WorkflowAgent(label=label, workflow=agent.workflow)


def _make_acp(agent: AgentSettings, around: Surroundings) -> Agent:  # noqa: ARG001 - as every kind is made
    from uwfgit.agents.acp.agent import AcpAgent  # noqa: PLC0415 - only when used

    if agent.model is not None:
        raise ConfigError(
            "kind 'acp' takes no model",
            key=f"agents.{agent.name}.model",
            hint="tell the server in its args, or by a variable in env",
        )
    return AcpAgent(
        label=agent.name,
        argv=_read_argv(agent, "acp:COMMAND LINE"),
        env=agent.env,
        tools=agent.tools or (),
        timeout_seconds=agent.timeout_seconds,
    )


KINDS: Final[Mapping[str, Factory]] = {
    "scripted": _make_scripted,
    "stdio": _make_command,
    "adapter": _make_command,
    "builtin": _make_builtin,
    **dict.fromkeys(CLI_KINDS, _make_headless),
    "acp": _make_acp,
    "gateway": _make_gateway,
    "workflow": _make_workflow,
}


def choose_agent(
    flag: str | None,
    *,
    settings: Settings,
    workflow: str,
    role: str,
    base_dir: Path,
    environment: Mapping[str, str],
    variables: Mapping[str, str] | None = None,
) -> Agent:
    """Return the agent for a role: the flag's, else the override's, else the default.

    Raises:
        ConfigError: None is configured, or it cannot be made.
        InvalidError: Its script is not YAML.
    """
    around = Surroundings(
        settings=settings,
        base_dir=base_dir,
        environment=environment,
        variables=environment if variables is None else variables,
    )
    if flag is not None:
        return make_agent(flag, around)
    choice = settings.agent_overrides.get((workflow, role)) or settings.default_agent
    if choice is None:
        raise ConfigError(
            f"no agent is configured for role '{role}'",
            hint=_ready_lines(around),
        )
    if choice.alias_only and choice.spec not in settings.agents:
        raise ConfigError(
            f"agent '{choice.spec}' is not defined in your configuration",
            source=choice.source,
            key=choice.key,
            hint=f"`uwf config set agents.{choice.spec}.kind KIND`, or use --agent",
        )
    return make_agent(choice.spec, around)


def _ready_lines(around: Surroundings) -> str:
    """Say how to get an agent: by one command for each that is installed."""
    found = find_installed(around.environment, kinds=tuple(KINDS))
    lines = [f"`{each.command}`" for each in found]
    if around.settings.agents:
        names = ", ".join(around.settings.agents)
        lines.insert(0, f"`uwf config set defaultAgent NAME` ({names})")
    return f"{', or '.join(lines) or '`uwf setup`'}; or use --agent"


def make_agent(spec: str, around: Surroundings) -> Agent:
    """Make the agent a word means.

    In this order: an alias; ``KIND[:ARG]``; ``uwf-KIND``; a URL and a gateway's
    name; an adapter's command line.

    Args:
        spec: What ``--agent`` or the configuration says.
        around: What it is read against.

    Raises:
        ConfigError: It means nothing, or lacks something.
        InvalidError: Its script is not YAML.
    """
    agent = find_agent(spec, around)
    kind = agent.kind or _guess_kind(agent)
    make = KINDS.get(kind)
    if make is None:
        raise unknown_kind(kind, key=f"agents.{agent.name}.kind")
    return make(replace(agent, kind=kind), around)


def find_agent(spec: str, around: Surroundings) -> AgentSettings:
    """Find what a word means, without a look at whether it is whole.

    Raises:
        ConfigError: It means nothing.
    """
    alias = around.settings.agents.get(spec)
    if alias is not None:
        return alias
    spec = spec.strip()
    head, _, argument = spec.partition(":")
    kind = head if head in KINDS else head.removeprefix("uwf-")
    if kind in KINDS:
        return _read_kind(kind, argument.strip(), around)
    words = _split_words(spec)
    if len(words) == 2 and "://" in words[0]:  # noqa: PLR2004 - URL and name
        return AgentSettings(name="gateway", url=words[0], gateway=words[1])
    if words and _is_executable(words[0], around):
        return _read_command("adapter", words, around)
    raise _unknown(spec, around)


def unknown_kind(kind: str, *, key: str) -> ConfigError:
    """Say that there is no such kind, and which there are."""
    return ConfigError(
        f"unknown kind '{kind}'{suggest(kind, tuple(KINDS))}",
        key=key,
        hint=f"kinds: {', '.join(KINDS)}",
    )


def read_fields(
    settings: Settings,
    model: str,
    text: str,
    schema: Json,
    *,
    variables: Mapping[str, str],
    now_ms: Callable[[], int],
) -> AgentReply:
    """Ask a model for the fields of a reply that has none.

    That the model is not there, or something of it is missing, is a failure.
    """
    from uwfgit.agents.builtin.make import chat_model  # noqa: PLC0415 - only when used
    from uwfgit.agents.builtin.reader import ModelReader  # noqa: PLC0415 - only when used
    from uwfgit.config.providers import find_model  # noqa: PLC0415 - only when used

    key = "modelOverrides.extract"
    try:
        place = find_model(settings, model, variables=variables, key=key)
    except ConfigError as exc:
        failure = Failure(phase="output", message=exc.message)
        return AgentReply(text="", failure=failure)
    return ModelReader(model=chat_model(place), now_ms=now_ms).read(text, schema)


def make_judge(
    settings: Settings,
    who: JudgeSettings,
    *,
    section: str,
    choose: Callable[[str], Agent],
    environment: Mapping[str, str],
    variables: Mapping[str, str],
    now_ms: Callable[[], int],
) -> ModelJudge | AgentJudge:
    """Make who supervises runs or summarises threads.

    Raises:
        ConfigError: It is not configured rightly.
    """
    from uwfgit.agents.builtin.agent import BuiltinAgent  # noqa: PLC0415 - only when used
    from uwfgit.agents.builtin.judge import AgentJudge, ModelJudge  # noqa: PLC0415 - only when used

    if who.agent is not None:
        agent = choose(who.agent)
        if isinstance(agent, BuiltinAgent):
            return ModelJudge(model=agent.model, label=agent.label, now_ms=now_ms)
        return AgentJudge(
            agent=_without_tools(agent, key=f"{section}.agent"),
            environment=environment,
            now_ms=now_ms,
            idle_seconds=settings.limits.idle_seconds,
        )
    from uwfgit.agents.builtin.make import chat_model  # noqa: PLC0415 - only when used
    from uwfgit.config.providers import find_model  # noqa: PLC0415 - only when used

    word = who.model or ""
    place = find_model(settings, word, variables=variables, key=f"{section}.model")
    return ModelJudge(model=chat_model(place), label=word, now_ms=now_ms)


def _without_tools(agent: Agent, *, key: str) -> Agent:
    """Return an agent that can do nothing but answer, and keeps no session.

    Raises:
        ConfigError: Its kind cannot be kept from using tools.
    """
    from uwfgit.agents.clis.headless import HeadlessAgent  # noqa: PLC0415 - only when used

    if isinstance(agent, HeadlessAgent) and agent.kind == "claude-code":
        alone = ("--strict-mcp-config", "--no-session-persistence")
        return replace(agent, tools=(), args=alone)
    # A command line of the user's own does what they wrote.
    if agent.kind in {"stdio", "scripted"}:
        return agent
    raise ConfigError(
        f"agent '{agent.label}' is of kind '{agent.kind}', which cannot be run "
        "without tools",
        key=key,
        hint="take a model, or an agent of kind claude-code, builtin or stdio",
    )


def _guess_kind(agent: AgentSettings) -> str:
    if agent.gateway is not None and agent.url is not None:
        return "gateway"
    if agent.command is not None:
        return "adapter"
    if agent.script is not None:
        return "scripted"
    raise ConfigError(
        "the agent has no kind",
        key=f"agents.{agent.name}",
        hint=f"`uwf config set agents.{agent.name}.kind KIND`: {', '.join(KINDS)}",
    )


def _read_kind(kind: str, argument: str, around: Surroundings) -> AgentSettings:
    if not argument:
        return AgentSettings(name=kind, kind=kind)
    if kind == "scripted":
        script = around.base_dir / argument
        return AgentSettings(name=kind, kind=kind, script=script)
    if kind == "workflow":
        return AgentSettings(name=kind, kind=kind, workflow=argument)
    if kind in ("stdio", "adapter", "acp"):
        return _read_command(kind, _split_words(argument), around)
    return AgentSettings(name=kind, kind=kind, model=argument)


def _read_command(kind: str, words: list[str], around: Surroundings) -> AgentSettings:
    command, *args = words
    if "/" in command:
        # The agent runs in the step's folder, the word was written in this one.
        command = str(around.base_dir / command)
    return AgentSettings(name=kind, kind=kind, command=command, args=tuple(args))


def _split_words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as exc:
        raise ConfigError(
            f"cannot read the agent's command line: {str(exc).lower()}",
            hint="quote it as for a shell",
        ) from exc


def _is_executable(word: str, around: Surroundings) -> bool:
    if "/" not in word:
        path = around.environment.get("PATH", os.defpath)
        return shutil.which(word, path=path) is not None
    file = around.base_dir / word
    return file.is_file() and os.access(file, os.X_OK)


def _unknown(spec: str, around: Surroundings) -> ConfigError:
    words = _split_words(spec)
    if words and "/" in words[0] and (around.base_dir / words[0]).is_file():
        return ConfigError(
            f"agent '{words[0]}' is not executable",
            hint=f"chmod +x {quote_word(words[0])}",
        )
    names = list(dict.fromkeys((*around.settings.agents, *KINDS)))
    return ConfigError(
        f"no agent '{spec}'{suggest(spec.partition(':')[0], names)}",
        hint="an alias of your configuration, KIND[:ARG], or a command on PATH; "
        f"known: {', '.join(names)}",
    )


def _read_argv(agent: AgentSettings, form: str) -> tuple[str, ...]:
    if agent.command is None:
        raise _lacks(agent, "a command", form)
    return (agent.command, *agent.args)


def _lacks(agent: AgentSettings, what: str, form: str) -> ConfigError:
    return ConfigError(
        f"agent '{agent.name}' needs {what}",
        hint=f"--agent '{form}', or agents.{agent.name} in your configuration",
    )
