"""Stores from elsewhere: an archive, a copied folder, another in the same place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.builders import git
from uwfgit.errors import UntrustedError
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.local import Local
from uwfgit.store.refs import move_ref
from uwfgit.store.repository import init_store, open_store, trust_store
from uwfgit.store.safety.stores import list_stores

PLACES = (
    "logs/refs/heads/thread/x",
    "logs/refs/remotes",
    "refs/remotes",
    "refs/heads/thread/x",
    "objects/ab",
    "uwf/local.sqlite3",
    "info/attributes",
)


def _unpack(store: Store, path: Path) -> Path:
    """Put a store where an archive of a stranger's would be unpacked."""
    shutil.copytree(store.path, path, symlinks=True)
    (path / "uwf/id").write_text("0" * 32 + "\n")
    return path


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", [trust_store, init_store])
def test_a_link_in_a_store_from_elsewhere_is_refused(
    store: Store, tmp_path: Path, home: Path, place: str, way: object
) -> None:
    path = _unpack(store, tmp_path / "theirs")
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    link = path / place
    if link.is_dir():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(victim)

    with pytest.raises(UntrustedError):
        way(path, home=home)  # type: ignore[operator]  # one of the two above

    assert victim.read_text() == "mine\n"
    assert path not in list_stores(home)


def test_a_reflog_that_became_a_link_is_not_written(
    store: Store, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    log = store.path / "logs/refs/heads/thread/x"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.symlink_to(victim)

    with pytest.raises(UntrustedError):
        move_ref(store, "refs/heads/thread/x", old=None, new=GENESIS_OID, reason="test")

    assert victim.read_text() == "mine\n"


def test_what_a_store_from_elsewhere_says_of_this_machine_does_not_count(
    store: Store, tmp_path: Path, home: Path
) -> None:
    with Local(store) as local:
        local.record_commit(GENESIS_OID)
    (store.state_dir / "allowed-secrets.jsonl").write_text('{"id": "x-000000000000"}')
    path = _unpack(store, tmp_path / "theirs")

    assert trust_store(path, home=home)

    theirs = open_store(path, home=home, write=True)
    with Local(theirs) as local:
        assert not local.is_made_here(GENESIS_OID)
    assert not (theirs.state_dir / "allowed-secrets.jsonl").exists()


def test_another_store_in_the_same_place_is_not_trusted(
    store: Store, tmp_path: Path, home: Path
) -> None:
    other = _unpack(store, tmp_path / "theirs")
    shutil.rmtree(store.path)
    other.rename(store.path)

    with pytest.raises(UntrustedError):
        open_store(store.path, home=home)


def test_a_store_that_was_moved_is_still_mine(
    store: Store, tmp_path: Path, home: Path
) -> None:
    with Local(store) as local:
        local.record_commit(GENESIS_OID)
    moved = tmp_path / "moved"
    store.path.rename(moved)

    found = open_store(moved, home=home, write=True)

    with Local(found) as local:
        assert local.is_made_here(GENESIS_OID)
    assert moved in list_stores(home)
    assert git(found, "rev-parse", "main").strip() == GENESIS_OID
