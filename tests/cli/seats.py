"""People at terminals of their own: a home, a folder, and the program in it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.calls import ASKING, REPLIES, WORKFLOW, Result
from uwfgit.cli.frame.app import main


@dataclass(slots=True)
class Seat:
    """Somebody with a home and a clone of the code."""

    name: str
    home: Path
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Result:
        """Call the program as this person, in their folder."""
        for key, value in {
            "HOME": str(self.home),
            "UWF_HOME": str(self.home / ".uwf"),
            "GIT_CONFIG_GLOBAL": str(self.home / ".gitconfig"),
            "GIT_COMMITTER_NAME": self.name,
            "GIT_COMMITTER_EMAIL": f"{self.name.lower()}@example.org",
        }.items():
            self.monkeypatch.setenv(key, value)
        self.monkeypatch.chdir(self.folder)
        self.capsys.readouterr()
        code = main(list(words))
        printed = self.capsys.readouterr()
        return Result(code=code, out=printed.out, err=printed.err)

    def do(self, *words: str, code: int = 0) -> Result:
        """Call the program, which has to exit with a code."""
        done = self(*words)
        assert done.code == code, f"{words}: {done.code}\n{done.out}{done.err}"
        return done

    def trust(self) -> tuple[str, ...]:
        """Give what lets a thread of others run in this folder, where it is asked."""
        needs = "--trust" in self.do("thread", "resume", "--help").out
        return ("--trust", "--cwd", ".") if needs else ("--cwd", ".")

    def start(self, *, agent: str = "asking.yaml") -> str:
        """Start a thread; by default it comes to ask something."""
        done = self.do("thread", "start", "ping.yaml", "-p", "the task", "--json")
        thread: str = done.json["threadId"]
        self("thread", "exec", thread, "--agent", f"scripted:{agent}")
        return thread


def make_seat(
    folder: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    code: Path | None = None,
) -> Seat:
    """Give somebody a home, and a folder or a clone of some code."""
    base = folder / name.lower()
    work = base / f"{name.lower()}s-code"
    (base / "home").mkdir(parents=True)
    if code is None:
        work.mkdir()
    else:
        subprocess.run(
            ["git", "clone", "--quiet", str(code), str(work)],
            check=True,
            env={**os.environ, "HOME": str(base)},
        )
    for file, text in (
        ("ping.yaml", WORKFLOW),
        ("replies.yaml", REPLIES),
        ("asking.yaml", ASKING),
    ):
        (work / file).write_text(text)
    return Seat(
        name=name,
        home=base / "home",
        folder=work,
        monkeypatch=monkeypatch,
        capsys=capsys,
    )
