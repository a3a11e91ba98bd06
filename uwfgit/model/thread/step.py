"""The fields of the nodes a thread is made of, and their way from payloads (pure).

A field is declared here and in ``schemas/``, and nowhere else: names
differ by their case alone. Usages are added up here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, field, to_builtins
from msgspec.structs import asdict, astuple

from uwfgit.constants import STATUS
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.node import Node, Payload, mistyped, read_payload
from uwfgit.store.canonical import Json, Omittable

Count = Annotated[int, Meta(ge=0)]
CodeOid = Annotated[str, Meta(pattern=r"\A(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")]
"""An object of the code's own repository, which may be one of sha256."""
ExtractedBy = Literal["frontmatter", "correction", "model"]


class Usage(Payload, frozen=True, kw_only=True):
    """What one run cost; always a delta, never a session's running total."""

    turns: Count
    input_tokens: Count
    output_tokens: Count
    duration_ms: Count
    cost_usd: int | float | None
    cache_read_tokens: Omittable[Count] = None
    cache_write_tokens: Omittable[Count] = None


NO_USAGE: Final = Usage(
    turns=0, input_tokens=0, output_tokens=0, duration_ms=0, cost_usd=None
)
"""A run that is not known to have used anything yet."""


class Snapshot(Payload, frozen=True, kw_only=True):
    """The files at a step's folder around it, as trees of the code repository."""

    before: CodeOid | None
    after: CodeOid | None


class Code(Payload, frozen=True, kw_only=True):
    """The user's code around a step: HEAD, the files, and who else worked there."""

    before: CodeOid | None
    after: CodeOid | None
    snapshot: Omittable[Snapshot] = None
    shared: Annotated[tuple[ThreadId, ...], Meta(min_length=1)] = ()


class Child(Payload, frozen=True, kw_only=True):
    """The thread that did a step, and its tip as the result was taken."""

    thread: ThreadId
    oid: Oid


class StepFields(Payload, frozen=True, kw_only=True):
    """What a StepNode says besides its place and the nodes it names.

    Times are in ms since 1970.
    """

    role: str
    body: str
    agent: str
    edge_prompt: str
    note: str | None
    cwd: str
    started_at_ms: Count
    completed_at_ms: Count
    usage: Usage | None
    previous_attempts: Annotated[tuple[Hash, ...], Meta(min_length=1)] | None
    code: Code
    extracted_by: ExtractedBy | None
    warnings: tuple[str, ...]
    child: Omittable[Child] = None


class StepNode(
    StepFields,
    frozen=True,
    kw_only=True,
    rename={"output_hash": "output", "detail_hash": "detail"},
):
    """All that a StepNode says."""

    start: Hash
    prev: Hash | None
    output_hash: Hash
    detail_hash: Hash


class StartedFor(Payload, frozen=True, kw_only=True):
    """The thread a step of which another was started for, and its head then."""

    thread: ThreadId
    step: Hash


class Start(Payload, frozen=True, kw_only=True):
    """A StartNode, and what the run was given for its inputs, once that was read."""

    hash: Hash
    workflow: Hash
    rules: Annotated[int, Meta(ge=1)]
    prompt: str
    cwd: str
    cwd_in_repo: str | None
    root_commit: str | None
    depth: Annotated[int, Meta(ge=1)] = 0
    parent: Omittable[StartedFor] = None
    inputs: Omittable[Hash] = None
    children: Annotated[Mapping[str, Hash], Meta(min_length=1)] = field(
        default_factory=dict
    )
    private: bool = False
    values: Mapping[str, Json] | None


class Hold(Payload, frozen=True, kw_only=True):
    """Why a supervisor stopped a thread, how that was found out, and what it cost."""

    reason: str
    detail: Hash
    usage: Usage | None


class Step(StepNode, frozen=True, kw_only=True, rename={"output": "values"}):
    """A StepNode with its output; ``number`` is its place in the chain."""

    number: int
    hash: Hash
    output: Mapping[str, Json]

    @property
    def status(self) -> str | None:
        """The ``$status`` the role reported."""
        value = self.output.get(STATUS)
        return value if isinstance(value, str) else None


def read_start(node: Node) -> Start:
    """Read a StartNode.

    Raises:
        CorruptError: The payload is not that of a start.
    """
    start = read_payload(node, Start, {"hash": node.hash, "values": None})
    # Left out or true: that no type can say.
    if not node.payload.get("private", True):
        raise mistyped(node)
    return start


def read_step(
    node: Node, number: int, output: Mapping[str, Json] | None = None
) -> Step:
    """Read a StepNode; without its output, that is empty.

    Raises:
        CorruptError: The payload is not that of a step.
    """
    known = {"number": number, "hash": node.hash, "values": output or {}}
    return read_payload(node, Step, known)


def write_fields(step: StepFields) -> dict[str, Json]:
    """Write the fields of a StepNode as its payload has them."""
    fields = {name: getattr(step, name) for name in StepFields.__struct_fields__}
    payload: dict[str, Json] = to_builtins(StepFields(**fields))
    return payload


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """Add up two deltas; an unknown one adds nothing, and so does an unknown cost."""
    if first is None or second is None:
        return first or second
    total = asdict(first)
    for name, more in asdict(second).items():
        if more is not None:
            total[name] = more if total[name] is None else total[name] + more
    return Usage(**total)


def is_grown(before: Usage | None, after: Usage | None) -> bool:
    """Whether one usage may be another and more."""
    if before is None or after is None:
        return before is None
    return all(
        (old or 0) <= (new or 0) and (old is None or new is not None)
        for old, new in zip(astuple(before), astuple(after), strict=True)
    )


def usage_since(before: Usage | None, after: Usage | None) -> Usage | None:
    """Return what one usage is more than another that it grew from."""
    if before is None or after is None or before == after:
        return None if before == after else after
    more = asdict(after)
    for name, old in asdict(before).items():
        if old is not None and more[name] is not None:
            more[name] -= old
    return Usage(**more)
