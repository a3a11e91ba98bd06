"""Whatever a workflow file holds, checking it ends in problems with places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.model.mutations import TEXTS, mutate
from uwfgit.errors import WorkflowError
from uwfgit.model.rules.check import RULES
from uwfgit.model.workflow.migrate import Migration, migrate_file
from uwfgit.model.workflow.pinned import workflow_from_data
from uwfgit.model.workflow.source import check_workflow_file, read_workflow

few = settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
words = st.sampled_from(
    [*"-:{}[]&*!|>'\"#%@`,?\n\t ", "a", "$END", "name: ", "roles:\n", "graph:\n", "{{a"]
)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "solve.yaml"
    (tmp_path / "x.md").write_text("text")
    yield path
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "home",
        "solve.yaml",
        "x.md",
    ]


def check_holds(file: Path, data: bytes) -> None:
    """Check a file, and what must be true of any answer."""
    file.write_bytes(data)

    problems = check_workflow_file(file)
    migrated = migrate(file)

    lines = data.count(b"\n") + data.count(b"\r") + 1
    for problem in problems:
        assert problem.code in RULES
        assert problem.message
        assert problem.severity in {"error", "warning"}
        assert "\n" not in problem.message
        if problem.file == str(file):
            assert problem.line is not None
            assert 1 <= problem.line <= lines
            assert problem.column is not None
            assert problem.column >= 1
    if all(problem.severity == "warning" for problem in problems):
        source = read_workflow(file)
        assert workflow_from_data(source.data) == source.workflow
        assert migrated is not None
        assert migrated.problems == ()


def migrate(file: Path) -> Migration | None:
    try:
        return migrate_file(file)
    except WorkflowError:
        return None


@few
@given(data=st.binary(max_size=200))
def test_any_bytes_are_checked(file: Path, data: bytes) -> None:
    check_holds(file, data)


@few
@given(parts=st.lists(words, max_size=40))
def test_any_text_of_yaml_words_is_checked(file: Path, parts: list[str]) -> None:
    check_holds(file, "".join(parts).encode())


@few
@given(seed=st.integers(min_value=0))
def test_broken_examples_are_checked(file: Path, seed: int) -> None:
    check_holds(file, mutate(Random(seed)))  # noqa: S311 - no secret


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_what_is_broken_was_whole(file: Path, number: int) -> None:
    file.write_text(TEXTS[number])

    codes = {problem.code for problem in check_workflow_file(file)}

    # The file's name is that of one of them only.
    assert codes <= {"S6"}
