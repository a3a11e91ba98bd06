"""The chains of code beside a store's threads: what gc drops, what doctor tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from uwfgit.errors import CorruptError, UwfError
from uwfgit.model.wording import count_of

if TYPE_CHECKING:
    from uwfgit.cli.frame.context import CommandContext
    from uwfgit.code.worktree import WorkTree
    from uwfgit.ids import ThreadId
    from uwfgit.store.care.health import HealthFinding
    from uwfgit.store.handle import Store


def drop_orphans(context: CommandContext, store: Store) -> int:
    """Remove the chains of threads that are gone for good; return how many."""
    from uwfgit.code.care import drop_chains
    from uwfgit.code.snapshots.take import sweep

    sweep(store.state_dir / "code")
    tree = _find_tree(context)
    if tree is None:
        return 0
    orphans = _find_orphans(context, store, tree)
    drop_chains(tree, orphans)
    return len(orphans)


def check_code(context: CommandContext, store: Store) -> Iterator[HealthFinding]:
    """Look at the chains in the code repository around, and at its remotes."""
    from uwfgit.code.care import find_mirrors
    from uwfgit.code.chain import list_chain_refs
    from uwfgit.store.care.health import HealthFinding

    tree = _find_tree(context)
    if tree is None or not list_chain_refs(tree):
        return
    orphans = _find_orphans(context, store, tree)
    if orphans:
        names = ", ".join(orphans[:3]) + (" …" if len(orphans) > 3 else "")  # noqa: PLR2004
        yield HealthFinding(
            check="code",
            level="note",
            message=f"code of {count_of(len(orphans), 'removed thread')}: {names}",
            hint="uwf gc removes it",
        )
    for remote in find_mirrors(tree):
        yield HealthFinding(
            check="code",
            level="problem",
            message=f"remote '{remote}' of the code is a mirror: git push takes "
            "refs/uwf/code/ there",
            hint=f"git config --unset remote.{remote}.mirror",
        )


def _find_tree(context: CommandContext) -> WorkTree | None:
    from uwfgit.code.worktree import WorkTree

    folder = context.folder
    return None if folder is None else WorkTree.find(folder, context.environment)


def _find_orphans(
    context: CommandContext, store: Store, tree: WorkTree
) -> tuple[ThreadId, ...]:
    """List chains without a thread; none when a store cannot say what it has."""
    from uwfgit.code.care import find_orphans
    from uwfgit.store.layout import TRASH_PREFIX, thread_ref
    from uwfgit.store.refs import find_ref
    from uwfgit.store.repository import open_store
    from uwfgit.store.safety.stores import list_stores

    try:
        others = [path for path in list_stores(context.home) if path.exists()]
        stores = [store, *(open_store(path, home=context.home) for path in others)]
    except UwfError:
        return ()

    def is_there(each: Store, name: str) -> bool:
        try:
            return find_ref(each, name) is not None
        except CorruptError:
            # A damaged branch is one all the same.
            return True

    def is_known(thread: ThreadId) -> bool:
        names = (thread_ref(thread), TRASH_PREFIX + thread)
        return any(is_there(each, name) for each in stores for name in names)

    return find_orphans(tree, is_known)
