"""One session as recorded: ``refs/uwf/memory/<ULID>``, one commit a run.

It stands beside the thread, never in it: it holds all that the agent read, and
what was shared cannot be taken back. A thread is whole without it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from uwfgit.constants import FORMAT_VERSION
from uwfgit.errors import CorruptError, InvalidError, NotFoundError, SizeError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.commit import NewCommit, commit_batch, committer
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.memory.parts import PART_BYTES, cut_parts
from uwfgit.model.thread.derive import format_message
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import memory_ref
from uwfgit.store.locks.holding import write_whole
from uwfgit.store.objects import (
    TREE_MODE,
    Commit,
    Person,
    TreeEntry,
    list_tree,
    read_blob,
    read_commit,
    write_blob,
)
from uwfgit.store.pack import Batch
from uwfgit.store.refs import find_ref, move_ref

MAX_SESSION_BYTES: Final = 64 * 1024 * 1024
MAX_FILES: Final = 500
SESSION_FILE: Final = "session.json"
NAME: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,127}", re.ASCII)
FOLDER: Final = re.compile(
    r"(?P<run>[1-9][0-9]{0,3})-(?P<role>[A-Za-z][A-Za-z0-9_-]{0,63})", re.ASCII
)
_NUMBER: Final = re.compile(r"[0-9]{5}", re.ASCII)
_FACTS_BYTES: Final = 256 * 1024
_DEPTH: Final = 3
_KEYS: Final[Mapping[str, type]] = {"kind": str, "agent": str, "id": str, "size": int}


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """An agent's session after a run.

    ``files`` has the content of each file by its name, the session's own first;
    ``total`` is what it has cost so far, as JSON, where the agent counts that.
    """

    number: int
    run: int
    role: str
    kind: str
    agent: str
    id: str
    files: Mapping[str, bytes] = field(repr=False)
    total: str | None = None

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(map(len, self.files.values()))


def is_file_name(name: str) -> bool:
    """Whether a file of a session may have this name: plain parts, no way out."""
    parts = name.split("/")
    return len(parts) <= _DEPTH and all(NAME.fullmatch(part) for part in parts)


def write_session(
    ledger: Ledger, thread: ThreadId, session: Session, *, author: Person
) -> Oid:
    """Add a run's session to a thread's memory and return the commit.

    Raises:
        SizeError, InvalidError: No reader would take it.
        RefConflictError, LockedError: Another writer; nothing changed.
        StoreError: It cannot be written.
    """
    if session.size > MAX_SESSION_BYTES:
        raise SizeError("the session", found=session.size, limit=MAX_SESSION_BYTES)
    is_named = NAME.fullmatch(session.id) and all(map(is_file_name, session.files))
    if not is_named or not 0 < len(session.files) <= MAX_FILES:
        raise InvalidError("the session or a file of it has a name that cannot be kept")
    return write_whole(ledger.store, lambda: _write(ledger, thread, session, author))


def _write(ledger: Ledger, thread: ThreadId, session: Session, author: Person) -> Oid:
    store, ref = ledger.store, memory_ref(thread)
    old = find_ref(store, ref)
    base = f"{session.number:05}/{session.run}-{session.role}"
    changes: dict[str, TreeEntry | None] = {
        f"{base}/{SESSION_FILE}": TreeEntry(oid=write_blob(store, _encode(session)))
    }
    for index, data in enumerate(session.files.values()):
        for place, part in enumerate(cut_parts(data)):
            path = f"{base}/{index:03}/{place:05}"
            changes[path] = TreeEntry(oid=write_blob(store, part))
    # Parts that are known stay where they are; the rest is small.
    batch = Batch(store=store)
    new = NewCommit(
        tree=batch.edit_tree(None, changes),
        parent=old or GENESIS_OID,
        author=author,
        person=committer(ledger),
        message=format_message(
            f"memory of {session.role}: step {session.number}, run {session.run}",
            "",
            [("Uwf-Format", str(FORMAT_VERSION)), ("Uwf-Memory", str(thread))],
        ),
        holds_reply=True,
    )
    reason = f"memory of {session.role}"
    return commit_batch(ledger, batch, new, ref=ref, old=old, reason=reason)


def _encode(session: Session) -> bytes:
    facts: dict[str, Any] = {
        "kind": session.kind,
        "agent": session.agent,
        "id": session.id,
        "names": list(session.files),
        "size": session.size,
    }
    if session.total is not None:
        facts["total"] = json.loads(session.total)
    return f"{json.dumps(facts, sort_keys=True, indent=2)}\n".encode()


def iter_memory(
    store: Store, tip: Oid, *, known: Oid | None = None
) -> Iterator[Commit]:
    """Yield the commits of a memory, newest first, of both sides of a merge.

    Args:
        store: Where they are.
        tip: The newest.
        known: A commit at which to turn back.

    Raises:
        CorruptError: One is missing.
    """
    waiting, seen = [tip], {GENESIS_OID, known}
    while waiting:
        oid = waiting.pop()
        if oid in seen:
            continue
        seen.add(oid)
        commit = read_commit(store, oid)
        waiting += reversed(commit.parents)
        yield commit


def read_session(store: Store, commit: Oid) -> Session:
    """Read the session a commit of a memory holds; everything in it is checked.

    Raises:
        CorruptError: It is not of that form, or larger than any may be.
    """
    number, match, run = _find_run(store, commit)
    entries = list_tree(store, run.oid)
    if SESSION_FILE not in entries:
        raise _corrupt(commit)
    facts = _read_facts(store, commit, entries.pop(SESSION_FILE))
    names = facts["names"]
    if sorted(entries) != [f"{index:03}" for index in range(len(names))]:
        raise _corrupt(commit)
    room = MAX_SESSION_BYTES
    files: dict[str, bytes] = {}
    for index, name in enumerate(names):
        files[name] = _read_file(store, commit, entries[f"{index:03}"], room)
        room -= len(files[name])
    total = facts.get("total")
    return Session(
        number=number,
        run=int(match["run"]),
        role=match["role"],
        kind=facts["kind"],
        agent=facts["agent"],
        id=facts["id"],
        files=files,
        total=None if total is None else json.dumps(total),
    )


def _find_run(store: Store, commit: Oid) -> tuple[int, re.Match[str], TreeEntry]:
    """Find which step's run a commit is of, and the folder of its session."""
    number, runs = _only(commit, list_tree(store, read_commit(store, commit).tree))
    folder, run = _only(commit, list_tree(store, runs.oid))
    match = FOLDER.fullmatch(folder)
    if match is None or _NUMBER.fullmatch(number) is None:
        raise _corrupt(commit)
    return int(number), match, run


def _only(commit: Oid, entries: Mapping[str, TreeEntry]) -> tuple[str, TreeEntry]:
    if len(entries) != 1:
        raise _corrupt(commit)
    name, entry = next(iter(entries.items()))
    if entry.mode != TREE_MODE:
        raise _corrupt(commit)
    return name, entry


def _read_facts(store: Store, commit: Oid, entry: TreeEntry) -> dict[str, Any]:
    try:
        facts = json.loads(read_blob(store, entry.oid, limit=_FACTS_BYTES))
    except (ValueError, RecursionError) as exc:
        raise _corrupt(commit) from exc
    if not isinstance(facts, dict) or not all(
        type(facts.get(key)) is kind for key, kind in _KEYS.items()
    ):
        raise _corrupt(commit)
    names = facts.get("names")
    if not isinstance(names, list) or not 0 < len(names) <= MAX_FILES:
        raise _corrupt(commit)
    if not all(isinstance(name, str) and is_file_name(name) for name in names):
        raise _corrupt(commit)
    if len(set(names)) != len(names) or not NAME.fullmatch(facts["id"]):
        raise _corrupt(commit)
    return facts


def _read_file(store: Store, commit: Oid, folder: TreeEntry, room: int) -> bytes:
    if folder.mode != TREE_MODE:
        raise _corrupt(commit)
    parts: list[bytes] = []
    for name, entry in sorted(list_tree(store, folder.oid).items()):
        if entry.mode == TREE_MODE or not _NUMBER.fullmatch(name):
            raise _corrupt(commit)
        parts.append(read_blob(store, entry.oid, limit=min(PART_BYTES, room)))
        room -= len(parts[-1])
    return b"".join(parts)


def _corrupt(commit: Oid) -> CorruptError:
    return CorruptError(f"commit {commit} is not a session of an agent")


def forget_memory(ledger: Ledger, thread: ThreadId, *, at: int | None = None) -> int:
    """Drop what agents remember of a thread; what they keep themselves stays.

    Args:
        ledger: Where.
        thread: Whose memory.
        at: Only that of the runs of this step and of later ones.

    Returns:
        How many runs were forgotten.

    Raises:
        NotFoundError: There is none.
        RefConflictError: Another writer; nothing changed.
    """
    ref = memory_ref(thread)
    old = find_ref(ledger.store, ref)
    if old is None:
        raise NotFoundError("memory of thread", str(thread))
    forgotten, left = _find_left(ledger.store, old, at)
    move_ref(ledger.store, ref, old=old, new=left, reason="forget")
    return forgotten


def _find_left(store: Store, tip: Oid, at: int | None) -> tuple[int, Oid | None]:
    """Find the newest commit that has only runs of earlier steps below it."""
    forgotten, left = 0, None
    for commit in iter_memory(store, tip):
        is_merge = len(commit.parents) > 1
        is_kept = (
            at is not None and not is_merge and _find_run(store, commit.oid)[0] < at
        )
        if is_kept:
            left = left or commit.oid
        else:
            forgotten, left = forgotten + (not is_merge), None
    return forgotten, left
