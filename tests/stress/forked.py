"""The program in a child of a process that has imported it already.

A whole command then takes as long as its work does: many run in a short time, and
a kill at a random instant hits the work, not the start of Python.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from tests.builders import Clock, git, make_ledger, make_workflow, reply, workflow_data
from uwfgit.cli.frame.app import main
from uwfgit.cli.frame.world import now_ms
from uwfgit.cli.store import cmd_cas, cmd_maintain
from uwfgit.cli.thread import background, cmd_thread
from uwfgit.cli.workflow import cmd_workflow
from uwfgit.ids import ThreadId, is_thread_id
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.store.repository import init_store, open_store

IMPORTED: Final = (background, cmd_cas, cmd_maintain, cmd_thread, cmd_workflow)
_AGENT: Final = """\
#!/bin/sh
cat > /dev/null
cat "$UWF_CWD/$UWF_ROLE.reply"
"""


def prepare_user(folder: Path) -> None:
    """Make a folder with a store, a workflow that loops, and an agent; go there."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = {
        "HOME": folder,
        "UWF_HOME": folder / "home",
        "UWF_STORE": folder / "store",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.com",
    }
    os.environ.update({name: str(value) for name, value in environment.items()})
    init_store(folder / "store", home=folder / "home")
    (folder / "work.yaml").write_bytes(workflow_data(make_workflow()))
    (folder / "agent").write_text(_AGENT)
    (folder / "agent").chmod(0o700)
    (folder / "worker.reply").write_text(reply(plan="p"))
    (folder / "critic.reply").write_text(reply("bad", reason="r"))
    os.chdir(folder)


def open_ledger(folder: Path) -> Ledger:
    """Open the user's store as it is now."""
    store = open_store(folder / "store", home=folder / "home")
    return make_ledger(store, Clock(iter(now_ms, None)), random=os.urandom)


def list_threads(folder: Path) -> list[ThreadId]:
    """Give the threads of the user's store, by plain git."""
    words = ("for-each-ref", "--format=%(refname:lstrip=3)", "refs/heads/thread/")
    names = git(folder / "store", *words)
    return [ThreadId(name) for name in names.split() if is_thread_id(name)]


def call(*words: str) -> tuple[int, str]:
    """Run a command to its end; give its exit code and all it printed."""
    pid, reader = start(*words)
    out = read_all(reader)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out


def start(*words: str) -> tuple[int, int]:
    """Start a command in a session of its own; give its pid and its output."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    code = 99
    try:
        os.setsid()
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        os.close(reader)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
        sys.stderr = os.fdopen(2, "w", encoding="utf-8")
        code = main(list(words))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        # Nothing may return into the parent's code, no exception either.
        os._exit(code)


def read_all(reader: int) -> str:
    """Read what a command prints until it has ended."""
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read().decode()
