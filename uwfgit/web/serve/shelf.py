"""A store that is served: read by one thread of its own, which nobody else's is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import TypeVar

from msgspec import Struct

from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.ledger.standing import find_running
from uwfgit.store.layout import THREAD_PREFIX
from uwfgit.store.refs import list_folders
from uwfgit.web.view.listing import Line, list_lines

T = TypeVar("T")
Mark = tuple[object, ...]


class _Known(Struct, kw_only=True):
    mark: Mark
    lines: tuple[Line, ...]


class Shelf:
    """One store's threads, and what is remembered of them between two questions.

    A ledger belongs to one thread: all questions are asked there, one by one.
    """

    def __init__(
        self,
        open_ledger: Callable[[], AbstractContextManager[Ledger]],
        *,
        name: str,
        root: str = "",
    ) -> None:
        self.name = name
        self.root = root
        self._open = open_ledger
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._ledger: Ledger | None = None
        self._closing = ExitStack()
        self._known: _Known | None = None

    async def ask(self, question: Callable[[Ledger], T]) -> T:
        """Ask something of the store, in its own thread.

        Raises:
            UwfError: What the question raises.
        """

        def answer() -> T:
            ledger = self._opened()
            ledger.lookup.refresh()
            return question(ledger)

        return await asyncio.get_running_loop().run_in_executor(self._worker, answer)

    def _opened(self) -> Ledger:
        if self._ledger is None:
            self._ledger = self._closing.enter_context(self._open())
            self._ledger.lookup.keep_little()
        return self._ledger

    async def lines(self) -> tuple[Line, ...]:
        """Return all threads as they stand now."""

        def read(ledger: Ledger) -> tuple[Line, ...]:
            mark = mark_of(ledger)
            if self._known is None or self._known.mark != mark:
                self._known = _Known(mark=mark, lines=list_lines(ledger))
            return self._known.lines

        return await self.ask(read)

    async def mark(self) -> Mark:
        """Return what changes whenever a thread does; costs next to nothing."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, lambda: mark_of(self._opened()))

    def close(self) -> None:
        """Close the store in its own thread, and let that end."""
        self._worker.submit(self._closing.close)
        self._worker.shutdown(wait=True)


def mark_of(ledger: Ledger) -> Mark:
    """Tell a store's state by the times of what changes with every event."""
    store = ledger.store
    places = (
        store.path / THREAD_PREFIX.rstrip("/"),
        store.path / "packed-refs",
        *list_folders(store),
    )
    times: list[object] = []
    for place in places:
        with suppress(OSError):
            times.append(place.stat().st_mtime_ns)
    return (*times, find_running(store))
