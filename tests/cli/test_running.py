"""Threads that another process runs: background, join, stop, pause, interrupts."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tests.builders import make_workflow, reply
from tests.program import (
    Program,
    is_alive,
    make_program,
    wait,
    wait_until,
    write_dead_record,
)
from uwfgit.store.canonical import Json

pytestmark = pytest.mark.slow


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """A folder whose agents do not outlive the test."""
    made = make_program(tmp_path / "user")
    yield made
    made.let_go()
    for pid in (*made.pids("agents"), *made.pids("strays")):
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def thread(program: Program) -> str:
    return program.start()


@pytest.fixture
def running(program: Program, thread: str) -> Json:
    """The object of a thread that a worker runs, its agent at work."""
    started = program.json(
        "thread", "exec", thread, "--background", "--agent", program.patient_agent()
    )
    wait_until(lambda: len(program.pids("strays")) == 1)
    return started


def _status(program: Program, thread: str) -> str:
    status: str = program.json("thread", "show", thread)["status"]
    return status


def test_background_returns_while_the_thread_is_held(
    program: Program, thread: str, running: Json
) -> None:
    assert running["threadId"] == thread
    assert (running["status"], running["done"], running["steps"]) == (
        "running",
        False,
        [],
    )
    assert is_alive(running["background"]["pid"])
    assert _status(program, thread) == "running"


def test_an_agent_of_a_worker_cannot_speak_for_it(
    program: Program, thread: str
) -> None:
    path = program.folder / "telling"
    path.write_text('#!/bin/sh\nenv > "$UWF_CWD/env"\ncat "$UWF_CWD/reply"\n')
    path.chmod(0o700)
    (program.folder / "reply").write_text(reply(plan="p"))

    words = ("thread", "exec", thread, "--agent", f"stdio:{path}")
    program.json(*words, "--background")
    program.json("thread", "join", thread)

    assert "UWF_READY" not in (program.folder / "env").read_text()


def test_a_worker_has_a_session_of_its_own_and_no_stdin(running: Json) -> None:
    pid = running["background"]["pid"]

    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/fd/0").readlink() == Path("/dev/null")


def test_a_worker_writes_what_it_does_into_its_log(
    program: Program, thread: str, running: Json
) -> None:
    program.let_go()

    program.json("thread", "join", thread)

    log = Path(running["background"]["log"])
    assert log == program.store / "uwf" / "logs" / f"{thread}.log"
    assert "step 1" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0


def test_join_tells_the_steps_that_were_done_while_it_waited(
    program: Program, thread: str, running: Json
) -> None:
    joining = program.spawn("thread", "join", thread, "--json")
    assert is_alive(running["background"]["pid"])
    program.let_go()

    joined = wait(joining)

    assert joined.code == 0
    assert joined.json["status"] == "idle"
    assert [(s["number"], s["role"], s["status"]) for s in joined.json["steps"]] in (
        [(1, "worker", "done")],
        # It may have been slower to begin than the agent to end.
        [],
    )


def test_join_that_runs_out_of_time_says_running_and_exits_4(
    program: Program, thread: str, running: Json
) -> None:
    words = ("thread", "join", thread, "--timeout", "0.2")
    joined, told = program.run(*words, "--json"), program.run(*words)

    assert (joined.code, told.err.startswith("still running: ")) == (4, True)
    assert joined.json["status"] == "running"
    assert is_alive(running["background"]["pid"])


def test_the_note_of_a_poke_reaches_the_worker_whatever_it_looks_like(
    program: Program, thread: str
) -> None:
    note = "@notes: é\n- don't"
    agent = program.script({"worker": [reply(plan="p"), reply(plan="q")]})
    program.json("thread", "exec", thread, "--agent", agent)
    (program.folder / "note.txt").write_text(note)

    words = ("thread", "poke", thread, "-p", "@note.txt", "--agent", agent)
    program.json(*words, "--background")
    program.json("thread", "join", thread)

    assert program.json("step", "show", f"{thread}:1")["note"] == note


def test_a_worker_that_cannot_hold_the_thread_fails_with_its_reason(
    program: Program, thread: str, running: Json
) -> None:
    pid = running["background"]["pid"]

    second = program.run("thread", "exec", thread, "--background", "--json")

    assert (second.code, second.error["code"]) == (4, "locked")
    assert f"pid {pid}" in second.error["message"]
    assert (second.json["status"], second.json["background"]) == ("running", None)
    assert second.err == ""


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        pytest.param(["resume"], 1, "state", id="nothing-to-resume"),
        pytest.param(["exec", "--agent", "nobody"], 1, "config", id="no-such-agent"),
    ],
)
def test_background_fails_as_the_command_itself_would(
    program: Program, thread: str, words: list[str], code: int, error: str
) -> None:
    verb, *flags = words

    failed = program.run("thread", verb, thread, *flags, "--background", "--json")

    assert (failed.code, failed.error["code"]) == (code, error)


def test_background_of_a_thread_with_nothing_to_run_says_how_it_stands(
    program: Program, thread: str
) -> None:
    agent = program.script({"worker": ["---\n$status: $SUSPEND\nreason: why?\n---\n"]})
    assert program.run("thread", "exec", thread, "--agent", agent).code == 3

    ended = program.run("thread", "exec", thread, "--background", "--json")

    assert (ended.code, ended.json["status"]) == (3, "suspended")


def test_stop_ends_the_agent_with_all_it_started_and_keeps_the_attempt(
    program: Program, thread: str, running: Json
) -> None:
    pids = [*program.pids("agents"), *program.pids("strays")]

    stopped = program.json("thread", "stop", thread)

    assert stopped == {"threadId": thread, "status": "suspended", "stopped": True}
    assert [pid for pid in pids if is_alive(pid)] == []
    wait_until(lambda: not is_alive(running["background"]["pid"]))
    assert program.subjects(f"thread/{thread}")[-1].startswith("worker: failed")
    joined = program.run("thread", "join", thread, "--json")
    assert (joined.code, joined.json["status"]) == (5, "suspended")


def test_stop_of_a_thread_that_does_not_run_changes_nothing(
    program: Program, thread: str
) -> None:
    stopped = program.json("thread", "stop", thread)

    assert stopped == {"threadId": thread, "status": "idle", "stopped": False}
    assert len(program.subjects(f"thread/{thread}")) == 1


def test_a_record_of_a_dead_holder_is_nobody_to_stop(
    program: Program, thread: str
) -> None:
    write_dead_record(program.store / "uwf" / "locks" / thread, pid=os.getpid())

    assert program.json("thread", "stop", thread)["stopped"] is False


def test_join_and_show_tell_that_a_run_was_killed(
    program: Program, thread: str, running: Json
) -> None:
    pid = running["background"]["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid))

    joined = program.run("thread", "join", thread, "--json")
    shown = program.run("thread", "show", thread)
    listed = program.json("thread", "list")["items"]
    agent = program.script({"worker": [reply(plan="p")]})
    ended = program.run("thread", "exec", thread, "--agent", agent)
    again = program.run("thread", "join", thread, "--json")

    assert (joined.code, joined.error["code"]) == (1, "killed")
    assert f"pid {pid} " in joined.error["message"]
    assert f"uwf thread exec {thread}" in joined.error["hint"]
    assert f"pid {pid} " in shown.err
    assert f"end it: uwf thread stop {thread}" in shown.err
    assert [item["status"] for item in listed] == ["idle"]
    assert (ended.code, again.code, again.json["error"]) == (0, 0, None)


@pytest.mark.parametrize("words", [("stop",), ("cancel",), ("exec", "--agent", "A")])
def test_what_the_agent_of_a_killed_run_left_at_work_is_ended(
    program: Program, thread: str, running: Json, words: tuple[str, ...]
) -> None:
    pid = running["background"]["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid))
    left = [*program.pids("agents"), *program.pids("strays")]
    assert all(map(is_alive, left))
    agent = program.script({"worker": [reply(plan="p")]})
    words = tuple(agent if word == "A" else word for word in words)

    ended = program.run("thread", words[0], thread, *words[1:])

    assert ended.code == 0
    # The shell, the sleep it waits in, and what left its session.
    assert re.search(r"ended [23] processes that a killed run had left", ended.err)
    assert not any(map(is_alive, left))
    assert [*(program.store / "uwf" / "live").iterdir()] == []


def test_what_an_ended_run_left_is_no_killed_run_s(
    program: Program, thread: str
) -> None:
    server = program.folder / "server"
    server.write_text(
        "#!/bin/sh\ncat > /dev/null\nsetsid sleep 600 > /dev/null 2>&1 &\n"
        'echo $! >> "$UWF_CWD/strays"\ncat "$UWF_CWD/reply"\n'
    )
    server.chmod(0o700)
    (program.folder / "reply").write_text(reply(plan="p"))
    assert program.run("thread", "exec", thread, "--agent", f"stdio:{server}").code == 0
    write_dead_record(program.store / "uwf" / "locks" / thread, pid=os.getpid())

    assert program.json("thread", "stop", thread)["stopped"] is False

    assert all(map(is_alive, program.pids("strays")))


def _closed_terminal(program: Program, *words: str) -> int:
    """Run the program on a terminal that is closed while the agent works."""
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(program.folder)
        command = [*program.before, *words]
        os.execve(command[0], command, program.shell)  # noqa: S606 - this very program
    wait_until(lambda: len(program.pids("strays")) == 1)
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_terminal_that_is_closed_stops_the_agent_and_keeps_the_attempt(
    program: Program, thread: str
) -> None:
    words = ("thread", "exec", thread, "--agent", program.patient_agent())

    code = _closed_terminal(program, *words)

    assert code == 143
    pids = [*program.pids("agents"), *program.pids("strays")]
    assert [pid for pid in pids if is_alive(pid)] == []
    assert program.subjects(f"thread/{thread}")[-1].startswith("worker: failed")


def test_many_interrupts_are_one(program: Program, thread: str) -> None:
    agent = program.patient_agent()
    process = program.spawn("thread", "exec", thread, "--agent", agent)
    wait_until(lambda: len(program.pids("strays")) == 1)

    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.03)
    ended = wait(process)

    assert ended.code == 130
    assert "Traceback" not in ended.err
    assert program.subjects(f"thread/{thread}")[-1].startswith("worker: failed")
    program.fsck()


def test_an_interrupt_while_the_program_starts_is_no_traceback(
    program: Program, thread: str
) -> None:
    codes = set()
    for wait_ms in range(60, 360, 60):
        process = program.spawn("thread", "show", thread)
        time.sleep(wait_ms / 1000)
        process.send_signal(signal.SIGINT)
        ended = wait(process)
        assert "cli/start.py" not in ended.err, ended.err
        # Python itself, not yet whole, leaves with 1.
        if "Fatal Python error" not in ended.err:
            codes.add(ended.code)

    # Before its first line of ours, Python dies of the signal itself.
    assert codes <= {0, 130, -signal.SIGINT}


@pytest.mark.parametrize("words", [["pause"], ["stop", "--after-step"]], ids=" ".join)
def test_a_paused_run_finishes_its_step_and_runs_no_further(
    program: Program, thread: str, words: list[str]
) -> None:
    agent = program.patient_agent()
    program.json("thread", "exec", thread, "--all", "--background", "--agent", agent)
    wait_until(lambda: len(program.pids("agents")) == 1)

    paused = program.json("thread", words[0], thread, *words[1:])
    program.let_go()
    joined = program.json("thread", "join", thread)

    assert (paused["status"], paused["stopped"], paused["pausing"]) == (
        "running",
        False,
        True,
    )
    assert joined["status"] == "idle"
    assert len(program.pids("agents")) == 1
    assert program.json("thread", "show", thread)["steps"] == 1


def test_a_pause_that_comes_too_late_stops_no_later_run_and_goes_with_it(
    program: Program, thread: str
) -> None:
    live = program.store / "uwf" / "live"
    live.mkdir(exist_ok=True)
    late = live / f"{thread}.pause"
    late.write_text("somewhere 1 1")
    good = {"worker": [reply(plan="p")], "critic": [reply("good")]}

    ended = program.json(
        "thread", "exec", thread, "--all", "--agent", program.script(good)
    )

    assert (ended["status"], late.exists()) == ("end", False)


@pytest.mark.parametrize(
    ("verb", "status", "fact"),
    [("cancel", "cancelled", "cancelled"), ("rm", "suspended", "removed")],
)
def test_cancel_and_rm_of_a_running_thread_stop_it_first(
    program: Program, thread: str, running: Json, verb: str, status: str, fact: str
) -> None:
    pids = [*program.pids("agents"), *program.pids("strays")]

    done = program.json("thread", verb, thread)

    assert done.pop("children", []) == []
    assert done == {"threadId": thread, "status": status, fact: True}
    assert [pid for pid in pids if is_alive(pid)] == []
    wait_until(lambda: not is_alive(running["background"]["pid"]))


@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGINT, 130, id="ctrl-c"),
        pytest.param(signal.SIGTERM, 143, id="terminated"),
        pytest.param(signal.SIGHUP, 143, id="terminal-closed"),
    ],
)
@pytest.mark.parametrize("verb", ["exec", "resume", "poke"])
def test_an_interrupt_stops_the_agent_and_keeps_the_attempt(
    program: Program, thread: str, verb: str, number: signal.Signals, code: int
) -> None:
    words = _prepare(program, thread, verb)
    before = program.json("thread", "show", thread)
    process = program.spawn(*words, "--json")
    wait_until(lambda: len(program.pids("strays")) == 1)

    process.send_signal(number)
    ended = wait(process)

    assert ended.code == code, ended
    (step,) = ended.json["steps"]
    assert (step["status"], step["head"]) == ("error", before["head"])
    assert program.subjects(f"thread/{thread}")[-1].startswith("worker: failed")
    pids = [*program.pids("agents"), *program.pids("strays")]
    assert [pid for pid in pids if is_alive(pid)] == []
    program.fsck()


def _prepare(program: Program, thread: str, verb: str) -> list[str]:
    """Bring a thread to where the command can run its worker."""
    first = {
        "exec": None,
        "resume": "---\n$status: $SUSPEND\nreason: why?\n---\n",
        "poke": reply(plan="p"),
    }[verb]
    if first is not None:
        agent = program.script({"worker": [first]})
        program.run("thread", "exec", thread, "--agent", agent)
    note = ["-p", "Again."] if verb == "poke" else []
    return ["thread", verb, thread, *note, "--agent", program.patient_agent()]


def test_an_interrupt_says_how_to_go_on(program: Program, thread: str) -> None:
    agent = program.patient_agent()
    process = program.spawn("thread", "exec", thread, "--agent", agent)
    wait_until(lambda: len(program.pids("strays")) == 1)

    process.send_signal(signal.SIGINT)
    ended = wait(process)

    assert f"uwf thread resume {thread}" in ended.err


_PATIENT_PROGRAM: Final = """
import runpy
from uwfgit.agents.children import stopping
stopping.STOP_SECONDS = 6_000
runpy.run_module("uwfgit", run_name="__main__", alter_sys=True)
"""


def test_a_second_interrupt_does_not_wait_for_a_stubborn_agent(
    program: Program, thread: str
) -> None:
    path = program.folder / "stubborn"
    path.write_text(
        "#!/bin/sh\ntrap '' TERM\ncat > /dev/null\n"
        'echo $$ >> "$UWF_CWD/agents"\nwhile :; do sleep 0.05; done\n'
    )
    path.chmod(0o700)
    # One interrupt would wait for longer than anyone does.
    patient = (sys.executable, "-c", _PATIENT_PROGRAM)
    process = replace(program, before=patient).spawn(
        "thread", "exec", thread, "--agent", f"stdio:{path}"
    )
    wait_until(lambda: len(program.pids("agents")) == 1)

    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(signal.SIGINT)

    assert wait(process).code == 130
    assert not is_alive(program.pids("agents")[0])
    assert program.subjects(f"thread/{thread}")[-1].startswith("worker: failed")


def test_steps_wait_for_a_slot_and_say_so(program: Program) -> None:
    (program.home / "config.yaml").write_text("concurrency: {maxRunning: 1}\n")
    first, second = program.start(), program.start()
    agent = program.patient_agent()
    program.json("thread", "exec", first, "--background", "--agent", agent)
    wait_until(lambda: len(program.pids("agents")) == 1)

    program.json("thread", "exec", second, "--background", "--agent", agent)
    log = program.store / "uwf" / "logs" / f"{second}.log"
    wait_until(lambda: "waiting" in log.read_text())
    agents_at_once = len(program.pids("agents"))
    program.let_go()
    statuses = [
        program.json("thread", "join", name)["status"] for name in (first, second)
    ]

    assert agents_at_once == 1
    assert statuses == ["idle", "idle"]
    assert log.read_text().count("waiting") == 1


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_an_interrupt_while_waiting_for_a_slot_leaves_the_thread_as_it_was(
    program: Program, number: signal.Signals, code: int
) -> None:
    (program.home / "config.yaml").write_text("concurrency: {maxRunning: 1}\n")
    first, second = program.start(), program.start()
    agent = program.patient_agent()
    program.json("thread", "exec", first, "--background", "--agent", agent)
    wait_until(lambda: len(program.pids("agents")) == 1)
    process = program.spawn("thread", "exec", second, "--agent", agent)
    assert process.stderr is not None
    assert any("waiting" in line for line in process.stderr)

    process.send_signal(number)
    ended = wait(process)

    assert ended.code == code
    assert _status(program, second) == "idle"
    assert len(program.subjects(f"thread/{second}")) == 1


def test_a_run_inside_a_step_needs_no_slot_of_its_own(
    program: Program, thread: str
) -> None:
    (program.home / "config.yaml").write_text("concurrency: {maxRunning: 1}\n")
    inner = program.start()
    inside = program.script({"worker": [reply(plan="inner")]})
    path = program.folder / "nesting"
    path.write_text(
        f"#!/bin/sh\ncat > /dev/null\nuwf thread exec {inner} --agent {inside} >&2 &&\n"
        f"cat reply\n"
    )
    path.chmod(0o700)
    (program.folder / "reply").write_text(reply(plan="outer"))

    ended = program.run("thread", "exec", thread, "--agent", f"stdio:{path}")

    assert ended.code == 0, ended
    assert _steps(program, inner) == _steps(program, thread) == 1


def _steps(program: Program, thread: str) -> int:
    steps: int = program.json("thread", "show", thread)["steps"]
    return steps


def test_eight_runs_of_one_thread_are_one_run_and_seven_refusals(
    program: Program, thread: str
) -> None:
    agent = program.patient_agent()
    runs = [
        program.spawn("thread", "exec", thread, "--agent", agent, "--json")
        for _ in range(8)
    ]
    wait_until(lambda: sum(run.poll() is not None for run in runs) == 7)
    program.let_go()

    ended = [wait(run) for run in runs]

    assert sorted(each.code for each in ended) == [0] + [4] * 7
    winner = next(run.pid for run in runs if run.returncode == 0)
    messages = [each.error["message"] for each in ended if each.code]
    assert all(f"pid {winner} " in message for message in messages)
    assert program.subjects(f"thread/{thread}")[1:] == ["worker: done"]


def test_eight_threads_run_at_most_four_steps_at_once(tmp_path: Path) -> None:
    program = make_program(tmp_path / "user", make_workflow())
    path = program.folder / "counting"
    # Each notes how many are at work while it is; sharing a folder of marks.
    path.write_text(
        '#!/bin/sh\ncat > /dev/null\nmkdir -p "$UWF_CWD/at-work"\n'
        'touch "$UWF_CWD/at-work/$$"\nsleep 0.4\n'
        'ls "$UWF_CWD/at-work" | wc -l >> "$UWF_CWD/counts"\n'
        'rm "$UWF_CWD/at-work/$$"\ncat "$UWF_CWD/reply"\n'
    )
    path.chmod(0o700)
    (program.folder / "reply").write_text(reply(plan="p"))
    threads = [program.start() for _ in range(8)]

    runs = [
        program.spawn("thread", "exec", name, "--agent", f"stdio:{path}")
        for name in threads
    ]
    codes = [wait(run).code for run in runs]

    assert codes == [0] * 8
    counts = [int(line) for line in (program.folder / "counts").read_text().split()]
    assert len(counts) == 8
    assert 1 < max(counts) <= 4


def test_steps_that_were_done_are_told_when_a_later_one_cannot_begin(
    program: Program, thread: str
) -> None:
    script = program.script({"worker": [reply(plan="p")]})
    (program.home / "config.yaml").write_text(
        f"agentOverrides: {{work: {{worker: {json.dumps(script)}}}}}\n"
    )

    ended = program.run("thread", "exec", thread, "--all", "--json")

    assert ended.code == 1
    assert [(s["role"], s["status"]) for s in ended.json["steps"]] == [
        ("worker", "done"),
        ("critic", None),
    ]
    assert "agent" in ended.json["steps"][1]["error"]
    assert ended.err == ""
