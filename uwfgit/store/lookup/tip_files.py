"""What the lookup knows of a thread, read off the tree of its newest commit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from uwfgit.constants import MAX_BLOB_BYTES, MAX_STATE_BYTES
from uwfgit.errors import CorruptError
from uwfgit.ids import ThreadId, is_hash, is_thread_id
from uwfgit.store import layout
from uwfgit.store.layout import task_line
from uwfgit.store.lookup.fill import read_commit
from uwfgit.store.raw import BLOB, TREE_ENTRY, RawObjects

_MOST_ORIGINS: Final = 100
_FILE: Final = b"100644"
_FOLDER: Final = b"40000"


class TipFiles:
    """A thread's files at its tip; folders and states are read once."""

    def __init__(self, objects: RawObjects, tip: bytes, thread: ThreadId) -> None:
        self._objects = objects
        self._tip = tip
        self._thread = thread
        self._folders: dict[tuple[str, ...], bytes] = {}
        self._states: dict[ThreadId, str | None] = {}

    def state(self) -> str | None:
        """Return the text of ``thread.json``; ``None`` when it cannot be read."""
        return self._state(self._thread)

    def _state(self, thread: ThreadId) -> str | None:
        if thread not in self._states:
            try:
                data = self._read(thread, layout.STATE_FILE, MAX_STATE_BYTES)
                self._states[thread] = data.decode()
            except (CorruptError, UnicodeDecodeError):
                self._states[thread] = None
        return self._states[thread]

    def task(self) -> str | None:
        """Return the first line of the task; ``None`` when it cannot be read.

        A fork's stands in the folder of the thread it was forked from.
        """
        for thread in self._lineage():
            try:
                data = self._read(thread, layout.TASK_FILE, MAX_BLOB_BYTES)
            except CorruptError:
                continue
            return task_line(data)
        return None

    def parent(self) -> str | None:
        """Return the thread and the step that the StartNode names, in one text.

        Empty where it names none; ``None`` when it cannot be read.
        """
        for thread in self._lineage():
            try:
                return self._parent(thread)
            except (CorruptError, ValueError, LookupError, TypeError, RecursionError):
                continue
        return None

    def _parent(self, thread: ThreadId) -> str:
        start = json.loads(self._state(thread) or "{}")["start"]
        folder = self._folder(("threads", thread, *layout.START_NODES.split("/")))
        for mode, name, oid in TREE_ENTRY.findall(folder):
            if mode == _FILE and name.startswith(f"{start}.".encode()):
                data = self._objects.read(oid.hex(), BLOB, limit=MAX_BLOB_BYTES)
                payload = json.loads(data)
                return _parent_text(payload["parent"]) if "parent" in payload else ""
        raise CorruptError(f"thread {thread} has no start")

    def _lineage(self) -> Iterator[ThreadId]:
        """Yield the thread and those it was forked from, nearest first."""
        name: str | None = self._thread
        for _ in range(_MOST_ORIGINS):
            if name is None or not is_thread_id(name):
                return
            yield ThreadId(name)
            name = _find_origin(self._state(ThreadId(name)))

    def _read(self, thread: ThreadId, name: str, limit: int) -> bytes:
        oid = _find_entry(self._folder(("threads", thread)), name, _FILE)
        return self._objects.read(oid.hex(), BLOB, limit=limit)

    def _folder(self, path: tuple[str, ...]) -> bytes:
        """Return the raw bytes of the tree at a path."""
        if path not in self._folders:
            if path:
                oid = _find_entry(self._folder(path[:-1]), path[-1], _FOLDER)
            else:
                oid = read_commit(self._objects, self._tip).tree
            self._folders[path] = self._objects.read_tree(oid.hex())
        return self._folders[path]


def _parent_text(parent: Mapping[str, str]) -> str:
    thread, step = parent["thread"], parent["step"]
    if not is_thread_id(thread) or not is_hash(step):
        raise CorruptError("the parent is not a thread and a step")
    return f"{thread} {step}"


def _find_origin(state: str | None) -> str | None:
    try:
        origin = json.loads(state or "{}").get("forkedFrom") or {}
        return origin.get("thread")
    except (ValueError, AttributeError, RecursionError):
        return None


def _find_entry(tree: bytes, name: str, mode: bytes) -> bytes:
    wanted = name.encode()
    for found_mode, found, oid in TREE_ENTRY.findall(tree):
        if found == wanted and found_mode == mode:
            return bytes(oid)
    raise CorruptError(f"a tree has no {name}")
