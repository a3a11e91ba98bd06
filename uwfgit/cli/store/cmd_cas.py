"""Commands about nodes: get, put and follow them by their hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from uwfgit.cli.frame.arguments import read_json, read_text
from uwfgit.cli.frame.commands import add_command, add_later, make_group
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import Column, format_json, format_table
from uwfgit.cli.store.nodes import (
    build_node,
    check_node,
    complete_hash,
    iter_refs,
    load_named_node,
    resolve_type,
    walk_nodes,
)
from uwfgit.errors import NotFoundError
from uwfgit.ids import read_hash
from uwfgit.model.ledger.ledger import Ledger, find_node
from uwfgit.model.node import BUILTIN_NAMES, META_TYPE, Node, make_node, make_text
from uwfgit.store.canonical import TEXT_TYPE, format_path

app = make_group("Read and write nodes by their hash.")
schema_app = make_group("Read and write schemas, the types of nodes.")
app.add_typer(schema_app, name="schema")

HashArgument = Annotated[
    str,
    typer.Argument(
        metavar="HASH",
        help="A node's hash, or a unique start of one of at least 4 characters.",
    ),
]
TypeArgument = Annotated[
    str, typer.Argument(metavar="TYPE", help="A schema's hash, or a built-in name.")
]
JsonArgument = Annotated[
    str, typer.Argument(metavar="JSON", help="The payload; - is stdin, @FILE a file.")
]
ThreadOption = Annotated[
    str | None,
    typer.Option("--thread", metavar="T", help="Look in this thread's nodes only."),
]


def _load(
    context: CommandContext, ledger: Ledger, node: str, thread: str | None
) -> Node:
    within = context.environment.get("UWF_THREAD")
    return load_named_node(ledger, node, thread=thread, within=within)


@add_command(app, "get")
def get(ctx: typer.Context, node: HashArgument, thread: ThreadOption = None) -> None:
    """Print a node.

    Text nodes are printed as they are, all others as JSON. On a terminal, escapes
    in them are shown, not obeyed.
    """
    context = get_context(ctx)
    ledger = context.open_ledger()
    found = _load(context, ledger, node, thread)
    payload = {"type": found.type, "payload": found.payload}
    if found.type == TEXT_TYPE:
        context.output.emit_data(payload, found.payload)
    else:
        context.output.emit(payload, lambda: format_json(found.payload))


@add_command(app, "has")
def has(ctx: typer.Context, node: HashArgument) -> None:
    """Whether the store holds a node; exit code 1 when not."""
    context = get_context(ctx)
    ledger = context.open_ledger()
    try:
        wanted = read_hash(complete_hash(ledger, node))
        exists = bool(ledger.lookup.find_nodes(wanted)) or bool(
            find_node(ledger, wanted)
        )
    except NotFoundError:
        exists = False
    context.output.emit({"exists": exists}, lambda: "yes" if exists else "no")
    raise typer.Exit(0 if exists else 1)


@add_command(app, "refs")
def refs(ctx: typer.Context, node: HashArgument, thread: ThreadOption = None) -> None:
    """List the nodes that a node links to."""
    context = get_context(ctx)
    ledger = context.open_ledger()
    found = iter_refs(ledger, _load(context, ledger, node, thread), thread=thread)
    _emit_hashes(context, "refs", found)


@add_command(app, "walk")
def walk(ctx: typer.Context, node: HashArgument, thread: ThreadOption = None) -> None:
    """List a node and all it reaches."""
    context = get_context(ctx)
    ledger = context.open_ledger()
    root = _load(context, ledger, node, thread)
    hashes = [found.hash for found in walk_nodes(ledger, root, thread=thread)]
    _emit_hashes(context, "hashes", hashes)


def _emit_hashes(context: CommandContext, key: str, hashes: Sequence[str]) -> None:
    context.output.emit({key: list(hashes)}, lambda: "\n".join(hashes))


@add_command(app, "oid")
def oid(ctx: typer.Context, node: HashArgument, thread: ThreadOption = None) -> None:
    """Print the git object that holds a node."""
    from uwfgit.store.raw import BLOB, name_object

    context = get_context(ctx)
    ledger = context.open_ledger()
    found = _load(context, ledger, node, thread)
    name = name_object(BLOB, found.data)
    if name not in ledger.store.repo:
        raise NotFoundError(
            "object", found.hash, hint="the type is built in; no thread holds it yet"
        )
    context.output.emit({"oid": name}, lambda: name)


@add_command(app, "verify")
def verify(ctx: typer.Context, node: HashArgument, thread: ThreadOption = None) -> None:
    """Check a node: its bytes, its hash, its schema and that its links are there."""
    context = get_context(ctx)
    ledger = context.open_ledger()
    found = _load(context, ledger, node, thread)
    problems = check_node(ledger, found, thread=thread)
    for problem in problems:
        context.output.warn(str(problem))
    context.output.emit({"ok": not problems}, lambda: "no" if problems else "ok")
    raise typer.Exit(1 if problems else 0)


@add_command(app, "hash")
def hash_(ctx: typer.Context, type_: TypeArgument, json: JsonArgument) -> None:
    """Print the hash a node would have; stores nothing."""
    context = get_context(ctx)
    node = make_node(resolve_type(type_), read_json(context, json, what="JSON"))
    context.output.emit({"hash": node.hash}, lambda: node.hash)


@add_command(app, "put")
def put(ctx: typer.Context, type_: TypeArgument, json: JsonArgument) -> None:
    """Store a node, checked against its type, until it is dropped."""
    context = get_context(ctx)
    _keep(context, *build_node(context, type_, json))


@add_command(app, "put-text")
def put_text(
    ctx: typer.Context,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="The text; - is stdin, @FILE a file.")
    ],
) -> None:
    """Store a text and print its hash."""
    context = get_context(ctx)
    node = make_text(read_text(context, text, what="TEXT"))
    _keep(context, context.open_ledger(write=True), node)


def _keep(context: CommandContext, ledger: Ledger, node: Node) -> None:
    from uwfgit.model.ledger.keep import put_nodes
    from uwfgit.model.schema.check import check_schema

    node = _masked(context, ledger, node)
    put_nodes(ledger, [node])
    if node.type == META_TYPE:
        for problem in check_schema(node.payload):
            # What is wrong with one was refused before: these are warnings.
            context.output.warn(f"{format_path(problem.path)}: {problem.message}")
    step = context.environment.get("UWF_STEP")
    # Put by an agent at work: only so does its step know the node as its own.
    if step and not ledger.local.record_put(step, [node.hash]):
        context.output.warn(f"{node.hash} could not be noted as put by this step")
    context.output.emit({"hash": node.hash}, lambda: node.hash)


def _masked(context: CommandContext, ledger: Ledger, node: Node) -> Node:
    from uwfgit.model.ledger.keep import check_node as require_valid
    from uwfgit.model.mask import mask_warnings

    found: set[str] = set()
    payload = context.masker.mask_value(node.payload, found)
    if not found:
        return node
    for warning in mask_warnings(found):
        context.output.warn(warning)
    masked = make_node(node.type, payload)
    require_valid(ledger, masked)
    return masked


@add_command(app, "drop", "rm")
def drop(ctx: typer.Context, node: HashArgument) -> None:
    """Stop keeping a node that was put by hand; threads keep theirs."""
    from uwfgit.model.ledger.keep import drop_node

    context = get_context(ctx)
    ledger = context.open_ledger(write=True, create=False)
    wanted = read_hash(complete_hash(ledger, node))
    drop_node(ledger, wanted)
    context.output.emit({"hash": wanted}, lambda: f"dropped {wanted}")


@add_command(app, "list")
def list_(
    ctx: typer.Context,
    type_: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="Nodes of this type only."),
    ] = None,
) -> None:
    """List the nodes of the store."""
    context = get_context(ctx)
    wanted = resolve_type(type_) if type_ else None
    ledger = context.open_ledger()
    rows = {(row.hash, row.type) for row in ledger.lookup.list_nodes(wanted)}
    items = [{"hash": node, "type": of} for node, of in sorted(rows)]
    if not items:
        context.output.say("no nodes")
    names = {of: name for name, of in BUILTIN_NAMES.items()}
    columns = [Column(title="HASH"), Column(title="TYPE"), Column(title="NAME")]
    context.output.emit(
        {"items": items},
        lambda: (
            format_table(
                context.output,
                columns,
                [(i["hash"], i["type"], names.get(i["type"])) for i in items],
            )
            if items
            else ""
        ),
    )


@add_command(schema_app, "list")
def list_schemas(ctx: typer.Context) -> None:
    """List the schemas of the store, built-in ones first."""
    context = get_context(ctx)
    ledger = context.open_ledger()
    hashes = list(dict.fromkeys(BUILTIN_NAMES.values()))
    known = sorted({row.hash for row in ledger.lookup.list_nodes(META_TYPE)})
    names = {of: name for name, of in BUILTIN_NAMES.items()}
    items: list[dict[str, str | None]] = []
    for schema in dict.fromkeys((*hashes, *known)):
        node = find_node(ledger, schema)
        if node is not None:
            name = names.get(schema)
            said = node.payload.get("title") if isinstance(node.payload, dict) else None
            title = said if isinstance(said, str) else None
            items.append({"hash": schema, "name": name, "title": title})
    columns = [
        Column(title="HASH"),
        Column(title="NAME"),
        Column(title="TITLE", flexible=True),
    ]
    context.output.emit(
        {"items": items},
        lambda: format_table(
            context.output,
            columns,
            [(i["hash"], i["name"], i["title"]) for i in items],
        ),
    )


@add_command(schema_app, "get")
def get_schema(ctx: typer.Context, schema: TypeArgument) -> None:
    """Print a schema."""
    from uwfgit.cli.store.nodes import load_schema

    context = get_context(ctx)
    payload = load_schema(context.open_ledger(), resolve_type(schema), thread=None)
    context.output.emit(payload, lambda: format_json(payload))


@add_command(schema_app, "put")
def put_schema(ctx: typer.Context, json: JsonArgument) -> None:
    """Store a schema and print its hash, which is a type from then on."""
    context = get_context(ctx)
    _keep(context, *build_node(context, "schema", json))


add_later(app, "gc", cls="GcCommand", where="store.cmd_maintain:gc", hidden=True)
add_later(app, "reindex", where="store.cmd_maintain:reindex", hidden=True)
