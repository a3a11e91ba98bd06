"""Take a secret out of threads that no remote has seen; what to do for others.

The one place where history is not kept: the old thread goes to the trash, and
a thread without the secret takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from uwfgit.engine.hold import hold_thread
from uwfgit.errors import CorruptError, NotFoundError, StateError, StoreError
from uwfgit.ids import Hash, Oid, ThreadId, mint_thread_id
from uwfgit.model.events import Event, iter_events
from uwfgit.model.keep import drop_node, list_kept
from uwfgit.model.ledger import Ledger, find_kept
from uwfgit.model.mask import Masker, Secret
from uwfgit.model.record import Tip, load_tip, read_tip
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.gitcmd import run_git
from uwfgit.store.layout import TRASH_PREFIX, find_ref_thread, thread_ref, workflow_ref
from uwfgit.store.log import log_folder
from uwfgit.store.objects import read_blob, read_commit
from uwfgit.store.refs import find_ref, move_refs
from uwfgit.store.repository import Store
from uwfgit.store.tracking import REMOTES_PREFIX, scan_refs
from uwfgit.store.writing import writing
from uwfgit.sync.exchange import describe_report
from uwfgit.sync.rawtree import Objects, diff_trees
from uwfgit.sync.redo import Redone, redo_thread
from uwfgit.sync.scan import Finding, find_secrets
from uwfgit.sync.verify import verify_thread

_TAGS: Final = "refs/tags/"
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """What redacting did.

    ``threads`` pairs old and new ids, the named thread's first; ``approvals``
    are tags that went, since they stood on the old commits; ``left`` are refs that
    still hold the secret.
    """

    tip: Tip
    threads: tuple[tuple[ThreadId, ThreadId], ...]
    findings: tuple[str, ...]
    dropped: tuple[Hash, ...]
    approvals: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spread:
    """How far a secret has come: the first commit with it, and who holds that."""

    first: Oid
    clean: int | None
    """The last step before it; ``None`` when the start itself has it."""
    threads: tuple[ThreadId, ...]
    remotes: tuple[str, ...]
    tags: Mapping[str, Oid]


def redact_thread(
    ledger: Ledger,
    thread: ThreadId,
    *,
    environment: Mapping[str, str],
    command: str,
    finding: str | None = None,
    forks: bool = False,
) -> Redacted:
    """Write a thread anew without its secrets, and put the old one into the trash.

    All happens or nothing: new threads appear and old ones go in one move, after
    they were found whole and clean.

    Args:
        ledger: Where.
        thread: Which.
        environment: What git's starts from.
        command: What is being run, for whoever meets the locks.
        finding: The one to take out; else all that were not let through.
        forks: Other threads that hold it too.

    Raises:
        NotFoundError: There is no such thread or finding.
        StateError: There is nothing to take out; a remote has it; other threads
            hold it; or it stands where it cannot be taken out.
        LockedError: One of the threads is running.
    """
    store = ledger.store
    found = _choose(store, thread, finding, environment)
    spread = _find_spread(store, thread, found, environment)
    _require_unshared(store, thread, spread)
    others = [each for each in spread.threads if each != thread]
    if others and not forks:
        raise _held_by_others(others)
    masker = _make_masker(store, found, others, environment)
    with ExitStack() as held:
        for each in sorted((thread, *others)):
            held.enter_context(hold_thread(ledger, each, command=command))
        held.enter_context(writing(store))
        done = _redo_all(ledger, (thread, *others), masker, found, environment)
        for commit in (each for new in done.values() for each in new.made_here):
            # Before they can be seen: others would take them for a stranger's.
            ledger.local.record_commit(commit)
        _publish(store, done, spread.tags)
    dropped = _drop_kept(ledger, masker)
    _follow(ledger, done, masker)
    # Rows of the old threads quote them.
    ledger.lookup.refresh()
    return Redacted(
        tip=done[thread].tip,
        threads=tuple((old, new.tip.thread) for old, new in done.items()),
        findings=tuple(dict.fromkeys(each.id for each in found)),
        dropped=dropped,
        approvals=tuple(spread.tags),
        left=_find_left(store, done[thread].tip, found, environment),
    )


def _make_masker(
    store: Store,
    found: Sequence[Finding],
    others: Sequence[ThreadId],
    environment: Mapping[str, str],
) -> Masker:
    """Make what takes out the secrets, in each way in which they stand anywhere."""
    ids = {each.id for each in found}
    tips = [load_tip(store, each).commit for each in others]
    more = find_secrets(store, tips, [GENESIS_OID], environment=environment)
    return Masker(
        Secret(name=each.rule, value=each.secret)
        for each in (*found, *more)
        if each.id in ids
    )


def _find_left(
    store: Store,
    tip: Tip,
    found: Sequence[Finding],
    environment: Mapping[str, str],
) -> tuple[str, ...]:
    """Give the registry's branch of the workflow, if its file has the secret too."""
    ref = workflow_ref(tip.state.workflow_name)
    registered = find_ref(store, ref)
    if registered is None:
        return ()
    ids = {each.id for each in found}
    there = find_secrets(store, [registered], [GENESIS_OID], environment=environment)
    return (ref,) if any(each.id in ids for each in there) else ()


def _choose(
    store: Store,
    thread: ThreadId,
    finding: str | None,
    environment: Mapping[str, str],
) -> tuple[Finding, ...]:
    tip = load_tip(store, thread).commit
    found = find_secrets(store, [tip], [GENESIS_OID], environment=environment)
    if finding is not None:
        found = tuple(each for each in found if each.id == finding)
        if not found:
            raise NotFoundError(
                "finding", finding, hint=f"see them all: uwf thread redact {thread}"
            )
    if not found:
        raise StateError(f"no secret was found in thread {thread}")
    return found


def _find_spread(
    store: Store,
    thread: ThreadId,
    found: Sequence[Finding],
    environment: Mapping[str, str],
) -> _Spread:
    tip = load_tip(store, thread).commit
    event, before = _first_with(store, tip, {each.oid for each in found})
    first = event.commit.oid
    refs = _refs_with(store, first, environment)
    threads = [each for ref in refs if (each := find_ref_thread(ref))]
    tags = {ref: oid for ref, oid in refs.items() if ref.startswith(_TAGS)}
    remotes = tuple(ref for ref in refs if ref.startswith(REMOTES_PREFIX))
    known = {*tags, *remotes, *map(thread_ref, threads)}
    rest = [ref for ref in refs if ref not in known and TRASH_PREFIX not in ref]
    if rest:
        raise StateError(
            f"'{rest[0]}' holds the secret too",
            hint="remove or rewind it by hand, then redact",
        )
    return _Spread(
        first=first,
        clean=None
        if before is None
        else read_tip(store, before.thread, before.commit.oid).state.steps,
        threads=tuple(threads),
        remotes=remotes,
        tags=tags,
    )


def _first_with(
    store: Store, tip: Oid, oids: set[Oid | None]
) -> tuple[Event, Event | None]:
    """Give the first event that brings one of some objects, and the one before."""
    before: Event | None = None
    events = list(iter_events(store, tip))[::-1]
    for event in events:
        if oids & set(_brought(store, event)):
            return event, before
        before = event
    # In a tree's own names: as good as from the start.
    return events[0], None


def _brought(store: Store, event: Event) -> Iterator[Oid]:
    yield event.commit.oid
    parent = read_commit(store, event.commit.parents[0])
    changes = diff_trees(Objects(store=store), parent.tree, event.commit.tree)
    yield from (new for _, new in changes.values() if new is not None)


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


def _require_unshared(store: Store, thread: ThreadId, spread: _Spread) -> None:
    there = {
        ref.rpartition("/")[2]: ref.removeprefix(REMOTES_PREFIX).partition("/")[0]
        for ref in scan_refs(store, REMOTES_PREFIX)
    }
    others = [each for each in spread.threads if each in there]
    if not spread.remotes and not others:
        return
    if spread.remotes:
        remote = spread.remotes[0].removeprefix(REMOTES_PREFIX).partition("/")[0]
        what = f"remote '{remote}' has the secret: revoke it first, it is known there"
    else:
        remote = there[others[0]]
        what = f"remote '{remote}' has thread {others[0]}, though not yet the secret"
    raise StateError(what, hint=_go_on(thread, spread))


def _go_on(thread: ThreadId, spread: _Spread) -> str:
    if spread.clean is None:
        return "no step is without it: start a new thread"
    return (
        f"go on from the last clean step: uwf thread fork {thread} --at {spread.clean}"
        f", then: uwf thread rm {thread}"
    )


def _held_by_others(others: Sequence[ThreadId]) -> StateError:
    more = len(others) - _SHOWN
    tail = f" and {more} more" if more > 0 else ""
    return StateError(
        f"other threads hold the secret too: {', '.join(others[:_SHOWN])}{tail}",
        hint="redact them as well: add --forks",
    )


def _redo_all(
    ledger: Ledger,
    threads: Sequence[ThreadId],
    masker: Masker,
    found: Sequence[Finding],
    environment: Mapping[str, str],
) -> dict[ThreadId, Redone]:
    done = {}
    for thread in threads:
        copy = mint_thread_id(ledger.now_ms(), ledger.random(10))
        done[thread] = redo_thread(ledger, thread, masker=masker, copy=copy)
        _require_whole(ledger.store, done[thread].tip)
        _require_clean(ledger.store, done[thread].tip, found, environment)
    return done


def _require_whole(store: Store, tip: Tip) -> None:
    report = verify_thread(store, tip.commit, tip.thread)
    if not report.ok:
        raise CorruptError(
            f"the redacted thread would not verify: {describe_report(report)}",
            hint="nothing was changed; verify the thread as it is: uwf verify",
        )


def _require_clean(
    store: Store,
    tip: Tip,
    found: Sequence[Finding],
    environment: Mapping[str, str],
) -> None:
    ids = {each.id for each in found}
    left = [
        each
        for each in find_secrets(
            store, [tip.commit], [GENESIS_OID], environment=environment
        )
        if each.id in ids
    ]
    if left:
        raise StateError(
            f"the secret stands where it cannot be taken out: {left[0]}",
            hint="remove the thread: uwf thread rm, and empty the trash",
        )


def _publish(
    store: Store, done: Mapping[ThreadId, Redone], tags: Mapping[str, Oid]
) -> None:
    """Let the new threads appear and the old ones go, in one move."""
    moves: dict[str, tuple[Oid | None, Oid | None]] = {}
    for old, new in done.items():
        ref, trash = thread_ref(old), TRASH_PREFIX + old
        moves[thread_ref(new.tip.thread)] = (None, new.tip.commit)
        moves[trash] = (find_ref(store, trash), new.source)
        moves[ref] = (new.source, None)
    for tag, oid in tags.items():
        moves[tag] = (oid, None)
    move_refs(store, moves, reason="redact")


def _drop_kept(ledger: Ledger, masker: Masker) -> tuple[Hash, ...]:
    """Stop keeping the nodes put by hand that hold the secret."""
    dropped = []
    for node in list_kept(ledger):
        kept = find_kept(ledger, node)
        if kept is None:
            continue
        text = read_blob(ledger.store, kept[1]).decode("utf-8", "replace")
        if masker.mask(text) != text:
            drop_node(ledger, node)
            dropped.append(node)
    return tuple(dropped)


def _follow(ledger: Ledger, done: Mapping[ThreadId, Redone], masker: Masker) -> None:
    """Let what this machine knows of the old threads follow; files of theirs go."""
    local = ledger.local
    for old, new in done.items():
        copy = new.tip.thread
        folder = local.find_folder(old)
        if folder is not None:
            local.set_folder(copy, folder)
        local.set_trusted(copy, local.find_trusted(old))
        if local.last() == old:
            local.set_last(copy)
        _remove_traces(ledger.store, old, masker)


def _remove_traces(store: Store, thread: ThreadId, masker: Masker) -> None:
    """Remove files beside the store that hold the secret: live turns, prompts, logs."""
    for folder in (store.state_dir / "live", log_folder(store)):
        for path in folder.glob(f"{thread}*"):
            try:
                text = path.read_text("utf-8", "replace")
                if masker.mask(text) != text:
                    path.unlink(missing_ok=True)
            except OSError:
                continue
