"""Writing beside gc and other writers, and when the store cannot be written."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from uwfgit.errors import ConflictError, LockedError, RefConflictError, StoreError
from uwfgit.store.handle import Store, git_errors
from uwfgit.store.locks import flock
from uwfgit.store.locks.flock import lock
from uwfgit.store.locks.holding import alone, write_whole, writing
from uwfgit.store.objects import read_blob, write_blob


def _failing(times: int, error: Exception) -> tuple[Callable[[], str], list[int]]:
    """Make a write that fails so often; and the list of its calls."""
    calls: list[int] = []

    def write() -> str:
        calls.append(1)
        if len(calls) <= times:
            with git_errors("write an object"):
                raise error
        return "written"

    return write, calls


def test_what_fails_for_a_moment_is_written_again_from_the_start(store: Store) -> None:
    write, calls = _failing(3, OSError("failed to rename"))

    assert write_whole(store, write) == "written"
    assert len(calls) == 4


@pytest.mark.slow
def test_what_keeps_failing_in_a_store_that_can_be_written_is_a_conflict(
    store: Store,
) -> None:
    write, calls = _failing(10_000, OSError("failed to rename"))
    began = time.monotonic()

    with pytest.raises(ConflictError) as caught:
        write_whole(store, write)

    assert len(calls) > 10
    assert 1 <= time.monotonic() - began < 30
    assert "failed to rename" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(StoreError("a check of ours"), id="own-check"),
        pytest.param(LockedError("it"), id="lock"),
        pytest.param(
            RefConflictError("refs/heads/x", expected=None, actual=None), id="lost-race"
        ),
    ],
)
def test_what_will_not_pass_is_not_tried_again(store: Store, error: Exception) -> None:
    write, calls = _failing(10_000, error)

    with pytest.raises(type(error)):
        write_whole(store, write)

    assert len(calls) == 1


def test_a_lost_race_runs_again_where_that_decides_anew(store: Store) -> None:
    lost = RefConflictError("refs/heads/x", expected=None, actual=None)
    write, calls = _failing(2, lost)

    assert write_whole(store, write, decides_anew=True) == "written"
    assert len(calls) == 3


def test_a_fan_out_folder_that_git_keeps_removing_stops_no_writer(store: Store) -> None:
    done = threading.Event()

    def remove_folders() -> None:
        while not done.is_set():
            for path in (store.path / "objects").iterdir():
                if len(path.name) == 2:
                    try:
                        path.rmdir()
                    except OSError:
                        continue

    remover = threading.Thread(target=remove_folders)
    remover.start()
    try:
        oids = [
            write_whole(store, lambda n=n: write_blob(store, b"%d" % n))  # type: ignore[misc]  # a lambda with a default
            for n in range(300)
        ]
    finally:
        done.set()
        remover.join()

    assert [read_blob(store, oid) for oid in oids] == [b"%d" % n for n in range(300)]


def test_writers_do_not_exclude_each_other(store: Store) -> None:
    with writing(store), writing(store):
        pass


def test_who_is_alone_keeps_writers_away_and_writers_keep_him_away(
    store: Store,
) -> None:
    with (
        writing(store),
        pytest.raises(LockedError) as caught,
        alone(store, command="uwf gc", wait=0.05),
    ):
        pass

    assert caught.value.what == "the store"


def test_a_writer_waits_until_nobody_is_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    began, waits = threading.Event(), threading.Event()

    def be_alone() -> None:
        with alone(store, command="uwf gc", wait=1):
            began.set()
            waits.wait(60)
            order.append("alone")

    pause = flock.pause

    def pause_and_tell() -> None:
        waits.set()
        pause()

    monkeypatch.setattr(flock, "pause", pause_and_tell)

    other = threading.Thread(target=be_alone)
    other.start()
    began.wait()
    with writing(store):
        order.append("writing")
    other.join()

    assert order == ["alone", "writing"]


_BOUNDED = """
import sys
from pathlib import Path
from uwfgit.errors import UwfError
from uwfgit.store.locks.flock import lock
from uwfgit.store.objects import write_blob
from uwfgit.store.repository import open_store
from uwfgit.store.locks.holding import write_whole
store = open_store(Path(sys.argv[1]), home=Path(sys.argv[2]), write=True)
try:
    write_whole(store, lambda: write_blob(store, bytes(range(256)) * 4000))
except UwfError as exc:
    print(type(exc).__name__, exc.message)
"""


def test_a_file_size_limit_is_told_apart_from_a_passing_failure(
    store: Store, home: Path
) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    began = time.monotonic()
    done = subprocess.run(
        # -B: compiled modules would be cut at that size, and stay.
        [sys.executable, "-B", "-c", _BOUNDED, store.path, home],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == (
        f"StoreError cannot write to store '{store.path}': File too large\n"
    )
    assert time.monotonic() - began < 60
    assert not list((store.path / "objects").glob("tmp_uwf*"))


@pytest.mark.slow
@pytest.mark.compat
def test_a_git_that_outlives_its_caller_keeps_writers_away(
    store: Store, home: Path, tmp_path: Path
) -> None:
    slow, told = tmp_path / "bin" / "git", tmp_path / "pid"
    os.mkfifo(told)
    slow.parent.mkdir()
    slow.write_text(f"#!/bin/sh\necho $$ > {told}\nexec sleep 600\n")
    slow.chmod(0o700)
    with subprocess.Popen(
        [sys.executable, "-c", _CALLER, store.path, home, slow.parent]
    ) as caller:
        pid = int(told.read_text())
        caller.kill()

    path = store.locks / "store"
    with pytest.raises(LockedError), lock(path, command="x", shared=True, wait=0.1):
        pass
    os.kill(pid, signal.SIGKILL)

    with lock(path, command="x", shared=True, wait=5):
        pass


_CALLER = """
import sys
from pathlib import Path
from uwfgit.store.git.gitcmd import run_git
from uwfgit.store.repository import open_store
from uwfgit.store.locks.holding import alone
path = Path(sys.argv[1])
store = open_store(path, home=Path(sys.argv[2]))
with alone(store, command="uwf gc", wait=1) as held:
    environment = {"PATH": f"{sys.argv[3]}:/usr/bin:/bin"}
    run_git(["gc"], git_dir=path, environment=environment, held=[held])
"""
