"""What a thread may cost, as a person meets it: codes, messages, raised for one run."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from tests.program import is_alive, wait_until

# Speaks as Claude Code does: a turn each tenth of a second, with what it took so far.
_STREAMING = """\
import json, os, sys, time
sys.stdin.read()
words = sys.argv[1:]
session = words[words.index("--session-id") + 1]
open("pid", "w").write(str(os.getpid()))
def tell(**event):
    print(json.dumps(event), flush=True)
tell(type="system", subtype="init", session_id=session, claude_code_version="9.9.9")
usage = {"input_tokens": 100, "output_tokens": 20}
for number in range(100):
    content = [{"type": "text", "text": f"turn {number}"}]
    begun = {"type": "message_start", "message": {"usage": usage}}
    tell(type="stream_event", event=begun)
    message = {"id": f"m{number}", "model": "m", "content": content, "usage": usage}
    tell(type="assistant", message=message, session_id=session)
    tell(type="stream_event", event={"type": "message_delta", "usage": usage})
    time.sleep(0.1)
"""


@pytest.fixture
def streaming(uwf: Uwf, work: Path) -> str:
    """An agent that goes on and on."""
    script = work / "streaming.py"
    return make_agent(uwf, script, "endless", _STREAMING)


def make_agent(uwf: Uwf, script: Path, name: str, text: str) -> str:
    """Set up a program of our own that speaks as Claude Code does."""
    script.write_text(f"#!{sys.executable}\n{text}")
    script.chmod(0o700)
    for key, value in (("kind", "claude-code"), ("command", str(script))):
        assert uwf("config", "set", f"agents.{name}.{key}", value).code == 0
    return name


def test_used_up_before_a_step_it_exits_1_and_is_raised_for_one_run(
    uwf: Uwf, thread: str
) -> None:
    assert uwf("config", "set", "limits.maxTurns", "2").code == 0
    run = ("thread", "exec", thread, "--agent", "scripted:replies.yaml")

    forked = uwf("thread", "fork", thread, "--json").json["threadId"]
    whole = uwf(*run[:2], forked, *run[3:], "--all")
    first = uwf(*run, "--all", "--json")
    text = uwf(*run)
    raised = uwf(*run, "--budget", "turns=3", "--json")
    again = uwf(*run, "--json")
    rest = uwf(*run, "--all", "--budget", "turns=9")

    assert (first.code, first.json["error"]["code"]) == (1, "budget")
    assert [step["hash"] is None for step in first.json["steps"]] == [
        *(False, False, True),
    ]
    assert f"{whole.out}{whole.err}".count("2 of 2 turns are used") == 1
    assert text.code == 1
    assert text.err == (
        "error: 2 of 2 turns are used (limits.maxTurns)\n"
        "hint: raise it for one run with --budget\n"
    )
    assert (raised.code, len(raised.json["steps"])) == (0, 1)
    assert (again.code, again.error["code"]) == (1, "budget")
    assert "3 of 2 turns are used" in again.error["message"]
    assert rest.code == 0
    assert uwf("thread", "show", thread, "--json").json["usage"]["turns"] == 4
    assert uwf("verify", thread).code == 0


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        pytest.param("turns=3", "4 of 3 turns are used (limits.maxTurns)", id="turns"),
        pytest.param("tokens=300", " of 300 tokens are used", id="tokens"),
        pytest.param("minutes=0.03", " of 0.03 minutes are used", id="minutes"),
    ],
)
@pytest.mark.slow
def test_used_up_inside_a_step_the_agent_is_stopped_and_it_exits_5(
    uwf: Uwf, work: Path, thread: str, streaming: str, budget: str, told: str
) -> None:
    run = ("thread", "exec", thread, "--agent", streaming)

    stopped = uwf(*run, "--budget", budget, "--json")
    shown = uwf("thread", "show", thread, "--json").json
    resume = ("thread", "resume", thread, "--agent", streaming, "--budget", budget)
    again = uwf(*resume, "--json")

    assert stopped.code == 5, stopped.out
    assert (shown["status"], shown["steps"]) == ("suspended", 0)
    assert told in shown["suspendMessage"]
    assert shown["usage"]["turns"] > 0
    assert (again.code, again.error["code"]) == (1, "budget")
    pid = int((work / "pid").read_text())
    wait_until(lambda: not is_alive(pid))
    assert uwf("verify", thread).code == 0


@pytest.mark.parametrize("word", ["turns", "turns=", "turns=-1", "time=5", "cost=inf"])
def test_a_budget_that_is_none_is_refused(uwf: Uwf, thread: str, word: str) -> None:
    run = ("thread", "exec", thread, "--agent", "scripted:replies.yaml", "--json")

    refused = uwf(*run, "--budget", word)

    assert (refused.code, refused.error["code"]) == (2, "usage")


def test_money_is_refused_where_nothing_tells_of_it(
    uwf: Uwf, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uwfgit.engine.ask.budget.has_prices", lambda: False)
    agent = f"stdio:{shlex.join(['cat', '/dev/null'])}"

    run = ("thread", "exec", thread, "--agent", agent, "--json")
    refused = uwf(*run, "--budget", "cost=5")

    assert (refused.code, refused.error["code"]) == (1, "budget")
    assert "limits.maxTokens" in refused.error["hint"]


@pytest.mark.slow
def test_threads_are_listed_by_what_they_cost(uwf: Uwf, work: Path) -> None:
    names = {}
    for tokens in (300, 0, 2_000):
        thread = uwf("thread", "start", "ping.yaml", "-p", "x", "--json").json[
            "threadId"
        ]
        names[tokens] = thread
        text = (
            "import json, sys\nsys.stdin.read()\nwords = sys.argv[1:]\n"
            'session = words[words.index("--session-id") + 1]\n'
            f'usage = {{"input_tokens": {tokens}, "output_tokens": 0}}\n'
            'print(json.dumps({"type": "result", "subtype": "success",'
            '"is_error": False, "result": "---\\n$status: stuck\\n---\\n",'
            '"session_id": session, "num_turns": 1, "usage": usage,'
            f'"total_cost_usd": {tokens / 1_000}}}))\n'
        )
        agent = make_agent(uwf, work / f"agent-{tokens}", f"a{tokens}", text)
        assert uwf("thread", "exec", thread, "--agent", agent).code == 0

    by_cost = uwf("thread", "list", "--all", "--sort", "cost", "--json").json["items"]
    text = uwf("thread", "list", "--all", "--sort", "tokens").out
    priced = uwf("thread", "list", "--all", "--sort", "cost").out
    odd = uwf("thread", "list", "--sort", "size")

    ordered = [names[2_000], names[300], names[0]]
    assert [item["threadId"] for item in by_cost] == ordered
    assert [item["usage"]["costUsd"] for item in by_cost] == [2.0, 0.3, 0.0]
    assert "TOKENS" in text.splitlines()[0]
    assert [line.split()[3] for line in text.splitlines()[1:]] == ["2,000", "300", "0"]
    assert priced.splitlines()[0].split().count("COST") == 1
    assert "$2.0000" in priced.splitlines()[1]
    assert odd.code == 2
