"""Whole threads with real Claude Code and Codex, against a fake API on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.agents.fake_api import Call, FakeApi, Say, modes
from tests.agents.journey import GOOD, Box, bad, done
from tests.agents.real import need_binary

pytestmark = pytest.mark.slow

KINDS: Final = ("claude-code", "codex")
SHELL: Final[dict[str, Callable[[str], Call]]] = {
    "claude-code": lambda command: Call(
        name="Bash", arguments={"command": command, "description": ""}
    ),
    "codex": lambda command: Call(name="exec_command", arguments={"cmd": command}),
}


@pytest.fixture(params=KINDS)
def box(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Box]:
    kind: str = request.param
    need_binary(kind)
    with FakeApi(modes.answer()) as api:
        yield Box(kind=kind, folder=tmp_path / "a", api=api).set_up()


def says(*texts: str) -> list[Say]:
    return [Say(text=text) for text in texts]


def warned(step: dict[str, Any]) -> list[str]:
    """What is warned of, but for Codex's own word on a model nobody knows."""
    return [text for text in step["warnings"] if "Model metadata" not in text]


def play(box: Box, *moves: Say) -> None:
    box.api.play(modes.in_turn(moves))


def asked(box: Box) -> list[str]:
    return [request.text for request in box.api.requests]


def test_two_roles_work_to_the_end(box: Box) -> None:
    tool = Say(text="Let me look.", calls=(SHELL[box.kind]("echo walrus"),))
    play(
        box,
        tool,
        *says("I forgot the block.", done("first"), bad("names"), done("second"), GOOD),
    )
    thread = box.start()

    box.uwf("thread", "exec", thread, "--all")

    steps = [box.step(thread, number) for number in (1, 2, 3, 4)]
    assert [step["status"] for step in steps] == ["done", "bad", "done", "good"]
    assert steps[0]["extractedBy"] == "correction"
    calls = [
        call for turn in steps[0]["detail"]["turns"] for call in turn["toolCalls"] or ()
    ]
    assert "walrus" in calls[0]["result"]
    assert [step["usage"]["inputTokens"] for step in steps] == [300, 100, 100, 100]
    assert [step["usage"]["outputTokens"] for step in steps] == [60, 20, 20, 20]
    sessions = [step["detail"]["sessionId"] for step in steps]
    assert (sessions[0], sessions[1]) == (sessions[2], sessions[3])
    assert len(set(sessions)) == 2
    # The fourth request of the developer goes on in its session.
    again = asked(box)[4]
    assert "Let me look." in again
    assert again.count("# The task of this thread") == 1
    box.uwf("verify")
    told = subprocess.run(
        [
            "git",
            f"--git-dir={box.work}/.git/uwf",
            "shortlog",
            "-sn",
            f"thread/{thread}",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "4\ta" in [line.strip() for line in told.stdout.splitlines()]


def share(box: Box, tmp_path: Path, *flags: str) -> tuple[str, Path]:
    """Run one step on machine A and push it to a repository of threads."""
    play(box, *says(done("first", "I saw a walrus.")))
    thread = box.start()
    box.uwf("thread", "exec", thread)
    hub = tmp_path / "hub.git"
    subprocess.run(["git", "init", "-q", "--bare", hub], check=True)
    box.uwf("remote", "add", "hub", str(hub), "--dedicated")
    box.uwf("push", "hub", thread, *flags)
    return thread, hub


def second(box: Box, tmp_path: Path, hub: Path) -> Box:
    """Make machine B, with a home and a folder of its own, that pulled."""
    other = Box(kind=box.kind, folder=tmp_path / "b", api=box.api).set_up()
    other.uwf("remote", "add", "hub", str(hub), "--dedicated")
    other.uwf("pull", "hub")
    return other


def finish_on(other: Box, thread: str, *flags: str) -> str:
    """Review on the second machine, then let the developer go on; what it is told."""
    here = ("--cwd", str(other.work), "--trust", *flags)
    play(other, *says(bad("names"), done("second")))
    before = len(other.api.requests)
    other.uwf("thread", "exec", thread, "-c", "2", *here)
    return asked(other)[before:][-1]


def test_another_machine_goes_on_with_what_the_first_remembers(
    box: Box, tmp_path: Path
) -> None:
    thread, hub = share(box, tmp_path, "--memory")
    other = second(box, tmp_path, hub)

    told = finish_on(other, thread, "--memory")

    assert "I saw a walrus." in told
    assert told.count("# The task of this thread") == 1
    step = other.step(thread, 3)
    assert warned(step) == []
    assert step["detail"]["sessionId"] == other.step(thread, 1)["detail"]["sessionId"]
    assert step["usage"]["inputTokens"] == 100
    other.uwf("verify")


def test_a_strangers_memory_is_not_restored_unasked(box: Box, tmp_path: Path) -> None:
    thread, hub = share(box, tmp_path, "--memory")
    other = second(box, tmp_path, hub)

    finish_on(other, thread)

    step = other.step(thread, 3)
    first = other.step(thread, 1)["detail"]["sessionId"]
    assert step["detail"]["sessionId"] != first
    assert any("--memory" in warning for warning in step["warnings"])
    assert "# The task of this thread" in step["detail"]["assembledPrompt"]


def test_without_memory_nothing_of_it_leaves_the_machine(
    box: Box, tmp_path: Path
) -> None:
    thread, hub = share(box, tmp_path)

    refs = subprocess.run(
        ["git", f"--git-dir={hub}", "for-each-ref", "--format=%(refname)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(refs.stdout.split()) == [
        "refs/heads/main",
        f"refs/heads/thread/{thread}",
    ]
    other = second(box, tmp_path, hub)
    told = finish_on(other, thread, "--memory")
    assert told.count("# The task of this thread") == 1
    assert "I saw a walrus." in told


def test_a_session_that_was_deleted_is_put_back(box: Box) -> None:
    play(box, *says(done("first", "I saw a walrus."), bad("names"), done("second")))
    thread = box.start()
    box.uwf("thread", "exec", thread, "-c", "2")
    removed = [
        path
        for path in box.home.rglob("*.jsonl")
        if "projects" in path.parts or "sessions" in path.parts
    ]
    for path in removed:
        path.unlink()

    box.uwf("thread", "exec", thread)

    assert len(removed) == 2
    assert asked(box)[-1].count("# The task of this thread") == 1
    assert warned(box.step(thread, 3)) == []


def test_a_fork_goes_on_from_its_step_in_a_session_of_its_own(box: Box) -> None:
    play(
        box,
        *says(done("first", "I saw a walrus."), bad("names"), done("octopus")),
        *says(bad("more"), done("otherwise")),
    )
    thread = box.start()
    box.uwf("thread", "exec", thread, "-c", "3")
    fork = box.uwf("thread", "fork", thread, "--at", "1", "--json").json["threadId"]

    box.uwf("thread", "exec", fork, "-c", "2")

    told = asked(box)[-1]
    assert "I saw a walrus." in told
    assert "octopus" not in told
    assert told.count("# The task of this thread") == 1
    names = {box.step(thread, 3)["detail"]["sessionId"]}
    assert box.step(fork, 3)["detail"]["sessionId"] not in names
    assert warned(box.step(fork, 3)) == []
    assert box.step(fork, 3)["usage"]["inputTokens"] == 100


def test_a_secret_is_masked_in_the_memory(box: Box) -> None:
    secret = "kV9-pq27Zx-walrus-83"  # noqa: S105 - made up
    box.env = {"SERVICE_API_KEY": secret}
    play(box, *says(done("first", f"I read {secret}.")))
    thread = box.start()

    box.uwf("thread", "exec", thread)

    found = subprocess.run(
        [
            *("git", f"--git-dir={box.work}/.git/uwf", "grep", "-c", secret),
            f"refs/uwf/memory/{thread}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stdout) == (1, "")


def test_a_hang_is_ended_and_gone_on_from(box: Box) -> None:
    box.uwf("config", "set", "limits.idleSeconds", "3")
    box.api.play(modes.hang())
    thread = box.start()
    box.uwf("thread", "exec", thread, code=5)
    play(box, *says(done("first")))

    box.uwf("thread", "resume", thread)

    state = box.uwf("thread", "show", thread, "--json").json
    assert (state["status"], state["steps"]) == ("idle", 1)
    assert asked(box)[-1].count("# The task of this thread") == 1
    assert warned(box.step(thread, 1)) == []


def test_one_stopped_during_a_tool_leaves_no_process(box: Box) -> None:
    marker = f"walrus-{os.getpid()}"
    command = f"python3 -c 'import time; time.sleep(600)' {marker}"
    box.api.play(modes.tool_call(SHELL[box.kind](command)))
    thread = box.start()
    program = str(Path(sys.executable).parent / "uwf")
    running = subprocess.Popen(
        [program, "thread", "exec", thread],
        cwd=box.work,
        env=box.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: bool(find_processes(marker)))

    box.uwf("thread", "stop", thread)

    running.wait(timeout=60)
    assert find_processes(marker) == []
    state = box.uwf("thread", "show", thread, "--json").json
    assert (state["status"], state["steps"]) == ("suspended", 0)


def find_processes(marker: str) -> list[str]:
    done = subprocess.run(
        ["pgrep", "-f", marker], capture_output=True, text=True, check=False
    )
    return done.stdout.split()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
