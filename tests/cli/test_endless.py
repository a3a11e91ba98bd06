"""No schema, no expression and no file of a work tree may hang a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.calls import WORKFLOW, Uwf

SCHEMA = '{"type": "string", "pattern": "^(a+)+$"}'
VALUE = json.dumps("a" * 60 + "!")
PATIENCE = 120
"""Seconds after which a command counts as hung; never how long one takes."""


def _run(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "uwfgit", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )


def _hostile(work: Path) -> None:
    text = WORKFLOW.replace(
        "text: { type: string }", 'text: { type: string, pattern: "^(a+)+$" }'
    )
    (work / "ping.yaml").write_text(text)
    reply = f"---\n$status: done\ntext: {VALUE}\n---\nHi"
    script = {"replies": {"writer": [reply]}}
    (work / "replies.yaml").write_text(json.dumps(script))


@pytest.mark.slow
def test_an_answer_that_cannot_be_checked_in_time_is_a_failed_attempt(
    work: Path, uwf: Uwf
) -> None:
    _hostile(work)
    uwf("config", "set", "limits.corrections", "0")
    name = uwf("thread", "start", "ping.yaml", "-p", "go", "--json").json["threadId"]

    done = uwf("thread", "exec", name, "--agent", "scripted:replies.yaml", "--json")

    assert done.code == 5
    [step] = done.json["steps"]
    assert step["status"] == "error"
    assert step["error"] == (
        "text: takes more than 5 seconds to check against 'pattern' \"^(a+)+$\""
    )
    assert VALUE.strip('"') in uwf("step", "read", step["hash"]).out
    assert uwf("verify", name).code == 0


@pytest.mark.slow
def test_a_simulated_answer_that_cannot_be_checked_in_time_is_refused(
    work: Path, uwf: Uwf
) -> None:
    _hostile(work)
    uwf("config", "set", "limits.corrections", "0")

    done = uwf("workflow", "simulate", "ping.yaml", "--script", "replies.yaml")

    assert done.code == 1
    assert "refused: text: takes more than 5 seconds" in done.out


def test_a_node_that_cannot_be_checked_in_time_is_not_put(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uwfgit.model.schema.check._NODE_SECONDS", 0.5)
    kind = uwf("cas", "schema", "put", SCHEMA, "--json").json["hash"]

    put = uwf("cas", "put", kind, VALUE)

    assert put.code == 1
    assert "takes more than 0.5 seconds to check against 'pattern'" in put.err


def _link_to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _make_pipe(path: Path) -> None:
    os.mkfifo(path.parent / "pipe")
    path.symlink_to("pipe")


def _make_huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 8 * 2**30)


ENDLESS = pytest.mark.parametrize(
    "make",
    [
        pytest.param(_link_to_zeros, id="device"),
        pytest.param(_make_pipe, id="pipe"),
        pytest.param(_make_huge, id="huge"),
    ],
)


@ENDLESS
@pytest.mark.slow
def test_a_repository_setting_that_never_ends_is_an_error(
    work: Path, make: Callable[[Path], None]
) -> None:
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    make(work / ".uwf.yaml")

    done = _run("config", "list")

    assert done.returncode == 1
    assert b".uwf.yaml: cannot be read: it is " in done.stderr


@ENDLESS
@pytest.mark.slow
def test_a_workflow_file_that_never_ends_is_a_problem(
    work: Path, make: Callable[[Path], None]
) -> None:
    folder = work / ".workflows"
    folder.mkdir()
    make(folder / "x.yaml")

    done = _run("workflow", "validate", ".workflows")

    assert done.returncode == 1
    assert b".workflows/x.yaml:1:1: error Y" in done.stdout


@ENDLESS
@pytest.mark.slow
def test_an_included_file_that_never_ends_is_a_problem(
    work: Path, make: Callable[[Path], None]
) -> None:
    text = WORKFLOW.replace("goal: You write.", "goal: !include part.md")
    (work / "ping.yaml").write_text(text)
    make(work / "part.md")

    done = _run("workflow", "validate", "ping.yaml")

    assert done.returncode == 1
    assert b"ping.yaml:7:11: error Y" in done.stdout


@ENDLESS
@pytest.mark.slow
def test_a_script_that_never_ends_is_an_error(
    work: Path, make: Callable[[Path], None]
) -> None:
    make(work / "script.yaml")

    done = _run("workflow", "simulate", "ping.yaml", "--script", "script.yaml")

    assert done.returncode == 1
    assert b"script.yaml: cannot read the script: it is " in done.stderr


def test_the_completion_reads_no_pipe(work: Path) -> None:
    os.mkfifo(work / ".git")

    done = _run("__complete", "bash", "uwf", "thread", "show", "")

    assert done.returncode == 0


def test_an_argument_may_come_from_a_pipe(work: Path) -> None:
    read, write = os.pipe()
    os.write(write, b'"from a pipe"')
    os.close(write)

    done = subprocess.run(
        [sys.executable, "-m", "uwfgit", "cas", "hash", "text", f"@/dev/fd/{read}"],
        cwd=work,
        capture_output=True,
        pass_fds=[read],
        timeout=PATIENCE,
        check=False,
    )
    os.close(read)

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_an_argument_that_never_ends_is_refused(work: Path) -> None:
    assert work.is_dir()

    with Path("/dev/zero").open("rb") as zeros:
        stdin = subprocess.run(
            [sys.executable, "-m", "uwfgit", "cas", "hash", "text", "-"],
            stdin=zeros,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    file = _run("cas", "hash", "text", "@/dev/zero")

    assert b"error: JSON on stdin is larger than 64 MiB" in stdin.stderr
    assert b"cannot read '/dev/zero': it is larger than 64 MiB" in file.stderr
