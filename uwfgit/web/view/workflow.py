"""A workflow as a page shows it: pinned by threads, or registered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff

from msgspec import Struct, field

from uwfgit.errors import NotFoundError, UwfError
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.ledger.registry import (
    Version,
    list_workflows,
    load_registered,
    workflow_history,
)
from uwfgit.model.workflow.workflow import Workflow
from uwfgit.web.view.listing import Line


class WorkflowView(Struct, frozen=True, kw_only=True):
    """A workflow's page; ``versions`` of the registry, newest first."""

    workflow: Workflow
    hash: Hash
    source: str
    """The file's text, where it is known."""
    versions: tuple[Version, ...] = ()
    threads: Mapping[ThreadId, str] = field(default_factory=dict)
    """The titles of those that pin it, newest first."""


class WorkflowLine(Struct, frozen=True, kw_only=True):
    """A workflow in the listing."""

    name: str
    hash: Hash | None
    description: str
    versions: int
    threads: int
    problem: str | None = None


def view_registered(
    ledger: Ledger, name: str, version: Hash | None, lines: Sequence[Line]
) -> WorkflowView:
    """Read a registered workflow, by default its newest version.

    Raises:
        NotFoundError, CorruptError: As the registry says.
    """
    found = load_registered(ledger, name, version)
    return WorkflowView(
        workflow=found.workflow,
        hash=found.version.hash,
        source=found.data.decode("utf-8", "replace"),
        versions=workflow_history(ledger, name),
        threads=pinned_by(lines, found.version.hash),
    )


def version_diff(ledger: Ledger, name: str, version: Hash | None) -> str:
    """Compare a registered version's file with the one before it.

    Raises:
        NotFoundError: There is no such version.
    """
    history = workflow_history(ledger, name)
    at = next((i for i, each in enumerate(history) if each.hash == version), None)
    if at is None:
        raise NotFoundError("workflow", f"{name}@{version}")
    texts = [
        load_registered(ledger, name, each.hash).data.decode("utf-8", "replace")
        for each in history[at : at + 2]
    ]
    after, before = texts[0], texts[1] if len(texts) > 1 else ""
    lines = unified_diff(
        before.splitlines(), after.splitlines(), "before", "after", lineterm=""
    )
    return "\n".join(lines)


def pinned_by(lines: Sequence[Line], workflow: Hash) -> dict[ThreadId, str]:
    """Return the titles of the threads that pin a workflow."""
    return {line.thread: line.title for line in lines if line.pinned == workflow}


def list_registered(ledger: Ledger, lines: Sequence[Line]) -> tuple[WorkflowLine, ...]:
    """List the registered workflows; a damaged one is a line with its problem."""
    counts: dict[str, int] = {}
    for line in lines:
        counts[line.workflow] = counts.get(line.workflow, 0) + 1
    return tuple(_line(ledger, name, counts) for name in list_workflows(ledger))


def _line(ledger: Ledger, name: str, counts: dict[str, int]) -> WorkflowLine:
    try:
        found = load_registered(ledger, name)
        versions = len(workflow_history(ledger, name))
    except UwfError as exc:
        return WorkflowLine(
            name=name,
            hash=None,
            description="",
            versions=0,
            threads=counts.get(name, 0),
            problem=exc.message,
        )
    return WorkflowLine(
        name=name,
        hash=found.version.hash,
        description=found.workflow.description,
        versions=versions,
        threads=counts.get(name, 0),
    )
