"""``uwf setup``: finds agents, asks or obeys, checks, and keeps what was there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.agents.fake_api import FakeApi, modes
from tests.cli.calls import Uwf
from tests.cli.screens import on_terminal, write_program
from uwfgit.model.yaml.core import parse_yaml

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder first on PATH with two agents, an adapter and uwf's own that plays."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("claude", "codex", "uwf-mine", "uwf-mock"):
        write_program(folder / name, "#!/bin/sh\necho 1.2.3\n")
    (folder / "uwf-plain").write_text("no program")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def _config(home: Path) -> Mapping[str, Any]:
    content: Mapping[str, Any] = parse_yaml(
        (home / "config.yaml").read_bytes(), file="config.yaml"
    ).value
    return content


def test_an_installed_agent_becomes_the_default_one(
    uwf: Uwf, programs: Path, home: Path
) -> None:
    assert programs.is_dir()

    done = uwf("setup", "--agent", "claude-code", "--edits", "--json")

    assert done.code == 0, done.err
    assert done.json == {
        "configPath": str(home / "config.yaml"),
        "provider": None,
        "model": None,
        "defaultAgent": "claude-code",
        "validation": None,
        "adapterWarnings": [],
    }
    assert _config(home)["agents"]["claude-code"] == {
        "kind": "claude-code",
        "args": ["--permission-mode", "acceptEdits"],
    }


def test_an_adapter_is_kept_with_its_path(uwf: Uwf, programs: Path, home: Path) -> None:
    assert uwf("setup", "--agent", "uwf-mine").code == 0

    assert _config(home)["agents"]["uwf-mine"] == {
        "kind": "adapter",
        "command": str(programs / "uwf-mine"),
    }


def test_a_program_that_is_missing_is_warned_about(uwf: Uwf, programs: Path) -> None:
    (programs / "codex").unlink()

    done = uwf("setup", "--agent", "codex", "--json")

    (warning,) = done.json["adapterWarnings"]
    assert "'codex' is not on your PATH yet; install it with `npm " in warning


@pytest.mark.parametrize(
    ("kind", "key"), [("stdio", "command"), ("scripted", "script"), ("gateway", "url")]
)
@pytest.mark.usefixtures("programs")
def test_a_kind_that_needs_more_than_its_name_is_not_written(
    uwf: Uwf, home: Path, kind: str, key: str
) -> None:
    before = (home / "config.yaml").exists()

    done = uwf("setup", "--agent", kind, "--json")

    assert done.code == 2
    assert f"`uwf config set agents.{kind}.{key} …`" in done.error["hint"]
    assert (home / "config.yaml").exists() == before


def test_a_model_is_checked_and_its_key_kept_apart(
    uwf: Uwf, programs: Path, home: Path
) -> None:
    assert programs.is_dir()
    with FakeApi(modes.answer("ok")) as api:
        done = uwf(
            *("setup", "--provider", "mine", "--base-url", f"{api.url}/v1"),
            *("--model", "small", "--api-key", "-", "--json"),
            stdin=f"{KEY}\n".encode(),
        )

    assert done.json["validation"] == {"ok": True, "message": "small answered"}
    assert (done.json["model"], done.json["defaultAgent"]) == ("mine/small", "builtin")
    assert api.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert (home / ".env").read_text() == f"MINE_API_KEY={KEY}\n"
    assert (home / ".env").stat().st_mode & 0o777 == 0o600
    assert KEY not in (home / "config.yaml").read_text()
    assert KEY not in done.out + done.err


def test_what_is_configured_already_stays(uwf: Uwf, programs: Path, home: Path) -> None:
    assert programs.is_dir()
    for key, value in (
        ("agents.codex.kind", "codex"),
        ("agents.codex.args", '["--search"]'),
        ("concurrency.maxRunning", "2"),
        ("workflowPaths", '["~/flows"]'),
        ("defaultAgent", "codex"),
    ):
        uwf("config", "set", key, value)

    uwf("setup", "--provider", "ollama", "--model", "qwen3", "--no-check")
    uwf("setup", "--agent", "codex", "--edits")

    assert _config(home) == {
        "agents": {"codex": {"kind": "codex", "args": ["--search"]}},
        "concurrency": {"maxRunning": 2},
        "workflowPaths": ["~/flows"],
        "defaultAgent": "codex",
        "defaultModel": "ollama/qwen3",
    }


def test_a_check_that_fails_is_told_and_stops_nothing(uwf: Uwf, programs: Path) -> None:
    assert programs.is_dir()
    with FakeApi(modes.fail(401, message="no such key")) as api:
        done = uwf(
            *("setup", "--provider", "mine", "--base-url", api.url),
            *("--model", "small", "--api-key", KEY, "--json"),
        )

    assert done.code == 0
    assert done.json["validation"]["ok"] is False
    assert "check the key in $MINE_API_KEY" in done.json["validation"]["message"]
    assert len(api.requests) == 1


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 2, "no option was given"),
        (("--agent", "claud"), 1, "did you mean 'claude-code'?"),
        (("--provider", "mine", "--model", "m"), 2, "needs --base-url URL"),
        (("--provider", "openai"), 2, "needs --model NAME"),
        (("--api-key", "x"), 2, "need --provider NAME"),
        (("--model", "gpt"), 2, "needs --provider NAME"),
    ],
)
def test_what_cannot_work_is_refused_and_nothing_written(
    uwf: Uwf,
    programs: Path,
    home: Path,
    words: tuple[str, ...],
    code: int,
    told: str,
) -> None:
    assert programs.is_dir()

    done = uwf("setup", *words)

    assert done.code == code
    assert told in done.err
    assert not (home / "config.yaml").exists()


def test_without_an_agent_the_error_names_the_command_for_each(
    uwf: Uwf, programs: Path, thread: str
) -> None:
    assert programs.is_dir()

    done = uwf("thread", "exec", thread)

    assert done.code == 1
    assert "`uwf setup --agent claude-code --edits`" in done.err
    assert "`uwf setup --agent uwf-mine`" in done.err
    assert "uwf-plain" not in done.err
    assert "uwf-mock" not in done.err
    hints = [check.get("hint") for check in uwf("doctor", "--json").json["checks"]]
    assert "uwf setup --agent codex --edits" in hints


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("agents.x.kind", "weird", "unknown kind 'weird'"),
        ("defaultAgent", "claude-cod", "did you mean 'claude-code'?"),
        ("agentOverrides.w.r", "nobody", "no agent 'nobody'"),
    ],
)
def test_config_set_refuses_an_agent_that_means_nothing(
    uwf: Uwf, home: Path, key: str, value: str, told: str
) -> None:
    done = uwf("config", "set", key, value)

    assert done.code == 1
    assert told in done.err
    assert not (home / "config.yaml").exists()


def test_doctor_sees_a_default_agent_that_means_nothing(uwf: Uwf, home: Path) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text("defaultAgent: nobody\n")

    done = uwf("doctor", "--json")

    assert done.code == 1
    told = [check["message"] for check in done.json["checks"]]
    assert "defaultAgent: no agent 'nobody'" in told


def test_config_unset_takes_a_value_or_a_group_out(uwf: Uwf, home: Path) -> None:
    uwf("config", "set", "agents.a.kind", "stdio")
    uwf("config", "set", "agents.a.command", "cat")
    uwf("config", "set", "limits.maxSteps", "5")

    assert uwf("config", "unset", "limits.maxSteps").code == 0
    assert uwf("config", "unset", "agents.a.kind").code == 0
    assert _config(home) == {"agents": {"a": {"command": "cat"}}}
    assert uwf("config", "unset", "agents").code == 0
    again = uwf("config", "unset", "agents")

    assert again.code == 1
    assert again.err.startswith("error: config key 'agents' not found\n")


def test_on_a_terminal_it_asks(uwf: Uwf, programs: Path, home: Path) -> None:
    assert callable(uwf)
    assert programs.is_dir()

    seen = on_terminal("setup", typed=b"9\n2\ny\n")

    assert seen.code == 0, seen.out
    assert "1. claude-code" in seen.out
    assert "4. builtin" in seen.out
    assert _config(home)["agents"]["codex"]["args"][0] == "-c"


def test_on_a_terminal_it_asks_for_a_model(
    uwf: Uwf, programs: Path, home: Path
) -> None:
    assert callable(uwf)
    assert programs.is_dir()

    seen = on_terminal("setup", "--no-check", typed=b"4\nollama\nqwen3\n")

    assert seen.code == 0, seen.out
    assert _config(home)["defaultModel"] == "ollama/qwen3"
    assert _config(home)["defaultAgent"] == "builtin"


def test_an_env_file_that_cannot_be_read_is_not_written_over(
    uwf: Uwf, home: Path
) -> None:
    home.mkdir(exist_ok=True)
    large = f"# {'x' * 1024 * 1024}\nOTHER=kept\n"
    (home / ".env").write_text(large)

    done = uwf(
        *("setup", "--provider", "mine", "--base-url", "http://127.0.0.1:1"),
        *("--model", "small", "--api-key", KEY, "--no-check", "--json"),
    )

    assert done.code == 1
    assert "larger than 1 MiB" in done.error["message"]
    assert (home / ".env").read_text() == large
    assert not (home / "config.yaml").exists()
