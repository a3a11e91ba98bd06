"""One state of a queued thread, as a commit says it; which may follow which (pure).

A queue ref is a chain of such commits, so its log is the audit. Both sides read
the rules here: who moves a ref, and the server's hook.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, Literal, get_args

from msgspec import Struct

from uwfgit.constants import FORMAT_VERSION, MAX_TIME
from uwfgit.ids import Oid, ThreadId, is_oid, is_thread_id

QUEUE_PREFIX: Final = "refs/uwf/queue/"
PAUSE_REF: Final = f"{QUEUE_PREFIX}PAUSE"

Word = Literal["queued", "claimed", "waiting", "done"]

MAX_LEASE: Final = 3600
"""Seconds: nobody may keep others out for longer without a word."""
SKEW: Final = 60
"""Seconds by which the clocks of two claimants may differ, for the server's hook."""
MAX_AHEAD: Final = 3600
"""Seconds by which the date of a state may be ahead of a clock."""
_REASON_CHARS: Final = 500
_WORDS: Final[tuple[Word, ...]] = get_args(Word)
_WORKER: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_NONCE: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
_MOVES: Final[Mapping[Word, frozenset[Word]]] = {
    "queued": frozenset({"claimed"}),
    "claimed": frozenset({"claimed", "queued", "waiting", "done"}),
    "waiting": frozenset({"queued", "claimed"}),
    "done": frozenset(),
}


def is_worker_name(text: str) -> bool:
    """Whether a worker may be called so: its name is shown, and stands in trailers."""
    return _WORKER.fullmatch(text) is not None


class QueueState(Struct, frozen=True, kw_only=True):
    """What a queue commit says.

    ``head`` is the tip of the thread it was written for, ``workflow`` the oid of
    its pinned workflow. ``worker`` and ``lease`` (seconds) belong to a claim;
    ``retry_at_ms`` to a wait that ends by itself.
    """

    word: Word
    thread: ThreadId
    head: Oid
    workflow: Oid
    nonce: str
    worker: str | None = None
    lease: int | None = None
    reason: str | None = None
    retry_at_ms: int | None = None


def format_queue_state(state: QueueState) -> str:
    """Write the message of a queue commit."""
    trailers = {
        "Uwf-Format": str(FORMAT_VERSION),
        "Uwf-Queue": state.word,
        "Uwf-Thread": state.thread,
        "Uwf-Head": state.head,
        "Uwf-Workflow": state.workflow,
    }
    if state.worker is not None:
        trailers["Uwf-Worker"] = state.worker
    if state.lease is not None:
        trailers["Uwf-Lease"] = str(state.lease)
    if state.reason is not None:
        # JSON with \u escapes: one line of plain ASCII whatever it says.
        trailers["Uwf-Reason"] = json.dumps(state.reason[:_REASON_CHARS])
    if state.retry_at_ms is not None:
        trailers["Uwf-Retry"] = str(state.retry_at_ms)
    trailers["Uwf-Nonce"] = state.nonce
    lines = [f"{name}: {value}" for name, value in trailers.items()]
    return f"queue {state.thread}: {state.word}\n\n" + "\n".join(lines) + "\n"


def parse_queue_state(message: str) -> QueueState | None:
    """Read a queue commit's message; ``None`` unless uwf could have written it."""
    _, _, rest = message.partition("\n\n")
    found: dict[str, str] = {}
    for line in rest.removesuffix("\n").split("\n"):
        name, separator, value = line.partition(": ")
        if not separator or name in found:
            return None
        found[name] = value
    state = _read(found)
    # Written again it must be the same, or something else stands between.
    return state if state and format_queue_state(state) == message else None


def _read(found: Mapping[str, str]) -> QueueState | None:
    thread = found.get("Uwf-Thread", "")
    word = next((each for each in _WORDS if each == found.get("Uwf-Queue")), None)
    head, workflow = found.get("Uwf-Head", ""), found.get("Uwf-Workflow", "")
    nonce, worker = found.get("Uwf-Nonce", ""), found.get("Uwf-Worker")
    lease, retry = _number(found, "Uwf-Lease"), _number(found, "Uwf-Retry")
    try:
        reason = json.loads(found.get("Uwf-Reason", "null"))
    except (ValueError, RecursionError):
        reason = None
    if (
        word is None
        or not (is_thread_id(thread) and is_oid(head) and is_oid(workflow))
        or not _NONCE.fullmatch(nonce)
        or (worker is not None and not is_worker_name(worker))
        or (word == "claimed") != (worker is not None and lease is not None)
        or (lease is not None and not 0 < lease <= MAX_LEASE)
        or (retry is not None and retry > MAX_TIME * 1000)
    ):
        return None
    return QueueState(
        word=word,
        thread=ThreadId(thread),
        head=Oid(head),
        workflow=Oid(workflow),
        nonce=nonce,
        worker=worker,
        lease=lease,
        reason=reason if isinstance(reason, str) else None,
        retry_at_ms=retry,
    )


def _number(found: Mapping[str, str], name: str) -> int | None:
    text = found.get(name)
    if text is None:
        return None
    # Not a number of ours: beyond every bound, so that it is refused.
    return int(text) if _NUMBER.fullmatch(text) else MAX_TIME * 2000


def check_queue_move(
    before: QueueState | None, after: QueueState, *, before_time: int, after_time: int
) -> str | None:
    """Say why one state may not follow another; ``None`` when it may.

    Args:
        before: The state of the parent; ``None`` for a new queue ref.
        after: The state of the commit on top.
        before_time: Committer time of the one, in seconds.
        after_time: Committer time of the other.
    """
    if before is None:
        return None if after.word == "queued" else "a queue begins with 'queued'"
    if before.thread != after.thread:
        return "it is about another thread"
    if after.word not in _MOVES[before.word]:
        return f"'{after.word}' does not follow '{before.word}'"
    if before.word == after.word == "claimed" and before.worker != after.worker:
        # A claim is another's to take only when its time is up.
        until = before_time + (before.lease or 0)
        if after_time + SKEW < until:
            return f"worker {before.worker} holds it for {until - after_time} s more"
    return None
