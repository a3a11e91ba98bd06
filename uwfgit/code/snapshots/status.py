"""What git says of a work tree against an index (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

ARGUMENTS: Final = (
    "status",
    "--porcelain=v2",
    "-z",
    "--untracked-files=all",
    "--ignored=no",
    "--no-renames",
    "--no-ahead-behind",
    "--ignore-submodules=dirty",
)
"""What is run to be parsed here; a work tree that is as recorded gives nothing."""

_FIELDS: Final = {b"1": 8, b"2": 9, b"u": 10}
"""Fields that stand before the path, by kind of line."""


class Status(Struct, kw_only=True):
    """Paths below the top whose files are not what the index says.

    ``inner`` are other repositories; ``zero`` is the oid of nothing here.
    """

    changed: list[bytes] = field(default_factory=list)
    gone: list[bytes] = field(default_factory=list)
    untracked: list[bytes] = field(default_factory=list)
    inner: list[bytes] = field(default_factory=list)
    unmerged: list[bytes] = field(default_factory=list)
    zero: bytes = b"0" * 40

    def __bool__(self) -> bool:
        return bool(self.changed or self.gone or self.untracked or self.unmerged)


def parse_status(output: bytes) -> Status:
    """Read what ``git status`` with the arguments above wrote."""
    status = Status()
    for kind, fields, path in _iter_lines(output):
        if kind == b"?":
            (status.inner if path.endswith(b"/") else status.untracked).append(path)
        elif kind == b"u":
            status.unmerged.append(path)
        else:
            status.zero = b"0" * len(fields[7])
            mode = fields[1][1:2]
            if mode == b"D":
                status.gone.append(path)
            elif mode != b".":
                status.changed.append(path)
    return status


def _iter_lines(output: bytes) -> Iterator[tuple[bytes, list[bytes], bytes]]:
    parts = iter(output.split(b"\0"))
    for line in parts:
        if not line or line.startswith((b"#", b"!")):
            continue
        if line.startswith(b"?"):
            yield b"?", [], line[2:]
            continue
        *fields, path = line.split(b" ", _FIELDS[line[:1]])
        if fields[0] == b"2":
            # The path it was renamed from.
            next(parts, None)
        yield fields[0], fields, path
