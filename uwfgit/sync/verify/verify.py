"""Prove threads from git alone: no lookup, no local state, nothing written.

A thread is walked from genesis along first parents; each commit must leave
exactly what its event gives, recomputed from the commits before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from uwfgit.constants import FORMAT_VERSION, MAX_NESTED
from uwfgit.errors import CorruptError, UwfError
from uwfgit.ids import Oid, ThreadId, is_oid, is_thread_id
from uwfgit.model.thread.event import RUN_EVENTS, WORDS
from uwfgit.model.thread.record import NodePlaces
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import THREAD_PREFIX, find_ref_thread
from uwfgit.sync.verify.events import (
    check_fork,
    check_resolve,
    check_start,
    check_word,
    find_thread_at,
    thread_of,
)
from uwfgit.sync.verify.judged import check_hold, check_summary
from uwfgit.sync.verify.nodes import NodeReader
from uwfgit.sync.verify.rawtree import Objects, TreeChanges, diff_trees
from uwfgit.sync.verify.report import (
    MAX_PROBLEMS,
    ThreadReport,
    VerifyFindings,
    VerifyProblem,
    count_facts,
    plain_problem,
    refusal,
    refused_report,
    shown,
)
from uwfgit.sync.verify.settle import REPLAYED, Expected, settle
from uwfgit.sync.verify.shape import Message, RawCommit, parse_commit, parse_message
from uwfgit.sync.verify.step_events import check_step
from uwfgit.sync.verify.view import ChildView, Seen, VerifyRun, View

_KEPT_COMMITS = 50_000
"""Commits whose state one run keeps, so that forks are not checked again."""


def verify_thread(store: Store, tip: Oid, thread: ThreadId) -> ThreadReport:
    """Check the thread that ends at a commit; whatever is wrong is in the report."""
    return _report(_open(store), tip, thread)


def verify_refs(
    store: Store, refs: Iterable[tuple[str, str]]
) -> Iterator[ThreadReport]:
    """Check the threads that refs name, one after the other.

    A ref whose last part is a thread's id must end at that thread; any other
    name, below ``refs/heads/thread/`` refused, may end at whichever it likes.

    Args:
        store: Where they are.
        refs: Names of refs, and what they point at; they need not exist.
    """
    run = _open(store)
    for ref, target in refs:
        yield _report_ref(run, ref, target)


def _open(store: Store) -> VerifyRun:
    objects = Objects(store=store)
    return _make_run(objects, NodeReader(objects=objects), depth=0)


def _make_run(objects: Objects, reader: NodeReader, *, depth: int) -> VerifyRun:
    """Make a run that proves the children of its threads by runs of their own."""
    inner: list[VerifyRun] = []
    known: dict[Oid, ChildView | None] = {}

    def look(tip: Oid) -> ChildView | None:
        if depth >= MAX_NESTED:
            raise refusal("child", f"threads call each other more than {depth} deep")
        if tip not in known:
            if not inner:
                inner.append(_make_run(objects, reader, depth=depth + 1))
            known[tip] = _look_at(inner[0], tip)
        return known[tip]

    return VerifyRun(objects=objects, reader=reader, look=look)


def _look_at(run: VerifyRun, tip: Oid) -> ChildView | None:
    try:
        run.objects.commit(tip)
    except CorruptError:
        return None
    chain, problems = _check_all(run, tip)
    seen = [run.seen[commit.oid] for commit in chain if commit.oid in run.seen]
    is_read = not problems and len(seen) == len(chain)
    if not is_read or not seen or seen[-1].view is None:
        return ChildView(view=None, last=None, is_sound=False)
    view = seen[-1].view
    places: NodePlaces = {}
    for each in seen:
        places.update(each.added)
    last = run.load_step(places, view.chain) if view.chain else None
    facts = [each.fact for each in seen if each.fact is not None]
    return ChildView(
        view=view,
        last=last,
        is_sound=seen[-1].is_sound,
        is_whole=all(fact.is_child_here or fact.child is None for fact in facts),
    )


def _report_ref(run: VerifyRun, ref: str, target: str) -> ThreadReport:
    name = ref.removeprefix(THREAD_PREFIX)
    is_branch = ref == THREAD_PREFIX.rstrip("/") or ref.startswith(THREAD_PREFIX)
    last = ref.rpartition("/")[2]
    thread = ThreadId(last) if is_thread_id(last) else None
    if is_branch and find_ref_thread(ref) is None:
        return refused_report(name, f"{shown(ref)} is not a name of a thread's branch")
    if not is_oid(target):
        return refused_report(name, "the branch does not name a commit")
    tip = Oid(target)
    if thread is None:
        thread = find_thread_at(run.objects, tip)
    if thread is None:
        return refused_report(name, "it does not end at an event of a thread", tip)
    if len(run.seen) > _KEPT_COMMITS:
        run.seen.clear()
        run.commits.clear()
    return _report(run, tip, thread)


def _report(run: VerifyRun, tip: Oid, thread: ThreadId) -> ThreadReport:
    chain, problems = _check_all(run, tip)
    seen = [run.seen[commit.oid] for commit in chain if commit.oid in run.seen]
    problems += [problem for each in seen for problem in each.problems]
    view = seen[-1].view if seen else None
    if not chain and not problems:
        problems.append(plain_problem(tip, "chain", "the branch has no event"))
    if view is not None and len(seen) == len(chain) and view.thread != thread:
        message = f"the newest event is of thread {view.thread}"
        problems.append(plain_problem(tip, "thread", message))
    told: dict[str, Any] = count_facts(each.fact for each in seen if each.fact)
    state = next((each.view.state for each in reversed(seen) if each.view), None)
    if state is not None:
        told |= {
            "steps": state.steps,
            "status": state.status,
            "workflow_name": state.workflow_name,
            "workflow_hash": state.workflow_hash,
            "workflow_oid": state.workflow_oid,
        }
    return ThreadReport(
        thread=thread,
        tip=tip,
        problems=tuple(problems[:MAX_PROBLEMS]),
        commits=len(chain),
        **told,
    )


def _check_all(run: VerifyRun, tip: Oid) -> tuple[list[RawCommit], list[VerifyProblem]]:
    """Check a tip's chain, and before it the chains that its resolves took in."""
    waiting, done = [tip], set[Oid]()
    chain: list[RawCommit] = []
    problems: list[VerifyProblem] = []
    while waiting:
        if waiting[-1] in done:
            waiting.pop()
            continue
        chain, problems = _list_chain(run, waiting[-1])
        others = [each for commit in chain for each in commit.parents[1:]]
        new = [each for each in others if each not in done and each not in run.seen]
        if new:
            # The oldest first: later ones take it in as well.
            waiting += reversed(new)
            continue
        done.add(waiting.pop())
        if not problems:
            _check_chain(run, chain)
    return chain, problems


def _list_chain(
    run: VerifyRun, tip: Oid
) -> tuple[list[RawCommit], list[VerifyProblem]]:
    """Follow first parents to genesis; gives the chain oldest first."""
    chain: list[RawCommit] = []
    oid = tip
    while oid != GENESIS_OID:
        commit = run.commits.get(oid)
        if commit is None:
            findings = VerifyFindings(commit=oid)
            try:
                commit = parse_commit(oid, run.objects.commit(oid))
            except CorruptError as exc:
                findings.note_error(exc)
                return chain[::-1], findings.problems
            run.commits[oid] = commit
        chain.append(commit)
        oid = commit.parents[0]
    return chain[::-1], []


def _check_chain(run: VerifyRun, chain: list[RawCommit]) -> None:
    places: NodePlaces = {}
    before: Seen | None = None
    run.begin_chain()
    for commit in chain:
        seen = run.seen.get(commit.oid)
        if seen is None:
            seen = run.seen[commit.oid] = _check_commit(run, commit, before, places)
        if seen.view is None:
            return
        places.update(seen.added)
        before = seen


def _check_commit(
    run: VerifyRun, commit: RawCommit, before: Seen | None, places: NodePlaces
) -> Seen:
    findings = VerifyFindings(commit=commit.oid)
    view = None if before is None else before.view
    try:
        expected, added = _check_event(run, commit, view, places, findings)
    except UwfError as exc:
        findings.note_error(exc)
        return Seen(problems=tuple(findings.problems))
    except RecursionError:
        findings.note("size", "nested too deeply to check")
        return Seen(problems=tuple(findings.problems))
    problems = tuple(findings.problems)
    return Seen(
        view=expected.view,
        added=added,
        fact=replace(expected.fact, is_signed=commit.is_signed),
        problems=problems,
        is_sound=not problems and (before is None or before.is_sound),
    )


def _check_event(
    run: VerifyRun,
    commit: RawCommit,
    view: View | None,
    places: NodePlaces,
    findings: VerifyFindings,
) -> tuple[Expected, NodePlaces]:
    message = parse_message(commit.message)
    event = _event_of(commit, message, view)
    if view is not None and commit.committer.time < view.committed_at:
        findings.note("time", "the committer's time is before the parent's")
    root = run.objects.genesis_tree() if view is None else view.root
    changes = diff_trees(run.objects, root, commit.tree)
    expected, added = _expect(
        run, commit, message, event, view, places, changes, findings
    )
    settle(
        run.objects,
        commit,
        message,
        expected=expected,
        root=root,
        changes=changes,
        findings=findings,
    )
    is_replayed = REPLAYED in message.trailers
    if is_replayed and not (view and view.is_copy):
        findings.note("trailers", "an event replayed on top of no fork")
    is_copy = is_replayed or event == "fork"
    expected = replace(expected, view=replace(expected.view, is_copy=is_copy))
    return expected, added


def _event_of(commit: RawCommit, message: Message, view: View | None) -> str:
    trailers = message.trailers
    if trailers.get("Uwf-Format") != str(FORMAT_VERSION):
        raise refusal("format", f"Uwf-Format is {shown(trailers.get('Uwf-Format'))}")
    event = trailers.get("Uwf-Event", "")
    if (event == "start") != (view is None):
        raise refusal("event", f"event {shown(event)} cannot stand here")
    if (len(commit.parents) > 1) != (event == "resolve"):
        raise refusal(
            "parents", f"{len(commit.parents)} parents of event {shown(event)}"
        )
    if event not in {"start", "fork"} and view and thread_of(message) != view.thread:
        raise refusal("thread", f"an event of thread {thread_of(message)} stands here")
    return event


def _expect(
    run: VerifyRun,
    commit: RawCommit,
    message: Message,
    event: str,
    view: View | None,
    places: NodePlaces,
    changes: TreeChanges,
    findings: VerifyFindings,
) -> tuple[Expected, NodePlaces]:
    if view is None:
        return check_start(run, commit, message, changes=changes, findings=findings)
    if event in RUN_EVENTS:
        return check_step(
            run,
            commit,
            message,
            event=event,
            view=view,
            places=places,
            changes=changes,
            findings=findings,
        )
    if event == "hold":
        return check_hold(
            run,
            commit,
            message,
            view=view,
            places=places,
            changes=changes,
            findings=findings,
        )
    return _expect_no_node(run, commit, message, event, view, findings), {}


def _expect_no_node(
    run: VerifyRun,
    commit: RawCommit,
    message: Message,
    event: str,
    view: View,
    findings: VerifyFindings,
) -> Expected:
    if event == "fork":
        return check_fork(run, commit, message, view=view, findings=findings)
    if event == "summary":
        return check_summary(run, commit, view=view, findings=findings)
    if event in WORDS:
        return check_word(commit, event, view=view, findings=findings)
    if event != "resolve":
        raise refusal("event", f"event {shown(event)} is not known")
    kept, given = commit.parents
    other = run.seen.get(given)
    is_merged = given in _ancestors(run, kept) or kept in _ancestors(run, given)
    return check_resolve(
        commit,
        view=view,
        other=other.view if other is not None and other.is_sound else None,
        is_merged=is_merged,
        findings=findings,
    )


def _ancestors(run: VerifyRun, oid: Oid) -> set[Oid]:
    """Return a commit and all that it holds, of the commits that were read."""
    found: set[Oid] = set()
    waiting = [oid]
    while waiting:
        commit = run.commits.get(waiting.pop())
        if commit is not None and commit.oid not in found:
            found.add(commit.oid)
            waiting += commit.parents
    return found
