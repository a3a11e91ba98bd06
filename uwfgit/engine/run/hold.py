"""Holding a thread while it is run or changed, and being asked to pause."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uwfgit.errors import LockedError, StoreError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.store.handle import Store
from uwfgit.store.layout import TRASH_PREFIX, thread_ref
from uwfgit.store.locks.flock import Holder, Lock, lock, read_holder
from uwfgit.store.locks.holding import hold_refs
from uwfgit.store.log import log_event

if TYPE_CHECKING:
    # A start holds a thread, and needs nothing of what runs one.
    from uwfgit.engine.run.engine import Engine

_PAUSE: Final = 0.1
_PROMPT: Final = ".prompt.md"


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
                "waiting for another step to end "
                f"(concurrency.maxRunning is {engine.settings.max_running})"
            )
            while not _try_slots(engine, stack):
                time.sleep(_PAUSE)
        yield


def _try_slots(engine: Engine, stack: ExitStack) -> bool:
    for number in range(1, max(1, engine.settings.max_running) + 1):
        path = engine.ledger.store.locks / f"slot-{number}"
        try:
            stack.enter_context(lock(path, command=engine.command, wait=0))
        except LockedError:
            continue
        return True
    return False


def thread_lock_path(ledger: Ledger, thread: ThreadId) -> Path:
    """Return the file whose lock a running thread holds."""
    return ledger.store.locks / thread


@contextmanager
def hold_thread(ledger: Ledger, thread: ThreadId, *, command: str) -> Iterator[Lock]:
    """Hold a thread for the length of the block.

    Raises:
        LockedError: Someone else holds it; names the holder.
    """
    refs = [thread_ref(thread), TRASH_PREFIX + thread]
    what = f"thread {thread}"
    with hold_refs(ledger.store, thread, refs, command=command, what=what) as held:
        yield held


@contextmanager
def hold_to_run(engine: Engine, thread: ThreadId) -> Iterator[Lock]:
    """Hold a thread to run it; no agent of a run that was killed works beside.

    Raises:
        LockedError: Someone else holds it; names the holder.
    """
    with hold_thread(engine.ledger, thread, command=engine.command) as held:
        if ended := end_left(engine.ledger, thread, engine.end_run):
            engine.tell(say_left(ended))
        try:
            yield held
        finally:
            # Who asked this holder to pause asked no other.
            with suppress(OSError):
                _pause_file(engine.ledger, thread).unlink(missing_ok=True)


def prompt_path(store: Store, run: str) -> Path:
    """Name the file of a run's prompt, which stands as long as its agent is asked.

    One that a kill left says by its name whose processes may live.
    """
    return store.state_dir / "live" / f"{run.replace(':', '.')}{_PROMPT}"


def end_left(ledger: Ledger, thread: ThreadId, end_run: Callable[[str], int]) -> int:
    """End what killed runs of a thread left at work; count the processes.

    Nobody may run the thread: who calls holds it. Costs the listing of a folder that
    is empty, or nearly so.
    """
    ended = 0
    for path in (ledger.store.state_dir / "live").glob(f"{thread}.*{_PROMPT}"):
        run = path.name.removesuffix(_PROMPT).replace(".", ":")
        count = end_run(run)
        path.unlink(missing_ok=True)
        if count:
            log_event(ledger.store, "left-ended", run=run, processes=count)
            ended += count
    return ended


def say_left(count: int) -> str:
    """Tell that processes of a killed run were ended."""
    what = "1 process" if count == 1 else f"{count} processes"
    return f"ended {what} that a killed run had left at work"


def ask_to_pause(ledger: Ledger, thread: ThreadId, holder: Holder) -> None:
    """Ask the one who runs a thread to stop after the step at hand.

    Raises:
        StoreError: The store cannot be written.
    """
    path = _pause_file(ledger, thread)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(_name(holder), encoding="utf-8")
    except OSError as exc:
        raise StoreError(f"cannot write '{path}': {exc.strerror}") from exc


def is_pause_asked(ledger: Ledger, thread: ThreadId, holder: Holder | None) -> bool:
    """Whether a holder was asked to pause, and did not yet."""
    if holder is None:
        return False
    try:
        # Written for one holder by name: one that came too late stops no other.
        told = _pause_file(ledger, thread).read_text(encoding="utf-8")
    except OSError:
        return False
    return told == _name(holder)


def is_pause_pending(ledger: Ledger, thread: ThreadId) -> bool:
    """Whether whoever runs a thread now was asked to pause, and did not yet."""
    holder = read_holder(thread_lock_path(ledger, thread))
    return is_pause_asked(ledger, thread, holder)


def _pause_file(ledger: Ledger, thread: ThreadId) -> Path:
    return ledger.store.state_dir / "live" / f"{thread}.pause"


def _name(holder: Holder) -> str:
    return f"{holder.host} {holder.pid} {holder.since}"
