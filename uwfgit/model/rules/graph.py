"""Rules R* and G*: which roles there are, and where the graph leads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, TypeAlias

from uwfgit.constants import END, NEW, RESUME, START, SUSPEND
from uwfgit.model.findings import RuleFindings, is_free, list_names
from uwfgit.model.rules.shape import Draft, DraftEdge

FindSyntaxError: TypeAlias = Callable[[str], str | None]
"""Says what is wrong with an expression."""


def check_conditions(found: RuleFindings, find_syntax_error: FindSyntaxError) -> None:
    """Report rule S13.

    Whether an expression can be read depends on what is installed, so this is
    for checks that a person asks for, never for reading a workflow.
    """
    document = found.doc.value
    graph = document.get("graph") if isinstance(document, dict) else None
    for name, node in (graph if isinstance(graph, dict) else {}).items():
        edges = node if isinstance(node, list) and not is_free(name) else ()
        for index, edge in enumerate(edges):
            when = edge.get("when") if isinstance(edge, dict) else None
            wrong = find_syntax_error(when) if isinstance(when, str) else None
            if wrong is not None:
                message = f"the condition is no JSONata: {wrong}"
                hint = "see https://docs.jsonata.org"
                found.add("S13", ("graph", name, index, "when"), message, hint=hint)


_MAX_GROUPED: Final = 100


def check_graph(
    found: RuleFindings, draft: Draft, *, incomplete: Collection[str]
) -> None:
    """Report rules R2, R3 and G*.

    A name that is nearly another's counts as the other from then on, so that a
    slip of the pen is one problem.

    Args:
        found: Where problems go.
        draft: The document's parts.
        incomplete: Roles some of whose edges are known to be missing.
    """
    if not draft.has_graph:
        return
    meant = _check_nodes(found, draft) if draft.has_roles else {}
    _check_start(found, draft)
    unknown = _check_targets(found, draft)
    is_list = START in draft.listed
    # The engine takes no other edge of '$START'.
    taken = (NEW, RESUME)
    starts = [e for e in draft.nodes.get(START, ()) if is_list or e.status in taken]
    has_new = is_list or any(edge.status == NEW for edge in starts)
    if not (draft.whole and draft.has_roles and has_new):
        return
    steps = {
        meant.get(name, name): _targets(edges, unknown)
        for name, edges in draft.nodes.items()
        if name not in (END, SUSPEND)
    }
    steps[START] = _targets(starts, unknown)
    _check_reachable(found, draft, steps, unknown)
    nowhere = (name for name, similar in unknown.items() if similar is None)
    without = (role for role in draft.roles if not steps.get(role))
    _check_end(found, draft, steps, {END, SUSPEND, *incomplete, *nowhere, *without})


def _check_nodes(found: RuleFindings, draft: Draft) -> dict[str, str]:
    """Compare the graph's nodes with the roles; give what misspelt ones mean."""
    without = [role for role in draft.roles if role not in draft.nodes]
    meant: dict[str, str] = {}
    for name in draft.nodes:
        if name in draft.roles or name == START:
            continue
        if name == END:
            message = "'$END' cannot have edges"
            hint = "remove the node: $END is a target only"
            found.add("G3", ("graph", name), message, hint=hint, key=True)
        elif name == SUSPEND:
            message = "'$SUSPEND' is not a graph node"
            hint = "remove it: any role may report $status: $SUSPEND at any time"
            found.add("G4", ("graph", name), message, hint=hint, key=True)
        else:
            similar = found.find_similar(name, without)
            if similar is not None:
                meant[name] = similar
                without.remove(similar)
            hint = (
                f"did you mean '{similar}'?"
                if similar
                else "remove it, or add the role"
            )
            message = f"graph node '{name}' is not a role"
            found.add("R2", ("graph", name), message, hint=hint, key=True)
    for role in without:
        message = f"role '{role}' has no graph node"
        hint = f"add '{role}:' with an edge for each of its statuses to the graph"
        found.add("R3", ("roles", role), message, hint=hint, key=True)
    return meant


def _check_start(found: RuleFindings, draft: Draft) -> None:
    if START not in draft.nodes:
        hint = "add '$START:' with the edges 'new' and 'resume'"
        found.add("G1", ("graph",), "the graph has no '$START'", hint=hint, key=True)
        return
    # A node of the wrong type was reported; a list has no statuses.
    if START in draft.listed or not isinstance(found.doc.value["graph"][START], dict):
        return
    statuses = [edge.status for edge in draft.nodes[START]]
    path = ("graph", START)
    if NEW not in statuses:
        hint = "add 'new: { role: …, prompt: … }'"
        found.add("G1", path, "'$START' lacks 'new'", hint=hint, key=True)
    if RESUME not in statuses:
        message = "'$START' lacks 'resume'"
        hint = "add it: how a thread that ended goes on"
        found.add("G2", path, message, hint=hint, key=True, severity="warning")


def _check_targets(found: RuleFindings, draft: Draft) -> dict[str, str | None]:
    """Report targets that are none; give what each unknown name may mean."""
    unknown: dict[str, str | None] = {}
    known = {**draft.roles, END: {}}
    for edge in (edge for edges in draft.nodes.values() for edge in edges):
        if edge.role == SUSPEND:
            message = "'$SUSPEND' is not a target"
            hint = f"let '{edge.source}' report $status: $SUSPEND instead"
            found.add("G5", (*edge.path, "role"), message, hint=hint)
        elif edge.role is not None and draft.has_roles and edge.role not in known:
            similar = found.find_similar(edge.role, known)
            unknown[edge.role] = similar
            hint = f"did you mean '{similar}'?" if similar else "name a role, or $END"
            message = f"the edge leads to '{edge.role}', which is not a role"
            found.add("G6", (*edge.path, "role"), message, hint=hint)
    return unknown


def _targets(edges: Iterable[DraftEdge], unknown: Mapping[str, str | None]) -> set[str]:
    names = {edge.role for edge in edges if edge.role is not None}
    return {unknown.get(name) or name for name in names}


def _reach(start: Iterable[str], steps: Mapping[str, Collection[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(start)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(steps.get(name, ()))
    return reached


def _check_reachable(
    found: RuleFindings,
    draft: Draft,
    steps: Mapping[str, Collection[str]],
    unknown: Mapping[str, str | None],
) -> None:
    """Report roles nothing leads to, each with those only it leads to."""
    reached = _reach([START], steps)
    # An edge to nowhere probably meant one of the roles that nothing leads to.
    nowhere = len([n for n, m in unknown.items() if m is None and n in reached])
    cut_off = [role for role in draft.roles if role not in reached and role in steps]
    # Following each of many would take time by the square of their number.
    is_few = len(cut_off) <= _MAX_GROUPED
    for role in _first_ones(cut_off, steps) if is_few else cut_off:
        if nowhere > 0:
            nowhere -= 1
            continue
        after = _reach([role], steps) if is_few else set[str]()
        behind = sorted((after - reached - {role}).intersection(cut_off))
        more = f", nor is what only it leads to: {list_names(behind)}" if behind else ""
        message = f"role '{role}' cannot be reached from $START{more}"
        hint = "let an edge lead to it, or remove it"
        found.add("G7", ("roles", role), message, hint=hint, key=True)


def _first_ones(names: list[str], steps: Mapping[str, Collection[str]]) -> list[str]:
    """Return a few of the names from which all of them can be reached."""
    behind = {name: _reach([name], steps) for name in names}
    first: list[str] = []
    for name in names:
        before = [other for other in names if name in behind[other] and other != name]
        circle = [other for other in before if other in behind[name]]
        if before == circle and not any(other in first for other in circle):
            first.append(name)
    return first


def _check_end(
    found: RuleFindings,
    draft: Draft,
    steps: Mapping[str, Collection[str]],
    leads_out: Collection[str],
) -> None:
    """Report roles that run for ever.

    Args:
        found: Where the problem goes.
        draft: The document's parts.
        steps: What each node leads to.
        leads_out: ``$END``, and names that a problem reported elsewhere keeps
            from leading to it.
    """
    back: dict[str, set[str]] = {}
    for name, targets in steps.items():
        for target in targets:
            back.setdefault(target, set()).add(name)
    ending = _reach(leads_out, back)
    reached = _reach([START], steps)
    stuck = [role for role in draft.roles if role in reached and role not in ending]
    if stuck:
        found.add(
            "G8",
            ("graph", stuck[0]),
            f"$END cannot be reached from {list_names(stuck)}",
            hint="let one of their edges lead to $END",
            key=True,
            severity="warning",
        )
