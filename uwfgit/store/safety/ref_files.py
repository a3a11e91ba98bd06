"""Files of refs that a crash, or a full disk, may have cut, and logs that tell more.

git refuses such a repository. libgit2 reads on, and threads would seem not to be
there.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from uwfgit.ids import Oid
from uwfgit.store.layout import HEAD_REF

_HEAD: Final = re.compile(rb"(?:ref: refs/[^\s]+|[0-9a-f]{40})\n?")
_HEAD_BYTES: Final = 4096
_LOG_BYTES: Final = 65_536
_LOGGED: Final = re.compile(rb"^[0-9a-f]{40} ([0-9a-f]{40}) ", re.MULTILINE)
_GOOD_LINES: Final = re.compile(
    rb"(?:#[^\n]*\n)*(?:[0-9a-f]{40} refs/[^\n]+\n(?:\^[0-9a-f]{40}\n)?)*"
)


class Damage(NamedTuple):
    """A damaged file of a repository, what is wrong with it, and its mend."""

    file: str
    message: str
    hint: str


def find_damage(path: Path) -> Iterator[Damage]:
    """Look at a repository's ``HEAD`` and ``packed-refs``.

    Raises:
        OSError: They cannot be read.
    """
    with (path / "HEAD").open("rb") as file:
        if not _HEAD.fullmatch(file.read(_HEAD_BYTES)):
            place = shlex.quote(str(path / "HEAD"))
            yield Damage("HEAD", "is damaged", f"echo 'ref: {HEAD_REF}' > {place}")
    try:
        data = (path / "packed-refs").read_bytes()
    except FileNotFoundError:
        return
    if not _is_whole(data):
        good = _GOOD_LINES.match(data)
        line = data.count(b"\n", 0, good.end() if good else 0) + 1
        yield Damage(
            "packed-refs",
            f"is damaged from line {line} on",
            "keep its good lines; a branch that is lost with the others stands last "
            f"in its file below {shlex.quote(str(path / 'logs'))}",
        )


def list_logged(path: Path, name: str) -> tuple[Oid, ...]:
    """List what a ref of a repository pointed at of late, the newest first.

    That is what its log says; one that cannot be read says nothing.
    """
    try:
        with (path / "logs" / name).open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _LOG_BYTES))
            found = _LOGGED.findall(file.read())
    except OSError:
        return ()
    return tuple(Oid(oid.decode()) for oid in reversed(found))


def _is_whole(data: bytes) -> bool:
    # Every command asks: counting ten thousand lines takes a tenth of the pattern.
    kinds = (data.count(b" refs/"), data.count(b"\n^"), data.startswith(b"#"))
    return sum(kinds) == data.count(b"\n") and (not data or data.endswith(b"\n"))
