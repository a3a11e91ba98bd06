"""A StepNode's fields, typed, and their one way to and from a payload (pure).

A field is declared here and in ``schemas/step.json``, and nowhere else: names
differ by their case alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import fields

from uwfgit.constants import STATUS
from uwfgit.ids import Hash, Oid, ThreadId, is_oid, is_thread_id
from uwfgit.model.thread.usage import Usage, usage_from_payload, usage_payload
from uwfgit.store.canonical import Json


class Snapshot(Struct, frozen=True, kw_only=True):
    """The files at a step's folder around it, as trees of the code repository."""

    before: Oid | None
    after: Oid | None


class Code(Struct, frozen=True, kw_only=True):
    """The user's code around a step: HEAD, the files, and who else worked there."""

    before: str | None = None
    after: str | None = None
    snapshot: Snapshot | None = None
    shared: tuple[ThreadId, ...] = ()


class Child(Struct, frozen=True, kw_only=True):
    """The thread that did a step, and its tip as the result was taken."""

    thread: ThreadId
    oid: Oid


class StepFields(Struct, frozen=True, kw_only=True):
    """What a StepNode says besides its place and the nodes it names."""

    role: str
    body: str
    agent: str
    edge_prompt: str
    note: str | None = None
    cwd: str
    started_at_ms: int
    completed_at_ms: int
    usage: Usage | None = None
    previous_attempts: tuple[Hash, ...] = ()
    code: Code = Code()
    extracted_by: str | None = None
    warnings: tuple[str, ...] = ()
    child: Child | None = None


class Step(StepFields, frozen=True, kw_only=True):
    """A StepNode with its output; ``number`` is its place in the chain."""

    number: int
    hash: Hash
    start: Hash
    prev: Hash | None
    output_hash: Hash
    output: Mapping[str, Json]
    detail_hash: Hash

    @property
    def status(self) -> str | None:
        """The ``$status`` the role reported."""
        value = self.output.get(STATUS)
        return value if isinstance(value, str) else None


def _read_code(payload: Json) -> Code:
    snapshot = payload.get("snapshot")
    return Code(
        before=payload["before"],
        after=payload["after"],
        snapshot=None if snapshot is None else Snapshot(**snapshot),
        shared=tuple(map(ThreadId, payload.get("shared", ()))),
    )


def _write_code(code: Code) -> Json:
    payload: dict[str, Json] = {"before": code.before, "after": code.after}
    if code.snapshot is not None:
        payload["snapshot"] = {
            "before": code.snapshot.before,
            "after": code.snapshot.after,
        }
    if code.shared:
        payload["shared"] = list(code.shared)
    return payload


def read_child(value: Json) -> Child:
    """Read which thread did a step.

    Raises:
        KeyError, TypeError: The value names none.
    """
    thread, oid = value["thread"], value["oid"]
    if not is_thread_id(thread) or not is_oid(oid):
        raise TypeError(f"{thread}, {oid}")
    return Child(thread=ThreadId(thread), oid=Oid(oid))


_READERS: Final[Mapping[str, Callable[[Json], Any]]] = {
    "usage": usage_from_payload,
    "previous_attempts": lambda value: tuple(value or ()),
    "code": _read_code,
    "warnings": tuple,
    "child": read_child,
}
_WRITERS: Final[Mapping[str, Callable[[Any], Json]]] = {
    "usage": usage_payload,
    "previous_attempts": lambda value: list(value) or None,
    "code": _write_code,
    "warnings": list,
    "child": lambda child: {"thread": child.thread, "oid": child.oid},
}
"""Fields whose JSON is not the value itself."""
_OPTIONAL: Final = frozenset({"child"})
"""Left out of a payload where they are ``None``."""


_KEYS: Final = {
    each.name: re.sub("_(.)", lambda match: match[1].upper(), each.name)
    for each in fields(StepFields)
}
_PLAIN: Final = tuple(name for name in _KEYS if name not in _READERS)
_take_plain = itemgetter(*(_KEYS[name] for name in _PLAIN))
_READ: Final = tuple(
    (name, _KEYS[name], read, name not in _OPTIONAL) for name, read in _READERS.items()
)


def read_fields(payload: Mapping[str, Json]) -> dict[str, Any]:
    """Read the fields of a StepNode's payload, by their names here.

    Raises:
        KeyError, TypeError: The payload is not that of a step.
    """
    found = dict(zip(_PLAIN, _take_plain(payload), strict=True))
    for name, key, read, is_required in _READ:
        if is_required or key in payload:
            found[name] = read(payload[key])
    return found


def write_fields(step: StepFields) -> dict[str, Json]:
    """Write the fields of a StepNode as its payload has them."""
    payload = {}
    for name, key in _KEYS.items():
        value = getattr(step, name)
        if value is None and name in _OPTIONAL:
            continue
        write = _WRITERS.get(name)
        payload[key] = value if write is None else write(value)
    return payload


def step_from_payload(
    step: Hash, number: int, payload: Mapping[str, Json], output: Mapping[str, Json]
) -> Step:
    """Read a StepNode's payload.

    Raises:
        KeyError, TypeError: The payload is not that of a step.
    """
    return Step(
        **read_fields(payload),
        number=number,
        hash=step,
        start=payload["start"],
        prev=payload["prev"],
        output_hash=payload["output"],
        output=output,
        detail_hash=payload["detail"],
    )
