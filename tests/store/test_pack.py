from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pygit2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from uwfgit.errors import StoreError
from uwfgit.ids import Oid
from uwfgit.store import pack as packs
from uwfgit.store.handle import Store, make_store
from uwfgit.store.objects import read_blob, write_blob
from uwfgit.store.pack import CODES, Batch, ObjectKind
from uwfgit.store.raw import BLOB, TREE, name_object

BLOBS: list[tuple[ObjectKind, bytes]] = [("blob", b"node %d\n" % n) for n in range(300)]


def git(store: Store, *args: str) -> str:
    done = subprocess.run(
        ["git", "--git-dir", str(store.path), "-c", "user.name=A", *args],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def files(store: Store) -> list[str]:
    return sorted(path.suffix for path in (store.path / "objects" / "pack").iterdir())


class Named(Struct, frozen=True, kw_only=True):
    path: Path | None
    oids: tuple[Oid, ...]


@contextmanager
def writing(
    store: Store, objects: Sequence[tuple[ObjectKind, bytes]], *, fsync: bool = False
) -> Iterator[Named]:
    names = [name_object(CODES[kind], data) for kind, data in objects]
    waiting = dict(zip(names, objects, strict=True))
    with Batch(store=replace(store, fsync=fsync), objects=waiting).write() as path:
        yield Named(path=path, oids=tuple(names))


def write_pack(
    store: Store, objects: Sequence[tuple[ObjectKind, bytes]], *, fsync: bool = False
) -> Named:
    with writing(store, objects, fsync=fsync) as pack:
        return pack


def test_objects_are_read_back_under_gits_own_names(store: Store) -> None:
    with writing(store, BLOBS) as pack:
        found = [read_blob(store, oid) for oid in pack.oids]

    assert found == [data for _, data in BLOBS]
    assert pack.oids == tuple(str(pygit2.hash(data)) for _, data in BLOBS)


def test_who_opened_the_store_is_told_of_a_pack_that_makes_them_many(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[list[str]] = []
    heard = replace(store, on_many_packs=lambda each: told.append(files(each)))
    monkeypatch.setattr(packs, "MANY_PACKS", 1)

    with writing(heard, BLOBS[:1]):
        pass
    with writing(heard, BLOBS[1:2]):
        assert not told
    with writing(heard, []):
        pass

    assert told == [[".idx", ".idx", ".pack", ".pack"]]


def test_a_handle_opened_before_sees_the_pack(store: Store) -> None:
    other = make_store(store.path, pygit2.Repository(str(store.path)))
    assert pygit2.hash(b"node 7\n") not in other.repo

    pack = write_pack(store, BLOBS)

    assert read_blob(other, pack.oids[7]) == b"node 7\n"


def make_event() -> list[tuple[ObjectKind, bytes]]:
    """Make a commit, its tree and two blobs, one of them large."""
    large = os.urandom(100_000) + bytes(1_000_000)
    entries = (
        (b"100644 a\0", bytes.fromhex(name_object(BLOB, b""))),
        (
            b"100644 b\0",
            bytes.fromhex(name_object(BLOB, large)),
        ),
    )
    tree = b"".join(head + oid for head, oid in entries)
    commit = (
        f"tree {name_object(TREE, tree)}\n"
        "author A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nm\n"
    ).encode()
    return [("blob", b""), ("blob", large), ("tree", tree), ("commit", commit)]


@pytest.mark.compat
@pytest.mark.parametrize("fsync", [False, True])
def test_git_accepts_pack_and_index(store: Store, *, fsync: bool) -> None:
    pack = write_pack(store, [*BLOBS, *make_event()], fsync=fsync)
    assert pack.path
    git(store, "update-ref", "refs/heads/x", pack.oids[-1])

    git(store, "verify-pack", str(pack.path.with_suffix(".idx")))

    assert git(store, "fsck", "--strict", "--no-dangling") == ""
    assert git(store, "ls-tree", "--name-only", "x").split() == ["a", "b"]


def test_equal_objects_are_stored_once_and_named_each_time(store: Store) -> None:
    objects: list[tuple[ObjectKind, bytes]] = [
        ("blob", b"x"),
        ("blob", b"y"),
        ("blob", b"x"),
    ]

    batch = Batch(store=store)
    oids = [batch.add(kind, data) for kind, data in objects]

    assert oids[0] == oids[2] != oids[1]
    with batch.write() as path:
        assert path
        assert path.read_bytes()[8:12] == (2).to_bytes(4)


def test_nothing_is_no_pack(store: Store) -> None:
    pack = write_pack(store, [])

    assert (pack.oids, pack.path, files(store)) == ((), None, [])


def test_an_object_is_written_again_whatever_the_store_says_of_it(
    store: Store,
) -> None:
    """What is there may be damaged, or garbage that a prune is about to take."""
    oid = write_blob(store, b"node 0\n")
    loose = store.path / "objects" / oid[:2] / oid[2:]
    loose.chmod(0o600)
    loose.write_bytes(loose.read_bytes()[:7])

    pack = write_pack(store, BLOBS)

    assert pack.path
    assert pack.path.read_bytes()[8:12] == (300).to_bytes(4)
    again = make_store(store.path, pygit2.Repository(str(store.path)))
    assert read_blob(again, oid) == b"node 0\n"


@pytest.mark.compat
def test_a_repack_spares_the_pack_until_it_is_released(store: Store) -> None:
    with writing(store, BLOBS) as pack:
        git(store, "repack", "-a", "-d", "-q")
        assert pack.path
        assert pack.path.exists()

    git(store, "repack", "-a", "-d", "-q")

    assert not pack.path.exists()


def test_a_block_that_fails_releases_the_pack(store: Store) -> None:
    with pytest.raises(RuntimeError), writing(store, BLOBS):
        raise RuntimeError

    assert files(store) == [".idx", ".pack"]


def test_two_writers_of_one_batch_do_not_share_a_keep(store: Store) -> None:
    folder = store.path / "objects" / "pack"
    with writing(store, BLOBS) as first:
        folder.rename(folder.with_name("aside"))

        second = write_pack(store, BLOBS)

    assert first.path
    assert second.path
    assert first.path.name != second.path.name


def test_a_folder_that_cannot_be_written_leaves_nothing(store: Store) -> None:
    folder = store.path / "objects" / "pack"
    folder.rmdir()
    folder.write_bytes(b"in the way")

    with pytest.raises(StoreError):
        write_pack(store, BLOBS)

    assert folder.read_bytes() == b"in the way"


def test_a_pack_is_read_only_like_gits_own(store: Store) -> None:
    pack = write_pack(store, BLOBS)

    assert pack.path
    assert pack.path.stat().st_mode & 0o222 == 0


@given(st.lists(st.binary(max_size=5000), max_size=20))
def test_any_bytes_come_back(
    tmp_path_factory: pytest.TempPathFactory, datas: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("any")
    store = make_store(path, pygit2.init_repository(str(path), bare=True))

    pack = write_pack(store, [("blob", data) for data in datas])

    assert [read_blob(store, oid) for oid in pack.oids] == datas
