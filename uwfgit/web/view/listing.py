"""Threads as the first page lists them: found, filtered, in order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from uwfgit.ids import Hash, Oid, ThreadId, thread_time_ms
from uwfgit.model.ledger.kin import find_parents
from uwfgit.model.ledger.ledger import Ledger, ThreadRow, list_threads
from uwfgit.model.ledger.standing import find_running, list_sharing, status_of
from uwfgit.model.thread.sharing import NOT_SHARED
from uwfgit.model.thread.state import ThreadState

Order: TypeAlias = Literal["updated", "started", "steps", "tokens", "duration"]
ORDERS: Final = get_args(Order)
_MARKS: Final = re.compile(r"^\s*#{1,6}\s+")


class Line(Struct, frozen=True, kw_only=True):
    """A thread in the listing."""

    thread: ThreadId
    commit: Oid
    status: str
    state: ThreadState | None
    problem: str | None = None
    title: str = ""
    began: tuple[ThreadId, Hash] | None = None
    """The thread a step of which it was started for, and that one's head then."""
    parent: ThreadId | None = None
    """The thread here below which it stands: it did a step of that."""
    children: tuple[ThreadId, ...] = ()

    @property
    def started_ms(self) -> int:
        """When it began, of a corrupt one too."""
        return self.state.started_at_ms if self.state else thread_time_ms(self.thread)

    @property
    def updated_ms(self) -> int:
        """When something last happened to it."""
        return self.state.updated_at_ms if self.state else self.started_ms


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
    lines = (_MARKS.sub("", line).strip() for line in text.splitlines())
    return next((line for line in lines if line), "(no task)")


def list_lines(ledger: Ledger) -> tuple[Line, ...]:
    """Read all threads as they stand now, newest first."""
    rows = list_threads(ledger)
    running = find_running(ledger.store)
    sharing = list_sharing(ledger.store, rows)
    parents = find_parents(ledger, rows)
    children: dict[ThreadId, list[ThreadId]] = {}
    for child, parent in sorted(parents.items()):
        children.setdefault(parent, []).append(child)
    return tuple(
        Line(
            thread=row.thread,
            commit=row.commit,
            state=row.state,
            problem=row.problem,
            title=first_line(row.task) if row.task else "",
            began=row.parent,
            parent=parents.get(row.thread),
            children=tuple(children.get(row.thread, ())),
            status="corrupt"
            if row.state is None
            else status_of(
                row.state,
                running=row.thread in running,
                sharing=sharing.get(row.thread, NOT_SHARED),
            ),
        )
        for row in rows
    )


def answer(lines: Sequence[Line], question: Question) -> Listing:
    """Choose and order the threads that were asked for (pure)."""
    words = question.words.casefold().split()
    fitting = [
        line
        for line in lines
        if question.workflow in {"", _workflow_of(line)} and _has(line, words)
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
        below=dict(_list_below({line.thread: line for line in lines}, page)),
        found=len(fitting),
        total=len(list_tops(lines)),
        statuses=statuses,
        workflows=tuple(sorted({_workflow_of(line) for line in lines} - {""})),
    )


def list_tops(lines: Sequence[Line]) -> list[Line]:
    """Return the threads that did no step of another one of these."""
    among = {line.thread for line in lines}
    return [line for line in lines if line.parent not in among]


def list_families(lines: Sequence[Line]) -> list[Line]:
    """Return threads, each with those that did steps of it behind it."""
    known = {line.thread: line for line in lines}
    below = dict(_list_below(known, lines))
    ordered: list[Line] = []
    waiting = list_tops(lines)[::-1]
    while waiting:
        line = waiting.pop()
        ordered.append(line)
        waiting += below.get(line.thread, ())[::-1]
    return ordered


def _list_below(
    known: Mapping[ThreadId, Line], lines: Iterable[Line]
) -> Iterator[tuple[ThreadId, tuple[Line, ...]]]:
    for line in lines:
        found = tuple(known[child] for child in line.children if child in known)
        if found:
            yield line.thread, found
            yield from _list_below(known, found)


def _workflow_of(line: Line) -> str:
    return line.state.workflow_name if line.state else ""


def _has(line: Line, words: Sequence[str]) -> bool:
    if not words:
        return True
    state = line.state
    told = (
        (state.workflow_name, state.started_by, state.current_role or "")
        if state
        else ()
    )
    text = " ".join((line.thread, line.title, line.status, *told))
    text = text.casefold()
    return all(word in text for word in words)


_KEYS: Final = {
    "updated": lambda line: line.updated_ms,
    "started": lambda line: line.started_ms,
    "steps": lambda line: line.state.steps if line.state else 0,
    "tokens": lambda line: (
        line.state.usage.input_tokens + line.state.usage.output_tokens
        if line.state and line.state.usage
        else 0
    ),
    "duration": lambda line: (
        line.state.usage.duration_ms if line.state and line.state.usage else 0
    ),
}


def titles_of(lines: Iterable[Line]) -> dict[ThreadId, str]:
    """Return the tasks' first lines, by thread."""
    return {line.thread: line.title for line in lines}


def rows_of(lines: Iterable[Line]) -> list[ThreadRow]:
    """Return the rows that lines were made of."""
    return [
        ThreadRow(
            thread=line.thread,
            commit=line.commit,
            state=line.state,
            problem=line.problem,
            task=line.title or None,
            parent=line.began,
        )
        for line in lines
    ]
