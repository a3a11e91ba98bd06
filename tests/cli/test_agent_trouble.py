"""Agents that cannot be run: exec says in one line why and what to do; doctor too."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.cli.calls import Uwf

OPTIONS: Final = "--include-partial-messages --session-id --resume auth"
NOT_LOGGED_IN: Final = "Not logged in · Please run /login"
SAID: Final = {
    "model": "<synthetic>",
    "content": [{"type": "text", "text": NOT_LOGGED_IN}],
}
EVENTS: Final = (
    {"type": "assistant", "error": "authentication_failed", "message": SAID},
    {"type": "result", "subtype": "success", "is_error": True, "result": NOT_LOGGED_IN},
)


def program(folder: Path, *, options: str = OPTIONS, code: str = "") -> str:
    """Make a program that is called and asked as Claude Code is."""
    path = folder / "claude"
    path.write_text(
        f"#!{sys.executable}\nimport sys\nwords = sys.argv[1:]\n"
        f"if '--help' in words: sys.exit(print({options!r}))\n"
        "if words[0] == 'auth': print('{\"loggedIn\": false}')\n"
        f"else:\n {code or 'pass'}\nsys.exit(1)\n"
    )
    path.chmod(0o755)
    return str(path)


def missing(folder: Path) -> str:
    return str(folder.joinpath("claude-of-mine").name)


def not_executable(folder: Path) -> str:
    path = Path(program(folder))
    path.chmod(0o644)
    return str(path)


def not_logged_in(folder: Path) -> str:
    lines = "".join(f"{json.dumps(event)}\n" for event in EVENTS)
    return program(folder, code=f"sys.stdout.write({lines!r})")


def too_old(folder: Path) -> str:
    text = "error: unknown option '--include-partial-messages'"
    return program(folder, options="--resume", code=f"sys.stderr.write({text!r})")


@pytest.mark.parametrize(
    ("make", "why", "fix"),
    [
        pytest.param(
            missing,
            "'claude-of-mine' is not on PATH",
            "install it with `npm install -g @anthropic-ai/claude-code`, or give its "
            "path in agents.cc.command",
            id="not-on-path",
        ),
        pytest.param(not_executable, "is not executable", "`chmod +x`", id="mode"),
        pytest.param(
            not_logged_in,
            "",
            "run `claude` once and log in, or set ANTHROPIC_API_KEY",
            id="not-logged-in",
        ),
        pytest.param(
            too_old,
            "--include-partial-messages",
            "bring it up to date with `claude update`",
            id="too-old",
        ),
    ],
)
def test_exec_and_doctor_say_why_and_what_to_do(
    uwf: Uwf,
    thread: str,
    home: Path,
    tmp_path: Path,
    make: Callable[[Path], str],
    why: str,
    fix: str,
) -> None:
    agent = {"kind": "claude-code", "command": make(tmp_path)}
    (home / "config.yaml").write_text(json.dumps({"agents": {"cc": agent}}))

    done = uwf("thread", "exec", thread, "--agent", "cc", "--json")
    doctor = uwf("doctor", "--json").json["checks"]

    if make in {missing, not_executable}:
        # Nothing was asked, so nothing is recorded.
        assert (done.code, done.error["code"]) == (1, "config")
        said = done.error["message"]
        assert uwf("step", "list", thread, "--json").json["items"] == []
    else:
        (step,) = done.json["steps"]
        assert done.code == 5
        said = step["error"]
    assert "\n" not in said
    assert why in said
    assert fix in said
    (found,) = [each for each in doctor if each["message"].startswith("cc (")]
    told = f"{found['message']}; {found['hint']}"
    assert found["level"] == "problem"
    assert why in told
    assert fix in told


def test_one_that_is_whole_passes(uwf: Uwf, home: Path, tmp_path: Path) -> None:
    command = program(
        tmp_path, options="--include-partial-messages --session-id --resume"
    )
    agent = {"kind": "claude-code", "command": command}
    home.mkdir(mode=0o700, parents=True)
    (home / "config.yaml").write_text(json.dumps({"agents": {"cc": agent}}))

    checks = uwf("doctor", "--json").json["checks"]

    (found,) = [
        each for each in checks if each["message"].startswith("cc (claude-code)")
    ]
    assert found["level"] == "ok"


def test_an_unknown_one_is_refused_with_what_there_is(
    uwf: Uwf, thread: str, home: Path
) -> None:
    (home / "config.yaml").write_text("defaultAgent: nobody\n")

    done = uwf("thread", "exec", thread)
    doctor = uwf("doctor", "--json").json["checks"]

    assert (done.code, "'nobody'" in done.err) == (1, True)
    assert len(done.err.strip().splitlines()) == 2
    (found,) = [each for each in doctor if each["check"] == "agents"]
    assert (found["level"], found["hint"] in done.err) == ("problem", True)
