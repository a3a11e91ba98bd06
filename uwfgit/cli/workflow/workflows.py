"""What a workflow argument means; the one function every command uses for it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from uwfgit.cli.frame.context import CommandContext
from uwfgit.errors import InvalidError, NotFoundError
from uwfgit.ids import Hash, find_hash
from uwfgit.model.ledger.ledger import Ledger, find_node
from uwfgit.model.ledger.registry import load_registered
from uwfgit.model.node import WORKFLOW_TYPE
from uwfgit.model.workflow.document import workflow_document
from uwfgit.model.workflow.source import (
    is_path,
    list_workflow_files,
    name_of,
    read_workflow,
    resolve_workflow,
)
from uwfgit.model.workflow.workflow import Workflow, workflow_from_node, workflow_nodes
from uwfgit.model.yaml.dump import dump_yaml
from uwfgit.shell import quote_word
from uwfgit.spelling import find_similar


class FoundWorkflow(Struct, frozen=True, kw_only=True):
    """A workflow, the bytes a thread keeps of it, and where it was found."""

    workflow: Workflow
    data: bytes
    hash: Hash
    source: str
    origin: str | None = None
    """Which commit elsewhere a registered one came from."""


def find_ledger(context: CommandContext) -> Ledger | None:
    """Open the store when there is one: a workflow of a file needs none."""
    return context.open_ledger() if context.store_choice.path.exists() else None


def find_workflow(
    context: CommandContext, ledger: Ledger | None, argument: str
) -> FoundWorkflow:
    """Find a workflow by hash, path, name of a file near here, or registered name.

    Args:
        ledger: ``None`` when there is no store; then files only are looked for.

    Raises:
        NotFoundError: Nothing has that name.
        WorkflowError: It was found, but does not hold together.
    """
    name = argument.strip()
    if not name:
        raise InvalidError("the workflow's name is empty")
    if ledger is not None:
        by_hash = _find_by_hash(ledger, name)
        if by_hash is not None:
            return by_hash
    path = resolve_workflow(
        name,
        # An absolute path, or a name, is found from anywhere.
        cwd=context.folder or Path("/"),
        workflow_paths=context.settings.workflow_paths,
    )
    if path is not None:
        return read_workflow_file(path)
    if ledger is not None:
        try:
            return _load_registered(ledger, name)
        except NotFoundError as exc:
            hint = _find_hint(context, name)
            if exc.kind != "workflow" or hint is None:
                raise
            raise NotFoundError("workflow", name, hint=hint) from exc
    places = "give a path, a file's name in .workflows/, or register one: "
    hint = _find_hint(context, name) or f"{places}uwf workflow add"
    raise NotFoundError("workflow", name, hint=hint)


def find_child(
    context: CommandContext, ledger: Ledger | None, name: str, *, beside: str
) -> Workflow:
    """Find the workflow that a role of another is done by.

    Args:
        beside: Where the other was found; a file's folder is looked in last.

    Raises:
        NotFoundError: Nothing has that name.
        WorkflowError: It was found, but does not hold together.
    """
    try:
        return find_workflow(context, ledger, name).workflow
    except NotFoundError as exc:
        for ending in (".yaml", ".yml"):
            path = Path(beside).with_name(name + ending)
            if exc.kind == "workflow" and Path(beside).is_file() and path.is_file():
                return read_workflow_file(path).workflow
        raise


def _find_hint(context: CommandContext, name: str) -> str | None:
    """Return what may be meant by a name that nothing has: a file, or an example."""
    from uwfgit.cli.workflow.examples import list_examples

    found = list_workflow_files(
        cwd=context.folder or Path("/"),
        workflow_paths=context.settings.workflow_paths,
    )
    near = find_similar(name, [each for each, _, _ in found])
    if near:
        return f"did you mean '{near}'?"
    with suppress(NotFoundError):
        if all(name != each.name for each in list_examples()):
            return None
        return f"begin with the example: uwf workflow new --from {quote_word(name)}"
    return None


def find_file(context: CommandContext, argument: str) -> Path:
    """Find a workflow file by its path, or by its name as all commands do.

    Raises:
        NotFoundError: There is none.
    """
    path = context.resolve(argument)
    is_there = path.exists() or path.is_symlink()
    found = resolve_workflow(
        str(path) if is_there else name_of(path),
        cwd=context.folder or Path("/"),
        workflow_paths=context.settings.workflow_paths,
    )
    if found is not None and (is_there or not is_path(argument)):
        return found
    near = found and f"did you mean '{os.path.relpath(found, context.cwd)}'?"
    hint = near or _find_hint(context, argument)
    raise NotFoundError("workflow file", argument, hint=hint)


def read_workflow_file(path: Path) -> FoundWorkflow:
    """Read a workflow of a file.

    Raises:
        WorkflowError: It does not hold together.
    """
    source = read_workflow(path)
    return FoundWorkflow(
        workflow=source.workflow,
        data=source.data,
        hash=workflow_nodes(source.workflow)[-1].hash,
        source=str(path),
    )


def _find_by_hash(ledger: Ledger, name: str) -> FoundWorkflow | None:
    wanted = find_hash(name)
    node = find_node(ledger, wanted) if wanted else None
    if node is None:
        return None
    if node.type != WORKFLOW_TYPE:
        raise InvalidError(f"node {node.hash} is not a workflow")
    workflow = workflow_from_node(node, lambda schema: find_node(ledger, schema))
    head = "# Written from a stored workflow; the file it came from is not known.\n"
    return FoundWorkflow(
        workflow=workflow,
        data=(head + dump_yaml(workflow_document(workflow))).encode(),
        hash=node.hash,
        source="store",
    )


def _load_registered(ledger: Ledger, name: str) -> FoundWorkflow:
    plain, at, version = name.partition("@")
    wanted = find_hash(version) if at else None
    if at and wanted is None:
        raise InvalidError(f"'{version}' is not a hash", hint="write NAME@HASH")
    found = load_registered(ledger, plain, wanted)
    return FoundWorkflow(
        workflow=found.workflow,
        data=found.data,
        hash=found.version.hash,
        source="registry",
        origin=found.version.origin,
    )
