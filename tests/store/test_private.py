from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from uwfgit.store.files import only_mine, write_private
from uwfgit.store.handle import Store
from uwfgit.store.locks.holding import writing


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode_of_new(path: Path) -> int:
    path.touch()
    return path.stat().st_mode & 0o777


def test_a_private_file_is_the_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o666)
    before = os.umask(0)
    try:
        write_private(path, "new")
    finally:
        os.umask(before)

    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_a_block_makes_is_private_and_what_comes_after_is_not(
    tmp_path: Path,
) -> None:
    with only_mine():
        within = mode_of_new(tmp_path / "within")

    assert (within, mode_of_new(tmp_path / "after")) == (0o600, 0o644)


def test_blocks_of_several_threads_end_in_any_order(tmp_path: Path) -> None:
    both, first_left = threading.Barrier(2), threading.Event()
    modes: list[int] = []

    def leave_last() -> None:
        with only_mine():
            both.wait(10)
            first_left.wait(10)
            modes.append(mode_of_new(tmp_path / "last"))

    other = threading.Thread(target=leave_last)
    other.start()
    with only_mine():
        both.wait(10)
    first_left.set()
    other.join()

    assert [*modes, mode_of_new(tmp_path / "after")] == [0o600, 0o644]


@pytest.mark.parametrize(("setting", "expected"), [(None, 0o600), ("group", 0o644)])
def test_a_shared_store_keeps_the_users_umask(
    store: Store, setting: str | None, expected: int
) -> None:
    if setting is not None:
        store.repo.config["core.sharedRepository"] = setting

    with writing(store):
        mode = mode_of_new(store.path / "file")

    assert mode == expected
