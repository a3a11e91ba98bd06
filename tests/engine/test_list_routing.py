"""Routing of files with conditions, in each spelling people have, by one table."""

from __future__ import annotations

from typing import Final

import pytest

from tests.engine.test_conditions import _step
from tests.model.older_text import normalise
from uwfgit.engine.decide.conditions import make_evaluator
from uwfgit.engine.decide.moderator import Routed, route
from uwfgit.model.rules.check import check_normalised
from uwfgit.model.thread.step import Step
from uwfgit.model.workflow.migrate import migrate_text
from uwfgit.model.workflow.pinned import workflow_from_document
from uwfgit.model.workflow.workflow import Workflow
from uwfgit.model.yaml.core import read_yaml

_ROLE: Final = (
    "    description: d\n    goal: g\n    procedure: p\n    output: o\n"
    "    frontmatter: { type: object }\n"
)
_HEAD: Final = (
    "name: routed\ndescription: d\nroles:\n"
    f"  writer:\n{_ROLE}  judge:\n{_ROLE}  printer:\n{_ROLE}"
)
_NO: Final = "$last('judge').ok = false"
_AGAIN: Final = "$last('judge').output.again"
_WON: Final = "$first('printer').copies > 0 or steps[-1].meta.ok"

CONDITIONS: Final = f"""{_HEAD}
conditions:
  no: {{ description: the judge said no, expression: "{_NO}" }}
  again: {{ description: once more, expression: "{_AGAIN}" }}
  won: {{ description: over, expression: "{_WON}" }}
graph:
  $START: [{{ role: writer, condition: null, prompt: p }}]
  writer: [{{ role: judge, condition: null, prompt: p }}]
  judge:
    - {{ role: writer, condition: no, prompt: p }}
    - {{ role: judge, condition: again, prompt: p }}
    - {{ role: printer, condition: won, prompt: p }}
  printer: [{{ role: $END, condition: null, prompt: p }}]
"""
WHEN: Final = f"""{_HEAD}
graph:
  $START: [{{ role: writer, prompt: p }}]
  writer: [{{ role: judge, prompt: p }}]
  judge:
    - {{ role: writer, when: "{_NO}", prompt: p }}
    - {{ role: judge, when: "{_AGAIN}", prompt: p }}
    - {{ role: printer, when: "{_WON}", prompt: p }}
  printer: [{{ role: $END, prompt: p }}]
"""
RULES: Final = f"""{_HEAD}
rules:
  - {{ from: __start__, to: writer, when: null }}
  - {{ from: writer, to: judge, when: null }}
  - {{ from: judge, to: writer, when: "{_NO}" }}
  - {{ from: judge, to: judge, when: "{_AGAIN}" }}
  - {{ from: judge, to: printer, when: "{_WON}" }}
  - {{ from: printer, to: __end__, when: null }}
"""
SPELLINGS: Final = {"conditions": CONDITIONS, "when": WHEN, "rules": RULES}

_TABLE: Final = [
    pytest.param((), "writer", id="new"),
    pytest.param((_step("writer", n=1),), "judge", id="without-a-condition"),
    pytest.param((_step("judge", ok=False),), "writer", id="rejected"),
    pytest.param((_step("judge", ok=False, again=True),), "writer", id="first-of-two"),
    pytest.param((_step("judge", ok=True, again=True),), "judge", id="dot-output"),
    pytest.param((_step("judge", ok=True),), "printer", id="approved"),
    pytest.param((_step("judge", ok=True, output="own"),), "printer", id="own-output"),
    pytest.param(
        (_step("judge", ok=False), _step("writer"), _step("judge", ok=True)),
        "printer",
        id="the-last-word-counts",
    ),
    pytest.param(
        (_step("printer", copies=1), _step("printer"), _step("judge")),
        "printer",
        id="the-first-word-counts",
    ),
    pytest.param((_step("printer"),), "$END", id="end"),
]


def _current(text: str) -> Workflow:
    found = normalise(text)
    problems = check_normalised(found, stem="routed")
    assert [each for each in problems if each.severity == "error"] == []
    return workflow_from_document(found.doc)


def _role_after(workflow: Workflow, steps: tuple[Step, ...]) -> str:
    role, output = (steps[-1].role, steps[-1].output) if steps else ("$START", {})
    evaluator = make_evaluator(reversed(steps), task="t", thread="T")
    found = route(workflow.graph, role, output, injected={}, evaluate=evaluator)
    return found.role if isinstance(found, Routed) else found.code


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(("steps", "role"), _TABLE)
def test_each_spelling_routes_as_the_table_says(
    spelling: str, steps: tuple[Step, ...], role: str
) -> None:
    assert _role_after(_current(SPELLINGS[spelling]), steps) == role


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(("steps", "role"), _TABLE)
def test_a_migrated_file_routes_as_before(
    spelling: str, steps: tuple[Step, ...], role: str
) -> None:
    migrated = migrate_text(SPELLINGS[spelling].encode())
    located, problems = read_yaml(migrated.text.encode())

    assert not problems
    assert located is not None
    assert _role_after(workflow_from_document(located), steps) == role


@pytest.mark.parametrize(
    ("spelling", "role"),
    [
        # The oldest form ends where no rule holds; the others say so.
        ("rules", "$END"),
        ("conditions", "routing: no-match judge -"),
        ("when", "routing: no-match judge -"),
    ],
)
def test_where_nothing_matches_each_spelling_does_as_it_always_did(
    spelling: str, role: str
) -> None:
    workflow = _current(SPELLINGS[spelling])

    assert _role_after(workflow, (_step("judge"),)) == role


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("$last('judge').ok", False),
        ("$last('judge').output.ok", False),
        ("$last('nobody').ok = false", False),
        ("$exists($last('nobody'))", False),
        ("$last('writer').output = 'mine'", True),
        ("$last('judge').output.output.output.ok = false", True),
        ("$keys($last('judge')) = ['ok']", False),
        ("$count($keys($last('judge'))) = 1", True),
        ("$string($last('judge')) = '{\"ok\":false}'", True),
        ("$last('judge') = steps[-1].output", True),
    ],
)
def test_what_a_role_said_is_its_output_and_nothing_is_added(
    expression: str, *, holds: bool
) -> None:
    steps = (_step("writer", output="mine"), _step("judge", ok=False))
    evaluator = make_evaluator(reversed(steps), task="t", thread="T")

    assert evaluator(expression) is holds
