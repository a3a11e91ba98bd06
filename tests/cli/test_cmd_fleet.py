"""The queue through the program: two people, a bare repository, and workers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.builders import git
from tests.cli.calls import WORKFLOW, Uwf
from tests.program import PATIENCE, wait_until

AGENT = """\
#!/bin/sh
cat > /dev/null
test -e "$UWF_HOME/slow" && sleep 600
case "$UWF_ROLE" in
writer) printf -- '---\\n$status: done\\ntext: one\\n---\\nWritten.\\n' ;;
*) printf -- '---\\n$status: good\\n---\\nFine.\\n' ;;
esac
"""


class Seat:
    """One person's home, folder and store."""

    def __init__(self, folder: Path, name: str, remote: Path) -> None:
        self.folder = folder / name
        self.home = self.folder / ".uwf"
        self.folder.mkdir()
        (self.folder / "ping.yaml").write_text(WORKFLOW)
        agent = self.folder / "agent"
        agent.write_text(AGENT)
        agent.chmod(0o755)
        self.store = self.folder / "store"
        self.name = name
        self.uwf("init")
        self.uwf("remote", "add", "origin", str(remote))

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "HOME": str(self.folder),
            "UWF_HOME": str(self.home),
            "UWF_STORE": str(self.store),
            "PATH": "/usr/bin:/bin",
            "GIT_AUTHOR_NAME": self.name,
            "GIT_AUTHOR_EMAIL": f"{self.name}@example.com",
            "GIT_COMMITTER_NAME": self.name,
            "GIT_COMMITTER_EMAIL": f"{self.name}@example.com",
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "uwfgit", *words],
            cwd=self.folder,
            env=dict(self.environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def work(self, *words: str) -> subprocess.Popen[str]:
        agent = f"stdio:{self.folder / 'agent'}"
        return self.start(
            *("worker", "--trust-pushers", "--agent", agent, "--name", self.name),
            *("--poll", "0.3", "--json", *words),
        )

    def uwf(self, *words: str) -> str:
        with self.start(*words) as done:
            out, err = done.communicate(timeout=PATIENCE)
        assert done.returncode == 0, err
        return out

    def items(self) -> dict[str, dict[str, Any]]:
        found = json.loads(self.uwf("fleet", "list", "--json"))["items"]
        return {item["threadId"]: item for item in found}

    def queue(self, count: int) -> list[str]:
        threads = [
            json.loads(
                self.uwf("thread", "start", "./ping.yaml", "-p", f"{n}", "--json")
            )["threadId"]
            for n in range(count)
        ]
        self.uwf("thread", "queue", *threads)
        return threads


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    path = tmp_path / "bare.git"
    git(path, "init", "--quiet", "--bare", "--initial-branch=main", str(path))
    return path


def test_a_worker_takes_one_thread_and_says_which(tmp_path: Path, remote: Path) -> None:
    ada, bob = Seat(tmp_path, "ada", remote), Seat(tmp_path, "bob", remote)
    (thread,) = ada.queue(1)
    assert ada.items()[thread]["state"] == "queued"

    with bob.work("--once") as worker:
        out, err = worker.communicate(timeout=PATIENCE)

    assert f'"ran": "{thread}"' in out, err
    assert ada.items()[thread]["state"] == "done"
    ada.uwf("pull")
    assert '"status": "end"' in ada.uwf("thread", "show", thread, "--json")
    ada.uwf("verify")


@pytest.mark.slow
def test_a_worker_that_is_told_to_stop_gives_its_thread_back(
    tmp_path: Path, remote: Path
) -> None:
    ada, bob = Seat(tmp_path, "ada", remote), Seat(tmp_path, "bob", remote)
    (thread,) = ada.queue(1)
    (bob.home / "slow").touch()
    worker = bob.work("--grace", "0.2")
    wait_until(lambda: ada.items()[thread]["state"] == "claimed")
    time.sleep(1.0)

    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=PATIENCE)

    assert worker.returncode == 0, err
    assert ada.items()[thread]["state"] == "queued"
    (bob.home / "slow").unlink()
    with bob.work("--once") as again:
        again.communicate(timeout=PATIENCE)
    assert ada.items()[thread]["state"] == "done"


@pytest.mark.slow
def test_what_a_killed_worker_pushed_is_gone_on_with(
    tmp_path: Path, remote: Path
) -> None:
    ada, bob = Seat(tmp_path, "ada", remote), Seat(tmp_path, "bob", remote)
    cas = Seat(tmp_path, "cas", remote)
    threads = ada.queue(4)
    dying = bob.work("--lease", "3")
    wait_until(lambda: any(i["state"] == "claimed" for i in ada.items().values()))
    dying.kill()
    dying.communicate()

    with cas.work("--lease", "3", "--idle-exit", "8") as living:
        living.communicate(timeout=2 * PATIENCE)

    items = ada.items()
    assert {thread: items[thread]["state"] for thread in threads} == dict.fromkeys(
        threads, "done"
    )
    ada.uwf("pull")
    ada.uwf("verify")


def test_without_trust_nothing_is_run_and_why_is_said(
    tmp_path: Path, remote: Path
) -> None:
    ada, bob = Seat(tmp_path, "ada", remote), Seat(tmp_path, "bob", remote)
    (thread,) = ada.queue(1)

    told = bob.uwf("worker", "--check")

    assert thread in told
    assert "trust" in told


@pytest.mark.parametrize(
    "words", [("--name", "a b"), ("--lease", "9999"), ("--jobs", "0")]
)
def test_a_name_a_lease_and_a_count_have_bounds(
    uwf: Uwf, words: tuple[str, ...]
) -> None:
    assert uwf("worker", *words).code == 2
