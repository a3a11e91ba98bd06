"""What is recorded: threads, steps and nodes found by name, over one store."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from msgspec import Struct, field

from uwfgit.errors import (
    AmbiguousError,
    CorruptError,
    EarlierFormatError,
    NotFoundError,
    UsageError,
    UwfError,
)
from uwfgit.ids import (
    Hash,
    Oid,
    ThreadId,
    find_hash,
    find_thread_id,
    is_thread_id,
    read_hash,
)
from uwfgit.model.ledger.kept import Kept
from uwfgit.model.node import Node, find_builtin_node
from uwfgit.model.thread.attempts import find_last_attempt
from uwfgit.model.thread.event import STEP_EVENTS, Event, iter_events
from uwfgit.model.thread.record import (
    NodePlace,
    Record,
    open_record,
    read_node,
    read_nodes,
)
from uwfgit.model.thread.state import ThreadState, decode_state
from uwfgit.model.thread.step import Step
from uwfgit.model.thread.tip import Tip, iter_lineage, load_tip, read_tip
from uwfgit.spelling import LEAST_END, match_ids
from uwfgit.store.git.settings import Identity
from uwfgit.store.git.signing import Signer
from uwfgit.store.handle import Store
from uwfgit.store.layout import KEEP_REF, TRASH_PREFIX
from uwfgit.store.local import Local
from uwfgit.store.lookup.table import Lookup, NodeRow, ThreadTipRow
from uwfgit.store.refs import list_refs

_NUMBER_CHARS = 9
_TOLD_CHARS = 40


class Ledger(Struct, frozen=True, kw_only=True):
    """A store opened for threads, with what the outside world gives.

    ``random`` gives that many random bytes; ``utc_offset`` is the time zone of
    commits, in minutes. With ``is_draft`` events are written, but no branch moves.
    """

    store: Store
    kept: Kept
    lookup: Lookup
    local: Local
    identity: Identity
    now_ms: Callable[[], int]
    random: Callable[[int], bytes]
    utc_offset: int = 0
    is_draft: bool = False
    signer: Signer = field(default_factory=Signer)


class ThreadRow(Struct, frozen=True, kw_only=True, gc=False):
    """A line of a listing; a corrupt thread has a problem and no state."""

    thread: ThreadId
    commit: Oid
    state: ThreadState | None
    problem: str | None = None
    is_earlier: bool = False
    """Whether it is whole, in a format from before the first release."""
    task: str | None = None
    """The first line of its task, where the lookup knows it."""
    parent: tuple[ThreadId, Hash] | None = None
    """The thread a step of which it was started for, and that one's head then."""

    @property
    def began_for(self) -> ThreadId | None:
        """The thread a step of which it was started for; of a whole one only."""
        return self.parent[0] if self.parent and self.state else None

    @property
    def fork_of(self) -> ThreadId | None:
        """The thread it was forked from."""
        origin = self.state.forked_from if self.state else None
        return origin.thread if origin else None


def resolve_thread(ledger: Ledger, text: str) -> ThreadId:
    """Find a thread by its id, a unique prefix or suffix of it, or ``@last``.

    Raises:
        NotFoundError: No thread has that name.
        AmbiguousError: Several have.
    """
    if text == "@last":
        last = ledger.local.last()
        if last is None:
            raise NotFoundError("thread", text, hint="no thread was used here yet")
        return last
    wanted = text.upper()
    if is_thread_id(wanted):
        return ThreadId(wanted)
    found = ledger.lookup.find_threads(prefix=wanted) if wanted else ()
    if not found and len(wanted) >= LEAST_END:
        found = ledger.lookup.find_threads(suffix=wanted)
    hint = "list them with: uwf thread list --all"
    return _only_one("thread", text, found, hint=hint)


def resolve_removed(ledger: Ledger, text: str) -> ThreadId:
    """Find a thread in the trash by its id, or a unique prefix or suffix of it.

    Raises:
        NotFoundError: None there has that name.
        AmbiguousError: Several have.
    """
    whole = find_thread_id(text)
    if whole is not None:
        return whole
    names = (
        name.removeprefix(TRASH_PREFIX)
        for name in list_refs(ledger.store, TRASH_PREFIX)
    )
    found = match_ids(text, [ThreadId(name) for name in names if is_thread_id(name)])
    hint = "see what is there: uwf thread list --trash"
    return _only_one("removed thread", text, found, hint=hint)


def _only_one(
    kind: str, text: str, found: Sequence[ThreadId], *, hint: str
) -> ThreadId:
    if not found:
        raise NotFoundError(kind, text, hint=hint)
    if len(found) > 1:
        raise AmbiguousError(kind, text, found)
    return found[0]


def find_tip(ledger: Ledger, text: str) -> Tip:
    """Find a thread by any of its names and read its tip.

    Raises:
        NotFoundError, AmbiguousError, CorruptError: As the parts say.
    """
    return load_tip(ledger.store, resolve_thread(ledger, text))


def list_threads(ledger: Ledger) -> list[ThreadRow]:
    """List all threads, newest first; a damaged one is a row with its problem."""
    return list(iter_threads(ledger))


def iter_threads(
    ledger: Ledger, *, among: Container[ThreadId] | None = None
) -> Iterator[ThreadRow]:
    """Yield the same, or some of them, without holding all of them at once."""
    for row in ledger.lookup.iter_threads():
        if among is None or row.thread in among:
            yield _thread_row(ledger, row)


def _thread_row(ledger: Ledger, row: ThreadTipRow) -> ThreadRow:
    thread, commit, text = row.thread, row.commit, row.state_json
    problem, is_earlier = None, False
    state: ThreadState | None = None
    try:
        # Ten thousand of them: what git holds was checked when it was written.
        state = (
            read_tip(ledger.store, thread, commit).state
            if text is None
            else decode_state(text.encode(), checked=False)
        )
    except UwfError as exc:
        problem, is_earlier = exc.message, isinstance(exc, EarlierFormatError)
    if state is not None and state.thread != thread:
        problem, state = f"thread.json is of thread {state.thread}", None
    return ThreadRow(
        thread=thread if state is None else state.thread,
        commit=commit,
        state=state,
        problem=problem,
        is_earlier=is_earlier,
        task=row.task,
        parent=row.parent,
    )


def resolve_step(ledger: Ledger, text: str) -> tuple[Record, Step]:
    """Find a step by its hash, or as ``THREAD:N`` in the logical chain.

    A hash may also be that of a failed attempt or of a replaced step.

    Raises:
        NotFoundError, AmbiguousError, CorruptError: As the parts say.
    """
    thread, colon, number = text.rpartition(":")
    if colon:
        return _numbered_step(ledger, thread, number)
    step = find_hash(text)
    rows = ledger.lookup.find_steps(step) if step else ()
    if step is None or not rows:
        raise NotFoundError("step", text, hint="name it by hash, or as THREAD:NUMBER")
    if len({row.oid for row in ledger.lookup.find_nodes(step)}) > 1:
        raise AmbiguousError(
            "step",
            text,
            sorted(row.thread for row in rows),
            hint="different contents share this hash; name the step THREAD:NUMBER",
        )
    row = min(rows, key=lambda row: row.thread)
    record = open_record(ledger.store, row.thread)
    if step not in record.places:
        # A resolve kept the other side: its own commit has it.
        tip = read_tip(ledger.store, row.thread, row.commit)
        record = open_record(ledger.store, tip)
    return record, record.step(step, row.number)


def _numbered_step(ledger: Ledger, thread: str, number: str) -> tuple[Record, Step]:
    if not number.isascii() or not number.isdigit() or len(number) > _NUMBER_CHARS:
        told = number if len(number) <= _TOLD_CHARS else f"{number[:_TOLD_CHARS]}…"
        raise UsageError(f"'{told}' is not a step number", hint="steps count from 1")
    record = open_record(ledger.store, find_tip(ledger, thread))
    try:
        return record, record.step_at(int(number))
    except NotFoundError as exc:
        tried = find_last_attempt(record)
        if tried is None or tried.number != int(number):
            raise
        hint = f"it failed; its newest try: uwf step show {tried.hash}"
        raise NotFoundError("step", exc.name, hint=hint) from exc


def find_step_commit(store: Store, tip: Tip, step: Hash) -> Event | None:
    """Find the event that added a step, or the start, to a thread's history.

    What a resolve did not keep is searched after what it kept.
    """
    waiting, seen = [tip.commit], set()
    while waiting:
        for event in iter_events(store, waiting.pop()):
            if event.commit.oid in seen:
                break
            if event.node == step and event.name in (*STEP_EVENTS, "start"):
                return event
            seen.add(event.commit.oid)
            waiting += event.commit.parents[1:]
    return None


def find_kept(ledger: Ledger, node: Hash) -> tuple[Hash, Oid] | None:
    """Find a node put by hand: its type and blob, from git alone.

    Raises:
        CorruptError: Two contents stand under the hash.
    """
    ledger.kept.refresh()
    return ledger.kept.find(node)


def find_node(ledger: Ledger, node: Hash) -> Node | None:
    """Find a node anywhere in the store; built-in types are always there.

    The lookup knows the kept ones too; one that was kept since it looked, or that is
    there twice, is looked for in keep's own tree.

    Raises:
        AmbiguousError: Threads, or one and the kept nodes, hold different
            contents under the hash.
        CorruptError: It is damaged.
    """
    rows = ledger.lookup.find_nodes(node)
    if len(rows) == 1:
        return read_node(ledger.store, node, rows[0].type, rows[0].oid)
    ledger.kept.refresh()
    place = _find_place(ledger, node, rows)
    if place is not None:
        return read_node(ledger.store, node, *place)
    return find_builtin_node(node)


def _find_place(
    ledger: Ledger, node: Hash, rows: Iterable[NodeRow]
) -> NodePlace | None:
    kept = ledger.kept.find(node)
    places = {(row.type, row.oid) for row in rows}
    if kept is not None:
        places.add(kept)
    if len(places) > 1:
        raise AmbiguousError(
            "node",
            node,
            sorted(_holders(ledger, node, places, kept)),
            hint="different contents share this hash; choose with --thread",
        )
    return places.pop() if places else None


def _holders(
    ledger: Ledger,
    node: Hash,
    places: set[tuple[Hash, Oid]],
    kept: tuple[Hash, Oid] | None,
) -> set[str]:
    threads: set[str] = {KEEP_REF} if kept is not None else set()
    for _, oid in places:
        threads.update(ledger.lookup.threads_with_node(node, oid))
    return threads


def load_node(ledger: Ledger, text: str, *, thread: str | None = None) -> Node:
    """Read a node named by its hash, of one thread or of the whole store.

    Raises:
        NotFoundError: The store, or that thread, does not hold it.
        AmbiguousError: Threads hold different contents under the hash.
        CorruptError: It is damaged.
    """
    wanted = read_hash(text)
    if thread is not None:
        record = open_record(ledger.store, find_tip(ledger, thread))
        found = record.node(wanted) if wanted in record.places else None
    else:
        found = find_node(ledger, wanted)
    if found is None:
        raise NotFoundError("node", wanted)
    return found


def load_nodes(ledger: Ledger, nodes: Iterable[Hash]) -> tuple[Node, ...]:
    """Read many nodes of the whole store in one go, in the order of their names.

    Raises:
        NotFoundError, AmbiguousError, CorruptError: As :func:`load_node`.
    """
    wanted = tuple(nodes)
    ledger.kept.refresh()
    rows = ledger.lookup.find_many(wanted)
    places: dict[Hash, NodePlace] = {}
    known: dict[Hash, Node] = {}
    for node in wanted:
        place = _find_place(ledger, node, rows.get(node, ()))
        if place is not None:
            places[node] = place
        elif (builtin := find_builtin_node(node)) is not None:
            known[node] = builtin
        else:
            raise NotFoundError("node", node)
    known |= {node.hash: node for node in read_nodes(ledger.store, places.items())}
    return tuple(known[node] for node in wanted)


def find_linkable(ledger: Ledger, node: Hash) -> Node | None:
    """Find a node to link; one that is ambiguous or damaged links nothing.

    A kept one wins: it is what was put for the answer.
    """
    try:
        kept = find_kept(ledger, node)
        if kept is not None:
            return read_node(ledger.store, node, *kept)
        return find_node(ledger, node)
    except (AmbiguousError, CorruptError):
        return None


def lineage(ledger: Ledger, tip: Tip) -> tuple[ThreadId, ...]:
    """Return a thread and those it was forked from, the nearest first.

    Raises:
        CorruptError: The state of one cannot be read.
    """
    return tuple(state.thread for state in iter_lineage(ledger.store, tip))
