"""Where the code of a thread is on this machine, and what looks after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from uwfgit.errors import InvalidError, NotFoundError, StateError
from uwfgit.shell import quote_word

if TYPE_CHECKING:
    from uwfgit.cli.frame.context import CommandContext
    from uwfgit.code.blame.steps import KnownStep
    from uwfgit.code.changes import FileChange
    from uwfgit.code.worktree import WorkTree
    from uwfgit.ids import Oid
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.thread.record import Record


class Sides(Struct, frozen=True, kw_only=True):
    """The code before and after a step, as trees of its repository."""

    step: KnownStep
    before: Oid
    after: Oid


def list_known(record: Record) -> tuple[KnownStep, ...]:
    """List the steps of a thread with the code around them, oldest first."""
    from uwfgit.code.blame.steps import known_step

    return tuple(
        known_step(record, step, number=step.number) for step in record.steps()
    )


def require_sides(step: KnownStep) -> Sides:
    """Return the code around a step.

    Raises:
        StateError: It was not kept; its warnings say why.
    """
    if step.before is None or step.after is None:
        name = f"{step.thread}:{step.number}"
        raise StateError(
            f"the code around step {name} was not kept",
            hint=f"uwf step show {quote_word(name)} may say why",
        )
    return Sides(step=step, before=step.before, after=step.after)


def find_tree(
    context: CommandContext, ledger: Ledger, record: Record, wanted: Oid
) -> WorkTree:
    """Find the work tree of a thread, in a repository that holds a snapshot.

    The one around the working directory counts first, then those the thread
    worked in.

    Raises:
        StateError: None holds it.
    """
    for tree in _iter_trees(context, ledger, record):
        if tree.resolve(f"{wanted}^{{tree}}") is not None:
            return tree
    thread = record.tip.thread
    raise StateError(
        f"the code of thread {thread} is not here: no repository holds {wanted[:12]}",
        hint="run this in a clone of the code; uwf pull brings what others pushed "
        "with uwf push --code",
    )


def _iter_trees(
    context: CommandContext, ledger: Ledger, record: Record
) -> Iterator[WorkTree]:
    from uwfgit.code.worktree import WorkTree

    seen: set[Path] = set()
    for folder in _iter_folders(context, ledger, record):
        tree = WorkTree.find(folder, context.environment)
        if tree is not None and tree.root not in seen:
            seen.add(tree.root)
            yield tree


def _iter_folders(
    context: CommandContext, ledger: Ledger, record: Record
) -> Iterator[Path]:
    if context.folder is not None:
        yield context.folder
    chosen = ledger.local.find_folder(record.tip.thread)
    if chosen is not None:
        yield chosen
    # A foreign thread's own folders are someone else's text.
    if not ledger.local.is_foreign(record.tip.thread, record.tip.commit):
        state = record.tip.state
        if state.steps:
            yield Path(record.step(state.head, state.steps).cwd)
        yield Path(record.start.cwd)


def find_work_tree(
    context: CommandContext, ledger: Ledger, record: Record, wanted: Oid
) -> WorkTree:
    """Find the work tree whose files a thread's commands may change.

    Where the thread worked last, if the working directory is of the same
    repository; else the one around it.

    Raises:
        StateError: None holds the snapshot.
    """
    first = find_tree(context, ledger, record, wanted)
    trees = list(_iter_trees(context, ledger, record))
    own = [each for each in trees[1:] if each.common_dir == first.common_dir]
    is_own = any(each.root == first.root for each in own)
    return first if is_own or not own else own[0]


def file_item(change: FileChange) -> dict[str, Any]:
    """Return a file that changed, as JSON has it."""
    from uwfgit.code.worktree import name_text

    return {
        "path": name_text(change.path),
        "change": change.what,
        "oldPath": None if change.old_path is None else name_text(change.old_path),
        "added": change.added,
        "deleted": change.deleted,
    }


def file_line(item: dict[str, Any]) -> str:
    """Write a file that changed as one line."""
    counts = (
        "binary" if item["added"] is None else f"+{item['added']} -{item['deleted']}"
    )
    old = f" (was {item['oldPath']})" if item["oldPath"] else ""
    return f"{item['change']:<9} {item['path']}{old}  {counts}"


def path_inside(tree: WorkTree, folder: Path, text: str) -> str:
    """Return a file's path below the top of its work tree.

    Raises:
        NotFoundError: There is no such file.
        InvalidError: It is outside of the work tree, or no file.
    """
    path = folder / text
    if not path.exists() and not path.is_symlink():
        raise NotFoundError("file", text)
    if path.is_dir():
        raise InvalidError(f"'{text}' is a folder", hint="name a file")
    place = path.parent.resolve() / path.name
    if not place.is_relative_to(tree.root):
        raise InvalidError(f"'{text}' is outside of the work tree '{tree.root}'")
    return place.relative_to(tree.root).as_posix()
