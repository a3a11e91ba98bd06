"""The queue through the program: two people, a bare repository, and workers."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.builders import git
from tests.cli.calls import Uwf
from tests.fleet.seats import Seat
from tests.program import PATIENCE, wait_until


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    path = tmp_path / "bare.git"
    git(path, "init", "--quiet", "--bare", "--initial-branch=main", str(path))
    return path


def test_a_worker_takes_one_thread_and_says_which(tmp_path: Path, remote: Path) -> None:
    ada, bob = Seat(tmp_path, "ada", remote), Seat(tmp_path, "bob", remote)
    (thread,) = ada.queue(1)
    assert ada.items()[thread]["state"] == "queued"

    with bob.work("--once") as worker:
        out, err = worker.communicate(timeout=PATIENCE)

    assert f'"ran": "{thread}"' in out, err
    assert ada.items()[thread]["state"] == "done"
    ada.uwf("pull")
    assert '"status": "end"' in ada.uwf("thread", "show", thread, "--json")
    ada.uwf("verify")


@pytest.mark.slow
def test_a_worker_that_is_told_to_stop_gives_its_thread_back(
    tmp_path: Path, remote: Path
) -> None:
    ada, bob = Seat(tmp_path, "ada", remote), Seat(tmp_path, "bob", remote)
    (thread,) = ada.queue(1)
    (bob.home / "slow").touch()
    worker = bob.work("--grace", "0.2")
    wait_until(lambda: ada.items()[thread]["state"] == "claimed")
    time.sleep(1.0)

    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=PATIENCE)

    assert worker.returncode == 0, err
    assert ada.items()[thread]["state"] == "queued"
    (bob.home / "slow").unlink()
    with bob.work("--once") as again:
        again.communicate(timeout=PATIENCE)
    assert ada.items()[thread]["state"] == "done"


@pytest.mark.slow
def test_what_a_killed_worker_pushed_is_gone_on_with(
    tmp_path: Path, remote: Path
) -> None:
    ada, bob = Seat(tmp_path, "ada", remote), Seat(tmp_path, "bob", remote)
    cas = Seat(tmp_path, "cas", remote)
    threads = ada.queue(4)
    dying = bob.work("--lease", "3")
    wait_until(lambda: any(i["state"] == "claimed" for i in ada.items().values()))
    dying.kill()
    dying.communicate()

    with cas.work("--lease", "3", "--idle-exit", "8") as living:
        living.communicate(timeout=2 * PATIENCE)

    items = ada.items()
    assert {thread: items[thread]["state"] for thread in threads} == dict.fromkeys(
        threads, "done"
    )
    ada.uwf("pull")
    ada.uwf("verify")


def test_without_trust_nothing_is_run_and_why_is_said(
    tmp_path: Path, remote: Path
) -> None:
    ada, bob = Seat(tmp_path, "ada", remote), Seat(tmp_path, "bob", remote)
    (thread,) = ada.queue(1)

    told = bob.uwf("worker", "--check")

    assert thread in told
    assert "trust" in told


@pytest.mark.parametrize(
    "words", [("--name", "a b"), ("--lease", "9999"), ("--jobs", "0")]
)
def test_a_name_a_lease_and_a_count_have_bounds(
    uwf: Uwf, words: tuple[str, ...]
) -> None:
    assert uwf("worker", *words).code == 2
