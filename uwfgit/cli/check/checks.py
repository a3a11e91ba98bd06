"""What threads have to pass before they come in or leave.

Handed to the rooms below, which know neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.output import count_of
from uwfgit.cli.frame.progress import Progress

if TYPE_CHECKING:
    from uwfgit.ids import Oid, ThreadId
    from uwfgit.store.handle import Store
    from uwfgit.sync.exchange.exchange import Verify
    from uwfgit.sync.exchange.incoming import Check
    from uwfgit.sync.exchange.push import Scan
    from uwfgit.sync.verify.report import ThreadReport


def make_verify(context: CommandContext) -> Verify:
    """Return what verifies threads that this machine has not made."""

    def verify(store: Store, threads: Sequence[ThreadId]) -> Iterable[ThreadReport]:
        # Imported only now: most of what travels needs no verifying.
        from uwfgit.cli.check.limited import verify_limited

        with Progress(context) as progress:
            progress.tell(f"verifying {count_of(len(threads), 'thread')}")
            return verify_limited(store, threads, environment=context.environment)

    return verify


def make_check(context: CommandContext) -> Check:
    """Return what checks a registered workflow's branch, with the limits of verify."""

    def check(store: Store, tip: Oid, name: str) -> str | None:
        from uwfgit.cli.check.limited import (
            DEFAULT_LIMITS,
            CheckPlace,
            check_pushes_limited,
        )
        from uwfgit.store.layout import workflow_ref
        from uwfgit.sync.receive import ZERO, Push

        (problem,) = check_pushes_limited(
            CheckPlace(repository=store.path),
            [Push(old=ZERO, new=tip, ref=workflow_ref(name))],
            shared=False,
            environment=context.environment,
            limits=DEFAULT_LIMITS,
        )
        return problem

    return check


def make_scan(
    context: CommandContext,
    store: Store,
    *,
    allow: Sequence[str] = (),
    dry_run: bool = False,
) -> Scan:
    """Return what says which branches would carry a secret away.

    Args:
        context: The command's.
        store: Ours.
        allow: Findings to let through. They are recorded when it comes to the
            scan: what fails before lets nothing through for good.
        dry_run: Let them through this once.
    """

    def scan(leaving: Sequence[tuple[str, Oid, Oid | None]]) -> Mapping[str, str]:
        from uwfgit.sync.secrets.allowed import read_allowed
        from uwfgit.sync.secrets.scan import find_blocked

        if not dry_run:
            allow_findings(context, store, allow)
        with Progress(context) as progress:
            progress.tell("looking for secrets")
            return find_blocked(
                store,
                leaving,
                environment=context.environment,
                allowed=read_allowed(store).union(allow),
            )

    return scan


def allow_findings(
    context: CommandContext, store: Store, ids: Sequence[str], *, revoke: bool = False
) -> None:
    """Let findings of the scan through from now on, or no longer."""
    from uwfgit.cli.frame.world import now_ms
    from uwfgit.sync.secrets.allowed import allow_findings as record

    if ids:
        by = str(context.identity)
        record(store, ids, by=by, now_ms=now_ms(), revoke=revoke)
