"""What the words of push and pull name: a remote, threads, workflows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uwfgit.cli.context import CommandContext
from uwfgit.cli.wires import take_remote
from uwfgit.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from uwfgit.model.ledger import Ledger
    from uwfgit.sync.remotes import Remote


def require_known(ledger: Ledger, word: str, *, hint: str | None = None) -> None:
    """See to it that the first word names a remote, or what can be sent to one.

    Raises:
        NotFoundError: It does neither.
        AmbiguousError: It names several threads.
    """
    from uwfgit.sync.remotes import find_remote

    if find_remote(ledger.store, word) is not None:
        return
    try:
        find_branch(ledger, word)
    except NotFoundError as exc:
        if word == "@last":
            raise
        raise NotFoundError(
            "remote or thread",
            word,
            hint=hint or "list them: uwf remote list, uwf thread list --all",
        ) from exc


def find_branch(ledger: Ledger, name: str) -> str:
    """Give the branch of a thread or, as ``workflow/NAME``, of a workflow.

    Raises:
        NotFoundError, AmbiguousError: As finding a thread says.
    """
    from uwfgit.model.ledger import resolve_thread
    from uwfgit.store.layout import is_workflow_name, thread_ref, workflow_ref

    workflow = name.removeprefix("workflow/")
    if workflow != name and is_workflow_name(workflow):
        return workflow_ref(workflow)
    return thread_ref(resolve_thread(ledger, name))


def take_source(
    context: CommandContext, ledger: Ledger, words: list[str]
) -> tuple[Remote, list[str]]:
    """Take the remote off the words of a pull, whose thread need not be here.

    Raises:
        NotFoundError: There are several, and the first word names nothing.
        AmbiguousError: It names several threads.
        UsageError, RemoteError: As choosing says.
    """
    from uwfgit.sync.remotes import list_remotes

    try:
        return take_remote(context, ledger.store, words)
    except UsageError:
        if words:
            names = ", ".join(each.name for each in list_remotes(ledger.store))
            hint = f"one that is not here yet needs its remote before it: {names}"
            require_known(ledger, words[0], hint=hint)
        raise
