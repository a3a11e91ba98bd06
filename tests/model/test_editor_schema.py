"""The editors' schema says nothing that the rules do not."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
from _pytest.mark import ParameterSet

from tests.model.older_text import (
    LISTS,
    OF_LISTS,
    OF_STATUSES,
    STATUSES,
    Edit,
    make_older,
)
from tests.model.test_rules_broken import BROKEN
from tests.model.test_rules_good import GOOD_EDITS
from tests.model.workflow_text import CARET, GOOD, WORKER_NODE, change
from uwfgit.model.workflow.editor_schema import editor_schema
from uwfgit.model.workflow.include import open_includes
from uwfgit.model.yaml.core import read_yaml

EXAMPLES = Path(__file__).parents[2] / "examples"
VALIDATOR = jsonschema.Draft7Validator(editor_schema())

STRUCTURAL = ("S1", "S2", "S3", "S4", "S5", "S11", "R1", "G1", "G3", "G4", "G5")
STRUCTURAL_SCHEMAS = ("J1", "J2")
MORE = {"G6-start", "Y11-infinite-version"}
"""Cases of other codes that the schema sees as well."""
UNREAD = ("Y", "L1")
"""An editor's own reader has these, or they are not of the current form."""


def errors(text: str) -> list[str]:
    located, _ = read_yaml(text, file="solve.yaml")
    assert located is not None
    return [error.message for error in VALIDATOR.iter_errors(located.value)]


def cases(*, structural: bool) -> list[ParameterSet]:
    found = []
    for code, old, new, name in BROKEN:
        if code.startswith(UNREAD) and f"{code}-{name}" not in MORE:
            continue
        is_structural = (
            code in (*STRUCTURAL, *STRUCTURAL_SCHEMAS) or f"{code}-{name}" in MORE
        )
        if is_structural is structural:
            found.append(pytest.param(old, new, id=f"{code}-{name}"))
    return found


def test_it_is_a_schema() -> None:
    jsonschema.Draft7Validator.check_schema(editor_schema())


def test_the_good_file_passes() -> None:
    assert errors(GOOD) == []


@pytest.mark.parametrize(
    "file",
    [f for f in sorted(EXAMPLES.glob("*.yaml")) if not f.stem.endswith(".replies")],
    ids=lambda file: file.name,
)
def test_every_example_passes(file: Path) -> None:
    located, _ = read_yaml(
        file.read_bytes(), file=str(file), include=open_includes(file)
    )

    assert located is not None
    assert list(VALIDATOR.iter_errors(located.value)) == []


@pytest.mark.parametrize(
    ("old", "new"), [pytest.param(*case[:2], id=case[2]) for case in GOOD_EDITS]
)
def test_odd_but_legal_files_pass(old: str, new: str) -> None:
    assert errors(change(old, new)) == []


@pytest.mark.parametrize(("old", "new"), cases(structural=True))
def test_what_is_wrong_in_structure_is_refused(old: str, new: str) -> None:
    assert errors(change(old, new).replace(CARET, "")) != []


@pytest.mark.parametrize(("old", "new"), cases(structural=False))
def test_what_only_the_rules_see_passes(old: str, new: str) -> None:
    assert errors(change(old, new).replace(CARET, "")) == []


def test_a_list_of_targets_passes_and_an_empty_one_does_not() -> None:
    listed = """\
  worker:
    - { role: planner, when: "$count(steps) < 3", prompt: "Again" }
    - { role: $END, when: null, prompt: Done., location: null }
"""

    assert errors(change(WORKER_NODE, listed)) == []
    assert errors(change(WORKER_NODE, "  worker: []\n")) != []


@pytest.mark.parametrize(
    "status",
    [
        pytest.param('" a"', id="blank-first"),
        pytest.param('""', id="empty"),
        pytest.param("a" * 65, id="too-long"),
    ],
)
def test_a_status_has_a_form(status: str) -> None:
    assert errors(change("    blocked: {", f"    {status}: {{")) != []


@pytest.mark.parametrize(
    "name", [pytest.param("1st", id="digit"), pytest.param("a.b", id="dot")]
)
def test_a_role_name_has_a_form(name: str) -> None:
    assert errors(change("  worker:\n    desc", f"  {name}:\n    desc")) != []


def test_first_targets_may_be_a_list_and_a_schema_true() -> None:
    at, end = (
        GOOD.index("  $START:\n"),
        GOOD.index("  planner:\n", GOOD.index("graph:")),
    )
    listed = "  $START:\n    - { role: planner, prompt: Plan it. }\n"
    text = f"{GOOD[:at]}{listed}{GOOD[end:]}"

    assert errors(text) == []
    assert errors(text.replace("summary: { type: string }", "summary: true")) == []
    assert errors(text.replace(listed, "  $START: []\n")) != []


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        pytest.param(text, edit, id=edit.name)
        for text, edits in ((STATUSES, OF_STATUSES), (LISTS, OF_LISTS))
        for edit in edits
    ],
)
def test_no_older_form_is_red(text: str, edit: Edit) -> None:
    assert errors(make_older(text, edit)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            "    blocked: {",
            "    asks: { role: $SUSPEND, prompt: Which? }\n    blocked: {",
            id="an edge to being suspended",
        ),
        pytest.param(
            WORKER_NODE,
            "  worker:\n    - { role: planner, condition: null, prompt: null }\n"
            "    - { role: $END }\n",
            id="edges with nothing in them",
        ),
    ],
)
def test_what_is_read_as_nothing_is_not_red(old: str, new: str) -> None:
    assert errors(change(old, new)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    frontmatter:", "    fronmatter:"),
        ("    procedure:", "    prozedure:"),
        ("graph:", "grapf:"),
    ],
)
def test_what_is_no_form_at_all_is_red(old: str, new: str) -> None:
    assert errors(GOOD.replace(old, new)) != []
