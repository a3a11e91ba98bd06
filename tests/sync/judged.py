"""A thread that a supervisor held and a model summarised; and how it is forged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tests.builders import begin, make_engine, reply, run, write_script
from tests.sync.changes import author, committer, message, state, subject, trailer
from tests.sync.forge import Change, Draft, added_nodes
from uwfgit.engine.run.executor import resume_thread
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.ledger.append import append_hold
from uwfgit.model.ledger.branch import append_summary
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node import DETAIL_TYPE, make_node
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.step import Usage
from uwfgit.model.thread.tip import load_tip

START, WORK, HOLD, WAIT, SUMMARY, END, ENDED, LAST = range(8)
"""The commits of :func:`make_judged`, by their order."""

DETAIL: Final[dict[str, Any]] = {
    "kind": "supervisor",
    "agentVersion": None,
    "sessionId": None,
    "model": "judge-1",
    "exitCode": None,
    "assembledPrompt": "Is it going well?",
    "turns": [],
}
USAGE: Final = Usage(
    turns=1, input_tokens=5, output_tokens=2, duration_ms=9, cost_usd=None
)


def make_judged(ledger: Ledger, folder: Path, **changes: Any) -> ThreadId:  # noqa: ANN401 - whatever a start has
    """Make a thread with a hold, and with summaries where it waits and has ended."""
    thread = begin(ledger, folder, **changes).thread
    agent = write_script(
        folder,
        {
            "worker": [reply(plan="x"), reply(plan="y")],
            "critic": ["---\n$status: $SUSPEND\nreason: Which?\n---\n", reply("good")],
        },
    )
    run(ledger, thread, agent)
    hold(ledger, thread, "It goes in circles.")
    resume_thread(make_engine(ledger), thread, agent=agent)
    summarise(ledger, thread, "It asks which one.")
    resume_thread(make_engine(ledger), thread, agent=agent, note="The first")
    summarise(ledger, thread, "All is well.\n\n- one\n- two")
    summarise(ledger, thread, "All is well, indeed.")
    return thread


def hold(ledger: Ledger, thread: ThreadId, reason: str) -> None:
    record = open_record(ledger.store, thread)
    append_hold(
        ledger, record, reason=reason, detail=DETAIL, usage=USAGE, judge="judge-1"
    )


def summarise(ledger: Ledger, thread: ThreadId, text: str) -> None:
    tip = load_tip(ledger.store, thread)
    append_summary(ledger, tip, text=text, usage=USAGE, judge="writer/2")


def _held(**changes: object) -> Change:
    """Change the hold's node, and all that tells of it."""

    def change(draft: Draft) -> None:
        nodes = added_nodes(draft, Oid(draft.parents[0]))
        wanted = draft.trailers()["Uwf-Node"]
        (path,) = [path for path, node in nodes.items() if node.hash == wanted]
        node = make_node(nodes[path].type, {**nodes[path].payload, **changes})
        del draft.files[path]
        draft.put_node(path.rpartition("/")[0], node)
        draft.trailer("Uwf-Node", node.hash)

    return change


def _detailed(**changes: object) -> Change:
    """Change the detail that a hold names."""

    def change(draft: Draft) -> None:
        nodes = added_nodes(draft, Oid(draft.parents[0]))
        path = next(p for p, node in nodes.items() if node.type == DETAIL_TYPE)
        detail = make_node(DETAIL_TYPE, {**nodes[path].payload, **changes})
        del draft.files[path]
        draft.put_node(path.rpartition("/")[0], detail)
        _held(detail=detail.hash)(draft)

    return change


def _elsewhere(folder: str) -> Change:
    """Move the nodes of a run to another folder."""

    def change(draft: Draft) -> None:
        for path in added_nodes(draft, Oid(draft.parents[0])):
            draft.move(path, f"{draft.path(folder)}/{path.rpartition('/')[2]}")

    return change


def _summary(data: bytes) -> Change:
    return lambda draft: draft.put(draft.path("SUMMARY.md"), data)


def _no_summary(draft: Draft) -> None:
    del draft.files[draft.path("SUMMARY.md")]


def _used(**changes: object) -> Change:
    def change(draft: Draft) -> None:
        usage = json.loads(draft.read(draft.path("thread.json")))["usage"]
        draft.state(usage={**usage, **changes})

    return change


def _retyped(draft: Draft) -> None:
    """Let a hold name its detail as the hold."""
    nodes = added_nodes(draft, Oid(draft.parents[0]))
    detail = next(n for n in nodes.values() if n.type == DETAIL_TYPE)
    draft.trailer("Uwf-Node", Hash(detail.hash))


FORGED: Final[list[tuple[str, int, Change, str]]] = [
    ("a hold of another reason", HOLD, _held(reason="It is fine."), "state"),
    ("a hold without a reason", HOLD, _held(reason=None), "schema"),
    ("a hold whose detail is not there", HOLD, _held(detail="0" * 13), "closure"),
    ("a hold that no supervisor decided", HOLD, _detailed(kind="builtin"), "type"),
    ("a hold that cost more", HOLD, _held(usage=None), "state"),
    ("a hold that names its detail", HOLD, _retyped, "event"),
    ("a hold that names no node", HOLD, trailer("Uwf-Node", None), "event"),
    ("a hold of another role", HOLD, trailer("Uwf-Role", "critic "), "trailers"),
    ("a hold in a step's own run", HOLD, _elsewhere("nodes/000/00001/1"), "event"),
    ("a hold as a later run", HOLD, _elsewhere("nodes/000/00002/2"), "event"),
    ("a hold of a later step", HOLD, _elsewhere("nodes/000/00003/1"), "event"),
    ("a hold that leaves the thread idle", HOLD, state(status="idle"), "state"),
    ("a hold with a role to come", HOLD, state(currentRole="critic"), "state"),
    ("a hold with a time to go on", HOLD, state(retryAtMs=5), "state"),
    ("a hold with another subject", HOLD, subject("hold: all is well"), "message"),
    ("a hold that quotes more", HOLD, message("> It", "> All. It"), "message"),
    ("a hold by a person", HOLD, author("Ada <ada@example.com> 1 +0000"), "author"),
    ("a hold of no label", HOLD, author("a b <agent@localhost> 1 +0000"), "author"),
    ("a hold before its thread", HOLD, committer("A <a@b> 1 +0000"), "time"),
    ("a hold called a summary", HOLD, trailer("Uwf-Event", "summary"), "event"),
    (
        "a run that follows a hold in its folder",
        WAIT,
        _elsewhere("nodes/000/00002/1"),
        "event",
    ),
    ("a summary that is missing", SUMMARY, _no_summary, "file"),
    ("a summary of two ends", SUMMARY, _summary(b"It asks which one.\n\n"), "file"),
    ("a summary without an end", SUMMARY, _summary(b"It asks which one."), "file"),
    ("an empty summary", SUMMARY, _summary(b"\n"), "file"),
    ("a summary that is not UTF-8", SUMMARY, _summary(b"\xff\n"), "file"),
    ("a summary with an escape", SUMMARY, _summary(b"It \x1b[2J asks.\n"), "file"),
    ("a summary of 17 KiB", SUMMARY, _summary(b"x" * 17_000 + b"\n"), "size"),
    ("a summary of another text", SUMMARY, _summary(b"All is well.\n"), "message"),
    ("a summary that ends the thread", SUMMARY, state(status="end"), "state"),
    ("a summary with a role to come", SUMMARY, state(currentRole="x"), "state"),
    ("a summary that paid back", SUMMARY, _used(inputTokens=1), "state"),
    ("a summary that forgot a price", SUMMARY, _used(turns=0), "state"),
    (
        "a summary by a person",
        SUMMARY,
        author("Ada <ada@example.com> 1 +0000"),
        "author",
    ),
    (
        "a summary beside it",
        SUMMARY,
        lambda draft: draft.put(draft.path("S.md"), b"x"),
        "path",
    ),
    (
        "a summary that completes later",
        ENDED,
        state(completedAtMs=1_900_000_000_000),
        "state",
    ),
    ("a summary that names a node", LAST, trailer("Uwf-Node", "0" * 13), "trailers"),
]
"""What, the commit it changes, how, and what verify says of it."""
