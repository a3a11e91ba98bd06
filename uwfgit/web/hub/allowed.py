"""What a client answers: its own list, whatever a hub asks (pure).

The only place that decides it. Nothing is allowed but what stands here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from uwfgit.ids import HASH_SHAPE, THREAD_SHAPE
from uwfgit.web.hub.frames import Ask
from uwfgit.web.serve.gate import Refusal

ACTS: Final = frozenset({"resume", "stop", "pause", "cancel"})
"""What ``--allow-acts`` allows."""
EXEC: Final = frozenset({"start", "exec"})
"""What ``--allow-exec`` allows."""

_NAME: Final = "[A-Za-z0-9][A-Za-z0-9._-]*"
_READING: Final = tuple(
    re.compile(place, re.ASCII)
    for place in (
        "/api/workflows",
        f"/api/workflows/{_NAME}",
        "/api/threads",
        f"/api/threads/{THREAD_SHAPE}",
        f"/api/threads/{THREAD_SHAPE}/live",
        f"/api/threads/{THREAD_SHAPE}/nodes/{HASH_SHAPE}",
        "/view/threads",
        "/view/live",
        f"/view/threads/{THREAD_SHAPE}",
        f"/view/threads/{THREAD_SHAPE}/nodes/{HASH_SHAPE}",
        f"/view/threads/{THREAD_SHAPE}/verify",
        f"/view/threads/{THREAD_SHAPE}/code/[0-9]{{1,7}}",
        f"/view/compare/{THREAD_SHAPE}/{THREAD_SHAPE}",
        "/view/workflows",
        f"/view/workflows/{_NAME}",
        f"/view/workflows/{_NAME}/{HASH_SHAPE}",
        f"/view/workflows/{_NAME}/{HASH_SHAPE}/changes",
    )
)
_ACTING: Final = re.compile(f"/api/threads/{THREAD_SHAPE}/([a-z]+)", re.ASCII)
_QUERY: Final = re.compile(r"[A-Za-z0-9._~%+&=*-]*", re.ASCII)
_HEADERS: Final = frozenset({"content-type", "last-event-id"})


def allowed_acts(*, acts: bool, runs: bool) -> frozenset[str]:
    """Return what may be done, by a client's flags."""
    return frozenset({*(ACTS if acts else ()), *(EXEC if runs else ())})


def find_refusal(ask: Ask, acts: Iterable[str]) -> Refusal | None:
    """Say why a client does not answer; ``None`` when it does.

    Args:
        ask: What the hub asks.
        acts: What may be done in the store besides reading.
    """
    path, _, query = ask.path.partition("?")
    if not _QUERY.fullmatch(query):
        return _NOT_HERE
    if ask.method == "GET":
        is_known = any(place.fullmatch(path) for place in _READING)
        return None if is_known and not ask.body else _NOT_HERE
    if ask.method != "POST" or query:
        return _NOT_HERE
    found = _ACTING.fullmatch(path)
    act = "start" if path == "/api/threads" else found[1] if found is not None else ""
    if act not in ACTS | EXEC:
        return _NOT_HERE
    if act in frozenset(acts):
        return None
    flag = "--allow-exec" if act in EXEC else "--allow-acts"
    return Refusal(
        status=403,
        code="refused",
        message=f"this client does not allow '{act}': it runs without {flag}",
    )


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that count for a client; the others are not looked at."""
    return {name: value for name, value in headers.items() if name in _HEADERS}


_NOT_HERE: Final = Refusal(
    status=404, code="not-found", message="a client does not answer that"
)
