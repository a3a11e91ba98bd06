"""Take a secret out of threads that no remote has seen; what to do for others.

The one place where history is not kept: the old thread goes to the trash, and
a thread without the secret takes its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final, TypeAlias

from msgspec import Struct

from uwfgit.engine.run.hold import hold_thread
from uwfgit.errors import CorruptError, NotFoundError, StateError, first_of, name_some
from uwfgit.ids import Hash, Oid, ThreadId, mint_thread_id
from uwfgit.model.ledger.keep import drop_node, list_kept
from uwfgit.model.ledger.ledger import Ledger, find_kept
from uwfgit.model.mask import Masker, Secret
from uwfgit.model.thread.tip import Tip, load_tip
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import TRASH_PREFIX, WORKFLOW_PREFIX, memory_ref, thread_ref
from uwfgit.store.local import Agreed
from uwfgit.store.locks.holding import writing
from uwfgit.store.log import LOGS
from uwfgit.store.objects import read_blob
from uwfgit.store.refs import find_ref, move_refs, scan_refs
from uwfgit.sync.secrets.allowed import read_allowed
from uwfgit.sync.secrets.clean_copy import redo_thread
from uwfgit.sync.secrets.copies import Copies, Redone
from uwfgit.sync.secrets.kin import Kin, find_kin
from uwfgit.sync.secrets.scan import SecretFinding, find_secrets
from uwfgit.sync.secrets.secret_refs import Spread, find_spread, look_again
from uwfgit.sync.verify.verify import verify_thread

Done: TypeAlias = Sequence[tuple[ThreadId, Redone]]
"""Old threads, each with a new one that it is written as."""

_LISTED: Final = 20
"""Findings that are named to whoever asks for one that is none."""


class Redacted(Struct, frozen=True, kw_only=True):
    """What redacting did.

    ``threads`` pairs old and new ids, the named thread's first; ``approvals``
    are tags that went, since they stood on the old commits; ``passed`` are findings
    that stay, since they were let through; ``left`` are branches of registered
    workflows that still hold the secret.
    """

    tip: Tip
    threads: tuple[tuple[ThreadId, ThreadId], ...]
    findings: tuple[str, ...]
    dropped: tuple[Hash, ...]
    approvals: tuple[str, ...]
    passed: tuple[str, ...]
    left: tuple[str, ...]


def redact_thread(
    ledger: Ledger,
    thread: ThreadId,
    *,
    environment: Mapping[str, str],
    command: str,
    finding: str | None = None,
    forks: bool = False,
) -> Redacted:
    """Write a thread again without its secrets, and put the old one into the trash.

    The new threads are written, and found whole and clean, before anything goes:
    first the nodes put by hand that hold the secret, and what this machine has
    beside the old threads; then these, in one move by which the new ones appear.
    Killed before that move, the next call does it all; in it, the next command of
    any kind finishes it.

    Args:
        ledger: Where.
        thread: Which.
        environment: What git's starts from.
        command: What is being run, for whoever meets the locks.
        finding: The one to take out, be it let through or not; else all that were
            not let through, and those that were when there are no others.
        forks: Threads too that hold the same commits; else one stops it all.

    Raises:
        NotFoundError: There is no such thread or finding.
        StateError: There is nothing to take out; a remote has it; other threads
            hold it; or it stands where it cannot be taken out.
        LockedError: One of the threads is running, or someone puts nodes.
        RefConflictError: One was moved by plain git meanwhile.
        ConflictError: One was forked meanwhile.
        CorruptError: One is damaged, or would not verify once written again.
        StoreError: The store cannot be written, or git cannot sign.
    """
    store = ledger.store
    with ExitStack() as held:
        held.enter_context(hold_thread(ledger, thread, command=command))
        found, passed = _choose(store, thread, finding, environment)
        families = find_kin(ledger, thread)
        kin = dict.fromkeys(each for family in families for each in family.threads)
        spreads = _find_spreads(store, families, found, environment)
        holders = {each for spread in spreads.values() for each in spread.threads}
        others = sorted(holders - {*kin})
        if not forks:
            _require_alone(families, others)
        for each in sorted({*kin, *others} - {thread}):
            held.enter_context(hold_thread(ledger, each, command=command))
        held.enter_context(writing(store))
        masker = _make_masker(store, found, (*kin, *others), environment)
        done = _redo_all(ledger, families, others, masker, found, environment)
        for commit in (each for _, new in done for each in new.made_here):
            # Before they can be seen: others would take them for a stranger's.
            ledger.local.record_commit(commit)
        tags: dict[str, Oid] = {}
        for each, spread in spreads.items():
            tags |= look_again(store, each, spread, environment=environment).tags
        dropped = _drop_kept(ledger, masker)
        # Before the move, which others finish should we be killed: this they cannot.
        _follow(ledger, done, masker)
        _publish(store, done, tags)
    # Rows of the old threads quote them.
    ledger.lookup.refresh()
    # One that several share has a copy for each; that of its own parent counts.
    named = [(old, new.tip) for old, new in done if old == thread]
    rest = [(old, new.tip) for old, new in done if old != thread]
    return Redacted(
        tip=named[0][1],
        threads=tuple((old, tip.thread) for old, tip in (*named, *rest)),
        findings=tuple(dict.fromkeys(each.id for each in found)),
        dropped=dropped,
        approvals=tuple(tags),
        passed=tuple(passed),
        left=_find_left(store, found, environment),
    )


def _require_alone(families: Sequence[Kin], others: Sequence[ThreadId]) -> None:
    sharing = [family.threads[0] for family in families[1:]]
    if others or sharing:
        what = "share what is to change" if sharing else "hold the secret too"
        raise StateError(
            f"other threads {what}: {name_some([*sharing, *others])}",
            hint="redact them as well: add --forks",
        )


def _find_spreads(
    store: Store,
    families: Sequence[Kin],
    found: Sequence[SecretFinding],
    environment: Mapping[str, str],
) -> dict[ThreadId, Spread]:
    """Find out, thread by thread, who holds what is to change."""
    spreads = {}
    changes: dict[ThreadId, frozenset[Hash]] = {}
    for family in families:
        for thread, nodes in family.changed.items():
            changes[thread] = changes.get(thread, frozenset()) | nodes
    for thread, changed in changes.items():
        tips = [load_tip(store, thread).commit]
        here = _find_same(store, tips, found, environment)
        if here or changed:
            spreads[thread] = find_spread(
                store, thread, here, environment=environment, changed=changed
            )
    return spreads


def _make_masker(
    store: Store,
    found: Sequence[SecretFinding],
    others: Sequence[ThreadId],
    environment: Mapping[str, str],
) -> Masker:
    """Make what takes out the secrets, in each way in which they stand anywhere."""
    tips = [load_tip(store, each).commit for each in others]
    more = _find_same(store, tips, found, environment)
    return Masker(
        [Secret(name=each.rule, value=each.secret) for each in (*found, *more)]
    )


def _find_same(
    store: Store,
    tips: Sequence[Oid],
    found: Sequence[SecretFinding],
    environment: Mapping[str, str],
) -> list[SecretFinding]:
    """Return the places where one of some secrets stands at these tips."""
    ids = {each.id for each in found}
    there = _find_all(store, tips, environment)
    return [each for each in there if each.id in ids]


def _find_all(
    store: Store, tips: Sequence[Oid], environment: Mapping[str, str]
) -> tuple[SecretFinding, ...]:
    """Return all findings at these tips: one let through may be taken out as well."""
    return find_secrets(store, tips, [GENESIS_OID], environment=environment, allowed=())


def _find_left(
    store: Store, found: Sequence[SecretFinding], environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the branches of registered workflows whose files have the secret too."""
    tips = scan_refs(store, WORKFLOW_PREFIX)
    if not _find_same(store, [*tips.values()], found, environment):
        return ()
    return tuple(
        ref
        for ref, tip in sorted(tips.items())
        if _find_same(store, [tip], found, environment)
    )


def _choose(
    store: Store,
    thread: ThreadId,
    finding: str | None,
    environment: Mapping[str, str],
) -> tuple[Sequence[SecretFinding], Sequence[str]]:
    """Return what to take out of a thread, and which of the rest were let through."""
    found = _find_all(store, [load_tip(store, thread).commit], environment)
    ids = [*dict.fromkeys(each.id for each in found)]
    none = f"no secret was found in thread {thread}"
    allowed = read_allowed(store)
    if finding is None:
        wanted = [each for each in ids if each not in allowed] or ids
    else:
        wanted = [each for each in ids if each == finding]
    if finding is not None and not wanted:
        known = f"thread {thread} has {name_some(ids, most=_LISTED)}"
        raise NotFoundError("finding", finding, hint=known if ids else none)
    if not wanted:
        raise StateError(none)
    chosen = [each for each in found if each.id in wanted]
    return chosen, [each for each in ids if each in allowed and each not in wanted]


def _redo_all(
    ledger: Ledger,
    families: Sequence[Kin],
    others: Sequence[ThreadId],
    masker: Masker,
    found: Sequence[SecretFinding],
    environment: Mapping[str, str],
) -> Done:
    done: list[tuple[ThreadId, Redone]] = []
    for family in families:
        threads = (*family.threads, *(others if not done else ()))
        names = {
            each: mint_thread_id(ledger.now_ms(), ledger.random(10)) for each in threads
        }
        copies = Copies(names=names, parents=family.parents)
        for thread in threads:
            redo_thread(ledger, thread, masker=masker, copies=copies)
        done += copies.done.items()
    for _, new in done:
        _require_whole(ledger.store, new.tip, found, environment)
    return done


def _require_whole(
    store: Store,
    tip: Tip,
    found: Sequence[SecretFinding],
    environment: Mapping[str, str],
) -> None:
    """Make sure that a new thread verifies, and holds nothing that was to go."""
    report = verify_thread(store, tip.commit, tip.thread)
    if not report.ok:
        raise CorruptError(
            f"the redacted thread would not verify: {first_of(report.problems)}",
            hint="nothing was changed; verify the thread as it is: uwf verify",
        )
    left = _find_same(store, [tip.commit], found, environment)
    if left:
        raise StateError(
            f"the secret stands where it cannot be taken out: {left[0]}",
            hint="remove the thread: uwf thread rm, and empty the trash",
        )


def _publish(store: Store, done: Done, tags: Mapping[str, Oid]) -> None:
    """Let the new threads appear and the old ones go, in one move."""
    moves: dict[str, tuple[Oid | None, Oid | None]] = {}
    for old, new in done:
        ref, trash = thread_ref(old), TRASH_PREFIX + old
        moves[thread_ref(new.tip.thread)] = (None, new.tip.commit)
        moves[trash] = (find_ref(store, trash), new.source)
        moves[ref] = (new.source, None)
        memory = find_ref(store, memory_ref(old))
        if memory is not None:
            # It holds the secret too, and cannot be taken apart.
            moves[memory_ref(old)] = (memory, None)
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


def _follow(ledger: Ledger, done: Done, masker: Masker) -> None:
    """Let what this machine knows of the old threads follow; files of theirs go."""
    local = ledger.local
    for old, new in done:
        copy = new.tip.thread
        local.let_follow(old, copy)
        note = local.find_note(old)
        if note is not None:
            # Of the old one as well, which stays should we be killed before the move.
            for thread in (old, copy):
                local.set_note(thread, masker.mask(note))
        agreed = local.find_trusted(old)
        if agreed is not None:
            state = new.tip.state
            local.set_trusted(
                copy, Agreed(workflow=state.workflow_oid, tip=new.tip.commit)
            )
        if local.last() == old:
            local.set_last(copy)
        _remove_traces(ledger.store, old, masker)


def _remove_traces(store: Store, thread: ThreadId, masker: Masker) -> None:
    """Remove files beside the store that hold the secret: live turns, prompts, logs."""
    for folder in (store.state_dir / "live", store.state_dir / LOGS):
        for path in folder.glob(f"{thread}*"):
            try:
                text = path.read_text("utf-8", "replace")
                if masker.mask(text) != text:
                    path.unlink(missing_ok=True)
            except OSError:
                continue
