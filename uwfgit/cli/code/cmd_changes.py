"""``step diff`` and ``thread code``: what steps changed in the code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from uwfgit.cli.code.place import (
    Sides,
    file_item,
    file_line,
    find_tree,
    list_known,
    require_sides,
)
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import NotFoundError, StateError, StoreError, UsageError
from uwfgit.ids import Oid
from uwfgit.model.wording import count_of

if TYPE_CHECKING:
    from uwfgit.code.blame.steps import KnownStep
    from uwfgit.code.worktree import WorkTree
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.thread.record import Record
    from uwfgit.model.thread.step import Step

DIFF_SETTINGS: Final = {"ignore_unknown_options": True}
"""What stands behind the step is git's."""

_DIFF_BYTES: Final = 200_000
"""Of a step's diff where it stands on a page; git shows the rest."""

ThreadArgument = Annotated[str, typer.Argument(metavar="THREAD", help="A thread.")]
GitWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[GIT-OPTIONS|PATH...]",
        help="Options of git diff, such as --stat and --name-only, and paths.",
    ),
]


def diff_command(
    ctx: typer.Context,
    step: Annotated[
        str, typer.Argument(metavar="STEP", help="A step's hash, or THREAD:NUMBER.")
    ],
    words: GitWords = None,
) -> None:
    """Show what a step changed in the code, as git diff does.

    Exactly the files that differ between the snapshots before and after it,
    whatever changed them, but those that snapshots leave out.
    """
    from uwfgit.code.blame.steps import known_step
    from uwfgit.model.ledger.ledger import resolve_step

    context = get_context(ctx)
    ledger = context.open_ledger()
    record, found = resolve_step(ledger, step)
    sides = require_sides(known_step(record, found, number=found.number))
    tree = find_tree(context, ledger, record, sides.after)
    require_here(tree, sides.before)
    head = {
        "threadId": record.tip.thread,
        "number": found.number,
        "hash": found.hash,
        "before": sides.before,
        "after": sides.after,
    }
    _show(context, tree, sides.before, sides.after, words or [], head)


def list_step_files(
    context: CommandContext, ledger: Ledger, record: Record, step: Step
) -> list[dict[str, Any]] | None:
    """List the files a step changed; ``None`` where that cannot be told here."""
    snapshot = step.code.snapshot
    if snapshot is None or snapshot.before is None or snapshot.after is None:
        return None
    try:
        tree = find_tree(context, ledger, record, Oid(snapshot.after))
        return _items(tree, Oid(snapshot.before), Oid(snapshot.after))
    except (StateError, StoreError):
        return None


def read_step_diff(
    context: CommandContext, ledger: Ledger, record: Record, step: Step
) -> str | None:
    """Return what a step changed as git diff tells it; ``None`` where it cannot."""
    snapshot = step.code.snapshot
    if snapshot is None or snapshot.before is None or snapshot.after is None:
        return None
    if snapshot.before == snapshot.after:
        return None
    plain = ("--no-color", "--no-ext-diff", "--no-textconv")
    try:
        tree = find_tree(context, ledger, record, Oid(snapshot.after))
        data = tree.ask("diff", *plain, snapshot.before, snapshot.after)
    except (StateError, StoreError):
        return None
    return data[:_DIFF_BYTES].decode("utf-8", "replace")


def code_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    words: GitWords = None,
    at: Annotated[
        int | None,
        typer.Option("--at", metavar="N", help="Up to step N; else to the newest."),
    ] = None,
    stat: Annotated[
        bool, typer.Option("--stat", help="Files and counts only, step by step.")
    ] = False,
) -> None:
    """Show what a thread changed in the code, from its first step on."""
    from uwfgit.model.ledger.ledger import find_tip
    from uwfgit.model.thread.record import open_record

    context = get_context(ctx)
    ledger = context.open_ledger()
    record = open_record(ledger.store, find_tip(ledger, thread))
    steps = _up_to(list_known(record), at, record.tip.thread)
    kept = [step for step in steps if step.before and step.after]
    if not kept:
        raise StateError(
            f"no code of thread {record.tip.thread} was kept",
            hint="snapshots are taken of steps that run in a git work tree, unless "
            "record.code or --no-code says otherwise",
        )
    first, last = require_sides(kept[0]), require_sides(kept[-1])
    tree = find_tree(context, ledger, record, last.after)
    require_here(tree, first.before)
    if stat and words:
        # Some files only: that is git's own --stat.
        words, stat = ["--stat", *words], False
    if stat or not context.output.is_text:
        items = [_step_item(tree, require_sides(step)) for step in kept]
        payload = {
            "threadId": record.tip.thread,
            "before": first.before,
            "after": last.after,
            "files": _items(tree, first.before, last.after),
            "steps": items,
        }
        context.output.emit(payload, lambda: _stat_text(payload))
        return
    _show(context, tree, first.before, last.after, words or [], {})


def _up_to(
    steps: tuple[KnownStep, ...], at: int | None, thread: str
) -> tuple[KnownStep, ...]:
    if at is None:
        return steps
    if not 1 <= at <= len(steps):
        raise NotFoundError(
            "step",
            f"{thread}:{at}",
            hint=f"the thread has {count_of(len(steps), 'step')}",
        )
    return steps[:at]


def require_here(tree: WorkTree, *oids: Oid) -> None:
    """Require that snapshots are in a repository.

    Raises:
        StateError: One is not.
    """
    for oid in oids:
        if tree.resolve(f"{oid}^{{tree}}") is None:
            raise StateError(
                f"the snapshot {oid[:12]} is not in '{tree.common_dir}'",
                hint="uwf pull brings what others pushed with uwf push --code",
            )


def _items(tree: WorkTree, before: Oid, after: Oid) -> list[dict[str, Any]]:
    from uwfgit.code.changes import list_files

    return [file_item(each) for each in list_files(tree, before, after)]


def _step_item(tree: WorkTree, sides: Sides) -> dict[str, Any]:
    step = sides.step
    is_here = all(tree.resolve(f"{x}^{{tree}}") for x in (sides.before, sides.after))
    return {
        "number": step.number,
        "hash": step.hash,
        "role": step.role,
        "status": step.status,
        "files": _items(tree, sides.before, sides.after) if is_here else None,
    }


def _stat_text(payload: dict[str, Any]) -> str:
    lines = []
    for step in payload["steps"]:
        lines.append(
            shown(f"step {step['number']}  {step['role']}: {step['status'] or '-'}")
        )
        if step["files"] is None:
            lines.append("  its snapshots are not here")
        elif not step["files"]:
            lines.append("  no files")
        else:
            lines += [shown(f"  {file_line(item)}") for item in step["files"]]
    total = payload["files"]
    added = sum(item["added"] or 0 for item in total)
    deleted = sum(item["deleted"] or 0 for item in total)
    lines.append(f"in all: {count_of(len(total), 'file')}, +{added} -{deleted}")
    return "\n".join(lines)


def _show(
    context: CommandContext,
    tree: WorkTree,
    before: Oid,
    after: Oid,
    words: list[str],
    head: dict[str, Any],
) -> None:
    from uwfgit.cli.store.git_output import run_shown

    if not context.output.is_text:
        if words:
            raise UsageError("options of git diff do not go with JSON and YAML")
        context.output.emit({**head, "files": _items(tree, before, after)}, str)
        return
    options = [word for word in words if word.startswith("-") and word != "--"]
    paths = [word for word in words if not word.startswith("-")]
    code = run_shown(
        context.output,
        ["diff", *options, before, after, "--", *paths],
        None,
        root=tree.root,
        environment=context.environment,
    )
    raise typer.Exit(code)
