"""What each way an API can behave comes to, for a thread of the builtin agent."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.fake_api import Call, FakeApi, Hang, Say, modes
from tests.cli.calls import Uwf

GOOD = "---\n$status: stuck\n---\n\nNothing to write.\n"
PROSE = "I looked into it and everything is fine."
KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def api(uwf: Uwf, home: Path) -> Iterator[FakeApi]:
    """The API of the default agent, whose key stands in ``.env``."""
    with FakeApi(modes.answer(GOOD)) as server:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / ".env").write_text(f"FAKE_KEY={KEY}\n")
        for key, value in (
            ("providers.fake.baseUrl", f"{server.url}/v1"),
            ("providers.fake.apiKeyEnv", "FAKE_KEY"),
            ("agents.local.kind", "builtin"),
            ("agents.local.model", "fake/m"),
            ("agents.local.maxTurns", "4"),
            ("defaultAgent", "local"),
        ):
            assert uwf("config", "set", key, value).code == 0
        yield server


WRITE = Call(name="write_file", arguments={"path": "out.txt", "content": "hi"})

slow = pytest.mark.slow
FAILED = ("error", "suspended", 5)
ENDED = ("stuck", "end", 0)


@pytest.mark.parametrize(
    ("mode", "outcome", "told"),
    [
        pytest.param("answer", ENDED, None),
        pytest.param("tool-call", ENDED, None),
        pytest.param("slow-drip", ENDED, None),
        pytest.param("after-two-corrections", ENDED, None),
        pytest.param("no-frontmatter", FAILED, "has no YAML block"),
        pytest.param("tool-loop", FAILED, "no answer within 4 turns"),
        pytest.param("hang", FAILED, "said nothing for 1 s (limits.idleSeconds)"),
        pytest.param("400", FAILED, "answered 400: prompt is too long"),
        pytest.param("401", FAILED, "answered 401: invalid x-api-key; check the key"),
        pytest.param("bad-json", FAILED, "something that is not JSON"),
        pytest.param("429", FAILED, "answered 429: rate limited", marks=slow),
        pytest.param("500", FAILED, "answered 500: internal error", marks=slow),
        pytest.param("529", FAILED, "answered 529: overloaded", marks=slow),
        pytest.param("cut-stream", FAILED, "ended the connection", marks=slow),
    ],
)
def test_each_mode_has_its_outcome(
    uwf: Uwf,
    api: FakeApi,
    thread: str,
    mode: str,
    outcome: tuple[str, str, int],
    told: str | None,
) -> None:
    good = {
        "answer": lambda: modes.answer(GOOD),
        "tool-call": lambda: modes.tool_call(WRITE, GOOD),
        "slow-drip": lambda: modes.slow_drip(GOOD, pause_seconds=0.1),
        "after-two-corrections": lambda: modes.after_corrections(2, GOOD),
    }
    api.play(good.get(mode, modes.MODES[mode])())
    if mode == "hang":
        uwf("config", "set", "limits.idleSeconds", "1")

    done = uwf("thread", "exec", thread, "--json")

    (step,) = done.json["steps"]
    assert (step["status"], done.json["status"], done.code) == outcome
    assert step["hash"] is not None
    if told is None:
        assert step["error"] is None
    else:
        assert told in step["error"]
        shown = uwf("thread", "show", thread).out
        assert told in " ".join(shown.split())


def test_after_silence_resume_goes_on_in_the_session(
    uwf: Uwf, api: FakeApi, thread: str
) -> None:
    api.play(modes.in_turn([Say(text="Begun.\n", calls=(WRITE,)), Hang()]))
    uwf("config", "set", "limits.idleSeconds", "1")

    assert uwf("thread", "exec", thread).code == 5
    uwf("config", "unset", "limits.idleSeconds")
    api.play(modes.answer(GOOD))
    resumed = uwf("thread", "resume", thread, "-p", "Go on.", "--json")

    assert resumed.json["status"] == "end"
    said = api.requests[-1].asked.said
    assert any("Begun." in text for role, text in said if role == "assistant")
    assert "Go on." in said[-1][1]


def test_a_role_that_speaks_again_goes_on_in_its_session(
    uwf: Uwf, api: FakeApi, thread: str
) -> None:
    first = "---\n$status: done\ntext: one\n---\nFirst."
    bad = "---\n$status: bad\nwhy: too short\n---\n"
    api.play(modes.in_turn([Say(text=first), Say(text=bad), Say(text=GOOD)]))

    done = uwf("thread", "exec", thread, "--all", "--json")

    assert [step["role"] for step in done.json["steps"]] == [
        "writer",
        "checker",
        "writer",
    ]
    said = [role for role, _ in api.requests[-1].asked.said]
    assert said == ["system", "user", "assistant", "user"]
    again = api.requests[-1].last_text
    assert "too short" in again
    assert "You write." not in again


def test_a_session_that_is_gone_is_told_all_again(
    uwf: Uwf, api: FakeApi, thread: str, home: Path
) -> None:
    first = "---\n$status: done\ntext: one\n---\nFirst."
    bad = "---\n$status: bad\nwhy: too short\n---\n"
    api.play(modes.in_turn([Say(text=first), Say(text=bad), Say(text=GOOD)]))
    uwf("thread", "exec", thread, "-c", "2")
    for file in (home / "sessions" / "builtin").iterdir():
        file.unlink()

    done = uwf("thread", "exec", thread, "--json")

    assert done.json["status"] == "end"
    assert "You write." in api.requests[-1].last_text
    warnings = uwf("step", "show", f"{thread}:3", "--json").json["warnings"]
    assert any("told all again" in each for each in warnings)


def test_a_key_of_dotenv_is_sent_and_stands_nowhere_else(
    uwf: Uwf, api: FakeApi, thread: str
) -> None:
    uwf("config", "set", "agents.local.tools", '["run_command"]')
    leak = Call(name="run_command", arguments={"command": "env; cat ~/.uwf/.env"})
    api.play(modes.tool_call(leak, f"---\n$status: stuck\n---\nThe key is {KEY}."))

    done = uwf("thread", "exec", thread)
    printed = [done.out, done.err, uwf("config", "list").out, uwf("doctor").out]
    printed += [uwf("thread", "read", thread).out, uwf("step", "turns", thread).out]

    assert api.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert not any(KEY in text for text in printed)
    assert any("[redacted:FAKE_KEY]" in text for text in printed)
    store = uwf("store", "path").out.strip()
    objects = subprocess.run(
        ["git", "--git-dir", store, "cat-file", "--batch-all-objects", "--batch"],
        capture_output=True,
        check=True,
    ).stdout
    assert KEY.encode() not in objects
    for folder, _, names in os.walk(store):
        for name in names:
            assert KEY.encode() not in (Path(folder) / name).read_bytes()


def test_a_model_reads_a_reply_that_no_correction_mended(
    uwf: Uwf, api: FakeApi, thread: str
) -> None:
    uwf("config", "set", "modelOverrides.extract", "fake/small")
    uwf("config", "set", "limits.corrections", "0")
    api.play(
        lambda request: Say(
            text='{"status": "stuck"}' if request.asked.model == "small" else PROSE
        )
    )

    done = uwf("thread", "exec", thread, "--json")

    assert done.json["status"] == "end", done.err
    shown = uwf("step", "show", f"{thread}:1", "--json").json
    assert shown["extractedBy"] == "model"
    assert shown["body"].strip() == PROSE
