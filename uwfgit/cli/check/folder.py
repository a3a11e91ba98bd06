"""Where a thread works when no folder is named for it, and folders others name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from uwfgit.cli.frame.context import CommandContext

if TYPE_CHECKING:
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.thread.record import Record


def find_folder_of(
    context: CommandContext, ledger: Ledger, record: Record, *, is_own: bool
) -> Path | None:
    """Choose where a thread works that no folder is named for.

    Args:
        is_own: Whether it was made on this machine alone. Another never works in
            the folder it recorded, but in one that was chosen here. One of our own
            whose folder is gone, and another that has none, works in this work tree
            when it began in this repository.

    Returns:
        ``None`` when the user has to name one.
    """
    from uwfgit.model.ledger.ledger import lineage

    threads = (record.tip.thread,) if is_own else lineage(ledger, record.tip)
    known = next(filter(None, map(ledger.local.find_folder, threads)), None)
    if is_own:
        known = known or Path(record.start.cwd)
        if not os.path.isdir(known):  # noqa: PTH112 - pathlib's raises at a long name
            return _find_same_repository(context, record) or known
    return known or _find_same_repository(context, record)


def _find_same_repository(context: CommandContext, record: Record) -> Path | None:
    from uwfgit.store.git.worktree import root_commit

    start, enclosing = record.start, context.enclosing
    if enclosing is None or start.root_commit is None or start.cwd_in_repo is None:
        return None
    folder = folder_below(enclosing.root, start.cwd_in_repo)
    if folder is None:
        return None
    here = root_commit(
        enclosing.root, environment=context.environment, memory=context.home
    )
    return folder if here == start.root_commit else None


def folder_below(root: Path, path: str) -> Path | None:
    """Find a folder by someone else's text; nothing outside is so much as looked at.

    Links are not followed: what a start records is resolved.
    """
    if path.startswith("/") or ".." in path.split("/") or "\0" in path:
        return None
    folder = root
    for part in Path(path).parts:
        folder /= part
        if os.path.islink(folder):  # noqa: PTH114 - pathlib's raises at a long name
            return None
    return folder if os.path.isdir(folder) else None  # noqa: PTH112 - as above
