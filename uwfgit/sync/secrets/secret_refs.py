"""How far a secret in a thread has come: which refs hold the commits with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct

from uwfgit.errors import ConflictError, StateError, StoreError, name_some
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.thread.event import STEP_EVENTS, Event, iter_events
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.tip import Tip, load_tip
from uwfgit.store.git.gitcmd import run_git
from uwfgit.store.handle import Store
from uwfgit.store.layout import TRASH_PREFIX, find_ref_thread, thread_ref
from uwfgit.store.objects import read_commit
from uwfgit.store.refs import REMOTES_PREFIX, scan_refs
from uwfgit.sync.secrets.scan import SecretFinding
from uwfgit.sync.verify.rawtree import Objects, diff_trees

_TAGS: Final = "refs/tags/"


class Spread(Struct, frozen=True, kw_only=True):
    """Who holds the first commit with a secret; no remote does.

    ``clean`` is the last step, of those the thread has now, of whose history it is
    no part; ``None`` when the start itself has it. ``tags`` gives tag objects by
    their refs.
    """

    first: Oid
    clean: int | None
    threads: tuple[ThreadId, ...]
    tags: Mapping[str, Oid]


def find_spread(
    store: Store,
    thread: ThreadId,
    found: Sequence[SecretFinding],
    *,
    environment: Mapping[str, str],
    changed: AbstractSet[Hash],
) -> Spread:
    """Find out which threads and tags hold what was found in a thread.

    Args:
        store: Where.
        thread: Which.
        found: What was found in it; may be nothing where ``changed`` says more.
        environment: What git's starts from.
        changed: Nodes that will be others, since they name threads that will be.

    Raises:
        StateError: A remote has it, or one of the threads; or a branch that is
            none of a thread.
        CorruptError: The thread is damaged.
        StoreError: git cannot list the refs.
    """
    tip = load_tip(store, thread)
    events = tuple(iter_events(store, tip.commit))[::-1]
    oids = {each.oid for each in found}
    first, count = _first_with(store, events, oids, environment, changed)
    clean = _last_clean(store, tip, events, count)
    return _list_holders(store, thread, first, clean, environment)


def look_again(
    store: Store,
    thread: ThreadId,
    before: Spread,
    *,
    environment: Mapping[str, str],
) -> Spread:
    """Find out what came to hold it since, though the threads were locked.

    A locked thread can be forked, pushed and approved all the same.

    Raises:
        ConflictError: More threads hold it.
        StateError, StoreError: As ``find_spread`` says.
    """
    spread = _list_holders(store, thread, before.first, before.clean, environment)
    new = [each for each in spread.threads if each not in before.threads]
    if new:
        raise ConflictError(
            f"thread {thread} was forked meanwhile: {name_some(new)}",
            hint="no thread was changed; try again",
        )
    return spread


def _list_holders(
    store: Store,
    thread: ThreadId,
    first: Oid,
    clean: int | None,
    environment: Mapping[str, str],
) -> Spread:
    refs = _refs_with(store, first, environment)
    threads = [each for ref in refs if (each := find_ref_thread(ref))]
    tags = {ref: oid for ref, oid in refs.items() if ref.startswith(_TAGS)}
    remotes = [ref for ref in refs if ref.startswith(REMOTES_PREFIX)]
    known = {*tags, *remotes, *map(thread_ref, threads)}
    rest = [ref for ref in refs if ref not in known and TRASH_PREFIX not in ref]
    if rest:
        raise StateError(
            f"'{rest[0]}' holds the secret too",
            hint="remove or rewind it by hand, then redact",
        )
    known_there = _find_there(store, threads, remotes)
    if known_there is not None:
        way = (
            "no step is without it: start a new thread"
            if clean is None
            else "go on from the last clean step: "
            f"uwf thread fork {thread} --at {clean}, then: uwf thread rm {thread}"
        )
        raise StateError(known_there, hint=way)
    return Spread(first=first, clean=clean, threads=tuple(threads), tags=tags)


def _first_with(
    store: Store,
    events: Sequence[Event],
    oids: AbstractSet[Oid | None],
    environment: Mapping[str, str],
    changed: AbstractSet[Hash],
) -> tuple[Oid, int]:
    """Return the first commit with one of some objects, and how many events are before.

    Of what came with the other side of a resolve nobody knows who holds it besides:
    then the first is the thread's own.
    """
    for count, event in enumerate(events):
        if event.node in changed:
            return event.commit.oid, count
        parent = read_commit(store, event.commit.parents[0])
        changes = diff_trees(Objects(store=store), parent.tree, event.commit.tree)
        brought = (event.commit.oid, *(new for _, new in changes.values() if new))
        if not oids.isdisjoint(brought):
            return event.commit.oid, count
        if not oids.isdisjoint(_brought_aside(store, event, environment)):
            return events[0].commit.oid, count
    # In a tree's own names: as good as from the start.
    return events[0].commit.oid, 0


def _last_clean(
    store: Store, tip: Tip, events: Sequence[Event], count: int
) -> int | None:
    """Return the last step of a thread's chain that one of the first events made.

    A fork takes along all that was before: replaced steps, notes and attempts.
    """
    made = {
        event.node: number
        for number, event in enumerate(events)
        if event.name in (*STEP_EVENTS, "start")
    }
    steps = open_record(store, tip).steps() if count else ()
    chain = [tip.state.start, *(step.hash for step in steps)]
    clean = [
        number for number, node in enumerate(chain) if made.get(node, count) < count
    ]
    return clean[-1] if clean else None


def _brought_aside(
    store: Store, event: Event, environment: Mapping[str, str]
) -> Iterator[Oid]:
    """Yield all that came with a side that is no event's first parent."""
    first, *others = event.commit.parents
    if not others:
        return
    done = run_git(
        ["rev-list", "--objects", *others, f"^{first}"],
        git_dir=store.path,
        environment=environment,
    )
    if done.code:
        raise StoreError(f"cannot list the other side: {done.complaint}")
    yield from (Oid(line.partition(" ")[0]) for line in done.text.splitlines())


def _refs_with(
    store: Store, commit: Oid, environment: Mapping[str, str]
) -> dict[str, Oid]:
    done = run_git(
        ["for-each-ref", f"--contains={commit}", "--format=%(objectname) %(refname)"],
        git_dir=store.path,
        environment=environment,
    )
    if done.code:
        raise StoreError(f"cannot list who holds it: {done.complaint}")
    pairs = (line.split(" ", 1) for line in done.text.splitlines())
    return {ref: Oid(oid) for oid, ref in pairs}


def _find_there(
    store: Store, threads: Sequence[ThreadId], remotes: Sequence[str]
) -> str | None:
    """Say which remote has the secret, or a thread that holds it here."""
    if remotes:
        name = _remote_of(remotes[0])
        return f"remote '{name}' has the secret: revoke it first, it is known there"
    there = {
        ref.rpartition("/")[2]: _remote_of(ref)
        for ref in scan_refs(store, REMOTES_PREFIX)
    }
    for thread in threads:
        if thread in there:
            name = there[thread]
            return f"remote '{name}' has thread {thread}, though not yet the secret"
    return None


def _remote_of(ref: str) -> str:
    return ref.removeprefix(REMOTES_PREFIX).partition("/")[0]
