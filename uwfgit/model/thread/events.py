"""A thread's history: its events, read from commits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

from msgspec import Struct

from uwfgit.errors import CorruptError
from uwfgit.ids import Hash, Oid, ThreadId, is_hash, is_thread_id
from uwfgit.model.thread.event import EVENT_NAMES, TABLE, EventName
from uwfgit.model.thread.message import NONE, parse_trailers
from uwfgit.store.ancestry import iter_commits
from uwfgit.store.handle import Store
from uwfgit.store.objects import Commit


class Event(Struct, frozen=True, kw_only=True):
    """One commit of a thread, as its trailers tell it."""

    commit: Commit
    name: EventName
    thread: ThreadId
    node: Hash | None
    prev: Hash | None
    role: str | None
    status: str | None
    next: str | None


def read_event(commit: Commit) -> Event:
    """Read an event off a commit's trailers.

    Raises:
        CorruptError: The trailers are missing or malformed.
    """
    trailers = parse_trailers(commit.message)
    name = trailers.get("Uwf-Event", "")
    thread = trailers.get("Uwf-Thread", "")
    if name not in EVENT_NAMES or not is_thread_id(thread):
        raise CorruptError(f"commit {commit.oid} is not an event of a thread")
    following = trailers.get("Uwf-Next")
    return Event(
        commit=commit,
        name=cast("EventName", name),
        thread=ThreadId(thread),
        node=_hash(trailers, "Uwf-Node"),
        prev=_hash(trailers, "Uwf-Prev"),
        role=trailers.get("Uwf-Role"),
        status=_status(trailers.get("Uwf-Status")),
        next=None if following == NONE else following,
    )


def _hash(trailers: dict[str, str], key: str) -> Hash | None:
    value = trailers.get(key)
    return Hash(value) if value is not None and is_hash(value) else None


def _status(value: str | None) -> str | None:
    if value is None or value == NONE:
        return None
    if value.startswith('"'):
        try:
            decoded = json.loads(value)
        except ValueError:
            return value
        return decoded if isinstance(decoded, str) else value
    return value


def iter_events(store: Store, tip: Oid) -> Iterator[Event]:
    """Yield a thread's events, newest first, along first parents to genesis.

    Raises:
        CorruptError: A commit is missing or is no event.
    """
    for commit in iter_commits(store, tip):
        yield read_event(commit)


def find_cause(store: Store, tip: Oid) -> Event:
    """Find the event that left a thread in its state, its origin's for a fork.

    Raises:
        CorruptError: A commit is missing or is no event.
    """
    for event in iter_events(store, tip):
        if TABLE[event.name].settles:
            return event
    raise CorruptError(f"the thread at {tip} was never started")
