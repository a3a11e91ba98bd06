"""Changes made in the picture, as edits of the text; comments stay (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from uwfgit.constants import END, START
from uwfgit.errors import InvalidError
from uwfgit.model.yaml.apply_changes import rewrite_text
from uwfgit.model.yaml.core import read_yaml
from uwfgit.model.yaml.edit_marks import (
    drop,
    entries,
    is_list,
    is_map,
    items,
    make_mark,
    map_entries,
    map_items,
    put,
    rename,
    update,
    with_items,
    with_text,
)
from uwfgit.model.yaml.edits import EditError
from uwfgit.model.yaml.located import Mark

NEW_ROLE: Final[Mapping[str, Any]] = {
    "description": "What this role is for",
    "goal": "You …",
    "capabilities": [],
    "procedure": "How to go about it.",
    "output": "What to answer.",
    "frontmatter": {
        "oneOf": [
            {"properties": {"$status": {"const": "done"}}, "required": ["$status"]}
        ]
    },
}
PROMPT: Final = "Go on."


class Edge(Struct, frozen=True, kw_only=True):
    """An edge of the graph: its role, and its status or its place in a list."""

    role: str
    key: str | int
    target: str


class Drawn(Struct, frozen=True, kw_only=True):
    """What of a document the picture can change."""

    roles: tuple[str, ...]
    edges: tuple[Edge, ...]


def read_drawn(text: str) -> Drawn:
    """Read the roles and edges of a document, as far as it has any."""
    located, _ = read_yaml(text)
    root = located.mark if located is not None else None
    roles = tuple(entry.name for entry in entries(_child(root, "roles")))
    found = []
    for node in entries(_child(root, "graph")):
        targets: list[tuple[str | int, Mark]] = [
            (entry.name, entry.value) for entry in entries(node.value)
        ]
        targets += enumerate(items(node.value))
        for key, mark in targets:
            role = _child(mark, "role")
            if role is not None and isinstance(role.value, str):
                found.append(Edge(role=node.name, key=key, target=role.value))
    return Drawn(roles=roles, edges=tuple(found))


def _child(mark: Mark | None, name: str) -> Mark | None:
    return mark.child(name) if is_map(mark) and mark is not None else None


def rename_role(text: str, old: str, new: str) -> str:
    """Give a role another name, and lead all edges to it there.

    Raises:
        InvalidError: The text cannot be edited so, or the name is taken.
    """
    drawn = read_drawn(text)
    if not new or new in drawn.roles or new in {START, END}:
        raise InvalidError(f"'{new}' is not a free name for a role")

    def change(root: Mark) -> Mark:
        root = update(root, ("roles",), lambda mark: rename(mark, old, new))
        root = update(root, ("graph",), lambda mark: rename(mark, old, new))
        return _map_targets(
            root, lambda mark: with_text(mark, new) if mark.value == old else mark
        )

    return _edited(text, change)


def _map_targets(root: Mark, change: Callable[[Mark], Mark]) -> Mark:
    """Change where edges lead, all of them."""

    def target(mark: Mark) -> Mark:
        return update(mark, ("role",), change) if is_map(mark) else mark

    def node(mark: Mark) -> Mark:
        if is_list(mark):
            return map_items(mark, lambda _, item: target(item))
        return map_entries(mark, lambda entry: target(entry.value))

    return update(
        root, ("graph",), lambda mark: map_entries(mark, lambda e: node(e.value))
    )


def add_role(text: str, name: str) -> str:
    """Add a role that a person then fills in; it leads to the end.

    Raises:
        InvalidError: As :func:`rename_role`.
    """
    if not name or name in read_drawn(text).roles or name in {START, END}:
        raise InvalidError(f"'{name}' is not a free name for a role")

    def change(root: Mark) -> Mark:
        edge = {"done": {"role": END, "prompt": PROMPT}}
        root = update(
            root,
            ("roles",),
            lambda mark: put(mark, name, make_mark(dict(NEW_ROLE), mark)),
        )
        return update(
            root, ("graph",), lambda mark: put(mark, name, make_mark(edge, mark))
        )

    return _edited(text, change)


def delete_role(text: str, name: str) -> str:
    """Take a role and the edges that leave it away.

    Edges that lead to it stay, and are problems until they lead elsewhere.

    Raises:
        InvalidError: The text cannot be edited so.
    """

    def change(root: Mark) -> Mark:
        root = update(root, ("roles",), lambda mark: drop(mark, name))
        return update(root, ("graph",), lambda mark: drop(mark, name))

    return _edited(text, change)


def add_edge(text: str, role: str, status: str, target: str) -> str:
    """Add an edge from a role, for a status.

    Raises:
        InvalidError: There is one for that status, or the text cannot be edited so.
    """
    taken = {edge.key for edge in read_drawn(text).edges if edge.role == role}
    if not status or status in taken:
        raise InvalidError(f"'{status}' is not a free status of '{role}'")
    value = {"role": target, "prompt": PROMPT}

    def change(root: Mark) -> Mark:
        def into(node: Mark) -> Mark:
            if is_list(node):
                return with_items(node, [*items(node), make_mark(value, node)])
            return put(node, status, make_mark(value, node))

        graph = _child(root, "graph")
        if _child(graph, role) is not None:
            return update(root, ("graph", role), into)
        made = {status: value}
        return update(
            root, ("graph",), lambda mark: put(mark, role, make_mark(made, mark))
        )

    return _edited(text, change)


def delete_edge(text: str, edge: Edge) -> str:
    """Take an edge away.

    Raises:
        InvalidError: The text cannot be edited so.
    """

    def change(node: Mark) -> Mark:
        if is_list(node):
            kept = (item for at, item in enumerate(items(node)) if at != edge.key)
            return with_items(node, kept)
        return drop(node, str(edge.key))

    return _edited(text, lambda root: update(root, ("graph", edge.role), change))


def move_edge(text: str, edge: Edge, target: str) -> str:
    """Lead an edge to another role.

    Raises:
        InvalidError: The text cannot be edited so.
    """
    path = ("graph", edge.role, edge.key, "role")
    return _edited(
        text, lambda root: update(root, path, lambda mark: with_text(mark, target))
    )


def _edited(text: str, change: Callable[[Mark], Mark]) -> str:
    located, _ = read_yaml(text)
    if located is None:
        raise InvalidError("the text is not YAML: the picture cannot change it")
    old = located.mark
    try:
        done = rewrite_text(old.source, old, change(old))
    except EditError as exc:
        raise InvalidError(
            "the text is written so that this can be changed in it only"
        ) from exc
    if done.left:
        raise InvalidError("that stands in an included file", hint="edit that one")
    return done.text
