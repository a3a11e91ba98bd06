"""A batch: a thread for each line of a file, and the same ones when it is run again.

A thread's id is made of its batch and its line, so whoever was stopped half-way
finds what it had begun. Nothing else has to be kept line by line.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from uwfgit.errors import InvalidError, Problem, StateError, StoreError, UwfError
from uwfgit.ids import Hash, ThreadId, mint_thread_id
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.workflow.inputs import Schemas, complete_inputs
from uwfgit.store.canonical import Json, normalise

_RANDOM_BYTES: Final = 10
_MOST_LINES: Final = 100_000


class Line(Struct, frozen=True, kw_only=True):
    """A line of a file of inputs: the task of a thread, and what else it is given."""

    number: int
    task: str
    values: Mapping[str, Json]


class Batch(Struct, frozen=True, kw_only=True):
    """What the ids of a batch's threads are made of, and the workflow they pin."""

    name: str
    workflow: Hash
    begun_ms: int
    seed: str

    def thread_ids(self, lines: tuple[Line, ...]) -> tuple[ThreadId, ...]:
        """Return the thread of each line.

        Of equal lines each has its own. A line keeps its thread when others come
        before it or go.
        """
        seen: Counter[str] = Counter()
        found = []
        for line in lines:
            text = json.dumps([line.task, normalise(dict(line.values))])
            seen[text] += 1
            key = f"{self.seed}\n{seen[text]}\n{text}"
            random = sha256(key.encode()).digest()[:_RANDOM_BYTES]
            found.append(mint_thread_id(self.begun_ms, random))
        return tuple(found)


def open_batch(ledger: Ledger, name: str, workflow: Hash) -> Batch:
    """Return the batch of a name, which is begun when there is none.

    Raises:
        StateError: It was begun with another workflow.
        StoreError: That it was begun cannot be kept.
    """
    text = ledger.local.find_batch(name)
    if text is not None:
        batch = Batch(**json.loads(text))
        if batch.workflow != workflow:
            raise StateError(
                f"batch '{name}' was begun with workflow {batch.workflow}, "
                f"and this is {workflow}",
                hint=f"go on with it: `uwf fleet map {shlex.quote(batch.workflow)} …`; "
                "or begin another with --name",
            )
        return batch
    facts: dict[str, Any] = {
        "name": name,
        "workflow": workflow,
        "begun_ms": ledger.now_ms(),
        "seed": ledger.random(16).hex(),
    }
    if not ledger.local.set_batch(name, json.dumps(facts)):
        raise StoreError(f"cannot keep that batch '{name}' has begun")
    return Batch(**facts)


def read_lines(text: str, *, task: str | None, schemas: Schemas) -> tuple[Line, ...]:
    """Read a file of inputs: on each line a JSON object of them, or a task as text.

    Args:
        text: The file's; empty lines are passed over.
        task: The task of a line that is an object.
        schemas: What the workflow asks for.

    Raises:
        InvalidError: With everything that is wrong, line by line.
    """
    rows = [(n, row) for n, row in enumerate(text.split("\n"), 1) if row.strip()]
    if not rows:
        raise InvalidError(
            "the file of inputs is empty", hint='write {"name": value} lines'
        )
    if len(rows) > _MOST_LINES:
        raise InvalidError(f"it has {len(rows):,} lines, more than {_MOST_LINES:,}")
    problems: list[Problem] = []
    lines = []
    for number, row in rows:
        try:
            value = normalise(json.loads(row, object_pairs_hook=_unique))
        except (ValueError, RecursionError) as exc:
            why = exc.msg if isinstance(exc, json.JSONDecodeError) else str(exc)
            problems.append(_problem(number, f"it is not JSON: {why}"))
            continue
        except UwfError as exc:
            problems.append(_problem(number, exc.message))
            continue
        found = list(_check(value, task, schemas))
        problems += [_problem(number, each.message, each) for each in found]
        if not found:
            is_text = isinstance(value, str)
            lines.append(
                Line(
                    number=number,
                    task=value if isinstance(value, str) else task or "",
                    values={} if is_text else complete_inputs(schemas, value)[0],
                )
            )
    if problems:
        raise InvalidError(problems)
    return tuple(lines)


def _check(value: Json, task: str | None, schemas: Schemas) -> Iterator[Problem]:
    if isinstance(value, str):
        if not value.strip():
            yield Problem(code="input", message="the task is empty")
        yield from complete_inputs(schemas, {})[1]
    elif isinstance(value, dict):
        if not (task or "").strip():
            message = "it has inputs and no task"
            yield Problem(code="input", message=message, hint="give one with -p TEXT")
        yield from complete_inputs(schemas, value)[1]
    else:
        message = "it is neither an object of inputs nor a task in quotes"
        yield Problem(code="input", message=message)


def _problem(number: int, message: str, of: Problem | None = None) -> Problem:
    return Problem(
        code="input",
        message=message,
        line=number,
        path=of.path if of else None,
        hint=of.hint if of else None,
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return value
