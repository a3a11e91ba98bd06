"""Commands that keep a store in shape: gc and reindex."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from uwfgit.cli.frame.commands import Command, add_command, make_single
from uwfgit.cli.frame.context import get_context
from uwfgit.cli.frame.output import agrees, format_fields
from uwfgit.errors import StoreError, UsageError
from uwfgit.model.wording import count_of
from uwfgit.store.care.size import format_size

if TYPE_CHECKING:
    from uwfgit.store.care.maintain import Prune

gc_app = make_single()
reindex_app = make_single()


class GcCommand(Command):
    """A command whose ``--prune`` takes no value but behind a ``=``, as git's does."""

    alone = MappingProxyType({"--prune": ("old", r"(?!)")})


@add_command(gc_app, "gc", cls=GcCommand)
def gc(
    ctx: typer.Context,
    prune: Annotated[
        str | None,
        typer.Option(
            "--prune",
            metavar="[=now]",
            help="Also drop what nothing has named for two weeks, or at once.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Agree to what --prune=now cannot undo.")
    ] = False,
) -> None:
    """Pack the store, so that it is small and fast.

    git does the work. Threads and nodes that are still named stay whatever is
    pruned; removed threads stay in the trash for two weeks.
    """
    from uwfgit.cli.frame.progress import Progress
    from uwfgit.cli.store.code_care import drop_orphans
    from uwfgit.store.care.maintain import collect_garbage

    context = get_context(ctx)
    mode = _read_prune(prune)
    if mode == "now" and not yes:
        _require_agreement()
    store = context.open_store(write=True, create=False)
    with Progress(context) as progress:
        report = collect_garbage(
            store,
            prune=mode,
            environment=context.environment,
            on_phase=progress.tell,
        )
    chains = drop_orphans(context, store)
    payload = {
        "threads": report.threads,
        "refs": report.refs,
        "objectsBefore": report.objects_before,
        "objectsAfter": report.objects_after,
        "bytesBefore": report.bytes_before,
        "bytesAfter": report.bytes_after,
        "codeChainsRemoved": chains,
    }
    sizes = (format_size(report.bytes_before), format_size(report.bytes_after))
    fields: list[tuple[str, str | None]] = [
        ("threads", f"{report.threads:,}"),
        ("objects", f"{report.objects_before:,} → {report.objects_after:,}"),
        ("size", " → ".join(sizes)),
    ]
    if chains:
        fields.append(
            ("code", f"{count_of(chains, 'chain')} of removed threads dropped")
        )
    context.output.emit(payload, lambda: format_fields(context.output, fields))


def _require_agreement() -> None:
    what = "--prune=now deletes removed threads and all else that nothing names"
    if not agrees(f"{what}; go on? [y/N] "):
        raise UsageError(
            what, hint="say so with --yes; or keep the two weeks of --prune"
        )


def _read_prune(value: str | None) -> Prune:
    if value is None:
        return "never"
    if value not in ("old", "now"):
        raise UsageError(
            f"--prune: '{value}' is not now", hint="--prune or --prune=now"
        )
    return "now" if value == "now" else "old"


@add_command(reindex_app, "reindex")
def reindex(ctx: typer.Context) -> None:
    """Rebuild the lookup of nodes, steps and threads from git.

    It is only ever a copy: nothing is lost with it.
    """
    from uwfgit.cli.frame.progress import Progress

    context = get_context(ctx)
    ledger = context.open_ledger(write=True, create=False)
    with Progress(context) as progress:
        progress.tell("reading git")
        report = ledger.lookup.rebuild()
    if ledger.lookup.is_in_memory:
        raise StoreError(
            f"cannot write the lookup in '{ledger.store.state_dir}'",
            hint="commands work without it, only slower; uwf doctor says more",
        )
    counts = {
        "refs": report.refs,
        "threads": report.threads,
        "nodes": report.nodes,
        "steps": report.steps,
    }
    context.output.emit(
        counts,
        lambda: format_fields(
            context.output, [(name, f"{count:,}") for name, count in counts.items()]
        ),
    )
