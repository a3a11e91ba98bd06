from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.calls import Uwf


@pytest.mark.slow
def test_the_demo_runs_to_the_end_and_forks(uwf: Uwf, tmp_path: Path) -> None:
    shown = uwf("demo", str(tmp_path / "scratch"))

    assert shown.code == 0, shown.err
    assert "$ uwf thread start solve-issue" in shown.out
    assert "committed" in shown.out
    assert "$ uwf git log --graph" in shown.out
    assert f"Everything is in {tmp_path / 'scratch'}" in shown.out
    page = (tmp_path / "scratch" / "pages" / "threads").as_uri()
    assert page in shown.out.splitlines()[-1]


@pytest.mark.slow
def test_the_demo_in_json_names_thread_fork_and_store(
    uwf: Uwf, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the user has configured is no part of the play.
    home.mkdir(parents=True)
    (home / "config.yaml").write_text("limits: {maxSteps: 2}\ndefaultAgent: nobody\n")
    for name in ("GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.delenv(name)

    shown = uwf("demo", str(tmp_path / "scratch"), "--json")

    assert (shown.code, shown.err) == (0, "")
    assert list(shown.json) == ["threadId", "fork", "store", "page"]
    assert Path(shown.json["page"]).is_file()
    branches = subprocess.run(
        ["git", f"--git-dir={shown.json['store']}", "branch", "--list", "thread/*"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert branches == [
        f"thread/{shown.json['threadId']}",
        f"thread/{shown.json['fork']}",
    ]


def test_the_demo_refuses_a_folder_in_use(uwf: Uwf, work: Path) -> None:
    assert uwf("demo", str(work)).code == 1
