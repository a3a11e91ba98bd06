"""Check a registered workflow's branch: every version, from git alone."""

from __future__ import annotations

from typing import Final

from uwfgit.constants import FORMAT_VERSION
from uwfgit.errors import UwfError
from uwfgit.ids import Oid
from uwfgit.model.builtin import format_nodes
from uwfgit.model.message import format_message
from uwfgit.model.node import Node
from uwfgit.model.pinned import workflow_from_data
from uwfgit.model.rules import check_document
from uwfgit.model.workflow import workflow_nodes
from uwfgit.model.yamlcore import parse_yaml
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.layout import NODES, WORKFLOW_FILE, workflow_folder
from uwfgit.store.repository import Store
from uwfgit.sync.rawtree import BLOB, Objects, blob_oid, diff_trees
from uwfgit.sync.report import shown
from uwfgit.sync.shape import RawCommit, parse_commit, parse_message

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
    """Give the workflow node that a commit registers, or what is wrong with it."""
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
    if found != {path: blob_oid(each) for path, each in wanted.items()}:
        return "its files are not those that adding the workflow gives"
    for each in wanted.values():
        objects.read_known(blob_oid(each), each)
    if pinned.payload["name"] != name:
        return f"the workflow is called {shown(pinned.payload['name'])}"
    return _check_rules(data, name, pinned) if is_newest else pinned


def _check_rules(data: bytes, name: str, pinned: Node) -> Node | str:
    problems = check_document(parse_yaml(data), stem=name)
    errors = [problem for problem in problems if problem.severity == "error"]
    return f"the workflow does not hold: {errors[0]}" if errors else pinned


def _check_message(commit: RawCommit, name: str, pinned: Node | str) -> str | None:
    if isinstance(pinned, str):
        return pinned
    message = parse_message(commit.message)
    for event in ("add", "rollback"):
        trailers = [
            ("Uwf-Format", str(FORMAT_VERSION)),
            ("Uwf-Event", event),
            ("Uwf-Workflow", f"{pinned.hash} {blob_oid(pinned.data)}"),
        ]
        if format_message(f"{event} {name}", "", trailers) == message.text:
            return None
    return "its message is not that of a version"
