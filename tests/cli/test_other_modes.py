"""What each way of a command, a server or a gateway comes to, for a thread."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.agents.gateway_server import DONE as OVER
from tests.agents.gateway_server import Event, serve, turn
from tests.cli.calls import Uwf
from tests.cli.test_cli_modes import WORKFLOW

SERVER: Final = Path(__file__).parents[1] / "agents" / "acp_server.py"
GOOD: Final = "---\n$status: done\n---\n\nDone.\n"
PROSE: Final = "I looked into it and everything is fine."
DONE: Final = (None, "end", 0)
BAD: Final = ("suspended", 5)
slow = pytest.mark.slow


Run = Callable[..., tuple[str | None, str, int]]


def check(found: tuple[str | None, str, int], told: str | None) -> None:
    """Check that a step was done, or a kept try tells this in one line."""
    error, *ended = found
    if told is None:
        assert found == DONE
        return
    assert tuple(ended) == BAD
    assert error is not None
    assert told in error
    assert "\n" not in error


@pytest.fixture
def run(uwf: Uwf, work: Path) -> Run:
    """Run a thread's first step with an agent; how it ended."""
    (work / "build.yaml").write_text(WORKFLOW.replace("[$status, sum]", "[$status]"))

    def ran(agent: str, **limits: int) -> tuple[str | None, str, int]:
        for name, value in limits.items():
            assert uwf("config", "set", f"limits.{name}", str(value)).code == 0
        started = uwf("thread", "start", "build.yaml", "-p", "Fix it.", "--json")
        thread = started.json["threadId"]
        done = uwf("thread", "exec", thread, "--agent", agent, "--json")
        (step,) = done.json["steps"]
        assert step["hash"] is not None
        return step["error"], done.json["status"], done.code

    return ran


def script(folder: Path, text: str) -> str:
    (folder / "agent.sh").write_text(text)
    return "sh agent.sh"


def says(*texts: str) -> str:
    """A script that says one of these after the other; the last one repeats."""
    lines = "".join(
        f"[ -e said{n} ] || {{ touch said{n}; printf %s {shlex.quote(text)}; exit; }}\n"
        for n, text in enumerate(texts)
    )
    return f"{lines}printf %s {shlex.quote(texts[-1])}\n"


@pytest.mark.parametrize(
    ("text", "told", "limits"),
    [
        pytest.param(says(GOOD), None, {}, id="answer"),
        pytest.param(says(PROSE, PROSE, GOOD), None, {}, id="two-corrections"),
        pytest.param(
            says(PROSE), "the reply has no YAML block between two '---'", {}, id="prose"
        ),
        pytest.param(
            "echo boom >&2; exit 3", "exited with code 3: boom", {}, id="crash"
        ),
        pytest.param("kill -9 $$", "was killed by SIGKILL", {}, id="killed"),
        pytest.param("exit 0", "said nothing", {}, id="silent"),
        pytest.param(
            "echo begun; exec sleep 600",
            "(see limits.idleSeconds)",
            {"idleSeconds": 1},
            id="hang",
            marks=slow,
        ),
        pytest.param(
            "for n in 1 2 3 4 5; do echo $n; sleep 0.6; done; " + says(GOOD),
            None,
            {"idleSeconds": 2},
            id="drip",
            marks=slow,
        ),
        pytest.param(
            "head -c 100000000 /dev/zero | tr '\\0' x",
            "said more than 64 MiB",
            {},
            id="huge",
            marks=slow,
        ),
    ],
)
def test_a_command(
    run: Run, work: Path, text: str, told: str | None, limits: dict[str, int]
) -> None:
    check(run(f"stdio:{script(work, text)}", **limits), told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("echo all done", "'all done'", id="no-hash"),
        pytest.param("echo 0123456789ABC", "0123456789ABC", id="no-such-node"),
        pytest.param("echo boom >&2; exit 3", "exited with code 3: boom", id="crash"),
    ],
)
def test_an_adapter(run: Run, work: Path, text: str, told: str) -> None:
    check(run(f"adapter:{script(work, text)}"), told)


@pytest.mark.parametrize(
    ("events", "told"),
    [
        pytest.param([turn(0, GOOD), OVER], None, id="answer"),
        pytest.param(
            [turn(0, PROSE), OVER],
            "the reply has no YAML block between two '---'",
            id="prose",
        ),
        pytest.param([OVER], "nothing", id="silent"),
        pytest.param(
            [("error", {"code": "agent_failed", "message": "no model"})],
            "no model",
            id="error",
        ),
    ],
)
def test_a_gateway(run: Run, events: Sequence[Event], told: str | None) -> None:
    with serve(events, events, events) as gateway:
        check(run(f"{gateway.url} dev"), told)


def test_nobody_at_a_gateway(run: Run) -> None:
    check(run("http://127.0.0.1:9 dev"), "127.0.0.1:9")


@slow
@pytest.mark.parametrize(
    ("mode", "told", "limits"),
    [
        pytest.param("", None, {}, id="tool-call"),
        pytest.param("refuse", "stopped without an answer: refusal", {}, id="refuse"),
        pytest.param("crash", "exited with code 3: no licence", {}, id="crash"),
        pytest.param("logged-out", "Authentication required", {}, id="logged-out"),
        pytest.param("newer", "speaks version 2 of the protocol", {}, id="newer"),
        pytest.param("hang", "(see limits.wallSeconds)", {"wallSeconds": 8}, id="hang"),
    ],
)
def test_a_server_of_the_agent_client_protocol(
    run: Run, mode: str, told: str | None, limits: dict[str, int]
) -> None:
    check(run(f"acp:{sys.executable} {SERVER} {mode}".strip(), **limits), told)


def test_an_agent_gets_no_key_but_those_its_configuration_names(
    uwf: Uwf, work: Path, home: Path, run: Run
) -> None:
    key = "sk-test-0123456789abcdef"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / ".env").write_text(f"FAKE_KEY={key}\n")
    script(work, "env > seen; " + says(GOOD))
    for name, value in (
        ("agents.plain.kind", "stdio"),
        ("agents.plain.command", "sh"),
        ("agents.plain.args", '["agent.sh"]'),
    ):
        assert uwf("config", "set", name, value).code == 0

    check(run("plain"), None)

    seen = (work / "seen").read_text()
    assert key not in seen
    assert "FAKE_KEY" not in seen
    assert key not in uwf("config", "list").out
    assert key not in uwf("thread", "read", "@last").out
