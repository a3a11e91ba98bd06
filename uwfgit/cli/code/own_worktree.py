"""A work tree of its own for a thread: started in one, or forked into one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from uwfgit.cli.code.foreign_code import require_agreed
from uwfgit.cli.code.place import (
    find_tree,
    list_known,
    require_sides,
)
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import NotFoundError, StateError, StoreError
from uwfgit.model.wording import count_of
from uwfgit.store.files import folder_below

if TYPE_CHECKING:
    from uwfgit.cli.frame.context import CommandContext
    from uwfgit.code.worktree import WorkTree
    from uwfgit.ids import Oid, ThreadId
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.thread.record import Record
    from uwfgit.model.thread.tip import Tip

_END: Final = 5
"""Characters of a thread's id that a branch is named by."""


class Scene(Struct, frozen=True, kw_only=True):
    """What a fork's work tree is made of: HEAD then, and the files."""

    tree: WorkTree
    head: Oid
    files: Oid


def branch_name(workflow: str, thread: ThreadId) -> str:
    """Return the name of the branch a thread works on by default."""
    return f"agent/{workflow}-{thread[-_END:].lower()}"


def fork_into(
    context: CommandContext,
    ledger: Ledger,
    tip: Tip,
    scene: Scene,
    *,
    folder: Path,
    branch: str | None,
) -> None:
    """Give a new fork a work tree of its own, as the code was at its step.

    Raises:
        StoreError: git cannot make it; the fork is taken back.
    """
    from uwfgit.code.scene import add_worktree, set_files, settle_index
    from uwfgit.engine.beside.trash import remove_thread
    from uwfgit.model.thread.record import open_record

    name = branch or branch_name(tip.state.workflow_name, tip.thread)
    try:
        made = add_worktree(scene.tree, folder, head=scene.head, branch=name)
        set_files(made, scene.files)
        settle_index(made, scene.head)
    except (StateError, StoreError):
        remove_thread(ledger, tip.thread, command="uwf thread fork")
        raise
    inside = open_record(ledger.store, tip).start.cwd_in_repo or "."
    place = folder_below(made.root, inside) or made.root
    ledger.local.set_folder(tip.thread, place)
    context.output.say(f"work tree {shown(str(made.root))} on branch {shown(name)}")


def find_scene(
    context: CommandContext,
    ledger: Ledger,
    record: Record,
    *,
    at: int,
    trust: bool,
) -> Scene:
    """Find what the code was after a step, 0 for before the first.

    Raises:
        StateError: It was not kept, or the commit of then is not here.
        UntrustedError: Others made it, and the user has not agreed.
    """
    steps, thread = list_known(record), record.tip.thread
    if at > len(steps):
        raise NotFoundError(
            "step",
            f"{thread}:{at}",
            hint=f"the thread has {count_of(len(steps), 'step')}",
        )
    if not steps:
        raise StateError(f"thread {thread} has no step yet, so no code was kept")
    sides = require_sides(steps[max(at, 1) - 1])
    files = sides.after if at else sides.before
    head = sides.step.head_after if at else sides.step.head_before
    tree = find_tree(context, ledger, record, files)
    if head is None:
        raise StateError(
            f"the code had no commit yet at step {at} of thread {thread}",
            hint="a work tree needs one to begin at",
        )
    found = tree.resolve(f"{head}^{{commit}}")
    if found is None:
        raise StateError(
            f"commit {head[:12]}, HEAD at step {at}, is not in '{tree.common_dir}'",
            hint="git fetch may bring it; push --code --with-commits sends it along",
        )
    require_agreed(context, ledger, record, tree, files, trust=trust)
    return Scene(tree=tree, head=found, files=files)


@contextmanager
def start_worktree(
    context: CommandContext, folder: Path | None, branch: str
) -> Iterator[Path]:
    """Make a work tree for a thread that is being started; gone if the block fails.

    Yields:
        Its counterpart of the working directory.

    Raises:
        StateError: This is no work tree, or it has no commit yet.
        StoreError: git cannot make it.
    """
    from uwfgit.code.scene import add_worktree, remove_worktree, set_files
    from uwfgit.code.worktree import WorkTree

    tree = WorkTree.find(context.cwd, context.environment)
    if tree is None:
        raise StateError("this is not a git work tree", hint="run it in a clone")
    head = tree.resolve("HEAD^{commit}")
    if head is None:
        raise StateError(
            "the code repository has no commit yet", hint="commit something first"
        )
    end = branch.rpartition("/")[2].rpartition("-")[2]
    place = folder or tree.root.parent / f"{tree.root.name}-{end}"
    made = add_worktree(tree, place, head=head, branch=branch)
    try:
        set_files(made, head)
        inside = made.root / context.cwd.resolve().relative_to(tree.root)
        yield inside if inside.is_dir() else made.root
    except BaseException:
        remove_worktree(tree, place, branch=branch)
        raise
    context.output.say(f"work tree {shown(str(made.root))} on branch {shown(branch)}")
