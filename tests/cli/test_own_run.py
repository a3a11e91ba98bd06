"""What an agent may not do to the run it is part of."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.calls import Uwf


@pytest.fixture
def running(thread: str, home: Path) -> Iterator[str]:
    """A thread that this process runs."""
    path = home / "store" / "uwf" / "locks" / thread
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        holder = {"pid": os.getpid(), "host": socket.gethostname()}
        json.dump({**holder, "command": "uwf thread exec", "since": 1}, lock)
        lock.flush()
        yield thread


@pytest.mark.parametrize("verb", ["stop", "cancel", "rm"])
def test_an_agent_cannot_end_the_run_that_it_is_part_of(
    uwf: Uwf, running: str, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("UWF_STEP", f"{running}:1:0123456789abcdef")

    refused = uwf("thread", verb, running, "--json")

    assert (refused.code, refused.error["code"]) == (1, "state")
    assert "$SUSPEND" in refused.error["hint"]


def test_what_is_left_of_an_ended_run_is_in_nobodys_way(
    uwf: Uwf, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UWF_STEP", f"{thread}:1:0123456789abcdef")

    assert uwf("thread", "cancel", thread).code == 0
