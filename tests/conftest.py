"""Isolation of every test, and the few fixtures that most of them use."""

from __future__ import annotations

import itertools
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pygit2
import pytest
from hypothesis import settings

from tests.builders import Clock, close_ledgers, make_ledger
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.store.handle import Store
from uwfgit.store.repository import init_store, open_store

# A job in the background, or under nohup, ignores these, and so would every program
# under test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

settings.register_profile("default", deadline=None, max_examples=25)
settings.load_profile("default")

_GLOBAL_LEVELS = (
    pygit2.enums.ConfigLevel.GLOBAL,
    pygit2.enums.ConfigLevel.XDG,
    pygit2.enums.ConfigLevel.SYSTEM,
)


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep the developer's own home, config and repositories out of every test."""
    home = tmp_path / "home"
    home.mkdir()
    for name in list(os.environ):
        if name.startswith(("GIT_", "UWF_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("UWF_HOME", str(home / ".uwf"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    for level in _GLOBAL_LEVELS:
        pygit2.settings.search_path[level] = str(home)
    monkeypatch.setattr(socket.socket, "connect", _loopback_only(socket.socket.connect))
    yield
    close_ledgers()
    pygit2.settings.enable_fsync_gitdir(False)  # noqa: FBT003 - as pygit2 takes it


def _loopback_only(connect: Callable[..., None]) -> Callable[..., None]:
    def guarded(self: socket.socket, address: Any) -> None:  # noqa: ANN401 - as the socket takes it
        local = isinstance(address, str) or address[0] in {"127.0.0.1", "::1"}
        if not local:
            pytest.fail(f"a test tried to reach {address}")
        connect(self, address)

    return guarded


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """``UWF_HOME`` of the test."""
    return tmp_path / "home" / ".uwf"


@pytest.fixture
def store(tmp_path: Path, home: Path) -> Store:
    """A fresh store, opened for writing without fsync."""
    path = tmp_path / "store"
    init_store(path, home=home, fsync=False)
    return open_store(path, home=home, write=True, fsync=False)


@pytest.fixture
def clock() -> Clock:
    """A clock that moves on by a second at each look."""
    return Clock(itertools.count(1_800_000_000_000, 1000))


@pytest.fixture
def ledger(store: Store, clock: Clock) -> Ledger:
    """A ledger over the fresh store, with fixed identity and clock."""
    return make_ledger(store, clock)
