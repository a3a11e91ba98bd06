"""The builtin agent's loop, against the fake API."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.agents.children import make_request
from tests.agents.fake_api import Call, Drip, FakeApi, Move, Request, Say, Script, modes
from tests.builders import files_of
from tests.steady import steadily
from uwfgit.agents.base import AgentReply, AgentRequest, Turn
from uwfgit.agents.builtin.agent import BuiltinAgent
from uwfgit.agents.builtin.answer import make_answer_tool
from uwfgit.agents.builtin.children import Shell
from uwfgit.agents.builtin.files import Workplace
from uwfgit.agents.builtin.make import make_builtin
from uwfgit.agents.builtin.tools import (
    DEFAULT_TOOLS,
    TOOLS,
    Bench,
    parse_arguments,
    use_tool,
)
from uwfgit.agents.http.chat import ChatModel, Patience
from uwfgit.agents.http.client import Endpoint
from uwfgit.config import AgentSettings, Model, Provider, Settings
from uwfgit.errors import ConfigError

SCHEMA: Mapping[str, Any] = {
    "oneOf": [
        {
            "properties": {
                "$status": {"const": "done"},
                "summary": {"type": "string"},
            },
            "required": ["$status", "summary"],
        },
        {"properties": {"$status": {"const": "failed"}}, "required": ["$status"]},
    ]
}
ALL_TOOLS = (*DEFAULT_TOOLS, "run_command")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def _agent(api: FakeApi, **changes: Any) -> BuiltinAgent:  # noqa: ANN401 - any field
    model = ChatModel(endpoint=Endpoint(base_url=f"{api.url}/v1"), name="m")
    patience = Patience(sleep=lambda _: None)
    agent = BuiltinAgent(label="local", model=model, patience=patience)
    return dataclasses.replace(agent, **changes)


def _request(work: Path, **changes: Any) -> AgentRequest:  # noqa: ANN401 - any field
    environment = {
        "PATH": os.environ["PATH"],
        "UWF_HOME": str(work.parent / "uwf-home"),
    }
    request = make_request(cwd=work)
    facts = {"environment": environment, "schema": SCHEMA, "prompt": "Do it."}
    return replace(request, **{**facts, **changes})


def _run(
    script: Script,
    work: Path,
    **changes: Any,  # noqa: ANN401 - any field
) -> tuple[AgentReply, list[Request]]:
    with FakeApi(script) as api:
        return _agent(api, **changes).run(_request(work)), api.requests


def _calls(*calls: Call) -> Script:
    """Play calls one after the other, then answer."""
    moves: list[Move] = [Say(calls=(call,)) for call in calls]
    return modes.in_turn([*moves, Say(text=modes.GOOD)])


def _results(script: Script, work: Path, **changes: Any) -> list[str]:  # noqa: ANN401 - any field
    """Give what the tools told the model."""
    _, requests = _run(script, work, **changes)
    return list(requests[-1].asked.results)


def test_a_small_task_is_resolved_through_the_tools(work: Path) -> None:
    (work / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (work / "test_calc.py").write_text(
        "from calc import add\nassert add(2, 3) == 5, add(2, 3)\nprint('passed')\n"
    )
    test = Call(
        name="run_command", arguments={"command": f"{sys.executable} -B test_calc.py"}
    )
    told: list[Turn] = []
    script = modes.in_turn(
        [
            Say(text="First the test.\n", calls=(test,)),
            Say(calls=(Call(name="read_file", arguments={"path": "calc.py"}),)),
            Say(
                calls=(
                    Call(
                        name="patch_file",
                        arguments={"path": "calc.py", "old": "a - b", "new": "a + b"},
                    ),
                    test,
                )
            ),
            Say(
                calls=(
                    Call(
                        name="answer",
                        arguments={
                            "status": "done",
                            "summary": "a sum: not a difference",
                            "report": "Fixed `add`.",
                        },
                    ),
                )
            ),
        ]
    )

    with FakeApi(script) as api:
        request = _request(work, on_turn=told.append)
        reply = _agent(api, tools=ALL_TOOLS).run(request)

    assert reply.failure is None
    assert reply.text == (
        '---\n$status: done\nsummary: "a sum: not a difference"\n---\n\nFixed `add`.'
    )
    assert "a + b" in (work / "calc.py").read_text()
    results = api.requests[-1].asked.results
    assert "AssertionError: -1" in results[0]
    assert "return a - b" in results[1]
    assert results[2] == "replaced it in calc.py"
    assert results[3].startswith("exit code: 0")
    assert reply.usage is not None
    assert (reply.usage.turns, reply.usage.input_tokens) == (4, 400)
    assert [len(turn.tool_calls or ()) for turn in reply.turns] == [1, 1, 2, 1]
    assert told[0].content == "First the test.\n"
    assert [call.name for turn in told for call in turn.tool_calls or ()] == [
        "run_command",
        "read_file",
        "patch_file",
        "run_command",
        "answer",
    ]


@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "/etc/hostname", "link/secret.txt", "a/../../secret.txt", "file"],
)
@pytest.mark.parametrize("tool", ["read_file", "write_file", "patch_file"])
def test_what_is_outside_is_refused_and_the_model_told(
    work: Path, path: str, tool: str
) -> None:
    secret = work.parent / "secret.txt"
    secret.write_text("hidden")
    (work / "link").symlink_to(work.parent)
    (work / "file").symlink_to(secret)
    arguments = {
        "read_file": {"path": path},
        "write_file": {"path": path, "content": "x"},
        "patch_file": {"path": path, "old": "hidden", "new": "x"},
    }[tool]

    (result,) = _results(_calls(Call(name=tool, arguments=arguments)), work)

    assert result.startswith(f"error: '{path}' is outside")
    assert secret.read_text() == "hidden"


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "sub/.GIT/config"])
def test_what_git_would_run_is_not_written(work: Path, path: str) -> None:
    call = Call(name="write_file", arguments={"path": path, "content": "x"})

    (result,) = _results(_calls(call), work)

    assert "belongs to git" in result
    assert not (work / path).exists()


def test_a_configured_folder_may_be_used_too(work: Path) -> None:
    other = work.parent / "other"
    other.mkdir()
    path = str(other / "note.txt")
    call = Call(name="write_file", arguments={"path": path, "content": "hi"})

    _results(_calls(call), work, folders=(other,))

    assert Path(path).read_text() == "hi"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (Call(name="run_command", arguments={"command": "id"}), "there is no tool"),
        (Call(name="read_file", arguments={}), "path: is required"),
        (Call(name="read_file", arguments={"path": 3}), "path: "),
        (Call(name="read_file", arguments={"path": "gone.txt"}), "cannot read"),
        (Call(name="read_file", arguments={"path": "pipe"}), "is not a file"),
        (Call(name="read_file", arguments={"path": "big"}), "too large"),
        (
            Call(
                name="patch_file", arguments={"path": "twice", "old": "a", "new": "b"}
            ),
            "stands 2 times",
        ),
    ],
)
def test_a_wrong_call_is_told_and_the_work_goes_on(
    work: Path, call: Call, told: str
) -> None:
    os.mkfifo(work / "pipe")
    (work / "big").write_bytes(b"0" * 600_000)
    (work / "twice").write_text("a b a")

    (result,) = _results(_calls(call), work)

    assert result.startswith("error: ")
    assert told in result


@pytest.mark.parametrize(
    "call",
    [
        Call(name="write_file", arguments={"path": "mine", "content": "x" * 9000}),
        Call(
            name="patch_file",
            arguments={"path": "mine", "old": "keep", "new": "x" * 9000},
        ),
    ],
    ids=lambda call: call.name,
)
def test_a_file_that_there_is_no_room_for_stays_as_it_was(
    work: Path, call: Call
) -> None:
    (work / "mine").write_text("keep this\n")

    with files_of(4000):
        (result,) = _results(_calls(call), work)

    assert result == "error: cannot write 'mine': File too large"
    assert (work / "mine").read_text() == "keep this\n"


def test_a_shorter_text_takes_the_place_of_a_longer_one(work: Path) -> None:
    (work / "mine").write_text("a long text\n")

    _results(
        _calls(Call(name="write_file", arguments={"path": "mine", "content": "ab"})),
        work,
    )

    assert (work / "mine").read_text() == "ab"


def test_a_folder_is_listed_and_lines_are_chosen(work: Path) -> None:
    (work / "src").mkdir()
    (work / "a.txt").write_text("1\n2\n3\n4\n")
    lines = {"path": "a.txt", "start": 2, "count": 2}

    results = _results(
        _calls(
            Call(name="read_file", arguments={"path": "."}),
            Call(name="read_file", arguments=lines),
            Call(name="write_file", arguments={"path": "new/b.txt", "content": "é"}),
        ),
        work,
    )

    assert results == ["a.txt\nsrc/", "2\n3\n", "wrote 2 bytes to new/b.txt"]


def test_a_command_does_not_see_the_key_and_ends_at_its_limit(work: Path) -> None:
    see = Call(name="run_command", arguments={"command": "echo key=$MY_KEY"})
    slow = Call(name="run_command", arguments={"command": "sleep 30", "seconds": 1})

    with FakeApi(_calls(see, slow)) as api:
        agent = _agent(api, tools=("run_command",), hidden=("MY_KEY",))
        request = _request(work)
        environment = {**request.environment, "MY_KEY": "s3cr3t"}
        agent.run(replace(request, environment=environment))

    first, second = api.requests[-1].asked.results
    assert "key=\n" in first
    assert second.startswith("error: 'sh' ran longer than 1 s")


def test_the_turn_limit_has_its_own_error_and_a_warning_before(work: Path) -> None:
    script = modes.tool_loop(Call(name="read_file", arguments={"path": "."}))

    reply, requests = _run(script, work, max_turns=5)

    assert len(requests) == 5
    assert reply.failure is not None
    assert reply.failure.message == (
        "no answer within 5 turns; allow more with agents.local.maxTurns"
    )
    assert [text for _, text in requests[-1].asked.said if "turns left" in text] == [
        "You have 3 turns left. Come to an end now and answer."
    ]


def test_prose_without_frontmatter_is_nudged_then_given_as_it_is(work: Path) -> None:
    reply, requests = _run(modes.no_frontmatter(), work)

    assert len(requests) == 4
    assert reply.text == modes.PROSE
    assert reply.failure is None


def test_a_nudge_brings_the_answer(work: Path) -> None:
    reply, requests = _run(modes.after_corrections(1), work)

    assert len(requests) == 2
    assert reply.text == modes.GOOD


def test_a_plain_model_is_asked_once_without_tools(work: Path) -> None:
    reply, requests = _run(modes.no_frontmatter(), work, tools=())

    assert len(requests) == 1
    assert "tools" not in requests[0].body
    assert requests[0].asked.said == (("user", "Do it."),)
    assert reply.text == modes.PROSE


def test_a_correction_goes_on_in_the_session_with_the_answer_tool_alone(
    work: Path,
) -> None:
    script = modes.tool_call(Call(name="read_file", arguments={"path": "."}))
    with FakeApi(script) as api:
        first = _agent(api).run(_request(work))
        api.play(modes.answer())
        request = _request(work, correction=1, session_id=first.session_id)
        second = _agent(api).run(replace(request, prompt="Again, please."))

    assert second.session_id == first.session_id
    assert [text for role, text in api.requests[-1].asked.said if role == "user"] == [
        "Do it.",
        "Again, please.",
    ]
    assert api.requests[-1].asked.tools == ("answer",)
    assert first.usage is not None
    assert second.usage is not None
    assert (first.usage.input_tokens, second.usage.input_tokens) == (200, 100)


def test_a_session_file_is_private_and_an_open_call_is_closed(work: Path) -> None:
    with FakeApi(modes.answer()) as api:
        first = _agent(api).run(_request(work))
        (file,) = (work.parent / "uwf-home" / "sessions" / "builtin").iterdir()
        call = {
            "role": "assistant",
            "tool_calls": [{"id": "c9", "function": {"name": "x", "arguments": "{}"}}],
        }
        with file.open("a") as lines:
            lines.write(json.dumps(call) + "\n")
        _agent(api).run(_request(work, session_id=first.session_id))

    assert file.stat().st_mode & 0o777 == 0o600
    messages = api.requests[-1].body["messages"]
    assert messages[-2]["tool_call_id"] == "c9"
    assert messages[-2]["content"].startswith("error: interrupted")


def test_a_session_that_is_gone_is_refused_and_nothing_asked(work: Path) -> None:
    with FakeApi(modes.answer()) as api:
        for name in ("0" * 32, "../x", ""):
            reply = _agent(api).run(_request(work, session_id=name))
            assert reply.is_session_refused

    assert api.requests == []


def test_a_limit_says_until_when(work: Path) -> None:
    reply, _ = _run(modes.fail(429, retry_after="120"), work)

    assert reply.failure is not None
    assert reply.failure.phase == "limit"
    assert reply.failure.retry_at_ms == 1_700_000_000_000 + 120_000


def test_silence_names_its_setting_and_keeps_the_session(work: Path) -> None:
    with FakeApi(modes.hang()) as api:
        reply = _agent(api).run(_request(work, idle_seconds=0.2))
        own = _agent(api, timeout_seconds=0.2).run(_request(work))

    assert reply.failure is not None
    assert reply.failure.message.endswith("said nothing for 0.2 s (limits.idleSeconds)")
    assert reply.session_id is not None
    assert own.failure is not None
    assert own.failure.message.endswith("(agents.local.timeoutSeconds)")


@pytest.mark.slow
def test_what_came_before_a_failure_is_kept(work: Path) -> None:
    say = Say(text="half of the answer, and then nothing more", piece_chars=4)
    script = modes.always(Drip(say=say, pause_seconds=0.3))

    def run() -> AgentReply:
        with FakeApi(script) as api:
            return _agent(api, timeout_seconds=2).run(_request(work))

    reply = steadily(run, within=0.8)
    assert reply.failure is not None
    assert reply.text.startswith("half")
    assert reply.turns[-1].content == reply.text


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("400", "answered 400: prompt is too long"),
        ("401", "answered 401: invalid x-api-key; check the key"),
        ("500", "answered 500: internal error"),
        ("529", "answered 529: overloaded"),
        ("429", "answered 429: rate limited"),
        ("bad-json", "not JSON"),
        ("cut-stream", "ended the connection early"),
    ],
)
def test_what_the_api_does_wrong_is_one_line(work: Path, mode: str, told: str) -> None:
    reply, _ = _run(modes.MODES[mode](), work)

    assert reply.failure is not None
    assert told in reply.failure.message
    assert "\n" not in reply.failure.message


def test_a_huge_answer_is_cut_and_warned_about(work: Path) -> None:
    reply, _ = _run(modes.huge_answer(20 * 1024 * 1024), work, tools=())

    assert reply.failure is None
    assert len(reply.text) <= 8 * 1024 * 1024
    assert reply.warnings == ("an answer of the model was cut at its length limit",)
    assert reply.turns[0].content.endswith("than what is taken of one]")


def test_an_interruption_while_waiting_is_a_failure_that_keeps_all(work: Path) -> None:
    def interrupt(_: Turn) -> None:
        raise KeyboardInterrupt

    call = Call(name="read_file", arguments={"path": "."})
    with FakeApi(modes.always(Say(text="Working.\n", calls=(call,)))) as api:
        reply = _agent(api).run(_request(work, on_turn=interrupt))

    assert reply.failure is not None
    assert reply.failure.phase == "interrupted"
    assert reply.text == "Working.\n"


@pytest.mark.parametrize(
    ("schema", "arguments", "text"),
    [
        (
            SCHEMA,
            {"status": "$SUSPEND", "reason": "a key: which?", "summary": "x"},
            '---\n$status: $SUSPEND\nreason: "a key: which?"\n---\n\n',
        ),
        (
            {"properties": {"$status": {"const": "ok"}, "status": {}, "report": {}}},
            {"status_": "ok", "status": 1, "report": 2, "report_": "Body."},
            "---\n$status: ok\nstatus: 1\nreport: 2\n---\n\nBody.",
        ),
        ({}, {"result": 3, "report": "B"}, "---\nresult: 3\n---\n\nB"),
    ],
)
def test_the_answers_arguments_become_a_reply(
    schema: Mapping[str, Any], arguments: Mapping[str, Any], text: str
) -> None:
    tool = make_answer_tool(schema)

    assert tool.write(arguments) == text
    assert all(
        name.replace("_", "a").isalnum() for name in tool.parameters["properties"]
    )


def test_the_answer_tool_offers_every_status() -> None:
    parameters = make_answer_tool(SCHEMA).parameters

    assert parameters["properties"]["status"]["enum"] == ["done", "failed", "$SUSPEND"]
    assert parameters["required"] == ["status"]


def _make(
    agent: AgentSettings,
    variables: Mapping[str, str],
    **settings: Any,  # noqa: ANN401 - any field
) -> BuiltinAgent:
    return make_builtin(agent, settings=Settings(**settings), variables=variables)


def test_a_preset_and_its_key_are_enough() -> None:
    agent = _make(
        AgentSettings(name="a", model="openai/gpt-x"), {"OPENAI_API_KEY": "sk-1"}
    )

    assert agent.model.endpoint.base_url == "https://api.openai.com/v1"
    assert (agent.model.endpoint.key, agent.model.name) == ("sk-1", "gpt-x")
    assert agent.hidden == ("OPENAI_API_KEY",)
    assert "sk-1" not in repr(agent)


def test_a_local_model_needs_no_key() -> None:
    settings = {"models": {"small": Model(provider="ollama", name="qwen3:8b")}}

    agent = _make(AgentSettings(name="a"), {}, default_model="small", **settings)

    assert agent.model.endpoint == Endpoint(base_url="http://localhost:11434/v1")
    assert agent.model.name == "qwen3:8b"


@pytest.mark.parametrize(
    ("agent", "providers", "told"),
    [
        ({}, {}, "no model is configured"),
        ({"model": "gpt"}, {}, "unknown model 'gpt'"),
        ({"model": "opnai/gpt"}, {}, "did you mean 'openai'?"),
        ({"model": "openai/gpt"}, {}, "OPENAI_API_KEY is not set"),
        ({"model": "own/m"}, {"own": Provider()}, "provider 'own' has no address"),
        ({"url": "http://localhost/v1"}, {}, "no model is configured"),
        (
            {"model": "ollama/m", "tools": ("read_file", "bash")},
            {},
            "unknown tool 'bash'",
        ),
    ],
)
def test_each_missing_setting_is_named_with_its_fix(
    agent: Mapping[str, Any], providers: Mapping[str, Provider], told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        _make(AgentSettings(name="a", **agent), {}, providers=providers)

    assert told in caught.value.message
    assert caught.value.hint is not None


def test_the_default_tools_run_no_command() -> None:
    assert set(TOOLS) - set(DEFAULT_TOOLS) == {"run_command"}


def test_arguments_that_no_record_could_hold_are_made_harmless() -> None:
    found = parse_arguments(r'{"a": 1e999, "b": ["\ud800"], "\udfff": 1}')

    assert found == {"a": "inf", "b": ["\ufffd"], "\ufffd": 1}


def test_lines_may_be_counted_by_any_whole_number_of_json(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\n3\n")
    shell = Shell(cwd=tmp_path, environment={})
    bench = Bench(place=Workplace(cwd=tmp_path), shell=shell)

    def read(arguments: str) -> object:
        return use_tool(bench, DEFAULT_TOOLS, "read_file", arguments)

    assert read('{"path": "a", "start": 2.0, "count": 1.0}') == "2\n"
    assert read('{"path": "a", "count": -1}') == ""
