from __future__ import annotations

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
