"""Files of local state that are the user's alone, whatever the umask is."""

from __future__ import annotations

import os
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Write a text file with mode 0600, in place of what stood there.

    Raises:
        OSError: It cannot be written.
    """
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor, for its mode
        stream.write(text)
