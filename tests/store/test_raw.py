from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Final

import pygit2
import pytest

import uwfgit
from tests.builders import edit_tree, git
from uwfgit.errors import CorruptError
from uwfgit.ids import Oid
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.git.reading import resolve_commit
from uwfgit.store.handle import Store
from uwfgit.store.objects import (
    Person,
    TreeEntry,
    list_tree,
    read_blob,
    read_commit,
    write_blob,
    write_commit,
)
from uwfgit.store.pack import Batch, ObjectKind
from uwfgit.store.raw import BLOB, COMMIT, TREE, RawObjects, name_object
from uwfgit.store.refs import is_ancestor
from uwfgit.store.repository import init_store

DATA: Final = bytes(range(256)) * 400 + os.urandom(9000)
WHO: Final = Person(name="Ada", email="ada@example.com", time=1_800_000_000)
LIMIT: Final = 1_000_000


def _loose(store: Store, oid: str) -> Path:
    return store.path / "objects" / oid[:2] / oid[2:]


def _write(path: Path, data: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(data)


def _commit(store: Store, *parents: Oid) -> Oid:
    tree = edit_tree(store, None, {"file": TreeEntry(oid=write_blob(store, b"x"))})
    return write_commit(
        store, tree=tree, parents=parents, author=WHO, committer=WHO, message="m\n"
    )


def _cut(share: float) -> Callable[[bytes], bytes]:
    return lambda data: data[: int(len(data) * share)]


_DAMAGE: Final = {
    "empty": lambda _: b"",
    "one byte": lambda data: data[:1],
    "a tenth": _cut(0.1),
    "half": _cut(0.5),
    "without its checksum": lambda data: data[:-4],
    "without its last byte": lambda data: data[:-1],
    "zeros": lambda data: bytes(len(data)),
    "half, then zeros": lambda data: data[: len(data) // 2].ljust(len(data), b"\0"),
    "a flipped bit": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "more behind it": lambda data: data + b"more",
    "another object": lambda _: zlib.compress(b"blob 5\0other"),
    "a size too small": lambda _: zlib.compress(b"blob 3\0" + DATA),
    "a size too large": lambda _: zlib.compress(b"blob 999999\0" + DATA),
    "a kind of nobody's": lambda _: zlib.compress(b"note 1\0x"),
    "no head": lambda _: zlib.compress(DATA),
}


@pytest.mark.parametrize("damage", _DAMAGE.values(), ids=_DAMAGE)
def test_a_damaged_loose_object_is_refused_at_once_and_written_again(
    store: Store, damage: Callable[[bytes], bytes]
) -> None:
    oid = write_blob(store, DATA)
    path = _loose(store, oid)
    _write(path, damage(path.read_bytes()))

    with pytest.raises(CorruptError):
        read_blob(store, oid)
    assert store.raw.is_damaged(oid)

    assert write_blob(store, DATA) == oid
    assert read_blob(store, oid) == DATA
    assert git(store, "cat-file", "-s", oid) == f"{len(DATA)}\n"


def test_what_is_no_file_in_an_objects_place_does_not_hold_anyone_up(
    store: Store,
) -> None:
    oid = write_blob(store, DATA)
    path = _loose(store, oid)
    path.unlink()
    os.mkfifo(path)

    with pytest.raises(CorruptError):
        read_blob(store, oid)
    assert write_blob(store, DATA) == oid
    assert read_blob(store, oid) == DATA


def test_a_link_is_not_an_object(store: Store, tmp_path: Path) -> None:
    oid = write_blob(store, DATA)
    _loose(store, oid).rename(tmp_path / "away")
    _loose(store, oid).symlink_to(tmp_path / "away")

    with pytest.raises(CorruptError):
        read_blob(store, oid)


def test_a_damaged_loose_object_that_is_packed_too_is_read_from_the_pack(
    store: Store,
) -> None:
    oid = write_blob(store, DATA)
    damaged = _loose(store, oid).read_bytes()[:100]
    git(store, "update-ref", "refs/uwf/kept", oid)
    git(store, "repack", "-adq")
    path = _loose(store, oid)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(damaged)

    assert read_blob(store, oid) == DATA


def test_a_pack_replaces_damaged_loose_objects(store: Store) -> None:
    oid = write_blob(store, DATA)
    path = _loose(store, oid)
    _write(path, path.read_bytes()[:50])

    batch = Batch(store=store)
    batch.add("blob", DATA)
    with batch.write():
        pass

    assert read_blob(store, oid) == DATA
    assert "damaged" not in git(store, "fsck", "--full")


def test_many_are_read_wherever_they_are_and_none_that_is_not_as_asked(
    store: Store,
) -> None:
    packed: dict[Oid, tuple[ObjectKind, bytes]] = {
        name_object(BLOB, each): ("blob", each) for each in (b"a", b"b" * 99)
    }
    with Batch(store=store, objects=packed).write():
        first, wide = packed
    loose = write_blob(store, b"c")
    wanted = [first, loose, first]

    for _ in range(2):
        found = [store.raw.read(oid, BLOB, limit=10) for oid in wanted]
        assert found == [b"a", b"c", b"a"]
    for other, kind in ((wide, BLOB), (first, TREE), (Oid("0" * 40), BLOB)):
        with pytest.raises(CorruptError):
            store.raw.read(other, kind, limit=10)


def test_half_a_commit_or_tree_ends_walks_and_looks(store: Store) -> None:
    first = _commit(store, GENESIS_OID)
    second = _commit(store, first)
    git(store, "update-ref", "refs/heads/thread/x", second)
    tree = read_commit(store, second).tree
    for oid in (first, tree):
        path = _loose(store, oid)
        _write(path, path.read_bytes()[:-12])

    assert not is_ancestor(store, GENESIS_OID, second)
    assert resolve_commit(store, first) is None
    assert resolve_commit(store, "thread/x") == ("refs/heads/thread/x", second)
    with pytest.raises(CorruptError):
        list_tree(store, tree)
    with pytest.raises(CorruptError):
        edit_tree(store, tree, {"other": TreeEntry(oid=write_blob(store, b"y"))})


def test_genesis_is_written_again_when_it_is_damaged(
    tmp_path: Path, home: Path
) -> None:
    init_store(tmp_path / "s", home=home)
    path = tmp_path / "s/objects" / GENESIS_OID[:2] / GENESIS_OID[2:]
    _write(path, path.read_bytes()[:30])

    init_store(tmp_path / "s", home=home)

    found = RawObjects(tmp_path / "s/objects").load(GENESIS_OID, limit=LIMIT)
    assert found.kind == COMMIT


def test_a_commit_has_the_bytes_that_git_writes(store: Store) -> None:
    tree = edit_tree(store, None, {"file": TreeEntry(oid=write_blob(store, b"x"))})
    repo = store.repo
    for name, offset in (("Ada", 60), (" Böb .", -570), ("x", 0)):
        person = Person(name=name, email="a@b", time=1_800_000_000, offset=offset)
        signature = pygit2.Signature(name, "a@b", 1_800_000_000, offset, "utf-8")
        theirs = repo.create_commit(
            None, signature, signature, "subject\n\nbody ü\n", tree, [GENESIS_OID]
        )

        ours = write_commit(
            store,
            tree=tree,
            parents=(GENESIS_OID,),
            author=person,
            committer=person,
            message="subject\n\nbody ü\n",
        )

        assert ours == str(theirs)


def test_all_of_a_repository_reads_as_git_reads_it(store: Store) -> None:
    oid = _commit(store, _commit(store, GENESIS_OID))
    git(store, "update-ref", "refs/heads/thread/x", oid)
    kinds = {"commit": COMMIT, "tree": TREE, "blob": BLOB}
    for command in ("count-objects", "gc -q"):
        git(store, *command.split())
        listing = git(store, "cat-file", "--batch-all-objects", "--batch-check")
        for line in listing.splitlines():
            name, kind, size = line.split()
            found = store.raw.load(name, limit=LIMIT)
            assert (found.kind, found.size) == (kinds[kind], int(size))
            assert found.data is not None
            assert store.raw.load(name, limit=int(size) - 1).data is None


def test_what_is_borrowed_is_read_and_links_of_folders_end(
    store: Store, tmp_path: Path
) -> None:
    oid = write_blob(store, DATA)
    pygit2.init_repository(str(tmp_path / "b.git"), bare=True)
    objects = tmp_path / "b.git/objects"
    alternates = objects / "info/alternates"
    alternates.parent.mkdir(exist_ok=True)
    alternates.write_text(f"# ours\n{store.path / 'objects'}\n../objects\n")

    assert RawObjects(objects).load(oid, limit=LIMIT).data == DATA
    assert RawObjects(objects).exists(oid)


@pytest.mark.parametrize(
    ("module", "called"), [(os, "fsdecode"), (pygit2, "OdbBackendPack")]
)
def test_an_interrupt_while_packs_are_opened_leaves_none_half_open(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    called: str,
) -> None:
    waiting: dict[Oid, tuple[ObjectKind, bytes]] = {
        name_object(BLOB, DATA): ("blob", DATA)
    }
    with Batch(store=store, objects=waiting).write():
        pass
    pygit2.init_repository(str(tmp_path / "b.git"), bare=True)
    objects = tmp_path / "b.git/objects"
    (objects / "info").mkdir(exist_ok=True)
    (objects / "info/alternates").write_text(f"{store.path / 'objects'}\n")
    borrowing = RawObjects(objects)
    (oid,) = waiting

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, called, interrupt)
        with pytest.raises(KeyboardInterrupt):
            borrowing.exists(oid)

    assert borrowing.read(oid, BLOB, limit=LIMIT) == DATA


_LIBGIT2_READS: Final = re.compile(
    r"\.odb\.read|\brepo\[|\.peel\(|descendant_of|create_commit|TreeBuilder|repo\.walk\("
    r"|merge_base|\.diff\("
)


def test_nothing_else_reads_an_object_through_libgit2() -> None:
    package = Path(uwfgit.__file__).parent

    found = [
        f"{path.relative_to(package)}: {line.strip()}"
        for path in package.rglob("*.py")
        if "pygit2" in (text := path.read_text("utf-8")) or "store.repo" in text
        for line in text.splitlines()
        if _LIBGIT2_READS.search(line)
    ]

    assert found == []
