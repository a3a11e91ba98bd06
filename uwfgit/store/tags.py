"""Tag objects, as the bytes they are."""

from __future__ import annotations

from typing import Final

from pygit2.enums import ObjectType

from uwfgit.errors import CorruptError
from uwfgit.ids import Oid
from uwfgit.store.repository import Store, git_errors

MAX_TAG_BYTES: Final = 64 * 1024


def read_tag(store: Store, oid: Oid) -> bytes:
    """Read a tag object.

    Raises:
        CorruptError: It is missing, too large, or no tag object.
    """
    with git_errors("read a tag"):
        kind, size = store.repo.odb.read_header(oid)
    if kind != ObjectType.TAG or size > MAX_TAG_BYTES:
        raise CorruptError(f"object {oid} is no tag of at most {MAX_TAG_BYTES} bytes")
    with git_errors("read a tag"):
        return bytes(store.repo.odb.read(oid)[1])
