"""Send refs to a remote, many at once; of what it refuses, find which and why.

A push of many is all or none, and one that is refused must not keep others back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from uwfgit.errors import RejectedError, RemoteError
from uwfgit.ids import Oid
from uwfgit.store.handle import Store
from uwfgit.store.layout import HEAD_REF, find_ref_thread
from uwfgit.sync.exchange.exchange import (
    CHUNK,
    Outcomes,
    Result,
    chunks,
    compare,
    halves,
)
from uwfgit.sync.exchange.remotes import Remote
from uwfgit.sync.exchange.transport import Update, Wire, push_refs

_COLLATERAL: Final = "(atomic "
"""Stands in git's reason for a ref that was refused for another's sake only."""
_SENT: Mapping[str, Result] = {"*": "new", "=": "up-to-date", " ": "updated"}

_Part = Sequence[tuple[str, Oid]]


class Sending(Struct, kw_only=True):
    """What is sent where, and what became of it so far.

    ``theirs`` is what the remote had, by our names; ``ask`` lists it again.
    """

    store: Store
    remote: Remote
    wire: Wire
    theirs: Mapping[str, Oid]
    ask: Callable[[], Mapping[str, Oid]]
    told: Outcomes
    is_cut: bool = False
    """Whether something is sent for the second time."""
    there: Mapping[str, Oid] | None = None
    """What the remote has, asked again because it refused something."""


def send_refs(work: Sending, wanted: Mapping[str, Oid]) -> None:
    """Send refs, and tell what became of each.

    Raises:
        AuthError, RemoteError: The remote could not be reached; nothing was sent.
    """
    # What the others start on goes first, should they have to go one by one.
    ordered = sorted(wanted.items(), key=lambda item: item[0] != HEAD_REF)
    waiting = [*chunks(ordered, CHUNK)][::-1]
    has_begun = False
    while waiting:
        part = waiting.pop()
        try:
            waiting += _send_part(work, part)
        except RemoteError as exc:
            # What is over is told all the same, and the rest can be sent again.
            if not has_begun:
                raise
            left = [*part, *(each for rest in waiting[::-1] for each in rest)]
            for ref, oid in left:
                if ref != HEAD_REF:
                    old = work.theirs.get(ref)
                    work.told.tell(ref, "rejected", exc.message, old=old, new=oid)
            return
        has_begun = True


def _send_part(work: Sending, part: _Part) -> Sequence[_Part]:
    """Send some refs; return the parts to send again, the last one first."""
    updates = [Update(oid=oid, ref=work.remote.theirs(ref)) for ref, oid in part]
    try:
        letters = push_refs(work.wire, work.store, work.remote.name, updates)
    except RejectedError as exc:
        return _cut(work, part, exc.refs)
    for ref, oid in part:
        letter = letters.get(work.remote.theirs(ref), " ")
        result = _SENT.get(letter, "updated")
        if result == "up-to-date" and work.is_cut:
            # It was taken already, when another of those before was not: a server
            # does not count a hidden ref into all-or-none.
            result = "updated" if ref in work.theirs else "new"
        if ref != HEAD_REF:
            work.told.tell(ref, result, old=work.theirs.get(ref), new=oid)
    return ()


def _cut(work: Sending, part: _Part, reasons: Mapping[str, str]) -> Sequence[_Part]:
    """Part what was refused from what may go; tell why, once it is found out."""
    work.is_cut = True
    # All or none: git says of one that is fine itself only that.
    causes = {ref: why for ref, why in reasons.items() if _COLLATERAL not in why}
    bad = [each for each in part if work.remote.theirs(each[0]) in causes]
    good = [each for each in part if each not in bad]
    if len(part) > 1 and not (good and bad):
        # A hook says so of all; one that is refused is found by cutting in two.
        return halves(part)[::-1]
    for ref, oid in bad or part:
        _tell_rejected(work, ref, oid, reasons[work.remote.theirs(ref)])
    return [good] if bad and good else ()


def _tell_rejected(work: Sending, ref: str, oid: Oid, reason: str) -> None:
    """Say why one ref was not taken: by what is there, else in git's words."""
    if work.there is None:
        work.there = work.ask()
    there = work.there.get(ref)
    if ref == HEAD_REF and there:
        return  # Someone else began it in the meantime.
    found = compare(work.store, oid, there)
    is_known = found in {"behind", "diverged"}
    message = behind_hint(ref, found) if is_known else reason
    work.told.tell(ref, "rejected", message, old=there, new=oid)


def behind_hint(ref: str, result: Result) -> str | None:
    """Say what to do about a branch of which the remote has more, or another end."""
    thread = find_ref_thread(ref)
    if result == "diverged" and thread:
        return f"see both sides: uwf thread resolve {thread}"
    if result in {"behind", "diverged"}:
        return f"the remote has more: uwf pull{'' if thread else ' --workflows'}"
    return None
