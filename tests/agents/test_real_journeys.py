"""Whole threads with the real CLIs, against a fake API on loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.agents.fake_api import Call, FakeApi, Say, modes, tools_only
from tests.agents.journey import GOOD, Box, bad, done
from tests.agents.real import need_binary

pytestmark = pytest.mark.slow

REMEMBER: Final = ("claude-code", "codex", "gemini", "opencode")
KINDS: Final = (*REMEMBER, "hermes")
SHELL: Final[dict[str, Callable[[str], Call]]] = {
    "claude-code": lambda command: Call(
        name="Bash", arguments={"command": command, "description": ""}
    ),
    "codex": lambda command: Call(name="exec_command", arguments={"cmd": command}),
    "gemini": lambda command: Call(
        name="run_shell_command", arguments={"command": command, "description": ""}
    ),
    "opencode": lambda command: Call(
        name="bash", arguments={"command": command, "description": ""}
    ),
    "hermes": lambda command: Call(name="terminal", arguments={"command": command}),
}


@pytest.fixture(params=KINDS)
def box(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Box]:
    kind: str = request.param
    need_binary(kind)
    with FakeApi(modes.answer(), is_side=tools_only) as api:
        yield Box(kind=kind, folder=tmp_path / "a", api=api).set_up()


@pytest.fixture
def mindful(box: Box) -> Box:
    """One whose sessions can be kept and put back."""
    if box.kind not in REMEMBER:
        pytest.skip("it gives nobody its sessions")
    return box


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
    check_told(box, steps)
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


def check_told(box: Box, steps: list[Any]) -> None:
    """Check what a step says of its tools and tokens; Hermes tells neither."""
    calls = [
        call for turn in steps[0]["detail"]["turns"] for call in turn["toolCalls"] or ()
    ]
    usages = [step["usage"] for step in steps]
    if box.kind == "hermes":
        assert "walrus" in "".join(box.api.requests[1].asked.results)
        assert (calls, usages) == ([], [None] * 4)
        return
    assert "walrus" in calls[0]["result"]
    assert [usage["inputTokens"] for usage in usages] == [300, 100, 100, 100]
    assert [usage["outputTokens"] for usage in usages] == [60, 20, 20, 20]


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
    mindful: Box, tmp_path: Path
) -> None:
    thread, hub = share(mindful, tmp_path, "--memory")
    other = second(mindful, tmp_path, hub)

    told = finish_on(other, thread, "--memory")

    assert "I saw a walrus." in told
    assert told.count("# The task of this thread") == 1
    step = other.step(thread, 3)
    assert warned(step) == []
    assert step["detail"]["sessionId"] == other.step(thread, 1)["detail"]["sessionId"]
    assert step["usage"]["inputTokens"] == 100
    other.uwf("verify")


def test_a_strangers_memory_is_not_restored_unasked(
    mindful: Box, tmp_path: Path
) -> None:
    thread, hub = share(mindful, tmp_path, "--memory")
    other = second(mindful, tmp_path, hub)

    finish_on(other, thread)

    step = other.step(thread, 3)
    first = other.step(thread, 1)["detail"]["sessionId"]
    assert step["detail"]["sessionId"] != first
    assert any("--memory" in warning for warning in step["warnings"])
    assert "# The task of this thread" in step["detail"]["assembledPrompt"]


def test_without_memory_nothing_of_it_leaves_the_machine(
    mindful: Box, tmp_path: Path
) -> None:
    thread, hub = share(mindful, tmp_path)

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
    other = second(mindful, tmp_path, hub)
    told = finish_on(other, thread, "--memory")
    assert told.count("# The task of this thread") == 1
    assert "I saw a walrus." in told


def test_a_session_that_was_deleted_is_put_back(mindful: Box) -> None:
    play(mindful, *says(done("first", "I saw a walrus."), bad("names"), done("second")))
    thread = mindful.start()
    mindful.uwf("thread", "exec", thread, "-c", "2")
    forget_sessions(mindful)

    mindful.uwf("thread", "exec", thread)

    assert asked(mindful)[-1].count("# The task of this thread") == 1
    assert warned(mindful.step(thread, 3)) == []


def test_a_session_that_others_went_on_with_is_left_alone(mindful: Box) -> None:
    if mindful.kind == "opencode":
        pytest.skip("its sessions are in a database of its own")
    play(mindful, *says(done("first", "I saw a walrus."), bad("names"), done("second")))
    thread = mindful.start()
    mindful.uwf("thread", "exec", thread, "-c", "2")
    old = mindful.step(thread, 1)["detail"]["sessionId"]
    short = old[:8] if mindful.kind == "gemini" else old
    (file,) = mindful.home.rglob(f"*{short}.jsonl")
    changed = file.read_bytes() + b"\n"
    file.write_bytes(changed)

    mindful.uwf("thread", "exec", thread)

    assert file.read_bytes() == changed
    assert mindful.step(thread, 3)["detail"]["sessionId"] != old
    assert "I saw a walrus." in asked(mindful)[-1]
    assert asked(mindful)[-1].count("# The task of this thread") == 1
    assert warned(mindful.step(thread, 3)) == []


def forget_sessions(box: Box) -> None:
    """Do what a clean-up of the CLI's own would do."""
    if box.kind == "opencode":
        shutil.rmtree(box.home / ".local")
        return
    folders = ("projects", "sessions", "chats")
    found = [
        path
        for path in box.home.rglob("*.jsonl")
        if any(folder in path.parts for folder in folders)
    ]
    for path in found:
        path.unlink()
    assert len(found) == 2


def test_a_fork_goes_on_from_its_step_in_a_session_of_its_own(mindful: Box) -> None:
    play(
        mindful,
        *says(done("first", "I saw a walrus."), bad("names"), done("octopus")),
        *says(bad("more"), done("otherwise")),
    )
    thread = mindful.start()
    mindful.uwf("thread", "exec", thread, "-c", "3")
    fork = mindful.uwf("thread", "fork", thread, "--at", "1", "--json").json["threadId"]

    mindful.uwf("thread", "exec", fork, "-c", "2")

    told = asked(mindful)[-1]
    assert "I saw a walrus." in told
    assert "octopus" not in told
    assert told.count("# The task of this thread") == 1
    names = {mindful.step(thread, 3)["detail"]["sessionId"]}
    assert mindful.step(fork, 3)["detail"]["sessionId"] not in names
    assert warned(mindful.step(fork, 3)) == []
    assert mindful.step(fork, 3)["usage"]["inputTokens"] == 100


def test_a_secret_is_masked_in_the_memory(mindful: Box) -> None:
    secret = "kV9-pq27Zx-walrus-83"  # noqa: S105 - made up
    mindful.env = {"SERVICE_API_KEY": secret}
    play(mindful, *says(done("first", f"I read {secret}.")))
    thread = mindful.start()

    mindful.uwf("thread", "exec", thread)

    found = subprocess.run(
        [
            *("git", f"--git-dir={mindful.work}/.git/uwf", "grep", "-c", secret),
            f"refs/uwf/memory/{thread}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stdout) == (1, "")


def test_a_hang_is_ended_and_gone_on_from(box: Box) -> None:
    # opencode takes long before it asks, and names its session with its answer.
    idle = 12 if box.kind == "opencode" else 3
    box.uwf("config", "set", "limits.idleSeconds", str(idle))
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
