"""How a thread stands: its state, its newest commit, and what remotes have of it.

The only place that reads and writes ``thread.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from sys import intern
from typing import Annotated, Final, Literal, get_args

from msgspec import Meta, Struct, field, to_builtins
from msgspec.json import Decoder
from msgspec.structs import force_setattr

from uwfgit.constants import FORMAT_VERSION, MAX_STATE_BYTES, SUSPEND_CHARS
from uwfgit.errors import (
    CorruptError,
    EarlierFormatError,
    FormatVersionError,
    InvalidError,
    NotFoundError,
)
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.node import Payload
from uwfgit.model.thread.derive import NONE
from uwfgit.model.thread.step import Count, Usage
from uwfgit.store.canonical import decode_json, encode_json, normalise
from uwfgit.store.handle import Store
from uwfgit.store.layout import STATE_FILE, TRASH_PREFIX, thread_folder, thread_ref
from uwfgit.store.objects import find_entry, read_blob, read_commit
from uwfgit.store.refs import BUNDLE, find_ref, find_tracked, is_ancestor

ThreadStatus = Literal["idle", "suspended", "end", "cancelled"]
"""What a thread's state can be as stored; ``running`` never is."""
STATUSES: Final = get_args(ThreadStatus)


class ForkedFrom(Payload, frozen=True, kw_only=True):
    """Where a fork left: the thread, the step's hash and its number there."""

    thread: ThreadId
    step: Hash
    number: int


class ThreadState(Payload, frozen=True, kw_only=True):
    """The state after an event, as ``thread.json`` has it; times in ms since 1970."""

    format: Annotated[int, Meta(ge=FORMAT_VERSION, le=FORMAT_VERSION)]
    thread: ThreadId = field(name="threadId")
    status: ThreadStatus
    workflow_name: str
    workflow_hash: Hash
    workflow_oid: Oid
    start: Hash
    head: Hash
    steps: Count
    current_role: str | None
    suspended_role: str | None
    suspend_message: str | None
    retry_at_ms: Count | None
    """When a limit is over that it waits for."""
    forked_from: ForkedFrom | None
    started_at_ms: Count
    updated_at_ms: Count
    completed_at_ms: Count | None
    usage: Usage | None
    started_by: str
    updated_by: str


class Tip(Struct, frozen=True, kw_only=True):
    """The newest commit of a thread's branch and the state it stores."""

    thread: ThreadId
    commit: Oid
    tree: Oid
    committed_at: int
    state: ThreadState


Shared = Literal["never", "behind", "yes"]


class Sharing(Struct, frozen=True, kw_only=True):
    """What remotes had of a thread at the last fetch, compared with ours.

    ``shared`` is that of the remote that has most: ``behind`` lacks something
    of ours. ``diverged`` names the remotes whose tip and ours do not
    fast-forward.
    """

    shared: Shared = "never"
    diverged: tuple[str, ...] = ()


NOT_SHARED: Final = Sharing()


_DECODER: Final = Decoder(ThreadState)
_SHARED: Final = (
    "workflow_name",
    "workflow_hash",
    "workflow_oid",
    "current_role",
    "started_by",
    "updated_by",
)
"""What ten thousand threads have in common is kept once."""


def encode_state(state: ThreadState) -> bytes:
    """Write the bytes of ``thread.json``."""
    return encode_json(normalise(to_builtins(state)))


def decode_state(data: bytes, *, checked: bool = True) -> ThreadState:
    """Read ``thread.json``.

    Args:
        data: Its bytes.
        checked: Whether they must be exactly those of a state: they must not where
            that was seen before.

    Raises:
        CorruptError: The bytes are not those of a state.
        FormatVersionError: It is of a newer format.
        EarlierFormatError: It was written before format 1 was fixed.
    """
    try:
        if checked:
            decode_json(data)
        state = _DECODER.decode(data)
    except CorruptError as exc:
        raise CorruptError(f"thread.json: {exc.message}") from exc
    except (ValueError, RecursionError) as exc:
        raise _refusal(data, exc) from exc
    for name in _SHARED:
        value = getattr(state, name)
        if value is not None:
            force_setattr(state, name, intern(value))
    return state


def _refusal(data: bytes, why: Exception) -> InvalidError:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as exc:
        return CorruptError(f"thread.json: {exc}")
    if isinstance(value, dict):
        version = value.get("format")
        if isinstance(version, int) and version > FORMAT_VERSION:
            known = str(FORMAT_VERSION)
            return FormatVersionError(
                "thread.json", found=str(version), supported=known
            )
        if set(ThreadState.__struct_encode_fields__) - value.keys() == {"retryAtMs"}:
            return EarlierFormatError("thread.json")
    return CorruptError(f"thread.json: {why}")


AGENT_EMAIL: Final = "agent@localhost"
_LABEL = re.compile(r"[^A-Za-z0-9._-]")


class StepOutcome(Struct, frozen=True, kw_only=True):
    """The state a step leaves a thread in."""

    status: ThreadStatus
    current_role: str | None = None
    suspended_role: str | None = None
    suspend_message: str | None = None
    next: str = NONE


def short_message(text: str) -> str:
    """Bound a text for ``thread.json``; the whole stands in the step's output."""
    if len(text) <= SUSPEND_CHARS:
        return text
    return text[: SUSPEND_CHARS - 1] + "…"


def agent_label(label: str) -> str:
    """Make a label that can stand in an author line."""
    return _LABEL.sub("-", label)[:64] or "agent"


def mend_hint(thread: ThreadId) -> str:
    """Return what whoever meets something corrupt of a thread can do."""
    return f"uwf verify {thread} says more; uwf doctor names what may fix it"


def load_tip(store: Store, thread: ThreadId) -> Tip:
    """Read a thread's newest commit and state.

    Raises:
        NotFoundError: There is no such branch.
        CorruptError: Something on the way is missing or malformed.
    """
    try:
        commit = find_ref(store, thread_ref(thread))
        if commit is None:
            removed = find_ref(store, TRASH_PREFIX + thread)
            hint = f"it was removed; bring it back: uwf thread restore {thread}"
            raise NotFoundError("thread", thread, hint=hint if removed else None)
        return read_tip(store, thread, commit)
    except CorruptError as exc:
        exc.hint = exc.hint or mend_hint(thread)
        raise


def read_tip(store: Store, thread: ThreadId, oid: Oid) -> Tip:
    """Read the state a commit of a thread stores.

    Raises:
        CorruptError: The commit or its ``thread.json`` is missing or malformed.
    """
    commit = read_commit(store, oid)
    entry = find_entry(store, commit.tree, f"{thread_folder(thread)}/{STATE_FILE}")
    if entry is None:
        raise CorruptError(f"commit {oid} has no {STATE_FILE} of thread {thread}")
    state = decode_state(read_blob(store, entry.oid, limit=MAX_STATE_BYTES))
    if state.thread != thread:
        raise CorruptError(f"{STATE_FILE} in {oid} is of thread {state.thread}")
    return Tip(
        thread=thread,
        commit=oid,
        tree=commit.tree,
        committed_at=commit.committer.time,
        state=state,
    )


def iter_lineage(store: Store, tip: Tip) -> Iterator[ThreadState]:
    """Yield the states of a thread and of those it was forked from, nearest first.

    Raises:
        CorruptError: One is missing or malformed, or they go round in a circle.
    """
    state, seen = tip.state, {tip.thread}
    yield state
    while state.forked_from is not None:
        origin = state.forked_from.thread
        if origin in seen:
            raise CorruptError(f"thread {origin} is said to be a fork of itself")
        seen.add(origin)
        path = f"{thread_folder(origin)}/{STATE_FILE}"
        entry = find_entry(store, tip.tree, path)
        if entry is None:
            raise CorruptError(f"'{path}' is missing, a thread was forked from it")
        state = decode_state(read_blob(store, entry.oid, limit=MAX_STATE_BYTES))
        if state.thread != origin:
            raise CorruptError(f"'{path}' is of thread {state.thread}")
        yield state


def compare_sharing(store: Store, tip: Oid, tracked: Mapping[str, Oid]) -> Sharing:
    """Compare our tip of a thread with those that remotes had."""
    shared: Shared = "never"
    diverged = []
    for remote, theirs in tracked.items():
        if is_ancestor(store, tip, theirs):
            has: Shared = "yes"
        else:
            has = "behind"
            if not is_ancestor(store, theirs, tip):
                diverged.append(remote)
        # A bundle's tip is kept only to be resolved; nobody has ours through it.
        if remote != BUNDLE and shared != "yes":
            shared = has
    return Sharing(shared=shared, diverged=tuple(diverged))


def find_sharing(store: Store, thread: ThreadId, tip: Oid) -> Sharing:
    """Compare one thread with what remotes had of it."""
    tracked = find_tracked(store, thread)
    return compare_sharing(store, tip, tracked) if tracked else NOT_SHARED
