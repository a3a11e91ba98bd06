"""The events that a model decides beside the workflow: hold and summary."""

from __future__ import annotations

from collections import ChainMap
from typing import Final

from uwfgit.constants import MAX_STATE_BYTES, MAX_SUMMARY_BYTES
from uwfgit.errors import CorruptError
from uwfgit.ids import Hash
from uwfgit.model.node import DETAIL_TYPE, HOLD_TYPE, read_payload
from uwfgit.model.thread.derive import summary_file
from uwfgit.model.thread.event import tell_hold, tell_summary
from uwfgit.model.thread.record import NodePlaces
from uwfgit.model.thread.state import agent_label, decode_state
from uwfgit.model.thread.step import Hold, Usage, is_grown
from uwfgit.store.layout import STATE_FILE, SUMMARY_FILE, thread_folder
from uwfgit.store.raw import BLOB
from uwfgit.sync.verify.nodes import close_over, load_node, take_added, without
from uwfgit.sync.verify.rawtree import TreeChanges
from uwfgit.sync.verify.report import Fact, VerifyFindings, refusal, shown
from uwfgit.sync.verify.settle import Expected, check_order
from uwfgit.sync.verify.shape import Message, RawCommit
from uwfgit.sync.verify.step_files import next_run_folder
from uwfgit.sync.verify.view import VerifyRun, View

_SUPERVISOR: Final = "supervisor"


def check_hold(
    run: VerifyRun,
    commit: RawCommit,
    message: Message,
    *,
    view: View,
    places: NodePlaces,
    changes: TreeChanges,
    findings: VerifyFindings,
) -> tuple[Expected, NodePlaces]:
    """Check what a hold adds, and say what else it must leave.

    Raises:
        CorruptError: There is no telling why the thread was held.
    """
    check_order("hold", view, findings)
    claimed = Hash(message.trailers.get("Uwf-Node", ""))
    folder = next_run_folder(run.objects, view, view.state.steps + 1)
    added = take_added(changes, folder, places, findings, own=claimed)
    if added.get(claimed, ("",))[0] != HOLD_TYPE:
        raise refusal("event", f"Uwf-Node {shown(claimed)} is not a hold added here")
    sound = close_over(
        run.reader,
        [claimed],
        known=without(places, claimed),
        added=added,
        folder=folder,
        findings=findings,
    )
    if claimed not in sound:
        raise refusal("event", "the hold of this event is not valid")
    hold = read_payload(load_node(run.reader, added, claimed), Hold)
    nodes = ChainMap(added, places)
    detail = load_node(run.reader, nodes, hold.detail, DETAIL_TYPE)
    kind = detail.payload["kind"]
    findings.expect("the detail's kind", kind, _SUPERVISOR, code="type")
    told = tell_hold(view.state, claimed, hold.reason, hold.usage, by=commit.committer)
    expected = Expected(
        view=view.after(commit, told.state),
        files={},
        told=told,
        fact=Fact(event="hold"),
        agent=_judge(commit),
    )
    return expected, added


def check_summary(
    run: VerifyRun,
    commit: RawCommit,
    *,
    view: View,
    findings: VerifyFindings,
) -> Expected:
    """Say what a summary must leave; of its text only the shape is checked.

    Raises:
        CorruptError: There is no summary, or none that may be one.
    """
    check_order("summary", view, findings)
    folder = thread_folder(view.thread)
    text = _read_summary(run, commit, f"{folder}/{SUMMARY_FILE}", findings)
    usage = _read_usage(run, commit, f"{folder}/{STATE_FILE}")
    if not is_grown(view.state.usage, usage):
        findings.note("state", "the usage is less than before the summary")
    told = tell_summary(view.state, text, usage, by=commit.committer)
    return Expected(
        view=view.after(commit, told.state),
        files={f"{folder}/{SUMMARY_FILE}": summary_file(text)},
        told=told,
        fact=Fact(event="summary"),
        agent=_judge(commit),
    )


def _read_summary(
    run: VerifyRun, commit: RawCommit, path: str, findings: VerifyFindings
) -> str:
    oid = run.objects.find_file(commit.tree, path)
    if oid is None:
        raise refusal("file", "the summary is missing", path)
    data = run.objects.read(oid, BLOB, limit=MAX_SUMMARY_BYTES)
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        raise refusal("file", "the summary is not UTF-8", path) from exc
    if not text.strip():
        findings.note("file", "the summary is empty", path)
    return text


def _read_usage(run: VerifyRun, commit: RawCommit, path: str) -> Usage | None:
    """Read the only field of a state that no other part of a summary tells."""
    oid = run.objects.find_file(commit.tree, path)
    try:
        data = (
            b"" if oid is None else run.objects.read(oid, BLOB, limit=MAX_STATE_BYTES)
        )
        return decode_state(data).usage
    except CorruptError:
        return None


def _judge(commit: RawCommit) -> tuple[str, int]:
    """Return the author such an event must have: some model or agent, by its label."""
    return agent_label(commit.author.name), commit.committer.time
