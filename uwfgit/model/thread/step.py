"""A StepNode's fields, typed, and their one way to and from a payload (pure).

A field is declared here and in ``schemas/step.json``, and nowhere else: names
differ by their case alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from msgspec import Meta, Struct, ValidationError, convert

from uwfgit.constants import STATUS
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.node.node import Node
from uwfgit.model.schema.typed import mistyped
from uwfgit.model.thread.usage import Usage, usage_payload
from uwfgit.store.canonical import Json

Time = Annotated[int, Meta(ge=0)]
"""In ms since 1970."""
CodeOid = Annotated[str, Meta(pattern=r"\A(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")]
"""An object of the code's own repository, which may be one of sha256."""
ExtractedBy = Literal["frontmatter", "correction", "model"]


class Snapshot(Struct, frozen=True, kw_only=True, gc=False):
    """The files at a step's folder around it, as trees of the code repository."""

    before: CodeOid | None
    after: CodeOid | None


class Code(Struct, frozen=True, kw_only=True, gc=False):
    """The user's code around a step: HEAD, the files, and who else worked there."""

    before: CodeOid | None = None
    after: CodeOid | None = None
    snapshot: Snapshot | None = None
    shared: tuple[ThreadId, ...] = ()


class Child(Struct, frozen=True, kw_only=True, gc=False):
    """The thread that did a step, and its tip as the result was taken."""

    thread: ThreadId
    oid: Oid


class StepFields(Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """What a StepNode says besides its place and the nodes it names."""

    role: str
    body: str
    agent: str
    edge_prompt: str
    note: str | None = None
    cwd: str
    started_at_ms: Time
    completed_at_ms: Time
    usage: Usage | None = None
    previous_attempts: tuple[Hash, ...] = ()
    code: Code = Code()
    extracted_by: ExtractedBy | None = None
    warnings: tuple[str, ...] = ()
    child: Child | None = None


class Step(
    StepFields,
    frozen=True,
    kw_only=True,
    gc=False,
    rename={"output_hash": "output", "output": "values", "detail_hash": "detail"},
):
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


_KEYS: Final = dict(
    zip(StepFields.__struct_fields__, StepFields.__struct_encode_fields__, strict=True)
)
_REQUIRED: Final = {key for name, key in _KEYS.items() if name not in _OPTIONAL}
_Read = TypeVar("_Read", bound=StepFields)


def read_step(
    node: Node, number: int, output: Mapping[str, Json] | None = None
) -> Step:
    """Read a StepNode; without its output, that is empty.

    Raises:
        CorruptError: The payload is not that of a step.
    """
    return _read(node, Step, number=number, hash=node.hash, values=output or {})


def read_fields(node: Node) -> StepFields:
    """Read what a StepNode says besides its place and the nodes it names.

    Raises:
        CorruptError: The payload is not that of a step.
    """
    return _read(node, StepFields)


def _read(node: Node, kind: type[_Read], **known: Json) -> _Read:
    payload = node.payload
    # Not by its schema: that takes three times as long, and a thread has many.
    if isinstance(payload, dict) and payload.keys() >= _REQUIRED:
        tries = payload["previousAttempts"]
        known["previousAttempts"] = () if tries is None else tries
        try:
            return convert({**payload, **known}, kind)
        except ValidationError as exc:
            raise mistyped(node) from exc
    raise mistyped(node)


class _Named(Struct, frozen=True):
    child: Child | None = None


def read_child(node: Node) -> Child | None:
    """Read which thread did a step, and no more of its StepNode.

    Raises:
        CorruptError: The payload is not that of a step.
    """
    try:
        return convert(node.payload, _Named).child
    except ValidationError as exc:
        raise mistyped(node) from exc


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
