"""A thread whose step another did, whose step a third did: workflows and replies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.cli.seats import Seat

_ROLE: Final = """\
  {name}:
    description: Does it
    goal: You do it.
    capabilities: []
    procedure: Do it.
    output: What was done.
    frontmatter: {schema}
"""
_DELEGATED: Final = """\
  {name}:
    description: Done by another workflow
    workflow: {workflow}
    frontmatter: {schema}
"""
_SAID: Final = (
    "{{ properties: {{ $status: {{ const: {status} }} }}, required: [$status] }}"
)
_BUILT: Final = (
    "{ properties: { $status: { const: built }, what: { type: string } },"
    " required: [$status, what] }"
)


def _role(name: str, status: str) -> str:
    schema = _BUILT if status == "built" else _SAID.format(status=status)
    return _ROLE.format(name=name, schema=schema)


def _line(name: str, *roles: tuple[str, str, str]) -> str:
    """Write a workflow whose roles follow each other: name, status, how it is done."""
    parts = [f"version: 1\nname: {name}\ndescription: {name}\nroles:\n"]
    for role, status, workflow in roles:
        made = _DELEGATED.format(name=role, workflow=workflow, schema=_BUILT)
        parts.append(made if workflow else _role(role, status))
    first = roles[0][0]
    parts.append(
        "graph:\n  $START:\n"
        f'    new: {{ role: {first}, prompt: "Begin it." }}\n'
        f'    resume: {{ role: {first}, prompt: "Once more." }}\n'
    )
    following = [role for role, _, _ in roles[1:]] + ["$END"]
    for (role, status, _), target in zip(roles, following, strict=True):
        edge = f'{{ role: {target}, prompt: "After {role}." }}'
        parts.append(f"  {role}:\n    {status}: {edge}\n")
    return "".join(parts)


FILES: Final = {
    "deliver.yaml": _line(
        "deliver",
        ("preparer", "ready", ""),
        ("builder", "built", "build"),
        ("sender", "sent", ""),
    ),
    "build.yaml": _line("build", ("coder", "coded", ""), ("tester", "built", "probe")),
    "probe.yaml": _line("probe", ("prober", "built", "")),
    "replies.yaml": """\
replies:
  preparer: ["---\\n$status: ready\\n---\\nIt is prepared."]
  coder: ["---\\n$status: coded\\n---\\nCoded."]
  prober: ["---\\n$status: built\\nwhat: a tool\\n---\\nAll green."]
  sender: ["---\\n$status: sent\\n---\\nOff it goes."]
""",
    "asking.yaml": """\
replies:
  preparer: ["---\\n$status: ready\\n---\\nIt is prepared."]
  coder: ["---\\n$status: coded\\n---\\nCoded."]
  prober: ["---\\n$status: $SUSPEND\\nreason: 'Which?'\\n---\\nI ask."]
""",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Three threads, of which each did the second step of the one above it."""

    uwf: Seat
    parent: str
    child: str
    grandchild: str


def make_family(seat: Seat, *, replies: str = "replies.yaml") -> Family:
    """Run a thread whose second step a child did, whose second step another did."""
    for name, text in FILES.items():
        (seat.folder / name).write_text(text)
    started = seat.do("thread", "start", "deliver.yaml", "-p", "The task", "--json")
    parent: str = started.json["threadId"]
    seat("thread", "exec", parent, "--all", "--agent", f"scripted:{replies}")
    (child,) = seat.do("thread", "show", parent, "--json").json["children"]
    (grandchild,) = seat.do("thread", "show", child, "--json").json["children"]
    return Family(uwf=seat, parent=parent, child=child, grandchild=grandchild)


def reseat(
    family: Family, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Family:
    """Give a family that another test made to this one."""
    old = family.uwf
    seat = Seat(
        name=old.name,
        home=old.home,
        folder=Path(old.folder),
        monkeypatch=monkeypatch,
        capsys=capsys,
    )
    return Family(
        uwf=seat,
        parent=family.parent,
        child=family.child,
        grandchild=family.grandchild,
    )
