"""Every edge of a workflow, gone at least once with made-up answers (pure)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from uwfgit.constants import END, NEW, RESUME, START, STATUS
from uwfgit.engine.madeup import make_up_output
from uwfgit.engine.moderator import Routed, route
from uwfgit.engine.plan import injected_values
from uwfgit.engine.simulate import THREAD, SimulatedStep
from uwfgit.model.trips import Edge
from uwfgit.model.workflow import Target, Workflow
from uwfgit.store.canonical import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The walks, and the edges that no walk can take."""

    steps: tuple[SimulatedStep, ...]
    edges: int
    left: tuple[str, ...]


def cover_edges(workflow: Workflow, *, task: str) -> Coverage:
    """Walk from ``$START`` until every edge that can be taken was taken.

    A walk that reaches ``$END`` goes on at ``$START``'s ``resume`` once. The
    conditions of a list are not asked: each of its entries is an edge.
    """
    walker = _Walker(workflow=workflow, task=task, edges=_list_edges(workflow))
    walker.left = set(walker.edges)
    while walker.walk():
        pass
    left = [_name(edge) for edge in walker.edges if edge in walker.left]
    return Coverage(
        steps=tuple(walker.steps), edges=len(walker.edges), left=tuple(left)
    )


def _name(edge: Edge) -> str:
    source, key = edge
    return f"{source} {key if isinstance(key, str) else f'[{key}]'}"


def _list_edges(workflow: Workflow) -> dict[Edge, Target]:
    found: dict[Edge, Target] = {}
    for name, node in workflow.graph.items():
        if isinstance(node, tuple):
            found.update({(name, index): target for index, target in enumerate(node)})
        else:
            found.update({(name, status): target for status, target in node.items()})
    return found


@dataclass(slots=True, kw_only=True)
class _Walker:
    workflow: Workflow
    task: str
    edges: Mapping[Edge, Target]
    left: set[Edge] = field(default_factory=set)
    steps: list[SimulatedStep] = field(default_factory=list)
    walks: int = 0

    def walk(self) -> bool:
        """Go one walk; tell whether it took an edge that no other had taken."""
        before = len(self.left)
        self.walks += 1
        steps: list[SimulatedStep] = []
        edge: Edge | None = (START, NEW)
        while edge is not None and edge in self.edges:
            self.left.discard(edge)
            if steps and edge[0] != START:
                steps[-1] = replace(steps[-1], status=_status(edge))
            step = self._step(edge, len(steps) + 1)
            steps.append(step)
            role = self.edges[edge].role
            edge = None if step.error else self._choose(role)
        if len(self.left) < before:
            self.steps += steps
        return len(self.left) < before

    def _choose(self, role: str) -> Edge | None:
        """Choose an edge nobody took, or the first of a way to one."""
        for path in self._paths(role):
            if path[-1] in self.left:
                return path[0]
        return None

    def _paths(self, role: str) -> Iterator[tuple[Edge, ...]]:
        """Give the ways from a role, the shortest first, one to each edge."""
        waiting: deque[tuple[str, tuple[Edge, ...]]] = deque([(role, ())])
        seen = {role}
        while waiting:
            name, path = waiting.popleft()
            for edge in self._leaving(name):
                yield (*path, edge)
                target = self.edges[edge].role
                if target not in seen:
                    seen.add(target)
                    waiting.append((target, (*path, edge)))

    def _leaving(self, name: str) -> list[Edge]:
        if name == END:
            return [(START, RESUME)] if (START, RESUME) in self.edges else []
        return [edge for edge in self.edges if edge[0] == name]

    def _step(self, edge: Edge, number: int) -> SimulatedStep:
        target = self.edges[edge]
        full = self._render(edge, required_only=False)
        bare = self._render(edge, required_only=True)
        step = SimulatedStep(
            number=number,
            role=target.role,
            prompt="",
            walk=self.walks,
            edge=(edge[0], _label(edge, target)),
        )
        if isinstance(full, str):
            return replace(step, error=full)
        lacking = bare.missing if isinstance(bare, Routed) else ()
        return replace(
            step,
            prompt=full.prompt,
            location=full.location,
            missing=full.missing,
            optional=tuple(name for name in lacking if name not in full.missing),
            warnings=(f"with optional fields left out: {bare}",)
            if isinstance(bare, str)
            else (),
        )

    def _render(self, edge: Edge, *, required_only: bool) -> Routed | str:
        """Render an edge's prompt by itself, whatever leads to it."""
        source, key = edge
        role = self.workflow.roles.get(source)
        status = key if isinstance(key, str) else None
        output: dict[str, Json] = {STATUS: status}
        if role is not None:
            output = make_up_output(role.schema, status, required_only=required_only)
        target = replace(self.edges[edge], when=None)
        graph = {source: {status: target} if status is not None else (target,)}
        body = "" if source == START else f"<what {source} wrote>"
        injected = injected_values(body, task=self.task, thread=THREAD)
        routed = route(graph, source, output, injected=injected)
        return routed if isinstance(routed, Routed) else routed.message


def _status(edge: Edge) -> str | None:
    return edge[1] if isinstance(edge[1], str) else None


def _label(edge: Edge, target: Target) -> str:
    return str(edge[1]) if isinstance(edge[1], str) else target.when or "otherwise"
