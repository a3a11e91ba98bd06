"""Which versions of a workflow are registered, by the oid of the pinned node.

Compared by oid, never by hash: a second content for a hash is quickly made.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.errors import CorruptError, NotFoundError, StoreError, UwfError
from uwfgit.ids import Oid
from uwfgit.model.ledger.registry import ORIGIN, format_version
from uwfgit.model.node import Node, format_nodes
from uwfgit.model.rules.check import check_document
from uwfgit.model.workflow.origin import is_kept_origin
from uwfgit.model.workflow.pinned import workflow_from_data
from uwfgit.model.workflow.workflow import workflow_nodes
from uwfgit.model.yaml.core import parse_yaml
from uwfgit.shell import quote_word
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import NODES, WORKFLOW_FILE, is_workflow_name, workflow_folder
from uwfgit.store.raw import BLOB, name_object
from uwfgit.store.refs import find_ref
from uwfgit.sync.verify.rawtree import Objects, diff_trees
from uwfgit.sync.verify.report import ThreadReport, plain_problem, shown
from uwfgit.sync.verify.shape import RawCommit, parse_commit, parse_message

_MAX_VERSIONS: Final = 10_000


def check_entries(store: Store, tip: Oid, name: str) -> str | None:
    """Say what is wrong with a workflow's branch; ``None`` when nothing is.

    Each commit must hold exactly what adding that workflow gives, and the
    newest version must keep the rules.
    """
    objects = Objects(store=store)
    try:
        return _check_chain(objects, tip, name)
    except UwfError as exc:
        return exc.message
    except RecursionError:
        return "it is nested too deeply to check"


def _check_chain(objects: Objects, tip: Oid, name: str) -> str | None:
    base = objects.genesis_tree()
    oid = tip
    for _ in range(_MAX_VERSIONS):
        if oid == GENESIS_OID:
            return "it has no version" if oid == tip else None
        commit = parse_commit(oid, objects.commit(oid))
        if len(commit.parents) != 1:
            return f"commit {oid} has {len(commit.parents)} parents"
        pinned = _check_version(objects, commit, base, name, is_newest=oid == tip)
        problem = _check_message(commit, name, pinned)
        if problem is not None:
            return f"commit {oid}: {problem}"
        oid = commit.parents[0]
    return f"it has more than {_MAX_VERSIONS} versions"


def _check_version(
    objects: Objects, commit: RawCommit, base: Oid, name: str, *, is_newest: bool
) -> Node | str:
    """Return the workflow node that a commit registers, or what is wrong with it."""
    folder = workflow_folder(name)
    changes = diff_trees(objects, base, commit.tree)
    file = changes.get(f"{folder}/{WORKFLOW_FILE}", (None, None))[1]
    if file is None:
        return f"it lacks {WORKFLOW_FILE}"
    data = objects.read(file, BLOB)
    *schemas, pinned = workflow_nodes(workflow_from_data(data))
    nodes = (*format_nodes(), *schemas, pinned)
    wanted = {f"{folder}/{NODES}/{node.name}": node.data for node in nodes}
    wanted[f"{folder}/{WORKFLOW_FILE}"] = data
    found = {path: new for path, (_, new) in changes.items()}
    if found != {path: name_object(BLOB, each) for path, each in wanted.items()}:
        return "its files are not those that adding the workflow gives"
    for each in wanted.values():
        objects.read_known(name_object(BLOB, each), each)
    if pinned.payload["name"] != name:
        return f"the workflow is called {shown(pinned.payload['name'])}"
    problems = check_document(parse_yaml(data), stem=name) if is_newest else ()
    errors = [problem for problem in problems if problem.severity == "error"]
    return f"the workflow does not hold: {errors[0]}" if errors else pinned


def _check_message(commit: RawCommit, name: str, pinned: Node | str) -> str | None:
    if isinstance(pinned, str):
        return pinned
    message = parse_message(commit.message)
    origin = message.trailers.get(ORIGIN)
    if origin is not None and not is_kept_origin(origin):
        return f"{shown(origin)} is not where a workflow can come from"
    oid = name_object(BLOB, pinned.data)
    for event in ("add", "rollback"):
        text = format_version(event, name, pinned.hash, oid, origin=origin)
        if text == message.text:
            return None
    return "its message is not that of a version"


_BRANCHES: Final = ("refs/heads/workflow/", "refs/uwf/workflow/")
_MOST: Final = 10_000
_PAIR: Final = 2


class Versions(Struct, frozen=True, kw_only=True):
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
    tip = None
    for prefix in _BRANCHES:
        with suppress(StoreError):
            tip = tip or find_ref(store, prefix + name)
    objects, found = Objects(store=store), list[list[str]]()
    while tip is not None and tip != GENESIS_OID and len(found) < _MOST:
        try:
            commit = parse_commit(tip, objects.commit(tip))
            message = parse_message(commit.message)
        except CorruptError:
            break
        pinned = message.trailers.get("Uwf-Workflow", "").split(" ")
        if len(pinned) == _PAIR:
            found.append(pinned)
        tip = commit.parents[0]
    return Versions(
        name=name,
        oids=tuple(Oid(oid) for _, oid in found),
        hashes=tuple(hash_ for hash_, _ in found),
    )


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
    message = f"its workflow is not a registered version of {shown(name)}"
    problem = plain_problem(report.tip, "workflow", message)
    return replace(report, problems=(*report.problems, problem))


def diverged_versions_hint(store: Store, name: str) -> str:
    """Say how to go on with a workflow that two people registered versions of."""
    mine, name = find_versions(store, name).hashes, quote_word(name)
    again = f", then yours again: uwf workflow rollback {name} {mine[0]}"
    return (
        "both registered versions; to go on from theirs: "
        f"uwf workflow rm {name} && uwf pull --workflows"
        f"{again if mine else ''}"
    )
