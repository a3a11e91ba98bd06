"""A snapshot that goes wrong costs a warning, never a step or the user's own things."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.test_code import Desk, desk  # noqa: F401 - a fixture
from tests.program import PATIENCE


def _exec(desk: Desk, thread: str, *, before: str = "") -> subprocess.Popen[bytes]:  # noqa: F811 - the fixture's
    """Run a step in a process of its own, behind some words of the shell."""
    words = [sys.executable, "-m", "uwfgit", "thread", "exec", thread]
    words += ["--agent", desk.agent]
    script = f'{before} exec "$@"'
    return subprocess.Popen(
        ["sh", "-c", script, "sh", *words],
        cwd=desk.repo.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _begin(desk: Desk, script: str) -> str:  # noqa: F811 - the fixture's
    (desk.scripts / "1").write_text(script + "\n")
    begun = desk.uwf("thread", "start", "../ping.yaml", "-p", "t", "--json")
    thread: str = begun.json["threadId"]
    return thread


def _wait_for(path: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_a_kill_during_a_snapshot_harms_nothing(desk: Desk) -> None:  # noqa: F811 - the fixture
    marker = desk.repo.root.parent / "filtering"
    desk.repo.sh(
        f"git config filter.slow.clean 'touch {marker}; sleep 30; cat' && "
        "echo '*.slow filter=slow' > .gitattributes && git add .gitattributes && "
        "git commit -qm attributes"
    )
    thread = _begin(desk, "echo x > new.slow; echo one >> a.txt")
    own = desk.repo.own_state()
    child = _exec(desk, thread)
    _wait_for(marker)

    os.killpg(child.pid, signal.SIGKILL)
    child.communicate(timeout=PATIENCE)

    now = desk.repo.own_state()
    changed = {path for path in {*own, *now} if own.get(path) != now.get(path)}
    assert all(path.startswith("uwf/") for path in changed)
    assert desk.repo.git("fsck", "--strict", "--no-dangling") == ""
    desk.repo.sh("git config --unset filter.slow.clean && rm new.slow")
    desk.go_on(thread)
    assert desk.uwf("verify", thread).code == 0
    assert desk.uwf("gc").code == 0
    left = desk.repo.root / ".git" / "uwf" / "uwf" / "code"
    assert [each.name for each in left.iterdir()] == ["at"]


@pytest.mark.slow
def test_files_that_cannot_be_written_cost_a_warning(desk: Desk) -> None:  # noqa: F811 - the fixture
    """As on a full disk: no file may grow beyond some blocks."""
    thread = _begin(desk, "head -c 3000000 /dev/urandom > large")

    child = _exec(desk, thread, before="ulimit -f 2000;")
    _, said = child.communicate(timeout=PATIENCE)

    assert child.returncode == 0, said.decode()
    found = desk.step(thread, 1)
    assert found["status"] == "done"
    warnings = found["warnings"]
    assert isinstance(warnings, list)
    assert any("large" in each or "no code snapshot" in each for each in warnings)
    assert desk.uwf("verify", thread).code == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_code_repository_costs_a_warning(desk: Desk) -> None:  # noqa: F811 - the fixture
    objects = desk.repo.root / ".git" / "objects"
    thread = _begin(desk, "echo one >> a.txt")
    objects.chmod(0o500)
    try:
        done = desk.uwf("thread", "exec", thread, "--agent", desk.agent)
    finally:
        objects.chmod(0o700)

    assert done.code == 0, done.err
    assert desk.step(thread, 1)["warnings"]


def test_an_editors_lock_on_the_index_is_no_bar(desk: Desk) -> None:  # noqa: F811 - the fixture
    thread = _begin(desk, "echo one >> a.txt")
    lock = desk.repo.write(".git/index.lock", "an editor's")

    done = desk.uwf("thread", "exec", thread, "--agent", desk.agent)

    assert done.code == 0, done.err
    assert desk.step(thread, 1)["warnings"] == []
    assert lock.read_text() == "an editor's"
