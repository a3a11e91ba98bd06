from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.calls import Uwf


def test_values_are_set_and_read_back(uwf: Uwf, home: Path) -> None:
    done = uwf("config", "set", "limits.maxSteps", "7", "--json")

    assert done.json == {"limits.maxSteps": 7}
    assert uwf("config", "get", "limits.maxSteps").out == "7\n"
    assert uwf("config", "get", "limits", "--json").json["maxSteps"] == 7
    assert (home / "config.yaml").stat().st_mode & 0o777 == 0o600


def test_a_list_is_a_json_array(uwf: Uwf) -> None:
    uwf("config", "set", "workflowPaths", '["~/flows", "a"]')

    listed = uwf("config", "list").out.splitlines()

    assert uwf("config", "get", "workflowPaths", "--json").json == ["~/flows", "a"]
    assert [line.split(maxsplit=1)[1] for line in listed if "workflowP" in line] == [
        '["~/flows", "a"]'
    ]


def test_a_group_is_set_by_a_mapping_and_is_then_no_more(uwf: Uwf) -> None:
    assert uwf("config", "set", "agents.a.model", "of before").code == 0
    agent = {"kind": "stdio", "command": "mine", "args": ["a"], "env": {"A": "1"}}
    text = "{kind: stdio, command: mine, args: [a], env: {A: '1'}}"

    done = uwf("config", "set", "agents.a", text, "--json")

    assert (done.code, done.json) == (0, {"agents.a": agent})
    assert uwf("config", "get", "agents.a", "--json").json == agent


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{kind: stdoi}", "agents.a.kind: unknown kind 'stdoi'; did you mean 'stdio'"),
        ("{kindd: stdio}", "unknown key 'agents.a.kindd'; did you mean"),
        ("{kind: [stdio]}", "agents.a.kind: must be text"),
        ("{env: 3}", "agents.a.env: must be a mapping"),
        ("{kind: stdio", "VALUE:1:13: not YAML"),
        ("{}", "agents.a: the mapping sets nothing"),
        ("stdio", "'agents.a' is a group of keys"),
    ],
)
def test_a_group_is_checked_as_the_file_is(
    uwf: Uwf, home: Path, value: str, said: str
) -> None:
    done = uwf("config", "set", "agents.a", value, "--json")

    assert (done.code, said in done.error["message"]) == (1, True)
    assert not (home / "config.yaml").exists()


def test_list_shows_defaults_and_origins(uwf: Uwf, home: Path) -> None:
    uwf("config", "set", "limits.corrections", "1")

    plain = uwf("config", "list", "--json").json
    origins = uwf("config", "list", "--show-origin", "--json").json

    assert plain["limits.corrections"] == 1
    assert plain["limits.maxSteps"] == 100
    assert origins["limits.maxSteps"] == {"value": 100, "origin": "default"}
    assert origins["limits.corrections"]["origin"] == str(home / "config.yaml")
    assert "limits.corrections" in uwf("config", "list", "--show-origin").out


def test_keys_are_masked(uwf: Uwf) -> None:
    value = "sk-0123456789abcdefghijklmnop"
    uwf("config", "set", "providers.p.apiKey", value)

    for words in (("list",), ("list", "--json"), ("get", "providers"), ("list", "-v")):
        call = uwf("config", *words)
        assert call.code == 0
        assert value not in call.out + call.err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        pytest.param(("set", "limit.maxSteps", "1"), "limits", id="unknown"),
        pytest.param(("set", "limits.maxSteps", "many"), None, id="no-number"),
        pytest.param(("get", "defaultAgent"), "has no value", id="not-set"),
        pytest.param(("unset", "limits.maxTokens"), "has no value", id="unset"),
        pytest.param(("get", "limits.maxStep"), "limits.maxSteps", id="misspelt"),
        pytest.param(("get", "limit.maxSteps"), "'limits'", id="group"),
        pytest.param(("get", "xyz"), "uwf config list", id="nothing-near"),
    ],
)
def test_mistakes_are_one_line(
    uwf: Uwf, words: tuple[str, ...], hint: str | None
) -> None:
    done = uwf("config", *words)

    assert (done.code, done.out) == (1, "")
    assert hint is None or hint in done.err


def test_a_file_that_does_not_parse_is_named(uwf: Uwf, home: Path) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text("a: [\n")

    done = uwf("config", "list", "--json")

    assert done.error["code"] == "config"
    assert str(home / "config.yaml") in done.error["message"]


def test_an_unknown_key_in_a_file_is_one_warning(uwf: Uwf, home: Path) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text("defaultAgnet: x\n")

    done = uwf("config", "list")

    assert done.code == 0
    assert done.err.count("warning: ") == 1
    assert "did you mean 'defaultAgent'?" in done.err


def test_a_repository_lowers_limits_only(uwf: Uwf, work: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    (work / ".uwf.yaml").write_text("limits: { maxSteps: 3, corrections: 99 }\n")

    listed = uwf("config", "list", "--json").json

    assert (listed["limits.maxSteps"], listed["limits.corrections"]) == (3, 2)
