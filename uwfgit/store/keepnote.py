"""What stands in the ``.keep`` beside a pack until a ref names its objects.

git repacks no pack that has one. A process that is killed leaves it behind; the
note inside tells whose it was.
"""

from __future__ import annotations

import os
import re
import socket
import time
from pathlib import Path
from typing import Final

_NOTE: Final = re.compile(rb"uwf pid ([0-9]{1,10}) on ([^\n]{1,255})\n")
_STALE_SECONDS: Final = 3600
"""In a container this machine's processes look dead; nobody keeps one so long."""


def keep_note() -> bytes:
    """Give what this process writes into a ``.keep`` of its own."""
    return f"uwf pid {os.getpid()} on {socket.gethostname()}\n".encode()


def is_abandoned(keep: Path) -> bool:
    """Tell whether the process of this host that wrote a ``.keep`` is dead.

    Raises:
        OSError: The file cannot be read.
    """
    match = _NOTE.fullmatch(keep.read_bytes())
    return (
        match is not None
        and match[2] == socket.gethostname().encode()
        and time.time() - keep.stat().st_mtime > _STALE_SECONDS
        and not _is_alive(int(match[1]))
    )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
