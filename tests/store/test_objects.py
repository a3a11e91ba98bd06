from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pygit2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import edit_tree, files_of, git
from uwfgit.constants import MAX_MESSAGE_BYTES, MAX_TREE_ENTRIES
from uwfgit.errors import CorruptError, StoreError
from uwfgit.ids import Oid
from uwfgit.store import raw
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.objects import (
    TREE_MODE,
    Commit,
    Person,
    TreeEntry,
    encode_tree,
    find_entry,
    format_commit,
    list_names,
    list_tree,
    read_blob,
    read_commit,
    walk_files,
    write_blob,
    write_commit,
    write_object,
)
from uwfgit.store.raw import BLOB, COMMIT, name_object

ABSENT: Final = Oid("12" * 20)
ADA: Final = Person(name="Ada", email="ada@example.com", time=1_800_000_000, offset=60)
AGENT: Final = Person(name="dev", email="agent@localhost", time=1_799_999_999)


def _file(store: Store, data: bytes) -> TreeEntry:
    return TreeEntry(oid=write_blob(store, data))


def _loose(store: Store, oid: str) -> Path:
    return store.path / "objects" / oid[:2] / oid[2:]


def _paths(store: Store, tree: Oid) -> dict[str, bytes]:
    return {
        path: read_blob(store, entry.oid) for path, entry in walk_files(store, tree)
    }


def test_a_blob_reads_as_it_was_written(store: Store) -> None:
    data = b"a\r\nb\0\xff"

    oid = write_blob(store, data)

    assert read_blob(store, oid) == data
    assert git(store, "cat-file", "-t", oid) == "blob\n"


def test_writing_a_blob_twice_is_writing_it_once(store: Store) -> None:
    assert write_blob(store, b"x") == write_blob(store, b"x")


def test_a_known_blob_gets_younger_by_being_written_again(store: Store) -> None:
    oid = write_blob(store, b"x")
    file = _loose(store, oid)
    os.utime(file, (0, 0))

    write_blob(store, b"x")

    assert file.stat().st_mtime > 1


def test_a_blob_over_the_limit_is_not_read(store: Store) -> None:
    oid = write_blob(store, b"123456")

    assert read_blob(store, oid, limit=6) == b"123456"
    with pytest.raises(CorruptError):
        read_blob(store, oid, limit=5)


@pytest.mark.parametrize(
    "oid", [pytest.param(ABSENT, id="absent"), pytest.param(GENESIS_OID, id="a-commit")]
)
def test_what_is_no_blob_is_corrupt(store: Store, oid: Oid) -> None:
    with pytest.raises(CorruptError):
        read_blob(store, oid)


def test_a_damaged_blob_is_corrupt(store: Store) -> None:
    oid = write_blob(store, b"x" * 1000)
    file = _loose(store, oid)
    data = file.read_bytes()
    file.chmod(0o600)
    file.write_bytes(data[:8] + b"\0\0\0\0" + data[12:])

    with pytest.raises(CorruptError):
        read_blob(store, oid)


def test_a_tree_lists_its_entries(store: Store) -> None:
    file = _file(store, b"x")

    tree = edit_tree(store, None, {"b/c": file, "a": file})

    entries = list_tree(store, tree)
    assert list(entries) == ["a", "b"]
    assert entries["a"] == file
    assert entries["b"].mode == TREE_MODE


@pytest.mark.parametrize(
    "oid", [pytest.param(ABSENT, id="absent"), pytest.param(GENESIS_OID, id="a-commit")]
)
def test_what_is_no_tree_is_corrupt(store: Store, oid: Oid) -> None:
    with pytest.raises(CorruptError):
        list_tree(store, oid)


def test_a_tree_that_is_too_wide_is_corrupt(store: Store) -> None:
    file = _file(store, b"x")
    wide = {f"{n:05d}": file for n in range(MAX_TREE_ENTRIES)}

    as_wide_as_may_be = edit_tree(store, None, dict(wide))
    data = encode_tree({**wide}) + b"100644 z\0" + bytes.fromhex(file.oid)
    too_wide = write_object(store, pygit2.enums.ObjectType.TREE, data)

    assert len(list_tree(store, as_wide_as_may_be)) == MAX_TREE_ENTRIES
    with pytest.raises(CorruptError):
        list_tree(store, too_wide)


def test_a_tree_with_a_name_that_is_not_utf_8_can_be_listed(store: Store) -> None:
    blob = write_blob(store, b"x")
    raw = b"100644 \xff\x00" + bytes.fromhex(blob)
    tree = store.repo.odb.write(pygit2.enums.ObjectType.TREE, raw)

    entries = list_tree(store, Oid(str(tree)))

    assert [entry.oid for entry in entries.values()] == [blob]


@pytest.mark.parametrize(
    ("path", "there"),
    [
        pytest.param("a/b/c", True, id="file"),
        pytest.param("a/b", True, id="folder"),
        pytest.param("a/x", False, id="absent"),
        pytest.param("x/b/c", False, id="absent-folder"),
        pytest.param("a/b/c/d", False, id="below-a-file"),
    ],
)
def test_a_path_is_looked_up_in_a_tree(store: Store, path: str, there: bool) -> None:  # noqa: FBT001 - a table's column
    tree = edit_tree(store, None, {"a/b/c": _file(store, b"x")})

    assert (find_entry(store, tree, path) is not None) is there


def test_a_path_through_a_missing_tree_is_corrupt(store: Store) -> None:
    raw = b"40000 a\x00" + bytes.fromhex(ABSENT)
    tree = store.repo.odb.write(pygit2.enums.ObjectType.TREE, raw)

    with pytest.raises(CorruptError):
        find_entry(store, Oid(str(tree)), "a/b")


def test_files_are_walked_with_their_paths_in_gits_order(store: Store) -> None:
    file = _file(store, b"x")
    tree = edit_tree(store, None, {"b": file, "a/y": file, "a/x/z": file, "a.md": file})

    paths = [path for path, _ in walk_files(store, tree)]

    shown = git(store, "ls-tree", "-r", "--name-only", tree).split()
    assert paths == shown == ["a.md", "a/x/z", "a/y", "b"]


def test_a_tree_nested_too_deep_is_corrupt(store: Store) -> None:
    tree = edit_tree(store, None, {"1/2/3/f": _file(store, b"x")})

    assert len(list(walk_files(store, tree, depth=3))) == 1
    with pytest.raises(CorruptError):
        list(walk_files(store, tree, depth=2))


def test_names_are_listed_once_however_often_a_folder_stands_in_a_tree(
    store: Store,
) -> None:
    file = _file(store, b"x")
    tree = edit_tree(store, None, {"f": file, "a/1/g": file})
    for _ in range(3):
        folder = TreeEntry(oid=tree, mode=TREE_MODE)
        tree = write_object(
            store, raw.TREE, encode_tree({str(each): folder for each in range(20)})
        )

    assert list_names(store, tree) == [("f", file.oid), ("g", file.oid)]


def test_names_that_are_nested_too_deep_are_corrupt(store: Store) -> None:
    deep = edit_tree(store, None, {"1/2/3/4/5/6/7/8/f": _file(store, b"x")})
    deeper = edit_tree(store, None, {"0": TreeEntry(oid=deep, mode=TREE_MODE)})

    assert len(list_names(store, deep)) == 1
    with pytest.raises(CorruptError):
        list_names(store, deeper)


def test_an_edit_touches_only_what_it_names(store: Store) -> None:
    x, y = _file(store, b"x"), _file(store, b"y")
    base = edit_tree(store, None, {"a/1": x, "a/2": x, "b/1": x, "c": x})

    tree = edit_tree(store, base, {"a/2": y, "c": None, "d/e/f": y})

    assert _paths(store, tree) == {"a/1": b"x", "a/2": b"y", "b/1": b"x", "d/e/f": b"y"}
    assert list_tree(store, tree)["b"] == list_tree(store, base)["b"]


def test_a_folder_left_empty_disappears(store: Store) -> None:
    base = edit_tree(store, None, {"a/b/c": _file(store, b"x"), "d": _file(store, b"")})

    assert list(list_tree(store, edit_tree(store, base, {"a/b/c": None}))) == ["d"]


def test_a_tree_left_empty_is_the_empty_tree(store: Store) -> None:
    base = edit_tree(store, None, {"a": _file(store, b"x")})

    tree = edit_tree(store, base, {"a": None, "not/there": None})

    assert tree == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_no_edit_gives_the_same_tree(store: Store) -> None:
    base = edit_tree(store, None, {"a/b": _file(store, b"x")})

    assert edit_tree(store, base, {}) == base


def test_a_file_cannot_be_set_below_a_file(store: Store) -> None:
    base = edit_tree(store, None, {"a": _file(store, b"x")})

    with pytest.raises(CorruptError):
        edit_tree(store, base, {"a/b": _file(store, b"x")})


def test_a_commit_reads_as_it_was_written(store: Store) -> None:
    tree = read_commit(store, GENESIS_OID).tree
    message = "sübject\n\nbody\n"

    oid = write_commit(
        store,
        tree=tree,
        parents=(GENESIS_OID,),
        author=AGENT,
        committer=ADA,
        message=message,
    )

    assert read_commit(store, oid) == Commit(
        oid=oid,
        tree=tree,
        parents=(GENESIS_OID,),
        author=AGENT,
        committer=ADA,
        message=message,
    )
    assert git(store, "log", "-1", "--format=%an <%ae> %ad|%cn", "--date=raw", oid) == (
        "dev <agent@localhost> 1799999999 +0000|Ada\n"
    )


def _commit_on(store: Store, tree: Oid) -> Oid:
    return write_commit(
        store,
        tree=tree,
        parents=(GENESIS_OID,),
        author=AGENT,
        committer=ADA,
        message="so long that nothing of it fits\n",
    )


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda store, _: write_blob(store, os.urandom(500)), id="blob"),
        pytest.param(
            lambda store, tree: edit_tree(
                store, tree, {os.urandom(99).hex(): _file(store, b"x")}
            ),
            id="tree",
        ),
        pytest.param(_commit_on, id="commit"),
    ],
)
def test_what_the_disk_has_no_room_for_is_never_said_to_be_written(
    store: Store, write: Callable[[Store, Oid], object]
) -> None:
    tree = edit_tree(store, None, {"a": _file(store, b"x")})
    assert tree is not None

    with files_of(20), pytest.raises(StoreError):
        write(store, tree)


def test_writing_a_commit_moves_no_ref(store: Store) -> None:
    before = git(store, "for-each-ref")

    _commit(store, "x")

    assert git(store, "for-each-ref") == before


def test_a_nul_in_a_message_is_refused_not_cut(store: Store) -> None:
    with pytest.raises(ValueError, match="NUL"):
        _commit(store, "a\0b")


def test_a_message_over_the_limit_is_not_read(store: Store) -> None:
    fits, over = (_commit(store, "x" * (MAX_MESSAGE_BYTES + n)) for n in (0, 1))

    assert len(read_commit(store, fits).message) == MAX_MESSAGE_BYTES
    with pytest.raises(CorruptError):
        read_commit(store, over)


@pytest.mark.parametrize("kind", ["absent", "a-tree", "malformed"])
def test_what_is_no_commit_is_corrupt(store: Store, kind: str) -> None:
    malformed = store.repo.odb.write(pygit2.enums.ObjectType.COMMIT, b"tree x\n\n")
    oids = {
        "absent": ABSENT,
        "a-tree": read_commit(store, GENESIS_OID).tree,
        "malformed": Oid(str(malformed)),
    }

    with pytest.raises(CorruptError):
        read_commit(store, oids[kind])


def _commit(store: Store, message: str) -> Oid:
    return write_commit(
        store,
        tree=read_commit(store, GENESIS_OID).tree,
        parents=(),
        author=ADA,
        committer=ADA,
        message=message,
    )


@given(
    name=st.text(st.characters(codec="utf-8", exclude_characters="<>\n\0"), min_size=1),
    seconds=st.integers(0, 4_000_000_000),
    offset=st.integers(-14 * 60, 14 * 60),
    message=st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    count=st.integers(0, 2),
)
def test_a_commit_has_the_bytes_that_libgit2_gives_it(
    name: str, seconds: int, offset: int, message: str, count: int
) -> None:
    person = Person(name=name, email="a@b", time=seconds, offset=offset)
    facts = (Oid("1" * 40), tuple(Oid(str(n + 2) * 40) for n in range(count)))

    def ours() -> bytes:
        return format_commit(
            tree=facts[0],
            parents=facts[1],
            author=person,
            committer=person,
            message=message,
        )

    try:
        signature = pygit2.Signature(name, "a@b", seconds, offset, "utf-8")
    except (ValueError, pygit2.GitError):
        with pytest.raises(StoreError):
            ours()
        return
    who = f"{signature.raw_name.decode()} <a@b> {seconds} "
    zone = f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02}{abs(offset) % 60:02}"
    head, _, body = ours().partition(b"\n\n")
    lines = [f"tree {facts[0]}", *(f"parent {each}" for each in facts[1])]
    lines += [f"author {who}{zone}", f"committer {who}{zone}"]
    assert head.decode().split("\n") == lines
    assert body.decode() == message


def test_git_reads_such_a_commit_as_it_was_meant(store: Store) -> None:
    person = Person(name="Ä da", email="a@b", time=1_700_000_000, offset=-90)
    tree = read_commit(store, GENESIS_OID).tree

    made = write_commit(
        store,
        tree=tree,
        parents=(GENESIS_OID,),
        author=person,
        committer=person,
        message="one\n\ntwo\n",
    )

    twin = store.repo.create_commit_string(
        pygit2.Signature("Ä da", "a@b", 1_700_000_000, -90, "utf-8"),
        pygit2.Signature("Ä da", "a@b", 1_700_000_000, -90, "utf-8"),
        "one\n\ntwo\n",
        tree,
        [GENESIS_OID],
    )
    assert made == name_object(COMMIT, str(twin).encode())


def test_an_entry_is_compared_and_shown_without_its_data() -> None:
    oid = name_object(BLOB, b"secret")
    written, new = TreeEntry(oid=oid), TreeEntry(oid=oid, data=b"secret")

    assert written == new
    assert {written, new} == {new}
    assert new != TreeEntry(oid=oid, mode=TREE_MODE)
    assert "secret" not in repr(new)
