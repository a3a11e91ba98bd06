"""What a thread came to: its newest summary, and its result."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from uwfgit.constants import MAX_SUMMARY_BYTES
from uwfgit.model.thread.event import iter_events
from uwfgit.model.thread.tip import Tip
from uwfgit.store.handle import Store
from uwfgit.store.layout import SUMMARY_FILE, thread_folder
from uwfgit.store.objects import find_entry, read_blob

_CODES: Final = {"end": 0, "cancelled": 130}


class Summary(Struct, frozen=True, kw_only=True):
    """A summary, and the model's or agent's label that wrote it."""

    text: str
    by: str


def find_summary(store: Store, tip: Tip) -> Summary | None:
    """Read a thread's newest summary; ``None`` when it has none.

    Raises:
        CorruptError: It cannot be read.
    """
    path = f"{thread_folder(tip.thread)}/{SUMMARY_FILE}"
    entry = find_entry(store, tip.tree, path)
    if entry is None:
        return None
    text = read_blob(store, entry.oid, limit=MAX_SUMMARY_BYTES).decode(errors="replace")
    for event in iter_events(store, tip.commit):
        if event.name == "summary":
            return Summary(text=text, by=event.commit.author.name)
    return None


def return_code(status: str) -> int | None:
    """Return the code of a thread that is over: 0, 130 cancelled; 1 stopped."""
    return None if status == "idle" else _CODES.get(status, 1)
