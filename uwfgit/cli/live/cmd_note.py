"""``thread note``: what the next run of a thread is to be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from uwfgit.cli.frame.arguments import TellOption, ThreadArgument, read_text
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.screen import shown_lines
from uwfgit.errors import InvalidError, SizeError, StateError, StoreError, UsageError

if TYPE_CHECKING:
    from uwfgit.model.thread.tip import Tip

_MAX_BYTES: Final = 1024 * 1024
_KEPT: Final = "kept for its next run"


def note_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    prompt: TellOption = None,
    drop: Annotated[
        bool, typer.Option("--drop", help="Take back what was to be told.")
    ] = False,
) -> None:
    """Keep a note for the next run of a thread, without running it.

    Whether that is exec, resume or poke, its agent is told; notes add up until then.
    They are kept on this machine. Without options the note is shown.
    """
    from uwfgit.model.ledger.ledger import find_tip

    context = get_context(ctx)
    if drop and prompt is not None:
        raise UsageError("--prompt and --drop exclude each other")
    is_write = drop or prompt is not None
    ledger = context.open_ledger(write=is_write, create=False)
    tip = find_tip(ledger, thread)
    note = ledger.local.find_note(tip.thread)
    if is_write:
        note = None if prompt is None else _add(context, tip, note, prompt)
        if not ledger.local.set_note(tip.thread, note):
            raise StoreError(
                "the note cannot be kept: the store cannot be written",
                hint="uwf doctor says why",
            )
    context.output.emit(
        {"threadId": tip.thread, "note": note},
        lambda: "" if note is None else shown_lines(note),
    )
    if context.output.is_text:
        context.output.say(
            "nothing is kept for its next run" if note is None else _KEPT
        )


def _add(context: CommandContext, tip: Tip, note: str | None, prompt: str) -> str:
    """Return what is kept so far with what is said now."""
    if tip.state.status == "cancelled":
        raise StateError(
            f"thread {tip.thread} is cancelled",
            hint=f"go on in a fork: uwf thread fork {tip.thread}",
        )
    text = read_text(context, prompt, what="--prompt").strip()
    if not text:
        raise InvalidError("the note is empty", hint="give one with -p TEXT")
    whole = text if note is None else f"{note}\n\n{text}"
    size = len(whole.encode())
    if size > _MAX_BYTES:
        raise SizeError("the note", found=size, limit=_MAX_BYTES)
    return whole
