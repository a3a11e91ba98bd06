"""``thread list``: which threads, in which order, and how they look."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from uwfgit.cli.frame.arguments import parse_time, require_least
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.output import Column, Output, count_of, format_table, format_time
from uwfgit.cli.frame.progress import Progress
from uwfgit.cli.frame.world import now_ms
from uwfgit.cli.thread.payloads import row_payload
from uwfgit.errors import CorruptError, EarlierFormatError, UsageError, UwfError
from uwfgit.ids import ThreadId, is_thread_id, thread_time_ms
from uwfgit.model.ledger.kin import find_parents
from uwfgit.model.ledger.ledger import Ledger, ThreadRow, list_threads
from uwfgit.model.ledger.prices import cost_at, cost_from_payload
from uwfgit.model.ledger.standing import find_running, list_sharing, status_of
from uwfgit.model.thread.hold import find_hold
from uwfgit.model.thread.task import find_task_line
from uwfgit.model.thread.tip import NOT_SHARED, Shared, Sharing, load_tip, read_tip
from uwfgit.model.wording import without_mark
from uwfgit.store.handle import Store
from uwfgit.store.layout import TRASH_PREFIX
from uwfgit.store.refs import list_refs

STATUSES: Final = (
    *("idle", "running", "suspended", "diverged", "end", "cancelled"),
    *("corrupt", "earlier"),
)
ACTIVE: Final = ("idle", "running", "suspended", "diverged")
_OTHER_WORDS: Final = {"completed": ("end",), "active": ACTIVE}
_HIDDEN: Final = ("end", "cancelled")
_WIDE: Final = 100
"""Columns of a terminal from which on nothing has to be left out."""


class Filters(Struct, frozen=True, kw_only=True):
    """What the options of ``thread list`` say, checked."""

    statuses: frozenset[str] | None
    show_all: bool
    workflow: str | None
    by: str | None
    after_ms: int | None
    before_ms: int | None
    limit: int | None
    offset: int
    trash: bool
    children: bool
    sort: str | None


def read_filters(
    *,
    status: str | None,
    show_all: bool = False,
    workflow: str | None = None,
    by: str | None = None,
    after: str | None = None,
    before: str | None = None,
    limit: int | None = None,
    offset: int | None = None,
    trash: bool = False,
    children: bool = False,
    sort: str | None = None,
) -> Filters:
    """Check the options of ``thread list``.

    Raises:
        UsageError: A value does not fit; names the option.
    """
    require_least(0, limit=limit, offset=offset)
    if sort is not None and sort not in _SPENT:
        raise UsageError(f"--sort: '{sort}' is not one of {', '.join(_SPENT)}")
    now = now_ms()
    return Filters(
        statuses=_parse_statuses(status),
        show_all=show_all,
        workflow=workflow,
        by=by,
        after_ms=parse_time(after, option="--after", now_ms=now) if after else None,
        before_ms=parse_time(before, option="--before", now_ms=now) if before else None,
        limit=limit,
        offset=offset or 0,
        trash=trash,
        children=children,
        sort=sort,
    )


def _parse_statuses(text: str | None) -> frozenset[str] | None:
    if text is None:
        return None
    found: set[str] = set()
    for word in text.split(","):
        name = word.strip()
        if name in _OTHER_WORDS:
            found.update(_OTHER_WORDS[name])
        elif name in STATUSES:
            found.add(name)
        else:
            raise UsageError(
                f"--status: '{name}' is not a status",
                hint=f"statuses: {', '.join(STATUSES)}, active",
            )
    return frozenset(found)


class _Known(NamedTuple):
    """A thread that the filters let through."""

    row: ThreadRow
    status: str
    shared: Shared


def print_threads(context: CommandContext, ledger: Ledger, filters: Filters) -> None:
    """Print the threads the filters let through, newest first.

    What does a step of one of them is folded into it, or stands below it.
    """
    known, tree = _find(context, ledger, filters)
    kept = _choose(ledger.store, known, tree, filters)
    end = None if filters.limit is None else filters.offset + filters.limit
    places = tree.list_places(kept, unfolded=filters.children)[filters.offset : end]
    page = [known[thread] for thread, _ in places]
    hidden = sum(tree.parents.get(each) not in known for each in known.keys() - kept)
    _tell_more(context, [each.row for each in page], hidden)
    items = [
        row_payload(
            row,
            status=status,
            shared=shared,
            children=tree.children.get(row.thread, ()),
            cost=cost_at(ledger.store, row.thread, row.commit, row.state),
        )
        for row, status, shared in page
    ]
    below = [0 if filters.children else tree.count_below(each) for each, _ in places]
    if context.output.is_text and any(below):
        what = count_of(sum(below), "thread")
        context.output.say(f"{what} that did steps of these not shown (--children)")
    names = [
        "  " * depth + thread + (f" +{more}" if more else "")
        for (thread, depth), more in zip(places, below, strict=True)
    ]
    context.output.emit_listing(
        {"items": items},
        lambda: _table(
            context.output,
            items,
            names,
            with_shared=not filters.trash and any(ledger.store.repo.remotes.names()),
            sort=filters.sort,
            held=_list_held(ledger.store, [each.row for each in page]),
        ),
    )
    if filters.trash and items:
        context.output.say("bring one back: uwf thread restore THREAD")


def _find(
    context: CommandContext, ledger: Ledger, filters: Filters
) -> tuple[dict[ThreadId, _Known], _Tree]:
    """Return the threads that the filters let through, and the tree of all."""
    running = frozenset() if filters.trash else find_running(ledger.store)
    with Progress(context) as progress:
        # Long only where the lookup has to be made anew.
        progress.tell("reading threads")
        rows = _list_trash(ledger) if filters.trash else list_threads(ledger)
        sharing = {} if filters.trash else list_sharing(ledger.store, rows)
    known = {}
    for row in rows:
        theirs = sharing.get(row.thread, NOT_SHARED)
        status = _status(row, theirs, is_running=row.thread in running)
        if _fits(row, status, filters):
            known[row.thread] = _Known(row, status, theirs.shared)
    return known, _Tree({} if filters.trash else find_parents(ledger, rows))


def _choose(
    store: Store, known: Mapping[ThreadId, _Known], tree: _Tree, filters: Filters
) -> list[ThreadId]:
    """Return what is not hidden, in the order in which it is listed."""
    kept = [*known]
    if filters.statuses is None and not filters.show_all and not filters.trash:
        # One that ended stays with the thread that goes on, a step of which it did.
        active = {each for each in known if known[each].status not in _HIDDEN}
        kept = [each for each in known if tree.is_in(each, active)]
    if filters.sort is not None:
        # Those that spent the same stay newest first.
        spent = _SPENT[filters.sort]
        kept.sort(key=lambda each: spent(store, known[each].row), reverse=True)
    return kept


def _tell_more(context: CommandContext, page: Sequence[ThreadRow], hidden: int) -> None:
    """Say what is not shown, and what is wrong with what is."""
    if context.output.is_text and not page:
        context.output.say("no threads" + (" to show" if hidden else ""))
    if context.output.is_text and hidden:
        what = count_of(hidden, "ended or cancelled thread")
        context.output.say(f"{what} not shown (--all)")
    for row in page:
        if row.problem is not None:
            what = "" if row.is_earlier else "is corrupt: "
            context.output.warn(f"thread {row.thread} {what}{row.problem}")


def _spent_text(item: Mapping[str, Any], what: str) -> str | None:
    """Write what a thread cost; nothing where that is not known."""
    if what == "cost":
        cost = cost_from_payload(item["cost"])
        return None if cost is None else str(cost).removeprefix("cost ")
    usage = item["usage"]
    return usage and f"{usage['inputTokens'] + usage['outputTokens']:,}"


def _money(store: Store, row: ThreadRow) -> float:
    """Return what a thread cost as it is shown, list prices among it."""
    cost = cost_at(store, row.thread, row.commit, row.state)
    return (cost and cost.usd) or 0


def _tokens(_store: Store, row: ThreadRow) -> float:
    usage = row.state and row.state.usage
    return usage.input_tokens + usage.output_tokens if usage else 0


_SPENT: Final[Mapping[str, Callable[[Store, ThreadRow], float]]] = {
    "cost": _money,
    "tokens": _tokens,
}
"""What threads are sorted by, and how much that is."""


class _Tree:
    """Threads, and below them those that did steps of them."""

    def __init__(self, parents: Mapping[ThreadId, ThreadId]) -> None:
        self.parents = parents
        self.children: dict[ThreadId, list[ThreadId]] = {}
        # The oldest first, as the steps are that they did.
        for child, parent in sorted(parents.items()):
            self.children.setdefault(parent, []).append(child)

    def is_in(self, thread: ThreadId | None, threads: Collection[ThreadId]) -> bool:
        """Whether a thread, or one above it, is among others."""
        while thread is not None and thread not in threads:
            thread = self.parents.get(thread)
        return thread is not None

    def list_places(
        self, threads: Sequence[ThreadId], *, unfolded: bool
    ) -> list[tuple[ThreadId, int]]:
        """Return what of some threads is shown, and how deep it stands."""
        among = frozenset(threads)
        tops = [each for each in threads if self.parents.get(each) not in among]
        if not unfolded:
            return [(each, 0) for each in tops]
        return [place for top in tops for place in self._below(top, 0, among)]

    def _below(
        self, thread: ThreadId, depth: int, among: Collection[ThreadId]
    ) -> Iterator[tuple[ThreadId, int]]:
        yield thread, depth
        for child in self.children.get(thread, ()):
            if child in among:
                yield from self._below(child, depth + 1, among)

    def count_below(self, thread: ThreadId) -> int:
        """Return how many threads did steps of one, and steps of those."""
        below = self.children.get(thread, ())
        return len(below) + sum(self.count_below(child) for child in below)


def _list_trash(ledger: Ledger) -> list[ThreadRow]:
    rows = []
    for name, oid in list_refs(ledger.store, TRASH_PREFIX).items():
        thread = name.removeprefix(TRASH_PREFIX)
        if not is_thread_id(thread):
            continue
        found = ThreadId(thread)
        try:
            tip = read_tip(ledger.store, found, oid)
            task = find_task_line(ledger.store, tip)
            rows.append(ThreadRow(thread=found, commit=oid, state=tip.state, task=task))
        except UwfError as exc:
            rows.append(
                ThreadRow(thread=found, commit=oid, state=None, problem=exc.message)
            )
    rows.sort(key=lambda row: row.thread, reverse=True)
    return rows


def find_status(ledger: Ledger, thread: ThreadId) -> str:
    """Return the status of one thread's own state, ``corrupt`` or ``earlier``.

    Raises:
        NotFoundError: There is no such thread.
    """
    try:
        return load_tip(ledger.store, thread).state.status
    except CorruptError:
        return "corrupt"
    except EarlierFormatError:
        return "earlier"


def _status(row: ThreadRow, sharing: Sharing, *, is_running: bool) -> str:
    if row.state is None:
        return "earlier" if row.is_earlier else "corrupt"
    return status_of(row.state, running=is_running, sharing=sharing)


def _fits(row: ThreadRow, status: str, filters: Filters) -> bool:
    state = row.state
    names = () if state is None else (state.workflow_name, state.workflow_hash)
    by = "" if state is None else state.started_by
    return (
        (filters.statuses is None or status in filters.statuses)
        and filters.workflow in (None, *names)
        and (filters.by is None or filters.by.casefold() in by.casefold())
        and (filters.after_ms is None or thread_time_ms(row.thread) > filters.after_ms)
        and (
            filters.before_ms is None or thread_time_ms(row.thread) < filters.before_ms
        )
    )


def _table(
    output: Output,
    items: Sequence[dict[str, Any]],
    names: Sequence[str],
    *,
    with_shared: bool,
    sort: str | None,
    held: frozenset[str],
) -> str:
    if not items:
        return ""
    columns = [
        Column(title="THREAD"),
        Column(title="WORKFLOW", flexible=True),
        Column(title="STATUS", status=True),
        Column(title="ROLE", flexible=True)
        if sort is None
        else Column(title=sort.upper(), right=True),
        *([Column(title="SHARED")] if with_shared else []),
    ]
    rows = list(_rows(items, names, with_shared=with_shared, sort=sort, held=held))
    # The newest stand first; by its task a thread is known.
    if output.width is None or output.width >= _WIDE:
        columns.append(Column(title="STARTED"))
        starts = [format_time(item["startedAtMs"]) for item in items]
        rows = [(*row, start) for row, start in zip(rows, starts, strict=True)]
        costs = [_spent_text(item, "cost") for item in items]
        if any(costs) and sort != "cost":
            columns.append(Column(title="COST", right=True))
            rows = [(*row, cost) for row, cost in zip(rows, costs, strict=True)]
    columns.append(Column(title="TASK", flexible=True))
    tasks = [without_mark(item["task"] or "") for item in items]
    rows = [(*row, task) for row, task in zip(rows, tasks, strict=True)]
    return format_table(output, columns, rows)


def _list_held(store: Store, rows: Iterable[ThreadRow]) -> frozenset[str]:
    return frozenset(
        row.thread
        for row in rows
        if row.state is not None and find_hold(store, row.commit, row.state) is not None
    )


def _status_text(item: Mapping[str, Any], *, is_held: bool) -> str:
    """Write a status; of one that waits for a vendor's limit, until when."""
    status: str = item["status"]
    until = format_time(item["retryAtMs"])
    if status == "suspended" and is_held:
        return f"{status}, held"
    if status != "suspended" or until is None:
        return status
    day, _, time = until.partition(" ")
    is_today = (format_time(now_ms()) or "").startswith(day)
    return f"{status} until {time if is_today else day}"


def _rows(
    items: Sequence[dict[str, Any]],
    names: Sequence[str],
    *,
    with_shared: bool,
    sort: str | None,
    held: frozenset[str],
) -> Iterator[tuple[str | None, ...]]:
    for item, name in zip(items, names, strict=True):
        yield (
            name,
            item["workflowName"],
            _status_text(item, is_held=item["threadId"] in held),
            item["suspendedRole"] or item["currentRole"]
            if sort is None
            else _spent_text(item, sort),
            *((item["shared"],) if with_shared else ()),
        )
