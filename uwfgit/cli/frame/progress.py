"""A line on the terminal that says what takes so long, and for how long."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Final, Self

from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.output import talk_over, talk_width

_DELAY: Final = 0.5
_PAUSE: Final = 0.2


class Progress:
    """Shows the newest phase once half a second has passed; leaves nothing behind.

    Only on a terminal, and not with ``-q``.
    """

    def __init__(self, context: CommandContext) -> None:
        self._width = talk_width(quiet=context.options.quiet)
        self._phase = ""
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> Self:
        if self._width is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._width is not None:
            self._thread.join()

    def tell(self, phase: str) -> None:
        """Say what is being done from here on."""
        self._phase = phase

    def _show(self) -> None:
        if self._width is None or self._ended.wait(_DELAY):
            return
        while not self._ended.wait(_PAUSE):
            seconds = int(time.monotonic() - self._began)
            talk_over(f"{self._phase} … {seconds} s", self._width)
        talk_over("", self._width)
