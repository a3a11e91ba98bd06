"""What refs pointed at of late, as their logs say."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from uwfgit.ids import Oid

_LOG_BYTES: Final = 65_536
_LOGGED: Final = re.compile(rb"^[0-9a-f]{40} ([0-9a-f]{40}) ", re.MULTILINE)


def list_logged(path: Path, name: str) -> tuple[Oid, ...]:
    """List what a ref of a repository pointed at of late, the newest first.

    A log that cannot be read says nothing.
    """
    try:
        with (path / "logs" / name).open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _LOG_BYTES))
            found = _LOGGED.findall(file.read())
    except OSError:
        return ()
    return tuple(Oid(oid.decode()) for oid in reversed(found))
