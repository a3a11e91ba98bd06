"""Chains that nothing needs any more, and remotes that would take them along."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from uwfgit.code.chain import chain_ref, list_chain_refs
from uwfgit.code.exchange import list_remote_chains
from uwfgit.code.worktree import WorkTree
from uwfgit.ids import ThreadId


def find_orphans(
    tree: WorkTree, is_known: Callable[[ThreadId], bool]
) -> tuple[ThreadId, ...]:
    """List the chains of threads that no store of the user's has, nor its trash."""
    return tuple(each for each in list_chain_refs(tree) if not is_known(each))


def drop_chains(tree: WorkTree, threads: Iterable[ThreadId]) -> int:
    """Remove the chains of threads; git's own gc takes their objects in time.

    Returns:
        How many refs went.
    """
    gone = frozenset(threads)
    refs = [chain_ref(thread) for thread in gone]
    refs += [ref for thread, ref, _ in list_remote_chains(tree) if thread in gone]
    return sum(tree.run(["update-ref", "-d", ref]).code == 0 for ref in refs)


def find_mirrors(tree: WorkTree) -> tuple[str, ...]:
    """List the remotes that a push mirrors to: chains would go along."""
    words = ["config", "--type=bool", "--get-regexp", r"^remote\..*\.mirror$"]
    lines = tree.run(words).stdout.decode("utf-8", "replace").splitlines()
    found = (line.rpartition(" ") for line in lines)
    return tuple(
        key.removeprefix("remote.").removesuffix(".mirror")
        for key, _, value in found
        if value == "true"
    )
