"""Code that others made: one screen before it becomes files here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from uwfgit.cli.frame.output import agrees, talk
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import UntrustedError
from uwfgit.ids import Oid

if TYPE_CHECKING:
    from uwfgit.cli.frame.context import CommandContext
    from uwfgit.code.worktree import WorkTree
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.thread.record import Record

_RUN: Final = re.compile(
    rb"(?:.*/)?(?:"
    rb"\.claude/.*|\.codex/.*|\.gemini/.*|\.cursor/.*|\.opencode/.*|\.vscode/.*"
    rb"|\.idea/.*|\.husky/.*|\.githooks/.*|hooks/.*|\.github/workflows/.*"
    rb"|\.mcp\.json|\.envrc|\.cursorrules|CLAUDE\.md|AGENTS\.md|GEMINI\.md"
    rb"|\.pre-commit-config\.yaml|lefthook\.ya?ml|Makefile|package\.json"
    rb"|\.gitattributes|\.gitmodules|conftest\.py|\.pth|opencode\.json"
    rb")"
)
"""Files that agents, editors, shells and common tools run or obey by themselves."""
_SHOWN: Final = 20


def require_agreed(
    context: CommandContext,
    ledger: Ledger,
    record: Record,
    tree: WorkTree,
    target: Oid,
    *,
    trust: bool,
) -> None:
    """Require that the user agrees before a stranger's snapshot becomes files.

    Raises:
        UntrustedError: They do not, or there is nobody to ask.
    """
    if _is_ours(ledger, record, tree, target):
        return
    error = UntrustedError(
        f"the code of thread {record.tip.thread} was not made on this machine",
        hint=f"read it first: uwf thread code {record.tip.thread}; then say --trust",
    )
    if not trust and not context.output.is_text:
        raise error
    tell = talk if context.output.is_text else context.output.say
    for line in _screen(tree, record, target):
        tell(shown(line))
    if not trust and not agrees("write these files? [y/N] "):
        raise error


def _is_ours(ledger: Ledger, record: Record, tree: WorkTree, target: Oid) -> bool:
    """Whether a snapshot was taken here, by a thread that others did not touch."""
    from uwfgit.code.chain import chain_ref, find_snapshot
    from uwfgit.model.ledger.ledger import lineage

    threads = {record.tip.thread, *lineage(ledger, record.tip)}
    is_here = any(find_snapshot(tree, chain_ref(t), target) for t in threads)
    return is_here and not ledger.local.is_foreign(record.tip.thread, record.tip.commit)


def _screen(tree: WorkTree, record: Record, target: Oid) -> list[str]:
    from uwfgit.code.changes import list_files
    from uwfgit.code.worktree import name_text

    # Before the first commit, all files are other than in HEAD.
    nothing = tree.ask("hash-object", "-t", "tree", "--stdin").decode().strip()
    head = tree.resolve("HEAD^{tree}") or Oid(nothing)
    changed = list_files(tree, head, target)
    risky = [each for each in changed if _RUN.fullmatch(each.path)]
    lines = [
        f"the code of thread {record.tip.thread} was not made on this machine alone",
        f"  files:     {len(changed)} other than in HEAD",
    ]
    lines += [
        f"  run or obeyed by tools: {each.what} {name_text(each.path)}"
        for each in risky[:_SHOWN]
    ]
    if len(risky) > _SHOWN:
        lines.append(f"  and {len(risky) - _SHOWN} more of these")
    return lines
