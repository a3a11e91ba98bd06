"""What only a clock can tell, on a machine that others keep busy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Self, TypeVar

T = TypeVar("T")
_TRIES: Final = 20
_PAUSE: Final = 0.01


class _Meter:
    """Notes the longest time for which nothing of this process ran."""

    def __init__(self) -> None:
        self.worst = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        last = time.monotonic()
        while not self._over.wait(_PAUSE):
            now = time.monotonic()
            self.worst, last = max(self.worst, now - last), now
        self.worst = max(self.worst, time.monotonic() - last)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def steadily(act: Callable[[], T], *, within: float) -> T:
    """Return what something gave while the machine never stood still for so long.

    For what goes well only when it is in time. Of a try in which the machine itself
    was late nothing can be said, so it is made again.

    Args:
        act: What is tried; each time as if it were the first.
        within: By how many seconds the machine may be late.
    """
    for _ in range(_TRIES - 1):
        with _Meter() as meter:
            found = act()
        if meter.worst < within:
            return found
    return act()
