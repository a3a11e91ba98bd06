"""Examples run for real, as their replies files say: every hash is a link."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from tests.test_examples import EXAMPLES, read_commands


@pytest.fixture
def copied(uwf: Uwf, work: Path) -> Path:
    """A work tree with the example, what it needs, and all replies."""
    made = uwf("workflow", "new", "--from", "solve-issue-nested")
    assert made.code == 0, made.err
    folder = work / ".workflows"
    folder.rename(work / "examples")
    for file in EXAMPLES.glob("*.replies.yaml"):
        (work / "examples" / file.name).write_text(file.read_text("utf-8"))
    return work / "examples"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("develop.replies.yaml", marks=pytest.mark.slow),
        "solve-issue-nested.replies.yaml",
    ],
)
def test_it_runs_to_its_end_with_every_hash_a_link(
    uwf: Uwf, copied: Path, name: str
) -> None:
    thread = ""
    for command in read_commands(copied / name):
        words = [thread if word == "T" else word for word in command.words[1:]]
        done = uwf(*words, "--json")
        assert done.code == command.exit_code, done.err
        thread = done.json.get("threadId", thread) if words[0] == "thread" else thread

    shown = uwf("thread", "show", thread, "--json").json
    steps = uwf("step", "list", thread, "--json").json["items"]
    told = [uwf("step", "show", each["hash"], "--json").json for each in steps]
    assert shown["status"] == "end"
    assert [each["warnings"] for each in told] == [[] for _ in told]
    for child in shown["children"]:
        inner = uwf("step", "list", child, "--json").json["items"]
        found = [uwf("step", "show", each["hash"], "--json").json for each in inner]
        assert [each["warnings"] for each in found] == [[] for _ in found]
    assert uwf("verify").code == 0
