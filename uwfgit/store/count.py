"""How many objects a store holds, and in what form; read off its files."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MANY_LOOSE: Final = 20_000
"""From here on packing them is worth a word."""

_FOLDERS: Final = 256
_SAMPLE: Final = "17"
"""The folder that git's own estimate looks into."""
_INDEX_HEAD: Final = b"\xfftOc\x00\x00\x00\x02"
_FANOUT: Final = 256 * 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCount:
    """Objects of a store and the bytes of their files.

    An object that stands in two packs counts twice, as it takes room twice.
    """

    loose: int
    packed: int
    packs: int
    cruft_packs: int
    size: int

    @property
    def objects(self) -> int:
        """All of them."""
        return self.loose + self.packed


def count_objects(store: Path) -> ObjectCount:
    """Count the objects of the store at a path; an unreadable pack holds none."""
    loose = list(_iter_loose(store / "objects"))
    files = list(_scan(store / "objects" / "pack"))
    packs = [Path(file.path) for file in files if file.name.endswith(".pack")]
    return ObjectCount(
        loose=len(loose),
        packed=sum(_read_count(path.with_suffix(".idx")) for path in packs),
        packs=len(packs),
        cruft_packs=sum(path.with_suffix(".mtimes").exists() for path in packs),
        size=sum(map(_size, (*loose, *files))),
    )


def estimate_loose(store: Path) -> int:
    """Guess the number of loose objects by one of their folders."""
    return sum(1 for _ in _scan(store / "objects" / _SAMPLE)) * _FOLDERS


def _iter_loose(objects: Path) -> Iterator[os.DirEntry[str]]:
    for number in range(_FOLDERS):
        yield from _scan(objects / f"{number:02x}")


def _scan(folder: Path) -> Iterator[os.DirEntry[str]]:
    # A folder may vanish, and its files, while git packs them.
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def _read_count(index: Path) -> int:
    try:
        with index.open("rb") as file:
            head = file.read(len(_INDEX_HEAD) + _FANOUT)
    except OSError:
        return 0
    if len(head) != len(_INDEX_HEAD) + _FANOUT or not head.startswith(_INDEX_HEAD):
        return 0
    return int(struct.unpack(">I", head[-4:])[0])
