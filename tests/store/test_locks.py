from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from uwfgit.errors import LockedError, StoreError
from uwfgit.store.locks.flock import lock, read_holder

_HOLD = """
import sys, time
from pathlib import Path
from uwfgit.store.locks.flock import lock
with lock(Path(sys.argv[1]), command="uwf thread exec", shared=sys.argv[2] == "shared"):
    print("held", flush=True)
    sys.stdin.read()
"""

Hold = Callable[[Path, str], "subprocess.Popen[str]"]


@pytest.fixture
def hold() -> Iterator[Hold]:
    """Start processes that hold a lock until their stdin closes."""
    started: list[subprocess.Popen[str]] = []

    def start(path: Path, mode: str = "exclusive") -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", _HOLD, str(path), mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


def test_a_second_process_is_refused_and_told_who_holds(
    tmp_path: Path, hold: Hold
) -> None:
    holder = hold(tmp_path / "T", "exclusive")

    with (
        pytest.raises(LockedError) as caught,
        lock(tmp_path / "T", command="x", wait=0.05, what="thread 'T'"),
    ):
        pass

    assert caught.value.what == "thread 'T'"
    assert caught.value.holder == (
        f"pid {holder.pid} on {socket.gethostname()} (uwf thread exec)"
    )


def test_a_taker_waits_for_a_holder_that_lets_go(tmp_path: Path, hold: Hold) -> None:
    holder = hold(tmp_path / "T", "exclusive")
    assert holder.stdin is not None
    holder.stdin.close()

    with lock(tmp_path / "T", command="x", wait=10) as held:
        assert held.previous is None


def test_waiting_ends_after_about_the_time_given(tmp_path: Path) -> None:
    with lock(tmp_path / "T", command="first"):
        begin = time.monotonic()
        with pytest.raises(LockedError), lock(tmp_path / "T", command="x", wait=0.2):
            pass

    assert 0.2 <= time.monotonic() - begin < 10


def test_the_record_stands_inside_while_the_lock_is_held(tmp_path: Path) -> None:
    before = time.time_ns() // 1_000_000
    with lock(tmp_path / "T", command="uwf thread resume"):
        holder = read_holder(tmp_path / "T")

    assert holder is not None
    assert (holder.pid, holder.command) == (os.getpid(), "uwf thread resume")
    assert before <= holder.since <= time.time_ns() // 1_000_000


def test_letting_go_empties_the_file_and_keeps_it(tmp_path: Path) -> None:
    with lock(tmp_path / "T", command="x"):
        assert (tmp_path / "T").stat().st_size > 0

    assert (tmp_path / "T").read_bytes() == b""
    assert read_holder(tmp_path / "T") is None


def test_an_error_inside_the_block_lets_go(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), lock(tmp_path / "T", command="x"):
        raise ZeroDivisionError

    assert (tmp_path / "T").read_bytes() == b""
    with lock(tmp_path / "T", command="x", wait=0):
        pass


def test_a_killed_holder_frees_the_lock_and_the_next_taker_knows(
    tmp_path: Path, hold: Hold
) -> None:
    holder = hold(tmp_path / "T", "exclusive")
    holder.send_signal(signal.SIGKILL)
    holder.wait()

    assert read_holder(tmp_path / "T") is None
    with lock(tmp_path / "T", command="x", wait=0) as held:
        assert held.previous is not None
        assert held.previous.pid == holder.pid
    with lock(tmp_path / "T", command="x", wait=0) as held:
        assert held.previous is None


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(b"{", id="cut short"),
        pytest.param(b"[]", id="no mapping"),
        pytest.param(b"{}", id="empty mapping"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b'{"pid": null, "host": 1, "command": 1, "since": 1}', id="null"),
    ],
)
def test_a_broken_record_still_means_that_the_last_holder_died(
    tmp_path: Path, left: bytes
) -> None:
    (tmp_path / "T").write_bytes(left)

    with lock(tmp_path / "T", command="x") as held:
        assert held.previous is not None


def test_a_long_command_still_makes_a_record_that_can_be_read(tmp_path: Path) -> None:
    with lock(tmp_path / "T", command="\u00e9" * 10_000):
        holder = read_holder(tmp_path / "T")

    assert holder is not None
    assert holder.command == "\u00e9" * 500


def test_nobody_holds_a_lock_that_was_never_taken(tmp_path: Path) -> None:
    assert read_holder(tmp_path / "none") is None
    assert not (tmp_path / "none").exists()


def test_shared_holders_go_together_and_keep_an_exclusive_one_out(
    tmp_path: Path, hold: Hold
) -> None:
    hold(tmp_path / "store", "shared")

    with lock(tmp_path / "store", command="x", wait=0, shared=True):
        pass
    with (
        pytest.raises(LockedError) as caught,
        lock(tmp_path / "store", command="x", wait=0),
    ):
        pass
    assert caught.value.holder is None


def test_an_exclusive_holder_keeps_shared_ones_out(tmp_path: Path, hold: Hold) -> None:
    hold(tmp_path / "store", "exclusive")

    with (
        pytest.raises(LockedError),
        lock(tmp_path / "store", command="x", wait=0, shared=True),
    ):
        pass


def test_a_child_process_does_not_inherit_the_lock(tmp_path: Path) -> None:
    with lock(tmp_path / "T", command="x"):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with lock(tmp_path / "T", command="x", wait=0):
            pass
    finally:
        child.kill()
        child.wait()


def test_lock_file_and_folder_are_private(tmp_path: Path) -> None:
    with lock(tmp_path / "locks" / "T", command="x"):
        pass

    modes = [
        stat.S_IMODE(place.stat().st_mode)
        for place in (tmp_path / "locks", tmp_path / "locks" / "T")
    ]
    assert modes == [0o700, 0o600]


def test_a_removed_lock_file_excludes_again(tmp_path: Path, hold: Hold) -> None:
    hold(tmp_path / "T", "exclusive")
    (tmp_path / "T").unlink()

    with lock(tmp_path / "T", command="x", wait=0):
        assert read_holder(tmp_path / "T") is not None


def test_a_symbolic_link_is_no_lock_file(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("keep")
    (tmp_path / "T").symlink_to(tmp_path / "target")

    with pytest.raises(StoreError), lock(tmp_path / "T", command="x"):
        pass
    assert (tmp_path / "target").read_text() == "keep"


def test_many_processes_never_hold_at_once(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "from uwfgit.store.locks.flock import lock\n"
        "root = pathlib.Path(sys.argv[1])\n"
        "for _ in range(20):\n"
        "    with lock(root / 'T', command='x', wait=60):\n"
        "        count = root / 'count'\n"
        "        count.write_text(str(int(count.read_text()) + 1))\n"
    )
    (tmp_path / "count").write_text("0")
    racers = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(3)
    ]

    assert [racer.wait() for racer in racers] == [0, 0, 0]
    assert (tmp_path / "count").read_text() == "60"
