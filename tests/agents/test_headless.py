"""What a headless CLI tells, as an outcome: programs that speak as the real ones do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.agents.children import ENVIRONMENT, make_request
from uwfgit.agents.base import AgentReply, Turn
from uwfgit.agents.children import lines
from uwfgit.agents.clis.headless import HeadlessAgent
from uwfgit.agents.clis.kinds import CLI_KINDS, load_cli
from uwfgit.agents.clis.transcript import RESULT_CHARS
from uwfgit.constants import MAX_TIME

SESSION: Final = "3b241101-e2bb-4255-8caf-4136c566a962"
INIT: Final = {"type": "system", "subtype": "init", "session_id": SESSION, "model": "m"}


def says(text: str, **more: object) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    message = {"id": "m1", "model": "m", "content": content}
    return {"type": "assistant", "message": message, **more}


def uses(call: str, name: str, **arguments: object) -> dict[str, Any]:
    block = {"type": "tool_use", "id": call, "name": name, "input": arguments}
    return {"type": "assistant", "message": {"id": "m1", "content": [block]}}


def gives(call: str, text: str) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call, "content": text}
    return {"type": "user", "message": {"content": [block]}}


def ends(**more: object) -> dict[str, Any]:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 3, "output_tokens": 2}
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "Done.",
        "num_turns": 1,
        "usage": usage,
        **more,
    }


def make_program(folder: Path, code: str) -> str:
    path = folder / "program"
    path.write_text(f"#!{sys.executable}\nimport json, sys, time\n{code}\n")
    path.chmod(0o755)
    return str(path)


def run(
    folder: Path,
    *events: object,
    kind: str = "claude-code",
    after: str = "",
    session: str | None = None,
    told: list[Turn] | None = None,
    idle: float = 20,
) -> AgentReply:
    """Run a program that prints these events, then does what ``after`` says."""
    text = "\n".join(e if isinstance(e, str) else json.dumps(e) for e in events)
    (folder / "events").write_text(f"{text}\n" if text else "")
    code = f"sys.stdout.write(open({str(folder / 'events')!r}).read())\n"
    code += f"sys.stdout.flush()\n{after}"
    return ask(
        make_program(folder, code),
        folder,
        kind=kind,
        session=session,
        told=told,
        idle=idle,
    )


def ask(
    command: str,
    folder: Path,
    *,
    kind: str = "claude-code",
    session: str | None = None,
    told: list[Turn] | None = None,
    idle: float = 20,
    environment: dict[str, str] | None = None,
) -> AgentReply:
    agent = HeadlessAgent(cli=load_cli(kind), label="a", command=command)
    request = make_request(
        cwd=folder,
        session=session,
        idle=idle,
        environment=environment or ENVIRONMENT,
        on_turn=told.append if told is not None else None,
    )
    return agent.run(request)


def complaint(reply: AgentReply) -> str:
    assert reply.failure is not None
    return reply.failure.message


def test_a_run_is_read_from_its_events(tmp_path: Path) -> None:
    told: list[Turn] = []

    reply = run(
        tmp_path,
        INIT,
        says("Let me look."),
        uses("t1", "Bash", command="ls"),
        gives("t1", "a b"),
        ends(),
        told=told,
    )

    assert (reply.failure, reply.text, reply.session_id) == (None, "Done.", SESSION)
    (turn,) = reply.turns
    assert turn.content == "Let me look."
    assert turn.tool_calls is not None
    assert (turn.tool_calls[0].name, turn.tool_calls[0].result) == ("Bash", "a b")
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.cache_read_tokens) == (8, 3)
    assert [each.role for each in told] == ["assistant", "assistant", "tool"]
    assert reply.warnings == ()


def test_unknown_events_are_warned_of_once_and_noise_is_no_error(
    tmp_path: Path,
) -> None:
    reply = run(tmp_path, "hello", INIT, {"type": "novel"}, {"type": "novel"}, ends())

    assert reply.failure is None
    assert reply.warnings == (
        "the agent told of 'novel', which this uwf does not know (2 times)",
    )


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("[" * 100_000, id="deep-list"),
        pytest.param('{"type": "assistant", "message": 3}', id="message-number"),
        pytest.param('{"type": ["x"]}', id="type-list"),
        pytest.param(
            '{"type": "assistant", "message": {"content": [1, null]}}', id="blocks"
        ),
        pytest.param('{"type": "result', id="half"),
        pytest.param('{"type": "system", "subtype": NaN}', id="nan"),
    ],
)
def test_lines_of_any_shape_are_met_with_care(line: str, tmp_path: Path) -> None:
    reply = run(tmp_path, INIT, line, says("Hm."), ends())

    assert (reply.failure, reply.text) == (None, "Done.")


def test_what_no_node_could_hold_is_made_harmless(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    event = uses("t1", "Bash", big=10**40, odd="\ud800", deep=deep)

    reply = run(tmp_path, INIT, json.dumps(event), ends())

    assert reply.turns[0].tool_calls is not None
    arguments = reply.turns[0].tool_calls[0].arguments
    assert (arguments["big"], arguments["odd"]) == (str(10**40), "\ufffd")
    assert "deeper than is kept" in json.dumps(arguments)


def test_a_long_tool_result_loses_its_middle_and_says_so(tmp_path: Path) -> None:
    long = "a" * RESULT_CHARS + "z" * 100

    reply = run(tmp_path, INIT, uses("t1", "Bash"), gives("t1", long), ends())

    assert reply.turns[0].tool_calls is not None
    kept = reply.turns[0].tool_calls[0].result
    assert kept is not None
    assert len(kept) < RESULT_CHARS + 100
    assert kept.endswith("z" * 100)
    assert "[100 characters left out]" in kept
    assert reply.warnings == ("100 characters of its turns were not kept",)


def test_an_event_beyond_all_bounds_is_a_turn_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 5_000)
    monkeypatch.setattr("uwfgit.agents.clis.headless.MAX_LINE_BYTES", 5_000)

    reply = run(tmp_path, INIT, says("x" * 20_000), ends(result=""))

    assert "not read]" in reply.turns[0].content
    assert any("very long line" in warning for warning in reply.warnings)


def test_fifty_megabytes_of_talk_are_bounded(tmp_path: Path) -> None:
    flood = json.dumps(says("x" * 1_000_000, uuid="u")).replace('"m1"', '"m%d"')
    after = f"for n in range(50): print({flood!r} % n)\nprint({json.dumps(ends())!r})"

    reply = run(tmp_path, INIT, after=after)

    assert (reply.failure, reply.text) == (None, "Done.")
    assert sum(len(turn.content) for turn in reply.turns) < 4_100_000
    assert any("were not kept" in warning for warning in reply.warnings)


def test_an_end_without_its_last_event_is_a_failure(tmp_path: Path) -> None:
    reply = run(tmp_path, INIT, says("Half."), after="sys.stderr.write('boom')")

    assert complaint(reply) == "'program' ended without its last event ('result'): boom"
    assert reply.text == "Half."


def test_an_end_that_says_error_is_a_failure_whatever_the_exit_code(
    tmp_path: Path,
) -> None:
    reply = run(tmp_path, INIT, ends(is_error=True, result="It broke."))

    assert (complaint(reply), reply.exit_code) == ("It broke.", 0)


def test_an_exit_code_outranks_a_good_end(tmp_path: Path) -> None:
    reply = run(tmp_path, INIT, says("x"), ends(), after="sys.exit(3)")

    assert "exited with code 3" in complaint(reply)


def test_silence_is_a_failure(tmp_path: Path) -> None:
    assert complaint(run(tmp_path, INIT, ends(result=""))) == "the agent said nothing"


def test_a_limit_tells_when_it_ends(tmp_path: Path) -> None:
    info = {"status": "rejected", "resetsAt": 1_900_000_000, "rateLimitType": "5h"}
    limit = {"type": "rate_limit_event", "rate_limit_info": info}

    reply = run(
        tmp_path,
        INIT,
        limit,
        ends(is_error=True, api_error_status=429, result="limit reached"),
        after="sys.exit(1)",
    )

    assert reply.failure is not None
    assert reply.failure.phase == "limit"
    assert reply.failure.retry_at_ms == 1_900_000_000_000


def test_codex_tells_its_limit_in_words(tmp_path: Path) -> None:
    message = "You've hit your usage limit. Try again in 2 hours 5 minutes."
    failed = {"type": "turn.failed", "error": {"message": message}}

    reply = run(tmp_path, failed, kind="codex", after="sys.exit(1)")

    assert reply.failure is not None
    assert reply.failure.phase == "limit"
    assert reply.failure.retry_at_ms == 1_700_000_000_000 + 7_500_000


def test_one_that_has_no_login_is_told_how_to_get_one(tmp_path: Path) -> None:
    synthetic = says("Not logged in · Please run /login", error="authentication_failed")
    synthetic["message"]["model"] = "<synthetic>"

    reply = run(
        tmp_path,
        INIT,
        synthetic,
        ends(is_error=True, result="Not logged in · Please run /login"),
        after="sys.exit(1)",
        session=SESSION,
    )

    assert complaint(reply).endswith("or set ANTHROPIC_API_KEY")
    assert not reply.is_session_refused
    assert reply.text == ""


@pytest.mark.parametrize("days", ["999999999", "9" * 400])
def test_a_limit_without_end_ends_with_the_calendar(tmp_path: Path, days: str) -> None:
    message = f"You've hit your usage limit. Try again in {days} days."
    failed = {"type": "turn.failed", "error": {"message": message}}
    info = {"status": "rejected", "resetsAt": 2**53 - 1, "rateLimitType": "5h"}
    limit = {"type": "rate_limit_event", "rate_limit_info": info}
    end = ends(is_error=True, api_error_status=429, result="limit reached")

    codex = run(tmp_path, failed, kind="codex", after="sys.exit(1)")
    claude = run(tmp_path, INIT, limit, end, after="sys.exit(1)")

    assert codex.failure is not None
    assert codex.failure.phase == "limit"
    assert codex.failure.retry_at_ms in {None, MAX_TIME * 1000}
    assert claude.failure is not None
    assert claude.failure.retry_at_ms == MAX_TIME * 1000


@pytest.mark.parametrize(
    ("config", "env", "said", "is_missed"),
    [
        pytest.param(None, {}, "Not logged in", True, id="none"),
        pytest.param('model = "x"', {}, "Not logged in", True, id="own-model"),
        pytest.param(None, {"CODEX_API_KEY": "x"}, "Not logged in", False, id="key"),
        pytest.param(
            'model_provider = "x"', {}, "Not logged in", False, id="other-provider"
        ),
        pytest.param(None, {}, "Error loading configuration", False, id="broken"),
    ],
)
def test_codex_is_missed_a_login_only_where_nothing_takes_its_place(
    tmp_path: Path,
    config: str | None,
    env: dict[str, str],
    said: str,
    is_missed: bool,  # noqa: FBT001 - one of a table
) -> None:
    if config is not None:
        (tmp_path / "config.toml").write_text(config)
    code = "if '--help' in sys.argv: sys.exit(print('--json'))\n"
    lines = f"WARNING: x\n{said}"
    command = make_program(tmp_path, f"{code}sys.exit({lines!r})")
    agent = HeadlessAgent(cli=load_cli("codex"), label="a", command=command)
    around = {**ENVIRONMENT, "CODEX_HOME": str(tmp_path), **env}

    told = agent.check_up(around, cwd=tmp_path)

    missed = "'program' has no login; run `codex login`, or set CODEX_API_KEY"
    assert told == (missed if is_missed else None)


def test_one_that_is_not_there_is_told_how_to_install_it(tmp_path: Path) -> None:
    reply = ask("claude", tmp_path, environment={"PATH": str(tmp_path)})

    assert complaint(reply) == (
        "'claude' is not on PATH; install it with "
        "`npm install -g @anthropic-ai/claude-code`, or give its path in "
        "agents.a.command"
    )


def test_one_that_is_not_executable_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "claude").write_text("x")

    assert "chmod +x" in complaint(ask("./claude", tmp_path))


def test_one_that_is_too_old_for_an_option_is_told_how_to_update(
    tmp_path: Path,
) -> None:
    after = "sys.stderr.write(\"error: unknown option '--x'\"); sys.exit(1)"

    reply = run(tmp_path, after=after)

    assert complaint(reply).endswith(
        "fix agents.a.args, or bring it up to date with `claude update`"
    )


def test_one_that_only_prints_how_it_is_called_refused_its_arguments(
    tmp_path: Path,
) -> None:
    after = "sys.stderr.write('opencode run\\n\\nOptions:\\n  --x'); sys.exit(1)"

    reply = run(tmp_path, kind="opencode", after=after)

    assert complaint(reply) == (
        "'program' exited with code 1: it printed how it is called; fix agents.a.args, "
        "or bring it up to date with `opencode upgrade`"
    )


@pytest.mark.parametrize("kind", sorted(CLI_KINDS))
def test_a_session_of_another_kind_is_never_given_to_a_program(
    kind: str, tmp_path: Path
) -> None:
    reply = ask("/nonexistent", tmp_path, kind=kind, session="-x; rm")

    assert reply.is_session_refused


def test_hermes_answers_in_plain_text_and_names_its_session(tmp_path: Path) -> None:
    after = (
        "assert sys.argv[-2:] == ['--query', 'Do it.'], sys.argv\n"
        "print('  ⚠ a scanner is missing')\n"
        "print('The answer.'); sys.stderr.write('session_id: 20261128_abc\\n')"
    )

    reply = run(tmp_path, kind="hermes", after=after)

    assert (reply.failure, reply.text) == (None, "The answer.\n")
    assert reply.session_id == "20261128_abc"


def test_hermes_that_lost_its_session_did_nothing(tmp_path: Path) -> None:
    after = "print('  ⚠ a scanner is missing'); sys.exit('Session not found: x')"

    reply = run(tmp_path, kind="hermes", after=after, session="20200101_000000_abc")

    assert reply.is_session_refused
    assert "Session not found: x" in complaint(reply)
    assert (reply.text, reply.turns) == ("", ())


def test_a_prompt_too_long_for_an_argument_is_read_from_its_file(
    tmp_path: Path,
) -> None:
    program = make_program(tmp_path, "print(sys.argv[-1][:60])")
    agent = HeadlessAgent(cli=load_cli("hermes"), label="a", command=program)
    environment = {**ENVIRONMENT, "UWF_PROMPT_FILE": "/tmp/the-prompt"}  # noqa: S108 - a name

    reply = agent.run(
        make_request(cwd=tmp_path, prompt="x" * 200_000, environment=environment)
    )

    assert reply.text.startswith("Your whole task stands in the file /tmp/the-prompt.")
