"""What a snapshot leaves out, and why: secrets, large files, other repositories."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.code.snapshots.status import Status
from uwfgit.code.worktree import Deadline, WorkTree, name_text
from uwfgit.errors import StoreError, name_some

IGNORE_FILE: Final = ".uwfignore"
_MIB: Final = 1024 * 1024
_SECRET_NAME = re.compile(
    rb"\.env(?:rc|\..*)?|.*\.(?:pem|p12|pfx|jks|keystore|tfstate(?:\.backup)?)|id_[^.]*",
    re.IGNORECASE,
)
_SAMPLE = re.compile(rb".*\.(?:example|sample|template|dist|pub)", re.IGNORECASE)

IsSecret = Callable[[str, bytes], bool]
"""Tells whether the scan would stop a file, by its path and content."""


class Bounds(Struct, frozen=True, kw_only=True):
    """How much one snapshot may cost."""

    seconds: float = 10.0
    file_bytes: int = 20 * _MIB
    total_bytes: int = 256 * _MIB


class LeftOut(Struct, frozen=True, kw_only=True):
    """A path the snapshot does not hold as it is on disk."""

    path: bytes
    why: str


def leave_out(
    tree: WorkTree,
    status: Status,
    *,
    bounds: Bounds,
    is_secret: IsSecret,
    known: Callable[[], Mapping[bytes, str]],
    index: Path,
    deadline: Deadline,
) -> tuple[LeftOut, ...]:
    """Take out of a status what a snapshot does not hold.

    Args:
        tree: The work tree.
        status: What changed; paths that are left out are gone from it afterwards.
        bounds: How much may go in.
        is_secret: What the scan says of an untracked file.
        known: Gives the blobs of the last snapshot by path: they have passed.
        index: The copy of the index.
        deadline: When to give up.

    Raises:
        StoreError: There is more new in the work tree than may go in.
    """
    out = [LeftOut(path=path, why="another repository") for path in status.inner]
    ignored = _list_ignored(tree, index, deadline)
    looked = _Look(tree=tree, bounds=bounds, is_secret=is_secret, known=known)
    for paths, is_new in (
        (status.unmerged, False),
        (status.changed, False),
        (status.untracked, True),
    ):
        kept = []
        for path in paths:
            deadline.left()
            why = IGNORE_FILE if path in ignored else looked.at(path, is_new=is_new)
            if why is None:
                kept.append(path)
            else:
                out.append(LeftOut(path=path, why=why))
        paths[:] = kept
    out += [LeftOut(path=p, why=IGNORE_FILE) for p in status.gone if p in ignored]
    status.gone[:] = [path for path in status.gone if path not in ignored]
    return tuple(out)


class _Look(Struct, kw_only=True):
    """The look at each file; counts how much there is in all."""

    tree: WorkTree
    bounds: Bounds
    is_secret: IsSecret
    known: Callable[[], Mapping[bytes, str]]
    total: int = 0

    def at(self, path: bytes, *, is_new: bool) -> str | None:
        """Say why a file is left out; ``None`` when it is not."""
        place = os.path.join(os.fsencode(self.tree.root), path)  # noqa: PTH118 - bytes
        try:
            info = os.lstat(place)
        except OSError:
            # It went away since; git will see that too.
            return None
        if not stat.S_ISREG(info.st_mode):
            return None
        if info.st_size > self.bounds.file_bytes:
            return f"larger than {self.bounds.file_bytes // _MIB} MiB"
        if is_new and is_secret_name(path):
            return "its name is that of a secret"
        return self._weigh(path, place, info.st_size, is_new=is_new)

    def _weigh(
        self, path: bytes, place: bytes, size: int, *, is_new: bool
    ) -> str | None:
        if is_new:
            try:
                with open(place, "rb") as file:  # noqa: PTH123 - bytes
                    data = file.read(self.bounds.file_bytes)
            except OSError as exc:
                return f"cannot be read: {exc.strerror}"
            if self.known().get(path) == _blob_oid(data, self.known().get(path)):
                return None
            if self.is_secret(name_text(path), data):
                return "a secret stands in it"
        self.total += size
        if self.total > self.bounds.total_bytes:
            most = self.bounds.total_bytes // _MIB
            raise StoreError(
                f"more than {most} MiB are new in the work tree",
                hint=f"name what is not needed in .gitignore or {IGNORE_FILE}",
            )
        return None


def is_secret_name(path: bytes) -> bool:
    """Whether a file is called like one that holds secrets."""
    name = path.rpartition(b"/")[2]
    return bool(_SECRET_NAME.fullmatch(name)) and not _SAMPLE.fullmatch(name)


def _blob_oid(data: bytes, like: str | None) -> str:
    """Return the oid git gives a file's bytes, in the format of another."""
    head = b"blob %d\0" % len(data)
    make = hashlib.sha256 if like is not None and len(like) > 40 else hashlib.sha1  # noqa: PLR2004 - sha1's
    return make(head + data).hexdigest()


def _list_ignored(tree: WorkTree, index: Path, deadline: Deadline) -> frozenset[bytes]:
    """List the paths that the work tree's own ``.uwfignore`` names."""
    file = tree.root / IGNORE_FILE
    if file.is_symlink() or not file.is_file():
        return frozenset()
    words = ["ls-files", "-z", "-i", f"--exclude-from={IGNORE_FILE}"]
    found: set[bytes] = set()
    for which in ("-c", "-o"):
        done = tree.run([*words, which], index=index, literal=False, deadline=deadline)
        found.update(done.stdout.split(b"\0"))
    return frozenset(found - {b""})


def warn_left_out(left: Iterable[LeftOut]) -> Iterator[str]:
    """Write a warning for each reason, with the paths it holds for."""
    reasons: dict[str, list[str]] = {}
    for each in left:
        reasons.setdefault(each.why, []).append(name_text(each.path))
    for why, paths in reasons.items():
        names = name_some([path[:200] for path in paths])
        yield f"not in the code snapshot ({why}): {names}"
