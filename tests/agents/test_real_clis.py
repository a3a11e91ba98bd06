"""The real CLIs, one run each, against a fake API on loopback."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.agents.fake_api import Call, FakeApi, Script, modes, tools_only
from tests.agents.real import Machine, make_machine, need_binary
from tests.agents.record import RUN
from uwfgit.agents.clis.headless import HeadlessAgent
from uwfgit.agents.clis.kinds import load_cli
from uwfgit.agents.registry import choose_agent, make_judge
from uwfgit.config import AgentSettings, JudgeSettings, Settings
from uwfgit.ids import ThreadId

pytestmark = pytest.mark.slow

KINDS: Final = ("claude-code", "codex", "gemini", "opencode")
TOOL: Final = {
    "claude-code": "Bash",
    "codex": "shell",
    "gemini": "run_shell_command",
    "opencode": "bash",
}
UNKNOWN: Final = {"opencode": "ses_ddce7f16fffeA9t7f0H7QYusmA"}
UNKNOWN_UUID: Final = "01a22303-487c-7660-9f42-745ffe360fe1"


@pytest.fixture(params=KINDS)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    kind: str = request.param
    need_binary(kind)
    with FakeApi(modes.answer(), is_side=tools_only) as api:
        yield make_machine(kind, api, tmp_path)


def play(machine: Machine, script: Script) -> Machine:
    machine.api.play(script)
    return machine


def test_text_tools_usage_model_and_version_are_read(machine: Machine) -> None:
    script = modes.tool_call(RUN[machine.kind])

    reply = play(machine, script).ask()

    assert reply.failure is None
    assert reply.text == modes.GOOD.rstrip("\n") or reply.text == modes.GOOD
    calls = [call for turn in reply.turns for call in turn.tool_calls or ()]
    assert [call.name for call in calls] == [TOOL[machine.kind]]
    assert calls[0].result is not None
    assert calls[0].result.startswith("hi")
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (200, 40)
    assert reply.usage.turns == 2
    assert reply.agent_version is not None or machine.kind == "gemini"
    assert reply.exit_code == 0
    assert any("Let me look." in turn.content for turn in machine.told)
    assert any(turn.role == "tool" for turn in machine.told)


def test_a_session_is_gone_on_with_and_usage_is_of_the_run_alone(
    machine: Machine,
) -> None:
    first = play(machine, modes.answer("I remember walrus.")).ask("Remember walrus.")

    second = machine.ask(
        "What was it?", session=first.session_id, total=first.session_total
    )

    assert second.failure is None
    assert second.session_id == first.session_id
    assert "Remember walrus." in machine.api.requests[-1].text
    assert second.usage is not None
    assert (second.usage.input_tokens, second.usage.output_tokens) == (100, 20)
    if machine.kind == "claude-code":
        assert first.usage is not None
        assert second.usage.cost_usd == pytest.approx(first.usage.cost_usd)


def test_a_session_it_does_not_know_is_refused_and_said_so(machine: Machine) -> None:
    reply = machine.ask(session=UNKNOWN.get(machine.kind, UNKNOWN_UUID))

    assert reply.is_session_refused
    assert machine.api.requests == []


def test_an_id_that_cannot_be_its_own_is_refused_unasked(machine: Machine) -> None:
    reply = machine.ask(session="--help")

    assert reply.is_session_refused
    assert reply.exit_code is None


def test_a_permission_that_is_denied_is_a_warning(machine: Machine) -> None:
    if machine.kind != "claude-code":
        pytest.skip("it has a sandbox, or other flags")
    call = Call(name="Bash", arguments={"command": "touch /etc/x", "description": ""})

    reply = play(machine, modes.tool_call(call)).ask(
        args=("--permission-mode", "default")
    )

    assert reply.failure is None
    (warning,) = reply.warnings
    assert warning.startswith("permission denied: Bash")
    assert "touch /etc/x" in warning


@pytest.mark.parametrize(
    ("script", "phase", "words"),
    [
        pytest.param(
            modes.fail(400, message="prompt is too long"), "agent", "too long", id="400"
        ),
        pytest.param(
            modes.fail(401, message="invalid x-api-key"), "agent", "log", id="401"
        ),
        pytest.param(modes.fail(429, message="limited"), "limit", "limit", id="429"),
        pytest.param(modes.fail(500), "agent", "", id="500"),
        pytest.param(modes.fail(529), "agent", "", id="529"),
        pytest.param(modes.cut_stream(), "agent", "", id="cut"),
        pytest.param(modes.bad_json(), "agent", "", id="bad-json"),
    ],
)
def test_what_the_api_refuses_is_a_failure_in_one_line(
    machine: Machine, script: Script, phase: str, words: str
) -> None:
    if machine.kind == "opencode":
        pytest.skip("it tries again for minutes, and nothing turns that off")
    reply = play(machine, script).ask()

    assert reply.failure is not None
    assert reply.failure.phase == phase
    assert reply.exit_code is not None
    assert (reply.exit_code == 1) or machine.kind == "gemini"
    assert words in reply.failure.message.lower()
    assert "\n" not in reply.failure.message
    assert len(reply.failure.message) < 400


def test_silence_ends_by_the_watchdog_and_the_session_is_known(
    machine: Machine,
) -> None:
    if machine.kind == "opencode":
        pytest.skip("it names its session with its first answer")

    reply = play(machine, modes.hang()).ask(idle=3)

    assert reply.failure is not None
    assert reply.failure.phase == "agent"
    assert "(see limits.idleSeconds)" in reply.failure.message
    assert reply.session_id is not None
    machine.api.play(modes.answer())
    again = machine.ask("Go on.", session=reply.session_id)
    assert (again.failure, again.session_id) == (None, reply.session_id)
    assert "Do it." in machine.api.requests[-1].text


def test_a_key_that_is_no_good_is_a_failure_that_says_what_to_do(
    machine: Machine,
) -> None:
    if machine.kind == "opencode":
        pytest.skip("it tries again for minutes, and nothing turns that off")

    reply = play(machine, modes.fail(401, message="invalid x-api-key")).ask()

    assert reply.failure is not None
    assert "{" not in reply.failure.message
    assert any(word in reply.failure.message for word in ("log in", "login", "_KEY"))


def test_an_option_it_does_not_know_names_the_way_on(machine: Machine) -> None:
    reply = machine.ask(args=("--nonsense",))

    assert reply.failure is not None
    assert "nonsense" in reply.failure.message or machine.kind == "opencode"
    assert f"agents.{machine.kind}.args" in reply.failure.message


def test_claude_code_judges_without_tools_and_keeps_no_session(tmp_path: Path) -> None:
    said = '{"decision": "stop", "reason": "It goes in circles."}'
    command = need_binary("claude-code")
    agent = AgentSettings(
        name="judge", kind="claude-code", command=command, tools=("Bash",)
    )
    settings = Settings(agents={"judge": agent})
    with FakeApi(modes.answer(said)) as api:
        machine = make_machine("claude-code", api, tmp_path)
        environment = machine.home.point_at("claude-code", api.url)
        judge = make_judge(
            settings,
            JudgeSettings(agent="judge"),
            section="supervise",
            choose=lambda spec: choose_agent(
                spec,
                settings=settings,
                workflow="",
                role="judge",
                base_dir=tmp_path,
                environment=environment,
            ),
            environment=environment,
            variables={},
            now_ms=lambda: 1_800_000_000_000,
        )

        reply = judge.ask("Judge it.", thread=ThreadId("01M8HX00000000000000000000"))

    assert (reply.text, reply.failure) == (said, None)
    assert api.requests
    assert not any(request.body.get("tools") for request in api.requests)
    assert list((tmp_path / "home").rglob("*.jsonl")) == []


KEY: Final = "sk-" + "a" * 40
OTHER_PROVIDER: Final = """\
model_provider = "own"

[model_providers.own]
name = "own"
base_url = "http://127.0.0.1:9/v1"
"""
NO_LOGIN: Final = {
    "claude-code": "'claude' has no login; run `claude` once and log in, or set "
    "ANTHROPIC_API_KEY",
    "codex": "'codex' has no login; run `codex login`, or set CODEX_API_KEY",
}


def look(
    kind: str,
    home: Path,
    *,
    args: tuple[str, ...] = (),
    env: Mapping[str, str] = {},
) -> str | None:
    home.mkdir(exist_ok=True)
    agent = HeadlessAgent(
        cli=load_cli(kind), label="a", command=need_binary(kind), args=args
    )
    return agent.check_up(
        {"PATH": os.environ["PATH"], "HOME": str(home), **env}, cwd=home
    )


@pytest.mark.parametrize("kind", NO_LOGIN)
def test_one_without_a_login_says_so_before_it_is_run(
    kind: str, tmp_path: Path
) -> None:
    assert look(kind, tmp_path) == NO_LOGIN[kind]


@pytest.mark.parametrize(
    ("kind", "env"),
    [
        pytest.param("claude-code", {"ANTHROPIC_API_KEY": KEY}, id="anthropic-key"),
        pytest.param("claude-code", {"CLAUDE_CODE_USE_BEDROCK": "1"}, id="bedrock"),
        pytest.param("codex", {"CODEX_API_KEY": KEY}, id="codex-key"),
    ],
)
def test_a_variable_takes_a_logins_place(
    kind: str, env: dict[str, str], tmp_path: Path
) -> None:
    assert look(kind, tmp_path, env=env) is None


def test_codex_does_not_read_the_key_of_the_api(tmp_path: Path) -> None:
    # So no message may name it: `codex exec` sends no key at all.
    assert look("codex", tmp_path, env={"OPENAI_API_KEY": KEY}) == NO_LOGIN["codex"]


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(OTHER_PROVIDER, id="other-provider"),
        pytest.param("model = [", id="broken"),
    ],
)
def test_codex_is_not_missed_a_login_that_its_settings_replace(
    config: str, tmp_path: Path
) -> None:
    folder = tmp_path / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(config)

    assert look("codex", tmp_path) is None


def test_codex_that_was_logged_in_by_a_key_has_a_login(tmp_path: Path) -> None:
    folder = tmp_path / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text('model = "gpt-5"\n')
    login = (need_binary("codex"), "login", "--with-api-key")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    assert look("codex", tmp_path) == NO_LOGIN["codex"]

    subprocess.run(login, input=KEY, text=True, env=environment, check=True)

    assert look("codex", tmp_path) is None


def test_arguments_may_bring_what_a_login_would(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"apiKeyHelper": "echo x"}')

    assert look("claude-code", tmp_path, args=("--settings", "s.json")) is None
    assert look("codex", tmp_path, args=("--oss",)) is None
