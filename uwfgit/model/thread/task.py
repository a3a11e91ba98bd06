"""The task of a thread in one line, read from its tip's tree alone."""

from __future__ import annotations

from typing import Final

from uwfgit.errors import CorruptError
from uwfgit.ids import ThreadId
from uwfgit.model.thread.record import Tip
from uwfgit.model.thread.state import decode_state
from uwfgit.store.handle import Store
from uwfgit.store.layout import STATE_FILE, TASK_FILE, task_line, thread_folder
from uwfgit.store.objects import find_entry, read_blob

_MOST_ORIGINS: Final = 100


def find_task_line(store: Store, tip: Tip) -> str | None:
    """Return the first line of a thread's task; ``None`` when it cannot be read.

    A fork's stands in the folder of the thread it was forked from.
    """
    thread: ThreadId | None = tip.thread
    try:
        for _ in range(_MOST_ORIGINS):
            if thread is None:
                return None
            data = _read(store, tip, thread, TASK_FILE)
            if data is not None:
                return task_line(data)
            state = _read(store, tip, thread, STATE_FILE)
            origin = None if state is None else decode_state(state).forked_from
            thread = None if origin is None else origin.thread
    except CorruptError:
        return None
    return None


def _read(store: Store, tip: Tip, thread: ThreadId, name: str) -> bytes | None:
    entry = find_entry(store, tip.tree, f"{thread_folder(thread)}/{name}")
    return None if entry is None else read_blob(store, entry.oid)
