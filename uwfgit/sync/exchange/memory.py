"""The agents' memory on remotes: sent when asked for, brought where it is.

It travels apart from the threads it belongs to: a thread is whole without it. Two
machines that both went on make two chains, which are put side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from uwfgit.errors import RejectedError
from uwfgit.ids import Oid, ThreadId, is_thread_id
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.memory.merge import check_memory, merge_memory
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.git.scratch import adopt_objects, open_scratch
from uwfgit.store.handle import Store
from uwfgit.store.layout import MEMORY_PREFIX, memory_ref
from uwfgit.store.locks.holding import writing
from uwfgit.store.refs import find_ref, is_ancestor, move_ref, scan_refs
from uwfgit.sync.exchange.exchange import RefOutcome, Result, compare
from uwfgit.sync.exchange.push import Scan
from uwfgit.sync.exchange.remotes import Remote
from uwfgit.sync.exchange.transport import (
    Update,
    Wire,
    fetch_refs,
    list_refs_there,
    push_refs,
    reason_of,
)


def find_memory_thread(ref: str) -> ThreadId | None:
    """Return the thread a memory's ref is for; ``None`` for any other ref."""
    name = ref.removeprefix(MEMORY_PREFIX)
    return ThreadId(name) if name != ref and is_thread_id(name) else None


def list_memories(store: Store) -> dict[ThreadId, Oid]:
    """List the memories of a store by their threads."""
    found = scan_refs(store, MEMORY_PREFIX)
    return {
        t: oid for ref, oid in sorted(found.items()) if (t := find_memory_thread(ref))
    }


def push_memory(
    ledger: Ledger,
    remote: Remote,
    threads: Iterable[ThreadId],
    *,
    wire: Wire,
    scan: Scan,
    dry_run: bool = False,
) -> tuple[RefOutcome, ...]:
    """Send the memory of some threads; what a remote has more is brought first.

    Raises:
        AuthError, RemoteError: The remote cannot be reached.
    """
    mine = list_memories(ledger.store)
    wanted = [thread for thread in threads if thread in mine]
    if not wanted:
        return ()
    theirs = _list_there(ledger, remote, wire)
    told = list(_bring(ledger, remote, wanted, theirs, wire=wire))
    mine = list_memories(ledger.store)
    leaving: list[tuple[str, Oid, Oid | None]] = []
    for thread in wanted:
        old, new = theirs.get(thread), mine[thread]
        if compare(ledger.store, new, old) in {"new", "ahead"}:
            leaving.append((memory_ref(thread), new, old))
    problems = scan(leaving) if leaving else {}
    for ref, new, old in leaving:
        problem = problems.get(ref)
        if problem is None and not dry_run:
            try:
                push_refs(wire, ledger.store, remote.name, [Update(oid=new, ref=ref)])
            except RejectedError as exc:
                problem = exc.refs.get(ref, exc.message)
        if problem is not None:
            told.append(RefOutcome(ref=ref, result="refused", new=new, message=problem))
        else:
            result: Result = "updated" if old else "new"
            told.append(RefOutcome(ref=ref, result=result, old=old, new=new))
    return tuple(told)


def pull_memory(
    ledger: Ledger, remote: Remote, threads: Iterable[ThreadId], *, wire: Wire
) -> tuple[RefOutcome, ...]:
    """Bring what a remote has of the memory of some threads.

    Raises:
        AuthError, RemoteError: The remote cannot be reached.
    """
    theirs = _list_there(ledger, remote, wire)
    return tuple(_bring(ledger, remote, list(threads), theirs, wire=wire))


def _list_there(ledger: Ledger, remote: Remote, wire: Wire) -> dict[ThreadId, Oid]:
    there = list_refs_there(
        wire, remote.url, name=remote.name, git_dir=ledger.store.path
    )
    return {t: oid for ref, oid in there.items() if (t := find_memory_thread(ref))}


def _bring(
    ledger: Ledger,
    remote: Remote,
    threads: Sequence[ThreadId],
    theirs: Mapping[ThreadId, Oid],
    *,
    wire: Wire,
) -> Iterable[RefOutcome]:
    store = ledger.store
    mine = list_memories(store)
    wanted = [
        thread
        for thread in threads
        if thread in theirs
        and (
            thread not in mine
            or compare(store, mine[thread], theirs[thread])
            not in {"up-to-date", "ahead"}
        )
    ]
    if not wanted:
        return
    with open_scratch(store) as scratch:
        specs = [f"{memory_ref(thread)}:{memory_ref(thread)}" for thread in wanted]
        done = fetch_refs(wire, remote.url, specs, git_dir=scratch.path)
        for thread in wanted:
            ref = memory_ref(thread)
            new = find_ref(scratch, ref)
            old = find_ref(store, ref)
            problem = (
                f"git cannot fetch it: {reason_of(done)}"
                if new is None
                else check_memory(scratch, new, known=old)
            )
            if new is None or problem is not None:
                yield RefOutcome(ref=ref, result="refused", new=new, message=problem)
            else:
                _adopt(ledger, scratch, thread, old, new, wire)
                result: Result = "updated" if old else "new"
                yield RefOutcome(ref=ref, result=result, old=old, new=new)


def _adopt(
    ledger: Ledger,
    scratch: Store,
    thread: ThreadId,
    old: Oid | None,
    new: Oid,
    wire: Wire,
) -> None:
    store = ledger.store
    known = [GENESIS_OID, *([old] if old else [])]
    with (
        writing(store),
        adopt_objects(store, scratch, [new], known=known, environment=wire.environment),
    ):
        is_on_top = old is None or is_ancestor(scratch, old, new)
        tip = new if is_on_top else merge_memory(ledger, thread, old or new, new)
        move_ref(store, memory_ref(thread), old=old, new=tip, reason="uwf pull")
