"""The command that proves threads from git alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec import Struct
from msgspec.structs import replace

from uwfgit.cli.frame.commands import add_command, make_single
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import Output, count_of
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import NotFoundError, UsageError
from uwfgit.model.picture.columns import hang

if TYPE_CHECKING:
    from uwfgit.cli.check.limited import CheckLimits
    from uwfgit.ids import Oid
    from uwfgit.store.handle import Store
    from uwfgit.sync.exchange.signatures import Approval
    from uwfgit.sync.verify.registry import Versions
    from uwfgit.sync.verify.report import ThreadReport

app = make_single()

_MOST_SECONDS: Final = 86_400
_IN_SHORT: Final = (
    "consistent: whole and unchanged; not who wrote it, nor that it is true"
)
_MEANING: Final = (
    "consistent: whole, unchanged since its commits were made, and led by its own "
    "workflow to exactly these roles and prompts; not shown: who or what wrote an "
    "output, when, whether it is true, or that the whole was not rewritten"
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
            "--seconds",
            metavar="N",
            help="Seconds of CPU time that one thread's check may take.",
        ),
    ] = None,
    children: Annotated[
        bool,
        typer.Option(
            "--children", help="Demand that the threads that did steps are here."
        ),
    ] = False,
) -> None:
    """Prove threads from git alone; exit code 1 on any problem.

    Every byte is recomputed from what is recorded, and every step's role and
    prompt from the pinned workflow. That proves a thread whole and unchanged
    since its commits were made, not who wrote it, nor that it is true.

    The check runs in a process of its own with limits to time and memory; a
    thread that exceeds them has a problem.
    """
    from uwfgit.cli.frame.progress import Progress

    context = get_context(ctx)
    limits = _limits(seconds)
    with Progress(context) as progress:
        progress.tell("verifying")
        if repo is not None:
            store, reports = _verify_clone(context, repo, threads or [], limits)
        else:
            store, reports = _verify_store(context, threads or [], limits)
        demands = _Demands(
            signatures=signatures,
            workflow=workflow,
            children=children,
            is_own=repo is None,
        )
        checked = [_check_more(context, store, each, demands) for each in reports]
    items = [item for _, item in checked]
    if not items:
        context.output.say("no threads")
    ok = all(report.ok for report, _ in checked)
    if any(item["consistent"] for item in items) and context.output.is_text:
        context.output.say(_MEANING if context.options.verbose else _IN_SHORT)
    context.output.emit(
        {"ok": ok, "items": items, "meaning": _MEANING}, lambda: _text(context, items)
    )
    raise typer.Exit(0 if ok else 1)


def _limits(seconds: int | None) -> CheckLimits:
    from uwfgit.cli.check.limited import DEFAULT_LIMITS

    if seconds is None:
        return DEFAULT_LIMITS
    if not 1 <= seconds <= _MOST_SECONDS:
        raise UsageError(f"--seconds: {seconds} is not from 1 to {_MOST_SECONDS}")
    return replace(DEFAULT_LIMITS, seconds=seconds)


def _verify_store(
    context: CommandContext, names: Sequence[str], limits: CheckLimits
) -> tuple[Store, tuple[ThreadReport, ...]]:
    from uwfgit.cli.check.limited import verify_limited
    from uwfgit.model.ledger.ledger import resolve_thread

    ledger = context.open_ledger()
    named = [resolve_thread(ledger, name) for name in names]
    reports = verify_limited(
        ledger.store, named or None, environment=context.environment, limits=limits
    )
    return ledger.store, reports


def _verify_clone(
    context: CommandContext, repo: str, names: Sequence[str], limits: CheckLimits
) -> tuple[Store, tuple[ThreadReport, ...]]:
    from uwfgit.cli.check.limited import CheckPlace, verify_refs_limited
    from uwfgit.store.git.reading import (
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
    refs: list[tuple[str, Oid]] = []
    spoilt: list[ThreadReport] = []
    for name in names:
        found = resolve_commit(store, name)
        if found is None:
            raise NotFoundError("ref", name, hint=f"is it fetched into '{repo}'?")
        merged, odd = _look_inside(store, *found)
        refs += merged
        spoilt += odd
    reports = verify_refs_limited(
        CheckPlace(repository=path),
        refs,
        environment=context.environment,
        limits=limits,
    )
    return store, (*reports, *spoilt)


def _look_inside(
    store: Store, ref: str, tip: Oid
) -> tuple[list[tuple[str, Oid]], list[ThreadReport]]:
    """Return what to verify of a ref: itself, or the threads merged into it.

    Those too of which it holds other files than their newest event left.
    """
    from uwfgit.sync.verify.merged import find_merged, is_as_merged
    from uwfgit.sync.verify.report import refused_report

    merged = find_merged(store, tip)
    spoilt = [
        refused_report(thread, f"{ref} holds other files of it than {event} left")
        for thread, event in merged.items()
        if not is_as_merged(store, tip, thread, event)
    ]
    names = [(f"{ref}/{thread}", event) for thread, event in merged.items()]
    return names or [(ref, tip)], spoilt


class _Demands(Struct, frozen=True, kw_only=True):
    """What more a thread shall be than consistent, and whether its store is ours."""

    signatures: bool
    workflow: str | None
    children: bool
    is_own: bool


def _check_more(
    context: CommandContext, store: Store, report: ThreadReport, demands: _Demands
) -> tuple[ThreadReport, dict[str, Any]]:
    """Add what the options demand, and make the thread's part of the result."""
    from uwfgit.sync.verify.registry import (
        compare_version,
        find_versions,
        require_version,
    )
    from uwfgit.sync.verify.report import require_children

    versions: Versions = find_versions(store, report.workflow_name or "")
    known = compare_version(versions, report)
    is_consistent = report.ok
    approvals = None
    if demands.signatures:
        report, found = _check_signed(context, store, report, is_own=demands.is_own)
        approvals = [
            {
                "tag": each.ref.removeprefix("refs/tags/"),
                "oid": each.oid,
                "by": each.by,
                "signer": each.signer,
                "problem": each.problem,
            }
            for each in found
        ]
    if demands.workflow is not None:
        report = require_version(store, report, demands.workflow)
    if demands.children:
        report = require_children(report)
    item = {
        **_report_payload(report),
        "consistent": is_consistent,
        "workflow": known,
        "approvals": approvals,
        "signaturesChecked": demands.signatures and is_consistent,
    }
    return report, item


def _check_signed(
    context: CommandContext, store: Store, report: ThreadReport, *, is_own: bool
) -> tuple[ThreadReport, tuple[Approval, ...]]:
    from uwfgit.ids import ThreadId, is_thread_id
    from uwfgit.sync.exchange.signatures import (
        check_approvals,
        check_signatures,
        find_approvals,
    )
    from uwfgit.sync.verify.report import VerifyProblem, plain

    thread = ThreadId(report.thread)
    refs = find_approvals(store, thread) if is_thread_id(thread) else {}
    tips = [report.tip] if report.tip is not None and report.ok else []
    environment = context.environment
    is_safe = is_own or not tips
    copied = [*tips, *refs.values()]
    with nullcontext(store) if is_safe else _copy(store, copied) as place:
        report = check_signatures(place, report, environment=environment)
        found = check_approvals(store, refs, tips, place=place, environment=environment)
    problems = tuple(
        VerifyProblem(
            commit=None, path=plain(each.ref), code="approval", message=each.problem
        )
        for each in found
        if each.problem
    )
    return replace(report, problems=(*report.problems, *problems)), found


@contextmanager
def _copy(store: Store, oids: Sequence[Oid]) -> Iterator[Store]:
    """Yield a place for git to look at what a stranger's repository holds.

    It would do what that says in its config, and believe its indexes.
    """
    from uwfgit.store.git.reading import copy_history

    with TemporaryDirectory(prefix="uwf-") as folder:
        yield copy_history(store, oids, folder=Path(folder))


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
        "children": report.children,
        "childrenHere": report.children_here,
    }


def _text(context: CommandContext, items: Sequence[dict[str, Any]]) -> str:
    lines = []
    width = context.output.width
    for item in items:
        for problem in item["problems"]:
            where = f"{problem['path']}: " if problem["path"] else ""
            place = f"{item['threadId']}: {problem['commit'] or '-'}: {where}"
            told = shown(f"{place}{problem['message']} [{problem['code']}]")
            lines.append(hang(told, width))
        # What is wrong with an approval is told above.
        for each in item["approvals"] or () if item["ok"] else ():
            signer = each["signer"] or "nobody git knows"
            tail = f"{each['tag']} by {each['by']}, signed by {signer}"
            lines.append(hang(shown(f"{item['threadId']}: approved: {tail}"), width))
        lines.append(_thread_line(context.output, item))
    return "\n".join(lines)


_KNOWN: Final = {
    "known": "registered",
    "older": "registered, since replaced",
    "unknown": "not registered in this version",
}


def _thread_line(output: Output, item: dict[str, Any]) -> str:
    word = "consistent" if item["consistent"] else "not consistent"
    if item["consistent"] and not item["ok"]:
        word += ", but not as demanded"
    agents = ", ".join(f"{kind} {count}" for kind, count in item["agents"].items())
    facts = [
        f"{item['threadId']}: {output.paint(word, 'end' if item['ok'] else 'error')}",
        count_of(item["steps"], "step"),
        f"workflow {shown(item['workflowName'] or '-')} {_KNOWN[item['workflow']]}",
        f"agents: {shown(agents) or '-'}",
    ]
    counted = ("attempts", "pokes", "notes", "resolves")
    facts += [f"{name} {item[name]}" for name in counted if item[name]]
    if item["children"]:
        facts.append(f"children {item['childrenHere']} of {item['children']} here")
    # Anyone can put what looks like a signature into a commit.
    is_unchecked = item["signed"] and not item["signaturesChecked"]
    tail = ", not checked" if is_unchecked else ""
    facts.append(f"signed {item['signed']} of {item['commits']}{tail}")
    return hang("; ".join(facts), output.width)
