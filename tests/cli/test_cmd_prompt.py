from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from uwfgit.cli.store.cmd_prompt import list_guides, read_guide
from uwfgit.cli.words.reference import iter_commands, root_context
from uwfgit.model.workflow.source import check_workflow_file
from uwfgit.model.yaml.core import parse_value


def test_the_guides_are_listed(uwf: Uwf) -> None:
    names = [item["name"] for item in uwf("prompt", "list", "--json").json["items"]]

    assert names == [
        "adapter-developing",
        "bootstrap",
        "moderator",
        "usage",
        "workflow-authoring",
        "yaml",
    ]
    assert uwf("prompt").out == uwf("prompt", "list").out


@pytest.mark.parametrize("name", list_guides())
def test_a_guide_can_be_saved_as_a_skill(uwf: Uwf, name: str) -> None:
    text = uwf("prompt", name).out

    header = parse_value(text.split("---\n")[1])
    assert header["name"] == name
    assert header["description"]
    assert text == read_guide(name)
    assert uwf("prompt", name, "--json").json == {"name": name, "text": text}


def test_an_unknown_guide_names_the_others(uwf: Uwf) -> None:
    shown = uwf("prompt", "nope", "--json")

    assert shown.code == 1
    assert "usage" in shown.error["hint"]


def test_every_workflow_in_a_guide_is_valid(tmp_path: Path) -> None:
    found = 0
    for name in list_guides():
        for block in re.findall(r"```yaml\n(.*?)```", read_guide(name), re.DOTALL):
            value = parse_value(block)
            if "graph" not in value:
                continue
            file = tmp_path / f"{value['name']}.yaml"
            file.write_text(block)
            assert check_workflow_file(file) == ()
            found += 1

    assert found == 3


@pytest.mark.parametrize("name", list_guides())
def test_every_command_in_a_guide_exists(name: str) -> None:
    known = {ctx.command_path for ctx in iter_commands(root_context(), hidden=True)}

    text = read_guide(name)
    code = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    code += re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    found = re.findall(r"\buwf ([a-z]+(?: [a-z-]+)?)", "\n".join(code))
    assert found
    for words in found:
        first = f"uwf {words.split()[0]}"
        assert first in known, words
        group = any(path.startswith(f"{first} ") for path in known)
        assert not group or " " not in words or f"uwf {words}" in known, words


def test_the_scripted_example_of_the_guide_runs(uwf: Uwf, work: Path) -> None:
    blocks = re.findall(
        r"```yaml\n(.*?)```", read_guide("workflow-authoring"), re.DOTALL
    )
    (work / "fix-and-check.yaml").write_text(blocks[0])
    (work / "script.yaml").write_text(blocks[1])

    done = uwf(
        "thread",
        "run",
        "./fix-and-check.yaml",
        "-p",
        "x",
        "--agent",
        "scripted:script.yaml",
    )

    assert done.code == 0, done.out + done.err
