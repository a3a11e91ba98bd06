"""A snapshot that goes wrong costs a warning, never a step or the user's own things."""

from __future__ import annotations

import os
import shlex
import shutil
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
    script = f'{before or "exec"} "$@"'
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

    child = _exec(desk, thread, before="ulimit -f 2000; exec")
    _, said = child.communicate(timeout=PATIENCE)

    assert child.returncode == 0, said.decode()
    found = desk.step(thread, 1)
    assert found["status"] == "done"
    warnings = found["warnings"]
    assert isinstance(warnings, list)
    assert any("large" in each or "no code snapshot" in each for each in warnings)
    assert desk.uwf("verify", thread).code == 0


READ_ONLY = {"its objects": "objects", "its refs": "refs", "all of it": "."}


@pytest.mark.parametrize("part", READ_ONLY.values(), ids=READ_ONLY)
def test_a_read_only_code_repository_costs_a_warning(desk: Desk, part: str) -> None:  # noqa: F811 - the fixture
    thread = _begin(desk, "echo one >> a.txt")
    own = desk.repo.own_state()
    git_dir = desk.repo.root / ".git"
    folders = [
        folder
        for folder, _, _ in os.walk(git_dir / part)
        if "uwf" not in Path(folder).relative_to(git_dir).parts
    ]
    for folder in folders:
        Path(folder).chmod(0o500)
    try:
        child = _exec(desk, thread, before=_as_a_user_of_modes())
        _, said = child.communicate(timeout=PATIENCE)
    finally:
        for folder in folders:
            Path(folder).chmod(0o700)

    assert child.returncode == 0, said.decode()
    _assert_recorded_with_a_warning(desk, thread, own)


def _as_a_user_of_modes() -> str:
    """Return what runs a command as someone for whom the modes of files count."""
    if os.geteuid() != 0:
        return ""
    if shutil.which("setpriv") is None:
        pytest.skip("nothing here takes root's privileges away")
    return "exec setpriv --inh-caps=-all --bounding-set=-all --"


def _assert_recorded_with_a_warning(
    desk: Desk,  # noqa: F811 - the fixture's
    thread: str,
    own: dict[str, object],
) -> None:
    """Nothing of the user's was harmed, and the step is there."""
    found = desk.step(thread, 1)
    warnings = found["warnings"]
    assert found["status"] == "done"
    assert isinstance(warnings, list)
    assert any("no code snapshot" in each for each in warnings), warnings
    now = desk.repo.own_state()
    changed = {path for path in {*own, *now} if own.get(path) != now.get(path)}
    assert all(path.startswith("uwf/") for path in changed)
    assert desk.repo.git("fsck", "--strict", "--no-dangling") == ""
    assert desk.uwf("verify", thread).code == 0


NO_MOUNT = 77
FULL = """\
objects=.git/objects
cp -a $objects "$ASIDE" && mount -t tmpfs -o size=256k none $objects || exit 77
cp -a "$ASIDE"/. $objects && cat /dev/zero > $objects/fill 2> /dev/null
"$@"
code=$?
rm $objects/fill && git fsck --strict --no-dangling || exit 78
exit $code
"""
"""Runs a command where the objects of the repository are on a disk that is full."""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_costs_a_warning(desk: Desk) -> None:  # noqa: F811 - the fixture
    if shutil.which("unshare") is None:
        pytest.skip("nothing here gives a process mounts of its own")
    thread = _begin(desk, "echo one >> a.txt")
    own = desk.repo.own_state()
    (script := desk.scripts / "full").write_text(FULL)
    aside = shlex.quote(str(desk.scripts / "aside"))

    before = f"ASIDE={aside}; export ASIDE; exec unshare --mount sh {script}"
    child = _exec(desk, thread, before=before)
    _, said = child.communicate(timeout=PATIENCE)

    if child.returncode == NO_MOUNT or said.startswith(b"unshare:"):
        pytest.skip("no disk may be mounted here")
    assert child.returncode == 0, said.decode()
    _assert_recorded_with_a_warning(desk, thread, own)
    assert any("space" in each for each in desk.step(thread, 1)["warnings"])  # type: ignore[attr-defined] # a list


def test_an_editors_lock_on_the_index_is_no_bar(desk: Desk) -> None:  # noqa: F811 - the fixture
    thread = _begin(desk, "echo one >> a.txt")
    lock = desk.repo.write(".git/index.lock", "an editor's")

    done = desk.uwf("thread", "exec", thread, "--agent", desk.agent)

    assert done.code == 0, done.err
    assert desk.step(thread, 1)["warnings"] == []
    assert lock.read_text() == "an editor's"
