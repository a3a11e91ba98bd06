"""Threads as the first page lists them: found, filtered, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.ids import Hash, Oid, ThreadId, thread_time_ms
from uwfgit.model.ledger.kin import find_parents
from uwfgit.model.ledger.ledger import Ledger, ThreadRow, iter_threads
from uwfgit.model.ledger.standing import find_running, status_of
from uwfgit.model.thread.hold import find_hold
from uwfgit.model.thread.step import Usage
from uwfgit.model.thread.tip import Sharing, compare_sharing
from uwfgit.model.wording import without_mark
from uwfgit.store.handle import Store
from uwfgit.store.refs import list_tracked

Order: TypeAlias = Literal["updated", "started", "steps", "tokens", "duration"]
ORDERS: Final = get_args(Order)


# A server keeps ten thousand of them: what a listing needs, and nothing else.
class Line(Struct, frozen=True, kw_only=True, gc=False):
    """A thread in the listing; one that is corrupt has a problem and no workflow."""

    thread: ThreadId
    commit: Oid
    status: str
    problem: str | None = None
    title: str = ""
    workflow: str = ""
    pinned: Hash | None = None
    """The workflow's hash."""
    role: str | None = None
    """Whose turn it is, or was when it was suspended."""
    retry_at_ms: int | None = None
    is_held: bool = False
    """Whether the supervisor holds it."""
    steps: int = 0
    usage: Usage | None = None
    started_ms: int
    updated_ms: int
    started_by: str = ""
    fork_of: ThreadId | None = None
    fork_at: int = 0
    """The step that it left the other thread after."""
    began_for: ThreadId | None = None
    """The thread a step of which it was started for."""
    parent: ThreadId | None = None
    """The thread here below which it stands: it did a step of that."""
    children: tuple[ThreadId, ...] = ()


class Question(Struct, frozen=True, kw_only=True):
    """What is asked for: words, a status, a workflow, an order, a page."""

    words: str = ""
    status: str = ""
    workflow: str = ""
    order: Order = "updated"
    offset: int = 0
    limit: int = 50


class Listing(Struct, frozen=True, kw_only=True):
    """One page of an answer, and how much there is of everything."""

    question: Question
    lines: tuple[Line, ...]
    below: Mapping[ThreadId, tuple[Line, ...]]
    """What is folded into a thread: those that did steps of it, oldest first."""
    found: int
    total: int
    statuses: Mapping[str, int]
    workflows: tuple[str, ...]


def first_line(text: str) -> str:
    """Return the first line of a text that says something."""
    lines = map(without_mark, text.splitlines())
    return next((line for line in lines if line), "(no task)")


def list_lines(ledger: Ledger) -> tuple[Line, ...]:
    """Read all threads as they stand now, newest first."""
    running = find_running(ledger.store)
    tracked = list_tracked(ledger.store)
    lines = [
        _line(
            ledger.store,
            row,
            running=row.thread in running,
            sharing=compare_sharing(
                ledger.store, row.commit, tracked.get(row.thread, {})
            ),
        )
        for row in iter_threads(ledger)
    ]
    parents = find_parents(ledger, lines)
    children: dict[ThreadId, list[ThreadId]] = {}
    for child, parent in sorted(parents.items()):
        children.setdefault(parent, []).append(child)
    for number, line in enumerate(lines):
        if line.thread in parents or line.thread in children:
            lines[number] = replace(
                line,
                parent=parents.get(line.thread),
                children=tuple(children.get(line.thread, ())),
            )
    return tuple(lines)


def _line(store: Store, row: ThreadRow, *, running: bool, sharing: Sharing) -> Line:
    state, title = row.state, first_line(row.task) if row.task else ""
    if state is None:
        began = thread_time_ms(row.thread)
        return Line(
            thread=row.thread,
            commit=row.commit,
            status="corrupt",
            problem=row.problem,
            title=title,
            started_ms=began,
            updated_ms=began,
        )
    origin = state.forked_from
    return Line(
        thread=row.thread,
        commit=row.commit,
        status=status_of(state, running=running, sharing=sharing),
        title=title,
        workflow=state.workflow_name,
        pinned=state.workflow_hash,
        role=state.current_role or state.suspended_role,
        retry_at_ms=state.retry_at_ms,
        is_held=find_hold(store, row.commit, state) is not None,
        steps=state.steps,
        usage=state.usage,
        started_ms=state.started_at_ms,
        updated_ms=state.updated_at_ms,
        started_by=state.started_by,
        fork_of=row.fork_of,
        fork_at=origin.number if origin else 0,
        began_for=row.began_for,
    )


def answer(lines: Sequence[Line], question: Question) -> Listing:
    """Choose and order the threads that were asked for (pure)."""
    words = question.words.casefold().split()
    fitting = [
        line
        for line in lines
        if question.workflow in {"", line.workflow} and _has(line, words)
    ]
    statuses: dict[str, int] = {}
    for line in list_tops(fitting):
        statuses[line.status] = statuses.get(line.status, 0) + 1
    if question.status:
        fitting = [line for line in fitting if line.status == question.status]
    fitting = list_tops(fitting)
    fitting.sort(key=_KEYS[question.order], reverse=True)
    end = question.offset + question.limit
    page = tuple(fitting[question.offset : end])
    return Listing(
        question=question,
        lines=page,
        below=dict(_list_below(_find_lower(lines), page)),
        found=len(fitting),
        total=len(list_tops(lines)),
        statuses=statuses,
        workflows=tuple(sorted({line.workflow for line in lines} - {""})),
    )


def list_tops(lines: Sequence[Line]) -> list[Line]:
    """Return the threads that did no step of another one of these."""
    above = {line.parent for line in lines} - {None}
    # Few of ten thousand: a set of all would be the listing's largest part.
    among = {line.thread for line in lines if line.thread in above}
    return [line for line in lines if line.parent not in among]


def list_families(lines: Sequence[Line]) -> list[Line]:
    """Return threads, each with those that did steps of it behind it."""
    below = dict(_list_below(_find_lower(lines), lines))
    ordered: list[Line] = []
    waiting = list_tops(lines)[::-1]
    while waiting:
        line = waiting.pop()
        ordered.append(line)
        waiting += below.get(line.thread, ())[::-1]
    return ordered


def _find_lower(lines: Iterable[Line]) -> dict[ThreadId, Line]:
    return {line.thread: line for line in lines if line.parent is not None}


def _list_below(
    known: Mapping[ThreadId, Line], lines: Iterable[Line]
) -> Iterator[tuple[ThreadId, tuple[Line, ...]]]:
    for line in lines:
        found = tuple(known[child] for child in line.children if child in known)
        if found:
            yield line.thread, found
            yield from _list_below(known, found)


def _has(line: Line, words: Sequence[str]) -> bool:
    if not words:
        return True
    told = (line.workflow, line.started_by, line.role or "")
    text = " ".join((line.thread, line.title, line.status, *told))
    text = text.casefold()
    return all(word in text for word in words)


_KEYS: Final = {
    "updated": lambda line: line.updated_ms,
    "started": lambda line: line.started_ms,
    "steps": lambda line: line.steps,
    "tokens": lambda line: (
        line.usage.input_tokens + line.usage.output_tokens if line.usage else 0
    ),
    "duration": lambda line: line.usage.duration_ms if line.usage else 0,
}


def titles_of(lines: Iterable[Line]) -> dict[ThreadId, str]:
    """Return the tasks' first lines, by thread."""
    return {line.thread: line.title for line in lines}
