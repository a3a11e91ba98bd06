"""A work tree beside the user's, whose files can be set to any snapshot."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from uwfgit.code.worktree import WorkTree
from uwfgit.errors import StateError, StoreError
from uwfgit.ids import Oid


@contextmanager
def open_scene(tree: WorkTree) -> Iterator[WorkTree]:
    """Yield an empty work tree of a repository for the length of the block.

    Raises:
        StateError: The repository has no commit yet.
        StoreError: git cannot make it.
    """
    head = tree.resolve("HEAD^{commit}")
    if head is None:
        raise StateError(
            "the code repository has no commit yet",
            hint="commit something there first",
        )
    with tempfile.TemporaryDirectory(prefix="uwf-", ignore_cleanup_errors=True) as top:
        folder = Path(top) / tree.root.name
        try:
            yield add_worktree(tree, folder, head=head, branch=None)
        finally:
            tree.run(["worktree", "remove", "--force", str(folder)], literal=False)
            shutil.rmtree(folder, ignore_errors=True)
            tree.run(["worktree", "prune"], literal=False)


def add_worktree(
    tree: WorkTree, folder: Path, *, head: Oid, branch: str | None
) -> WorkTree:
    """Make a work tree that has no files yet, at a commit.

    Args:
        tree: A work tree of the same repository.
        folder: Where; must not exist, or be empty.
        head: What its HEAD is.
        branch: A branch to make there; ``None`` leaves HEAD detached.

    Raises:
        StateError: The branch is there already.
        StoreError: git cannot make it; the branch is gone again.
    """
    if branch is not None and tree.resolve(f"refs/heads/{branch}") is not None:
        raise StateError(
            f"branch '{branch}' exists already", hint="choose --branch NAME"
        )
    how = ["--detach"] if branch is None else ["-b", branch]
    words = ["worktree", "add", "--quiet", "--no-checkout", *how, str(folder), head]
    done = tree.run(words, literal=False)
    if done.code:
        if branch is not None:
            tree.run(["branch", "-D", "--", branch], literal=False)
        raise StoreError(f"git cannot make a work tree: {done.complaint}")
    found = WorkTree.find(folder, tree.environment)
    if found is None:
        raise StoreError(f"git made no work tree at '{folder}'")
    return replace(found, environment=tree.environment)


def set_files(scene: WorkTree, snapshot: Oid) -> None:
    """Make the files of a work tree that is nobody's those of a snapshot.

    What is not in the index, as a build's results, stays.

    Raises:
        StoreError: git cannot write them.
    """
    scene.ask("read-tree", "--reset", "-u", snapshot)


def settle_index(tree: WorkTree, head: Oid) -> None:
    """Make the index of a work tree HEAD's; the files stay, as changes to it.

    Raises:
        StoreError: git cannot write it.
    """
    tree.ask("read-tree", "--reset", head)
    tree.run(["update-index", "-q", "--refresh"])


def remove_worktree(tree: WorkTree, folder: Path, *, branch: str | None) -> None:
    """Take back a work tree that was just made, and its branch."""
    tree.run(["worktree", "remove", "--force", str(folder)], literal=False)
    if branch is not None:
        tree.run(["branch", "-D", "--", branch], literal=False)
