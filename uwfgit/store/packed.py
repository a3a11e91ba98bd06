"""Which of many oids a store has, asked at once; reads git's own files.

libgit2 looks through the pack folder again for each oid it does not find; for
a batch of new objects that costs more than writing them.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

_HEAD: Final = b"\xfftOc\x00\x00\x00\x02"
_NAMES: Final = 8 + 256 * 4
_SIZE: Final = 20


def find_known(objects: Path, oids: Collection[bytes]) -> set[bytes]:
    """Give those of ``oids`` that stand below the ``objects`` folder.

    An object of an alternate does not count, nor one of a cruft pack: git
    prunes that however often libgit2 "writes" it. A pack that cannot be read
    has nothing.
    """
    known = set(_find_loose(objects, oids))
    for index in _list_indexes(objects / "pack"):
        known.update(_find_packed(index, [oid for oid in oids if oid not in known]))
    return known


def _find_loose(objects: Path, oids: Collection[bytes]) -> Iterator[bytes]:
    folders = defaultdict(list)
    for oid in oids:
        name = oid.hex()
        folders[name[:2]].append((name[2:], oid))
    for folder, wanted in folders.items():
        try:
            there = set(os.listdir(objects / folder))  # noqa: PTH208 - names alone; Path objects for each are slow
        except OSError:
            continue
        yield from (oid for name, oid in wanted if name in there)


def _list_indexes(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - as above
    except OSError:
        return
    for name in names:
        path = folder / name
        if path.suffix == ".pack" and not path.with_suffix(".mtimes").exists():
            yield path.with_suffix(".idx")


def _find_packed(index: Path, oids: Collection[bytes]) -> Iterator[bytes]:
    try:
        with index.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return
    with data:
        if len(data) < _NAMES or data[:8] != _HEAD:
            return
        starts = (0, *struct.unpack(">256I", data[8:_NAMES]))
        for oid in oids:
            first, last = starts[oid[0]], starts[oid[0] + 1]
            if _stands_between(data, oid, first, last):
                yield oid


def _stands_between(data: mmap.mmap, oid: bytes, first: int, last: int) -> bool:
    start, end = _NAMES + first * _SIZE, _NAMES + last * _SIZE
    while (found := data.find(oid, start, end)) >= 0:
        if (found - _NAMES) % _SIZE == 0:
            return True
        start = found + 1
    return False
