"""Locks that guard refs, and what a killed holder leaves behind."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tests.builders import git
from tests.program import wait_until, write_dead_record
from uwfgit.errors import LockedError
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.locks import git_lock, holding
from uwfgit.store.locks.holding import announce, hold_refs, tidy_up
from uwfgit.store.refs import find_ref, move_ref

NAME: Final = "refs/heads/x"


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "_PATIENCE", 0.3)


def _leave_lock(store: Store, *, age: float = 0.0) -> Path:
    """Make a lock file of git's that nobody will remove."""
    path = store.path / f"{NAME}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    then = time.time() - age
    os.utime(path, (then, then))
    return path


def _log_lines(store: Store) -> list[dict[str, str]]:
    files = sorted((store.state_dir / "logs").glob("*.jsonl"))
    return [
        json.loads(line) for file in files for line in file.read_text().splitlines()
    ]


def _hold(store: Store) -> None:
    with hold_refs(store, "T", [NAME], command="test", what="it"):
        pass


def test_the_leftover_of_a_dead_holder_is_removed_with_a_line_in_the_log(
    store: Store,
) -> None:
    write_dead_record(store.locks / "T")
    path = _leave_lock(store)

    _hold(store)

    assert not path.exists()
    (line,) = _log_lines(store)
    assert (line["event"], line["file"]) == ("leftover-removed", str(path))
    assert "pid 999999" in line["holder"]


@pytest.mark.usefixtures("_impatient")
def test_a_lock_file_from_before_the_dead_holder_is_somebody_elses(
    store: Store,
) -> None:
    write_dead_record(store.locks / "T")
    # Younger than this system's last start: what is older than that goes.
    path = _leave_lock(store, age=10)

    with pytest.raises(LockedError):
        _hold(store)

    assert path.exists()
    assert _log_lines(store) == []


@pytest.mark.usefixtures("_impatient")
def test_after_a_holder_that_let_go_no_lock_file_is_removed(store: Store) -> None:
    _hold(store)
    path = _leave_lock(store)

    with pytest.raises(LockedError):
        _hold(store)

    assert path.exists()


_MAKER: Final = """
import os, sys, time
print("ready", flush=True)
while True:
    open(sys.argv[1] + ".new", "w").close()
    os.replace(sys.argv[1] + ".new", sys.argv[1])
    time.sleep(0.005)
"""


@pytest.mark.usefixtures("_impatient")
def test_a_lock_file_that_a_living_git_makes_anew_is_left_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for the maker to come to it on a busy machine.
    monkeypatch.setattr(git_lock, "_SETTLE", 1.0)
    write_dead_record(store.locks / "T")
    path = _leave_lock(store)
    maker = subprocess.Popen(
        [
            sys.executable,
            "-c",
            _MAKER,
            path,
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert maker.stdout is not None
    maker.stdout.readline()

    with pytest.raises(LockedError):
        _hold(store)

    maker.kill()
    maker.communicate()
    assert path.exists()


def test_moves_of_refs_are_announced_while_they_last(store: Store) -> None:
    folder = store.locks / "moves"
    with announce(store, [NAME], command="test"):
        (file,) = folder.iterdir()
        notes = json.loads(file.read_text())["notes"]

    assert notes == [NAME]
    assert list(folder.iterdir()) == []


_MOVER: Final = """
import sys, time
from pathlib import Path
from uwfgit.store.locks.holding import announce
from uwfgit.store.repository import open_store
store = open_store(Path(sys.argv[1]), home=Path(sys.argv[2]))
with announce(store, ["refs/heads/x"], command="test"):
    path = store.path / "refs/heads/x.lock"
    path.touch()
    print("locked", flush=True)
    time.sleep(600)
"""


def _start_mover(store: Store, home: Path) -> subprocess.Popen[str]:
    """Start a process that has locked a ref and moves no further."""
    mover = subprocess.Popen(
        [sys.executable, "-c", _MOVER, store.path, home],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert mover.stdout is not None
    assert mover.stdout.readline() == "locked\n"
    return mover


@pytest.mark.slow
def test_the_next_move_of_any_ref_tidies_up_after_a_killed_one(
    store: Store, home: Path
) -> None:
    mover = _start_mover(store, home)
    mover.kill()
    mover.communicate()
    assert (store.path / f"{NAME}.lock").exists()

    move_ref(store, "refs/heads/other", old=None, new=GENESIS_OID, reason="test")

    assert not (store.path / f"{NAME}.lock").exists()
    assert list((store.locks / "moves").iterdir()) == []
    assert [line["event"] for line in _log_lines(store)] == ["leftover-removed"]


@pytest.mark.slow
def test_a_mover_that_lives_is_waited_for_and_named_by_its_file(
    store: Store, home: Path
) -> None:
    mover = _start_mover(store, home)
    os.kill(mover.pid, signal.SIGSTOP)

    tidy_up(store)
    with pytest.raises(LockedError) as caught:
        move_ref(store, NAME, old=None, new=GENESIS_OID, reason="test")

    mover.kill()
    mover.communicate()
    assert str(store.path / f"{NAME}.lock") in str(caught.value)
    assert find_ref(store, NAME) is None


# Stays for long in the pause in which it looks whether the file stays the same.
_TIDIER: Final = """
import sys
from pathlib import Path
from uwfgit.store.locks import git_lock
from uwfgit.store.repository import open_store
git_lock._SETTLE = 600
print("ready", flush=True)
open_store(Path(sys.argv[1]), home=Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_a_process_killed_while_it_tidies_up_leaves_it_to_the_next(
    store: Store, home: Path
) -> None:
    mover = _start_mover(store, home)
    mover.kill()
    mover.communicate()
    tidier = subprocess.Popen(
        [
            sys.executable,
            "-c",
            _TIDIER,
            store.path,
            home,
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert tidier.stdout is not None
    tidier.stdout.readline()
    (announced,) = (store.locks / "moves").iterdir()
    wait_until(lambda: not _is_free(announced))
    tidier.kill()
    tidier.communicate()

    tidy_up(store)

    assert not (store.path / f"{NAME}.lock").exists()


def _is_free(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.slow
def test_a_lock_of_packed_refs_that_stays_is_named(store: Store) -> None:
    git(store, "update-ref", NAME, GENESIS_OID)
    git(store, "pack-refs", "--all")
    (store.path / "packed-refs.lock").touch()

    with pytest.raises(LockedError) as caught:
        move_ref(store, NAME, old=GENESIS_OID, new=None, reason="test")

    assert "packed-refs.lock" in str(caught.value)
    assert find_ref(store, NAME) == GENESIS_OID


def _leave(store: Store, name: str) -> Path:
    path = store.path / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_all_locks_of_a_dead_git_of_ours_are_removed(store: Store) -> None:
    left = [
        _leave(store, name)
        for name in ("packed-refs", "refs/remotes/o/thread/x", "refs/heads/y")
    ]
    write_dead_record(store.locks / "moves/1-a", notes=["*"])

    tidy_up(store)

    assert not any(path.exists() for path in left)


def test_locks_stay_while_someone_moves_refs(store: Store) -> None:
    with announce(store, [NAME], command="test"):
        left = _leave(store, "packed-refs")
        write_dead_record(store.locks / "moves/1-a", notes=["*"])
        tidy_up(store)
        assert left.exists()
    tidy_up(store)

    assert not left.exists()


@pytest.mark.usefixtures("_impatient")
def test_a_lock_of_git_s_is_met_before_anything_is_done(store: Store) -> None:
    path = _leave_lock(store)
    begun = time.monotonic()

    with pytest.raises(LockedError) as caught:
        _hold(store)

    assert str(path) in caught.value.message
    assert time.monotonic() - begun < 30
