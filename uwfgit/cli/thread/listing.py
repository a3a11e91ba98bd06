"""``thread list``: which threads, in which order, and how they look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from uwfgit.cli.frame.arguments import parse_time
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.output import Column, Output, count_of, format_table, format_time
from uwfgit.cli.frame.progress import Progress
from uwfgit.cli.frame.world import now_ms
from uwfgit.cli.thread.payloads import row_payload
from uwfgit.errors import CorruptError, EarlierFormatError, UsageError, UwfError
from uwfgit.ids import ThreadId, is_thread_id, thread_time_ms
from uwfgit.model.ledger.ledger import Ledger, ThreadRow, list_threads
from uwfgit.model.ledger.standing import find_running, list_sharing, status_of
from uwfgit.model.thread.record import load_tip, read_tip
from uwfgit.model.thread.sharing import NOT_SHARED, Sharing
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
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
) -> Filters:
    """Check the options of ``thread list``.

    Raises:
        UsageError: A value does not fit; names the option.
    """
    for name, number in (("--limit", limit), ("--offset", offset)):
        if number is not None and number < 0:
            raise UsageError(f"{name}: {number} is less than 0")
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


def print_threads(context: CommandContext, ledger: Ledger, filters: Filters) -> None:
    """Print the threads the filters let through, newest first."""
    running = frozenset() if filters.trash else find_running(ledger.store)
    with Progress(context) as progress:
        # Long only where the lookup has to be made anew.
        progress.tell("reading threads")
        rows = _list_trash(ledger) if filters.trash else list_threads(ledger)
        sharing = {} if filters.trash else list_sharing(ledger.store, rows)
    fitting = [
        (row, status)
        for row in rows
        if _fits(row, filters)
        for status in (_status(row, running, sharing),)
        if filters.statuses is None or status in filters.statuses
    ]
    hides = filters.statuses is None and not filters.show_all and not filters.trash
    kept = [item for item in fitting if not (hides and item[1] in _HIDDEN)]
    end = None if filters.limit is None else filters.offset + filters.limit
    page = kept[filters.offset : end]
    _tell_hidden(context, len(fitting) - len(kept), is_empty=not page)
    _warn_corrupt(context, page)
    items = [
        row_payload(
            row, status=status, shared=sharing.get(row.thread, NOT_SHARED).shared
        )
        for row, status in page
    ]
    context.output.emit(
        {"items": items},
        lambda: _table(
            context.output, items, with_shared=not filters.trash and _has_remote(ledger)
        ),
    )
    if filters.trash and items:
        context.output.say("bring one back: uwf thread restore THREAD")


def _has_remote(ledger: Ledger) -> bool:
    return any(ledger.store.repo.remotes.names())


def _list_trash(ledger: Ledger) -> list[ThreadRow]:
    rows = []
    for name, oid in list_refs(ledger.store, TRASH_PREFIX).items():
        thread = name.removeprefix(TRASH_PREFIX)
        if not is_thread_id(thread):
            continue
        found = ThreadId(thread)
        try:
            state = read_tip(ledger.store, found, oid).state
            rows.append(ThreadRow(thread=found, commit=oid, state=state))
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


def _status(
    row: ThreadRow, running: frozenset[str], sharing: Mapping[ThreadId, Sharing]
) -> str:
    if row.state is None:
        return "earlier" if row.is_earlier else "corrupt"
    return status_of(
        row.state,
        running=row.thread in running,
        sharing=sharing.get(row.thread, NOT_SHARED),
    )


def _fits(row: ThreadRow, filters: Filters) -> bool:
    state = row.state
    if filters.workflow is not None:
        wanted = filters.workflow
        if state is None or wanted not in (state.workflow_name, state.workflow_hash):
            return False
    if filters.by is not None and (
        state is None or filters.by.casefold() not in state.started_by.casefold()
    ):
        return False
    if filters.after_ms is None and filters.before_ms is None:
        return True
    started = thread_time_ms(row.thread)
    after = filters.after_ms is None or started > filters.after_ms
    return after and (filters.before_ms is None or started < filters.before_ms)


def _tell_hidden(context: CommandContext, hidden: int, *, is_empty: bool) -> None:
    if not context.output.is_text:
        return
    if is_empty:
        context.output.say("no threads" + (" to show" if hidden else ""))
    if hidden:
        what = count_of(hidden, "ended or cancelled thread")
        context.output.say(f"{what} not shown (--all)")


def _warn_corrupt(
    context: CommandContext, page: Sequence[tuple[ThreadRow, str]]
) -> None:
    for row, _ in page:
        if row.problem is not None:
            what = "" if row.is_earlier else "is corrupt: "
            context.output.warn(f"thread {row.thread} {what}{row.problem}")


def _table(
    output: Output, items: Sequence[dict[str, Any]], *, with_shared: bool
) -> str:
    if not items:
        return ""
    columns = [
        Column(title="THREAD"),
        Column(title="WORKFLOW", flexible=True),
        Column(title="STATUS", status=True),
        Column(title="ROLE", flexible=True),
        *([Column(title="SHARED")] if with_shared else []),
        Column(title="STARTED"),
    ]
    # Where one column more would cost the names, the time of day gives way.
    is_narrow = output.width is not None and output.width < _WIDE
    rows = list(
        _rows(items, with_shared=with_shared, to_the_day=with_shared and is_narrow)
    )
    if not is_narrow:
        columns.append(Column(title="TASK", flexible=True))
        rows = [(*row, item["task"]) for row, item in zip(rows, items, strict=True)]
    return format_table(output, columns, rows)


def _rows(
    items: Sequence[dict[str, Any]], *, with_shared: bool, to_the_day: bool
) -> Iterator[tuple[str | None, ...]]:
    for item in items:
        started = format_time(item["startedAtMs"])
        yield (
            item["threadId"],
            item["workflowName"],
            item["status"],
            item["suspendedRole"] or item["currentRole"],
            *((item["shared"],) if with_shared else ()),
            started.partition(" ")[0] if to_the_day and started else started,
        )
