"""Which versions of a workflow are registered, by the oid of the pinned node.

Compared by oid, never by hash: a second content for a hash is quickly made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from uwfgit.errors import CorruptError, NotFoundError, StoreError
from uwfgit.ids import Oid
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.layout import is_workflow_name
from uwfgit.store.refs import find_ref
from uwfgit.store.repository import Store
from uwfgit.sync.rawtree import Objects
from uwfgit.sync.report import ThreadReport, plain_problem, shown
from uwfgit.sync.shape import parse_commit, parse_message

_BRANCHES: Final = ("refs/heads/workflow/", "refs/uwf/workflow/")
_MOST: Final = 10_000
_PAIR: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """The registered versions of a workflow; the current one first."""

    name: str
    oids: tuple[Oid, ...] = ()
    hashes: tuple[str, ...] = ()


def find_versions(store: Store, name: str) -> Versions:
    """Read a workflow's branch, as far as it can be read.

    Works in a code repository too, where the branches stand elsewhere.
    """
    if not is_workflow_name(name):
        return Versions(name=name)
    tips = (_find(store, prefix + name) for prefix in _BRANCHES)
    tip = next((tip for tip in tips if tip), None)
    found = _read(store, tip) if tip else []
    return Versions(
        name=name,
        oids=tuple(Oid(oid) for _, oid in found),
        hashes=tuple(pinned for pinned, _ in found),
    )


def _find(store: Store, ref: str) -> Oid | None:
    try:
        return find_ref(store, ref)
    except StoreError:
        return None


def _read(store: Store, tip: Oid) -> list[tuple[str, str]]:
    objects, oid = Objects(store=store), tip
    found: list[tuple[str, str]] = []
    while oid != GENESIS_OID and len(found) < _MOST:
        try:
            commit = parse_commit(oid, objects.commit(oid))
            message = parse_message(commit.message)
        except CorruptError:
            break
        pinned = message.trailers.get("Uwf-Workflow", "").split(" ")
        if len(pinned) == _PAIR:
            found.append((pinned[0], pinned[1]))
        oid = commit.parents[0]
    return found


def compare_version(
    versions: Versions, report: ThreadReport
) -> Literal["known", "older", "unknown"]:
    """Say how the workflow that a thread pins stands to the registered ones."""
    if report.workflow_oid not in versions.oids:
        return "unknown"
    return "known" if report.workflow_oid == versions.oids[0] else "older"


def require_version(store: Store, report: ThreadReport, name: str) -> ThreadReport:
    """Add a problem when a thread pins no version of a registered workflow.

    Raises:
        NotFoundError: No such workflow is registered.
    """
    versions = find_versions(store, name)
    if not versions.oids:
        raise NotFoundError("workflow", name, hint="is it registered there?")
    if report.workflow_oid in versions.oids:
        return report
    message = f"its workflow is no registered version of {shown(name)}"
    problem = plain_problem(report.tip, "workflow", message)
    return replace(report, problems=(*report.problems, problem))


def diverged_versions_hint(store: Store, name: str) -> str:
    """Say how to go on with a workflow that two people registered versions of."""
    mine = find_versions(store, name).hashes
    again = f", then yours again: uwf workflow rollback {name} {mine[0]}"
    return (
        "both registered versions; to go on from theirs: "
        f"uwf workflow rm {name} && uwf pull --workflows"
        f"{again if mine else ''}"
    )
