"""Workflows that travel: taken from others' repositories, kept up, written out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import replace

from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import (
    Column,
    Output,
    agrees,
    format_fields,
    format_table,
    format_time,
    talk,
)
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import (
    NotFoundError,
    StateError,
    UntrustedError,
    UwfError,
)
from uwfgit.shell import quote_word

if TYPE_CHECKING:
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.ledger.registering import Registered
    from uwfgit.model.ledger.registry import Entered
    from uwfgit.model.workflow.origin import Origin
    from uwfgit.sync.origins import Fetched

YesOption = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Agree to what it is or became, unasked."),
]
_SHORT = 12


def add_from_git(context: CommandContext, address: str, *, yes: bool) -> None:
    """Register a workflow of a repository elsewhere, once someone agreed to it."""
    from uwfgit.model.workflow.origin import parse_origin

    origin = parse_origin(address)
    ledger = context.open_ledger(write=True)
    fetched = _fetch(context, ledger, origin)
    known = _find_registered(ledger, fetched.source.workflow.name)
    emit_registered(context, _register(context, ledger, fetched, known, yes=yes))
    _tell_of_children(context, ledger, fetched)


def _fetch(context: CommandContext, ledger: Ledger, origin: Origin) -> Fetched:
    from uwfgit.cli.share.remote_session import open_wire
    from uwfgit.sync.origins import fetch_workflow

    with open_wire(context) as wire:
        return fetch_workflow(wire, ledger.store, origin)


def _find_registered(ledger: Ledger, name: str) -> Entered | None:
    from uwfgit.model.ledger.registry import load_registered

    try:
        return load_registered(ledger, name)
    except NotFoundError:
        return None


def _register(
    context: CommandContext,
    ledger: Ledger,
    fetched: Fetched,
    known: Entered | None,
    *,
    yes: bool,
) -> Registered:
    from uwfgit.model.ledger.registering import add_workflow

    source = fetched.source
    if known is None or known.data != source.data:
        _require_agreement(context, fetched, known, yes=yes)
    return add_workflow(ledger, source.workflow, source.data, origin=fetched.origin)


def _require_agreement(
    context: CommandContext, fetched: Fetched, known: Entered | None, *, yes: bool
) -> None:
    """Show what a workflow is, or how it changed, and ask.

    Raises:
        UntrustedError: The user does not agree, or cannot be asked.
    """
    if not yes and not context.output.is_text:
        raise _not_agreed(fetched)
    # An error stands alone on stderr unless the output is text.
    tell = talk if not yes else context.output.say
    for line in _screen(fetched, known):
        tell(line)
    if not yes and not agrees("register it? [y/N] "):
        raise _not_agreed(fetched)


def _not_agreed(fetched: Fetched) -> UntrustedError:
    return UntrustedError(
        f"workflow '{fetched.source.workflow.name}' is someone else's, and nobody "
        "agreed to it",
        hint="read it; then give the same command with --yes",
    )


def _screen(fetched: Fetched, known: Entered | None) -> Iterator[str]:
    """Write what a user has to know before a workflow of others is registered."""
    commit, origin = fetched.commit, fetched.origin
    when = format_time(commit.committer.time * 1000)
    name = shown(fetched.source.workflow.name)
    if known is None:
        yield f"workflow '{name}' is not registered here"
    else:
        yield f"workflow '{name}' is registered here, and would change"
    yield f"  from:    {shown(str(replace(origin, oid=None)))}"
    yield f"  commit:  {commit.oid} ({fetched.kind})"
    yield f"  by:      {shown(commit.author.who)}, {when} (as the commit says)"
    if not fetched.is_tip:
        yield "  warning: no branch or tag there ends at this commit, so nothing says"
        yield "           that it is one of theirs"
    yield ""
    yield from _text_lines(fetched, known)
    yield ""
    yield "its prompts will drive your agents, which can do what you can"


def _text_lines(fetched: Fetched, known: Entered | None) -> Iterator[str]:
    """Write the whole of a new workflow, or what is different in a known one.

    As read, and written anew: no escape or anchor of the file's hides anything.
    """
    from difflib import unified_diff

    from uwfgit.model.workflow.document import workflow_document
    from uwfgit.model.workflow.pinned import workflow_from_data
    from uwfgit.model.yaml.dump import dump_yaml

    after = dump_yaml(workflow_document(fetched.source.workflow)).splitlines()
    if known is None:
        lines = after
    else:
        # The pinned node's keys are sorted; the file has those that people wrote.
        before = dump_yaml(
            workflow_document(workflow_from_data(known.data))
        ).splitlines()
        lines = list(unified_diff(before, after, "registered", "new", lineterm=""))
    for line in lines or ["only its comments and its layout are different"]:
        yield f"  {shown(line)}".rstrip()


def _tell_of_children(
    context: CommandContext, ledger: Ledger, fetched: Fetched
) -> None:
    """Name the workflows that do its roles and that nothing here is called."""
    from uwfgit.cli.workflow.workflows import find_workflow

    for name, origin in fetched.beside.items():
        try:
            find_workflow(context, ledger, name)
        except UwfError:
            context.output.say(
                f"a role is done by workflow '{shown(name)}', which is not here: "
                f"uwf workflow add {quote_word(str(origin))}"
            )


def emit_registered(context: CommandContext, registered: Registered) -> None:
    """Print which version of a workflow is registered now."""
    payload = {
        "name": registered.name,
        "hash": registered.hash,
        "oid": registered.oid,
        "changed": registered.changed,
        "origin": registered.origin,
    }
    done = "registered" if registered.changed else "unchanged"
    fields: list[tuple[str, str | None]] = [
        (done, registered.name),
        ("hash", registered.hash),
    ]
    if registered.origin is not None:
        fields.append(("from", registered.origin))
    context.output.emit(payload, lambda: format_fields(context.output, fields))


def outdated_command(ctx: typer.Context) -> None:
    """Compare workflows that came from git with what is there today.

    Writes nothing. Says of each: current, outdated, fixed (pinned to a commit, which
    never moves) or failed (it cannot be had); exits 1 when one failed.
    """
    from uwfgit.model.ledger.registry import list_workflows

    context = get_context(ctx)
    ledger = context.open_ledger()
    known = [_find_registered(ledger, name) for name in list_workflows(ledger)]
    items = [
        _compare(context, ledger, each)
        for each in known
        if each is not None and each.version.origin is not None
    ]
    if not items:
        context.output.say("no registered workflow came from git")
    context.output.emit({"items": items}, lambda: _outdated_text(context.output, items))
    raise typer.Exit(1 if any(each["state"] == "failed" for each in items) else 0)


def _compare(context: CommandContext, ledger: Ledger, known: Entered) -> dict[str, Any]:
    origin = _origin_of(known)
    item: dict[str, Any] = {
        "name": known.version.name,
        "state": "fixed",
        "origin": str(origin),
        "pinned": origin.oid,
        "found": None,
        "message": None,
    }
    if origin.rev == origin.oid:
        return item
    try:
        fetched = _fetch(context, ledger, replace(origin, oid=None))
    except UwfError as exc:
        context.output.warn(f"workflow '{known.version.name}': {exc.message}")
        return {**item, "state": "failed", "message": exc.message}
    is_same = fetched.source.data == known.data
    return {
        **item,
        "state": "current" if is_same else "outdated",
        "found": fetched.origin.oid,
    }


def _origin_of(known: Entered) -> Origin:
    from uwfgit.model.workflow.origin import parse_origin

    if known.version.origin is None:
        name = known.version.name
        raise StateError(
            f"workflow '{name}' came from a file, not from git",
            hint="register it from there: uwf workflow add git+URL",
        )
    return parse_origin(known.version.origin)


def _outdated_text(output: Output, items: list[dict[str, Any]]) -> str:
    if not items:
        return ""
    columns = [
        Column(title="NAME"),
        Column(title="STATE", status=True),
        Column(title="PINNED"),
        Column(title="THERE"),
        Column(title="FROM", flexible=True),
    ]
    rows = [
        (
            item["name"],
            item["state"],
            item["pinned"][:_SHORT],
            (item["found"] or "-")[:_SHORT],
            item["origin"].partition("#")[0],
        )
        for item in items
    ]
    return format_table(output, columns, rows)


def update_command(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of a registered workflow.")
    ],
    yes: YesOption = False,
) -> None:
    """Register what a workflow that came from git is there today.

    What is different is shown, and asked about.
    """
    from uwfgit.model.ledger.registering import Registered
    from uwfgit.model.ledger.registry import load_registered

    context = get_context(ctx)
    ledger = context.open_ledger(write=True, create=False)
    known = load_registered(ledger, name)
    origin = _origin_of(known)
    same = Registered(
        name=name,
        hash=known.version.hash,
        oid=known.version.oid,
        changed=False,
        origin=known.version.origin,
    )
    if origin.rev == origin.oid:
        context.output.say("it is pinned to a commit, which never moves")
        emit_registered(context, same)
        return
    fetched = _fetch(context, ledger, replace(origin, oid=None))
    theirs = fetched.source.workflow.name
    if theirs != name:
        address = quote_word(str(replace(fetched.origin, oid=None)))
        raise StateError(
            f"the workflow there is called '{theirs}' by now",
            hint=f"add it as that: uwf workflow add {address}",
        )
    if fetched.kind == "tag" and fetched.origin.oid != origin.oid:
        context.output.warn(f"tag '{origin.rev}' was moved: it was {origin.oid}")
    if fetched.source.data == known.data:
        emit_registered(context, same)
        return
    emit_registered(context, _register(context, ledger, fetched, known, yes=yes))
    _tell_of_children(context, ledger, fetched)


def export_command(
    ctx: typer.Context,
    workflow: Annotated[
        str,
        typer.Argument(metavar="WORKFLOW", help="Path, name, NAME@HASH, or hash."),
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="A new file to write to."),
    ] = None,
) -> None:
    """Write a workflow as one file, with all that it includes.

    Without --output it is printed. A file that is there is never overwritten.
    """
    from uwfgit.cli.workflow.workflows import find_ledger, find_workflow
    from uwfgit.model.workflow.source import name_of
    from uwfgit.store.files import write_new

    context = get_context(ctx)
    found = find_workflow(context, find_ledger(context), workflow)
    text = found.data.decode()
    name = found.workflow.name
    payload = {"name": name, "hash": found.hash, "file": None, "text": text}
    if output is None:
        context.output.emit_data(payload, text)
        return
    path = context.resolve(output)
    write_new(path, text.encode(), name=output)
    payload["file"] = str(path)
    context.output.emit(payload, lambda: f"wrote {shown(output)}")
    if name_of(path) != name:
        context.output.warn(
            f"a file of workflow '{name}' must be called {name}.yaml to be read"
        )
