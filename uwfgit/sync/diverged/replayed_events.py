"""Write the end of a thread again under a new id: same nodes, new commits.

Nothing runs. Each event keeps its author, committer and times; what it changes
is what it would have changed in a fork of the common part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.errors import CorruptError, StateError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.append import (
    StepPlace,
    count_entries,
    next_run,
    replace_changes,
)
from uwfgit.model.ledger.commit import FileChanges, NewCommit, commit_batch, signer_for
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node import HOLD_TYPE
from uwfgit.model.thread.derive import (
    format_message,
    parse_trailers,
    read_quote,
)
from uwfgit.model.thread.event import TABLE, Event, iter_events, read_event, tell_fork
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.state import ThreadState, encode_state
from uwfgit.model.thread.step import Hold
from uwfgit.model.thread.tip import Tip, read_tip
from uwfgit.store.layout import (
    ATTEMPTS,
    HISTORY,
    LINKS,
    NODES,
    OUTPUT_FILE,
    PROMPT_FILE,
    STATE_FILE,
    SUMMARY_FILE,
    step_folder,
    thread_folder,
)
from uwfgit.store.objects import (
    Person,
    TreeEntry,
    find_entry,
    new_file,
    read_blob,
    read_commit,
)
from uwfgit.store.pack import Batch
from uwfgit.sync.verify.rawtree import Objects, diff_trees
from uwfgit.sync.verify.settle import REPLAYED

_READABLE: Final = (OUTPUT_FILE, PROMPT_FILE, f"{LINKS}/")


class Replayed(Struct, frozen=True, kw_only=True):
    """The new thread, and those of its commits that count as made here."""

    tip: Tip
    made_here: tuple[Oid, ...]


class _Replay(Struct, kw_only=True):
    ledger: Ledger
    thread: ThreadId
    """The one whose end is written again."""
    record: Record
    """It, at the tip that is written again."""
    copy: Record
    """The new one, as far as it is written; only its tip is kept up to date."""


def replay_tail(
    ledger: Ledger, thread: ThreadId, *, base: Oid, tip: Oid, copy: ThreadId
) -> Replayed:
    """Write a fork of a thread and, on it, the thread's later events again.

    Only objects are written: no ref names the new thread yet.

    Args:
        ledger: Where.
        thread: Whose events.
        base: One of its commits, to fork at.
        tip: The newest commit to write again.
        copy: The new thread's id.

    Raises:
        StateError: An event on the way cannot be written again.
        StoreError: It was to be signed, and cannot be.
        CorruptError: Something on the way is missing or malformed.
    """
    store = ledger.store
    events = list(_iter_tail(ledger, base, tip))[::-1]
    fork = _write_fork(ledger, base, copy, is_last=not events)
    replay = _Replay(
        ledger=ledger,
        thread=thread,
        record=open_record(store, read_tip(store, thread, tip)),
        copy=Record(store=store, tip=fork, places={}),
    )
    made_here = [fork.commit]
    for event in events:
        _write_event(replay, event, is_last=event is events[-1])
        if ledger.local.is_made_here(event.commit.oid):
            made_here.append(replay.copy.tip.commit)
    return Replayed(tip=replay.copy.tip, made_here=tuple(made_here))


def _iter_tail(ledger: Ledger, base: Oid, tip: Oid) -> Iterator[Event]:
    """Yield the events to write again, newest first; a resolve changed nothing."""
    for event in iter_events(ledger.store, tip):
        if event.commit.oid == base:
            return
        if event.name in {"start", "fork"}:
            raise StateError(
                f"the {event.name} of thread {event.thread} is not in common",
                hint=f"keep your side by hand: uwf thread fork {event.thread}",
            )
        if TABLE[event.name].is_replayable:
            yield event


def _write_fork(ledger: Ledger, base: Oid, copy: ThreadId, *, is_last: bool) -> Tip:
    store = ledger.store
    commit = read_commit(store, base)
    origin = read_tip(store, read_event(commit).thread, base)
    # Not the time it is: what comes on top keeps its times, and time does not
    # go back along a branch.
    person = Person(
        name=ledger.identity.name,
        email=ledger.identity.email,
        time=origin.committed_at,
        offset=ledger.utc_offset,
    )
    told = tell_fork(origin.state, copy, by=person)
    return _commit(
        ledger, origin, {}, told.state, person, person, told.message, is_last=is_last
    )


def _write_event(replay: _Replay, event: Event, *, is_last: bool) -> None:
    before = replay.copy.tip
    old = read_tip(replay.ledger.store, replay.thread, event.commit.oid).state
    updated = max(old.updated_at_ms, before.state.updated_at_ms)
    state = replace(
        old,
        thread=before.thread,
        forked_from=before.state.forked_from,
        updated_at_ms=updated,
        completed_at_ms=None if old.completed_at_ms is None else updated,
    )
    if not TABLE[event.name].settles:
        state = replace(state, completed_at_ms=before.state.completed_at_ms)
    trailers = {
        **parse_trailers(event.commit.message),
        "Uwf-Thread": before.thread,
        REPLAYED: event.commit.oid,
    }
    body = _body(replay, event)
    subject = event.commit.message.partition("\n")[0]
    replay.copy.tip = _commit(
        replay.ledger,
        before,
        _changes(replay, event, old),
        state,
        event.commit.author,
        event.commit.committer,
        format_message(subject, body, trailers.items()),
        is_last=is_last,
    )


def _body(replay: _Replay, event: Event) -> str:
    """Return the text an event's message quotes."""
    if event.node is not None:
        if event.name == "hold":
            return replay.record.read(event.node, HOLD_TYPE, Hold).reason
        return replay.record.run(event.node).body
    if not TABLE[event.name].settles:
        path = f"{thread_folder(replay.thread)}/{SUMMARY_FILE}"
        entry = find_entry(replay.ledger.store, event.commit.tree, path)
        return read_blob(replay.ledger.store, entry.oid).decode() if entry else ""
    return read_quote(event.commit.message)


def _changes(replay: _Replay, event: Event, after: ThreadState) -> FileChanges:
    """Return what an event changes in the new thread's folder."""
    store = replay.ledger.store
    base = thread_folder(replay.thread)
    copy = thread_folder(replay.copy.tip.thread)
    if not TABLE[event.name].settles:
        summary = find_entry(store, event.commit.tree, f"{base}/{SUMMARY_FILE}")
        return {f"{copy}/{SUMMARY_FILE}": summary}
    if event.node is None or event.role is None:
        return {}
    parent = read_commit(store, event.commit.parents[0])
    changed = {
        path.removeprefix(f"{base}/"): new
        for path, (_, new) in diff_trees(
            Objects(store=store), parent.tree, event.commit.tree
        ).items()
    }
    number = _number(changed, event, after)
    run = next_run(replay.copy, number)
    nodes: FileChanges = {
        f"{copy}/{run}/{path.rpartition('/')[2]}": TreeEntry(oid=new)
        for path, new in changed.items()
        if new is not None and path.startswith(f"{NODES}/")
    }
    if event.name == "hold":
        return nodes
    folder = step_folder(number, event.role)
    if event.name == "attempt":
        tries = count_entries(replay.copy, f"{copy}/{folder}/{ATTEMPTS}")
        target = f"{copy}/{folder}/{ATTEMPTS}/{tries + 1}"
        return nodes | {
            f"{target}/{path.rpartition('/')[2]}": TreeEntry(oid=new)
            for path, new in changed.items()
            if new is not None and path.startswith(f"{folder}/{ATTEMPTS}/")
        }
    changes: FileChanges = {}
    if event.name == "poke":
        place = StepPlace(
            number=number,
            prev=event.prev,
            base=copy,
            folder=f"{copy}/{folder}",
            nodes=f"{copy}/{run}",
        )
        changes = replace_changes(replay.ledger, replay.copy, place)
    readable = _readable_files(replay, event, f"{base}/{folder}")
    return changes | nodes | {f"{copy}/{folder}/{n}": e for n, e in readable.items()}


def _number(changed: dict[str, Oid | None], event: Event, after: ThreadState) -> int:
    """Return the place in the chain that an event is for."""
    if event.name == "hold":
        return after.steps + 1
    if event.name != "attempt":
        return after.steps
    for number in (after.steps + 1, after.steps):
        prefix = f"{step_folder(number, event.role or '')}/{ATTEMPTS}/"
        if any(path.startswith(prefix) for path in changed):
            return number
    raise CorruptError(f"commit {event.commit.oid} adds no attempt to {HISTORY}")


def _readable_files(replay: _Replay, event: Event, folder: str) -> dict[str, TreeEntry]:
    """Return the files people read of a step, as they stand after its event."""
    objects = Objects(store=replay.ledger.store)
    found = objects.files(event.commit.tree, folder)
    return {
        name: TreeEntry(oid=oid)
        for path, oid in found.items()
        if (name := path.removeprefix(f"{folder}/")).startswith(_READABLE)
    }


def _commit(
    ledger: Ledger,
    parent: Tip,
    changes: FileChanges,
    state: ThreadState,
    author: Person,
    person: Person,
    message: str,
    *,
    is_last: bool,
) -> Tip:
    path = f"{thread_folder(state.thread)}/{STATE_FILE}"
    batch = Batch(store=ledger.store)
    for place, entry in changes.items():
        if entry is not None and not ledger.store.raw.exists(entry.oid):
            raise CorruptError(
                f"object {entry.oid} ('{place}') is missing",
                hint="uwf doctor says how to fix the store",
            )
    changes = {**changes, path: new_file(encode_state(state))}
    tree = batch.edit_tree(parent.tree, changes)
    new = NewCommit(
        tree=tree,
        parent=parent.commit,
        author=author,
        person=person,
        message=message,
        is_last=is_last,
    )
    signing = replace(ledger, signer=signer_for(ledger, person))
    commit = commit_batch(signing, batch, new)
    return Tip(
        thread=state.thread,
        commit=commit,
        tree=tree,
        committed_at=person.time,
        state=state,
    )
