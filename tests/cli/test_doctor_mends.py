"""What doctor tells people to do, done."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.calls import Result, Uwf
from uwfgit.store.canonical import Json


def found(done: Result, check: str) -> list[Json]:
    return [each for each in done.json["checks"] if each["check"] == check]


@pytest.mark.usefixtures("thread")
@pytest.mark.parametrize("is_known", [False, True], ids=["no remote", "a remote"])
def test_threads_that_exist_only_here_are_sent_as_doctor_says(
    uwf: Uwf, tmp_path: Path, *, is_known: bool
) -> None:
    bare = tmp_path / "bare"
    subprocess.run(["git", "init", "-q", "--bare", bare], check=True)
    if is_known:
        uwf("remote", "add", "origin", str(bare))
    (before,) = found(uwf("doctor", "--json"), "sharing")

    for line in before["hint"].split(", then "):
        words = line.replace("NAME", "origin").replace("URL", str(bare))
        assert uwf(*shlex.split(words)[1:]).code == 0

    (after,) = found(uwf("doctor", "--json"), "sharing")
    assert (before["level"], after["level"]) == ("note", "ok")


def test_a_setting_without_effect_is_mended_in_the_file_it_stands_in(
    uwf: Uwf, work: Path, home: Path
) -> None:
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    home.mkdir(exist_ok=True)
    files = [home / "config.yaml", work / ".uwf.yaml"]
    for number, file in enumerate(files):
        file.write_text(f"nonsense{number}: 1\n")

    told = found(uwf("doctor", "--json"), "config")

    assert [each["hint"] for each in told] == [f"edit {file}" for file in files]
    for each in told:
        assert each["message"].startswith(each["hint"].removeprefix("edit "))


def test_a_branch_whose_good_tip_is_in_its_log_comes_back(
    uwf: Uwf, ended: str, work: Path
) -> None:
    assert work.is_dir()
    store = uwf("store", "path").out.strip()
    main = ["git", "--git-dir", store, "update-ref", f"refs/heads/thread/{ended}"]
    subprocess.run([*main, "refs/heads/main"], check=True)
    told = found(uwf("doctor", "--json"), "threads")

    (problem,) = [each for each in told if each["level"] == "problem"]
    command = problem["hint"].partition("`")[2].rstrip("`")
    assert uwf(*shlex.split(command)[1:]).code == 0

    assert uwf("thread", "show", ended, "--json").json["steps"] == 4
    assert uwf("verify", ended).code == 0
