"""The task of a thread in one line, read from its tip's tree alone."""

from __future__ import annotations

from uwfgit.errors import CorruptError
from uwfgit.model.thread.tip import Tip, iter_lineage
from uwfgit.store.handle import Store
from uwfgit.store.layout import TASK_FILE, task_line, thread_folder
from uwfgit.store.objects import find_entry, read_blob


def find_task_line(store: Store, tip: Tip) -> str | None:
    """Return the first line of a thread's task; ``None`` when it cannot be read.

    A fork's stands in the folder of the thread it was forked from.
    """
    try:
        for state in iter_lineage(store, tip):
            path = f"{thread_folder(state.thread)}/{TASK_FILE}"
            entry = find_entry(store, tip.tree, path)
            if entry is not None:
                return task_line(read_blob(store, entry.oid))
    except CorruptError:
        return None
    return None
