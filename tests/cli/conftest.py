"""A work tree of its own, and the program called in it as from a shell."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.cli.calls import ASKING, REPLIES, WORKFLOW, Result, Uwf
from tests.sync.people import make_bare
from uwfgit.cli.frame.app import main


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the workflow and its replies, and the working directory."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "ping.yaml").write_text(WORKFLOW)
    (folder / "replies.yaml").write_text(REPLIES)
    (folder / "asking.yaml").write_text(ASKING)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GIT_COMMITTER_NAME", "Ada")
    monkeypatch.setenv("GIT_COMMITTER_EMAIL", "ada@example.org")
    return folder


@pytest.fixture
def uwf(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Uwf:
    """Call the program in the work folder."""
    assert work.is_dir()

    def call(*words: str, stdin: bytes | None = None) -> Result:
        if stdin is not None:
            text = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
            monkeypatch.setattr(sys, "stdin", text)
        capsys.readouterr()
        code = main(list(words))
        printed = capsys.readouterr()
        return Result(code=code, out=printed.out, err=printed.err)

    return call


@pytest.fixture
def thread(uwf: Uwf) -> str:
    """A thread that was started and has run nothing."""
    started = uwf("thread", "start", "ping.yaml", "-p", "the task", "--json")
    name: str = started.json["threadId"]
    return name


@pytest.fixture
def ended(uwf: Uwf, thread: str) -> str:
    """A thread at its end: four steps, one rejection."""
    done = uwf("thread", "exec", thread, "--all", "--agent", "scripted:replies.yaml")
    assert done.code == 0, done.err
    return thread


@pytest.fixture
def bare(uwf: Uwf, tmp_path: Path) -> Path:
    """A repository that is the store's remote."""
    path = make_bare(tmp_path / "bare.git")
    uwf("init", "--user")
    assert uwf("remote", "add", "origin", str(path)).code == 0
    return path
