from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pygit2
import pytest

from tests.builders import edit_tree, object_file
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.store.canonical import META_TYPE, TEXT_TYPE
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store, make_store
from uwfgit.store.layout import KEEP_REF, thread_ref
from uwfgit.store.lookup.fill import find_added
from uwfgit.store.lookup.refresh import RefreshSource, fill, sync
from uwfgit.store.lookup.schema import open_memory
from uwfgit.store.lookup.table import (
    Lookup,
    NodeRow,
    RebuildReport,
    StepRow,
    ThreadTipRow,
)
from uwfgit.store.objects import (
    Person,
    TreeEntry,
    read_commit,
    write_blob,
    write_commit,
    write_object,
)
from uwfgit.store.raw import TREE, RawObject, RawObjects
from uwfgit.store.refs import find_ref, move_ref
from uwfgit.store.repository import init_store, open_store

STEP = Hash("BADAZA8A4H6T9")
OUTPUT = Hash("AAAAAAAAAAAAA")
ONE = ThreadId("01J00000000000000000000001")
TWO = ThreadId("01J00000000000000000000002")
FORK = ThreadId("01J0000000000000000000000F")
PERSON = Person(name="Ada", email="ada@example.com", time=1_800_000_000)


def h(text: str) -> Hash:
    """Make something of a hash's shape; the lookup never hashes."""
    return Hash(text.upper().rjust(13, "0"))


def name(node: Hash, node_type: Hash = OUTPUT) -> str:
    return f"{node}.{node_type}.{'md' if node_type == TEXT_TYPE else 'json'}"


def commit_on(
    store: Store,
    parent: Oid | None,
    files: Mapping[str, bytes | None],
    message: str = "event\n",
) -> Oid:
    base = read_commit(store, parent).tree if parent else None
    changes = {
        path: None if data is None else TreeEntry(oid=write_blob(store, data))
        for path, data in files.items()
    }
    return write_commit(
        store,
        tree=edit_tree(store, base, changes),
        parents=(parent,) if parent else (),
        author=PERSON,
        committer=PERSON,
        message=message,
    )


def point(store: Store, ref: str, oid: Oid | None) -> None:
    move_ref(store, ref, old=find_ref(store, ref), new=oid, reason="test")


def start(store: Store, thread: ThreadId) -> Oid:
    commit = commit_on(
        store,
        GENESIS_OID,
        {
            f"threads/{thread}/thread.json": f"start {thread}".encode(),
            f"threads/{thread}/nodes/start/{name(h('5C'), META_TYPE)}": b"schema",
            f"threads/{thread}/nodes/start/{name(h(thread[-3:]), TEXT_TYPE)}": b"task",
        },
    )
    point(store, thread_ref(thread), commit)
    return commit


def step(
    store: Store, thread: ThreadId, number: int, *, parent: Oid, trailer: bool = True
) -> Oid:
    """Add a step ``C<thread>5<number>`` and its output ``C<thread>0<number>``."""
    node = h(f"C{thread[-1]}5{number}")
    folder = f"threads/{thread}/nodes/{number // 100:03d}/{number:05d}/1"
    message = f"developer: done\n\nUwf-Event: step\nUwf-Node: {node}\nUwf-Role: x\n"
    commit = commit_on(
        store,
        parent,
        {
            f"{folder}/{name(node, STEP)}": f"step {node}".encode(),
            f"{folder}/{name(h(f'C{thread[-1]}0{number}'))}": f"{number}".encode(),
            f"threads/{thread}/thread.json": f"step {number}".encode(),
        },
        message if trailer else "no trailer\n",
    )
    point(store, thread_ref(thread), commit)
    return commit


def run(
    store: Store, thread: ThreadId, steps: int, *, parent: Oid | None = None
) -> Oid:
    commit = parent or start(store, thread)
    for number in range(1, steps + 1):
        commit = step(store, thread, number, parent=commit)
    return commit


def fork(store: Store, thread: ThreadId, *, at: Oid) -> Oid:
    commit = commit_on(store, at, {f"threads/{thread}/thread.json": b"fork"})
    point(store, thread_ref(thread), commit)
    return commit


def git(store: Store, *args: str) -> str:
    done = subprocess.run(
        ["git", "--git-dir", str(store.path), *args],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


Answers = tuple[
    tuple[ThreadTipRow, ...], tuple[NodeRow, ...], tuple[tuple[StepRow, ...], ...]
]


def answers(lookup: Lookup) -> Answers:
    steps = sorted({row.hash for row in lookup.list_nodes(STEP)})
    return (
        lookup.list_threads(),
        lookup.list_nodes(),
        tuple(lookup.find_steps(node) for node in steps),
    )


def fresh_answers(store: Store, tmp_path: Path) -> Answers:
    """Give what a lookup says that has never seen the store before."""
    folder = tmp_path / "fresh"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(store.path, folder)
    shutil.rmtree(folder / "uwf")
    repo = pygit2.Repository(str(folder))
    with Lookup(make_store(folder, repo), step_type=STEP) as lookup:
        return answers(lookup)


@pytest.fixture
def lookup(store: Store) -> Iterator[Lookup]:
    with Lookup(store, step_type=STEP) as opened:
        yield opened


@pytest.fixture
def file(store: Store) -> Path:
    return store.state_dir / "lookup.sqlite3"


def test_constructing_does_not_touch_the_file(lookup: Lookup, file: Path) -> None:
    assert isinstance(lookup, Lookup)

    assert not file.exists()


def test_the_file_is_private(lookup: Lookup, file: Path) -> None:
    lookup.refresh()

    assert file.stat().st_mode & 0o777 == 0o600


def test_the_memory_that_filling_takes_is_given_back(
    store: Store, lookup: Lookup
) -> None:
    start(store, ONE)
    lookup.keep_little()

    lookup.list_nodes()

    db = lookup._open(sync=False, filled=False)
    assert db.execute("PRAGMA cache_size").fetchone() == (-256,)


def test_a_step_is_found_with_thread_commit_and_number(
    store: Store, lookup: Lookup
) -> None:
    first = step(store, ONE, 1, parent=start(store, ONE))
    step(store, ONE, 2, parent=first)

    found = lookup.find_steps(h("C151"))

    assert found == (StepRow(hash=h("C151"), thread=ONE, commit=first, number=1),)


def test_a_node_is_found_with_its_blob_and_type(store: Store, lookup: Lookup) -> None:
    run(store, ONE, 1)

    found = lookup.find_nodes(h("C101"))

    blob = write_blob(store, b"1")
    assert found == (NodeRow(hash=h("C101"), oid=blob, type=OUTPUT),)


def test_nodes_can_be_listed_by_type(store: Store, lookup: Lookup) -> None:
    run(store, ONE, 3)

    found = [row.hash for row in lookup.list_nodes(STEP)]

    assert found == [h("C151"), h("C152"), h("C153")]


def test_threads_are_listed_newest_first_with_their_state(
    store: Store, lookup: Lookup
) -> None:
    one, two = run(store, ONE, 2), run(store, TWO, 1)

    assert lookup.list_threads() == (
        ThreadTipRow(thread=TWO, commit=two, state_json="step 1"),
        ThreadTipRow(thread=ONE, commit=one, state_json="step 2"),
    )


def test_an_unknown_hash_finds_nothing(store: Store, lookup: Lookup) -> None:
    run(store, ONE, 1)

    assert lookup.find_nodes(h("FFF")) == ()
    assert lookup.find_steps(h("FFF")) == ()


def test_a_step_beyond_the_first_bucket_has_its_number(
    store: Store, lookup: Lookup
) -> None:
    commit = step(store, ONE, 123, parent=start(store, ONE))

    found = lookup.find_steps(h("C15123"))

    assert found == (StepRow(hash=h("C15123"), thread=ONE, commit=commit, number=123),)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(f"threads/{ONE}/nodes/001/00001/1/", id="wrong bucket"),
        pytest.param(f"threads/{ONE}/nodes/000/00001-x/1/", id="no number"),
        pytest.param(f"threads/{ONE}/nodes/start/", id="start"),
    ],
)
def test_a_step_node_out_of_place_is_a_node_and_no_step(
    store: Store, lookup: Lookup, path: str
) -> None:
    commit = commit_on(store, start(store, ONE), {path + name(h("E"), STEP): b"odd"})
    point(store, thread_ref(ONE), commit)

    assert [row.hash for row in lookup.find_nodes(h("E"))] == [h("E")]
    assert lookup.find_steps(h("E")) == ()


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(f"threads/{ONE}/history/000/{name(h('E'))}", id="not in nodes"),
        pytest.param(f"threads/{ONE}/nodes/a/b/c/d/{name(h('E'))}", id="too deep"),
        pytest.param(f"threads/{ONE.lower()}/nodes/start/{name(h('E'))}", id="case"),
        pytest.param(f"other/{ONE}/nodes/start/{name(h('E'))}", id="other root"),
        pytest.param(f"threads/{ONE}/nodes/start/{h('E')}.json", id="no type"),
        pytest.param(
            f"threads/{ONE}/nodes/start/{h('E')}.{OUTPUT}.md", id="md but no text"
        ),
        pytest.param(
            f"threads/{ONE}/nodes/start/{h('E')}.{TEXT_TYPE}.json", id="text but json"
        ),
    ],
)
def test_other_files_are_no_nodes(store: Store, lookup: Lookup, path: str) -> None:
    commit = commit_on(store, start(store, ONE), {path: b"x"})
    point(store, thread_ref(ONE), commit)

    assert lookup.find_nodes(h("E")) == ()


@pytest.mark.parametrize(
    ("ref", "path", "is_read"),
    [
        pytest.param(
            "refs/heads/workflow/a-b", "workflows/a-b/nodes/", True, id="workflow"
        ),
        pytest.param(KEEP_REF, "nodes/00/", True, id="keep"),
        pytest.param(
            "refs/heads/main", f"threads/{ONE}/nodes/start/", False, id="main"
        ),
        pytest.param(
            f"refs/uwf/trash/{ONE}", f"threads/{ONE}/nodes/start/", False, id="trash"
        ),
        pytest.param(
            f"refs/remotes/o/thread/{ONE}",
            f"threads/{ONE}/nodes/start/",
            False,
            id="remote",
        ),
        pytest.param(
            f"refs/heads/thread/{ONE.lower()}",
            f"threads/{ONE}/nodes/start/",
            False,
            id="lower-case thread",
        ),
        pytest.param(
            "refs/heads/workflow/A", "workflows/a/nodes/", False, id="bad name"
        ),
        pytest.param(
            f"refs/heads/thread/{ONE}/below",
            f"threads/{ONE}/nodes/start/",
            False,
            id="below",
        ),
    ],
)
@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
def test_only_threads_workflows_and_keep_are_read(
    *, store: Store, lookup: Lookup, ref: str, path: str, is_read: bool, packed: bool
) -> None:
    point(store, ref, commit_on(store, GENESIS_OID, {path + name(h("E")): b"x"}))
    if packed:
        git(store, "pack-refs", "--all")

    assert bool(lookup.find_nodes(h("E"))) is is_read


def test_two_contents_of_one_hash_are_both_seen(store: Store, lookup: Lookup) -> None:
    for thread, data in ((ONE, b"one"), (TWO, b"two")):
        path = f"threads/{thread}/nodes/000/00001/1/{name(h('E'))}"
        point(
            store,
            thread_ref(thread),
            commit_on(store, start(store, thread), {path: data}),
        )

    one, two = write_blob(store, b"one"), write_blob(store, b"two")
    assert {row.oid for row in lookup.find_nodes(h("E"))} == {one, two}
    assert lookup.threads_with_node(h("E"), one) == (ONE,)
    assert lookup.threads_with_node(h("E"), two) == (TWO,)


def test_two_contents_within_one_tree_are_both_seen(
    store: Store, lookup: Lookup
) -> None:
    folder = f"threads/{ONE}/nodes/000"
    commit = commit_on(
        store,
        start(store, ONE),
        {
            f"{folder}/00001/{name(h('E'))}": b"one",
            f"{folder}/00002/{name(h('E'))}": b"two",
        },
    )
    point(store, thread_ref(ONE), commit)

    assert len(lookup.find_nodes(h("E"))) == 2


def test_a_node_of_every_thread_names_them_all(store: Store, lookup: Lookup) -> None:
    run(store, ONE, 1)
    run(store, TWO, 1)

    schema = write_blob(store, b"schema")

    assert lookup.threads_with_node(h("5C"), schema) == (TWO, ONE)


def test_an_inherited_step_is_the_origins(store: Store, lookup: Lookup) -> None:
    second = run(store, ONE, 2)
    run(store, FORK, 1, parent=fork(store, FORK, at=second))

    found = lookup.find_steps(h("C152"))

    assert found == (StepRow(hash=h("C152"), thread=ONE, commit=second, number=2),)


def test_inherited_steps_outlive_their_origin(store: Store, lookup: Lookup) -> None:
    second = run(store, ONE, 2)
    fork(store, FORK, at=second)
    lookup.find_steps(h("C152"))
    point(store, thread_ref(ONE), None)

    lookup.refresh()

    assert lookup.find_steps(h("C152")) == (
        StepRow(hash=h("C152"), thread=ONE, commit=second, number=2),
    )


@pytest.mark.parametrize("warm", [False, True], ids=["filled at once", "one by one"])
def test_a_foreign_branch_cannot_claim_a_threads_step(
    store: Store, lookup: Lookup, *, warm: bool
) -> None:
    liar = ThreadId("00000000000000000000000001")
    path = f"threads/{ONE}/nodes/000/00001/1/{name(h('C151'), STEP)}"
    point(store, thread_ref(liar), commit_on(store, start(store, liar), {path: b"lie"}))
    if warm:
        lookup.find_steps(h("C151"))
    commit = run(store, ONE, 1)
    lookup.refresh()

    assert lookup.find_steps(h("C151")) == (
        StepRow(hash=h("C151"), thread=ONE, commit=commit, number=1),
    )


def test_a_step_that_no_trailer_names_is_found_by_its_tree(
    store: Store, lookup: Lookup
) -> None:
    first = step(store, ONE, 1, parent=start(store, ONE), trailer=False)
    step(store, ONE, 2, parent=first)

    assert lookup.find_steps(h("C151")) == (
        StepRow(hash=h("C151"), thread=ONE, commit=first, number=1),
    )


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        pytest.param(
            {"prefix": "01J0000000000000000000000"}, (ONE, TWO, FORK), id="prefix"
        ),
        pytest.param({"suffix": "002"}, (TWO,), id="suffix"),
        pytest.param({"prefix": "%"}, (), id="wildcard"),
        pytest.param({"prefix": "*"}, (), id="star"),
        pytest.param({}, (ONE, TWO, FORK), id="all"),
    ],
)
def test_threads_are_found_by_a_part_of_their_id(
    store: Store, lookup: Lookup, part: dict[str, str], expected: tuple[ThreadId, ...]
) -> None:
    for thread in (ONE, TWO, FORK):
        start(store, thread)

    assert lookup.find_threads(**part) == expected


def _advance(store: Store) -> None:
    step(store, ONE, 4, parent=_tip(store, ONE))


def _tip(store: Store, thread: ThreadId) -> Oid:
    tip = find_ref(store, thread_ref(thread))
    assert tip is not None
    return tip


def _rewind(store: Store) -> None:
    git(store, "update-ref", thread_ref(ONE), f"{thread_ref(ONE)}~2")


def _rewrite(store: Store) -> None:
    point(store, thread_ref(ONE), None)
    step(store, ONE, 7, parent=start(store, ONE))


def _branch_delete(store: Store) -> None:
    git(store, "branch", "-D", f"thread/{ONE}")


def _rename(store: Store) -> None:
    git(store, "branch", "-m", f"thread/{ONE}", f"thread/{FORK}")


def _pack_refs(store: Store) -> None:
    git(store, "pack-refs", "--all")


def _pack_and_move(store: Store) -> None:
    _pack_refs(store)
    _advance(store)


def _pack_and_delete(store: Store) -> None:
    _pack_and_move(store)
    _branch_delete(store)


def _gc(store: Store) -> None:
    _branch_delete(store)
    git(store, "reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    git(store, "gc", "-q", "--prune=now")


def _fork(store: Store) -> None:
    fork(store, FORK, at=Oid(git(store, "rev-parse", f"{thread_ref(ONE)}~1")))


def _fork_and_run(store: Store) -> None:
    _fork(store)
    run(store, FORK, 2, parent=_tip(store, FORK))
    _advance(store)


def _many(store: Store) -> None:
    for number in range(4, 9):
        step(store, ONE, number, parent=_tip(store, ONE))


def _fetch(store: Store) -> None:
    path = store.path.parent / "other"
    home = store.path.parent / "other-home"
    init_store(path, home=home, fsync=False)
    other = open_store(path, home=home)
    run(other, ThreadId("01J00000000000000000000009"), 2)
    step(other, ONE, 9, parent=start(other, ONE))
    point(other, thread_ref(ONE), None)
    git(store, "fetch", "-q", str(path), "refs/heads/thread/*:refs/heads/thread/*")


def _keep_more(store: Store) -> None:
    files = {"nodes/00/" + name(h("A1")): b"1", "nodes/00/" + name(h("A2")): b"2"}
    point(store, KEEP_REF, commit_on(store, None, files))


def _keep_less(store: Store) -> None:
    files = {"nodes/00/" + name(h("A2")): b"2"}
    point(store, KEEP_REF, commit_on(store, None, files))


def _keep_none(store: Store) -> None:
    point(store, KEEP_REF, None)


def _workflow(store: Store) -> None:
    ref = "refs/heads/workflow/w"
    old = find_ref(store, ref)
    path = "workflows/w/nodes/"
    files = {path + name(h("B1")): None, path + name(h("B2")): b"2"}
    point(store, ref, commit_on(store, old, files))


def _garbage_ref(store: Store) -> None:
    (store.path / thread_ref(ONE)).unlink()
    (store.path / thread_ref(ONE)).write_bytes(b"")


def _symbolic_ref(store: Store) -> None:
    git(store, "symbolic-ref", thread_ref(ONE), "refs/heads/main")


def _nothing(_: Store) -> None:
    pass


CHANGES = [
    pytest.param(_nothing, id="nothing"),
    pytest.param(_advance, id="a step"),
    pytest.param(_many, id="several steps"),
    pytest.param(_rewind, id="update-ref to an ancestor"),
    pytest.param(_rewrite, id="another history"),
    pytest.param(_branch_delete, id="branch -D"),
    pytest.param(_rename, id="branch -m"),
    pytest.param(_pack_refs, id="pack-refs"),
    pytest.param(_pack_and_move, id="pack-refs and a step"),
    pytest.param(_pack_and_delete, id="pack-refs, a step and branch -D"),
    pytest.param(_gc, id="branch -D and gc"),
    pytest.param(_fork, id="fork"),
    pytest.param(_fork_and_run, id="fork, and both run on"),
    pytest.param(_fetch, id="fetch"),
    pytest.param(_keep_more, id="keep has more"),
    pytest.param(_keep_less, id="keep has less"),
    pytest.param(_keep_none, id="keep is gone"),
    pytest.param(_workflow, id="another version of a workflow"),
    pytest.param(_garbage_ref, id="an empty ref file"),
    pytest.param(_symbolic_ref, id="a symbolic ref"),
]


@pytest.fixture
def filled(store: Store, lookup: Lookup) -> Answers:
    """Threads, a workflow and keep, and the lookup that has seen them."""
    run(store, ONE, 3)
    run(store, TWO, 1)
    point(store, KEEP_REF, commit_on(store, None, {"nodes/00/" + name(h("A1")): b"1"}))
    path = "workflows/w/nodes/" + name(h("B1"))
    point(store, "refs/heads/workflow/w", commit_on(store, GENESIS_OID, {path: b"1"}))
    return answers(lookup)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.usefixtures("filled")
def test_moved_refs_give_what_a_fresh_lookup_gives(
    store: Store, lookup: Lookup, change: Callable[[Store], None], tmp_path: Path
) -> None:
    change(store)

    lookup.refresh()

    assert answers(lookup) == fresh_answers(store, tmp_path)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.usefixtures("filled")
def test_refs_moved_between_two_commands_are_noticed(
    store: Store, lookup: Lookup, change: Callable[[Store], None], tmp_path: Path
) -> None:
    lookup.close()
    change(store)

    with Lookup(store, step_type=STEP) as again:
        found = answers(again)

    assert found == fresh_answers(store, tmp_path)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.usefixtures("filled")
def test_every_change_is_noticed_from_packed_refs(
    store: Store, lookup: Lookup, change: Callable[[Store], None], tmp_path: Path
) -> None:
    git(store, "pack-refs", "--all")
    lookup.refresh()
    change(store) if change is not _garbage_ref else None

    lookup.refresh()

    assert answers(lookup) == fresh_answers(store, tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("change", [_advance, _branch_delete, _fork, _pack_refs])
def test_changes_after_a_quiet_time_are_noticed(
    store: Store, lookup: Lookup, change: Callable[[Store], None], tmp_path: Path
) -> None:
    git(store, "pack-refs", "--all")
    time.sleep(2.1)
    lookup.refresh()
    change(store)

    lookup.refresh()

    assert answers(lookup) == fresh_answers(store, tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("filled")
def test_refs_are_not_even_read_while_their_folders_are_unchanged(
    store: Store, lookup: Lookup
) -> None:
    for number in range(60):
        ref = thread_ref(ThreadId(f"01J000000000000000000001{number:02d}"))
        point(store, ref, GENESIS_OID)
    time.sleep(2.1)
    lookup.refresh()
    before = lookup.list_threads()
    # Nobody writes a ref in place; it shows what was not read.
    (store.path / thread_ref(ONE)).write_text(f"{GENESIS_OID}\n")

    lookup.refresh()

    assert lookup.list_threads() == before


class _Counting(RawObjects):
    count: int = 0

    def load(self, oid: str, *, limit: int) -> RawObject:
        self.count += 1
        return super().load(oid, limit=limit)


def _reads_of_a_step(store: Store, steps: int) -> int:
    tip = run(store, ONE, steps)
    db = open_memory(step_type=STEP)
    source = RefreshSource(path=store.path, objects=store.raw, step_type=STEP)
    sync(db, source)
    fill(db, source)
    step(store, ONE, steps + 1, parent=tip)
    counting = _Counting(store.path / "objects")
    sync(db, RefreshSource(path=store.path, objects=counting, step_type=STEP))
    db.close()
    return counting.count


def test_the_cost_of_a_step_does_not_grow_with_the_thread(
    store: Store, tmp_path: Path, home: Path
) -> None:
    init_store(tmp_path / "long", home=home, fsync=False)
    long = open_store(tmp_path / "long", home=home)

    assert _reads_of_a_step(long, 40) == _reads_of_a_step(store, 2)


def _delete(file: Path) -> None:
    file.unlink()


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _halve(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _cut_header(file: Path) -> None:
    os.truncate(file, 50)


NOISE = random.Random(7)  # noqa: S311 - the same in every run


def _garbage(file: Path) -> None:
    file.write_bytes(NOISE.randbytes(50_000))


def _garbage_pages(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[:4096] + NOISE.randbytes(len(data) - 4096))


def _garbage_wal(file: Path) -> None:
    file.with_name(file.name + "-wal").write_bytes(NOISE.randbytes(10_000))


def _older(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        for table in ("node", "step", "thread", "ref", "meta"):
            db.execute(f"DROP TABLE {table}")
        db.execute("CREATE TABLE node (hash TEXT, place TEXT)")
        db.execute("PRAGMA user_version = 0")
    db.close()


def _lying_version(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("ALTER TABLE node RENAME COLUMN oid TO place")
    db.close()


def _newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("PRAGMA user_version = 99")
    db.close()


def _another_step_type(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE meta SET value = 'X' WHERE key = 'step_type'")
    db.close()


def _directory(file: Path) -> None:
    file.unlink()
    (file / "below").mkdir(parents=True)


def _no_folder(file: Path) -> None:
    shutil.rmtree(file.parent)
    file.parent.write_bytes(b"a file in the place of the folder")


def _dangling_link(file: Path) -> None:
    file.unlink()
    file.symlink_to("/nonexistent/folder/file")


def _read_only(file: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root writes to read-only folders")
    file.parent.chmod(0o500)


DAMAGES = [
    pytest.param(_delete, id="deleted"),
    pytest.param(_empty, id="empty"),
    pytest.param(_halve, id="truncated"),
    pytest.param(_cut_header, id="truncated in its header"),
    pytest.param(_garbage, id="garbage"),
    pytest.param(_garbage_pages, id="garbage after the first page"),
    pytest.param(_garbage_wal, id="a garbage log"),
    pytest.param(_older, id="older version"),
    pytest.param(_lying_version, id="other columns"),
    pytest.param(_newer, id="newer version"),
    pytest.param(_another_step_type, id="another format of steps"),
    pytest.param(_directory, id="a folder in its place"),
    pytest.param(_no_folder, id="no folder for it"),
    pytest.param(_dangling_link, id="a dangling link"),
    pytest.param(_read_only, id="read-only folder"),
]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("read_only", [False, True], ids=["", "read-only lookup"])
def test_a_bad_file_changes_no_answer(
    *,
    store: Store,
    lookup: Lookup,
    filled: Answers,
    file: Path,
    damage: Callable[[Path], None],
    read_only: bool,
) -> None:
    lookup.close()
    damage(file)

    with Lookup(store, step_type=STEP, read_only=read_only) as again:
        found = answers(again)
        by_name = again.find_nodes(h("C101")), again.find_threads(prefix=ONE)

    assert found == filled
    assert by_name[0][0].hash == h("C101")
    assert by_name[1] == (ONE,)


@pytest.mark.parametrize(
    "damage", [_empty, _halve, _garbage, _garbage_pages, _older, _lying_version]
)
@pytest.mark.usefixtures("filled")
def test_a_bad_file_is_mended_for_the_next_command(
    store: Store, lookup: Lookup, file: Path, damage: Callable[[Path], None]
) -> None:
    lookup.close()
    damage(file)
    with Lookup(store, step_type=STEP) as again:
        again.list_nodes()

    with closing(sqlite3.connect(file)) as db, db:
        (count,) = db.execute("SELECT count(*) FROM node").fetchone()
    db.close()

    assert count > 0


def test_a_file_that_goes_bad_under_an_open_lookup_changes_no_answer(
    lookup: Lookup, filled: Answers, file: Path
) -> None:
    _garbage(file)
    _garbage_wal(file)
    lookup.refresh()

    assert answers(lookup) == filled


def test_a_read_only_lookup_leaves_no_file(store: Store, file: Path) -> None:
    run(store, ONE, 1)

    with Lookup(store, step_type=STEP, read_only=True) as lookup:
        assert lookup.find_nodes(h("C101"))

    assert not file.exists()


@pytest.mark.usefixtures("filled")
def test_a_read_only_lookup_changes_no_file(
    store: Store, lookup: Lookup, file: Path, tmp_path: Path
) -> None:
    lookup.close()
    before = file.read_bytes()
    _advance(store)

    with Lookup(store, step_type=STEP, read_only=True) as again:
        found = answers(again)

    assert found == fresh_answers(store, tmp_path)
    assert file.read_bytes() == before


@pytest.mark.slow
def test_a_file_locked_for_too_long_is_bypassed(
    store: Store, lookup: Lookup, filled: Answers, file: Path, tmp_path: Path
) -> None:
    lookup.close()
    _advance(store)
    with closing(sqlite3.connect(file, isolation_level=None)) as db, db:
        db.execute("BEGIN IMMEDIATE")
        found = answers(lookup)
        db.execute("ROLLBACK")
    db.close()

    assert found == fresh_answers(store, tmp_path)
    assert found != filled


def test_a_hit_whose_object_is_gone_is_looked_for_again(
    store: Store, lookup: Lookup, filled: Answers, file: Path
) -> None:
    right = lookup.find_nodes(h("C101"))
    lookup.close()
    with closing(sqlite3.connect(file)) as db, db:
        db.execute(
            "UPDATE node SET oid = ? WHERE hash = ?", (bytes(19) + b"1", h("C101"))
        )
    db.close()

    with Lookup(store, step_type=STEP) as again:
        assert again.find_nodes(h("C101")) == right
        assert answers(again) == filled


def test_a_node_whose_object_is_lost_is_not_found(store: Store, lookup: Lookup) -> None:
    run(store, ONE, 1)
    (row,) = lookup.find_nodes(h("C101"))
    object_file(store, row.oid).unlink()

    assert lookup.find_nodes(h("C101")) == ()
    assert lookup.find_steps(h("C151"))


def _lose(store: Store, revision: str) -> None:
    oid = git(store, "rev-parse", revision)
    object_file(store, oid).unlink()


@pytest.mark.parametrize(
    ("lost", "has_state"),
    [
        pytest.param("", False, id="tip"),
        pytest.param("^{tree}", False, id="root tree"),
        pytest.param(f":threads/{ONE}", False, id="thread's tree"),
        pytest.param(f":threads/{ONE}/thread.json", False, id="state"),
        pytest.param(f":threads/{ONE}/nodes/000/00002", True, id="a step's nodes"),
        pytest.param("~1", True, id="an older commit"),
        pytest.param("~1^{tree}", True, id="an older tree"),
    ],
)
@pytest.mark.parametrize("warm", [False, True], ids=["filled at once", "one by one"])
def test_a_thread_that_cannot_be_read_does_not_break_the_rest(
    *, store: Store, lookup: Lookup, lost: str, has_state: bool, warm: bool
) -> None:
    if warm:
        lookup.list_nodes()
    tip, two = run(store, ONE, 3), run(store, TWO, 2)
    _lose(store, f"{thread_ref(ONE)}{lost}")

    with Lookup(
        make_store(store.path, pygit2.Repository(str(store.path))), step_type=STEP
    ) as again:
        states = {row.thread: row for row in again.list_threads()}
        found = again.find_steps(h("C252"))

    assert states[ONE].commit == tip
    assert (states[ONE].state_json is not None) is has_state
    assert states[TWO] == ThreadTipRow(thread=TWO, commit=two, state_json="step 2")
    assert [row.commit for row in found] == [two]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xff\xfe", id="not UTF-8"),
        pytest.param(b"x" * 65_537, id="larger than 64 KiB"),
    ],
)
def test_a_state_that_is_no_text_within_bounds_is_none(
    store: Store, lookup: Lookup, data: bytes
) -> None:
    path = f"threads/{ONE}/thread.json"
    point(store, thread_ref(ONE), commit_on(store, start(store, ONE), {path: data}))

    assert [row.state_json for row in lookup.list_threads()] == [None]


@pytest.mark.parametrize("content", [b"", b"garbage\n", b"ref: refs/heads/main\n"])
def test_a_ref_file_without_an_oid_is_a_thread_without_state(
    store: Store, lookup: Lookup, content: bytes
) -> None:
    folder = store.path / "refs" / "heads" / "thread"
    folder.mkdir(parents=True)
    (folder / ONE).write_bytes(content)

    assert lookup.list_threads() == (
        ThreadTipRow(thread=ONE, commit=Oid("0" * 40), state_json=None),
    )


def test_a_pipe_in_place_of_a_ref_does_not_block(store: Store, lookup: Lookup) -> None:
    folder = store.path / "refs" / "heads" / "thread"
    folder.mkdir(parents=True)
    os.mkfifo(folder / ONE)

    assert [row.state_json for row in lookup.list_threads()] == [None]


@pytest.mark.usefixtures("filled")
def test_a_rebuild_counts_what_git_has(lookup: Lookup) -> None:
    assert lookup.rebuild() == RebuildReport(refs=4, threads=2, nodes=13, steps=4)


def test_a_rebuild_forgets_what_git_does_not_have(
    lookup: Lookup, filled: Answers, file: Path
) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("INSERT INTO node VALUES (?, ?, ?)", (h("BAD"), bytes(20), OUTPUT))
    db.close()

    lookup.rebuild()

    assert answers(lookup) == filled


_ASK = """
import sys, pygit2
from pathlib import Path
from uwfgit.store.lookup.table import Lookup
from uwfgit.store.handle import make_store
path = Path(sys.argv[1])
store = make_store(path, pygit2.Repository(str(path)))
sys.stdin.readline()
with Lookup(store, step_type=sys.argv[2]) as lookup:
    found = lookup.list_threads(), lookup.list_nodes(), lookup.find_steps(sys.argv[3])
print(*map(len, found))
"""


@pytest.mark.slow
@pytest.mark.parametrize("before", [_nothing, _garbage], ids=["no file", "garbage"])
def test_processes_that_refresh_at_once_agree(
    store: Store, file: Path, before: Callable[..., None]
) -> None:
    for number in range(20):
        run(store, ThreadId(f"01J000000000000000000000{number:02d}"), 3)
    if before is _garbage:
        before(file)
    words = [sys.executable, "-c", _ASK, str(store.path), STEP, h("C151")]
    processes = [
        subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(4)
    ]

    for process in processes:
        assert process.stdin
        process.stdin.write(b"go\n")
        process.stdin.flush()
    results = [process.communicate(timeout=60) for process in processes]

    assert {out for out, _ in results} == {b"20 81 2\n"}
    assert {err for _, err in results} == {b""}


@pytest.mark.parametrize(
    ("folder", "counts"),
    [
        ("nodes", True),
        ("nodes/1/2/3", True),
        ("nodes/1/2/3/4", False),
        (f"threads/{ONE}/nodes/start", True),
        (f"threads/{ONE}/history", False),
        ("threads/other/nodes", False),
        ("workflows/review/nodes", True),
        ("workflows/Review/nodes", False),
        ("other/nodes", False),
    ],
)
def test_nodes_count_in_folders_of_nodes_alone(
    store: Store, folder: str, *, counts: bool
) -> None:
    entry = TreeEntry(oid=write_blob(store, b"{}\n"))
    tree = edit_tree(store, None, {f"{folder}/{name(OUTPUT)}": entry})

    found = list(find_added(store.raw, None, bytes.fromhex(tree)))

    assert bool(found) == counts


def test_a_folder_with_a_slash_in_its_name_is_not_entered(store: Store) -> None:
    entry = TreeEntry(oid=write_blob(store, b"{}\n"))
    inner = edit_tree(store, None, {f"nodes/{name(OUTPUT)}": entry})
    outer = f"40000 threads/{ONE}\0".encode() + bytes.fromhex(inner)
    tree = write_object(store, TREE, outer)

    assert list(find_added(store.raw, None, bytes.fromhex(tree))) == []
