"""How many steps run at once in a store; the only place that counts them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from uwfgit.engine.run import Engine
from uwfgit.errors import LockedError
from uwfgit.store.holding import lock_path
from uwfgit.store.locks import lock

_PAUSE: Final = 0.1


@contextmanager
def hold_slot(engine: Engine) -> Iterator[None]:
    """Wait until fewer than ``concurrency.maxRunning`` steps run, and be one.

    Waits for as long as it takes: the steps before it end, by their limits at
    the latest. A run inside another step uses that one's slot, or a parent
    that waits for its child would hold it up for ever.
    """
    if engine.environment.get("UWF_STEP"):
        yield
        return
    with ExitStack() as stack:
        if not _try_slots(engine, stack):
            engine.on_wait(
                f"waiting: {engine.settings.max_running} steps run already "
                "(concurrency.maxRunning)"
            )
            while not _try_slots(engine, stack):
                time.sleep(_PAUSE)
        yield


def _try_slots(engine: Engine, stack: ExitStack) -> bool:
    for number in range(1, max(1, engine.settings.max_running) + 1):
        path = lock_path(engine.ledger.store, f"slot-{number}")
        try:
            stack.enter_context(lock(path, command=engine.command, wait=0))
        except LockedError:
            continue
        return True
    return False
