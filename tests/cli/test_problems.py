from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.calls import WORKFLOW, Uwf
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.options import GlobalOptions
from uwfgit.cli.workflow.problems import github_lines, problem_lines
from uwfgit.errors import Problem
from uwfgit.model.picture.columns import display_width

WRONG = WORKFLOW.replace("role: checker", "role: chekcer")


def problem(line: int, column: int) -> Problem:
    return Problem(code="G6", message="no", file="a.yaml", line=line, column=column)


def excerpt(work: Path, text: str, column: int) -> list[str]:
    (work / "a.yaml").write_text(text)
    context = CommandContext(options=GlobalOptions(), environment={}, folder=work)
    return problem_lines(context, [problem(1, column)])[1:]


def test_the_line_and_a_caret_stand_below_each_problem(uwf: Uwf, work: Path) -> None:
    (work / "ping.yaml").write_text(WRONG)

    checked = uwf("workflow", "validate", "ping.yaml")

    assert checked.code == 1
    assert (
        "ping.yaml:34:19: error G6: graph.writer.done.role: the edge leads to "
        "'chekcer', which is not a role\n"
        '    34 |     done: { role: chekcer, prompt: "Check {{{text}}}" }\n'
        "       |                   ^\n"
        "    hint: did you mean 'checker'?\n"
    ) in checked.out


@pytest.mark.parametrize(
    ("text", "column", "shown"),
    [
        pytest.param("a: b", 4, "a: b", id="plain"),
        pytest.param("日本: b", 5, "日本: b", id="wide"),
        pytest.param("\ta: b", 5, " a: b", id="tab"),
        pytest.param("\x1b[31m: b", 8, "\\x1b[31m: b", id="escape"),
    ],
)
def test_the_caret_stands_below_its_character(
    work: Path, text: str, column: int, shown: str
) -> None:
    line, caret = excerpt(work, text, column)

    assert line == f"     1 | {shown}"
    assert display_width(line.removesuffix("b")) == caret.index("^")


@pytest.mark.parametrize("column", [1, 150, 300])
def test_a_long_line_is_cut_around_the_place(work: Path, column: int) -> None:
    text = "x" * (column - 1) + "!" + "y" * (300 - column)

    line, caret = excerpt(work, text, column)

    assert len(line) <= 80
    assert line.index("!") == caret.index("^")


def test_a_file_that_is_gone_has_no_excerpt(work: Path) -> None:
    context = CommandContext(options=GlobalOptions(), environment={}, folder=work)

    assert len(problem_lines(context, [problem(1, 1)])) == 1


def test_an_included_file_is_quoted_itself(uwf: Uwf, work: Path) -> None:
    (work / "role.yaml").write_text("description: 12\n")
    text = WORKFLOW.replace(
        WORKFLOW[WORKFLOW.index("  checker:\n    desc") : WORKFLOW.index("graph:")],
        "  checker: !include role.yaml\n",
    )
    (work / "ping.yaml").write_text(text)

    checked = uwf("workflow", "validate", "ping.yaml")

    assert "role.yaml:1:14: error S3" in checked.out
    assert "     1 | description: 12\n       |              ^\n" in checked.out


def test_annotations_name_the_place_and_are_escaped() -> None:
    found = Problem(
        code="S6",
        message="50% of 'a,b'",
        hint="fix: it",
        path="roles.x",
        file="odd, name:1.yaml",
        line=3,
        column=7,
        severity="warning",
    )

    (line,) = github_lines([found], strict=False)
    assert line == (
        "::warning file=odd%2C name%3A1.yaml,line=3,col=7,title=uwf S6"
        "::roles.x: 50%25 of 'a,b'%0Ahint: fix: it"
    )
    assert github_lines([found], strict=True)[0].startswith("::error file=")


def test_github_gets_annotations_and_nothing_else(uwf: Uwf, work: Path) -> None:
    (work / "ping.yaml").write_text(WRONG)

    checked = uwf("--format", "github", "workflow", "validate", "ping.yaml")

    assert checked.code == 1
    assert all(line.startswith("::") for line in checked.out.splitlines())
    assert checked.err == ""


def test_github_gets_nothing_of_a_valid_file(uwf: Uwf) -> None:
    checked = uwf("workflow", "validate", "ping.yaml", "--format", "github")

    assert (checked.code, checked.out, checked.err) == (0, "", "")


def test_no_other_command_writes_annotations(uwf: Uwf, home: Path) -> None:
    started = uwf("thread", "start", "ping.yaml", "-p", "x", "--format", "github")

    assert started.code == 2
    assert "--format github is for 'uwf workflow validate' alone" in started.err
    assert not (home / "store").exists()


def test_replies_are_left_out_of_a_folder(uwf: Uwf, work: Path) -> None:
    folder = work / "flows"
    folder.mkdir()
    (folder / "ping.yaml").write_text(WORKFLOW)
    (folder / "ping.replies.yaml").write_text("replies: {}\n")
    (work / "more").mkdir()
    (work / "more" / "ping.yaml").write_text(WORKFLOW)

    checked = uwf("workflow", "validate", "flows", "more", "ping.yaml")

    assert (checked.code, checked.out) == (0, "valid: 3 files\n")
