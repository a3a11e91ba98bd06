from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from uwfgit.errors import StoreError, UsageError
from uwfgit.store.git import streaming
from uwfgit.store.git.gitcmd import (
    check_operand,
    find_git,
    prepare_git,
    run_git,
)
from uwfgit.store.git.streaming import leave_to_git, pass_to_git
from uwfgit.store.locks.flock import lock

pytestmark = pytest.mark.compat


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "C",
        "GIT_COMMITTER_EMAIL": "c@example.org",
    }


@pytest.fixture
def bare(tmp_path: Path, environment: dict[str, str]) -> Path:
    path = tmp_path / "bare"
    subprocess.run(
        ["git", "init", "-q", "--bare", str(path)], env=environment, check=True
    )
    return path


def test_git_works_on_the_repository_it_was_given(
    bare: Path, environment: dict[str, str]
) -> None:
    result = run_git(
        ["rev-parse", "--absolute-git-dir"], git_dir=bare, environment=environment
    )

    assert (result.code, result.text) == (0, str(bare))


def test_repository_variables_cannot_lead_git_elsewhere(
    bare: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    names = subprocess.run(
        ["git", "rev-parse", "--local-env-vars"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    settings = {"GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"}
    hostile = dict.fromkeys({*names} - settings, elsewhere) | environment

    _, cleaned = prepare_git([], git_dir=bare, environment=hostile)
    assert set(names) & set(cleaned) == {"GIT_NO_REPLACE_OBJECTS"}
    assert cleaned["GIT_NO_REPLACE_OBJECTS"] == "1"
    result = run_git(["rev-parse", "--git-dir"], git_dir=bare, environment=hostile)
    assert result.text == str(bare)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        pytest.param("GIT_SSH_COMMAND", True, id="ssh command"),
        pytest.param("GIT_ASKPASS", True, id="askpass"),
        pytest.param("GIT_TERMINAL_PROMPT", True, id="prompt"),
        pytest.param("GIT_TRACE_CURL", True, id="trace"),
        pytest.param("GIT_SSL_CAINFO", True, id="certificates"),
        pytest.param("GIT_COMMITTER_NAME", True, id="identity"),
        pytest.param("SSH_AUTH_SOCK", True, id="ssh agent"),
        pytest.param("https_proxy", True, id="proxy"),
        pytest.param("GIT_DIR", False, id="repository"),
        pytest.param("GIT_CONFIG_PARAMETERS", True, id="config"),
        pytest.param("GIT_CONFIG_COUNT", True, id="config count"),
        pytest.param("GIT_CONFIG", False, id="a repository's config"),
        pytest.param("GIT_REPLACE_REF_BASE", False, id="replace base"),
        pytest.param("GIT_NAMESPACE", False, id="namespace"),
        pytest.param("GIT_OBJECT_DIRECTORY", False, id="object folder"),
        pytest.param("GIT_QUARANTINE_PATH", False, id="quarantine"),
        pytest.param("GIT_TEMPLATE_DIR", False, id="template"),
        pytest.param("GIT_EXTERNAL_DIFF", False, id="external diff"),
        pytest.param("GIT_SOMETHING_NEW", False, id="unknown"),
    ],
)
def test_the_environment_keeps_what_is_the_users(
    name: str,
    kept: bool,  # noqa: FBT001 - a table's column
    environment: dict[str, str],
) -> None:
    given = {**environment, name: "1"}

    _, cleaned = prepare_git([], git_dir=None, environment=given)

    assert (name in cleaned) is kept


def test_ext_addresses_run_nothing(
    bare: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    ran = tmp_path / "ran"
    hostile = environment | {"GIT_ALLOW_PROTOCOL": "file:ext"}

    result = run_git(
        ["ls-remote", "--", f"ext::sh -c touch% {ran}"],
        git_dir=bare,
        environment=hostile,
    )

    assert result.code != 0
    assert not ran.exists()


def test_hooks_do_not_run(
    bare: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    ran = tmp_path / "ran"
    hook = bare / "hooks" / "reference-transaction"
    hook.write_text(f"#!/bin/sh\ntouch '{ran}'\n")
    hook.chmod(0o755)
    tree = run_git(
        ["hash-object", "-t", "tree", "-w", "--stdin"],
        git_dir=bare,
        environment=environment,
        input=b"",
    ).text
    commit = run_git(
        ["commit-tree", tree, "-m", "x"], git_dir=bare, environment=environment
    ).text
    assert len(commit) == 40

    result = run_git(
        ["update-ref", "refs/heads/x", commit], git_dir=bare, environment=environment
    )

    assert result.code == 0
    assert not ran.exists()
    assert (
        pass_to_git(
            ["update-ref", "-d", "refs/heads/x"], git_dir=bare, environment=environment
        )
        == 0
    )
    assert not ran.exists()


def test_input_reaches_git_and_bytes_come_back(
    bare: Path, environment: dict[str, str]
) -> None:
    data = bytes(range(256))
    oid = run_git(
        ["hash-object", "-w", "--stdin"],
        git_dir=bare,
        environment=environment,
        input=data,
    ).text

    result = run_git(["cat-file", "blob", oid], git_dir=bare, environment=environment)

    assert result.stdout == data


def test_a_failure_is_a_value_with_gits_last_words(
    bare: Path, environment: dict[str, str]
) -> None:
    result = run_git(
        ["rev-parse", "--verify", "nothing"], git_dir=bare, environment=environment
    )

    assert result.code == 128
    assert result.complaint == "fatal: Needed a single revision"


def test_a_missing_git_is_said(bare: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        run_git(["version"], git_dir=bare, environment={"PATH": str(tmp_path)})

    assert "git is not installed" in caught.value.message


def test_git_is_never_taken_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "git"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.chdir(tmp_path)

    assert find_git({"PATH": f".{os.pathsep}"}) is None
    assert find_git({"PATH": str(tmp_path)}) == planted


def test_a_slow_git_is_stopped(bare: Path, environment: dict[str, str]) -> None:
    with pytest.raises(StoreError):
        run_git(
            ["-c", "alias.wait=!sleep 5", "wait"],
            git_dir=bare,
            environment=environment,
            timeout=0.2,
        )


def test_passing_through_uses_the_callers_streams_and_exit_code(
    bare: Path, environment: dict[str, str]
) -> None:
    code = (
        "import sys, pathlib, json\n"
        "from uwfgit.store.git.streaming import pass_to_git\n"
        "env = json.loads(sys.argv[2])\n"
        "args = ['rev-parse', '--is-bare-repository', 'x']\n"
        "sys.exit(pass_to_git(args, git_dir=pathlib.Path(sys.argv[1]),"
        " environment=env))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(bare), json.dumps(environment)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout.splitlines()[0]) == (128, "true")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("-x", id="option"),
        pytest.param("--upload-pack=sh", id="long option"),
        pytest.param("ext::sh -c x", id="ext"),
        pytest.param("EXT::sh", id="ext upper"),
        pytest.param("fd::0", id="fd"),
    ],
)
def test_operands_that_git_takes_for_more_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        check_operand(text)


@pytest.mark.parametrize(
    "text", ["origin", "https://example.org/x.git", "git@example.org:x.git", "/a/b"]
)
def test_plain_operands_pass(text: str) -> None:
    assert check_operand(text) == text


@pytest.mark.slow
def test_a_grouped_git_ends_with_all_that_it_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    alias = f"alias.waiting=!sleep 1000 & echo $! > '{pid}'; wait"

    with pytest.raises(StoreError) as told:
        run_git(
            ["-c", alias, "waiting"],
            git_dir=None,
            cwd=tmp_path,
            environment=dict(os.environ),
            timeout=2,
            is_grouped=True,
        )

    assert told.value.message == "git waiting took longer than 2 s"
    started = Path(f"/proc/{pid.read_text().strip()}/stat")
    deadline = time.monotonic() + 60
    while started.exists() and started.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_who_leaves_things_to_git_for_long_has_no_dead_children(
    bare: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    def leave() -> set[int]:
        before = set(streaming._LEFT)
        with lock(tmp_path / "lock", command="test", wait=60) as held:
            assert leave_to_git(
                ["version"], git_dir=bare, environment=environment, held=held
            )
        return streaming._LEFT - before

    (first,) = leave()
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)

    (second,) = leave()

    with pytest.raises(ChildProcessError):
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    os.waitpid(second, 0)
