"""Reviews: a thread's own commits under a branch's name, beside their base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from uwfgit.errors import (
    InvalidError,
    NotFoundError,
    StateError,
    StoreError,
    UsageError,
)
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger, find_step_commit
from uwfgit.model.thread.event import Event, iter_events
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.tip import Tip, load_tip
from uwfgit.model.wording import count_of
from uwfgit.shell import quote_word
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.git.gitcmd import run_git
from uwfgit.store.git.signing import complaint
from uwfgit.store.layout import thread_ref
from uwfgit.store.refs import find_ref, is_ancestor
from uwfgit.sync.exchange.exchange import Verify
from uwfgit.sync.exchange.known import verify_unknown
from uwfgit.sync.exchange.push import Scan
from uwfgit.sync.exchange.remote_kind import starts_at_genesis
from uwfgit.sync.exchange.remotes import Remote
from uwfgit.sync.exchange.signatures import check_text
from uwfgit.sync.exchange.transport import Update, Wire, push_refs
from uwfgit.sync.review.jobs import (
    HEADS,
    add_jobs,
    base_branch,
    check_main,
    find_main,
    list_branches,
)


class Review(Struct, frozen=True, kw_only=True):
    """The two branches of a review, by their names there, and what they are at."""

    thread: ThreadId
    head: str
    base: str
    oid: Oid
    base_oid: Oid


def open_review(
    ledger: Ledger,
    remote: Remote,
    thread: ThreadId,
    *,
    wire: Wire,
    verify: Verify,
    scan: Scan,
    first: int | None = None,
    last: int | None = None,
) -> Review:
    """Push a thread's commits as a branch, with the base to compare it with.

    Args:
        ledger: Where the thread is.
        remote: Where to.
        thread: Which.
        wire: How.
        verify: Verifies what this machine neither made nor verified.
        scan: Says what may not leave.
        first: The first step to review; what is before is the base.
        last: The last one.

    Raises:
        NotFoundError: There is no such thread or step.
        StateError: A review of it is open there that this one does not continue;
            or a fork has no step of its own up to the last one.
        UsageError: The first step comes after the last.
        InvalidError: It does not verify, or may not leave.
        RejectedError, AuthError, RemoteError: The remote did not take it.
    """
    tip = load_tip(ledger.store, thread)
    _require_verified(ledger, tip, verify)
    oid, cut = _choose_part(open_record(ledger.store, tip), first, last)
    _require_clean(tip, scan)
    there = list_branches(wire, remote)
    if f"{HEADS}uwf" in there:
        raise StateError(
            f"'{remote.name}' has a branch 'uwf', so no branch 'uwf/…' can be there",
            hint="rename that branch there",
        )
    head, whole, part = f"uwf/{thread}", base_branch(remote), f"uwf/{thread}-base"
    main = there.get(HEADS + whole)
    if cut is None:
        _require_common(ledger, remote, whole, main, wire)
        base, base_oid = whole, main or find_main(ledger)
        _require_base(thread, remote, same=HEADS + part not in there)
    else:
        base, base_oid = part, add_jobs(ledger, remote, cut, main, wire=wire)
        # One that was opened before the job was set up has none on top.
        open_at = there.get(HEADS + part)
        is_new = open_at is None and HEADS + head not in there
        _require_base(thread, remote, same=is_new or open_at in {cut, base_oid})
    updates = [Update(oid=oid, ref=HEADS + head)]
    if there.get(HEADS + base) != base_oid:
        updates.insert(0, Update(oid=base_oid, ref=HEADS + base))
        if cut is None:
            check_main(scan, base_oid, None)
    _send(ledger, remote, thread, updates, there, wire)
    return Review(thread=thread, head=head, base=base, oid=oid, base_oid=base_oid)


def _require_common(
    ledger: Ledger, remote: Remote, base: str, oid: Oid | None, wire: Wire
) -> None:
    """Make sure that a forge finds where a thread and its base part.

    Raises:
        StateError: They share no commit.
    """
    if oid is None or starts_at_genesis(
        ledger.store, remote, remote.push_url, HEADS + base, oid, wire=wire
    ):
        return
    instead = (
        "rename that branch there"
        if remote.kind == "shared"
        else f"`uwf remote rm {quote_word(remote.name)}`, then add it with --shared, "
        "or use an empty repository"
    )
    raise StateError(
        f"branch '{base}' of '{remote.name}' has no commit in common with threads: "
        "no forge could compare a review with it",
        hint=instead,
    )


def _require_base(thread: ThreadId, remote: Remote, *, same: bool) -> None:
    """Keep a review from being compared with something else under the same name."""
    if not same:
        raise StateError(
            f"a review of another part of thread {thread} is open at '{remote.name}'",
            hint=f"push what is new to it: uwf review update {thread}; "
            f"or close it first: uwf review close {thread}",
        )


def _send(
    ledger: Ledger,
    remote: Remote,
    thread: ThreadId,
    updates: Sequence[Update],
    there: Mapping[str, Oid],
    wire: Wire,
) -> None:
    """Push the branches of a review, of which the last is its head."""
    head = updates[-1]
    open_at = there.get(head.ref, head.oid)
    if not is_ancestor(ledger.store, open_at, head.oid):
        tip = find_ref(ledger.store, thread_ref(thread))
        if tip is not None and is_ancestor(ledger.store, open_at, tip):
            raise StateError(
                f"the review of thread {thread} at '{remote.name}' goes further",
                hint=f"close it first: uwf review close {thread}",
            )
        raise StateError(
            f"the review of thread {thread} at '{remote.name}' holds other commits",
            hint=f"bring them: uwf pull {thread}; or else: uwf review close {thread}",
        )
    push_refs(wire, ledger.store, remote.name, updates)


def update_review(
    ledger: Ledger,
    remote: Remote,
    thread: ThreadId,
    *,
    wire: Wire,
    verify: Verify,
    scan: Scan,
) -> Review:
    """Push what a thread has become to its open review.

    Raises:
        StateError: No review of it is open there, or that went on elsewhere.
        NotFoundError, InvalidError, RemoteError: As for ``open_review``.
    """
    there = list_branches(wire, remote)
    head = f"uwf/{thread}"
    if HEADS + head not in there:
        raise StateError(
            f"no review of thread {thread} is open at '{remote.name}'",
            hint=f"open one: uwf review open {thread}",
        )
    tip = load_tip(ledger.store, thread)
    _require_verified(ledger, tip, verify)
    _require_clean(tip, scan)
    updates = [Update(oid=tip.commit, ref=HEADS + head)]
    _send(ledger, remote, thread, updates, there, wire)
    part = f"{head}-base"
    base = part if HEADS + part in there else base_branch(remote)
    base_oid = there.get(HEADS + base, GENESIS_OID)
    return Review(
        thread=thread, head=head, base=base, oid=tip.commit, base_oid=base_oid
    )


def close_review(
    ledger: Ledger, remote: Remote, thread: ThreadId, *, wire: Wire
) -> tuple[str, ...]:
    """Remove the branches of a review there; the thread itself stays.

    Returns:
        The branches that are gone.

    Raises:
        RejectedError, AuthError, RemoteError: The remote did not do it.
    """
    there = list_branches(wire, remote)
    names = [f"uwf/{thread}", f"uwf/{thread}-base"]
    gone = [name for name in names if HEADS + name in there]
    if gone:
        updates = [Update(oid=Oid(""), ref=HEADS + name) for name in gone]
        push_refs(wire, ledger.store, remote.name, updates)
    return tuple(gone)


class Approved(Struct, frozen=True, kw_only=True):
    """A tag that was made; ``signed`` by whom the user's settings name."""

    tag: str
    oid: Oid
    commit: Oid
    step: Hash
    signed: bool


def approve(
    ledger: Ledger,
    thread: ThreadId,
    *,
    verify: Verify,
    step: int | None,
    message: str | None,
    sign: bool | None,
    environment: Mapping[str, str],
) -> Approved:
    """Tag the commit of a step, by default the newest, as approved.

    Args:
        ledger: Where the thread is.
        thread: Which.
        verify: Verifies what this machine neither made nor verified.
        step: Which step.
        message: What the tag says.
        sign: ``None``: when git's ``tag.gpgSign`` says so, else when events
            are signed.
        environment: What git's starts from.

    Raises:
        StateError: It has no step, or this one is approved already.
        NotFoundError: There is no such thread or step.
        InvalidError: It does not verify, or others would refuse the message.
        StoreError: git could not make the tag; a key may be missing.
    """
    store = ledger.store
    tip = load_tip(store, thread)
    _require_verified(ledger, tip, verify)
    if not tip.state.steps:
        raise StateError(f"thread {thread} has no step to approve")
    number = tip.state.steps if step is None else step
    _require_step(tip, number)
    event = _event_of(open_record(store, tip), number)
    if event.node is None:
        raise NotFoundError("step", f"{thread}:{number}")
    tag = f"approved/{thread}/{event.node}"
    if find_ref(store, f"refs/tags/{tag}") is not None:
        raise StateError(f"step {number} of thread {thread} is approved already")
    if sign is None:
        sign = _wants_signature(ledger, environment)
    options = ledger.signer.signing().options
    who = {
        "GIT_COMMITTER_NAME": ledger.identity.name,
        "GIT_COMMITTER_EMAIL": ledger.identity.email,
    }
    text = message or f"approve step {number} of {thread}"
    problem = check_text(text.encode())
    if problem is not None:
        raise InvalidError(f"no approval is made so: {problem}")
    done = run_git(
        [
            *options,
            *("tag", "-a", "-s" if sign else "--no-sign", "-m", text),
            *("--", tag, event.commit.oid),
        ],
        git_dir=store.path,
        environment={**environment, **who},
    )
    oid = find_ref(store, f"refs/tags/{tag}")
    if done.code or oid is None:
        raise StoreError(f"git could not make the tag: {complaint(done)}")
    return Approved(
        tag=tag, oid=oid, commit=event.commit.oid, step=event.node, signed=sign
    )


def _wants_signature(ledger: Ledger, environment: Mapping[str, str]) -> bool:
    done = run_git(
        ["config", "--get", "--type=bool", "tag.gpgSign"],
        git_dir=ledger.store.path,
        environment=environment,
    )
    if done.code == 0:
        return done.text == "true"
    return ledger.signer.signing().mode != "never"


def _choose_part(
    record: Record, first: int | None, last: int | None
) -> tuple[Oid, Oid | None]:
    """Return the last commit to review, and the one before the first.

    The other is ``None`` when all of the thread is reviewed.
    """
    if first is not None and last is not None and first > last:
        raise UsageError(
            f"step {first} comes after step {last}",
            hint="the first step is --from, the last is --to",
        )
    tip = record.tip
    if last is None:
        return tip.commit, _find_cut(record, first)
    _require_step(tip, last)
    oid, cut = _commit_of(record, last), _find_cut(record, first)
    if cut is not None and (cut == oid or not is_ancestor(record.store, cut, oid)):
        raise StateError(
            f"step {last} of thread {tip.thread} is of the one it was forked from",
            hint="to review it there too: "
            f"uwf review open {tip.thread} --from {last} --to {last}",
        )
    return oid, cut


def _require_step(tip: Tip, number: int) -> None:
    steps = tip.state.steps
    if not 1 <= number <= steps:
        raise NotFoundError(
            "step",
            f"{tip.thread}:{number}",
            hint=f"the thread has {count_of(steps, 'step')}",
        )


def _find_cut(record: Record, first: int | None) -> Oid | None:
    """Return the commit before what is reviewed; ``None`` when that is all of it."""
    if first is not None:
        _require_step(record.tip, first)
        return _commit_of(record, first - 1)
    if record.tip.state.forked_from is None:
        return None
    for event in iter_events(record.store, record.tip.commit):
        if event.name == "fork" and event.thread == record.tip.thread:
            return event.commit.parents[0]
    return None


def _commit_of(record: Record, number: int) -> Oid:
    return _event_of(record, number).commit.oid


def _event_of(record: Record, number: int) -> Event:
    """Find the event that made a step of the thread's chain; 0 is its start."""
    tip = record.tip
    node = record.step_at(number).hash if number else tip.state.start
    event = find_step_commit(record.store, tip, node)
    if event is None:
        raise NotFoundError("step", f"{tip.thread}:{number}")
    return event


def _require_verified(ledger: Ledger, tip: Tip, verify: Verify) -> None:
    problems = verify_unknown(ledger, {tip.thread: tip.commit}, verify)
    for problem in problems.values():
        raise InvalidError(f"thread {tip.thread} does not verify: {problem}")


def _require_clean(tip: Tip, scan: Scan) -> None:
    blocked = scan([(thread_ref(tip.thread), tip.commit, None)])
    for problem in blocked.values():
        raise InvalidError(f"thread {tip.thread} stays here: {problem}")
