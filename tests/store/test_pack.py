from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pygit2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwfgit.errors import StoreError
from uwfgit.ids import Oid
from uwfgit.store.handle import Store
from uwfgit.store.objects import read_blob, write_blob
from uwfgit.store.pack import pack as packs
from uwfgit.store.pack.batch import Batch
from uwfgit.store.pack.pack import Kind, WrittenPack, find_known, name_object

BLOBS: list[tuple[Kind, bytes]] = [("blob", b"node %d\n" % n) for n in range(300)]


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


def raw(oids: Iterable[Oid]) -> set[bytes]:
    return {bytes.fromhex(oid) for oid in oids}


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(WrittenPack):
    oids: tuple[Oid, ...]


def write_pack(
    store: Store, objects: Sequence[tuple[Kind, bytes]], *, fsync: bool = False
) -> Named:
    names = [name_object(kind, data) for kind, data in objects]
    written = packs.write_pack(
        store, dict(zip(names, objects, strict=True)), fsync=fsync
    )
    return Named(path=written.path, oids=tuple(Oid(name.hex()) for name in names))


def test_objects_are_read_back_under_gits_own_names(store: Store) -> None:
    with write_pack(store, BLOBS) as pack:
        found = [read_blob(store, oid) for oid in pack.oids]

    assert found == [data for _, data in BLOBS]
    assert pack.oids == tuple(str(pygit2.hash(data)) for _, data in BLOBS)


def test_a_handle_opened_before_sees_the_pack(store: Store) -> None:
    other = Store(path=store.path, repo=pygit2.Repository(str(store.path)))
    assert pygit2.hash(b"node 7\n") not in other.repo

    pack = write_pack(store, BLOBS)

    assert read_blob(other, pack.oids[7]) == b"node 7\n"


def make_event() -> list[tuple[Kind, bytes]]:
    """Make a commit, its tree and two blobs, one of them large."""
    large = os.urandom(100_000) + bytes(1_000_000)
    entries = (
        (b"100644 a\0", name_object("blob", b"")),
        (
            b"100644 b\0",
            name_object("blob", large),
        ),
    )
    tree = b"".join(head + oid for head, oid in entries)
    commit = (
        f"tree {name_object('tree', tree).hex()}\n"
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
    objects: list[tuple[Kind, bytes]] = [("blob", b"x"), ("blob", b"y"), ("blob", b"x")]

    batch = Batch(store=store)
    oids = [batch.add(kind, data) for kind, data in objects]

    assert oids[0] == oids[2] != oids[1]
    pack = packs.write_pack(store, batch.objects, fsync=False)
    assert pack.path
    assert pack.path.read_bytes()[8:12] == (2).to_bytes(4)


def test_nothing_is_no_pack(store: Store) -> None:
    pack = write_pack(store, [])

    assert (pack.oids, pack.path, files(store)) == ((), None, [])


def _write_loose(store: Store) -> list[Path]:
    oids = [write_blob(store, data) for _, data in BLOBS]
    return [store.path / "objects" / oid[:2] / oid[2:] for oid in oids]


def _write_packed(store: Store) -> list[Path]:
    pack = write_pack(store, BLOBS)
    return [pack.path] if pack.path else []


@pytest.mark.parametrize("prepare", [_write_loose, _write_packed])
def test_objects_the_store_has_only_have_their_age_refreshed(
    store: Store, prepare: Callable[[Store], list[Path]]
) -> None:
    places = prepare(store)
    for place in places:
        os.utime(place, (1, 1))
    before = files(store)

    pack = write_pack(store, BLOBS)

    assert (pack.path, files(store)) == (None, before)
    assert min(place.stat().st_mtime for place in places) > 1


def test_only_new_objects_go_into_the_pack(store: Store) -> None:
    old = write_blob(store, b"node 0\n")

    pack = write_pack(store, BLOBS)

    assert pack.oids[0] == old
    assert pack.path
    assert pack.path.read_bytes()[8:12] == (299).to_bytes(4)


@pytest.mark.compat
def test_a_repack_spares_the_pack_until_it_is_released(store: Store) -> None:
    pack = write_pack(store, BLOBS)
    git(store, "repack", "-a", "-d", "-q")
    assert pack.path
    assert pack.path.exists()

    pack.release()
    git(store, "repack", "-a", "-d", "-q")

    assert not pack.path.exists()


def test_a_block_that_fails_releases_the_pack(store: Store) -> None:
    with pytest.raises(RuntimeError), write_pack(store, BLOBS):
        raise RuntimeError

    assert files(store) == [".idx", ".pack"]


def test_two_writers_of_one_batch_do_not_share_a_keep(store: Store) -> None:
    folder = store.path / "objects" / "pack"
    first = write_pack(store, BLOBS)
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
    store = Store(path=path, repo=pygit2.init_repository(str(path), bare=True))

    pack = write_pack(store, [("blob", data) for data in datas])

    assert [read_blob(store, oid) for oid in pack.oids] == datas


def _truncate(index: Path) -> None:
    index.chmod(0o600)
    os.truncate(index, 500)


def _empty(index: Path) -> None:
    index.chmod(0o600)
    os.truncate(index, 0)


def _lose_pack(index: Path) -> None:
    index.with_suffix(".pack").unlink()


def _make_cruft(index: Path) -> None:
    index.with_suffix(".mtimes").write_bytes(b"")


@pytest.mark.parametrize("damage", [_truncate, _empty, _lose_pack, _make_cruft])
def test_a_pack_that_does_not_keep_its_objects_has_none(
    store: Store, damage: Callable[[Path], None]
) -> None:
    pack = write_pack(store, BLOBS)
    assert pack.path
    names = raw(pack.oids)
    assert find_known(store.path / "objects", names) == names

    damage(pack.path.with_suffix(".idx"))

    assert find_known(store.path / "objects", names) == set()


def test_known_objects_are_found_loose_and_packed_among_unknown_ones(
    store: Store,
) -> None:
    packed = write_pack(store, BLOBS[:100]).oids[0]
    alone = write_blob(store, b"alone")
    unknown = {os.urandom(20) for _ in range(100)}

    found = find_known(store.path / "objects", {*raw([packed, alone]), *unknown})

    assert found == raw([packed, alone])


def test_a_name_across_two_others_is_not_known(tmp_path: Path) -> None:
    first = bytes([7, *range(7), 7, *range(11)])
    second = bytes([7, 200, *range(18)])
    counts = b"".join((0 if byte < 7 else 2).to_bytes(4) for byte in range(256))
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "pack-1.pack").touch()
    (folder / "pack-1.idx").write_bytes(b"\xfftOc\0\0\0\x02" + counts + first + second)
    across = first[8:] + second[:8]

    assert find_known(tmp_path, {across, second}) == {second}
