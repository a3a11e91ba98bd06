"""A good workflow file, and edits of it that say where a problem is."""

from __future__ import annotations

from uwfgit.errors import Problem
from uwfgit.model.rules.check import check_document
from uwfgit.model.yaml.core import read_yaml
from uwfgit.model.yaml.problems import sort_problems

Found = list[tuple[str, int | None, int | None]]

CARET = "‸"
"""Stands in an edit where the problems are expected, in the order of codes."""

GOOD = """\
version: 1
name: solve
description: Solve it
roles:
  planner:
    description: Plans
    goal: Plan.
    capabilities: [planning]
    procedure: Think.
    output: The plan.
    frontmatter:
      oneOf:
        - properties:
            $status: { const: ready }
            plan: { type: string }
            steps: { type: array, items: { properties: { title: {}, by: {} } } }
            note: { type: string }
            site: { type: object }
          required: [$status, plan]
        - properties:
            $status: { const: blocked }
          required: [$status]
  worker:
    description: Works
    goal: Work.
    capabilities: []
    procedure: Do it.
    output: The result.
    frontmatter:
      type: object
      properties:
        $status: { const: done }
        files: { type: array, items: { type: string } }
      required: [$status, files]
graph:
  $START:
    new: { role: planner, prompt: Plan it. }
    resume: { role: planner, prompt: Go on. }
  planner:
    ready: { role: worker, prompt: "Do {{plan}}." }
    blocked: { role: $END, prompt: Blocked. }
  worker:
    done: { role: $END, prompt: "Done: {{files}}" }
"""

WORKER_NODE = """\
  worker:
    done: { role: $END, prompt: "Done: {{files}}" }
"""
WORKER_SCHEMA = GOOD[GOOD.index("      type: object") : GOOD.index("graph:")]


def check(text: str, stem: str | None = "solve") -> tuple[Problem, ...]:
    located, problems = read_yaml(text, file="solve.yaml")
    found = () if located is None else check_document(located, stem=stem)
    return sort_problems((*problems, *found))


def take_carets(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Give the text without its carets, and the lines and columns of them."""
    pieces = text.split(CARET)
    places = []
    before = ""
    for piece in pieces[:-1]:
        before += piece
        line_start = before.rfind("\n") + 1
        places.append((before.count("\n") + 1, len(before) - line_start + 1))
    return "".join(pieces), places


def change(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, f"{old!r} is there {GOOD.count(old)} times"
    return GOOD.replace(old, new)


def places_of(
    problems: tuple[Problem, ...],
) -> Found:
    return [(each.code, each.line, each.column) for each in problems]


def expect(text: str, *codes: str) -> None:
    text, places = take_carets(text)

    found = places_of(check(text, "solve"))

    assert found == [(code, *at) for code, at in zip(codes, places, strict=True)]
