"""How commands talk to remotes: environment, terminal, progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from uwfgit.cli.context import CommandContext
from uwfgit.cli.output import can_ask, talk_over, talk_width

if TYPE_CHECKING:
    from uwfgit.store.repository import Store
    from uwfgit.sync.remotes import Remote
    from uwfgit.sync.transport import Wire


@contextmanager
def open_wire(context: CommandContext) -> Iterator[Wire]:
    """Give the way to talk to remotes; on a terminal it shows progress."""
    from uwfgit.sync.transport import Wire

    width = talk_width(quiet=context.options.quiet)
    if width is None:
        yield Wire(environment=context.environment)
        return
    try:
        yield Wire(
            environment=context.environment,
            on_progress=lambda line: talk_over(line, width),
            can_ask=can_ask(),
        )
    finally:
        talk_over("", width)


def take_remote(
    context: CommandContext, store: Store, words: list[str]
) -> tuple[Remote, list[str]]:
    """Take the remote off a command's words, when the first one names one.

    Else it is the one to take: what the repository's ``.uwf.yaml`` says, the
    only one there is, or ``origin``.

    Raises:
        NotFoundError, UsageError, RemoteError: As choosing says.
    """
    from uwfgit.sync.remotes import choose_remote, find_remote

    if words and find_remote(store, words[0]) is not None:
        return choose_remote(store, words[0], share=None), words[1:]
    return choose_remote(store, None, share=context.settings.share), words
