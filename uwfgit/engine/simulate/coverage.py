"""Every edge of a workflow, gone at least once with made-up answers (pure)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.constants import END, NEW, RESUME, START, STATUS
from uwfgit.engine.decide.moderator import Routed, make_router
from uwfgit.engine.simulate.simulate import THREAD, SimulatedStep
from uwfgit.model.picture.edge_counts import TakenEdge
from uwfgit.model.schema.subschema import MAX_SCHEMA_DEPTH
from uwfgit.model.schema.variants import find_variants, merge_forms
from uwfgit.model.workflow.workflow import Choice, Edges, Target, Workflow
from uwfgit.store.canonical import Json

_FORMATS: Final = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "email": "somebody@example.org",
    "ocas_ref": "0123456789ABC",
    "time": "12:00:00Z",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_ITEMS: Final = 2
"""How many items a list gets, so that what stands between them is seen."""


def list_statuses(schema: Json) -> tuple[str, ...]:
    """Name what a role with this schema can report; none when it fixes none."""
    return tuple(dict.fromkeys(each.status for each in find_variants(schema)))


def make_up_output(
    schema: Json, status: str | None, *, required_only: bool = False
) -> dict[str, Json]:
    """Make up an output.

    Args:
        schema: The role's schema.
        status: The status it reports; ``None`` for a role that reports none.
        required_only: Leave out the fields that may be left out.
    """
    of_status = (each for each in find_variants(schema) if each.status == status)
    fields = next(of_status, None) or merge_forms(schema)
    output: dict[str, Json] = {} if status is None else {STATUS: status}
    for name, inner in fields.properties.items():
        if name != STATUS and (name in fields.required or not required_only):
            output[name] = make_up_value(inner, name, required_only=required_only)
    return output


def make_up_value(
    schema: Json, name: str, *, required_only: bool = False, depth: int = 0
) -> Json:
    """Make up a value of a schema; ``name`` says what it is."""
    if not isinstance(schema, Mapping) or depth > MAX_SCHEMA_DEPTH:
        return f"<{name}>"
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    kind = _kind(schema)
    if kind == "object":
        return _make_up_mapping(schema, name, required_only=required_only, depth=depth)
    if kind == "array":
        return _make_up_list(schema, name, required_only=required_only, depth=depth)
    return _make_up_scalar(schema, kind, name, required_only=required_only, depth=depth)


def _kind(schema: Mapping[str, Json]) -> str:
    types = schema.get("type")
    listed = [types] if isinstance(types, str) else types
    for each in listed if isinstance(listed, list) else ():
        if each != "null":
            return str(each)
    if listed:
        return "null"
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else ""


def _make_up_mapping(
    schema: Mapping[str, Json], name: str, *, required_only: bool, depth: int
) -> Json:
    form = merge_forms(schema)
    if not form.properties:
        return {name: f"<{name}>"}
    return {
        key: make_up_value(inner, key, required_only=required_only, depth=depth + 1)
        for key, inner in form.properties.items()
        if key in form.required or not required_only
    }


def _make_up_list(
    schema: Mapping[str, Json], name: str, *, required_only: bool, depth: int
) -> Json:
    most = schema.get("maxItems")
    count = min(_ITEMS, most) if isinstance(most, int) else _ITEMS
    return [
        make_up_value(
            schema.get("items"),
            f"{name} {number}",
            required_only=required_only,
            depth=depth + 1,
        )
        for number in range(1, count + 1)
    ]


def _make_up_scalar(
    schema: Mapping[str, Json], kind: str, name: str, *, required_only: bool, depth: int
) -> Json:
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    if kind in {"integer", "number"}:
        least = schema.get("minimum", 1)
        return least if isinstance(least, int | float) else 1
    for key in ("oneOf", "anyOf", "allOf"):
        branches = schema.get(key)
        listed = branches if isinstance(branches, list) else []
        usable = [
            branch
            for branch in listed
            if isinstance(branch, Mapping) and branch.get("type") != "null"
        ]
        if not kind and usable:
            return make_up_value(
                usable[0], name, required_only=required_only, depth=depth + 1
            )
    return _FORMATS.get(str(schema.get("format")), f"<{name}>")


class Coverage(Struct, frozen=True, kw_only=True):
    """The walks, and the edges that no walk can take."""

    steps: tuple[SimulatedStep, ...]
    edges: int
    left: tuple[str, ...]


def make_up_inputs(
    schemas: Mapping[str, Json], given: Mapping[str, Json]
) -> dict[str, Json]:
    """Return what is given for inputs, with what is missing made up."""
    made = {name: make_up_value(schema, name) for name, schema in schemas.items()}
    return {**made, **given}


def cover_edges(
    workflow: Workflow, *, task: str, inputs: Mapping[str, Json] | None = None
) -> Coverage:
    """Walk from ``$START`` until every edge that can be taken was taken.

    A walk that reaches ``$END`` goes on at ``$START``'s ``resume`` once. The
    conditions of a list are not asked: each of its entries is an edge.
    """
    edges: dict[TakenEdge, Target] = {
        (name, key): target
        for name, node in workflow.graph.items()
        for key, target in (
            enumerate(node) if isinstance(node, tuple) else node.items()
        )
    }
    walker = _Walker(workflow=workflow, task=task, inputs=inputs, edges=edges)
    walker.left = set(walker.edges)
    while walker.walk():
        pass
    left = [
        f"{source} {key if isinstance(key, str) else f'[{key}]'}"
        for source, key in walker.edges
        if (source, key) in walker.left
    ]
    return Coverage(
        steps=tuple(walker.steps), edges=len(walker.edges), left=tuple(left)
    )


class _Walker(Struct, kw_only=True):
    workflow: Workflow
    task: str
    inputs: Mapping[str, Json] | None
    edges: Mapping[TakenEdge, Target]
    left: set[TakenEdge] = field(default_factory=set)
    steps: list[SimulatedStep] = field(default_factory=list)
    walks: int = 0

    def walk(self) -> bool:
        """Go one walk; tell whether it took an edge that no other had taken."""
        before = len(self.left)
        self.walks += 1
        steps: list[SimulatedStep] = []
        # Of a list's edges one that leads further, where a new thread has none.
        is_plain = (START, NEW) in self.edges
        edge: TakenEdge | None = (START, NEW) if is_plain else self._choose(START)
        while edge is not None and edge in self.edges:
            self.left.discard(edge)
            if steps and edge[0] != START:
                status = edge[1] if isinstance(edge[1], str) else None
                steps[-1] = replace(steps[-1], status=status)
            step = self._step(edge, len(steps) + 1)
            steps.append(step)
            role = self.edges[edge].role
            edge = None if step.error else self._choose(role)
        if len(self.left) < before:
            self.steps += steps
        return len(self.left) < before

    def _choose(self, role: str) -> TakenEdge | None:
        """Choose an edge nobody took, or the first of a way to one."""
        for path in self._paths(role):
            if path[-1] in self.left:
                return path[0]
        return None

    def _paths(self, role: str) -> Iterator[tuple[TakenEdge, ...]]:
        """Yield the ways from a role, the shortest first, one to each edge."""
        waiting: deque[tuple[str, tuple[TakenEdge, ...]]] = deque([(role, ())])
        seen = {role}
        while waiting:
            name, path = waiting.popleft()
            for edge in self._leaving(name):
                yield (*path, edge)
                target = self.edges[edge].role
                if target not in seen:
                    seen.add(target)
                    waiting.append((target, (*path, edge)))

    def _leaving(self, name: str) -> list[TakenEdge]:
        if name == END and (START, NEW) in self.edges:
            return [(START, RESUME)] if (START, RESUME) in self.edges else []
        if name == END:
            name = START
        return [edge for edge in self.edges if edge[0] == name]

    def _step(self, edge: TakenEdge, number: int) -> SimulatedStep:
        target, key = self.edges[edge], edge[1]
        when = target.when if isinstance(target, Choice) else None
        label = key if isinstance(key, str) else when or "otherwise"
        full = self._render(edge, required_only=False)
        bare = self._render(edge, required_only=True)
        step = SimulatedStep(
            number=number,
            role=target.role,
            prompt="",
            walk=self.walks,
            edge=(edge[0], label),
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

    def _render(self, edge: TakenEdge, *, required_only: bool) -> Routed | str:
        """Render an edge's prompt by itself, whatever leads to it."""
        source, key = edge
        role = self.workflow.roles.get(source)
        status = key if isinstance(key, str) else None
        output: dict[str, Json] = {STATUS: status}
        if role is not None:
            output = make_up_output(role.schema, status, required_only=required_only)
        target = self.edges[edge]
        edges: Edges = {status: target} if status is not None else ()
        if isinstance(target, Choice):
            edges = (replace(target, when=None),)
        alone = replace(self.workflow, graph={source: edges})
        body = "" if source == START else f"<what {source} wrote>"
        follow = make_router(
            alone, body, (), task=self.task, thread=THREAD, inputs=self.inputs
        )
        routed = follow(source, output)
        return routed if isinstance(routed, Routed) else routed.message
