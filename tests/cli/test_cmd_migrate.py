"""``workflow migrate``, and older files through the other commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calls import REPLIES, WORKFLOW, Uwf

OLDER = (
    WORKFLOW.replace("version: 1\n", "")
    .replace("    frontmatter:\n", "    meta:  # its answer\n", 1)
    .replace("    new: {", "    _: {")
    .replace('    resume: { role: writer, prompt: "Write it again." }\n', "")
)
LISTED = WORKFLOW.replace(
    '    good: { role: $END, prompt: "Good." }\n'
    '    bad: { role: writer, prompt: "Fix: {{{why}}}" }\n',
    "    - { role: writer, prompt: Fix., when: $count(steps) < 4 }\n"
    "    - role: $END\n"
    "      prompt: Good.\n"
    "      when: steps[-1].output.status = 'good'\n",
)


@pytest.fixture
def older(work: Path) -> Path:
    path = work / "ping.yaml"
    path.write_text(OLDER)
    return path


@pytest.mark.parametrize(
    ("text", "what"),
    [
        pytest.param("", "is empty", id="empty"),
        pytest.param("- x\n", "is a list", id="list"),
    ],
)
def test_what_is_no_workflow_is_not_called_current(
    uwf: Uwf, work: Path, text: str, what: str
) -> None:
    (work / "ping.yaml").write_text(text)

    result = uwf("workflow", "migrate", "ping.yaml", "--write")

    assert result.code == 1
    assert f"the workflow {what}, not a mapping" in result.err
    assert "current form" not in result.err
    assert (work / "ping.yaml").read_text() == text


def test_it_shows_the_difference_and_writes_nothing(uwf: Uwf, older: Path) -> None:
    result = uwf("workflow", "migrate", "ping.yaml")

    assert result.code == 0
    assert result.out.startswith("--- a/ping.yaml\n+++ b/ping.yaml\n@@ ")
    assert "-    meta:  # its answer\n+    frontmatter:  # its answer\n" in result.out
    assert "'meta': name the schema 'frontmatter'\n" in result.err
    assert result.err.endswith("nothing was written; --write changes the file\n")
    assert older.read_text() == OLDER


def test_it_writes_a_file_that_is_valid_and_needs_no_more(
    uwf: Uwf, older: Path
) -> None:
    written = uwf("workflow", "migrate", "ping.yaml", "--write")
    again = uwf("workflow", "migrate", "ping.yaml", "--write")
    checked = uwf("workflow", "validate", "ping.yaml", "--strict")

    assert written.code == again.code == checked.code == 0
    assert written.err.endswith("wrote ping.yaml\n")
    assert again.out == ""
    assert again.err == "ping.yaml is of the current form\n"
    assert "# its answer" in older.read_text()


def test_machines_get_the_text_and_the_changes(uwf: Uwf, older: Path) -> None:
    result = uwf("workflow", "migrate", str(older), "--json")

    assert result.code == 0
    assert result.json["text"].startswith("version: 1\nname: ping\n")
    assert result.json["problems"] == []
    assert result.json["written"] is False
    assert [(c["line"], c["form"]) for c in result.json["changes"]] == [
        (1, "no 'version'"),
        (10, "'meta'"),
        (30, "'$START' with '_'"),
    ]


def test_a_current_file_has_no_changes(uwf: Uwf) -> None:
    result = uwf("workflow", "migrate", "ping.yaml", "--json")

    assert result.json["text"] == WORKFLOW
    assert result.json["changes"] == []


def test_what_cannot_be_done_is_named_with_its_place(uwf: Uwf, older: Path) -> None:
    older.write_text(OLDER.replace("    stuck: {", "    _: {"))

    result = uwf("workflow", "migrate", "ping.yaml", "--write")

    assert result.code == 1
    assert "stands beside other edges" in result.err
    assert "    _: { role: $END" in older.read_text()
    assert "    frontmatter:  # its answer" in older.read_text()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("nothing.yaml", "not-found", id="no-file"),
        pytest.param(".", "invalid-workflow", id="folder"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error(uwf: Uwf, name: str, code: str) -> None:
    result = uwf("workflow", "migrate", name, "--json")

    assert result.code == 1
    assert result.error["code"] == code


def test_an_older_file_runs_as_it_is(uwf: Uwf, older: Path) -> None:
    checked = uwf("workflow", "validate", "ping.yaml", "--json")
    started = uwf("thread", "start", str(older), "-p", "x", "--json")
    thread = started.json["threadId"]
    done = uwf("thread", "exec", thread, "--all", "--agent", "scripted:replies.yaml")
    proved = uwf("verify", thread)

    assert checked.code == 0
    assert {p["code"] for p in checked.json["problems"]} == {"L1"}
    assert started.code == done.code == 0
    assert proved.code == 0, proved.out + proved.err


def test_an_older_file_and_its_migration_are_one_workflow(
    uwf: Uwf, older: Path
) -> None:
    before = uwf("workflow", "show", str(older), "--json").json
    uwf("workflow", "migrate", "ping.yaml", "--write")
    after = uwf("workflow", "show", str(older), "--json").json

    assert after == before


def test_conditions_decide_what_runs_next(uwf: Uwf, work: Path) -> None:
    (work / "ping.yaml").write_text(LISTED)
    (work / "replies.yaml").write_text(REPLIES.replace("$status: bad", "$status: good"))
    thread = uwf("thread", "start", "ping.yaml", "-p", "x", "--json").json["threadId"]

    done = uwf(
        "thread",
        "exec",
        thread,
        "--all",
        "--agent",
        "scripted:replies.yaml",
        "--json",
    )

    roles = [step["role"] for step in done.json["steps"]]
    assert roles == ["writer", "checker", "writer", "checker"]
    assert done.json["status"] == "end"
    assert uwf("verify", thread).code == 0


def test_without_the_extra_one_line_says_what_to_install(
    uwf: Uwf, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "ping.yaml").write_text(LISTED)
    monkeypatch.setitem(sys.modules, "jsonata", None)

    result = uwf("thread", "start", "ping.yaml", "-p", "x")

    assert result.code == 1
    (line,) = [each for each in result.err.splitlines() if "jsonata" in each]
    assert line.endswith("pip install 'uwfgit[jsonata]'")


def test_a_condition_that_does_not_parse_is_found_by_validating(
    uwf: Uwf, work: Path
) -> None:
    (work / "ping.yaml").write_text(LISTED.replace("$count(steps) < 4", "a.("))

    result = uwf("workflow", "validate", "ping.yaml", "--json")

    assert result.code == 1
    (problem,) = result.json["problems"]
    assert (problem["code"], problem["path"]) == ("S13", "graph.checker[0].when")


@pytest.mark.parametrize("where", [".", "sub"])
def test_git_takes_the_difference_of_an_absolute_path(
    uwf: Uwf, older: Path, where: str
) -> None:
    (older.parent / "sub").mkdir()
    path = older.rename(older.parent / where / "ping.yaml")

    shown = uwf("workflow", "migrate", str(path))

    patch = older.parent / "p.diff"
    patch.write_text(shown.out)
    subprocess.run(["git", "apply", str(patch)], cwd=older.parent, check=True)
    assert uwf("workflow", "migrate", str(path)).out == ""
