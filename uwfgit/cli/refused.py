"""A run that was refused: its object stands in the place of the error's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from uwfgit.cli.context import CommandContext
from uwfgit.errors import CorruptError, FormatVersionError, UwfError

if TYPE_CHECKING:
    from uwfgit.ids import ThreadId
    from uwfgit.model.ledger import Ledger


@contextmanager
def refusal_told(
    context: CommandContext, ledger: Ledger, thread: ThreadId
) -> Iterator[None]:
    """Print how a thread stands, and why, when the block cannot run it.

    For programs only, as the run's own object; people get the error's two
    lines. The error goes on either way: it knows the exit code. A thread that
    is not there has no such object, and the error is printed alone.
    """
    try:
        yield
    except UwfError as exc:
        if not context.output.is_text:
            _tell(context, ledger, thread, exc)
        raise


def _tell(
    context: CommandContext, ledger: Ledger, thread: ThreadId, error: UwfError
) -> None:
    from uwfgit.cli.payloads import error_payload, refused_payload

    try:
        stands = _find_standing(ledger, thread)
    except UwfError:
        return
    told = error_payload(
        error.code,
        context.mask_message(error.message),
        error.hint and context.mask_message(error.hint),
    )
    context.output.emit(refused_payload(thread, stands, told), str)
    context.is_told = True


def _find_standing(ledger: Ledger, thread: ThreadId) -> dict[str, Any] | None:
    """Give a thread as ``thread show`` does; ``None`` for a corrupt one."""
    from uwfgit.cli.payloads import thread_payload
    from uwfgit.model.record import load_tip
    from uwfgit.model.sharing import find_sharing
    from uwfgit.model.standing import is_running

    try:
        tip = load_tip(ledger.store, thread)
        sharing = find_sharing(ledger.store, thread, tip.commit)
    except (CorruptError, FormatVersionError):
        return None
    return thread_payload(
        tip, running=is_running(ledger.store, thread), sharing=sharing
    )
