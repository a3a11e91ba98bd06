"""Which edges a thread took, read off its steps (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from uwfgit.constants import END, NEW, RESUME, START, SUSPEND
from uwfgit.model.template.render import TemplateError, render
from uwfgit.model.thread.state import ThreadState
from uwfgit.model.thread.step import Step
from uwfgit.model.workflow.workflow import Target, Workflow
from uwfgit.store.canonical import Json

TakenEdge: TypeAlias = tuple[str, str | int]
"""A node of the graph, and a status there, or a place in its list."""


class Trips(Struct, frozen=True, kw_only=True):
    """How often a thread took each edge, and met each role.

    ``here`` is where it is, ``mark`` what it does there.
    """

    edges: Counter[tuple[TakenEdge, str]]
    visits: Counter[str]
    here: str | None
    mark: str | None


def trips_of(workflow: Workflow, state: ThreadState, steps: Sequence[Step]) -> Trips:
    """Follow a thread through its graph.

    Args:
        workflow: What the thread pins, or another one to see it in.
        state: The thread's state.
        steps: Its logical chain, oldest first.
    """
    walk = _Walk(workflow=workflow)
    for step in steps:
        walk.go(step)
    walk.arrive(_next_role(state))
    here, mark = _position(state)
    return Trips(edges=walk.edges, visits=walk.visits, here=here, mark=mark)


def _position(state: ThreadState) -> tuple[str | None, str | None]:
    if state.status == "idle":
        return state.current_role, "next"
    if state.status == "suspended":
        return state.suspended_role, "waits"
    return (END, "reached") if state.status == "end" else (None, None)


def _next_role(state: ThreadState) -> str | None:
    """Return where the newest step led, as far as the thread has gone there."""
    if state.status == "end":
        return END
    if state.status == "idle":
        return state.current_role
    is_lost = (state.suspend_message or "").startswith("routing: ")
    return None if is_lost else state.suspended_role


class _Walk(Struct, kw_only=True):
    workflow: Workflow
    edges: Counter[tuple[TakenEdge, str]] = field(default_factory=Counter)
    visits: Counter[str] = field(default_factory=Counter)
    last: Step | None = None
    """The newest step that is no ``$SUSPEND``."""
    entered: bool = False
    """Whether the edge to the next step was taken before, by one that waited."""

    def go(self, step: Step) -> None:
        self.arrive(step.role, step.edge_prompt)
        self.visits[step.role] += 1
        self.entered = step.status == SUSPEND
        if self.entered:
            self._count((step.role, SUSPEND), SUSPEND)
        else:
            self.last = step

    def arrive(self, role: str | None, prompt: str | None = None) -> None:
        """Count the edge to a role, unless it was counted before a wait."""
        if role is None or self.entered:
            return
        if self.last is None:
            self._count(self._edge_from_start(NEW, role, prompt), role)
            return
        edge = self._edge_to(self.last, role, prompt)
        target = self._target(edge)
        if target is not None and target.role == END != role:
            # The thread was at its end and was taken up again.
            self._count(edge, END)
            self._count(self._edge_from_start(RESUME, role, prompt), role)
        else:
            self._count(edge, role)

    def _count(self, edge: TakenEdge, target: str) -> None:
        self.edges[edge, target] += 1

    def _target(self, edge: TakenEdge) -> Target | None:
        node = self.workflow.graph.get(edge[0])
        if isinstance(node, tuple):
            return node[edge[1]] if isinstance(edge[1], int) else None
        return node.get(str(edge[1])) if node is not None else None

    def _edge_from_start(self, status: str, role: str, prompt: str | None) -> TakenEdge:
        node = self.workflow.graph.get(START)
        if not isinstance(node, tuple):
            return START, status
        index = _entry_of(node, role, prompt, {})
        return START, status if index is None else index

    def _edge_to(self, step: Step, role: str, prompt: str | None) -> TakenEdge:
        node = self.workflow.graph.get(step.role)
        if not isinstance(node, tuple):
            return step.role, step.status or "-"
        values = {**step.output, "_body": step.body.strip()}
        index = _entry_of(node, role, prompt, values)
        if index is None:
            index = _entry_of(node, END, None, values)
        return step.role, step.status or "-" if index is None else index


def _entry_of(
    node: Sequence[Target], role: str, prompt: str | None, values: Mapping[str, Json]
) -> int | None:
    """Find the entry of a list that led to a role.

    Why an entry was chosen is not recorded, only what it said.
    """
    fitting = [i for i, target in enumerate(node) if target.role == role]
    for index in fitting if len(fitting) > 1 else ():
        if _says(node[index], values, prompt):
            return index
    return fitting[0] if fitting else None


def _says(target: Target, values: Mapping[str, Json], prompt: str | None) -> bool:
    try:
        rendered = render(target.prompt, values)
    except TemplateError:
        return False
    return rendered.text == prompt
