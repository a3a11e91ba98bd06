"""Whether the supervisor holds a thread, and how that is told, everywhere."""

from __future__ import annotations

from typing import Final

from uwfgit.errors import CorruptError
from uwfgit.ids import Oid
from uwfgit.model.thread.event import SUPERVISOR, find_cause
from uwfgit.model.thread.state import ThreadState
from uwfgit.store.handle import Store

HELD: Final = "held by the supervisor"


def find_hold(store: Store, tip: Oid, state: ThreadState) -> str | None:
    """Return why the supervisor holds a thread; ``None`` where it does not.

    A role may give the same words as its reason: the event tells them apart.
    """
    said = state.suspend_message or ""
    if state.status != "suspended" or not said.startswith(SUPERVISOR):
        return None
    try:
        is_held = find_cause(store, tip).name == "hold"
    except CorruptError:
        # A damaged history is for others to tell.
        return None
    return said.removeprefix(SUPERVISOR) if is_held else None


def why_suspended(store: Store, tip: Oid, state: ThreadState) -> str | None:
    """Return what a suspended thread waits for, in words for people."""
    held = find_hold(store, tip, state)
    return state.suspend_message if held is None else f"{HELD}: {held}"
