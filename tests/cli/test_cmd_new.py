from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from uwfgit.model.workflow.editor_schema import editor_schema
from uwfgit.model.workflow.source import check_workflow_file

MODELINE = "# yaml-language-server: $schema=workflow.schema.json"


def test_a_new_workflow_is_valid_without_warnings(uwf: Uwf, work: Path) -> None:
    made = uwf("workflow", "new", "my-flow")

    path = work / ".workflows" / "my-flow.yaml"
    assert (made.code, made.out) == (0, "created .workflows/my-flow.yaml\n")
    assert check_workflow_file(path) == ()
    assert uwf("workflow", "show", "my-flow", "--json").json["name"] == "my-flow"


def test_a_new_workflow_takes_every_edge_and_lacks_nothing(uwf: Uwf) -> None:
    uwf("workflow", "new", "my-flow")

    walked = uwf("workflow", "simulate", "my-flow", "--all-paths", "--json")

    assert walked.code == 0
    assert [s for s in walked.json["steps"] if s["missing"] or s["optional"]] == []


def test_its_comments_name_it_its_file_and_the_schema(uwf: Uwf, work: Path) -> None:
    uwf("workflow", "new", "my-flow")

    text = (work / ".workflows" / "my-flow.yaml").read_text()
    assert "#   uwf workflow validate .workflows/my-flow.yaml\n" in text
    assert "#   uwf workflow schema > .workflows/workflow.schema.json\n" in text
    assert MODELINE in text
    assert "NAME" not in text
    assert max(map(len, text.splitlines())) <= 88


def test_json_has_the_text_and_what_changed(uwf: Uwf, work: Path) -> None:
    made = uwf("workflow", "new", "my-flow", "--json").json

    path = work / ".workflows" / "my-flow.yaml"
    assert made == {
        "name": "my-flow",
        "file": str(path),
        "text": path.read_text(),
        "changes": ["created .workflows/my-flow.yaml"],
    }


def test_a_file_that_is_there_is_never_overwritten(uwf: Uwf, work: Path) -> None:
    (work / ".workflows").mkdir()
    path = work / ".workflows" / "my-flow.yaml"
    path.write_text("mine")

    made = uwf("workflow", "new", "my-flow", "--json")

    assert made.code == 1
    assert made.error["message"] == "'.workflows/my-flow.yaml' is there already"
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("existing", "expected"),
    [
        pytest.param(None, ".workflows", id="at-the-top"),
        pytest.param(".workflows", ".workflows", id="above"),
        pytest.param("sub/.workflows", "sub/.workflows", id="nearer"),
    ],
)
def test_in_a_repository_it_goes_where_it_will_be_found(
    uwf: Uwf,
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
    existing: str | None,
    expected: str,
) -> None:
    (work / ".git").mkdir()
    for name in ("objects", "refs"):
        (work / ".git" / name).mkdir()
    (work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (work / "sub" / "deep").mkdir(parents=True)
    if existing:
        (work / existing).mkdir()
    monkeypatch.chdir(work / "sub" / "deep")

    made = uwf("workflow", "new", "my-flow")

    assert made.code == 0, made.err
    assert (work / expected / "my-flow.yaml").is_file()


@pytest.mark.parametrize("name", ["My_Flow", "a--b", "../x", "", "1a"])
def test_a_name_that_cannot_be_one_is_refused(uwf: Uwf, work: Path, name: str) -> None:
    made = uwf("workflow", "new", name)

    assert made.code == 2
    assert not (work / ".workflows").exists()


def test_the_schema_is_printed_bare(uwf: Uwf) -> None:
    text = uwf("workflow", "schema")
    as_json = uwf("workflow", "schema", "--json")

    assert json.loads(text.out) == as_json.json == editor_schema()


def test_help_of_the_schema_has_the_line_for_language_servers(uwf: Uwf) -> None:
    shown = uwf("workflow", "schema", "--help").out

    assert f"  {MODELINE}\n" in shown


def test_every_example_is_listed_and_can_be_begun_with(uwf: Uwf, work: Path) -> None:
    items = uwf("workflow", "new", "--list", "--json").json["items"]
    names = [item["name"] for item in items]

    made = {name: uwf("workflow", "new", "--from", name, "--json") for name in names}

    assert {"develop", "solve-issue", "solve-issue-nested"} <= set(names)
    assert all(item["description"] for item in items)
    for name in names:
        assert check_workflow_file(work / ".workflows" / f"{name}.yaml") == ()
        # One that another brought along is there already, and stays.
        assert made[name].code == 0 or "is there already" in made[name].error["message"]
    assert uwf("workflow", "validate", ".workflows").code == 0


def test_an_example_can_have_another_name_and_brings_what_it_needs(
    uwf: Uwf, work: Path
) -> None:
    made = uwf("workflow", "new", "ship", "--from", "solve-issue-nested")

    folder = work / ".workflows"
    assert made.out.splitlines() == [
        "created .workflows/ship.yaml",
        "created .workflows/develop.yaml",
        "created .workflows/procedures/planner.md",
    ]
    assert check_workflow_file(folder / "ship.yaml") == ()
    assert uwf("thread", "start", "ship", "-p", "x").code == 0


def test_an_example_that_is_none_is_told_with_what_was_meant(uwf: Uwf) -> None:
    made = uwf("workflow", "new", "--from", "develp", "--json")

    assert made.error["hint"] == "did you mean 'develop'?"
