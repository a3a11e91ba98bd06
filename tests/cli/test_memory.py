"""What agents remember, by the commands: shared when asked for, forgotten, asked."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.cli.seats import Seat, make_seat
from tests.keys import make_keys, needs_ssh
from uwfgit.ids import ThreadId
from uwfgit.store.layout import memory_ref

CLAUDE: Final = Path(__file__).parent.parent / "agents" / "fake_claude.py"
DONE: Final = '---\n$status: done\ntext: "{}"\n---\n\n{}\n'
BAD: Final = '---\n$status: bad\nwhy: "{}"\n---\n\nNot good.\n'
HERE: Final = ("--trust", "--cwd", ".")


@dataclass(slots=True)
class Desk:
    """A person whose agent says what it is told to."""

    seat: Seat
    replies: Path

    def run(self, thread: str, *answers: str, how: tuple[str, ...] = ()) -> list[str]:
        """Run as many steps; return what the session held after each."""
        self.replies.write_text("\n".join(json.dumps(text) for text in answers))
        heard = Path(f"{self.replies}.heard")
        heard.unlink(missing_ok=True)
        self.seat.monkeypatch.setenv("FAKE_REPLIES", str(self.replies))
        self.seat.do("thread", "exec", thread, "-c", str(len(answers)), *how)
        return [json.loads(line) for line in heard.read_text().splitlines()]

    def warnings(self, thread: str, number: int) -> list[str]:
        step = self.seat.do("step", "show", f"{thread}:{number}", "--json").json
        found: list[str] = step["warnings"]
        return found

    def memory(self, thread: str) -> list[str]:
        """List the commits of a thread's memory."""
        store = self.seat.do("store", "path").out.strip()
        done = subprocess.run(
            [
                *("git", f"--git-dir={store}", "log", "--format=%s"),
                *(memory_ref(ThreadId(thread)), "--"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        return [line for line in done.stdout.splitlines() if line.startswith("memory")]


Make = Callable[[str], Desk]


@pytest.fixture
def make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Make:
    """Make a person with a repository, a store and an agent."""
    hub = tmp_path / "hub.git"
    subprocess.run(["git", "init", "--quiet", "--bare", hub], check=True)

    def made(name: str) -> Desk:
        seat = make_seat(tmp_path, name, monkeypatch, capsys, code=None)
        subprocess.run(["git", "init", "--quiet", seat.folder], check=True)
        seat.do("init")
        seat.do("remote", "add", "origin", str(hub))
        seat.do("config", "set", "agents.cc.kind", "claude-code")
        seat.do("config", "set", "agents.cc.command", str(CLAUDE))
        seat.do("config", "set", "defaultAgent", "cc")
        return Desk(seat=seat, replies=tmp_path / f"{name}.replies")

    return made


def start(desk: Desk) -> str:
    done = desk.seat.do("thread", "start", "ping.yaml", "-p", "the task", "--json")
    thread: str = done.json["threadId"]
    return thread


@pytest.fixture
def ada(make: Make) -> Desk:
    return make("Ada")


def shared(ada: Desk, *flags: str) -> str:
    thread = start(ada)
    ada.run(thread, DONE.format("one", "I saw a walrus."))
    ada.seat.do("push", "origin", thread, *flags)
    return thread


def test_push_leaves_memory_here_and_says_so(ada: Desk, make: Make) -> None:
    thread = start(ada)
    ada.run(thread, DONE.format("one", "I saw a walrus."))

    pushed = ada.seat.do("push", "origin", thread)

    assert "what agents remember of 1 thread stays here" in pushed.err
    bob = make("Bob")
    bob.seat.do("pull")
    assert bob.memory(thread) == []


def test_a_second_machine_goes_on_in_the_session_of_the_first(
    ada: Desk, make: Make
) -> None:
    thread = shared(ada, "--memory")
    bob = make("Bob")
    bob.seat.do("pull")

    heard = bob.run(
        thread, BAD.format("long"), DONE.format("two", ""), how=(*HERE, "--memory")
    )

    assert "I saw a walrus." in heard[1]
    assert heard[1].count("# The task of this thread") == 1
    assert bob.warnings(thread, 3) == []


def test_others_memory_is_left_out_unasked_and_the_screen_names_it(
    ada: Desk, make: Make
) -> None:
    thread = shared(ada, "--memory")
    bob = make("Bob")
    bob.seat.do("pull")

    refused = bob.seat("thread", "exec", thread, "--cwd", ".")
    checked = bob.seat("thread", "check", thread).out
    heard = bob.run(thread, BAD.format("long"), DONE.format("two", ""), how=HERE)

    assert "memory:" in refused.err
    assert "by Ada, which nothing proves" in refused.err
    assert f"uwf thread exec {thread} --memory\n" in checked
    assert len(heard[1].splitlines()) == 2
    (warning,) = bob.warnings(thread, 3)
    assert "(--memory does)" in warning


@needs_ssh
@pytest.mark.parametrize("trusted", [True, False])
def test_memory_that_someone_trusted_signed_is_restored(
    ada: Desk, make: Make, tmp_path: Path, *, trusted: bool
) -> None:
    keys = make_keys(tmp_path / "keys", ada="ada@example.org", eve="eve@example.org")
    keys.set("uwf.sign=steps")
    thread = shared(ada, "--memory")
    bob = make("Bob")
    bob.seat.do("pull")
    keys.use("bob")
    who = "ada@example.org" if trusted else "eve@example.org"
    bob.seat.do("config", "set", "trust", json.dumps([who]))

    heard = bob.run(thread, BAD.format("long"), DONE.format("two", ""), how=HERE)

    # The whole session of the first machine, or one that was told all again.
    assert len(heard[1].splitlines()) == (4 if trusted else 2)
    warned = [text for text in bob.warnings(thread, 3) if "--memory" in text]
    assert (warned == []) == trusted


@pytest.mark.slow
def test_two_machines_that_both_went_on_keep_both_memories(
    ada: Desk, make: Make
) -> None:
    thread = shared(ada, "--memory")
    bob = make("Bob")
    bob.seat.do("pull")
    bob.run(thread, BAD.format("long"), how=(*HERE, "--memory"))
    bob.seat.do("push", "origin", thread, "--memory")
    other = start(ada)
    ada.run(other, DONE.format("x", ""))
    ada.seat.do("thread", "poke", thread, "-p", "x", "--background", code=0)
    ada.seat("thread", "join", thread)

    ada.seat("pull")

    kept = ada.memory(thread)
    assert any("of checker" in line for line in kept)
    assert sum("of writer" in line for line in kept) >= 1
    ada.seat.do("push", "origin", thread, "--memory", code=1)


def test_forgotten_memory_is_gone_and_the_thread_whole(ada: Desk) -> None:
    thread = start(ada)
    ada.run(thread, DONE.format("one", "I saw a walrus."), BAD.format("long"))

    done = ada.seat.do("thread", "forget", thread, "--json")
    heard = ada.run(thread, DONE.format("two", ""))

    assert done.json == {"threadId": thread, "forgotten": 2}
    assert len(heard[0].splitlines()) == 2
    assert len(ada.memory(thread)) == 1
    ada.seat.do("verify", thread)
    ada.seat.do("thread", "forget", start(ada), code=1)


def test_memory_can_be_forgotten_from_a_step_on(ada: Desk) -> None:
    thread = start(ada)
    ada.run(thread, DONE.format("one", ""), BAD.format("long"), DONE.format("two", ""))

    done = ada.seat.do("thread", "forget", thread, "--at", "2", "--json")

    assert done.json["forgotten"] == 2
    assert ada.memory(thread) == ["memory of writer: step 1, run 1"]


def test_memory_goes_with_its_thread_out_of_the_trash(ada: Desk) -> None:
    thread = start(ada)
    ada.run(thread, DONE.format("one", ""))
    ada.seat.do("thread", "rm", thread)
    assert len(ada.memory(thread)) == 1

    ada.seat.do("gc", "--prune=now", "--yes")

    assert ada.memory(thread) == []


def test_fresh_begins_a_new_session(ada: Desk) -> None:
    thread = start(ada)
    ada.run(thread, DONE.format("one", "I saw a walrus."), BAD.format("long"))

    heard = ada.run(thread, DONE.format("two", ""), how=("--fresh",))

    assert len(heard[0].splitlines()) == 2
    assert "I saw a walrus." in heard[0]


def test_a_thread_may_keep_no_memory_and_its_forks_keep_none(ada: Desk) -> None:
    started = ada.seat.do(
        *("thread", "start", "ping.yaml", "-p", "the task", "--no-memory", "--json")
    )
    thread: str = started.json["threadId"]
    ada.run(thread, DONE.format("one", "I saw a walrus."), BAD.format("long"))
    fork = ada.seat.do("thread", "fork", thread, "--json").json["threadId"]

    heard = ada.run(fork, DONE.format("two", ""))

    assert ada.memory(thread) == ada.memory(fork) == []
    # Told all again, in a session of its own.
    assert len(heard[0].splitlines()) == 2
    other = start(ada)
    ada.run(other, DONE.format("one", ""))
    assert len(ada.memory(other)) == 1


def test_another_agent_has_the_full_context_and_its_own_name(ada: Desk) -> None:
    thread = start(ada)
    ada.run(thread, DONE.format("one", "I saw a walrus."), BAD.format("long"))
    ada.seat.do("config", "set", "agents.other.kind", "claude-code")
    ada.seat.do("config", "set", "agents.other.command", str(CLAUDE))

    heard = ada.run(thread, DONE.format("two", ""), how=("--agent", "other"))

    assert len(heard[0].splitlines()) == 2
    assert "I saw a walrus." in heard[0]
    assert "# The task of this thread" in heard[0]
    items = ada.seat.do("step", "list", thread, "--json").json["items"]
    assert [item["agent"] for item in items] == ["cc", "cc", "other"]


def test_an_old_step_is_asked_in_a_copy_of_its_session(ada: Desk) -> None:
    thread = start(ada)
    ada.run(thread, DONE.format("one", "I saw a walrus."), BAD.format("long"))
    before = ada.seat.do("thread", "show", thread, "--json").json
    ada.replies.write_text(json.dumps("Because it was there."))
    heard = Path(f"{ada.replies}.heard")
    heard.unlink()

    asked = ada.seat.do("step", "ask", f"{thread}:1", "-p", "Why?", "--json").json

    assert (asked["answer"], asked["remembers"]) == ("Because it was there.", True)
    told = json.loads(heard.read_text())
    assert "I saw a walrus." in told
    assert told.splitlines()[-2].count("Why?") == 1
    assert ada.seat.do("thread", "show", thread, "--json").json == before


def test_open_prints_the_command_of_the_agents_own_session(ada: Desk) -> None:
    thread = start(ada)
    ada.run(thread, DONE.format("one", ""))
    step = ada.seat.do("step", "show", f"{thread}:1", "--json").json

    done = ada.seat.do("thread", "open", thread, "--print", "--json").json

    assert done["command"] == [str(CLAUDE), "--resume", step["detail"]["sessionId"]]
    assert (done["role"], done["cwd"]) == ("writer", step["cwd"])
