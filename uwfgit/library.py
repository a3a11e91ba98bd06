"""The library's entrance: a store opened from Python, to read threads and keep nodes.

It stands on the command line's own composition root, so a program finds the same
store, and commits under the same name, as ``uwf`` in the same place would.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import Struct

from uwfgit.cli.check.limited import DEFAULT_LIMITS, verify_limited
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.options import GlobalOptions
from uwfgit.cli.store.nodes import load_named_node, resolve_type, walk_nodes
from uwfgit.errors import NotFoundError
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.ledger.keep import check_nodes, put_nodes
from uwfgit.model.ledger.ledger import Ledger, find_tip
from uwfgit.model.mask import mask_warnings
from uwfgit.model.node import Node, make_node
from uwfgit.model.thread.derive import output_file, task_file
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.state import ThreadState
from uwfgit.model.thread.step import Step
from uwfgit.store.canonical import Json
from uwfgit.store.repository import init_store
from uwfgit.sync.verify.report import ThreadReport


class Thread(Struct, frozen=True, kw_only=True, dict=True):
    """A thread as it was when it was asked for."""

    _record: Record

    @property
    def id(self) -> ThreadId:
        """Its name."""
        return self._record.tip.thread

    @property
    def state(self) -> ThreadState:
        """What ``thread.json`` says: status, workflow, head, usage and the rest."""
        return self._record.tip.state

    @property
    def task(self) -> str:
        """What it was started with."""
        return self._record.start.prompt

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Its steps, the first one first.

        Raises:
            CorruptError: A node of one is missing or damaged.
        """
        return self._record.steps()

    @property
    def outputs(self) -> tuple[Mapping[str, Json], ...]:
        """The structured answer of each step."""
        return tuple(step.output for step in self.steps)

    @property
    def text(self) -> str:
        """The task and each step's answer, as markdown; whole, however long."""
        parts = [f"# {self.id}\n\n{task_file(self.task).decode()}"]
        for step in self.steps:
            answer = output_file(step.output, step.body).decode()
            parts.append(f"## {step.number} {step.role}\n\n{answer}")
        return "\n".join(parts)


class Store:
    """An open store; a context manager that lets its files go."""

    def __init__(self, context: CommandContext, ledger: Ledger) -> None:
        self._context = context
        self._ledger = ledger

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the store's files go."""
        self._context.closing.close()

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._ledger.store.path

    def threads(self) -> tuple[Thread, ...]:
        """List the threads, the newest first.

        Raises:
            CorruptError: One is damaged; ``uwf thread list`` shows which.
        """
        rows = self._ledger.lookup.list_threads()
        names = sorted((row.thread for row in rows), reverse=True)
        return tuple(self._read(name) for name in names)

    def thread(self, name: str) -> Thread:
        """Return a thread by its id, a unique part of it, or ``@last``.

        Raises:
            NotFoundError, AmbiguousError: No thread has that name, or several.
            CorruptError: It is damaged.
        """
        return self._read(find_tip(self._ledger, name).thread)

    def _read(self, name: ThreadId) -> Thread:
        store = self._ledger.store
        return Thread(_record=open_record(store, name))

    def put(self, node_type: str, payload: Json) -> Hash:
        """Keep a node until it is dropped, and return its hash.

        It is on disk afterwards. Many at once are written by :meth:`put_many` in the
        time of a few. Secrets that are known here are masked, with a warning.

        Args:
            node_type: The hash of a schema, or a name: ``text``, ``schema``.
            payload: What it holds.

        Raises:
            InvalidError: The payload does not fit its type.
            NotFoundError: The store has no such type.
            ConflictError: Another writer was in the way all the time.
        """
        return self.put_many([(node_type, payload)])[0]

    def put_many(self, nodes: Iterable[tuple[str, Json]]) -> tuple[Hash, ...]:
        """Keep many nodes as one commit, all or none, and return their hashes.

        Args:
            nodes: Pairs of type and payload, as for :meth:`put`.

        Raises:
            InvalidError, NotFoundError, ConflictError: As there.
        """
        found: set[str] = set()
        mask = self._context.masker.mask_value
        made = [
            make_node(resolve_type(kind), mask(payload, found))
            for kind, payload in nodes
        ]
        for warning in mask_warnings(found):
            warnings.warn(warning, stacklevel=2)
        check_nodes(self._ledger, made)
        put_nodes(self._ledger, made)
        return tuple(node.hash for node in made)

    def get(self, name: str, *, thread: str | None = None) -> Node:
        """Return a node by its hash, compared with it.

        Args:
            name: The hash.
            thread: Look into this thread only.

        Raises:
            NotFoundError: There is none.
            AmbiguousError: Threads hold different contents; choose one.
            CorruptError: It is damaged.
        """
        return load_named_node(self._ledger, name, thread=thread)

    def walk(self, name: str, *, thread: str | None = None) -> Iterator[Node]:
        """Return a node and all it links to, each once, the nearest first.

        Raises:
            NotFoundError, AmbiguousError, CorruptError: As :meth:`get`.
        """
        root = self.get(name, thread=thread)
        return walk_nodes(self._ledger, root, thread=thread)

    def verify(self, *threads: str) -> tuple[ThreadReport, ...]:
        """Prove threads from git alone, by default all; problems are in the reports.

        The check runs in a process of its own, with limits to time and memory.

        Raises:
            NotFoundError, AmbiguousError: No thread has that name, or several.
        """
        named = [find_tip(self._ledger, name).thread for name in threads]
        return verify_limited(
            self._ledger.store,
            named or None,
            environment=self._context.environment,
            limits=DEFAULT_LIMITS,
        )


def open_store(
    path: str | os.PathLike[str] | None = None, *, create: bool = False
) -> Store:
    """Open a store to read threads and keep nodes.

    Args:
        path: Where it is. By default the one that ``uwf`` would use here:
            ``UWF_STORE``, that of the repository around the working directory, or
            the user's own.
        create: Make it when there is none.

    Raises:
        NotFoundError: There is none.
        UntrustedError: It was not made or trusted on this machine.
        StoreError: It cannot be used.
    """
    options = GlobalOptions(store=None if path is None else os.fspath(path), quiet=True)
    context = CommandContext(
        options=options, environment=dict(os.environ), command="a Python program"
    )
    place = context.store_choice
    if not place.path.exists():
        if not create:
            raise NotFoundError("store", str(place.path), hint=place.init_hint)
        init_store(place.path, home=context.home)
    return Store(context, context.open_ledger(write=True))
