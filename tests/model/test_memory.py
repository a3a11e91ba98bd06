from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.builders import begin, edit_tree, git
from uwfgit.errors import CorruptError, InvalidError, NotFoundError, SizeError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.memory import memory as memories
from uwfgit.model.memory.memory import (
    Session,
    forget_memory,
    iter_memory,
    read_session,
    write_session,
)
from uwfgit.model.memory.parts import PART_BYTES, cut_parts
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.layout import memory_ref
from uwfgit.store.objects import Person, TreeEntry, write_blob, write_commit
from uwfgit.store.refs import find_ref

AUTHOR: Final = Person(name="cc", email="cc@localhost", time=1_700_000_000)
SESSION: Final = Session(
    number=3,
    run=2,
    role="developer",
    kind="claude-code",
    agent="cc",
    id="s-1",
    files={"session": b'{"a": 1}\n', "beside/tool-results/x.txt": b"", "y": b"z"},
    total='{"turns": 1}',
)


@pytest.fixture
def thread(ledger: Ledger, tmp_path: Path) -> ThreadId:
    return begin(ledger, tmp_path).thread


def write(ledger: Ledger, thread: ThreadId, session: Session = SESSION) -> Oid:
    return write_session(ledger, thread, session, author=AUTHOR)


def test_a_session_is_read_as_it_was_written(ledger: Ledger, thread: ThreadId) -> None:
    commit = write(ledger, thread)

    assert read_session(ledger.store, commit) == SESSION
    assert find_ref(ledger.store, memory_ref(thread)) == commit


def test_runs_are_a_chain_that_starts_at_genesis(
    ledger: Ledger, thread: ThreadId
) -> None:
    first = write(ledger, thread)
    second = write(ledger, thread, replace(SESSION, run=3))

    chain = [commit.oid for commit in iter_memory(ledger.store, second)]

    assert chain == [second, first]
    assert git(ledger.store, "rev-list", second).split()[-1] == GENESIS_OID
    git(ledger.store, "fsck", "--strict")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"x" * (2 * PART_BYTES + 1), id="one-long-line"),
        pytest.param(b"line\n" * PART_BYTES, id="lines"),
        pytest.param(b"a\n" + b"b" * (PART_BYTES + 5) + b"\nc", id="both"),
    ],
)
def test_parts_make_up_the_file_and_none_is_too_long(data: bytes) -> None:
    parts = list(cut_parts(data))

    assert b"".join(parts) == data
    assert all(len(part) <= PART_BYTES for part in parts)


def test_a_file_that_grows_keeps_its_parts_but_the_last() -> None:
    data = b"".join(b"%d\n" % number for number in range(600_000))

    before, after = list(cut_parts(data)), list(cut_parts(data + b"more\n" * 9))

    assert len(before) > 3
    assert after[: len(before) - 1] == before[:-1]


def test_forgetting_drops_the_ref(ledger: Ledger, thread: ThreadId) -> None:
    write(ledger, thread)

    forget_memory(ledger, thread)

    assert find_ref(ledger.store, memory_ref(thread)) is None
    with pytest.raises(NotFoundError):
        forget_memory(ledger, thread)


Facts = dict[str, Any]


def _hostile(change: Callable[[Facts], None]) -> Callable[[Ledger], Oid]:
    def make(ledger: Ledger) -> Oid:
        facts: Facts = {
            "kind": "claude-code",
            "agent": "cc",
            "id": "s-1",
            "names": ["session"],
            "size": 1,
        }
        change(facts)
        files = {
            "00003/2-developer/session.json": json.dumps(facts).encode(),
            "00003/2-developer/000/00000": b"x",
        }
        return _commit(ledger, files)

    return make


def _commit(ledger: Ledger, files: dict[str, bytes]) -> Oid:
    store = ledger.store
    changes = {
        path: TreeEntry(oid=write_blob(store, data)) for path, data in files.items()
    }
    return write_commit(
        store,
        tree=edit_tree(store, None, dict(changes)),
        parents=(GENESIS_OID,),
        author=AUTHOR,
        committer=AUTHOR,
        message="x\n",
    )


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(_hostile(lambda f: f.update(names=["../x"])), id="up"),
        pytest.param(_hostile(lambda f: f.update(names=["/etc/x"])), id="absolute"),
        pytest.param(_hostile(lambda f: f.update(names=["a/b/c/d"])), id="deep"),
        pytest.param(_hostile(lambda f: f.update(names=[".ssh"])), id="hidden"),
        pytest.param(_hostile(lambda f: f.update(names=["a\n"])), id="line-end"),
        pytest.param(_hostile(lambda f: f.update(names=["a", "a"])), id="twice"),
        pytest.param(_hostile(lambda f: f.update(names=[])), id="none"),
        pytest.param(_hostile(lambda f: f.update(names=[1])), id="number"),
        pytest.param(_hostile(lambda f: f.update(names="x")), id="text"),
        pytest.param(_hostile(lambda f: f.update(id="../../x")), id="id"),
        pytest.param(_hostile(lambda f: f.pop("kind")), id="no-kind"),
        pytest.param(lambda ledger: _commit(ledger, {"x": b"y"}), id="a-file"),
        pytest.param(
            lambda ledger: _commit(ledger, {"00001/1-a/session.json": b"[" * 9_999}),
            id="bad-json",
        ),
        pytest.param(
            lambda ledger: _commit(ledger, {"00001/0-a/session.json": b"{}"}),
            id="bad-run",
        ),
    ],
)
def test_a_session_of_another_form_is_corrupt(
    make: Callable[[Ledger], Oid], ledger: Ledger
) -> None:
    commit = make(ledger)

    with pytest.raises(CorruptError):
        read_session(ledger.store, commit)


def test_a_session_larger_than_any_may_be_is_corrupt(
    ledger: Ledger, thread: ThreadId, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = write(ledger, thread)
    monkeypatch.setattr(memories, "MAX_SESSION_BYTES", 5)

    with pytest.raises(CorruptError):
        read_session(ledger.store, commit)


@pytest.mark.parametrize(
    "session",
    [
        pytest.param(replace(SESSION, id="a b"), id="id"),
        pytest.param(replace(SESSION, files={"../x": b""}), id="file"),
        pytest.param(replace(SESSION, files={}), id="no-file"),
        pytest.param(
            replace(SESSION, files=dict.fromkeys(map(str, range(501)), b"")),
            id="too-many-files",
        ),
    ],
)
def test_a_session_that_nobody_could_read_is_not_written(
    ledger: Ledger, thread: ThreadId, session: Session
) -> None:
    with pytest.raises(InvalidError):
        write(ledger, thread, session)

    assert find_ref(ledger.store, memory_ref(thread)) is None


def test_a_session_that_masking_made_too_large_is_not_written(
    ledger: Ledger, thread: ThreadId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memories, "MAX_SESSION_BYTES", SESSION.size)
    write(ledger, thread)
    monkeypatch.setattr(memories, "MAX_SESSION_BYTES", SESSION.size - 1)

    with pytest.raises(SizeError):
        write(ledger, thread)
