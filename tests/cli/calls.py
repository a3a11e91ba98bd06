"""What a call of the program gives, and the workflow the calls run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from uwfgit.store.canonical import Json

WORKFLOW = """\
version: 1
name: ping
description: Write and check
roles:
  writer:
    description: Writes
    goal: You write.
    capabilities: []
    procedure: Write.
    output: The text.
    frontmatter:
      oneOf:
        - properties: { $status: { const: done }, text: { type: string } }
          required: [$status, text]
        - properties: { $status: { const: stuck } }
          required: [$status]
  checker:
    description: Checks
    goal: You check.
    capabilities: []
    procedure: Check.
    output: The verdict.
    frontmatter:
      oneOf:
        - properties: { $status: { const: good } }
          required: [$status]
        - properties: { $status: { const: bad }, why: { type: string } }
          required: [$status, why]
graph:
  $START:
    new: { role: writer, prompt: "Write it." }
    resume: { role: writer, prompt: "Write it again." }
  writer:
    done: { role: checker, prompt: "Check {{{text}}}" }
    stuck: { role: $END, prompt: "Stuck." }
  checker:
    good: { role: $END, prompt: "Good." }
    bad: { role: writer, prompt: "Fix: {{{why}}}" }
"""
REPLIES = """\
replies:
  writer:
    - "---\\n$status: done\\ntext: one\\n---\\nFirst."
    - "---\\n$status: done\\ntext: two\\n---\\nSecond."
    - "---\\n$status: done\\ntext: three\\n---\\nThird."
  checker:
    - "---\\n$status: bad\\nwhy: too short\\n---\\nNo."
    - "---\\n$status: good\\n---\\nYes."
    - "---\\n$status: good\\n---\\nYes."
"""
ASKING = """\
replies:
  writer:
    - "---\\n$status: $SUSPEND\\nreason: 'Which one?'\\n---\\n"
    - "---\\n$status: stuck\\n---\\n"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a call of the program printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Json:
        """The object on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> Json:
        """The one error: alone on stderr, or in a refused run's object."""
        return json.loads(self.err or self.out)["error"]


Uwf = Callable[..., Result]


def use_script(uwf: Uwf, path: Path) -> None:
    """Make an agent of scripted replies, ``play``, the usual one."""
    uwf("config", "set", "agents.play.kind", "scripted")
    uwf("config", "set", "agents.play.script", str(path))
    uwf("config", "set", "defaultAgent", "play")
