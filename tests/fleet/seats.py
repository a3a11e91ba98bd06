"""People and their workers, each with a home, a folder and a store of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.cli.calls import WORKFLOW
from tests.program import PATIENCE

AGENT = """\
#!/bin/sh
cat > /dev/null
test -e "$UWF_HOME/slow" && touch "$UWF_HOME/busy" && sleep 600
case "$UWF_ROLE" in
writer) printf -- '---\\n$status: done\\ntext: one\\n---\\nWritten.\\n' ;;
*) printf -- '---\\n$status: good\\n---\\nFine.\\n' ;;
esac
"""


class Seat:
    """One person's home, folder and store."""

    def __init__(
        self, folder: Path, name: str, remote: Path | str, **more: str
    ) -> None:
        self.more = more
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
            **self.more,
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
        _, _, _, *rest = self.worker_words("--poll", "0.3", "--json", *words)
        return self.start(*rest)

    def worker_words(self, *words: str) -> list[str]:
        agent = f"stdio:{self.folder / 'agent'}"
        return [
            *(sys.executable, "-m", "uwfgit", "worker", "--trust-pushers"),
            *("--agent", agent, "--name", self.name, *words),
        ]

    def uwf(self, *words: str, codes: Sequence[int] = (0,)) -> str:
        with self.start(*words) as done:
            out, err = done.communicate(timeout=PATIENCE)
        assert done.returncode in codes, err
        return out

    def items(self) -> dict[str, dict[str, Any]]:
        found = json.loads(self.uwf("fleet", "list", "--json"))["items"]
        return {item["threadId"]: item for item in found}

    def queue(self, count: int, workflow: str = "./ping.yaml") -> list[str]:
        threads = [
            json.loads(self.uwf("thread", "start", workflow, "-p", f"{n}", "--json"))[
                "threadId"
            ]
            for n in range(count)
        ]
        self.uwf("thread", "queue", *threads)
        return threads
