"""Approvals that come from elsewhere: tags that count under their own name only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from uwfgit.errors import UwfError
from uwfgit.ids import Oid
from uwfgit.store.ancestry import is_ancestor
from uwfgit.store.repository import Store
from uwfgit.store.tags import read_tag

_TAG: Final = re.compile(
    rb"object ([0-9a-f]{40})\ntype commit\ntag ([^\n]+)\ntagger [^\n]+\n\n"
)


def check_approval(store: Store, ref: str, oid: Oid, tips: Iterable[Oid]) -> str | None:
    """Say what is wrong with an approval; ``None`` when nothing is.

    Who signed it is another question.

    Args:
        store: Where the tag and the thread's commits are.
        ref: The name it came under.
        oid: The tag object.
        tips: Verified tips of its thread.
    """
    try:
        match = _TAG.match(read_tag(store, oid))
    except UwfError as exc:
        return exc.message
    if match is None:
        return "it is no tag of a commit"
    if f"refs/tags/{match[2].decode('utf-8', 'replace')}" != ref:
        return "the tag is made under another name"
    commit = Oid(match[1].decode())
    if not any(is_ancestor(store, commit, tip) for tip in tips):
        return "it approves no commit of its thread that is here"
    return None
