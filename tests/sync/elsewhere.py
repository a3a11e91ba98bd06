"""A repository of somebody else's that holds workflows, as plain git makes it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.cli.calls import WORKFLOW

INCLUDING = WORKFLOW.replace("name: ping", "name: parts").replace(
    "goal: You write.", "goal: !include texts/goal.md"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """A repository with a work tree."""

    folder: Path

    @property
    def address(self) -> str:
        """Where it is, as a file."""
        return f"git+file://{self.folder}"

    def git(self, *words: str) -> str:
        """Run plain git there, as its owner."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder.parent),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{
                f"GIT_{role}_{fact}": value
                for role in ("AUTHOR", "COMMITTER")
                for fact, value in (("NAME", "Mallory"), ("EMAIL", "m@example.org"))
            },
        }
        done = subprocess.run(
            ["git", "-C", str(self.folder), *words],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def write(self, path: str, text: str | bytes) -> None:
        """Write a file of the work tree."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    def link(self, path: str, target: str) -> None:
        """Write a symlink of the work tree."""
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).symlink_to(target)

    def commit(self, message: str = "more") -> str:
        """Commit all there is; returns the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")


def make_elsewhere(folder: Path) -> Elsewhere:
    """Make one with a workflow, one that includes files, and one in a folder."""
    folder.mkdir(parents=True)
    made = Elsewhere(folder=folder)
    made.git("init", "--quiet", "--initial-branch=main")
    made.write(".workflows/ping.yaml", WORKFLOW)
    made.write("flows/parts.yaml", INCLUDING)
    made.write("flows/texts/goal.md", "You write, as it stands in a file.\n")
    made.write("flows/pong/index.yaml", WORKFLOW.replace("name: ping", "name: pong"))
    made.commit("first")
    return made
