"""Approvals that come from elsewhere: tags that count under their own name only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from uwfgit.constants import MAX_MESSAGE_BYTES
from uwfgit.errors import CorruptError, UwfError
from uwfgit.ids import Oid
from uwfgit.model.events import read_event
from uwfgit.model.message import has_unsafe
from uwfgit.model.record import read_tip
from uwfgit.store.ancestry import is_ancestor
from uwfgit.store.objects import read_commit
from uwfgit.store.repository import Store
from uwfgit.store.tags import read_tag
from uwfgit.sync.shape import SIGNATURE_START, is_signature, parse_person

_TAG: Final = re.compile(
    rb"object ([0-9a-f]{40})\ntype commit\ntag ([^\n]+)\n(tagger [^\n]+)\n\n"
)


def check_approval(store: Store, ref: str, oid: Oid, tips: Iterable[Oid]) -> str | None:
    """Say what is wrong with an approval; ``None`` when nothing is.

    Its name must tell, by hash or by number, the step that its commit leaves
    the thread at. Who signed it is another question.

    Args:
        store: Where the tag and the thread's commits are.
        ref: The name it came under.
        oid: The tag object.
        tips: Verified tips of its thread.
    """
    try:
        return _check(store, ref, read_tag(store, oid), tips)
    except UwfError as exc:
        return exc.message


def _check(store: Store, ref: str, data: bytes, tips: Iterable[Oid]) -> str | None:
    match = _TAG.match(data)
    if match is None:
        return "it is no tag of a commit"
    if f"refs/tags/{match[2].decode('utf-8', 'replace')}" != ref:
        return "the tag is made under another name"
    parse_person(match[3], b"tagger")
    problem = check_text(data[match.end() :])
    if problem is not None:
        return problem
    commit = Oid(match[1].decode())
    if not any(is_ancestor(store, commit, tip) for tip in tips):
        return "it approves no commit of its thread that is here"
    if ref.rpartition("/")[2] not in _names_of(store, commit):
        return "it approves another step than its name says"
    return None


def check_text(data: bytes) -> str | None:
    """Say what is wrong with a tag's message, or with the signature after it."""
    start = SIGNATURE_START.search(data)
    text = data if start is None else data[: start.start()]
    if start is not None and not is_signature(data[start.start() :]):
        return "its signature is not one that git writes"
    if len(text) > MAX_MESSAGE_BYTES:
        return f"its message has {len(text)} bytes"
    try:
        message = text.decode()
    except UnicodeDecodeError:
        return "its message is not UTF-8"
    if has_unsafe(message.replace("\n", "").replace("\t", "")):
        return "its message holds control characters"
    return None


def _names_of(store: Store, commit: Oid) -> tuple[str, ...]:
    """Give the names of the step that a verified commit leaves its thread at."""
    try:
        thread = read_event(read_commit(store, commit)).thread
    except CorruptError:
        return ()
    # An inherited step stands in the thread that the approved one was forked from.
    state = read_tip(store, thread, commit).state
    return (state.head, str(state.steps)) if state.steps else ()
