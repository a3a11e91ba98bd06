"""Nothing in a store is anybody else's to read, whatever the umask is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.calls import Uwf


@pytest.fixture(params=[0o077, 0o022, 0o000], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    wanted: int = request.param
    before = os.umask(wanted)
    yield wanted
    os.umask(before)


def test_all_that_commands_make_in_a_store_is_private(
    uwf: Uwf, umask: int, request: pytest.FixtureRequest
) -> None:
    thread = request.getfixturevalue("ended")
    assert uwf("thread", "fork", thread, "--at", "1").code == 0
    assert uwf("thread", "rm", thread).code == 0
    assert uwf("cas", "put-text", "x").code == 0

    store = Path(uwf("store", "path").out.strip())
    names = {path.name for path in store.iterdir()}
    assert {"logs", "refs", "objects", "uwf"} <= names
    modes = {path: path.lstat().st_mode & 0o077 for path in [store, *store.rglob("*")]}
    assert {path: oct(mode) for path, mode in modes.items() if mode} == {}
    assert os.umask(umask) == umask
