"""The program as a process of its own, in a folder with a workflow and agents."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.builders import (
    Clock,
    begin,
    git,
    make_ledger,
    make_workflow,
    reply,
    workflow_data,
    write_script,
)
from uwfgit.cli.frame.world import now_ms
from uwfgit.model.workflow.workflow import Workflow
from uwfgit.store.canonical import Json
from uwfgit.store.repository import init_store, open_store

PATIENCE = 60.0
"""Seconds after which a test is given up; never how long something takes."""

# Says who it is and what it started, then waits for a file to appear.
_PATIENT = """\
#!/bin/sh
cat > /dev/null
echo $$ >> "$UWF_CWD/agents"
setsid sleep 600 > /dev/null 2>&1 &
echo $! >> "$UWF_CWD/strays"
while [ ! -e "$UWF_CWD/go" ]; do sleep 0.05; done
kill $(cat "$UWF_CWD/strays") 2> /dev/null
cat "$UWF_CWD/reply"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run of the program ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Json:
        """The one object on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> Json:
        """The one error: alone on stderr, or in a refused run's object."""
        return json.loads(self.err or self.out)["error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A user's folder with a store, and the environment of their shell."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    before: Sequence[str] = (sys.executable, "-m", "uwfgit")

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def shell(self) -> dict[str, str]:
        """The whole environment; an empty value stands for none."""
        facts = {**_shell(self.folder), **self.environment}
        return {name: value for name, value in facts.items() if value}

    def spawn(
        self, *words: str, cwd: Path | None = None, **environment: str
    ) -> subprocess.Popen[str]:
        """Start the program in a session of its own."""
        return subprocess.Popen(
            [*self.before, *words],
            cwd=cwd or self.folder,
            env={**self.shell, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )

    def run(self, *words: str, cwd: Path | None = None, **environment: str) -> Ended:
        return wait(self.spawn(*words, cwd=cwd, **environment))

    def json(self, *words: str) -> Json:
        """Run it with success and give its object."""
        ended = self.run(*words, "--json")
        assert ended.code == 0, (words, ended)
        return ended.json

    def start(self) -> str:
        """Start a thread of the two-role workflow and give its id."""
        store = open_store(self.store, home=self.home, write=True, fsync=False)
        ticks = iter(now_ms, None)
        ledger = make_ledger(store, Clock(ticks), random=os.urandom)
        return begin(ledger, self.folder).thread

    def script(self, replies: Mapping[str, Json]) -> str:
        return write_script(self.folder, replies)

    def patient_agent(self) -> str:
        """Give an agent that answers when it is let go."""
        path = self.folder / "patient"
        path.write_text(_PATIENT)
        path.chmod(0o700)
        (self.folder / "reply").write_text(reply(plan="p"))
        return f"stdio:{shlex.quote(str(path))}"

    def let_go(self) -> None:
        """Let the patient agents answer."""
        (self.folder / "go").touch()

    def pids(self, name: str) -> list[int]:
        """Give the processes that the patient agents noted: ``agents``, ``strays``."""
        path = self.folder / name
        return [int(pid) for pid in path.read_text().split()] if path.exists() else []

    def fsck(self) -> str:
        """Let git check every object; fails when it finds anything wrong."""
        return git(self.store, "fsck", "--strict", "--no-dangling", "--no-progress")

    def subjects(self, ref: str) -> list[str]:
        """Give the subjects of a branch's events, oldest first."""
        log = git(self.store, "log", "--reverse", "--format=%s", ref)
        return log.splitlines()[1:]


def _shell(folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "UWF_HOME": str(folder / "home"),
        "UWF_STORE": str(folder / "store"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.com",
        "PYTHONPATH": str(Path(__file__).parent.parent),
    }


def make_program(folder: Path, workflow: Workflow | None = None) -> Program:
    """Make a folder with a store and a workflow file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "home").mkdir()
    work = workflow or make_workflow()
    (folder / f"{work.name}.yaml").write_bytes(workflow_data(work))
    program = Program(folder=folder)
    init_store(program.store, home=program.home, fsync=False)
    return program


def wait(process: subprocess.Popen[str]) -> Ended:
    """Wait for a program to end."""
    out, err = process.communicate(timeout=PATIENCE)
    return Ended(code=process.returncode, out=out, err=err)


def wait_until(fact: Callable[[], bool]) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < deadline, "waited for too long"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and is unreaped does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        with suppress(OSError):
            os.kill(pid, 0)
            return not Path("/proc/self").exists()
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def write_dead_record(path: Path, **facts: str | int | list[str]) -> None:
    """Write a lock's record as a holder that was killed leaves it."""
    record = {
        "pid": 999_999,
        "host": socket.gethostname(),
        "command": "uwf thread exec",
        "since": time.time_ns() // 1_000_000,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**record, **facts}))
