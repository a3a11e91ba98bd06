from __future__ import annotations

import pytest

from uwfgit.store.care.guard import changed_files, fingerprint
from uwfgit.store.handle import Store


def test_an_untouched_store_shows_no_change(store: Store) -> None:
    assert changed_files(fingerprint(store), fingerprint(store)) == ()


@pytest.mark.parametrize(
    "name", ["config", "info/attributes", "hooks/pre-push", "hooks/post-commit"]
)
def test_a_changed_or_new_file_is_named(store: Store, name: str) -> None:
    before = fingerprint(store)
    file = store.path / name
    file.parent.mkdir(exist_ok=True)
    with file.open("a", encoding="utf-8") as stream:
        stream.write("# changed\n")

    assert changed_files(before, fingerprint(store)) == (name,)


def test_a_file_that_went_away_is_named(store: Store) -> None:
    before = fingerprint(store)
    (store.path / "info" / "attributes").unlink()

    assert changed_files(before, fingerprint(store)) == ("info/attributes",)
