from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.builders import git
from uwfgit.errors import UntrustedError
from uwfgit.store.care.health import check_store_settings
from uwfgit.store.handle import Store
from uwfgit.store.repository import init_store, keeping_config, open_store
from uwfgit.store.safety.config import read_config
from uwfgit.store.safety.refspecs import list_forced


def test_a_mirror_becomes_a_store_that_no_fetch_prunes(
    store: Store, tmp_path: Path, home: Path
) -> None:
    copy = tmp_path / "backup.git"
    subprocess.run(["git", "clone", "-q", "--mirror", store.path, copy], check=True)

    init_store(copy, home=home)

    made = open_store(copy, home=home)
    git(made, "update-ref", "refs/heads/thread/x", "refs/heads/main")
    git(made, "fetch", "--prune")
    assert git(made, "for-each-ref", "refs/heads/thread") != ""
    found = [each for each in check_store_settings(made) if each.level == "note"]
    assert "has no refspecs" in found[0].message


@pytest.mark.parametrize(
    ("key", "value", "is_forced"),
    [
        ("fetch", "+refs/*:refs/*", True),
        ("fetch", "refs/*:refs/*", True),
        ("fetch", "+refs/heads/thread/*:refs/heads/thread/*", True),
        ("fetch", "refs/heads/*:refs/heads/*", True),
        ("fetch", "+refs/heads/*:refs/remotes/o/*", False),
        ("fetch", "refs/heads/thread/*:refs/remotes/o/thread/*", False),
        ("fetch", "refs/uwf/approved/*:refs/tags/approved/*", False),
        ("fetch", "+refs/uwf/approved/*:refs/tags/approved/*", True),
        ("fetch", "+refs/uwf/queue/*:refs/uwf/queues/o/*", False),
        ("push", "+refs/heads/*:refs/heads/*", True),
        ("push", "refs/heads/thread/*:refs/uwf/thread/*", False),
    ],
)
def test_what_takes_recorded_work_away_is_found_and_dropped(
    store: Store, key: str, value: str, *, is_forced: bool
) -> None:
    git(store, "config", "remote.o.url", "/x")
    git(store, "config", "--add", f"remote.o.{key}", value)

    problems = [each for each in check_store_settings(store) if each.level == "problem"]

    assert bool(problems) is is_forced
    for each in problems:
        assert each.mend is not None
        each.mend()
    assert list_forced(read_config(store.path / "config").entries) == ()
    assert git(store, "config", "remote.o.url") == "/x\n"


def test_a_setting_that_would_lock_the_store_is_taken_back(
    store: Store, home: Path
) -> None:
    before = (store.path / "config").read_bytes()

    with (
        pytest.raises(UntrustedError, match=r"core\.sshCommand"),
        keeping_config(store.path),
    ):
        git(store, "config", "core.sshCommand", "x")

    assert (store.path / "config").read_bytes() == before
    with keeping_config(store.path):
        git(store, "config", "gc.pruneExpire", "3.weeks.ago")
    assert git(store, "config", "gc.pruneExpire") == "3.weeks.ago\n"
    assert open_store(store.path, home=home).path == store.path


def test_the_way_out_of_a_locked_store_is_a_command_that_works(
    store: Store, home: Path
) -> None:
    git(store, "config", "core.sshCommand", "x")
    with pytest.raises(UntrustedError) as caught:
        open_store(store.path, home=home)

    command = str(caught.value.hint).partition(": ")[2]
    subprocess.run(["sh", "-c", command], check=True)

    assert open_store(store.path, home=home).path == store.path
