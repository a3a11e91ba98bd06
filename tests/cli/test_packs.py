"""What becomes of the packs that each event adds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import git, make_workflow, reply, workflow_data
from tests.cli.calls import Uwf
from uwfgit.store.care.maintain import REPACK
from uwfgit.store.locks.flock import lock
from uwfgit.store.pack import MANY_PACKS

STRACE = shutil.which("strace")


@pytest.fixture
def path(home: Path) -> Path:
    return home / "store"


@pytest.fixture
def looping(uwf: Uwf, work: Path) -> str:
    """A thread that never ends, and beside it a program that answers."""
    (work / "work.yaml").write_bytes(workflow_data(make_workflow()))
    (work / "worker.md").write_text(reply(plan="p"))
    (work / "critic.md").write_text(reply("bad", reason="r"))
    agent = work / "agent"
    agent.write_text('#!/bin/sh\ncat > /dev/null\ncat "$UWF_CWD/$UWF_ROLE.md"\n')
    agent.chmod(0o700)
    done = uwf("thread", "start", "work.yaml", "-p", "Do it", "--json")
    return str(done.json["threadId"])


def packs(store: Path) -> list[Path]:
    return sorted((store / "objects" / "pack").glob("*.pack"))


def test_an_event_is_one_pack_and_leaves_no_loose_object(
    uwf: Uwf, path: Path, thread: str
) -> None:
    before = len(packs(path))
    loose = set((path / "objects").glob("??/*"))

    assert uwf("thread", "cancel", thread).code == 0

    assert len(packs(path)) == before + 1
    assert set((path / "objects").glob("??/*")) == loose
    assert not list((path / "objects" / "pack").glob("*.keep"))


@pytest.mark.slow
def test_packs_are_merged_while_a_long_command_goes_on(
    uwf: Uwf, path: Path, looping: str, work: Path
) -> None:
    agent = work / "agent"
    count = f"ls '{path}/objects/pack' | grep -c 'pack$' >> '{work}/counts'"
    agent.write_text(f"{agent.read_text()}{count}\n")

    done = uwf("thread", "exec", looping, "-c", "110", "--agent", f"stdio:{agent}")

    counts = [int(line) for line in (work / "counts").read_text().split()]
    assert done.code == 0
    assert len(counts) == 110
    assert max(counts) < 100


def test_many_packs_are_merged_after_an_event(
    uwf: Uwf, path: Path, thread: str
) -> None:
    for number in range(MANY_PACKS):
        assert uwf("cas", "put-text", f"text {number}").code == 0

    with lock(path / "uwf/locks" / REPACK, command="test", wait=300):
        pass

    assert len(packs(path)) <= MANY_PACKS // 2
    assert git(path, "fsck", "--strict", "--no-dangling") == ""
    assert uwf("thread", "show", thread).code == 0


def test_without_git_packs_stay_and_nothing_is_said(
    uwf: Uwf, path: Path, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for number in range(MANY_PACKS):
        done = uwf("cas", "put-text", f"text {number}")
        assert (done.code, done.err) == (0, "")

    assert len(packs(path)) > MANY_PACKS
    assert uwf("thread", "show", thread).code == 0


def test_a_command_that_writes_gives_up_what_a_dead_one_kept(
    uwf: Uwf, path: Path, thread: str
) -> None:
    (pack, *_) = packs(path)
    keep = pack.with_suffix(".keep")
    keep.write_text(f"uwf pid {2**22 + 1} on {os.uname().nodename}\n")
    os.utime(keep, (1, 1))

    assert uwf("thread", "cancel", thread).code == 0

    assert not keep.exists()


@pytest.mark.skipif(STRACE is None, reason="no strace")
@pytest.mark.parametrize(
    ("most", "words"),
    [
        pytest.param(10, "thread start work.yaml -p again", id="start"),
        pytest.param(10, "thread exec {thread} --agent stdio:{agent}", id="exec"),
        pytest.param(90, "thread exec {thread} -c 10 --agent stdio:{agent}", id="ten"),
        pytest.param(6, "cas put-text hello", id="put"),
    ],
)
def test_a_command_seldom_waits_for_the_disk(
    looping: str, work: Path, tmp_path: Path, most: int, words: str
) -> None:
    log, agent = tmp_path / "log", work / "agent"
    program = [sys.executable, "-m", "uwfgit"]
    program += words.format(thread=looping, agent=agent).split()
    trace = ["strace", "-f", "-o", str(log), "-e", "trace=fsync,fdatasync"]

    subprocess.run([*trace, *program], check=True, capture_output=True)

    waits = [line for line in log.read_text().splitlines() if "sync(" in line]
    assert 0 < len(waits) <= most
