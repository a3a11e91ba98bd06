"""How a background worker tells the command that started it that it has begun.

The one line it writes is either ``{"ready": true}`` or ``{"error": {…}}``; when
it says nothing, its exit code does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

VARIABLE: Final = "UWF_READY_FD"
"""Names the file descriptor to write to; of no meaning to a worker's children."""


@dataclass(slots=True)
class Ready:
    """The line to whoever started this process; says one thing, then is silent."""

    descriptor: int | None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Ready:
        """Find the line; without one, nothing is said."""
        text = environment.get(VARIABLE, "")
        return cls(int(text) if text.isascii() and text.isdigit() else None)

    def tell_begun(self) -> None:
        """Say that the thread is held and its first step is about to run."""
        self._tell({"ready": True})

    def tell_failure(self, error: Mapping[str, object]) -> None:
        """Say why nothing will run: code, message and hint."""
        self._tell({"error": error})

    def _tell(self, message: Mapping[str, object]) -> None:
        descriptor, self.descriptor = self.descriptor, None
        if descriptor is None:
            return
        with suppress(OSError):
            os.write(descriptor, json.dumps(message).encode() + b"\n")
        with suppress(OSError):
            os.close(descriptor)
