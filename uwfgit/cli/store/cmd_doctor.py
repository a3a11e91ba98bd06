"""The command ``doctor``: everything looked at once, each problem with its fix."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import asdict

from uwfgit.cli.frame.commands import add_command, make_single
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import ConflictError, UwfError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from uwfgit.cli.frame.progress import Progress
    from uwfgit.ids import Oid, ThreadId
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.store.care.health import HealthFinding
    from uwfgit.store.handle import Store

app = make_single()


@add_command(app, "doctor")
def doctor(
    ctx: typer.Context,
    fix: Annotated[
        bool, typer.Option("--fix", help="Fix what can be fixed safely.")
    ] = False,
) -> None:
    """Look for what is wrong with the store and the set-up.

    Looks at git, the store's settings, hook, refs, lookup, objects and locks, at the
    configured agents and keys (which are never shown), at threads that exist
    only here, and tries to sign if you want that. Exits 1 when there are problems.
    """
    from uwfgit.cli.frame.progress import Progress
    from uwfgit.cli.store import setup_checks

    context = get_context(ctx)
    with Progress(context) as progress:
        findings = list(_look(context, progress))
    mended: list[HealthFinding] = []
    if fix:
        tried = [finding for finding in findings if _mend(context, finding)]
        with Progress(context) as progress:
            findings = list(_look(context, progress))
        left = {finding.message for finding in findings}
        mended = [finding for finding in tried if finding.message not in left]
    agents = setup_checks.find_agents(context)
    keys = setup_checks.find_keys(context)
    findings += [
        *setup_checks.check_config(context),
        *setup_checks.check_agents(agents),
        *setup_checks.check_default_agent(context),
        *setup_checks.check_keys(keys),
    ]
    ok = not any(finding.level == "problem" for finding in findings)
    payload = {
        "ok": ok,
        "store": str(context.store_choice.path),
        "checks": [_finding_payload(finding) for finding in findings],
        "mended": [_finding_payload(finding) for finding in mended],
        "agents": [
            {
                "name": agent.name,
                "kind": agent.kind,
                "path": agent.path,
                "version": agent.version,
                "problem": agent.problem,
            }
            for agent in agents
        ],
        "keys": [asdict(key) for key in keys],
        "onlyHere": _find_unshared(context),
    }
    context.output.emit(payload, lambda: _format(context, findings, mended))
    raise typer.Exit(0 if ok else 1)


def _look(context: CommandContext, progress: Progress) -> Iterator[HealthFinding]:
    from uwfgit.cli.store.code_care import check_code
    from uwfgit.cli.store.setup_checks import check_git, check_signing
    from uwfgit.model.thread.private import find_private
    from uwfgit.store.care import health, integrity

    progress.tell("looking")
    git = tuple(check_git(context.environment))
    yield from git
    if not context.store_choice.path.exists():
        yield health.HealthFinding(
            check="store",
            level="note",
            message=f"no store at {context.store_choice.path} yet",
            hint="uwf init; a command that writes makes it too",
        )
        return
    try:
        ledger = context.open_ledger()
    except UwfError as exc:
        yield health.HealthFinding(
            check="store", level="problem", message=exc.message, hint=exc.hint
        )
        return
    store = ledger.store
    yield health.HealthFinding(check="store", level="ok", message=str(store.path))
    yield from health.check_disk(store)
    yield from health.check_store_settings(store)
    yield from integrity.check_hook(store, environment=context.environment)
    yield from health.check_refs(store)
    lookup = list(health.check_lookup(store, ledger.lookup))
    yield from lookup
    if all(finding.level != "problem" for finding in lookup):
        # Asking it would mend it, and this only looks.
        yield from _check_threads(ledger)
    yield from health.check_local(store)
    yield from integrity.check_broken_refs(store)
    yield from health.check_objects(store)
    yield from integrity.check_packs(store)
    yield from integrity.check_integrity(
        store, environment=context.environment, on_phase=progress.tell
    )
    yield from health.check_locks(store)
    yield from health.check_unshared(store, find_private)
    if all(finding.level != "problem" for finding in git):
        yield from check_code(context, store)
    yield from check_signing(context, ledger)


def _check_threads(ledger: Ledger) -> Iterator[HealthFinding]:
    from uwfgit.model.ledger.ledger import list_threads
    from uwfgit.store.care.health import HealthFinding
    from uwfgit.store.layout import THREAD_PREFIX, thread_ref
    from uwfgit.store.lookup.refscan import list_broken

    # A branch whose file was cut is told by itself, with what restores it.
    cut = frozenset(list_broken(ledger.store.path, THREAD_PREFIX))
    for row in list_threads(ledger):
        if row.problem is not None and thread_ref(row.thread) not in cut:
            thread = row.thread
            good = _find_good(ledger.store, thread)
            yield HealthFinding(
                check="threads",
                level="problem",
                message=f"thread {thread} cannot be read: {row.problem}",
                hint=f"its log names a commit that can be: `uwf git update-ref "
                f"{thread_ref(thread)} {good}`"
                if good is not None
                else "first fix what is said of refs and objects here; "
                f"`uwf verify {thread}` says more; when nothing brings it back: "
                f"`uwf thread rm {thread}`",
            )


def _find_good(store: Store, thread: ThreadId) -> Oid | None:
    """Find the newest commit in a branch's log at which its thread can be read."""
    from uwfgit.model.thread.tip import read_tip
    from uwfgit.store.layout import thread_ref
    from uwfgit.store.safety.ref_logs import list_logged

    for oid in list_logged(store.path, thread_ref(thread)):
        with suppress(UwfError):
            read_tip(store, thread, oid)
            return oid
    return None


def _mend(context: CommandContext, finding: HealthFinding) -> bool:
    if finding.level != "problem" or finding.mend is None:
        return False
    try:
        finding.mend()
    except ConflictError as exc:
        context.output.warn(f"not fixed, try again: {exc.message}")
        return False
    return True


def _find_unshared(context: CommandContext) -> list[str]:
    from uwfgit.store.care.health import find_unshared

    try:
        return list(find_unshared(context.open_store()))
    except UwfError:
        return []


def _finding_payload(finding: HealthFinding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "level": finding.level,
        "message": finding.message,
        "hint": finding.hint,
        "fixable": finding.mend is not None,
    }


def _format(
    context: CommandContext,
    findings: Sequence[HealthFinding],
    mended: Sequence[HealthFinding],
) -> str:
    lines = []
    for word, found in (("mended", mended), ("", findings)):
        for finding in found:
            level = word or finding.level
            painted = context.output.paint(level.ljust(7), _COLORS.get(level, level))
            lines.append(f"{painted}  {finding.check}: {shown(finding.message)}")
            if finding.hint and not word:
                lines.append(f"         fix: {shown(finding.hint)}")
    return "\n".join(lines)


_COLORS = {"ok": "valid", "problem": "error", "note": "warning", "mended": "valid"}
"""A level, and the word whose colour it has."""
