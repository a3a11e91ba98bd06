"""Commands about workflows: check them, register them, show them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from uwfgit.cli.frame.commands import add_command, make_group
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import (
    Column,
    Output,
    format_fields,
    format_table,
    format_time,
)
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.workflow.cmd_graph import graph_command
from uwfgit.cli.workflow.cmd_migrate import migrate_command
from uwfgit.cli.workflow.cmd_new import new_command, schema_command
from uwfgit.cli.workflow.cmd_simulate import simulate_command
from uwfgit.cli.workflow.cmd_travel import (
    YesOption,
    add_from_git,
    emit_registered,
    export_command,
    outdated_command,
    update_command,
)
from uwfgit.cli.workflow.cmd_validate import validate_command
from uwfgit.shell import quote_word

app = make_group("Check, register and show workflows.")

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of a registered workflow.")
]


add_command(app, "validate")(validate_command)
add_command(app, "graph")(graph_command)
add_command(app, "simulate")(simulate_command)
add_command(app, "migrate")(migrate_command)
add_command(app, "new")(new_command)
add_command(app, "schema")(schema_command)


add_command(app, "outdated")(outdated_command)
add_command(app, "update")(update_command)
add_command(app, "export")(export_command)


@add_command(app, "add", "put")
def add(
    ctx: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A workflow file, its name, or git+URL[@REV][:PATH][#OID].",
        ),
    ],
    yes: YesOption = False,
) -> None:
    """Check a workflow file and register it under its name.

    A file in somebody's repository is fetched and pinned to the commit it is of:
    git+https://host/repository@v1:.workflows/solve-issue.yaml. REV is a branch, a
    tag or a commit, else what HEAD is there; PATH a file, or a name as in .workflows/;
    OID the commit that REV must be. It is shown and asked about first.
    """
    from uwfgit.cli.workflow.workflows import find_file
    from uwfgit.model.ledger.registering import add_workflow
    from uwfgit.model.workflow.origin import is_origin
    from uwfgit.model.workflow.source import read_workflow

    context = get_context(ctx)
    if is_origin(file):
        add_from_git(context, file, yes=yes)
        return
    source = read_workflow(find_file(context, file))
    ledger = context.open_ledger(write=True)
    registered = add_workflow(ledger, source.workflow, source.data)
    emit_registered(context, registered)


@add_command(app, "show")
def show(
    ctx: typer.Context,
    workflow: Annotated[
        str,
        typer.Argument(metavar="WORKFLOW", help="Path, name, NAME@HASH, or hash."),
    ],
) -> None:
    """Show a workflow: its roles and its graph."""
    from uwfgit.cli.workflow.workflows import find_ledger, find_workflow
    from uwfgit.model.workflow.document import graph_payload, roles_payload

    context = get_context(ctx)
    found = find_workflow(context, find_ledger(context), workflow)
    payload = {
        "name": found.workflow.name,
        "hash": found.hash,
        "source": found.source,
        "origin": found.origin,
        "description": found.workflow.description,
        "version": found.workflow.version,
        "roles": roles_payload(found.workflow),
        "graph": graph_payload(found.workflow),
        "inputs": dict(found.workflow.inputs or {}),
    }
    context.output.emit(payload, lambda: _workflow_text(context.output, payload))


def _workflow_text(output: Output, payload: dict[str, Any]) -> str:
    order = _reading_order(payload["graph"])
    head = format_fields(
        output,
        [
            ("workflow", payload["name"]),
            ("hash", payload["hash"]),
            ("version", str(payload["version"])),
            ("source", payload["source"]),
            *([("from", payload["origin"])] if payload["origin"] else []),
            ("about", payload["description"]),
        ],
    )
    roles = format_table(
        output,
        [Column(title="ROLE"), Column(title="DESCRIPTION", flexible=True)],
        [
            (
                name,
                f"{role['description']} (by workflow {role['workflow']})"
                if "workflow" in role
                else role["description"],
            )
            for name in order
            if (role := payload["roles"].get(name)) is not None
        ],
    )
    graph = format_table(
        output,
        [
            Column(title="FROM"),
            Column(title="STATUS"),
            Column(title="TO"),
            Column(title="PROMPT", flexible=True),
        ],
        [
            (name, status, edge["role"], " ".join(edge.get("prompt", "").split()))
            for name in order
            for status, edge in _list_edges(payload["graph"][name])
        ],
    )
    blocks = [head, roles, graph]
    if payload["inputs"]:
        blocks.append(_inputs_table(output, payload["inputs"]))
    return "\n\n".join(blocks)


def _inputs_table(output: Output, inputs: dict[str, Any]) -> str:
    return format_table(
        output,
        [
            Column(title="INPUT"),
            Column(title="DEFAULT"),
            Column(title="DESCRIPTION", flexible=True),
        ],
        [
            (
                name,
                json.dumps(schema["default"]) if "default" in schema else "(asked for)",
                schema.get("description"),
            )
            for name, schema in inputs.items()
        ],
    )


def _reading_order(graph: dict[str, Any]) -> list[str]:
    """Return the graph's nodes as a run meets them; a stored one is sorted by name."""
    order = ["$START"] if "$START" in graph else []
    for name in order:
        for _, edge in _list_edges(graph[name]):
            if edge["role"] in graph and edge["role"] not in order:
                order.append(edge["role"])
    return [*order, *(name for name in graph if name not in order)]


def _list_edges(edges: Any) -> list[tuple[str, dict[str, str]]]:  # noqa: ANN401 - a JSON value
    if isinstance(edges, list):
        return [(edge.get("when", "otherwise"), edge) for edge in edges]
    return list(edges.items())


@add_command(app, "list")
def list_(
    ctx: typer.Context,
    trash: Annotated[
        bool, typer.Option("--trash", help="Removed workflows instead.")
    ] = False,
) -> None:
    """List the workflows that can be started here.

    Files near this folder come first, then those of the configured
    workflowPaths, then the registry; the first of a name counts.
    """
    from uwfgit.cli.workflow.workflows import find_ledger
    from uwfgit.model.ledger.registry import list_workflows
    from uwfgit.model.workflow.source import list_workflow_files

    context = get_context(ctx)
    if trash:
        _list_removed(context)
        return
    items: dict[str, dict[str, Any]] = {}
    paths = context.settings.workflow_paths
    for name, path, label in list_workflow_files(cwd=context.cwd, workflow_paths=paths):
        if name not in items:
            items[name] = _file_item(context, name, path, label)
    ledger = find_ledger(context)
    for name in list_workflows(ledger) if ledger is not None else ():
        if name not in items:
            items[name] = _registered_item(context, ledger, name)
    rows = list(items.values())
    if not rows:
        context.output.say(
            "no workflows; write one: uwf workflow new NAME, or register one: "
            "uwf workflow add FILE"
        )
    context.output.emit({"items": rows}, lambda: _list_text(context.output, rows))


def _list_removed(context: CommandContext) -> None:
    from uwfgit.model.ledger.registry import list_removed

    items: list[dict[str, Any]] = [
        {
            "name": version.name,
            "hash": version.hash,
            "oid": version.oid,
            "timestampMs": version.timestamp_ms,
        }
        for version in list_removed(context.open_ledger())
    ]
    columns = [Column(title="NAME"), Column(title="HASH"), Column(title="REGISTERED")]
    rows = [
        (item["name"], item["hash"], format_time(item["timestampMs"])) for item in items
    ]
    if not items:
        context.output.say("the trash holds no workflow")
    context.output.emit(
        {"items": items},
        lambda: format_table(context.output, columns, rows) if rows else "",
    )


def _file_item(
    context: CommandContext, name: str, path: Path, label: str
) -> dict[str, Any]:
    from uwfgit.cli.workflow.workflows import read_workflow_file
    from uwfgit.errors import UwfError

    item = {"name": name, "hash": None, "source": label, "description": ""}
    try:
        found = read_workflow_file(path)
    except UwfError as exc:
        context.output.warn(exc.message)
        return item
    return {**item, "hash": found.hash, "description": found.workflow.description}


def _registered_item(
    context: CommandContext,
    ledger: Any,  # noqa: ANN401 - a Ledger, whose import is heavy
    name: str,
) -> dict[str, Any]:
    from uwfgit.errors import UwfError
    from uwfgit.model.ledger.registry import load_registered

    item = {"name": name, "hash": None, "source": "registry", "description": ""}
    try:
        found = load_registered(ledger, name)
    except UwfError as exc:
        context.output.warn(f"workflow '{name}': {exc.message}")
        return item
    description = found.workflow.description
    return {**item, "hash": found.version.hash, "description": description}


def _list_text(output: Output, rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    columns = [
        Column(title="NAME"),
        Column(title="HASH"),
        Column(title="SOURCE"),
        Column(title="DESCRIPTION", flexible=True),
    ]
    keys = ("name", "hash", "source", "description")
    return format_table(
        output, columns, [tuple(row[key] for key in keys) for row in rows]
    )


@add_command(app, "history")
def history(ctx: typer.Context, name: NameArgument) -> None:
    """List the versions of a registered workflow, newest first."""
    from uwfgit.model.ledger.registry import workflow_history

    context = get_context(ctx)
    items: list[dict[str, Any]] = [
        {
            "hash": version.hash,
            "oid": version.oid,
            "timestampMs": version.timestamp_ms,
            "current": version.current,
            "origin": version.origin,
        }
        for version in workflow_history(context.open_ledger(), name)
    ]
    any_origin = any(item["origin"] for item in items)
    columns = [
        Column(title="HASH"),
        Column(title="WHEN"),
        Column(title="OID"),
        Column(title="", status=True),
        *([Column(title="FROM", flexible=True)] if any_origin else []),
    ]
    rows = [
        (
            item["hash"],
            format_time(item["timestampMs"]),
            item["oid"][:12],
            "current" if item["current"] else " ",
            *([item["origin"] or "a file"] if any_origin else []),
        )
        for item in items
    ]
    context.output.emit(
        {"items": items}, lambda: format_table(context.output, columns, rows)
    )


@add_command(app, "rollback")
def rollback(
    ctx: typer.Context,
    name: NameArgument,
    hash_: Annotated[
        str | None,
        typer.Argument(metavar="[HASH]", help="The version; else the one before."),
    ] = None,
) -> None:
    """Make an earlier version of a workflow the current one again.

    A workflow that was removed comes back, with HASH at that version.
    """
    from uwfgit.ids import read_hash
    from uwfgit.model.ledger.registering import rollback_workflow

    context = get_context(ctx)
    wanted = read_hash(hash_) if hash_ else None
    done = rollback_workflow(
        context.open_ledger(write=True, create=False), name, wanted
    )
    emit_registered(context, done)


@add_command(app, "rm")
def remove(ctx: typer.Context, name: NameArgument) -> None:
    """Remove a workflow from the registry.

    Threads keep the version they pin. 'uwf workflow list --trash' shows it there.
    """
    from uwfgit.model.ledger.registering import remove_workflow

    context = get_context(ctx)
    remove_workflow(context.open_ledger(write=True, create=False), name)
    context.output.emit(
        {"name": name, "removed": True}, lambda: f"removed {shown(name)}"
    )
    context.output.say(f"bring it back: uwf workflow restore {quote_word(name)}")


@add_command(app, "restore")
def restore(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of a removed workflow.")
    ],
) -> None:
    """Bring a removed workflow back from the trash, at the version it had."""
    from uwfgit.model.ledger.registering import restore_workflow

    context = get_context(ctx)
    done = restore_workflow(context.open_ledger(write=True, create=False), name)
    emit_registered(context, done)
