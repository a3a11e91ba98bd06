from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.options import GlobalOptions


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def test_init_outside_a_work_tree_makes_the_users_store(uwf: Uwf, home: Path) -> None:
    first = uwf("init", "--json")
    second = uwf("init", "--json")

    assert first.json == {"store": str(home / "store"), "created": True}
    assert second.json == {"store": str(home / "store"), "created": False}


def test_init_in_a_work_tree_makes_its_repositorys_store(uwf: Uwf, work: Path) -> None:
    git(work, "init")

    made = uwf("init")

    assert made.out == f"created store {work / '.git' / 'uwf'}\n"
    assert uwf("store", "path").out.strip() == str(work / ".git" / "uwf")


def test_init_user_in_a_work_tree_makes_the_users_store(
    uwf: Uwf, work: Path, home: Path
) -> None:
    git(work, "init")

    assert uwf("init", "--user", "--json").json["store"] == str(home / "store")


def test_init_refuses_two_stores(uwf: Uwf) -> None:
    assert uwf("init", "--user", "--store", "x").code == 2


@pytest.mark.parametrize(
    "chosen", ["option", "environment", "git config", "repository", "user"]
)
def test_which_store_is_used(
    uwf: Uwf,
    work: Path,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chosen: str,
) -> None:
    ways = ["user", "repository", "git config", "environment", "option"]
    ways = ways[: ways.index(chosen) + 1]
    if "repository" in ways:
        git(work, "init")
    if "git config" in ways:
        git(work, "config", "uwf.store", "../configured")
    if "environment" in ways:
        monkeypatch.setenv("UWF_STORE", str(tmp_path / "environment"))
    words = ["--store", str(tmp_path / "option")] if "option" in ways else []
    expected = {
        "user": home / "store",
        "repository": work / ".git" / "uwf",
        "git config": tmp_path / "configured",
        "environment": tmp_path / "environment",
        "option": tmp_path / "option",
    }

    made = uwf("init", *words, "--json")

    assert made.json["store"] == str(expected[chosen])


def test_all_worktrees_share_one_store(uwf: Uwf, work: Path, tmp_path: Path) -> None:
    git(work, "init")
    git(
        work,
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@b",
        "commit",
        "--allow-empty",
        "-mx",
    )
    git(work, "worktree", "add", str(tmp_path / "second"))
    os.chdir(tmp_path / "second")

    assert uwf("init", "--json").json["store"] == str(work / ".git" / "uwf")


def test_a_work_tree_that_lost_its_repository_is_told_which_store_is_used(
    uwf: Uwf, work: Path, home: Path
) -> None:
    (work / ".git").write_text("gitdir: /gone\n")

    kept = uwf("cas", "put-text", "x")
    (work / ".git").unlink()
    other = uwf("cas", "put-text", "x")

    assert (kept.code, other.err) == (0, "")
    assert f"warning: '{work / '.git'}' points to a repository that is" in kept.err
    assert str(home / "store") in kept.err


def test_a_bare_repository_in_the_way_is_no_store(uwf: Uwf, work: Path) -> None:
    git(work, "init")
    git(work, "init", "--bare", "planted.git")
    (work / "planted.git" / "inside").mkdir()
    os.chdir(work / "planted.git" / "inside")

    assert uwf("init", "--json").json["store"] == str(work / ".git" / "uwf")


def test_in_a_stores_own_folder_the_hint_says_how_to_use_it(
    uwf: Uwf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert uwf("init", "--store", str(tmp_path / "kept")).code == 0
    monkeypatch.chdir(tmp_path / "kept")

    refused = uwf("thread", "list")

    assert refused.code == 1
    assert "use it with --store ." in refused.err
    assert uwf("thread", "list", "--store", ".").code == 0


def test_what_is_no_store_is_not_offered_to_be_trusted(uwf: Uwf, work: Path) -> None:
    git(work, "init")
    (work / "file").touch()
    before = uwf("thread", "list", "--store", ".")
    assert uwf("init").code == 0

    for path, said in (("file", "`uwf init` made"), (".", str(work / ".git" / "uwf"))):
        refused = uwf("thread", "list", "--store", path)
        assert (refused.code, "is not a store" in refused.err) == (1, True)
        assert said in refused.err
        assert "trust" not in refused.err
    assert "`uwf init` made" in before.err


def test_path_fails_without_a_store(uwf: Uwf, work: Path) -> None:
    git(work, "init")

    shown = uwf("store", "path")

    assert (shown.code, shown.out) == (1, "")
    assert "hint: create it with: uwf init\n" in shown.err


@pytest.mark.parametrize("value", ["false", "No", "off", "0", ""])
def test_auto_init_can_be_switched_off(uwf: Uwf, work: Path, value: str) -> None:
    git(work, "init")
    git(work, "config", "uwf.autoInit", value)

    stored = uwf("cas", "put-text", "x")

    assert stored.code == 1
    assert not (work / ".git" / "uwf").exists()


@pytest.mark.parametrize("in_repository", [False, True])
def test_auto_init_can_be_switched_off_for_all_repositories(
    uwf: Uwf, work: Path, home: Path, *, in_repository: bool
) -> None:
    git(work, "init") if in_repository else None
    git(work, "config", "--global", "uwf.autoInit", "false")

    stored = uwf("cas", "put-text", "x", "--json")

    assert (stored.code, stored.error["code"]) == (1, "not-found")
    assert not (work / ".git" / "uwf").exists()
    assert not (home / "store").exists()
    assert uwf("init").code == 0
    assert uwf("cas", "put-text", "x").code == 0


def test_a_repository_says_auto_init_otherwise_than_the_user(
    uwf: Uwf, work: Path
) -> None:
    git(work, "init")
    git(work, "config", "--global", "uwf.autoInit", "false")
    git(work, "config", "uwf.autoInit", "true")

    assert uwf("cas", "put-text", "x").code == 0
    assert (work / ".git" / "uwf").exists()


def test_a_store_made_elsewhere_is_refused_until_it_is_trusted(
    uwf: Uwf, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(work, "init")
    uwf("init")
    monkeypatch.setenv("UWF_HOME", str(work / "another-home"))

    refused = uwf("store", "path", "--json")
    trusted = uwf("store", "trust", "--json")

    assert (refused.code, refused.error["code"]) == (1, "untrusted")
    assert trusted.json == {"store": str(work / ".git" / "uwf"), "trusted": True}
    assert uwf("store", "path").code == 0


def test_a_store_that_would_run_something_is_refused(uwf: Uwf, work: Path) -> None:
    git(work, "init")
    uwf("init")
    git(work / ".git" / "uwf", "config", "core.sshCommand", "touch owned")

    shown = uwf("thread", "list", "--json")

    assert shown.code == 1
    assert "core.sshcommand" in shown.error["message"].lower()


def test_git_runs_in_the_store_and_hands_its_exit_code_on(uwf: Uwf, work: Path) -> None:
    uwf("init")

    found = run_uwf(work, "git", "rev-parse", "--abbrev-ref", "main")
    missing = run_uwf(work, "--json", "git", "rev-parse", "--verify", "gone")

    assert (found.returncode, found.stdout) == (0, "main\n")
    assert missing.returncode == 128


def run_uwf(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "uwfgit", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )


def test_git_on_a_terminal_shows_no_escape(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    uwf("thread", "start", "ping.yaml", "-p", "x")
    monkeypatch.setattr("uwfgit.cli.frame.output.Output.width", property(lambda _: 80))
    monkeypatch.setenv("GIT_COMMITTER_NAME", "\x1b[31mred")

    shown = uwf("git", "log", "-1", "--format=%x1b[2J%cn", "main")

    assert shown.out == "\\x1b[2Juwf\n"
    assert uwf("git", "log", "gone").code == 128


def test_git_without_words_is_a_usage_error(uwf: Uwf) -> None:
    assert uwf("git").code == 2


def test_home_is_the_systems_when_the_environment_has_none() -> None:
    context = CommandContext(options=GlobalOptions(), environment={})

    assert context.home == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".uwf"


def test_a_folder_that_is_gone_is_one_line(
    uwf: Uwf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    shown = uwf("store", "path", "--json")

    assert shown.code == 1
    assert shown.error["message"].startswith("the current directory is gone")


@pytest.mark.parametrize("how", ["option", "environment"])
def test_a_named_store_that_is_not_there_is_not_made(
    uwf: Uwf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    path = tmp_path / "typ o" / "x"
    words = ["--store", str(path)] if how == "option" else []
    if how == "environment":
        monkeypatch.setenv("UWF_STORE", str(path))

    done = uwf("thread", "start", "ping.yaml", "-p", "x", *words)

    assert done.code == 1
    assert done.err.splitlines()[-1] == (
        f"hint: create it with: uwf init --store '{path}'"
    )
    assert not path.exists()
