"""A workflow's graph as boxes and arrows, in the order a run meets them (pure).

What a picture shows of a graph is decided here; the modules beside this one only
write it down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from uwfgit.constants import END, START, SUSPEND
from uwfgit.model.findings import is_free
from uwfgit.model.picture.columns import cut, one_line
from uwfgit.model.picture.edge_counts import TakenEdge, Trips
from uwfgit.model.workflow.workflow import Edges, Workflow
from uwfgit.store.canonical import Json

NO_ROLE: Final = "(no such role)"
OTHERWISE: Final = "otherwise"
"""Label of an edge of a list that has no condition."""

TIMES: Final = "\N{MULTIPLICATION SIGN}"

BoxKind: TypeAlias = Literal["start", "role", "end", "suspend", "unknown"]


class Box(Struct, frozen=True, kw_only=True):
    """A node of the graph.

    ``workflow`` is what does the role, if no agent does. ``stuck`` means that no
    edges lead from it to ``$END``. ``visits`` counts a thread's steps, ``mark`` says
    what that thread is about to do there.
    """

    name: str
    kind: BoxKind
    reachable: bool
    workflow: str | None = None
    stuck: bool = False
    visits: int = 0
    mark: str | None = None

    @property
    def text(self) -> str:
        """What a picture writes in the box, on one line."""
        words = [one_line(self.name)]
        if self.workflow is not None:
            words.append(f"[{one_line(self.workflow)}]")
        if self.visits:
            words.append(f"{self.visits}{TIMES}")
        if self.kind == "unknown":
            words.append(NO_ROLE)
        if self.stuck:
            words.append("(no way to $END)")
        if self.mark:
            words.append(f"({self.mark})")
        return " ".join(words)


class Arrow(Struct, frozen=True, kw_only=True):
    """An edge. ``loop`` means that it leads back; ``count`` is how often it was taken.

    ``extra`` means that a thread took it and the graph does not have it.
    """

    source: str
    label: str
    target: str
    loop: bool
    count: int = 0
    extra: bool = False

    def text(self, width: int) -> str:
        """Return the label on one line, cut to a width, and its count."""
        label = cut(one_line(self.label), width)
        return f"{label} {self.count}{TIMES}" if self.count else label


class Chart(Struct, frozen=True, kw_only=True):
    """Boxes in reading order, those that nothing leads to last, and their arrows."""

    name: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


class _Link(Struct, frozen=True, kw_only=True):
    edge: TakenEdge
    label: str
    target: str


def chart_of(workflow: Workflow, trips: Trips | None = None) -> Chart:
    """Chart a workflow, with what a thread did in it if that is given."""
    links = [
        link for name, edges in workflow.graph.items() for link in _links(name, edges)
    ]
    roles = {name: role.workflow for name, role in workflow.roles.items()}
    return _arrange(workflow.name, roles, links, trips)


def _links(name: str, edges: Edges) -> Iterator[_Link]:
    if isinstance(edges, tuple):
        for index, choice in enumerate(edges):
            label = choice.when or OTHERWISE
            yield _Link(edge=(name, index), label=label, target=choice.role)
    else:
        for status, target in edges.items():
            yield _Link(edge=(name, status), label=status, target=target.role)


def chart_of_document(document: Json) -> Chart | None:
    """Chart a document that need not be a valid workflow; ``None`` without a graph."""
    if not isinstance(document, dict) or not isinstance(document.get("graph"), dict):
        return None
    graph = document["graph"]
    given = document.get("roles")
    roles: dict[str, str | None] = {}
    for name, role in (given if isinstance(given, dict) else {}).items():
        if not is_free(name):
            workflow = role.get("workflow") if isinstance(role, dict) else None
            roles[name] = workflow if isinstance(workflow, str) else None
    links = [
        link
        for name, node in graph.items()
        if not is_free(name)
        for link in _found_links(name, node)
    ]
    name = document.get("name")
    return _arrange(name if isinstance(name, str) else "", roles, links, None)


def _found_links(name: str, node: Json) -> Iterator[_Link]:
    items: Iterable[tuple[str | int, Json]] = ()
    if isinstance(node, dict):
        items = ((key, item) for key, item in node.items() if not is_free(key))
    elif isinstance(node, list):
        items = enumerate(node)
    for key, item in items:
        target = item.get("role") if isinstance(item, dict) else None
        if isinstance(target, str):
            when = item.get("when") or item.get("condition")
            label = key if isinstance(key, str) else when
            label = label if isinstance(label, str) else OTHERWISE
            yield _Link(edge=(name, key), label=label, target=target)


_Roles: TypeAlias = Mapping[str, str | None]
"""Role → the workflow that does it, if no agent does."""


def _arrange(
    name: str, roles: _Roles, links: Sequence[_Link], trips: Trips | None
) -> Chart:
    counts = trips.edges if trips else Counter[tuple[TakenEdge, str]]()
    known = {(link.edge, link.target) for link in links}
    extra = [
        _Link(edge=edge, label=str(edge[1]), target=target)
        for edge, target in counts
        if (edge, target) not in known
    ]
    every = [*links, *extra]
    order, reachable = _reading_order([*roles], every)
    place = {each: index for index, each in enumerate(order)}
    return Chart(
        name=name,
        boxes=tuple(_boxes(order, reachable, roles, every, trips)),
        arrows=tuple(
            Arrow(
                source=link.edge[0],
                label=link.label,
                target=link.target,
                loop=place[link.target] <= place[link.edge[0]]
                and (link.target in reachable) is (link.edge[0] in reachable),
                count=counts[link.edge, link.target],
                extra=number >= len(links),
            )
            for number, link in enumerate(every)
        ),
    )


def _boxes(
    order: Sequence[str],
    reachable: frozenset[str],
    roles: _Roles,
    links: Sequence[_Link],
    trips: Trips | None,
) -> Iterator[Box]:
    ending = _search([END], _turned(links))
    fixed: dict[str, BoxKind] = {START: "start", END: "end", SUSPEND: "suspend"}
    for name in order:
        kind = fixed.get(name, "role" if name in roles else "unknown")
        yield Box(
            name=name,
            kind=kind,
            reachable=name in reachable,
            workflow=roles.get(name),
            stuck=name in reachable and kind == "role" and name not in ending,
            visits=trips.visits[name] if trips else 0,
            mark=trips.mark if trips and trips.here == name else None,
        )


_Next: TypeAlias = Mapping[str, Sequence[str]]


def _forward(links: Iterable[_Link]) -> _Next:
    found: dict[str, list[str]] = {}
    for link in links:
        if link.edge[0] in {END, SUSPEND}:
            # A mistake, and no way on: a thread stops there.
            continue
        found.setdefault(link.edge[0], []).append(link.target)
    return found


def _turned(links: Iterable[_Link]) -> _Next:
    found: dict[str, list[str]] = {}
    for link in links:
        found.setdefault(link.target, []).append(link.edge[0])
    return found


def _search(names: Iterable[str], following: _Next) -> frozenset[str]:
    found = set(names)
    waiting = list(found)
    while waiting:
        for name in following.get(waiting.pop(), ()):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return frozenset(found)


def _reading_order(
    roles: Sequence[str], links: Sequence[_Link]
) -> tuple[list[str], frozenset[str]]:
    """Order the boxes so that arrows lead down unless they lead back.

    ``$END`` follows what can be reached, and what cannot be reached is last.
    """
    following = _forward(links)
    reachable = _search([START], following)
    named = dict.fromkeys(
        (START, *roles, *following, *(link.target for link in links), END)
    )
    last = [name for name in (END, SUSPEND) if name in reachable]
    lost = [name for name in named if name not in reachable and name != END]
    entered = {each for name in lost for each in following.get(name, ())}
    first = [name for name in lost if name not in entered]
    done: set[str] = {*last, END}
    order = _top_down([START], following, done)
    order += last
    order += _top_down([*first, *lost], following, done)
    return [*order, *(() if END in reachable else (END,))], reachable


def _top_down(names: Sequence[str], following: _Next, done: set[str]) -> list[str]:
    """Return what can be reached, each before what it leads to unless in a loop."""
    return [
        found
        for name in names
        if name not in done
        for found in _descend(name, following, done)
    ]


def _descend(name: str, following: _Next, done: set[str]) -> list[str]:
    # Depth first with a stack of our own: a chain of roles has no bound.
    left: list[str] = []
    done.add(name)
    stack = [(name, list(following.get(name, ())))]
    while stack:
        current, ahead = stack[-1]
        # The last first, so that the first stands right below in the end.
        inner = ahead.pop() if ahead else None
        if inner is None:
            left.append(current)
            stack.pop()
        elif inner not in done:
            done.add(inner)
            stack.append((inner, list(following.get(inner, ()))))
    return left[::-1]
