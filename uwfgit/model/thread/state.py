"""``thread.json``: the state of a thread after an event (pure)."""

from __future__ import annotations

import json
import re
from sys import intern
from typing import Annotated, Final, Literal, get_args

from msgspec import Meta, Struct, field, to_builtins
from msgspec.json import Decoder
from msgspec.structs import force_setattr

from uwfgit.constants import FORMAT_VERSION, SUSPEND_CHARS
from uwfgit.errors import (
    CorruptError,
    EarlierFormatError,
    FormatVersionError,
    InvalidError,
)
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.node import Payload
from uwfgit.model.thread.derive import NONE
from uwfgit.model.thread.step import Count, Usage
from uwfgit.store.canonical import decode_json, encode_json, normalise

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
        checked: Whether to make sure that they are exactly those of a state; there
            is no need where that was seen before.

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
