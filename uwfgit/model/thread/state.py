"""``thread.json``: the state of a thread after an event (pure)."""

from __future__ import annotations

import json
import re
from sys import intern
from typing import Any, Final, Literal, cast, get_args

from msgspec import Struct

from uwfgit.constants import FORMAT_VERSION, SUSPEND_CHARS
from uwfgit.errors import CorruptError, EarlierFormatError, FormatVersionError
from uwfgit.ids import Hash, Oid, ThreadId, is_hash, is_oid, is_thread_id
from uwfgit.model.thread.derive import NONE
from uwfgit.model.thread.usage import Usage, usage_from_payload, usage_payload
from uwfgit.store.canonical import Json, decode_json, encode_json, normalise

ThreadStatus = Literal["idle", "suspended", "end", "cancelled"]
"""What a thread's state can be as stored; ``running`` never is."""
STATUSES: Final = get_args(ThreadStatus)


class ForkedFrom(Struct, frozen=True, kw_only=True):
    """Where a fork left: the thread, the step's hash and its number there."""

    thread: ThreadId
    step: Hash
    number: int


class ThreadState(Struct, frozen=True, kw_only=True, gc=False):
    """The state after an event; times in ms since 1970."""

    thread: ThreadId
    status: ThreadStatus
    workflow_name: str
    workflow_hash: Hash
    workflow_oid: Oid
    start: Hash
    head: Hash
    steps: int
    current_role: str | None
    suspended_role: str | None = None
    suspend_message: str | None = None
    retry_at_ms: int | None = None
    """When a limit is over that it waits for."""
    forked_from: ForkedFrom | None = None
    started_at_ms: int
    updated_at_ms: int
    completed_at_ms: int | None = None
    usage: Usage | None = None
    started_by: str
    updated_by: str


def state_payload(state: ThreadState) -> dict[str, Json]:
    """Write a state as the JSON value of ``thread.json``."""
    origin = state.forked_from
    return {
        "format": FORMAT_VERSION,
        "threadId": state.thread,
        "status": state.status,
        "workflowName": state.workflow_name,
        "workflowHash": state.workflow_hash,
        "workflowOid": state.workflow_oid,
        "start": state.start,
        "head": state.head,
        "steps": state.steps,
        "currentRole": state.current_role,
        "suspendedRole": state.suspended_role,
        "suspendMessage": state.suspend_message,
        "retryAtMs": state.retry_at_ms,
        "forkedFrom": None
        if origin is None
        else {"thread": origin.thread, "step": origin.step, "number": origin.number},
        "startedAtMs": state.started_at_ms,
        "updatedAtMs": state.updated_at_ms,
        "completedAtMs": state.completed_at_ms,
        "usage": usage_payload(state.usage),
        "startedBy": state.started_by,
        "updatedBy": state.updated_by,
    }


def encode_state(state: ThreadState) -> bytes:
    """Write the bytes of ``thread.json``."""
    return encode_json(normalise(state_payload(state)))


_TEXT_OR_NONE = (str, type(None))
_FIELDS: Final[dict[str, tuple[type, ...]]] = {
    "format": (int,),
    "threadId": (str,),
    "status": (str,),
    "workflowName": (str,),
    "workflowHash": (str,),
    "workflowOid": (str,),
    "start": (str,),
    "head": (str,),
    "steps": (int,),
    "currentRole": _TEXT_OR_NONE,
    "suspendedRole": _TEXT_OR_NONE,
    "suspendMessage": _TEXT_OR_NONE,
    "retryAtMs": (int, type(None)),
    "forkedFrom": (dict, type(None)),
    "startedAtMs": (int,),
    "updatedAtMs": (int,),
    "completedAtMs": (int, type(None)),
    "usage": (dict, type(None)),
    "startedBy": (str,),
    "updatedBy": (str,),
}
_COUNTS: Final = (
    "steps",
    "retryAtMs",
    "startedAtMs",
    "updatedAtMs",
    "completedAtMs",
)
_ORIGIN_FIELDS: Final[dict[str, tuple[type, ...]]] = {
    "thread": (str,),
    "step": (str,),
    "number": (int,),
}
_USAGE_FIELDS: Final[dict[str, tuple[type, ...]]] = {
    "turns": (int,),
    "inputTokens": (int,),
    "outputTokens": (int,),
    "durationMs": (int,),
    "costUsd": (int, float, type(None)),
}
_CACHE_FIELDS: Final[dict[str, tuple[type, ...]]] = {
    "cacheReadTokens": (int,),
    "cacheWriteTokens": (int,),
}


def decode_state(data: bytes) -> ThreadState:
    """Read ``thread.json``.

    Raises:
        CorruptError: The bytes are not exactly those of a state.
        FormatVersionError: It is of a newer format.
        EarlierFormatError: It was written before format 1 was fixed.
    """
    try:
        value = decode_json(data)
    except CorruptError as exc:
        raise CorruptError(f"thread.json: {exc.message}") from exc
    return _read(value)


def parse_state(text: str) -> ThreadState:
    """Read ``thread.json`` without a look at whether its bytes are canonical.

    Raises:
        CorruptError, FormatVersionError: As :func:`decode_state`.
    """
    try:
        return _read(json.loads(text))
    except (ValueError, RecursionError) as exc:
        raise CorruptError(f"thread.json: {exc}") from exc


def _read(value: Json) -> ThreadState:
    version = value.get("format") if isinstance(value, dict) else None
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise FormatVersionError(
            "thread.json", found=str(version), supported=str(FORMAT_VERSION)
        )
    if isinstance(value, dict) and _FIELDS.keys() - value.keys() == {"retryAtMs"}:
        raise EarlierFormatError("thread.json")
    _check_fields(value, _FIELDS, "thread.json")
    for key, fits in (
        ("threadId", is_thread_id),
        ("workflowHash", is_hash),
        ("workflowOid", is_oid),
        ("start", is_hash),
        ("head", is_hash),
    ):
        if not fits(value[key]):
            raise CorruptError(f"thread.json: {key} is malformed")
    if any((value[key] or 0) < 0 for key in _COUNTS):
        raise CorruptError("thread.json: a number below zero")
    if value["status"] not in STATUSES or value["format"] != FORMAT_VERSION:
        raise CorruptError("thread.json: unknown status or format")
    return _state(value)


def _check_fields(value: Json, fields: dict[str, tuple[type, ...]], where: str) -> None:
    if not isinstance(value, dict) or value.keys() != fields.keys():
        raise CorruptError(f"{where}: wrong set of keys")
    for key, kinds in fields.items():
        if type(value[key]) not in kinds:
            raise CorruptError(f"{where}: {key} has the wrong type")


def _state(value: dict[str, Any]) -> ThreadState:
    if value["usage"] is not None:
        used = {
            key: _CACHE_FIELDS[key] for key in _CACHE_FIELDS if key in value["usage"]
        }
        _check_fields(value["usage"], _USAGE_FIELDS | used, "thread.json: usage")
    origin = value["forkedFrom"]
    if origin is not None:
        _check_fields(origin, _ORIGIN_FIELDS, "thread.json: forkedFrom")
        if not is_thread_id(origin["thread"]) or not is_hash(origin["step"]):
            raise CorruptError("thread.json: forkedFrom is malformed")
    return ThreadState(
        thread=ThreadId(value["threadId"]),
        # What ten thousand threads have in common is kept once.
        status=cast("ThreadStatus", intern(value["status"])),
        workflow_name=intern(value["workflowName"]),
        workflow_hash=Hash(intern(value["workflowHash"])),
        workflow_oid=Oid(intern(value["workflowOid"])),
        start=Hash(value["start"]),
        head=Hash(value["head"]),
        steps=value["steps"],
        current_role=value["currentRole"] and intern(value["currentRole"]),
        suspended_role=value["suspendedRole"],
        suspend_message=value["suspendMessage"],
        retry_at_ms=value["retryAtMs"],
        forked_from=origin
        and ForkedFrom(
            thread=ThreadId(origin["thread"]),
            step=Hash(origin["step"]),
            number=origin["number"],
        ),
        started_at_ms=value["startedAtMs"],
        updated_at_ms=value["updatedAtMs"],
        completed_at_ms=value["completedAtMs"],
        usage=usage_from_payload(value["usage"]),
        started_by=intern(value["startedBy"]),
        updated_by=intern(value["updatedBy"]),
    )


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
