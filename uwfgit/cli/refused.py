"""A run that was refused: its object stands in the place of the error's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from uwfgit.cli.context import CommandContext
from uwfgit.errors import UwfError

if TYPE_CHECKING:
    from uwfgit.engine.report import RunReport
    from uwfgit.ids import ThreadId
    from uwfgit.model.ledger import Ledger


@contextmanager
def refusal_told(
    context: CommandContext, ledger: Ledger, thread: ThreadId
) -> Iterator[None]:
    """Print how a thread stands, and why, when the block cannot run it.

    For programs only, as the run's own object; people get the error's two
    lines. The error goes on either way: it knows the exit code. A thread whose
    state cannot be read has no such object, and the error is printed alone.
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
    from uwfgit.cli.payloads import run_payload

    report = _find_report(context, ledger, thread, error)
    if report is not None:
        context.output.emit(run_payload(report), str)
        context.is_told = True


def _find_report(
    context: CommandContext, ledger: Ledger, thread: ThreadId, error: UwfError
) -> RunReport | None:
    from uwfgit.cli.listing import is_running
    from uwfgit.cli.payloads import thread_payload
    from uwfgit.engine.report import RunReport
    from uwfgit.model.record import load_tip
    from uwfgit.model.sharing import find_sharing

    try:
        tip = load_tip(ledger.store, thread)
        sharing = find_sharing(ledger.store, thread, tip.commit)
    except UwfError:
        return None
    shown = thread_payload(tip, running=is_running(ledger, thread), sharing=sharing)
    hint = error.hint and context.mask_message(error.hint)
    return RunReport(
        thread=thread,
        workflow_hash=tip.state.workflow_hash,
        status=shown["status"],
        done=shown["done"],
        steps=(),
        exit_code=1,
        problem=context.mask_message(error.message),
        hint=hint,
        code=error.code,
    )
