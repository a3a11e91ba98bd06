from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import files_of
from uwfgit.errors import StoreError
from uwfgit.store.safety.stores import list_stores, register_store, unregister_store


def test_a_store_is_taken_off_the_list_and_the_others_stay(
    tmp_path: Path, home: Path
) -> None:
    home.mkdir(parents=True, exist_ok=True)
    first, second, third = (tmp_path / name for name in "abc")
    for path in (first, second, third):
        register_store(path, home=home)

    unregister_store(second, home=home)
    unregister_store(tmp_path / "unknown", home=home)

    assert list_stores(home) == (first, third)


def test_a_list_that_there_is_no_room_for_stays_as_it_was(
    tmp_path: Path, home: Path
) -> None:
    home.mkdir(parents=True, exist_ok=True)
    register_store(tmp_path / "a", home=home)
    before = sorted(home.iterdir())

    size = (home / "stores").stat().st_size
    with files_of(size + 1), pytest.raises(StoreError):
        register_store(tmp_path / "b", home=home)

    assert list_stores(home) == (tmp_path / "a",)
    assert sorted(home.iterdir()) == before


def test_without_a_list_there_is_nothing_to_take_off(
    tmp_path: Path, home: Path
) -> None:
    unregister_store(tmp_path / "a", home=home)

    assert list_stores(home) == ()
    assert not (home / "stores").exists()
