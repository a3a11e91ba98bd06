"""A batch: a thread for each line of a file, and the same ones when it is run again.

A thread's id is made of its batch and its line, so whoever was stopped half-way
finds what it had begun. Nothing else has to be kept line by line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.errors import InvalidError, Problem, StateError, StoreError, UwfError
from uwfgit.ids import Hash, ThreadId, mint_thread_id
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.schema.messages import shorten
from uwfgit.model.workflow.inputs import Schemas, complete_inputs
from uwfgit.shell import quote_word
from uwfgit.store.canonical import Json, normalise

_RANDOM_BYTES: Final = 10
_MOST_LINES: Final = 100_000
_VALUE_CHARS: Final = 60
_TITLE_CHARS: Final = 100
"""Less than listings show of a task."""


class Line(Struct, frozen=True, kw_only=True):
    """A line of a file of inputs: the task of a thread, and what else it is given."""

    number: int
    task: str
    values: Mapping[str, Json]
    title: str | None = None
    """What tells it from the other lines, where the task does not."""

    @property
    def prompt(self) -> str:
        """What its thread is asked to do; the first line is what listings show."""
        return self.task if self.title is None else f"{self.title}\n\n{self.task}"


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
                hint=f"go on with it: `uwf fleet map {quote_word(batch.workflow)} …`; "
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
    given: list[Mapping[str, Json]] = []
    for number, row in rows:
        try:
            value = _read(row, task, schemas)
        except InvalidError as exc:
            problems += [replace(each, line=number) for each in exc.problems]
            continue
        if isinstance(value, str):
            given.append({})
            lines.append(Line(number=number, task=value, values={}))
        else:
            given.append({name: value[name] for name in schemas if name in value})
            values = complete_inputs(schemas, value)[0]
            lines.append(Line(number=number, task=task or "", values=values))
    if problems:
        raise InvalidError(problems)
    titles = _list_titles(given)
    return tuple(
        replace(line, title=title) for line, title in zip(lines, titles, strict=True)
    )


def _read(row: str, task: str | None, schemas: Schemas) -> Json:
    """Read a line: a task, or inputs.

    Raises:
        InvalidError: With everything that is wrong.
    """
    try:
        value = normalise(json.loads(row, object_pairs_hook=_unique))
    except (ValueError, RecursionError) as exc:
        why = exc.msg if isinstance(exc, json.JSONDecodeError) else str(exc)
        raise InvalidError([_problem(f"it is not JSON: {why}")]) from exc
    except UwfError as exc:
        raise InvalidError([_problem(exc.message)]) from exc
    if isinstance(value, str):
        problems = [] if value.strip() else [_problem("the task is empty")]
        problems += complete_inputs(schemas, {})[1]
    elif isinstance(value, dict):
        no_task = _problem("it has inputs and no task", hint="give one with -p TEXT")
        problems = [] if (task or "").strip() else [no_task]
        problems += complete_inputs(schemas, value)[1]
    else:
        message = "it is neither an object of inputs nor a task in quotes"
        raise InvalidError([_problem(message)])
    if problems:
        raise InvalidError(problems)
    return value


def _problem(message: str, *, hint: str | None = None) -> Problem:
    return Problem(code="input", message=message, hint=hint)


def _list_titles(given: Sequence[Mapping[str, Json]]) -> Iterator[str | None]:
    """Yield what tells each line from the others: the values that not all share."""
    first = given[0]
    shared = {
        name
        for name, value in first.items()
        if len(given) > 1 and all(name in g and g[name] == value for g in given)
    }
    for values in given:
        own = {name: v for name, v in values.items() if name not in shared} or values
        texts = {
            name: shorten(_as_text(value), _VALUE_CHARS) for name, value in own.items()
        }
        is_one = len(texts) == 1
        parts = texts.values() if is_one else map("=".join, texts.items())
        yield shorten(", ".join(parts), _TITLE_CHARS) or None


def _as_text(value: Json) -> str:
    is_text = isinstance(value, str) and value.strip()
    return str(value) if is_text else json.dumps(value, ensure_ascii=False)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return value
