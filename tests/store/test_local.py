from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.builders import settle
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.local import AgentSession, Agreed, Local
from uwfgit.store.objects import EMPTY_TREE, Person, write_commit

THREAD = ThreadId("01J00000000000000000000001")
OTHER = ThreadId("01J00000000000000000000002")
OID = Oid("1" * 40)


@pytest.fixture
def local(store: Store) -> Iterator[Local]:
    with Local(store) as opened:
        yield opened


@pytest.fixture
def file(store: Store) -> Path:
    return store.state_dir / "local.sqlite3"


def reopened(store: Store, ask: Callable[[Local], object]) -> object:
    with Local(store) as local:
        return ask(local)


def test_reading_makes_no_file(local: Local, file: Path) -> None:
    assert local.last() is None
    assert local.puts_of("step") == ()
    assert not local.is_made_here(OID)
    assert local.find_session(THREAD, "planner", "claude") is None
    assert local.find_folder(THREAD) is None
    assert local.find_trusted(THREAD) is None
    assert not local.is_known_foreign(THREAD)

    assert not file.exists()


def test_the_file_and_its_folder_are_private(store: Store, local: Local) -> None:
    shutil.rmtree(store.state_dir)

    local.set_last(THREAD)

    files = {
        path.name: path.stat().st_mode & 0o777 for path in store.state_dir.iterdir()
    }
    assert set(files.values()) == {0o600}
    assert "local.sqlite3" in files
    assert store.state_dir.stat().st_mode & 0o777 == 0o700


def test_commits_made_here_are_known_again(store: Store, local: Local) -> None:
    assert local.record_commit(OID)
    assert local.record_commit(OID)

    assert reopened(store, lambda local: local.is_made_here(OID)) is True
    assert not local.is_made_here(Oid("2" * 40))


def test_a_verified_commit_is_not_one_made_here(store: Store, local: Local) -> None:
    local.record_verified(OID)

    assert reopened(store, lambda local: local.is_verified_here(OID)) is True
    assert not local.is_made_here(OID)


def test_nodes_put_by_another_process_are_seen(store: Store, local: Local) -> None:
    one, two = Hash("A000000000001"), Hash("A000000000002")
    assert local.puts_of("step-1") == ()
    with Local(store) as other:
        assert other.record_put("step-1", [two, one])
        assert other.record_put("step-1", [one])
        assert other.record_put("step-2", [two])

    assert local.puts_of("step-1") == (one, two)


def test_the_last_thread_is_the_last_one_set(store: Store, local: Local) -> None:
    local.set_last(OTHER)
    local.set_last(THREAD)

    assert reopened(store, Local.last) == THREAD


def test_a_session_belongs_to_thread_role_and_agent(local: Local) -> None:
    third = AgentSession(id="s-3", told=Hash("0123456789ABC"), size=7, digest="d")
    local.set_session(THREAD, "planner", "claude", AgentSession(id="s-1", total="{}"))
    local.set_session(THREAD, "planner", "codex", AgentSession(id="s-2"))
    local.set_session(THREAD, "planner", "claude", third)

    assert local.find_session(THREAD, "planner", "claude") == third
    assert local.find_session(THREAD, "planner", "codex") == AgentSession(id="s-2")
    assert local.find_session(THREAD, "coder", "claude") is None
    assert local.find_session(OTHER, "planner", "claude") is None


def test_a_session_can_be_forgotten(local: Local) -> None:
    local.set_session(THREAD, "planner", "claude", AgentSession(id="s-1"))

    local.set_session(THREAD, "planner", "claude", None)

    assert local.find_session(THREAD, "planner", "claude") is None


def test_folder_and_trust_of_a_thread_do_not_disturb_each_other(local: Local) -> None:
    local.set_folder(THREAD, Path("/work/a"))
    local.set_trusted(THREAD, Agreed(workflow=OID, tip=OID))
    local.set_folder(THREAD, Path("/work/b"))

    assert local.find_folder(THREAD) == Path("/work/b")
    assert local.find_trusted(THREAD) == Agreed(workflow=OID, tip=OID)


def test_trust_can_be_taken_back(local: Local) -> None:
    local.set_trusted(THREAD, Agreed(workflow=OID, tip=OID))

    local.set_trusted(THREAD, None)

    assert local.find_trusted(THREAD) is None


def _commit(store: Store, parent: Oid) -> Oid:
    ada = Person(name="Ada", email="ada@example.com", time=0)
    return write_commit(
        store,
        tree=EMPTY_TREE,
        parents=(parent,),
        author=ada,
        committer=ada,
        message="",
    )


def test_a_thread_is_foreign_from_the_first_commit_of_others_on(
    store: Store, local: Local
) -> None:
    own = _commit(store, GENESIS_OID)
    theirs = _commit(store, own)
    later = _commit(store, theirs)
    local.record_commit(own)
    assert not local.is_foreign(THREAD, own)
    assert not local.is_known_foreign(THREAD)

    assert local.is_foreign(THREAD, theirs)
    local.record_commit(theirs)
    local.record_commit(later)

    assert local.is_foreign(THREAD, later)
    assert local.is_known_foreign(THREAD)


def test_of_a_thread_made_here_only_what_is_new_is_looked_at(
    store: Store, local: Local, file: Path
) -> None:
    own = _commit(store, GENESIS_OID)
    later = _commit(store, own)
    local.record_commit(own)
    assert not local.is_foreign(THREAD, own)
    local.close()
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("DELETE FROM made")

    assert not local.is_foreign(THREAD, own)
    local.record_commit(later)
    assert not local.is_foreign(THREAD, later)


def _garbage(file: Path) -> None:
    noise = random.Random(7)  # noqa: S311 - the same in every run
    file.write_bytes(noise.randbytes(10_000))


def _truncated(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _folder(file: Path) -> None:
    file.unlink()
    file.joinpath("with").mkdir(parents=True)


@pytest.mark.parametrize("damage", [_garbage, _truncated, _folder])
def test_a_damaged_file_is_empty_and_put_aside_by_the_next_write(
    store: Store, local: Local, file: Path, damage: Callable[[Path], None]
) -> None:
    local.record_commit(OID)
    local.close()
    settle(file)
    damage(file)

    assert not local.is_made_here(OID)
    assert local.record_commit(OID)

    assert reopened(store, lambda local: local.is_made_here(OID)) is True
    assert file.with_name("local.sqlite3.damaged").exists()


def _no_folder(file: Path) -> None:
    shutil.rmtree(file.parent)
    file.parent.write_bytes(b"in the way")


def _newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("CREATE TABLE made (oid BLOB, by TEXT)")
        db.execute("PRAGMA user_version = 2")
    db.close()


@pytest.mark.parametrize("obstacle", [_no_folder, _newer])
def test_a_file_that_cannot_be_used_is_empty_and_says_so_on_writing(
    local: Local, file: Path, obstacle: Callable[[Path], None]
) -> None:
    obstacle(file)

    assert not local.record_commit(OID)
    assert not local.is_made_here(OID)
    assert local.puts_of("step") == ()


def test_a_newer_programs_file_is_left_as_it_is(local: Local, file: Path) -> None:
    _newer(file)

    local.set_last(THREAD)
    local.close()

    with closing(sqlite3.connect(file)) as db, db:
        tables = db.execute("SELECT name FROM sqlite_schema").fetchall()
    db.close()
    assert tables == [("made",)]


_PUT = """
import sys, pygit2
from pathlib import Path
from uwfgit.store.local import Local
from uwfgit.store.handle import make_store
path = Path(sys.argv[1])
store = make_store(path, pygit2.Repository(str(path)))
sys.stdin.readline()
with Local(store) as local:
    for number in range(20):
        assert local.record_put("step", [f"A{sys.argv[2]}{number:011d}"])
"""


@pytest.mark.slow
def test_processes_that_write_at_once_lose_nothing(store: Store, local: Local) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _PUT, str(store.path), str(number)],
            stdin=subprocess.PIPE,
        )
        for number in range(4)
    ]
    for process in processes:
        assert process.stdin
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=60)

    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    assert len(local.puts_of("step")) == 80


def test_a_thread_is_not_foreign_for_good_because_the_disk_was_full(
    store: Store, local: Local, file: Path, tmp_path: Path
) -> None:
    assert local.record_commit(OID)
    moved = replace(store, state_dir=tmp_path / "killed")
    killed = moved.state_dir / file.name
    killed.parent.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{file}{suffix}", f"{killed}{suffix}")
    in_the_way = Path(f"{killed}-shm")
    in_the_way.symlink_to("nowhere/at-all")

    with Local(moved) as cramped:
        assert not cramped.is_made_here(OID)
        in_the_way.unlink()
        assert not cramped.set_foreign(THREAD)

    with Local(moved) as later:
        assert later.is_made_here(OID)
        assert not later.is_known_foreign(THREAD)


def test_one_that_is_dropped_unclosed_closes_its_file(
    store: Store,
) -> None:
    local = Local(store)
    local.set_last(THREAD)
    db = local._db
    assert db is not None

    del local

    with pytest.raises(sqlite3.ProgrammingError):
        db.execute("SELECT 1")
