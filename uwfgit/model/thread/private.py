"""Threads that were started never to be shared."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from uwfgit.errors import UwfError
from uwfgit.ids import find_thread_id
from uwfgit.model.thread.record import open_record
from uwfgit.store.handle import Store

_WHY: Final = "it was started with --private: it is never shared"


def find_private(store: Store, refs: Iterable[str]) -> dict[str, str]:
    """Say why refs may not leave: they are of threads that are private.

    Whatever a ref is named by the thread for: its branch, its review, its memory.
    """
    found = {}
    for ref in refs:
        thread = find_thread_id(ref.rpartition("/")[2])
        # What is not here, or does not hold together, is for others to refuse.
        with suppress(UwfError):
            if thread and open_record(store, thread).start.private:
                found[ref] = _WHY
    return found
