"""Supervisor and summary, as a user sets them up: against a model's API, and agents."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.fake_api import Fail, FakeApi, Hang, Say
from tests.agents.fake_api.moves import Move
from tests.agents.fake_api.wire import Request
from tests.builders import git
from tests.cli.calls import Result, Uwf
from uwfgit.agents.http.client import HttpBounds

LOOPING = """\
replies:
  writer:
    - &again "---\\n$status: done\\ntext: one\\n---\\nFirst."
    - *again
    - *again
    - *again
  checker:
    - &no "---\\n$status: bad\\nwhy: too short\\n---\\nNo."
    - *no
    - *no
    - "---\\n$status: good\\n---\\nYes."
"""


NONE = "its answer is not a decision"


class Judge:
    """What the model behind the API says, as it stands at the moment."""

    def __init__(self) -> None:
        self.move: Move = Say(text="")
        self.asked: list[str] = []

    def __call__(self, request: Request) -> Move:
        self.asked.append(request.text)
        return self.move

    def decides(self, decision: str, reason: str = "It goes in circles.") -> None:
        self.move = Say(text=json.dumps({"decision": decision, "reason": reason}))


@pytest.fixture
def judge(uwf: Uwf, work: Path) -> Iterator[Judge]:
    """A model behind an API, configured and not used by anything yet."""
    (work / "looping.yaml").write_text(LOOPING)
    made = Judge()
    with FakeApi(made) as server:
        uwf("config", "set", "providers.fake.baseUrl", f"{server.url}/v1")
        yield made


def supervise(uwf: Uwf, every: int = 2) -> None:
    assert uwf("config", "set", "supervise.model", "fake/m").code == 0
    assert uwf("config", "set", "supervise.every", str(every)).code == 0


def run(uwf: Uwf, thread: str, *words: str) -> Result:
    agent = ("--agent", "scripted:looping.yaml")
    return uwf("thread", "exec", thread, *agent, *words)


def log(uwf: Uwf, thread: str) -> str:
    """Give the subjects of a thread's events."""
    store = Path(uwf("store", "path").out.strip())
    return git(store, "log", "--format=%s", f"thread/{thread}")


def test_both_are_off_by_default(uwf: Uwf, judge: Judge, thread: str) -> None:
    assert run(uwf, thread, "--all").code == 0

    refused = uwf("thread", "summarize", thread, "--json")
    assert judge.asked == []
    assert (refused.code, refused.error["code"]) == (1, "config")
    assert "summarize.model" in refused.error["hint"]


def test_a_stop_is_recorded_told_proved_and_gone_on_from(
    uwf: Uwf, judge: Judge, thread: str
) -> None:
    supervise(uwf)
    judge.decides("stop", "It writes\x1b[31m the same again.")

    stopped = run(uwf, thread, "--all")
    shown = uwf("thread", "show", thread, "--json").json
    waiting = run(uwf, thread, "--json")
    judge.decides("continue")
    resumed = uwf("thread", "resume", thread, "--agent", "scripted:looping.yaml")
    rest = run(uwf, thread, "--all")

    assert stopped.code == 3
    told = f"thread {thread} is held by the supervisor: It writes"
    assert told in stopped.err
    assert f"hint: release it with: uwf thread resume {thread}\n" in stopped.err
    assert "\x1b" not in stopped.out + stopped.err
    assert (shown["status"], shown["steps"]) == ("suspended", 2)
    assert "hold" in log(uwf, thread)
    assert shown["suspendMessage"].startswith("supervisor: It writes")
    assert (waiting.code, waiting.json["steps"]) == (3, [])
    assert (resumed.code, rest.code) == (0, 0)
    assert "the task" in judge.asked[0]
    assert uwf("verify", thread).code == 0
    prompt = uwf("step", "read", f"{thread}:3", "--prompt").out
    assert "the same again" not in prompt


def test_a_hold_is_told_in_the_same_words_everywhere(
    uwf: Uwf, judge: Judge, thread: str, work: Path
) -> None:
    supervise(uwf)
    uwf("config", "set", "notify", f'printf %s "$UWF_MESSAGE" > "{work}/told"')
    judge.decides("stop")
    run(uwf, thread, "--all")
    assert uwf("export", "html", "site").code == 0

    told = {
        "show": uwf("thread", "show", thread).out,
        "read": uwf("thread", "read", thread).out.replace("Held", "held"),
        "join": uwf("thread", "join", thread).err,
        "check": uwf("thread", "check", thread).out,
        "again": run(uwf, thread).err,
        "notify": (work / "told").read_text(),
    }
    for place, text in told.items():
        assert "held by the supervisor: It goes in circles." in text, place
    page = (work / "site" / "threads" / f"{thread}.html").read_text()
    assert "writer is held by the supervisor" in page
    assert ">It goes in circles.</p>" in page
    assert f"uwf thread resume {thread[-6:]}<" in page
    assert ">held by the supervisor<" in (work / "site" / "index.html").read_text()
    listed = uwf("thread", "list").out.splitlines()
    assert "suspended, held" in next(line for line in listed if thread in line)
    way = f"release it: uwf thread resume {thread}\n"
    assert uwf("thread", "show", thread).err == way


def test_a_reason_that_reads_like_a_hold_is_none(
    uwf: Uwf, thread: str, work: Path
) -> None:
    reply = "---\\n$status: $SUSPEND\\nreason: 'supervisor: which one?'\\n---\\n"
    (work / "asks.yaml").write_text(f'replies: {{ writer: ["{reply}"] }}\n')

    uwf("thread", "exec", thread, "--agent", "scripted:asks.yaml")

    again = uwf("thread", "exec", thread).err
    assert f"thread {thread} waits for a person: supervisor: which one?" in again
    assert "held" not in again + uwf("thread", "list").out


def test_a_run_that_a_worker_takes_step_by_step_is_looked_at_too(
    uwf: Uwf, judge: Judge, thread: str
) -> None:
    supervise(uwf, every=2)
    judge.decides("stop")

    first = run(uwf, thread)
    second = run(uwf, thread, "--taken", "1")

    assert (first.code, second.code) == (0, 3)
    assert len(judge.asked) == 1


@pytest.mark.slow
def test_it_looks_after_every_so_many_steps_of_a_run(
    uwf: Uwf, judge: Judge, thread: str
) -> None:
    supervise(uwf, every=3)
    judge.decides("continue")

    run(uwf, thread, "-c", "2")
    run(uwf, thread, "-c", "2")
    before = len(judge.asked)
    run(uwf, thread, "--all")

    assert before == 0
    assert len(judge.asked) == 1
    assert uwf("thread", "show", thread, "--json").json["status"] == "end"
    assert "hold" not in log(uwf, thread)


@pytest.mark.parametrize(
    ("move", "told"),
    [
        pytest.param(Say(text="I think so."), NONE, id="prose"),
        pytest.param(Say(text="{}"), NONE, id="empty"),
        pytest.param(Say(text="{" + "[" * 90_000 + "}"), NONE, id="deep"),
        pytest.param(
            Say(text='{"decision": "stop"}'),
            "it gives no reason to stop",
            id="no-reason",
        ),
        pytest.param(Fail(status=401, message="who"), "answered 401", id="401"),
    ],
)
@pytest.mark.slow
def test_whatever_it_says_no_failure_of_it_stops_the_run(
    uwf: Uwf, judge: Judge, thread: str, move: Move, told: str
) -> None:
    supervise(uwf, every=4)
    judge.move = move

    done = run(uwf, thread, "-c", "4")

    assert (done.code, len(judge.asked)) == (0, 1)
    assert "warning: the supervisor did not judge: " in done.err
    assert told in done.err
    assert "hold" not in log(uwf, thread)


@pytest.mark.slow
def test_one_that_is_not_there_stops_no_run(
    uwf: Uwf, judge: Judge, thread: str
) -> None:
    supervise(uwf, every=4)
    uwf("config", "set", "providers.fake.baseUrl", "http://127.0.0.1:9/v1")

    done = run(uwf, thread, "-c", "4")

    assert done.code == 0
    assert "the supervisor did not judge" in done.err
    assert judge.asked == []


@pytest.mark.slow
def test_a_slow_one_is_given_up(
    uwf: Uwf, judge: Judge, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = HttpBounds(idle_seconds=0.2, total_seconds=0.4)
    monkeypatch.setattr("uwfgit.agents.builtin.judge._BOUNDS", quick)
    supervise(uwf, every=4)
    judge.move = Hang()
    began = time.monotonic()

    done = run(uwf, thread, "-c", "4")

    assert done.code == 0
    assert time.monotonic() - began < 30
    assert "the supervisor did not judge" in done.err


@pytest.mark.slow
def test_a_reason_that_is_too_long_is_cut(uwf: Uwf, judge: Judge, thread: str) -> None:
    supervise(uwf)
    judge.decides("stop", "again " * 20_000)

    run(uwf, thread, "--all")

    shown = uwf("thread", "show", thread, "--json").json
    assert len(shown["suspendMessage"]) < 1_100
    assert uwf("verify", thread).code == 0


def test_a_thread_is_summarised_by_hand_and_again(
    uwf: Uwf, judge: Judge, thread: str
) -> None:
    run(uwf, thread, "--all")
    ended = uwf("thread", "show", thread, "--json").json
    judge.move = Say(text="It was written \x1b[31mtwice.")

    first = uwf("thread", "summarize", thread, "--model", "fake/m")
    judge.move = Say(text="In short: done.")
    again = uwf("thread", "summarise", "@last", "--model", "fake/m", "--json")

    shown = uwf("thread", "show", thread, "--json").json
    assert (first.code, again.code) == (0, 0)
    assert "\x1b" not in first.out
    assert again.json == {
        "threadId": thread,
        "summary": {"text": "In short: done.", "by": "m"},
    }
    assert shown["summary"] == {"text": "In short: done.\n", "by": "m"}
    assert shown["result"] == {
        "status": "end",
        "returnCode": 0,
        "summary": shown["summary"],
    }
    assert (shown["status"], shown["steps"]) == ("end", ended["steps"])
    assert shown["usage"]["inputTokens"] > ended["usage"]["inputTokens"]
    assert "summary by m:\nIn short: done." in uwf("thread", "show", thread).out
    assert log(uwf, thread).count("summary") == 2
    assert uwf("verify", thread).code == 0


@pytest.mark.slow
def test_what_waits_and_what_was_cancelled_is_summarised_and_what_runs_is_not(
    uwf: Uwf, judge: Judge, thread: str
) -> None:
    uwf("config", "set", "summarize.model", "fake/m")
    judge.move = Say(text="So it stands.")

    idle = uwf("thread", "summarize", thread, "--json")
    uwf("thread", "exec", thread, "--agent", "scripted:asking.yaml")
    waiting = uwf("thread", "summarize", thread, "--json")
    uwf("thread", "cancel", thread)
    cancelled = uwf("thread", "summarize", thread, "--json")

    result = uwf("thread", "show", thread, "--json").json["result"]
    assert (idle.code, idle.error["code"]) == (1, "state")
    assert (waiting.code, cancelled.code) == (0, 0)
    assert "Which one?" in judge.asked[0]
    assert (result["status"], result["returnCode"]) == ("cancelled", 130)
    assert uwf("verify", thread).code == 0


@pytest.mark.slow
def test_at_an_end_it_is_written_when_that_is_set(
    uwf: Uwf, judge: Judge, thread: str
) -> None:
    uwf("config", "set", "summarize.model", "fake/m")
    judge.move = Say(text="Four rounds, then it was good.")

    run(uwf, thread, "-c", "3")
    before = list(judge.asked)
    done = run(uwf, thread, "--all")

    shown = uwf("thread", "show", thread, "--json").json
    assert (done.code, before, len(judge.asked)) == (0, [], 1)
    assert shown["summary"]["text"] == "Four rounds, then it was good.\n"


@pytest.mark.parametrize(
    "move",
    [
        pytest.param(Say(text=""), id="silent"),
        pytest.param(Fail(status=401, message="who"), id="401"),
    ],
)
@pytest.mark.slow
def test_a_summary_that_fails_leaves_the_thread_as_it_was(
    uwf: Uwf, judge: Judge, thread: str, move: Move
) -> None:
    uwf("config", "set", "summarize.model", "fake/m")
    judge.move = move

    ended = run(uwf, thread, "--all")
    tip = uwf("thread", "show", thread, "--json").json["oid"]
    asked = uwf("thread", "summarize", thread, "--json")

    assert ended.code == 0
    assert "warning: no summary by fake/m: " in ended.err
    assert (asked.code, asked.error["code"]) == (5, "agent")
    shown = uwf("thread", "show", thread, "--json").json
    assert (shown["oid"], shown["summary"]) == (tip, None)


@pytest.mark.slow
def test_a_summary_that_is_too_long_is_cut(uwf: Uwf, judge: Judge, thread: str) -> None:
    run(uwf, thread, "--all")
    judge.move = Say(text="é" * 40_000)

    done = uwf("thread", "summarize", thread, "--model", "fake/m", "--json")

    assert done.code == 0
    assert len(done.json["summary"]["text"].encode()) < 16 * 1024
    assert uwf("verify", thread).code == 0


# Notes how it was called and where, as Claude Code would be.
_NOTING = """\
import json, os, sys
heard = sys.stdin.read()
words = sys.argv[1:]
facts = {"words": words, "files": os.listdir("."), "cwd": os.getcwd(), "heard": heard}
open(os.environ["NOTE"], "w").write(json.dumps(facts))
session = words[words.index("--session-id") + 1]
said = json.dumps({"decision": "stop", "reason": "It goes in circles."})
usage = {"input_tokens": 7, "output_tokens": 3}
print(json.dumps({"type": "result", "subtype": "success", "is_error": False,
    "result": said, "session_id": session, "num_turns": 1, "usage": usage}))
"""


@pytest.fixture
def noting(uwf: Uwf, work: Path, tmp_path: Path) -> Path:
    """An agent of kind claude-code with tools and words of its own; gives its note."""
    script = work / "noting"
    script.write_text(f"#!{sys.executable}\n{_NOTING}")
    script.chmod(0o700)
    note = tmp_path / "note.json"
    for key, value in (
        ("kind", "claude-code"),
        ("command", str(script)),
        ("tools", '["Bash", "Edit"]'),
        ("args", '["--permission-mode", "bypassPermissions"]'),
        ("env.NOTE", str(note)),
    ):
        assert uwf("config", "set", f"agents.noting.{key}", value).code == 0
    return note


def test_an_agent_supervises_without_tools_session_and_work_tree(
    uwf: Uwf, judge: Judge, thread: str, noting: Path, work: Path
) -> None:
    assert judge.asked == []
    uwf("config", "set", "supervise.agent", "noting")
    uwf("config", "set", "supervise.every", "2")

    stopped = run(uwf, thread, "--all")

    facts = json.loads(noting.read_text())
    words = facts["words"]
    assert stopped.code == 3
    assert words[words.index("--tools") + 1] == ""
    assert {"--strict-mcp-config", "--no-session-persistence"} <= set(words)
    assert not {"--resume", "--permission-mode", "bypassPermissions"} & set(words)
    assert facts["files"] == []
    assert not Path(facts["cwd"]).is_relative_to(work)
    assert not Path(facts["cwd"]).exists()
    assert "Step 1, writer" in facts["heard"]
    assert uwf("verify", thread).code == 0


def test_an_agent_of_our_own_loop_judges_as_a_plain_model(
    uwf: Uwf, judge: Judge, thread: str
) -> None:
    for key, value in (
        ("agents.local.kind", "builtin"),
        ("agents.local.model", "fake/m"),
    ):
        uwf("config", "set", key, value)
    run(uwf, thread, "--all")
    judge.move = Say(text="All is done.")

    done = uwf("thread", "summarize", thread, "--agent", "local", "--json")

    assert done.json["summary"] == {"text": "All is done.", "by": "m"}
    assert "write_file" not in judge.asked[0]
    assert len(judge.asked) == 1


@pytest.mark.parametrize("agent", ["codex", "gemini", "adapter:true", "workflow:ping"])
def test_an_agent_that_cannot_be_kept_from_tools_is_refused(
    uwf: Uwf, judge: Judge, ended: str, agent: str
) -> None:
    refused = uwf("thread", "summarize", ended, "--agent", agent, "--json")

    assert (refused.code, refused.error["code"]) == (1, "config")
    assert "without tools" in refused.error["message"]
    assert judge.asked == []
