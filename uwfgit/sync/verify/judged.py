"""The events that a model decides beside the workflow: hold and summary."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import replace
from typing import Final

from uwfgit.constants import MAX_STATE_BYTES, MAX_SUMMARY_BYTES
from uwfgit.errors import CorruptError
from uwfgit.ids import Hash
from uwfgit.model.node.node import DETAIL_TYPE, HOLD_TYPE
from uwfgit.model.node.places import NodePlaces
from uwfgit.model.thread.derive import summary_file
from uwfgit.model.thread.message import summary_subject
from uwfgit.model.thread.state import ThreadState, agent_label, decode_state
from uwfgit.model.thread.usage import Usage, is_grown, usage_from_payload
from uwfgit.store.layout import STATE_FILE, SUMMARY_FILE, thread_folder
from uwfgit.store.raw import BLOB
from uwfgit.sync.verify.nodes import close_over, load_node, take_added, without
from uwfgit.sync.verify.rawtree import Changes
from uwfgit.sync.verify.report import Fact, Findings, refusal, shown
from uwfgit.sync.verify.settle import Expected
from uwfgit.sync.verify.shape import Message, RawCommit
from uwfgit.sync.verify.state import (
    ALLOWED,
    hold_trailers,
    state_of_hold,
    state_of_summary,
    trailers_of,
)
from uwfgit.sync.verify.step_events import next_run_folder
from uwfgit.sync.verify.view import Run, View

_SUPERVISOR: Final = "supervisor"


def check_hold(
    run: Run,
    commit: RawCommit,
    message: Message,
    *,
    view: View,
    places: NodePlaces,
    changes: Changes,
    findings: Findings,
) -> tuple[Expected, NodePlaces]:
    """Check what a hold adds, and say what else it must leave.

    Raises:
        CorruptError: There is no telling why the thread was held.
    """
    if view.state.status not in ALLOWED["hold"]:
        findings.note("event", f"no hold may follow while {view.state.status}")
    claimed = Hash(message.trailers.get("Uwf-Node", ""))
    folder = next_run_folder(run.objects, view, view.state.steps + 1)
    added = take_added(changes, folder, places, findings, own=claimed)
    if added.get(claimed, ("",))[0] != HOLD_TYPE:
        raise refusal("event", f"Uwf-Node {shown(claimed)} is no hold added here")
    payload = load_node(run.reader, added, claimed).payload
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
    nodes = ChainMap(added, places)
    detail = load_node(run.reader, nodes, payload["detail"], DETAIL_TYPE)
    kind = detail.payload["kind"]
    findings.expect("the detail's kind", kind, _SUPERVISOR, code="type")
    usage = usage_from_payload(payload["usage"])
    state = state_of_hold(view.state, commit, payload["reason"], usage)
    trailers = hold_trailers(claimed, view.state.current_role)
    expected = Expected(
        view=_following(view, commit, state=state),
        files={},
        trailers=trailers_of("hold", view.thread, trailers),
        fact=Fact(event="hold"),
        subject=f"hold: {payload['reason']}",
        quoted=payload["reason"],
        agent=_judge(commit),
    )
    return expected, added


def check_summary(
    run: Run,
    commit: RawCommit,
    *,
    view: View,
    findings: Findings,
) -> Expected:
    """Say what a summary must leave; of its text only the shape is checked.

    Raises:
        CorruptError: There is no summary, or none that may be one.
    """
    if view.state.status not in ALLOWED["summary"]:
        findings.note("event", f"no summary may follow while {view.state.status}")
    folder = thread_folder(view.thread)
    text = _read_summary(run, commit, f"{folder}/{SUMMARY_FILE}", findings)
    usage = _read_usage(run, commit, f"{folder}/{STATE_FILE}")
    if not is_grown(view.state.usage, usage):
        findings.note("state", "the usage is less than before the summary")
    state = state_of_summary(view.state, commit, usage)
    return Expected(
        view=_following(view, commit, state=state),
        files={f"{folder}/{SUMMARY_FILE}": summary_file(text)},
        trailers=trailers_of("summary", view.thread, {}),
        fact=Fact(event="summary"),
        subject=summary_subject(text),
        quoted=text,
        agent=_judge(commit),
    )


def _read_summary(run: Run, commit: RawCommit, path: str, findings: Findings) -> str:
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


def _read_usage(run: Run, commit: RawCommit, path: str) -> Usage | None:
    """Read the only field of a state that no other part of a summary tells."""
    oid = run.objects.find_file(commit.tree, path)
    try:
        data = (
            b"" if oid is None else run.objects.read(oid, BLOB, limit=MAX_STATE_BYTES)
        )
        return decode_state(data).usage
    except CorruptError:
        return None


def _following(view: View, commit: RawCommit, *, state: ThreadState) -> View:
    return replace(
        view,
        commit=commit.oid,
        root=commit.tree,
        committed_at=commit.committer.time,
        state=state,
    )


def _judge(commit: RawCommit) -> tuple[str, int]:
    """Give the author such an event must have: some model or agent, by its label."""
    return agent_label(commit.author.name), commit.committer.time
