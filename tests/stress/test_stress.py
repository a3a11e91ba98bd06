"""The long checks in a bounded form; each script says how to run it at length."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stress.fleet import play

pytestmark = [pytest.mark.slow, pytest.mark.compat]

HERE = Path(__file__).parent


def _run(script: str, *words: str, scratch: Path) -> str:
    done = subprocess.run(
        [sys.executable, HERE / script, *words],
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_nothing_is_lost_when_the_program_is_killed(tmp_path: Path) -> None:
    said = _run("kill9.py", "20", "7", scratch=tmp_path)

    assert "20 kills" in said


def test_nothing_is_lost_beside_git_tidying_up(tmp_path: Path) -> None:
    said = _run("beside.py", "5", scratch=tmp_path)

    assert " 0 failures" in said, said


def test_sixty_four_starts_eight_at_a_time_all_succeed(tmp_path: Path) -> None:
    said = _run("starts.py", "64", "8", scratch=tmp_path)

    assert said.startswith("64 threads")


def test_a_long_thread_works_in_every_way(tmp_path: Path) -> None:
    said = _run("long.py", "--steps", "150", scratch=tmp_path)

    assert said.endswith("150 steps: all of it works\n")


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
def test_nothing_is_lost_when_the_power_goes(tmp_path: Path) -> None:
    said = _run("power.py", "70", "7", scratch=tmp_path)

    assert "70 losses" in said


def test_workers_that_are_killed_frozen_and_cut_off_lose_nothing(
    tmp_path: Path,
) -> None:
    fleet = play(tmp_path, threads=12, events=10, workers=3, seed=20_261, steps=2)

    assert sum(fleet.told.values()) == 10


def test_workers_of_a_web_server_run_each_step_once(tmp_path: Path) -> None:
    fleet = play(tmp_path, threads=6, events=0, workers=3, seed=1, steps=3, http=True)

    # A claim and a push a step.
    assert fleet.pushes == 6 * 4
