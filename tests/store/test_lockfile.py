from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from uwfgit.errors import LockedError
from uwfgit.store.locks import git_lock
from uwfgit.store.locks.git_lock import append, replacing


def test_a_block_that_fails_leaves_the_file_and_no_lock(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(b"old\n")

    def fail() -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        append(file, fail)

    assert file.read_bytes() == b"old\n"
    assert not (tmp_path / "config.lock").exists()


def test_one_who_comes_late_leaves_the_lock_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_lock, "_WAIT", 0)
    file = tmp_path / "config"
    file.write_bytes(b"old")

    with replacing(file) as stream:
        with pytest.raises(LockedError):
            append(file, lambda: "late\n")
        assert (tmp_path / "config.lock").exists()
        stream.write(b"first\n")

    append(file, lambda: "second\n")
    assert file.read_bytes() == b"first\nsecond\n"


def test_what_a_killed_process_left_of_ours_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(b"old\n")
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from uwfgit.store.locks.git_lock import replacing\n"
        "with replacing(Path(sys.argv[1])) as stream:\n"
        "    stream.write(b'half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    died = subprocess.run([sys.executable, "-c", program, str(file)], check=False)
    assert died.returncode == -signal.SIGKILL
    assert (tmp_path / "config.lock").exists()

    append(file, lambda: "new\n")

    assert [each.name for each in tmp_path.glob("config*")] == ["config"]
    assert file.read_bytes() == b"old\nnew\n"


def test_a_lock_of_git_s_own_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_lock, "_WAIT", 0)
    file, held = tmp_path / "config", tmp_path / "config.lock"
    file.write_bytes(b"old")
    held.touch()

    with pytest.raises(LockedError) as caught:
        append(file, lambda: "late\n")

    assert f"rm {held}" in (caught.value.hint or "")
    assert sorted(tmp_path.glob("config*")) == [file, held]
