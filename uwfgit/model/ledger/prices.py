"""What runs cost: as their agents told, else by list prices (extra ``prices``).

Prices are looked up when somebody asks, offline; nothing of them is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from uwfgit.errors import CorruptError, UwfError
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.node import DETAIL_TYPE, HOLD_TYPE
from uwfgit.model.thread.event import RUN_EVENTS, Event, iter_events
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.state import ThreadState
from uwfgit.model.thread.step import Hold, Step, StepNode, Usage, usage_since
from uwfgit.model.thread.tip import read_tip
from uwfgit.store.canonical import Json
from uwfgit.store.handle import Store
from uwfgit.store.objects import read_blob

_PACKAGE: Final = "genai_prices"
_FREE: Final = frozenset({"scripted", "workflow"})
"""Kinds that ask no model themselves."""
_MOST_SEEN: Final = 10_000


class _Asked(Struct, frozen=True):
    """What of a detail counts for its cost."""

    kind: str
    model: str | None = None


_DECODER: Final = Decoder(_Asked)
"""Passes over the turns, which are nearly all of a detail."""
_seen: dict[Oid, _Asked] = {}
"""By blobs: a server looks at a thread again and again."""


class Cost(Struct, frozen=True, kw_only=True):
    """What runs cost in US dollars, as far as it is known.

    Attributes:
        usd: What is known of it; ``None`` when nothing is.
        is_estimate: Whether list prices are in it.
        is_whole: Whether it is all there is: no run is of unknown cost.
    """

    usd: float | None
    is_estimate: bool = False
    is_whole: bool = True

    def __str__(self) -> str:
        """Write it for people; ``~`` marks an estimate."""
        told = "" if self.usd is None else f"{'~' * self.is_estimate}${self.usd:.4f}"
        if self.is_whole:
            return told
        return f"{told} and more, unknown" if told else "cost unknown"

    def __add__(self, other: Cost) -> Cost:
        """Add up."""
        known = [each.usd for each in (self, other) if each.usd is not None]
        return Cost(
            usd=sum(known) if known else None,
            is_estimate=self.is_estimate or other.is_estimate,
            is_whole=self.is_whole and other.is_whole,
        )


def cost_payload(cost: Cost | None) -> Json:
    """Write a cost as JSON; ``usd`` is null where nothing of it is known."""
    if cost is None:
        return None
    usd = None if cost.usd is None else round(cost.usd, 10)
    return {"usd": usd, "isEstimate": cost.is_estimate, "isWhole": cost.is_whole}


def cost_from_payload(payload: Json) -> Cost | None:
    """Read a cost from what ``cost_payload`` wrote."""
    if payload is None:
        return None
    return Cost(
        usd=payload["usd"],
        is_estimate=payload["isEstimate"],
        is_whole=payload["isWhole"],
    )


UNKNOWN: Final = Cost(usd=None, is_whole=False)


def has_prices() -> bool:
    """Whether list prices are at hand."""
    return find_spec(_PACKAGE) is not None


def cost_of(usage: Usage | None, detail: Mapping[str, Any]) -> Cost | None:
    """Return what one run cost; ``None`` for one that asked no model.

    Args:
        usage: What it used.
        detail: The payload of its detail: which kind of agent, which model.
    """
    kind, model = detail.get("kind"), detail.get("model")
    return _cost_of(
        usage,
        _Asked(
            kind if isinstance(kind, str) else "",
            model if isinstance(model, str) else None,
        ),
    )


def _cost_of(usage: Usage | None, asked: _Asked) -> Cost | None:
    if usage is not None and _is_told(usage):
        return _told(usage)
    if asked.kind in _FREE:
        return None
    if usage is None or asked.model is None or not has_prices():
        return UNKNOWN
    usd = _look_up(
        asked.model,
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
    )
    return UNKNOWN if usd is None else Cost(usd=usd, is_estimate=True)


def step_cost(record: Record, step: Step) -> Cost | None:
    """Return what a step cost; one that a child did cost what that did."""
    if step.child is not None:
        return add_costs(_iter_costs(record.store, [step.child.thread], set()))
    return _run_cost(record, _run_of(step))


class _Run(NamedTuple):
    child: ThreadId | None
    usage: Usage | None
    detail: Hash


def _run_of(step: StepNode) -> _Run:
    child = None if step.child is None else step.child.thread
    return _Run(child, step.usage, step.detail_hash)


def _read_run(record: Record, node: Hash) -> _Run:
    return _run_of(record.run(node))


def _run_cost(record: Record, run: _Run) -> Cost | None:
    if run.usage is not None and _is_told(run.usage):
        return _told(run.usage)
    return _cost_of(run.usage, _read_asked(record, run.detail))


def _read_asked(record: Record, detail: Hash) -> _Asked:
    oid = record.place(detail, DETAIL_TYPE)[1]
    known = _seen.get(oid)
    if known is None:
        try:
            known = _DECODER.decode(read_blob(record.store, oid))
        except (DecodeError, RecursionError) as exc:
            raise CorruptError(f"node {detail} lacks what its type requires") from exc
        if len(_seen) >= _MOST_SEEN:
            _seen.clear()
        _seen[oid] = known
    return known


def thread_cost(record: Record, events: Iterable[Event] | None = None) -> Cost | None:
    """Return what a thread cost: failed tries, judgements and threads below it too.

    Each thread counts once, also one that others say did a step of its own child.

    Args:
        record: The thread.
        events: Its history, where it was read already.
    """
    children: list[ThreadId] = []
    own = [*_own_costs(record, events, children)]
    below = _iter_costs(record.store, children, {record.tip.thread})
    return add_costs((*own, *below))


def add_costs(costs: Iterable[Cost]) -> Cost | None:
    """Add up what there is."""
    total: Cost | None = None
    for cost in costs:
        total = cost if total is None else total + cost
    return total


def _iter_costs(
    store: Store, threads: list[ThreadId], seen: set[ThreadId]
) -> Iterator[Cost]:
    """Yield what threads and those below them cost, but for those seen already."""
    while threads:
        thread = threads.pop()
        if thread in seen:
            continue
        seen.add(thread)
        try:
            record = open_record(store, thread, checked=False)
            costs = [*_own_costs(record, None, threads)]
        except UwfError:
            # It is not here, or damaged: what it cost is for others to know.
            costs = [UNKNOWN]
        yield from costs


def _own_costs(
    record: Record, events: Iterable[Event] | None, children: list[ThreadId]
) -> Iterator[Cost]:
    """Yield what a thread's own events cost, and note the threads that did steps."""
    for event in events or iter_events(record.store, record.tip.commit):
        cost = _event_cost(record, event, children)
        if cost is not None:
            yield cost


def _event_cost(record: Record, event: Event, children: list[ThreadId]) -> Cost | None:
    if event.name == "summary":
        return _summary_cost(record, event)
    if event.node is None:
        return None
    if event.name == "hold":
        hold = record.read(event.node, HOLD_TYPE, Hold)
        return _run_cost(record, _Run(None, hold.usage, hold.detail))
    if event.name not in RUN_EVENTS:
        return None
    run = _read_run(record, event.node)
    if run.child is not None:
        children.append(run.child)
        return None
    return _run_cost(record, run)


def _summary_cost(record: Record, event: Event) -> Cost | None:
    """Return what a summary cost: it has no node, but the thread's usage grew."""
    before, after = (
        read_tip(record.store, event.thread, commit).state.usage
        for commit in (event.commit.parents[0], event.commit.oid)
    )
    used = usage_since(before, after)
    # One whose usage nobody told left no more trace of it than a free one.
    detail = {"kind": event.name, "model": event.commit.author.name}
    return None if used is None else cost_of(used, detail)


def cost_at(
    store: Store, thread: ThreadId, commit: Oid, state: ThreadState | None
) -> Cost | None:
    """Return what a listed thread cost; one that used no tokens is not read."""
    if state is None or state.usage is None or not _tokens(state.usage):
        return None
    try:
        tip = read_tip(store, thread, commit)
        return thread_cost(open_record(store, tip, checked=False))
    except UwfError:
        return UNKNOWN


def _is_told(usage: Usage) -> bool:
    """Whether a usage says enough: its detail, which may be large, is not read."""
    return usage.cost_usd is not None or not _tokens(usage)


def _told(usage: Usage) -> Cost | None:
    return None if usage.cost_usd is None else Cost(usd=usage.cost_usd)


def _tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


@lru_cache(maxsize=1024)
def _look_up(
    model: str, tokens_in: int, tokens_out: int, read: int | None, written: int | None
) -> float | None:
    # Half of a command's time to start, for those who have the extra.
    from genai_prices import Usage as Priced  # noqa: PLC0415
    from genai_prices import calc_price  # noqa: PLC0415

    used = Priced(
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
    # ``provider/model``, as some write it, and the model alone.
    for name in dict.fromkeys((model, model.rpartition("/")[2])):
        try:
            return float(calc_price(used, model_ref=name).total_price)
        except (LookupError, ValueError):
            continue
    return None
