"""What agents remember goes with a thread from one worker to the next."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.builders import git
from tests.code.repo import Repo
from tests.fleet.seats import Seat
from tests.program import PATIENCE

CLAUDE = Path(__file__).parent.parent / "agents" / "fake_claude.py"
DONE = '---\n$status: done\ntext: "{}"\n---\n\n{}\n'
BAD = "---\n$status: bad\nwhy: long\n---\n\nNot good.\n"
GOOD = "---\n$status: good\n---\n\nGood.\n"
ASK = "---\n$status: $SUSPEND\nreason: Which one?\n---\n\nWell.\n"


class Machine(Seat):
    """A worker whose agent keeps its sessions as Claude Code does."""

    def __init__(self, folder: Path, name: str, remote: Path, code: Path) -> None:
        self.replies = folder / f"{name}.replies"
        self.remote = str(remote)
        super().__init__(folder, name, remote, FAKE_REPLIES=str(self.replies))
        agent = self.folder / "agent"
        agent.write_text(f'#!/bin/sh\nexec {sys.executable} {CLAUDE} "$@"\n')
        self.uwf("config", "set", "agents.cc.kind", "claude-code")
        self.uwf("config", "set", "agents.cc.command", str(agent))
        self.uwf("config", "set", "defaultAgent", "cc")
        self.place = self.folder / "code"
        git(code, "clone", "--quiet", str(code), str(self.place))

    def carry_memory(self) -> None:
        self.uwf("remote", "rm", "origin")
        self.uwf("remote", "add", "--memory", "origin", self.remote)

    def take(self, *answers: str, how: tuple[str, ...]) -> list[str]:
        """Run one thread; return what the session held after each run."""
        self.replies.write_text("\n".join(json.dumps(text) for text in answers))
        words = ("worker", "--once", "--trust-pushers", "--name", self.name, "--json")
        with self.start(*words, "--repo", str(self.place), *how) as worker:
            out, err = worker.communicate(timeout=PATIENCE)
        assert worker.returncode == 0, err
        assert json.loads(out)["ran"] is not None, err
        heard = Path(f"{self.replies}.heard").read_text()
        return [json.loads(line) for line in heard.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("how", [(), ("--worktrees",)], ids=["folder", "worktrees"])
def test_the_second_machine_has_what_the_first_one_s_agent_remembers(
    tmp_path: Path, how: tuple[str, ...]
) -> None:
    remote, code = tmp_path / "bare.git", tmp_path / "code.git"
    for path in (remote, code):
        git(path, "init", "--quiet", "--bare", "--initial-branch=main", str(path))
    git(code, "fetch", "--quiet", str(Repo.make(tmp_path / "first").root), "main:main")
    ada = Seat(tmp_path, "ada", remote)
    bob, cleo = (Machine(tmp_path, name, remote, code) for name in ("bob", "cleo"))
    for machine in (bob, cleo):
        machine.carry_memory()
    (thread,) = ada.queue(1)

    bob.take(DONE.format("one", "I saw a walrus."), ASK, how=how)
    assert ada.items()[thread]["state"] == "waiting"
    ada.uwf("fleet", "retry")
    heard = cleo.take(BAD, DONE.format("two", "Again."), GOOD, how=how)

    # The session that the first machine began: what was asked and said there too.
    assert len(heard[1].splitlines()) == 4
    assert "I saw a walrus." in heard[1]
    assert ada.items()[thread]["state"] == "done"
    ada.uwf("pull")
    step = json.loads(ada.uwf("step", "show", f"{thread}:4", "--json"))
    assert (step["role"], step["warnings"]) == ("writer", [])
    ada.uwf("verify")
