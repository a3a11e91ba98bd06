"""Adapters made with the kit, and the ``uwf-…`` commands, run by uwf as processes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.fake_api import FakeApi, modes
from tests.cli.calls import WORKFLOW, Uwf
from tests.cli.screens import write_program
from uwfgit import create_agent
from uwfgit.cli.store.cmd_prompt import read_guide
from uwfgit.errors import UwfError
from uwfgit.kit.create import _put

HEAD = "from uwfgit import AgentReply, create_agent\n"
MOCK = """\
steps:
  - role: writer
    output: "---\\n$status: done\\ntext: one\\n---\\nFirst."
  - role: checker
    output: "---\\n$status: good\\n---\\nYes."
"""
Write = Callable[[str], str]


@pytest.fixture
def write(work: Path) -> Write:
    """Write an adapter around a function ``run``; give the word for ``--agent``."""

    def write_agent(body: str) -> str:
        file = work / "agent.py"
        main = "raise SystemExit(create_agent('mine', run)())"
        file.write_text(f"{HEAD}\n{body}\n\n{main}\n")
        return f"adapter:{sys.executable} {file}"

    return write_agent


def test_a_function_is_an_agent_that_knows_its_step(
    uwf: Uwf, thread: str, write: Write
) -> None:
    agent = write(
        """
def run(context):
    if context.role == "writer":
        return f"---\\n$status: done\\ntext: {context.start.prompt}\\n---\\nBody."
    step = context.steps[-1]
    assert context.workflow.name == "ping" and step.output["text"] == "the task"
    assert "Check the task" in context.prompt and "good" in context.output_format
    return AgentReply(text="---\\n$status: good\\n---\\n", model="mine-1")
"""
    )

    done = uwf("thread", "exec", thread, "--all", "--agent", agent, "--json")

    assert done.json["status"] == "end", done.err + done.out
    first = uwf("step", "show", f"{thread}:1", "--json").json
    assert (first["output"]["text"], first["body"]) == ("the task", "Body.")
    second = uwf("step", "show", f"{thread}:2", "--json").json
    assert (second["detail"]["model"], second["agent"]) == ("mine-1", "adapter")


def test_an_answer_that_does_not_fit_is_corrected_in_the_session(
    uwf: Uwf, thread: str, write: Write
) -> None:
    agent = write(
        """
def run(context):
    if not context.correction:
        return AgentReply(text="no block", session_id="s-1")
    assert context.session_id == "s-1" and "could not be used" in context.prompt
    return AgentReply(text="---\\n$status: stuck\\n---\\n", session_id="s-1")
"""
    )

    done = uwf("thread", "exec", thread, "--agent", agent, "--json")

    assert done.json["status"] == "end", done.out
    detail = uwf("step", "show", f"{thread}:1", "--json").json["detail"]
    assert [turn["role"] for turn in detail["turns"]] == [
        "assistant",
        "user",
        "assistant",
    ]


@pytest.mark.parametrize(
    ("body", "outcome", "told"),
    [
        (
            "    raise ValueError('no luck')",
            ("error", "suspended", 5),
            "ValueError: no luck",
        ),
        ("    return 'prose'", ("error", "suspended", 5), "has no YAML block"),
        (
            "    return '---\\n$status: $SUSPEND\\nreason: Which?\\n---\\n'",
            ("$SUSPEND", "suspended", 3),
            None,
        ),
    ],
)
def test_failing_and_asking_are_recorded_as_such(
    uwf: Uwf,
    thread: str,
    write: Write,
    body: str,
    outcome: tuple[str, str, int],
    told: str | None,
) -> None:
    agent = write(f"def run(context):\n{body}")

    done = uwf("thread", "exec", thread, "--agent", agent, "--json")

    (step,) = done.json["steps"]
    assert (step["status"], done.json["status"], done.code) == outcome
    assert told is None or told in step["error"]


def test_a_node_that_the_program_refuses_says_why(uwf: Uwf, work: Path) -> None:
    assert uwf("init").code == 0
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    with pytest.raises(UwfError) as caught:
        _put({**os.environ, "PATH": path, "UWF_CWD": str(work)}, "nosuch", {})

    told = "cannot store a node of type nosuch: error: 'nosuch' is not a type"
    assert caught.value.message.startswith(told)


def test_run_by_hand_it_says_what_it_is(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert create_agent("mine", lambda _: "")([]) == 2
    assert "to be run by uwf" in capfd.readouterr().err


def test_uwf_mock_replays_a_file(uwf: Uwf, thread: str, work: Path) -> None:
    (work / "mock.yaml").write_text(MOCK)
    code = "from uwfgit.kit.commands import mock; raise SystemExit(mock())"
    program = write_program(
        work / "uwf-mock-here", f"#!/bin/sh\nexec {sys.executable} -c '{code}' \"$@\"\n"
    )
    agent = f"adapter:{program} --mock-data {work / 'mock.yaml'}"

    done = uwf("thread", "exec", thread, "--all", "--agent", agent, "--json")

    assert [step["status"] for step in done.json["steps"]] == ["done", "good"]


def test_uwf_builtin_is_an_adapter_too(uwf: Uwf, thread: str, work: Path) -> None:
    code = "from uwfgit.kit.commands import builtin; raise SystemExit(builtin())"
    program = write_program(
        work / "my-builtin", f"#!/bin/sh\nexec {sys.executable} -c '{code}' \"$@\"\n"
    )
    with FakeApi(modes.answer("---\n$status: stuck\n---\n")) as api:
        uwf("config", "set", "providers.fake.baseUrl", f"{api.url}/v1")
        uwf("config", "set", "defaultModel", "fake/m")

        done = uwf("thread", "exec", thread, "--agent", f"adapter:{program}", "--json")

    assert done.json["status"] == "end", done.out
    detail = uwf("step", "show", f"{thread}:1", "--json").json["detail"]
    assert (detail["kind"], detail["model"]) == ("builtin", "m")


@pytest.fixture
def summaries(uwf: Uwf, work: Path) -> str:
    """A thread whose writer gives a summary."""
    (work / "ping.yaml").write_text(WORKFLOW.replace("text", "summary"))
    started = uwf("thread", "start", "ping.yaml", "-p", "the task", "--json")
    name: str = started.json["threadId"]
    return name


def _examples(language: str) -> list[str]:
    text = read_guide("adapter-developing")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_guides_python_example_runs(uwf: Uwf, summaries: str, work: Path) -> None:
    (example,) = _examples("python")
    write_program(work / "my-agent", "#!/bin/sh\ncat >/dev/null\necho All is done.\n")
    file = work / "example.py"
    file.write_text(example.replace('"my-agent"', f'"{work}/my-agent"'))

    agent = f"adapter:{sys.executable} {file}"
    done = uwf("thread", "exec", summaries, "--agent", agent, "--json")

    (step,) = done.json["steps"]
    assert step["status"] == "done", done.out
    assert (
        uwf("step", "show", f"{summaries}:1", "--json").json["body"] == "All is done."
    )


def test_the_guides_shell_example_runs(
    uwf: Uwf, summaries: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = next(text for text in _examples("sh") if text.startswith("#!/bin/sh"))
    folder = work / "programs"
    folder.mkdir()
    write_program(folder / "my-agent", "#!/bin/sh\ncat >/dev/null\nprintf 'All done'\n")
    adapter = write_program(work / "my-adapter", example)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    done = uwf("thread", "exec", summaries, "--agent", f"adapter:{adapter}", "--json")

    (step,) = done.json["steps"]
    assert step["status"] == "done", done.out
