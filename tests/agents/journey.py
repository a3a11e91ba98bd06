"""The whole program in front of real CLIs: machines, each with a home and a folder."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.agents.fake_api import FakeApi
from tests.agents.real import ARGS, Home, need_binary

WORKFLOW: Final = """\
version: 1
name: loop
description: Build and review
roles:
  developer:
    description: Builds
    goal: You develop.
    capabilities: []
    procedure: Build.
    output: Say what you built.
    frontmatter:
      properties: {$status: {const: done}, sum: {type: string}}
      required: [$status, sum]
  reviewer:
    description: Reviews
    goal: You review.
    capabilities: []
    procedure: Review.
    output: Say what is wrong.
    frontmatter:
      oneOf:
        - {properties: {$status: {const: good}}, required: [$status]}
        - properties: {$status: {const: bad}, why: {type: string}}
          required: [$status, why]
graph:
  $START:
    new: {role: developer, prompt: "Build it."}
    resume: {role: developer, prompt: "Go on."}
  developer: {done: {role: reviewer, prompt: "Review it."}}
  reviewer:
    good: {role: $END, prompt: "Over."}
    bad: {role: developer, prompt: "Fix: {{why}}"}
"""


def done(text: str, body: str = "Built.") -> str:
    return f"---\n$status: done\nsum: {text}\n---\n\n{body}\n"


def bad(why: str) -> str:
    return f"---\n$status: bad\nwhy: {why}\n---\n\nNot good.\n"


GOOD: Final = "---\n$status: good\n---\n\nFine.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - a JSON value
        return json.loads(self.out)


@dataclass(slots=True, kw_only=True)
class Box:
    """One machine: a home, a repository to work in, one agent."""

    kind: str
    folder: Path
    api: FakeApi
    env: dict[str, str] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def set_up(self) -> Box:
        """Make the repository and configure the agent, called ``a``."""
        self.work.mkdir(parents=True)
        self.environment()
        for words in (
            ("init", "-q", "."),
            ("config", "user.name", f"User of {self.folder.name}"),
            ("config", "user.email", "user@example.org"),
            ("commit", "-q", "--allow-empty", "-m", "first"),
        ):
            self.run("git", *words)
        (self.work / ".workflows").mkdir()
        (self.work / ".workflows" / "loop.yaml").write_text(WORKFLOW)
        settings = {
            "agents": {
                "a": {
                    "kind": self.kind,
                    "command": need_binary(self.kind),
                    "args": list(ARGS[self.kind]),
                }
            },
            "defaultAgent": "a",
        }
        (self.home / ".uwf").mkdir(mode=0o700, parents=True)
        (self.home / ".uwf" / "config.yaml").write_text(json.dumps(settings))
        return self

    def environment(self) -> dict[str, str]:
        home = Home(path=self.home)
        given = home.point_at(self.kind, self.api.url)
        path = f"{Path(sys.executable).parent}:{given['PATH']}"
        return {**given, "PATH": path, "GIT_CONFIG_NOSYSTEM": "1", **self.env}

    def run(self, *words: str) -> Result:
        done = subprocess.run(
            words,
            cwd=self.work,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return Result(code=done.returncode, out=done.stdout, err=done.stderr)

    def uwf(self, *words: str, code: int | None = 0) -> Result:
        """Run the program; it must end with this code."""
        result = self.run(str(Path(sys.executable).parent / "uwf"), *words)
        assert code is None or result.code == code, (words, result)
        return result

    def start(self) -> str:
        started = self.uwf("thread", "start", "loop", "-p", "Fix it.", "--json")
        return str(started.json["threadId"])

    def step(self, thread: str, number: int) -> Any:  # noqa: ANN401 - a JSON value
        return self.uwf("step", "show", f"{thread}:{number}", "--json").json
