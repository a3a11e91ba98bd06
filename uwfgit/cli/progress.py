"""A line on the terminal that says what takes so long, and for how long."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Final, Self

from uwfgit.cli.context import CommandContext

_DELAY: Final = 0.5
_PAUSE: Final = 0.2
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """Shows the newest phase once half a second has passed; leaves nothing behind.

    Only on a terminal, and not with ``-q``.
    """

    def __init__(self, context: CommandContext) -> None:
        options = context.options
        is_wanted = not options.quiet and sys.stderr is not None
        self._is_shown = is_wanted and sys.stderr.isatty()
        self._phase = ""
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> Self:
        if self._is_shown:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._is_shown:
            self._thread.join()

    def tell(self, phase: str) -> None:
        """Say what is being done from here on."""
        self._phase = phase

    def _show(self) -> None:
        if self._ended.wait(_DELAY):
            return
        while not self._ended.wait(_PAUSE):
            seconds = int(time.monotonic() - self._began)
            sys.stderr.write(f"{_CLEAR}{self._phase} … {seconds} s")
            sys.stderr.flush()
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()
