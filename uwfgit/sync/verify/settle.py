"""Compare a commit with all that its event must leave, and with nothing more.

Each event says what it expects; here that meets the commit: every changed
file, ``thread.json``, the message and its author.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from msgspec import Struct, to_builtins

from uwfgit.constants import MAX_STATE_BYTES
from uwfgit.errors import CorruptError, InvalidError
from uwfgit.ids import Oid, is_oid
from uwfgit.model.thread.derive import format_message, format_subject, read_quote
from uwfgit.model.thread.event import TABLE, WORDS, Told
from uwfgit.model.thread.state import (
    AGENT_EMAIL,
    ThreadState,
    decode_state,
    encode_state,
)
from uwfgit.store.layout import STATE_FILE, thread_folder
from uwfgit.store.raw import BLOB, name_object
from uwfgit.sync.verify.rawtree import Objects, TreeChanges
from uwfgit.sync.verify.report import Fact, VerifyFindings, shown
from uwfgit.sync.verify.shape import Message, RawCommit, Stamp
from uwfgit.sync.verify.view import View

REPLAYED: Final = "Uwf-Replayed-From"

Files: TypeAlias = dict[str, "bytes | Oid | None"]
"""Path → the bytes, or the blob, that must stand there; ``None``: nothing may."""


class Expected(Struct, frozen=True, kw_only=True):
    """What an event must leave."""

    view: View
    files: Files
    told: Told
    """Its message; a word's but for the reason, which the message alone holds."""
    fact: Fact
    agent: tuple[str, int] | None = None
    """An agent's label and the second its step ended; ``None``: a person's event."""


def may_give_reason(event: str, subject: str, quote: str) -> bool:
    """Whether some reason gives a person's word this subject and this quote.

    Either may hold less than the other of a long one, and a blank or a control
    character comes out differently in each, so they are compared without.
    """
    start = f"{event}:"
    told, given = ("".join(text.split()) for text in (subject, quote))
    if not given:
        # A reason of nothing but control characters leaves the colon.
        return subject in {event, start}
    given = start + given
    told = told.removesuffix("…")
    return subject.startswith(start) and (
        given.startswith(told) or told.startswith(given)
    )


def find_differences(
    data: bytes, wanted: ThreadState
) -> Iterator[tuple[str, object, object]]:
    """Yield the fields of a ``thread.json`` that are not what they must be.

    Raises:
        CorruptError: The bytes are those of no state.
    """
    found = to_builtins(decode_state(data))
    for key, value in to_builtins(wanted).items():
        if found[key] != value:
            yield key, found[key], value


def check_order(event: str, view: View, findings: VerifyFindings) -> None:
    """Note when an event may not follow on the state that a thread is in."""
    if view.state.status not in TABLE[event].follows:
        findings.note("event", f"no {event} may follow while {view.state.status}")


def settle(
    objects: Objects,
    commit: RawCommit,
    message: Message,
    *,
    expected: Expected,
    root: Oid,
    changes: TreeChanges,
    findings: VerifyFindings,
) -> None:
    """Note everything in a commit that differs from what its event gives.

    Args:
        root: The parent's tree.
        changes: The changed files, without those already accounted for.
    """
    state = expected.view.state
    path = f"{thread_folder(state.thread)}/{STATE_FILE}"
    data = encode_state(state)
    if len(data) > MAX_STATE_BYTES:
        # Right it may be, but nothing else would read it.
        size = f"{len(data):,} bytes, the limit is {MAX_STATE_BYTES:,}"
        findings.note("size", f"{STATE_FILE} has {size}", path)
    files: Files = {**expected.files, path: data}
    for name, want in files.items():
        _settle_file(objects, root, changes, name, want, findings, state, path)
    for name in changes:
        findings.note("path", "no rule gives this change", name)
    _settle_message(message, expected, findings)
    author = commit.committer
    if expected.agent is not None:
        label, time = expected.agent
        zone = commit.author.zone
        author = Stamp(name=label, email=AGENT_EMAIL, time=time, zone=zone)
    findings.expect("author", commit.author, author, code="author")


def _settle_file(
    objects: Objects,
    root: Oid,
    changes: TreeChanges,
    name: str,
    want: bytes | Oid | None,
    findings: VerifyFindings,
    state: ThreadState,
    state_path: str,
) -> None:
    oid = name_object(BLOB, want) if isinstance(want, bytes) else want
    unchanged = None if name in changes else objects.find_file(root, name)
    found = changes.pop(name, (None, unchanged))[1]
    if found == oid:
        if oid is not None and isinstance(want, bytes):
            try:
                objects.read_known(oid, want)
            except CorruptError as exc:
                findings.note(exc.problems[0].code, exc.problems[0].message, name)
    elif found is None:
        findings.note("file", "the file is missing", name)
    elif name == state_path:
        _tell_state(objects, found, state, name, findings)
    elif oid is None:
        findings.note("file", "the file must not be there", name)
    else:
        findings.note("file", "the file is not what its nodes give", name)


def _tell_state(
    objects: Objects, oid: Oid, wanted: ThreadState, path: str, findings: VerifyFindings
) -> None:
    try:
        data = objects.read(oid, BLOB, limit=MAX_STATE_BYTES)
        differences = list(find_differences(data, wanted))
    except InvalidError as exc:
        findings.note("state", f"thread.json cannot be read: {exc}", path)
        return
    if not differences:
        findings.note("state", "thread.json is not as uwf writes it", path)
    for key, found, value in differences:
        findings.expect(key, found, value, code="state", path=path)


def _settle_message(
    message: Message, expected: Expected, findings: VerifyFindings
) -> None:
    found = dict(message.trailers)
    replayed = found.pop(REPLAYED, None)
    wanted = expected.told.trailers
    for key in {**wanted, **found}:
        findings.expect(key, found.get(key), wanted.get(key), code="trailers")
    if list(found) != list(wanted) or (
        replayed and list(message.trailers)[-1] != REPLAYED
    ):
        findings.note("trailers", "the trailers are not in their order")
    event = expected.fact.event
    if replayed is not None:
        is_commit = is_oid(replayed) and replayed.strip("0") != ""
        if not is_commit or not TABLE[event].is_replayable:
            findings.note("trailers", f"{REPLAYED} does not belong here")
    if event in WORDS:
        # Its reason stands in two places of the message, and nowhere else.
        if format_subject(message.subject) != message.subject or not may_give_reason(
            event, message.subject, read_quote(message.quote)
        ):
            findings.note("message", f"the subject is {shown(message.subject)}")
        if any(line != line.rstrip() for line in message.quote.split("\n")):
            findings.note("message", "a quoted line ends in blanks")
        return
    subject = format_subject(expected.told.subject)
    findings.expect("subject", message.subject, subject, code="message")
    trailers = message.trailers.items()
    if format_message(message.subject, expected.told.quoted, trailers) != message.text:
        findings.note("message", "the message does not quote what the event records")
