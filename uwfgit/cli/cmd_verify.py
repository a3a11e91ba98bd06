"""The command that proves threads from git alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from uwfgit.cli.commands import add_command, make_single
from uwfgit.cli.context import CommandContext, get_context
from uwfgit.cli.output import Output, count_of
from uwfgit.cli.screen import shown
from uwfgit.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from uwfgit.cli.limited import Limits
    from uwfgit.store.repository import Store
    from uwfgit.sync.report import ThreadReport
    from uwfgit.sync.versions import Versions

app = make_single()

_MEANING: Final = (
    "consistent: whole, unchanged since its commits were made, and led by its own "
    "workflow to exactly these roles and prompts; not shown: who or what wrote an "
    "output, when, whether it is true, or that the whole was not written anew"
)


@add_command(app, "verify")
def verify(
    ctx: typer.Context,
    threads: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[THREAD...]", help="Which threads; else all. With --repo: refs."
        ),
    ] = None,
    repo: Annotated[
        str | None,
        typer.Option("--repo", metavar="DIR", help="Look at refs of any full clone."),
    ] = None,
    signatures: Annotated[
        bool,
        typer.Option(
            "--signatures", help="Demand good signatures, by whom the commits name."
        ),
    ] = False,
    workflow: Annotated[
        str | None,
        typer.Option(
            "--workflow",
            metavar="NAME",
            help="Demand a version of this registered workflow.",
        ),
    ] = None,
    seconds: Annotated[
        int | None,
        typer.Option(
            "--seconds", metavar="N", help="What one thread's check may take."
        ),
    ] = None,
) -> None:
    """Prove threads from git alone; exit code 1 on any problem.

    Every byte is recomputed from what is recorded, and every step's role and
    prompt from the pinned workflow. That proves a thread whole and unchanged
    since its commits were made, not who wrote it, nor that it is true.

    The check runs in a process of its own with limits to time and memory; a
    thread that exceeds them has a problem.
    """
    from uwfgit.cli.progress import Progress
    from uwfgit.store.reading import require_plain_config

    context = get_context(ctx)
    limits = _limits(seconds)
    with Progress(context) as progress:
        progress.tell("verifying")
        if repo is not None:
            store, reports = _verify_clone(context, repo, threads or [], limits)
            if signatures:
                require_plain_config(store.path)
        else:
            store, reports = _verify_store(context, threads or [], limits)
        checked = [
            _check_more(context, store, report, signatures, workflow)
            for report in reports
        ]
    items = [item for _, item in checked]
    if not items:
        context.output.say("no threads")
    ok = all(report.ok for report, _ in checked)
    if any(item["consistent"] for item in items) and context.output.is_text:
        context.output.say(_MEANING)
    context.output.emit(
        {"ok": ok, "items": items, "meaning": _MEANING}, lambda: _text(context, items)
    )
    raise typer.Exit(0 if ok else 1)


def _limits(seconds: int | None) -> Limits:
    from uwfgit.cli.limited import DEFAULT_LIMITS

    if seconds is None:
        return DEFAULT_LIMITS
    if seconds < 1:
        raise UsageError(f"--seconds: {seconds} is less than 1")
    return replace(DEFAULT_LIMITS, seconds=seconds)


def _verify_store(
    context: CommandContext, names: Sequence[str], limits: Limits
) -> tuple[Store, tuple[ThreadReport, ...]]:
    from uwfgit.cli.limited import verify_limited
    from uwfgit.model.ledger import resolve_thread

    ledger = context.open_ledger()
    named = [resolve_thread(ledger, name) for name in names]
    reports = verify_limited(
        ledger.store, named or None, environment=context.environment, limits=limits
    )
    return ledger.store, reports


def _verify_clone(
    context: CommandContext, repo: str, names: Sequence[str], limits: Limits
) -> tuple[Store, tuple[ThreadReport, ...]]:
    from uwfgit.cli.limited import Place, verify_refs_limited
    from uwfgit.store.reading import (
        find_repository,
        open_reading,
        require_whole,
        resolve_commit,
    )

    if not names:
        raise UsageError(
            "--repo needs refs to look at", hint="uwf verify --repo DIR REF..."
        )
    path = find_repository(context.resolve(repo))
    require_whole(path)
    store = open_reading(path)
    refs = []
    for name in names:
        found = resolve_commit(store, name)
        if found is None:
            raise NotFoundError("ref", name, hint=f"is it fetched into '{repo}'?")
        refs.append(found)
    reports = verify_refs_limited(
        Place(repository=path), refs, environment=context.environment, limits=limits
    )
    return store, reports


def _check_more(
    context: CommandContext,
    store: Store,
    report: ThreadReport,
    signatures: bool,
    workflow: str | None,
) -> tuple[ThreadReport, dict[str, Any]]:
    """Add what the options demand, and make the thread's part of the result."""
    from uwfgit.sync.signatures import check_signatures
    from uwfgit.sync.versions import compare_version, find_versions, require_version

    versions: Versions = find_versions(store, report.workflow_name or "")
    known = compare_version(versions, report)
    is_consistent = report.ok
    if workflow is not None:
        report = require_version(store, report, workflow)
    approvals = None
    if signatures:
        report = check_signatures(store, report, environment=context.environment)
        approvals, report = _approvals(context, store, report)
    item = {
        **_report_payload(report),
        "consistent": is_consistent,
        "workflow": known,
        "approvals": approvals,
    }
    return report, item


def _approvals(
    context: CommandContext, store: Store, report: ThreadReport
) -> tuple[list[dict[str, Any]], ThreadReport]:
    from uwfgit.ids import ThreadId, is_thread_id
    from uwfgit.sync.report import VerifyProblem, plain
    from uwfgit.sync.signatures import list_approvals

    if report.tip is None or not is_thread_id(report.thread):
        return [], report
    found = list_approvals(
        store, ThreadId(report.thread), [report.tip], environment=context.environment
    )
    problems = tuple(
        VerifyProblem(
            commit=None, path=plain(each.ref), code="approval", message=each.problem
        )
        for each in found
        if each.problem
    )
    items = [
        {
            "tag": each.ref.removeprefix("refs/tags/"),
            "oid": each.oid,
            "by": each.by,
            "signer": each.signer,
            "problem": each.problem,
        }
        for each in found
    ]
    return items, replace(report, problems=(*report.problems, *problems))


def _report_payload(report: ThreadReport) -> dict[str, Any]:
    return {
        "threadId": report.thread,
        "oid": report.tip,
        "ok": report.ok,
        "problems": [
            {
                "commit": problem.commit,
                "path": problem.path,
                "code": problem.code,
                "message": problem.message,
            }
            for problem in report.problems
        ],
        "status": report.status,
        "steps": report.steps,
        "commits": report.commits,
        "workflowName": report.workflow_name,
        "workflowHash": report.workflow_hash,
        "agents": dict(report.agents),
        "attempts": report.attempts,
        "pokes": report.pokes,
        "notes": report.notes,
        "resolves": report.resolves,
        "signed": report.signed,
    }


def _text(context: CommandContext, items: Sequence[dict[str, Any]]) -> str:
    lines = []
    for item in items:
        for problem in item["problems"]:
            where = f"{problem['path']}: " if problem["path"] else ""
            place = f"{item['threadId']}: {problem['commit'] or '-'}: {where}"
            lines.append(shown(f"{place}{problem['message']} [{problem['code']}]"))
        for each in item["approvals"] or ():
            signer = each["signer"] or "nobody git knows"
            tail = f"{each['tag']} by {each['by']}, signed by {signer}"
            lines.append(shown(f"{item['threadId']}: approved: {tail}"))
        lines.append(_thread_line(context.output, item))
    return "\n".join(lines)


def _thread_line(output: Output, item: dict[str, Any]) -> str:
    word = "consistent" if item["consistent"] else "not consistent"
    if item["consistent"] and not item["ok"]:
        word += ", but not as demanded"
    agents = ", ".join(f"{kind} {count}" for kind, count in item["agents"].items())
    facts = [
        f"{item['threadId']}: {output.paint(word, 'end' if item['ok'] else 'error')}",
        count_of(item["steps"], "step"),
        f"workflow {shown(item['workflowName'] or '-')} {item['workflow']}",
        f"agents: {shown(agents) or '-'}",
    ]
    counted = ("attempts", "pokes", "notes", "resolves")
    facts += [f"{name} {item[name]}" for name in counted if item[name]]
    facts.append(f"signed {item['signed']} of {item['commits']}")
    return "; ".join(facts)
