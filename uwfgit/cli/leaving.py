"""Commands around what leaves by plain git: the hook pre-push, and what it lets by."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from uwfgit.cli.checks import allow_findings
from uwfgit.cli.context import get_context
from uwfgit.cli.output import talk
from uwfgit.cli.screen import shown
from uwfgit.errors import UsageError
from uwfgit.ids import Oid, is_oid

if TYPE_CHECKING:
    from uwfgit.sync.scan import Leaving

_NOTHING = "0" * 40
_FIELDS = 4


def pre_push_command(
    ctx: typer.Context,
    remote: Annotated[  # noqa: ARG001 - git gives it
        str, typer.Argument(metavar="REMOTE", help="Where to.")
    ],
    url: Annotated[  # noqa: ARG001 - git gives it; it may hold a password
        str, typer.Argument(metavar="URL", help="Its address.")
    ] = "",
) -> None:
    """Scan what a plain git push is about to send; git calls this."""
    from uwfgit.sync.scan import find_leaving, list_findings, way_out

    context = get_context(ctx)
    store = context.open_store()
    leaving = list(_read_leaving())
    found = find_leaving(store, leaving, environment=context.environment)
    if not found:
        return
    count = len({finding.id for finding in found})
    what = "a secret" if count == 1 else f"{count} secrets"
    talk(f"error: {what} would leave with this push; nothing was sent")
    for line in list_findings(found):
        talk(f"  {shown(line)}")
    talk(f"hint: {shown(way_out(found, leaving))}")
    raise typer.Exit(1)


def _read_leaving() -> Iterator[Leaving]:
    """Read what git says it will send: local ref, its oid, theirs, its oid."""
    lines = sys.stdin.read().splitlines() if sys.stdin is not None else []
    for line in lines:
        words = line.split(" ")
        if len(words) != _FIELDS or not (is_oid(words[1]) and is_oid(words[3])):
            raise UsageError("git's list of refs is not of the form it has")
        ref, new, _, old = words
        if new != _NOTHING:
            yield ref, Oid(new), None if old == _NOTHING else Oid(old)


def allow_command(
    ctx: typer.Context,
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="As the scan shows them.")
    ],
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Take it back: let them through no longer.")
    ] = False,
) -> None:
    """Let findings of the secret scan through, now and later.

    For what only looks like a secret. It holds in this store, for every thread
    and remote, until --revoke takes it back. Each is recorded in the store's own
    folder, with your name and the time.
    """
    context = get_context(ctx)
    store = context.open_store(write=True, create=False)
    allow_findings(context, store, ids, revoke=revoke)
    word = "revoked" if revoke else "allowed"
    context.output.emit({word: ids}, lambda: f"{word} {', '.join(ids)}")
