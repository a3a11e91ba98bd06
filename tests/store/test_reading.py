"""A stranger's repository, of which nothing is run and nothing is believed."""

from __future__ import annotations

import shutil
from pathlib import Path

from pygit2.enums import ObjectType

from tests.builders import git
from uwfgit.ids import Oid
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.git.reading import copy_history, open_reading
from uwfgit.store.handle import Store

PERSON = ("-c", "user.name=x", "-c", "user.email=x@y")


def commit(store: Store, message: str, *parents: str) -> Oid:
    words = [word for parent in parents for word in ("-p", parent)]
    tree = f"{GENESIS_OID}^{{tree}}"
    return Oid(git(store, *PERSON, "commit-tree", tree, *words, "-m", message).strip())


def tag(store: Store, name: str, oid: str) -> Oid:
    git(store, *PERSON, "tag", "-a", "-m", "yes", name, oid)
    return Oid(git(store, "rev-parse", f"refs/tags/{name}").strip())


def objects(store: Store) -> set[str]:
    return {str(oid) for oid in store.repo.odb}


def test_commits_with_all_before_them_and_tags_are_copied(
    store: Store, tmp_path: Path
) -> None:
    left, right = commit(store, "left", GENESIS_OID), commit(store, "right")
    merged = commit(store, "merged\n\nparent " + "0" * 40, left, right)
    other = commit(store, "other", GENESIS_OID)
    named = tag(store, "named", other)

    copy = copy_history(store, [merged, named], folder=tmp_path / "copy")

    assert objects(copy) == {merged, left, right, GENESIS_OID, named}
    assert git(copy, "log", "--format=%s", "--first-parent", merged) == (
        "merged\nleft\nuwf store, format 1\n"
    )


def test_nothing_but_these_objects_comes_along(store: Store, tmp_path: Path) -> None:
    (store.path / "config").write_text("[core]\n\tbare = true\n[gpg]\n\tprogram = x\n")
    git(store, "update-ref", "refs/heads/one", commit(store, "one", GENESIS_OID))
    git(store, "commit-graph", "write", "--reachable")

    copy = copy_history(store, [GENESIS_OID], folder=tmp_path / "copy")

    assert objects(copy) == {GENESIS_OID}
    assert git(copy, "for-each-ref") == ""
    assert "gpg" not in (copy.path / "config").read_text()
    assert not [*copy.path.glob("objects/info/*"), *copy.path.glob("objects/pack/*")]


def test_what_is_missing_too_large_or_no_commit_stays_out(
    store: Store, tmp_path: Path
) -> None:
    tree = Oid(git(store, "rev-parse", f"{GENESIS_OID}^{{tree}}").strip())
    named = git(store, "cat-file", "tag", tag(store, "named", GENESIS_OID))
    data = (named + "x" * 200_000).encode()
    large = Oid(str(store.repo.odb.write(ObjectType.TAG, data)))

    copy = copy_history(store, [Oid("0" * 40), tree, large], folder=tmp_path / "copy")

    assert objects(copy) == set()


def test_an_object_under_a_name_that_is_not_its_own_stays_out(
    store: Store, tmp_path: Path
) -> None:
    one, two = commit(store, "one", GENESIS_OID), commit(store, "two", GENESIS_OID)
    place = store.path / "objects"
    (place / one[:2] / one[2:]).unlink()
    shutil.copy(place / two[:2] / two[2:], place / one[:2] / one[2:])

    copy = copy_history(open_reading(store.path), [one], folder=tmp_path / "copy")

    assert one not in objects(copy)


def test_what_an_index_says_of_a_pack_is_not_believed(
    store: Store, tmp_path: Path
) -> None:
    one = commit(store, "one", GENESIS_OID)
    two = commit(store, "two", one)
    git(store, "update-ref", "refs/heads/two", two)
    git(store, "repack", "-adq")
    (index,) = store.path.glob("objects/pack/*.idx")
    index.chmod(0o600)
    index.write_bytes(exchange(index.read_bytes(), one, two))
    assert git(store, "log", "-1", "--format=%s", one) == "two\n"

    copy = copy_history(open_reading(store.path), [one], folder=tmp_path / "copy")

    assert one not in objects(copy)


def exchange(data: bytes, *oids: Oid) -> bytes:
    """Let each of two names in a pack's index stand for the object of the other."""
    count = int.from_bytes(data[1028:1032], "big")
    places = [(data.index(bytes.fromhex(oid)) - 1032) // 20 for oid in oids]
    one, two = (1032 + 24 * count + 4 * place for place in places)
    changed = bytearray(data)
    changed[one : one + 4], changed[two : two + 4] = (
        data[two : two + 4],
        data[one : one + 4],
    )
    return bytes(changed)
