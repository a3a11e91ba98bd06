"""The command ``doctor``: everything looked at once, each problem with its mend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from uwfgit.cli.commands import add_command, make_single
from uwfgit.cli.context import CommandContext, get_context
from uwfgit.cli.screen import shown
from uwfgit.errors import ConflictError, UwfError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from uwfgit.cli.setup_checks import FoundAgent, FoundKey
    from uwfgit.store.health import Finding

app = make_single()


@add_command(app, "doctor")
def doctor(
    ctx: typer.Context,
    fix: Annotated[
        bool, typer.Option("--fix", help="Mend what can be mended safely.")
    ] = False,
) -> None:
    """Look for what is wrong with the store and the set-up.

    Looks at git, the store's settings, refs, lookup, objects and locks, at the
    configured agents and keys (which are never shown), and at threads that
    exist only here. Exits 1 when there are problems.
    """
    from uwfgit.cli import setup_checks

    context = get_context(ctx)
    findings = list(_look(context))
    mended: list[Finding] = []
    if fix:
        tried = [finding for finding in findings if _mend(context, finding)]
        findings = list(_look(context))
        left = {finding.message for finding in findings}
        mended = [finding for finding in tried if finding.message not in left]
    agents = setup_checks.find_agents(context)
    keys = setup_checks.find_keys(context)
    findings += [
        *setup_checks.check_config(context),
        *setup_checks.check_agents(agents),
        *setup_checks.check_keys(keys),
    ]
    ok = not any(finding.level == "problem" for finding in findings)
    payload = {
        "ok": ok,
        "store": str(context.store_choice.path),
        "checks": [_finding_payload(finding) for finding in findings],
        "mended": [_finding_payload(finding) for finding in mended],
        "agents": [_agent_payload(agent) for agent in agents],
        "keys": [_key_payload(key) for key in keys],
        "onlyHere": _find_unshared(context),
    }
    context.output.emit(payload, lambda: _format(context, findings, mended))
    raise typer.Exit(0 if ok else 1)


def _look(context: CommandContext) -> Iterator[Finding]:
    from uwfgit.cli.setup_checks import check_git
    from uwfgit.store import health

    yield from check_git(context.environment)
    if not context.store_choice.path.exists():
        yield health.Finding(
            check="store",
            level="note",
            message=f"no store at {context.store_choice.path} yet",
            hint="uwf init; a command that writes makes it too",
        )
        return
    try:
        ledger = context.open_ledger()
    except UwfError as exc:
        yield health.Finding(
            check="store", level="problem", message=exc.message, hint=exc.hint
        )
        return
    store = ledger.store
    yield health.Finding(check="store", level="ok", message=str(store.path))
    yield from health.check_store_settings(store)
    yield from health.check_refs(store)
    yield from health.check_lookup(store, ledger.lookup)
    yield from health.check_objects(store)
    yield from health.check_locks(store)
    yield from health.check_unshared(store)


def _mend(context: CommandContext, finding: Finding) -> bool:
    if finding.level != "problem" or finding.mend is None:
        return False
    try:
        finding.mend()
    except ConflictError as exc:
        context.output.warn(f"not mended, try again: {exc.message}")
        return False
    return True


def _find_unshared(context: CommandContext) -> list[str]:
    from uwfgit.store.health import find_unshared

    try:
        return list(find_unshared(context.open_store()))
    except UwfError:
        return []


def _finding_payload(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "level": finding.level,
        "message": finding.message,
        "hint": finding.hint,
        "fixable": finding.mend is not None,
    }


def _agent_payload(agent: FoundAgent) -> dict[str, Any]:
    return {
        "name": agent.name,
        "kind": agent.kind,
        "path": agent.path,
        "version": agent.version,
        "problem": agent.problem,
    }


def _key_payload(key: FoundKey) -> dict[str, Any]:
    return {"provider": key.provider, "variable": key.variable, "source": key.source}


def _format(
    context: CommandContext, findings: Sequence[Finding], mended: Sequence[Finding]
) -> str:
    lines = []
    for word, found in (("mended", mended), ("", findings)):
        for finding in found:
            level = word or finding.level
            painted = context.output.paint(level.ljust(7), _COLORS.get(level, level))
            lines.append(f"{painted}  {finding.check}: {shown(finding.message)}")
            if finding.hint and not word:
                lines.append(f"         mend: {shown(finding.hint)}")
    return "\n".join(lines)


_COLORS = {"ok": "valid", "problem": "error", "note": "warning", "mended": "valid"}
"""A level, and the word whose colour it has."""
