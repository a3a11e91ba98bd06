from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.children import ENVIRONMENT
from uwfgit.agents.adapter import AdapterAgent
from uwfgit.agents.base import Agent
from uwfgit.agents.clis.headless import HeadlessAgent
from uwfgit.agents.gateway import GatewayAgent
from uwfgit.agents.registry import KINDS, Surroundings, choose_agent, make_agent
from uwfgit.agents.scripted import ScriptedAgent
from uwfgit.agents.stdio import StdioAgent
from uwfgit.config import AgentChoice, AgentSettings, Settings
from uwfgit.errors import ConfigError


def settings_with(*agents: AgentSettings) -> Settings:
    return Settings(agents={agent.name: agent for agent in agents})


def make(spec: str, *agents: AgentSettings, base: Path = Path("/")) -> Agent:
    return make_agent(
        spec,
        Surroundings(
            settings=settings_with(*agents),
            base_dir=base,
            environment=ENVIRONMENT,
            variables={},
        ),
    )


def test_an_alias_comes_before_a_kind() -> None:
    alias = AgentSettings(
        name="codex", kind="stdio", command="my-codex", args=("-q",), env={"A": "1"}
    )

    agent = make("codex", alias)

    expected = StdioAgent(label="codex", argv=("my-codex", "-q"), env={"A": "1"})
    assert agent == expected


def test_an_alias_with_a_command_alone_is_an_adapter() -> None:
    alias = AgentSettings(name="old", command="uwf-hermes", timeout_seconds=5)

    agent = make("old", alias)

    expected = AdapterAgent(label="old", argv=("uwf-hermes",), timeout_seconds=5)
    assert agent == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            "stdio:claude -p 'be brief'",
            StdioAgent(label="stdio", argv=("claude", "-p", "be brief")),
            id="stdio",
        ),
        pytest.param(
            "stdio:./agent.sh ./x",
            StdioAgent(label="stdio", argv=("/base/agent.sh", "./x")),
            id="relative-command",
        ),
        pytest.param(
            "adapter: a:b",
            AdapterAgent(label="adapter", argv=("a:b",)),
            id="adapter",
        ),
        pytest.param(
            "uwf-stdio:cat",
            StdioAgent(label="stdio", argv=("cat",)),
            id="uwf-prefix",
        ),
        pytest.param(
            "sh -c 'echo hi'",
            AdapterAgent(label="adapter", argv=("sh", "-c", "echo hi")),
            id="executable-on-path",
        ),
        pytest.param(
            "/bin/sh -e",
            AdapterAgent(label="adapter", argv=("/bin/sh", "-e")),
            id="executable-by-path",
        ),
    ],
)
def test_a_word_means_an_agent(spec: str, expected: Agent) -> None:
    assert make(spec, base=Path("/base")) == expected


def test_a_script_is_looked_for_from_the_folder_given(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("steps: []")

    agent = make("scripted:r.yaml", base=tmp_path)

    assert isinstance(agent, ScriptedAgent)
    assert agent.label == "scripted"
    assert agent.script.file == tmp_path / "r.yaml"


def test_a_relative_executable_is_looked_for_from_the_folder_given(
    tmp_path: Path,
) -> None:
    (tmp_path / "agent.sh").write_text("#!/bin/sh\n")
    (tmp_path / "agent.sh").chmod(0o755)

    agent = make("./agent.sh", base=tmp_path)

    expected = AdapterAgent(label="adapter", argv=(str(tmp_path / "agent.sh"),))
    assert agent == expected


@pytest.mark.parametrize(
    ("spec", "command", "model"),
    [
        ("claude-code", "claude", None),
        ("uwf-claude-code", "claude", None),
        ("claude-code:opus", "claude", "opus"),
        ("codex", "codex", None),
    ],
)
def test_a_kind_of_an_installed_cli_means_its_own_command(
    spec: str, command: str, model: str | None
) -> None:
    agent = make(spec)

    assert isinstance(agent, HeadlessAgent)
    assert (agent.command, agent.model) == (command, model)
    assert agent.has_sessions


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param("gateway", "needs a url and a gateway", id="gateway-alone"),
        pytest.param("acp", "needs a command", id="acp-alone"),
        pytest.param("stdio", "needs a command", id="stdio-alone"),
        pytest.param("scripted:", "needs a script", id="scripted-alone"),
        pytest.param("stdio:'open", "cannot read the agent's command", id="quote"),
        pytest.param("stdoi:cat", "did you mean 'stdio'?", id="kind-misspelt"),
        pytest.param("codr", "did you mean 'coder'?", id="alias-misspelt"),
        pytest.param("no-such-program --now", "no agent", id="unknown"),
        pytest.param("", "no agent ''", id="empty"),
        pytest.param("./plain", "not executable", id="no-x-bit"),
        pytest.param("bare", "the agent has no kind", id="alias-without-kind"),
        pytest.param("odd", "unknown kind 'stdoi'", id="alias-of-unknown-kind"),
        pytest.param("host", "needs a url and a gateway", id="alias-of-a-gateway"),
        pytest.param("empty", "'empty' needs a command", id="alias-without-command"),
    ],
)
def test_a_word_that_means_nothing_is_refused_with_a_hint(
    spec: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "plain").write_text("")
    aliases = (
        AgentSettings(name="coder", kind="stdio", command="cat"),
        AgentSettings(name="bare"),
        AgentSettings(name="odd", kind="stdoi"),
        AgentSettings(name="host", kind="gateway", url="http://localhost"),
        AgentSettings(name="empty", kind="stdio"),
    )

    with pytest.raises(ConfigError) as caught:
        make(spec, *aliases, base=tmp_path)

    assert message in caught.value.message
    assert caught.value.hint


def test_an_alias_that_is_called_as_its_kind_is_named_once() -> None:
    with pytest.raises(ConfigError) as caught:
        make("nobody", AgentSettings(name="codex", kind="codex"))

    assert (caught.value.hint or "").count("codex") == 1


def test_a_url_and_a_name_are_a_gateway() -> None:
    agent = make("http://localhost:7900 hermes")

    assert agent == GatewayAgent(
        label="gateway", url="http://localhost:7900", gateway="hermes"
    )


def test_every_kind_of_the_product_is_known() -> None:
    assert set(KINDS) == {
        "scripted",
        "stdio",
        "adapter",
        "builtin",
        "claude-code",
        "codex",
        "hermes",
        "gemini",
        "opencode",
        "cursor",
        "acp",
        "gateway",
        "workflow",
    }


def choice(spec: str, *, alias_only: bool = False) -> AgentChoice:
    return AgentChoice(
        spec=spec, source="the file", key="defaultAgent", alias_only=alias_only
    )


SETTINGS = Settings(
    default_agent=choice("stdio:default"),
    agent_overrides={("solve-issue", "tester"): choice("stdio:override")},
)


@pytest.mark.parametrize(
    ("flag", "workflow", "role", "command"),
    [
        pytest.param("stdio:flag", "solve-issue", "tester", "flag", id="flag"),
        pytest.param(None, "solve-issue", "tester", "override", id="override"),
        pytest.param(None, "solve-issue", "planner", "default", id="other-role"),
        pytest.param(None, "develop", "tester", "default", id="other-workflow"),
    ],
)
def test_the_flag_wins_over_the_override_over_the_default(
    flag: str | None, workflow: str, role: str, command: str
) -> None:
    agent = choose_agent(
        flag,
        settings=SETTINGS,
        workflow=workflow,
        role=role,
        base_dir=Path("/"),
        environment=ENVIRONMENT,
    )

    assert agent == StdioAgent(label="stdio", argv=(command,))


def choose_default(settings: Settings) -> Agent:
    return choose_agent(
        None,
        settings=settings,
        workflow="develop",
        role="coder",
        base_dir=Path("/"),
        environment=ENVIRONMENT,
    )


def test_without_any_agent_the_error_says_how_to_set_one() -> None:
    with pytest.raises(ConfigError) as caught:
        choose_default(Settings())

    assert caught.value.hint is not None
    assert "`uwf setup`" in caught.value.hint
    assert "--agent" in caught.value.hint


def test_a_repository_never_names_a_program() -> None:
    with pytest.raises(ConfigError) as caught:
        choose_default(Settings(default_agent=choice("sh", alias_only=True)))

    assert (caught.value.source, caught.value.key) == ("the file", "defaultAgent")


def test_a_repository_may_choose_among_the_users_agents() -> None:
    mine = AgentSettings(name="mine", kind="stdio", command="cat")
    settings = Settings(
        agents={"mine": mine}, default_agent=choice("mine", alias_only=True)
    )

    assert choose_default(settings) == StdioAgent(label="mine", argv=("cat",))
