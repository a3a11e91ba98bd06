from __future__ import annotations

import pytest

from uwfgit.store.handle import Store
from uwfgit.store.safety.trust import fingerprint


def test_an_untouched_store_shows_no_change(store: Store) -> None:
    assert fingerprint(store.path) == fingerprint(store.path)


@pytest.mark.parametrize(
    "name", ["config", "info/attributes", "hooks/pre-push", "hooks/post-commit"]
)
def test_a_changed_or_new_file_is_named(store: Store, name: str) -> None:
    before = fingerprint(store.path)
    file = store.path / name
    file.parent.mkdir(exist_ok=True)
    with file.open("a", encoding="utf-8") as stream:
        stream.write("# changed\n")

    assert {each for each, _ in before ^ fingerprint(store.path)} == {name}


def test_a_file_that_went_away_is_named(store: Store) -> None:
    before = fingerprint(store.path)
    (store.path / "info" / "attributes").unlink()

    changed = before ^ fingerprint(store.path)
    assert {each for each, _ in changed} == {"info/attributes"}
