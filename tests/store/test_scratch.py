from __future__ import annotations

import os

import pytest
from msgspec.structs import replace

from tests.builders import edit_tree, git
from uwfgit.ids import Oid
from uwfgit.store import pack
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.git.scratch import adopt_objects, open_scratch
from uwfgit.store.handle import Store
from uwfgit.store.objects import Person, TreeEntry, write_blob, write_commit
from uwfgit.store.refs import has_object, is_ancestor


def commit(store: Store, text: str) -> Oid:
    person = Person(name="Ada", email="ada@example.com", time=1_800_000_000)
    blob = write_blob(store, text.encode())
    return write_commit(
        store,
        tree=edit_tree(store, None, {"file": TreeEntry(oid=blob)}),
        parents=(GENESIS_OID,),
        author=person,
        committer=person,
        message=text,
    )


def test_a_scratch_repository_sees_the_stores_objects_and_goes_away(
    store: Store,
) -> None:
    with open_scratch(store) as scratch:
        assert has_object(scratch, GENESIS_OID)
        made = commit(scratch, "aside")
        assert is_ancestor(scratch, GENESIS_OID, made)
        path = scratch.path

    assert not has_object(store, made)
    assert not path.exists()
    assert list(path.parent.iterdir()) == []


def test_what_a_killed_process_left_is_removed(store: Store) -> None:
    left = store.state_dir / "scratch" / "1-dead"
    (left / "objects").mkdir(parents=True)
    left.with_name("1-dead.lock").touch()

    with open_scratch(store) as first, open_scratch(store) as second:
        assert not left.exists()
        assert first.path.exists()
        assert second.path.exists()


def test_only_what_the_tips_reach_is_brought(store: Store) -> None:
    with open_scratch(store) as scratch:
        good, bad = commit(scratch, "good"), commit(scratch, "bad")
        with adopt_objects(
            store, scratch, [good], known=[GENESIS_OID], environment=os.environ
        ):
            assert len(list((store.path / "objects" / "pack").glob("*.keep"))) == 1
            git(store, "update-ref", "refs/heads/good", good)

    assert has_object(store, good)
    assert not has_object(store, bad)
    assert list((store.path / "objects" / "pack").glob("*.keep")) == []
    git(store, "fsck", "--strict")


def test_who_opened_the_store_is_told_of_what_was_brought(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []
    folder = store.path / "objects" / "pack"
    monkeypatch.setattr(pack, "MANY_PACKS", 0)
    heard = replace(
        store, on_many_packs=lambda _: kept.append(len([*folder.glob("*.keep")]))
    )

    with open_scratch(store) as scratch:
        tip = commit(scratch, "good")
        with adopt_objects(
            heard, scratch, [tip], known=[GENESIS_OID], environment=os.environ
        ):
            assert kept == []

    assert kept == [0]


def test_nothing_new_makes_no_pack(store: Store) -> None:
    with (
        open_scratch(store) as scratch,
        adopt_objects(
            store,
            scratch,
            [GENESIS_OID],
            known=[GENESIS_OID],
            environment=os.environ,
        ),
    ):
        pass

    assert list((store.path / "objects" / "pack").iterdir()) == []


def test_a_failure_while_refs_move_leaves_no_keep_behind(store: Store) -> None:
    with open_scratch(store) as scratch:
        tip = commit(scratch, "good")
        adopting = adopt_objects(
            store, scratch, [tip], known=[GENESIS_OID], environment=os.environ
        )
        with pytest.raises(KeyboardInterrupt), adopting:
            raise KeyboardInterrupt

    assert list((store.path / "objects" / "pack").glob("*.keep")) == []


def test_commits_that_are_not_there_are_nobodys_ancestors(store: Store) -> None:
    missing = Oid("1" * 40)

    assert not is_ancestor(store, missing, GENESIS_OID)
    assert not is_ancestor(store, GENESIS_OID, missing)
    assert is_ancestor(store, missing, missing)
