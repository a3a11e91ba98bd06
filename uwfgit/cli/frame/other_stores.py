"""Ids that this store does not know, looked for in the user's other stores."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from uwfgit.errors import NotFoundError, UwfError
from uwfgit.ids import find_hash, find_thread_id
from uwfgit.shell import quote_word

if TYPE_CHECKING:
    from uwfgit.cli.frame.context import CommandContext

_KINDS = ("thread", "step", "node", "workflow")


def find_elsewhere(error: NotFoundError, context: CommandContext) -> str | None:
    """Say which other store of the user's knows what was not found here.

    ``None`` too when this store knows the thread or hash itself: then it lacks
    only a step of that number, or the node is of another kind or thread.
    """
    from uwfgit.store.safety.stores import list_stores

    first = error.name.partition(":")[0]
    if error.kind not in _KINDS or not (find_thread_id(first) or find_hash(first)):
        return None
    try:
        own = Path(os.path.realpath(context.store_choice.path))
        others = [path for path in list_stores(context.home) if path != own]
    except UwfError:
        return None
    if _knows(context, own, error.name):
        return None
    for path in others:
        if _knows(context, path, error.name):
            return f"it is in another store; add: --store {quote_word(str(path))}"
    return None


def _knows(context: CommandContext, path: Path, name: str) -> bool:
    from uwfgit.model.node import STEP_TYPE
    from uwfgit.store.layout import thread_ref
    from uwfgit.store.lookup.table import Lookup
    from uwfgit.store.refs import find_ref
    from uwfgit.store.repository import open_store

    first = name.partition(":")[0]
    thread, node = find_thread_id(first), find_hash(first)
    try:
        store = open_store(path, home=context.home)
        if thread is not None:
            return find_ref(store, thread_ref(thread)) is not None
        with ExitStack() as closing:
            lookup = closing.enter_context(
                Lookup(store, step_type=STEP_TYPE, read_only=True)
            )
            return node is not None and bool(lookup.find_nodes(node))
    except UwfError:
        # A store that cannot be read answers nothing; the first error stands.
        return False
