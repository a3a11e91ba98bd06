"""What a button of the editor does to the text (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeVar

from uwfgit.errors import InvalidError
from uwfgit.web.edit.redraw import (
    Edge,
    add_edge,
    add_role,
    delete_edge,
    delete_role,
    move_edge,
    read_drawn,
    rename_role,
)

T = TypeVar("T")

_ACT: Final = re.compile(r"([a-z-]+)(?:\.(\d{1,4}))?")


def act_on(text: str, act: str, fields: Mapping[str, str]) -> str:
    """Do what a button says, with what its inputs hold.

    Roles and edges are named by their place, so that no name needs to be written
    into a form.

    Raises:
        InvalidError: It cannot be done, or the button is none of ours.
    """
    match = _ACT.fullmatch(act)
    if match is None:
        raise InvalidError(f"'{act}' is not an act of the editor")
    drawn, name = read_drawn(text), match[1]
    at = int(match[2]) if match[2] else None
    if name == "add-role":
        return add_role(text, fields.get("new-role", "").strip())
    if name in {"rename-role", "delete-role", "add-edge"}:
        return _with_role(text, name, _at(drawn.roles, at), at, fields)
    if name in {"delete-edge", "move-edge"}:
        return _with_edge(text, name, _at(drawn.edges, at), at, fields)
    raise InvalidError(f"'{act}' is not an act of the editor")


def _at(found: tuple[T, ...], at: int | None) -> T:
    if at is None or at >= len(found):
        raise InvalidError("the text has changed since; look again")
    return found[at]


def _with_role(
    text: str, act: str, role: str, at: int | None, fields: Mapping[str, str]
) -> str:
    if act == "rename-role":
        return rename_role(text, role, fields.get(f"name.{at}", "").strip())
    if act == "delete-role":
        return delete_role(text, role)
    status = fields.get(f"status.{at}", "").strip()
    return add_edge(text, role, status, fields.get(f"target.{at}", ""))


def _with_edge(
    text: str, act: str, edge: Edge, at: int | None, fields: Mapping[str, str]
) -> str:
    if act == "delete-edge":
        return delete_edge(text, edge)
    return move_edge(text, edge, fields.get(f"to.{at}", ""))
