from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from uwfgit.config import (
    KEYS,
    AgentChoice,
    AgentSettings,
    Limits,
    Model,
    Provider,
    Settings,
    get_key,
    masked,
    set_key,
    settings_from,
)
from uwfgit.errors import ConfigError, NotFoundError

HOME = Path("/home/me")
ROOT = Path("/work/project")
USER_SOURCE = Path("/home/me/.uwf/config.yaml")
REPOSITORY_SOURCE = ROOT / ".uwf.yaml"


def read(user: object = None, repository: object = None) -> Settings:
    return read_all(user, repository)[0]


def warnings_of(user: object = None, repository: object = None) -> tuple[str, ...]:
    return read_all(user, repository)[1]


def read_all(user: object, repository: object) -> tuple[Settings, tuple[str, ...]]:
    return settings_from(
        user,
        repository,
        user_source=USER_SOURCE,
        repository_source=REPOSITORY_SOURCE,
        home=HOME,
        root=ROOT,
    )


def test_a_file_that_says_nothing_leaves_what_holds_without_any() -> None:
    assert read({}) == read() == Settings()
    assert warnings_of({}) == warnings_of() == ()


def test_without_files_the_defaults_hold() -> None:
    settings, warnings = read_all(None, None)

    assert settings.limits == Limits(
        max_steps=100,
        idle_seconds=900,
        wall_seconds=None,
        corrections=2,
        context_chars=32_000,
    )
    assert (settings.max_running, settings.tool_results) == (4, "full")
    assert settings.default_agent is None
    assert {entry.origin for entry in settings.entries} == {"default"}
    assert warnings == ()


@pytest.mark.parametrize("empty", [None, {}, {"agents": None, "limits": {}}])
def test_an_empty_file_or_group_changes_nothing(empty: object) -> None:
    assert read_all(empty, empty) == read_all(None, None)


def test_an_agent_has_all_its_fields() -> None:
    settings = read(
        {
            "agents": {
                "coder": {
                    "kind": "builtin",
                    "command": "claude",
                    "args": ["--print", ""],
                    "env": {"MODE": "", "TOKEN": "t"},
                    "model": "opus",
                    "tools": ["read_file"],
                    "maxTurns": 5,
                    "timeoutSeconds": 1.5,
                    "script": "replies.yaml",
                    "url": "http://localhost",
                    "gateway": "hermes",
                }
            }
        }
    )

    assert settings.agents == {
        "coder": AgentSettings(
            name="coder",
            kind="builtin",
            command="claude",
            args=("--print", ""),
            env={"MODE": "", "TOKEN": "t"},
            model="opus",
            tools=("read_file",),
            max_turns=5,
            timeout_seconds=1.5,
            script=Path("/home/me/.uwf/replies.yaml"),
            url="http://localhost",
            gateway="hermes",
        )
    }


@pytest.mark.parametrize(
    ("value", "tools"),
    [
        pytest.param(None, None, id="unset"),
        pytest.param("none", (), id="none"),
        pytest.param([], (), id="empty"),
        pytest.param(["a", "b"], ("a", "b"), id="list"),
    ],
)
def test_tools_are_a_list_or_none(value: object, tools: tuple[str, ...] | None) -> None:
    settings = read({"agents": {"a": {"kind": "builtin", "tools": value}}})

    assert settings.agents["a"].tools == tools


def test_the_host_of_older_files_is_the_url() -> None:
    settings = read({"agents": {"a": {"host": "http://h", "gateway": "g"}}})

    assert settings.agents["a"].url == "http://h"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param("claude", "claude", id="on-path"),
        pytest.param("~/bin/agent", "/home/me/bin/agent", id="home"),
        pytest.param("./agent", "/home/me/.uwf/agent", id="beside-the-file"),
        pytest.param("/opt/agent", "/opt/agent", id="absolute"),
    ],
)
def test_an_agents_command_starts_from_the_files_folder(
    command: str, expected: str
) -> None:
    settings = read({"agents": {"a": {"command": command}}})

    assert settings.agents["a"].command == expected


def test_providers_models_and_the_rest_are_read() -> None:
    settings = read(
        {
            "providers": {"p": {"baseUrl": "http://p", "apiKeyEnv": "P_KEY"}},
            "models": {
                "gpt-4.1": "p/openai/gpt-4.1",
                "m": {"provider": "p", "name": "n"},
            },
            "defaultModel": "m",
            "modelOverrides": {"extract": "gpt-4.1"},
            "concurrency": {"maxRunning": 2},
            "record": {"toolResults": "head"},
            "trust": ["SHA256:abc"],
            "trustedRoots": ["~/code", "/srv"],
            "identity": {"name": "Me", "email": "me@here"},
        }
    )

    assert settings.providers == {
        "p": Provider(base_url="http://p", api_key_env="P_KEY")
    }
    assert settings.models == {
        "gpt-4.1": Model(provider="p", name="openai/gpt-4.1"),
        "m": Model(provider="p", name="n"),
    }
    assert (settings.default_model, settings.model_overrides) == (
        "m",
        {"extract": "gpt-4.1"},
    )
    assert (settings.max_running, settings.tool_results) == (2, "head")
    assert settings.trust == ("SHA256:abc",)
    assert settings.trusted_roots == (Path("/home/me/code"), Path("/srv"))
    assert (settings.identity_name, settings.identity_email) == ("Me", "me@here")


@pytest.mark.parametrize(
    ("overrides", "models", "default", "expected"),
    [
        pytest.param({"extract": "m"}, ("m", "extract"), "d", "m", id="the-override"),
        pytest.param({}, ("m", "extract"), "d", "extract", id="the-model-of-that-name"),
        pytest.param({}, ("m",), "d", "d", id="the-default"),
        pytest.param({}, ("m",), None, None, id="none"),
    ],
)
def test_which_model_reads_the_fields_of_a_reply(
    overrides: dict[str, str],
    models: tuple[str, ...],
    default: str | None,
    expected: str | None,
) -> None:
    content: dict[str, object] = {
        "modelOverrides": overrides,
        "models": {name: {"provider": "p", "name": "n"} for name in models},
    }
    if default is not None:
        content["defaultModel"] = default

    assert read(content).extract_model == expected


def test_a_repository_chooses_agents_over_the_user_key_by_key() -> None:
    settings = read(
        {
            "defaultAgent": "stdio:mine",
            "agentOverrides": {"w": {"a": "stdio:a", "b": "stdio:b"}},
        },
        {"defaultAgent": "theirs", "agentOverrides": {"w": {"b": "other"}}},
    )

    theirs = str(REPOSITORY_SOURCE)
    assert settings.default_agent == AgentChoice(
        spec="theirs", source=theirs, key="defaultAgent", alias_only=True
    )
    assert settings.agent_overrides == {
        ("w", "a"): AgentChoice(
            spec="stdio:a",
            source=str(USER_SOURCE),
            key="agentOverrides.w.a",
            alias_only=False,
        ),
        ("w", "b"): AgentChoice(
            spec="other", source=theirs, key="agentOverrides.w.b", alias_only=True
        ),
    }


@pytest.mark.parametrize(
    "spec",
    [
        "stdio:rm -rf .",
        "scripted:x.yaml",
        "./agent.sh",
        "http://host gateway",
        "two words",
        "",
    ],
)
@pytest.mark.parametrize("place", ["defaultAgent", "agentOverrides"])
def test_a_repository_names_aliases_only(spec: str, place: str) -> None:
    value: object = spec if place == "defaultAgent" else {"w": {"r": spec}}

    with pytest.raises(ConfigError) as caught:
        read(None, {place: value})

    assert caught.value.source == str(REPOSITORY_SOURCE)
    assert str(caught.value.key).startswith(place)


def test_a_repository_lowers_limits_and_never_raises_them() -> None:
    user = {"limits": {"maxSteps": 50, "wallSeconds": 60}}
    repository = {
        "limits": {
            "maxSteps": 80,
            "wallSeconds": 30,
            "idleSeconds": 5,
            "corrections": 9,
            "contextChars": 32_000,
        }
    }

    settings, warnings = read_all(user, repository)

    assert settings.limits == Limits(
        max_steps=50,
        wall_seconds=30,
        idle_seconds=5,
        corrections=2,
        context_chars=32_000,
    )
    assert [word for line in warnings for word in line.split("'")[1::2]] == [
        "limits.maxSteps",
        "limits.corrections",
    ]


def test_a_repository_may_set_a_wall_limit_where_the_user_has_none() -> None:
    assert read(None, {"limits": {"wallSeconds": 30}}).limits.wall_seconds == 30


def test_workflow_paths_of_both_are_searched_the_repositorys_first() -> None:
    settings = read(
        {"workflowPaths": ["flows", "~/more", "/srv/flows"]},
        {"workflowPaths": ["ci/flows", "./x/../y"]},
    )

    assert settings.workflow_paths == (
        ROOT / "ci/flows",
        ROOT / "y",
        HOME / "flows",
        HOME / "more",
        Path("/srv/flows"),
    )


@pytest.mark.parametrize(
    "path", ["..", "../other", "a/../../b", "/etc", "~/x", "/work/project-2"]
)
def test_a_repositorys_paths_stay_inside_it(path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(None, {"workflowPaths": [path]})

    assert caught.value.key == "workflowPaths"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("agents", {"evil": {"command": "sh"}}, id="agents"),
        pytest.param("providers", {"p": {"baseUrl": "http://evil"}}, id="providers"),
        pytest.param("trust", ["me"], id="trust"),
        pytest.param("trustedRoots", ["/"], id="trusted-roots"),
        pytest.param("identity", {"name": "you"}, id="identity"),
        pytest.param("concurrency", {"maxRunning": 99}, id="concurrency"),
        pytest.param("modelOverrides", {"extract": "m"}, id="model-overrides"),
    ],
)
def test_what_only_the_user_may_set_has_no_effect_in_a_repository(
    key: str, value: object
) -> None:
    settings, warnings = read_all(None, {key: value})

    assert settings == read()
    assert len(warnings) == 1
    assert key in warnings[0]


@pytest.mark.parametrize(
    ("mine", "theirs", "kept"),
    [
        ("full", "none", "none"),
        ("head", "none", "none"),
        ("head", "full", "head"),
        ("none", "head", "none"),
    ],
)
def test_a_repository_lowers_what_is_recorded_and_never_raises_it(
    mine: str, theirs: str, kept: str
) -> None:
    settings, warnings = read_all(
        {"record": {"toolResults": mine}}, {"record": {"toolResults": theirs}}
    )

    assert settings.tool_results == kept
    assert len(warnings) == (kept != theirs)


def test_a_repository_can_have_its_code_left_alone() -> None:
    assert read().keeps_code
    assert not read(None, {"record": {"code": "none"}}).keeps_code
    assert not read(
        {"record": {"code": "none"}}, {"record": {"code": "keep"}}
    ).keeps_code


def test_a_repository_names_the_remote_it_shares_with() -> None:
    assert read(None, {"share": "origin"}).share == "origin"


def test_the_user_has_no_remote_to_share_with() -> None:
    settings, warnings = read_all({"share": "origin"}, None)

    assert settings.share is None
    assert ".uwf.yaml" in warnings[0]


@pytest.mark.parametrize("name", ["--upload-pack=x", "", "a b", "ext::sh", 5])
def test_a_remote_is_a_name_and_nothing_else(name: object) -> None:
    with pytest.raises(ConfigError):
        read(None, {"share": name})


@pytest.mark.parametrize(
    ("config", "told"),
    [
        pytest.param(
            {"defualtAgent": "x"},
            "unknown key 'defualtAgent'; did you mean 'defaultAgent'?",
            id="top",
        ),
        pytest.param(
            {"agents": {"coder": {"comand": "x"}}},
            "unknown key 'agents.coder.comand'; did you mean 'agents.coder.command'?",
            id="below-a-name",
        ),
        pytest.param(
            {"limits": {"zzz": 1}}, "unknown key 'limits.zzz'", id="nothing-near"
        ),
        pytest.param(
            {"agnets": {"a": {"b": {"c": 1}}}},
            "unknown key 'agnets'; did you mean 'agents'?",
            id="a-group-once",
        ),
    ],
)
def test_an_unknown_key_is_one_warning_with_a_guess(
    config: dict[str, object], told: str
) -> None:
    settings, warnings = read_all(config, None)

    assert settings == read()
    assert warnings == (f"{USER_SOURCE}: {told}",)


@pytest.mark.parametrize(
    ("config", "key"),
    [
        pytest.param({"defaultAgent": 5}, "defaultAgent", id="number-as-text"),
        pytest.param({"defaultAgent": " "}, "defaultAgent", id="blank"),
        pytest.param({"defaultAgent": ["a"]}, "defaultAgent", id="list-as-text"),
        pytest.param({"agents": "a"}, "agents", id="text-as-group"),
        pytest.param({"agents": {"a": "b"}}, "agents.a", id="text-as-agent"),
        pytest.param({"agents": {"a": {"args": "-p"}}}, "agents.a.args", id="args"),
        pytest.param({"agents": {"a": {"args": [1]}}}, "agents.a.args", id="number"),
        pytest.param({"agents": {"a b": {"kind": "x"}}}, "agents.a b.kind", id="alias"),
        pytest.param(
            {"agents": {"a": {"env": {"A": 1}}}}, "agents.a.env.A", id="env-number"
        ),
        pytest.param({"agents": {"a": {"env": []}}}, "agents.a.env", id="env-list"),
        pytest.param(
            {"agents": {"a": {"maxTurns": 0}}}, "agents.a.maxTurns", id="too-small"
        ),
        pytest.param({"limits": {"maxSteps": True}}, "limits.maxSteps", id="boolean"),
        pytest.param({"limits": {"maxSteps": 1.5}}, "limits.maxSteps", id="fraction"),
        pytest.param({"limits": {"maxSteps": "9"}}, "limits.maxSteps", id="text"),
        pytest.param({"limits": {"idleSeconds": 0}}, "limits.idleSeconds", id="zero"),
        pytest.param(
            {"limits": {"idleSeconds": float("nan")}}, "limits.idleSeconds", id="nan"
        ),
        pytest.param(
            {"limits": {"corrections": -1}}, "limits.corrections", id="negative"
        ),
        pytest.param({"workflowPaths": "a"}, "workflowPaths", id="text-as-list"),
        pytest.param({"workflowPaths": [""]}, "workflowPaths", id="empty-path"),
        pytest.param({"models": {"m": "n"}}, "models.m", id="model-without-provider"),
        pytest.param({"models": {"m": {"name": "n"}}}, "models.m.provider", id="half"),
        pytest.param(
            {"record": {"toolResults": "some"}}, "record.toolResults", id="choice"
        ),
        pytest.param(
            {"agentOverrides": {"w": "a"}}, "agentOverrides.w", id="override-too-short"
        ),
        pytest.param(["a"], None, id="no-mapping"),
    ],
)
def test_a_value_of_the_wrong_type_is_an_error_with_source_and_key(
    config: object, key: str | None
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(config)

    assert (caught.value.source, caught.value.key) == (str(USER_SOURCE), key)


def test_a_secret_in_the_file_is_read_and_reported_but_never_shown() -> None:
    config = {"providers": {"p": {"apiKey": "sk-0123456789abcdef"}}}

    settings, warnings = read_all(config, None)

    assert settings.providers["p"].api_key == "sk-0123456789abcdef"
    assert "uwf config secure" in warnings[0]
    assert "sk-0123456789abcdef" not in repr((settings, warnings))


def test_only_a_providers_key_is_said_to_be_movable() -> None:
    agent = {"kind": "stdio", "command": "x", "env": {"apiKey": "sk-0123456789abcdef"}}

    assert warnings_of({"agents": {"a": agent}}) == ()


def test_every_value_has_its_origin() -> None:
    settings = read(
        {"limits": {"maxSteps": 50, "corrections": 1}, "workflowPaths": ["a"]},
        {"limits": {"maxSteps": 10, "corrections": 2}, "workflowPaths": ["b"]},
    )

    origins = {(entry.key, entry.origin) for entry in settings.entries}
    user, repository = str(USER_SOURCE), str(REPOSITORY_SOURCE)
    assert origins == {
        ("hub.timeoutSeconds", "default"),
        ("concurrency.maxRunning", "default"),
        ("limits.contextChars", "default"),
        ("limits.corrections", user),
        ("limits.depth", "default"),
        ("limits.idleSeconds", "default"),
        ("limits.maxSteps", repository),
        ("limits.snapshotSeconds", "default"),
        ("record.code", "default"),
        ("record.mask", "default"),
        ("record.session", "default"),
        ("record.toolResults", "default"),
        ("workflowPaths", repository),
        ("workflowPaths", user),
    }


CONFIG: dict[str, Any] = {
    "defaultAgent": "coder",
    "agents": {"coder": {"kind": "stdio", "env": {"A": "1"}}},
    "models": {"gpt-4.1": {"provider": "p", "name": "n"}},
}


@pytest.mark.parametrize(
    ("dotted", "value"),
    [
        pytest.param("defaultAgent", "coder", id="top"),
        pytest.param("agents.coder.env.A", "1", id="deep"),
        pytest.param("agents.coder", CONFIG["agents"]["coder"], id="group"),
        pytest.param("models.gpt-4.1.name", "n", id="name-with-a-dot"),
    ],
)
def test_get_gives_a_value_or_a_group(dotted: str, value: object) -> None:
    assert get_key(CONFIG, dotted) == value


@pytest.mark.parametrize("dotted", ["agents.tester", "defaultAgent.x", "x", "", "a."])
def test_get_of_what_is_not_set_is_an_error(dotted: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        get_key(CONFIG, dotted)

    assert caught.value.name == dotted


@pytest.mark.parametrize(
    ("dotted", "text", "value"),
    [
        pytest.param("defaultAgent", "tester", "tester", id="text"),
        pytest.param("agents.new.kind", "stdio", "stdio", id="new-group"),
        pytest.param("agents.coder.args", '["-p", "x y"]', ["-p", "x y"], id="json"),
        pytest.param("agents.coder.args", "-p", ["-p"], id="one-word"),
        pytest.param("agents.coder.tools", "none", "none", id="no-tools"),
        pytest.param("agents.coder.env.B_C", "", "", id="empty-variable"),
        pytest.param("concurrency.maxRunning", "8", 8, id="integer"),
        pytest.param("limits.idleSeconds", "1.5", 1.5, id="number"),
        pytest.param("models.gpt-4.1.name", "other", "other", id="name-with-a-dot"),
        pytest.param("models.o3.mini", "p/o3", "p/o3", id="short-model"),
        pytest.param("agentOverrides.w.r", "coder", "coder", id="override"),
    ],
)
def test_set_gives_a_copy_that_holds_the_value(
    dotted: str, text: str, value: object
) -> None:
    before = repr(CONFIG)

    after = set_key(CONFIG, dotted, text)

    assert get_key(after, dotted) == value
    assert repr(CONFIG) == before
    assert after["agents"] != {}


@pytest.mark.parametrize(
    ("dotted", "text"),
    [
        pytest.param("defualtAgent", "x", id="unknown"),
        pytest.param("agents.coder", "x", id="too-short"),
        pytest.param("defaultAgent.x", "y", id="too-long"),
        pytest.param("agents.coder.comand", "x", id="unknown-field"),
        pytest.param("agents.a b.kind", "x", id="bad-alias"),
        pytest.param("concurrency.maxRunning", "many", id="no-number"),
        pytest.param("concurrency.maxRunning", "0", id="too-small"),
        pytest.param("limits.idleSeconds", "inf", id="infinite"),
        pytest.param("workflowPaths", "[1]", id="no-texts"),
        pytest.param("workflowPaths", "[", id="no-json"),
        pytest.param("share", "origin", id="repositorys"),
    ],
)
def test_set_refuses_what_the_table_does_not_have(dotted: str, text: str) -> None:
    with pytest.raises(ConfigError):
        set_key(CONFIG, dotted, text)


def test_set_refuses_to_go_below_what_is_no_mapping() -> None:
    with pytest.raises(ConfigError):
        set_key({"limits": 5}, "limits.maxSteps", "5")


def test_set_of_a_wrong_field_lists_the_right_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        set_key({}, "limits.steps", "5")

    assert caught.value.hint is not None
    assert "limits.maxSteps" in caught.value.hint


def test_every_key_can_be_set_and_read_back() -> None:
    samples: dict[str, str] = {
        "integer": "5",
        "number": "2.5",
        "words": '["a"]',
        "tools": "none",
        "model": "p/m",
        "remote": "origin",
        "text": "x",
    }
    user: dict[str, object] = {}
    for key in KEYS:
        dotted = ".".join("name" if part == "*" else part for part in key.path)
        text = key.choices[0] if key.choices else samples[key.type]
        if "user" in key.layers and key.path != ("models", "*"):
            user = set_key(user, dotted, text)

    settings, warnings = read_all(user, None)

    assert len(warnings) == 1
    assert len(settings.entries) == len(KEYS) - 2


LONG = "abcd0123456789wxyz--ABCD"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(
            {"providers": {"p": {"apiKey": LONG, "apiKeyEnv": "P_KEY"}}},
            {"providers": {"p": {"apiKey": "abcd…ABCD", "apiKeyEnv": "P_KEY"}}},
            id="api-key",
        ),
        pytest.param(
            {"agents": {"a": {"env": {"MY_TOKEN": "short", "MODE": "x"}}}},
            {"agents": {"a": {"env": {"MY_TOKEN": "****", "MODE": "x"}}}},
            id="environment",
        ),
        pytest.param(
            {"agents": {"a": {"args": ["--api-key", LONG, "--token=12", "-v"]}}},
            {
                "agents": {
                    "a": {"args": ["--api-key", "abcd…ABCD", "--token=****", "-v"]}
                }
            },
            id="arguments",
        ),
        pytest.param(
            {"providers": {"p": {"baseUrl": "https://me:pw@host/v1"}}},
            {"providers": {"p": {"baseUrl": "https://me:****@host/v1"}}},
            id="url",
        ),
        pytest.param(
            {"models": {"monkey": "p/m"}, "limits": {"maxSteps": 3}, "x": None},
            {"models": {"monkey": "p/m"}, "limits": {"maxSteps": 3}, "x": None},
            id="nothing-secret",
        ),
        pytest.param("https://[broken", "https://[broken", id="no-url"),
    ],
)
def test_secrets_are_masked_where_values_are_shown(
    value: object, shown: object
) -> None:
    assert masked(value) == shown


def test_a_single_value_is_masked_by_its_path() -> None:
    assert masked("short", path=("providers", "p", "apiKey")) == "****"


def test_a_name_that_is_no_text_is_read_as_one() -> None:
    assert set(read({"agents": {1: {"kind": "stdio"}}}).agents) == {"1"}


def test_a_list_that_nests_without_end_is_no_list() -> None:
    with pytest.raises(ConfigError):
        set_key({}, "trust", "[" * 100_000)
