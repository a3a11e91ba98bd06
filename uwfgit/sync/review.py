"""Reviews: a thread's own commits under a branch's name, beside their base."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from uwfgit.errors import InvalidError, NotFoundError, StateError, StoreError
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.commit import committer
from uwfgit.model.events import STEP_EVENTS, Event, iter_events
from uwfgit.model.ledger import Ledger
from uwfgit.model.record import Record, load_tip, open_record
from uwfgit.store.ancestry import has_object, is_ancestor
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.gitcmd import run_git
from uwfgit.store.layout import HEAD_REF, thread_ref
from uwfgit.store.objects import Entry, edit_tree, read_commit, write_blob, write_commit
from uwfgit.store.refs import find_ref, move_ref
from uwfgit.sync.exchange import Verify
from uwfgit.sync.forges import JOBS, Ci
from uwfgit.sync.known import verify_unknown
from uwfgit.sync.push import Scan
from uwfgit.sync.remotes import Remote
from uwfgit.sync.transport import Update, Wire, list_refs_there, push_refs

_HEADS = "refs/heads/"
_SHARED_BASE = "uwf/main"


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
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
        InvalidError: It does not verify, or may not leave.
        RejectedError, AuthError, RemoteError: The remote did not take it.
    """
    record = open_record(ledger.store, load_tip(ledger.store, thread))
    oid = record.tip.commit if last is None else _commit_of(record, last)
    cut = _find_cut(record, first)
    _check(ledger, thread, record.tip.commit, verify, scan)
    there = _list(wire, remote)
    head, base = f"uwf/{thread}", _base_name(remote, thread, is_cut=cut is not None)
    base_oid = cut or there.get(_HEADS + base) or _main(ledger)
    updates = [Update(oid=oid, ref=_HEADS + head)]
    if cut is not None or _HEADS + base not in there:
        updates.append(Update(oid=base_oid, ref=_HEADS + base))
    push_refs(wire, remote.name, updates, git_dir=ledger.store.path)
    return Review(thread=thread, head=head, base=base, oid=oid, base_oid=base_oid)


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
        StateError: No review of it is open there.
        NotFoundError, InvalidError, RemoteError: As for ``open_review``.
    """
    there = _list(wire, remote)
    head = f"uwf/{thread}"
    if _HEADS + head not in there:
        raise StateError(
            f"no review of thread {thread} is open at '{remote.name}'",
            hint=f"open one: uwf review open {thread}",
        )
    record = open_record(ledger.store, load_tip(ledger.store, thread))
    oid = record.tip.commit
    _check(ledger, thread, oid, verify, scan)
    push_refs(
        wire,
        remote.name,
        [Update(oid=oid, ref=_HEADS + head)],
        git_dir=ledger.store.path,
    )
    cut = f"{head}-base"
    base = cut if _HEADS + cut in there else _base_name(remote, thread, is_cut=False)
    base_oid = there.get(_HEADS + base, GENESIS_OID)
    return Review(thread=thread, head=head, base=base, oid=oid, base_oid=base_oid)


def close_review(
    ledger: Ledger, remote: Remote, thread: ThreadId, *, wire: Wire
) -> tuple[str, ...]:
    """Remove the branches of a review there; the thread itself stays.

    Returns:
        The branches that are gone.

    Raises:
        RejectedError, AuthError, RemoteError: The remote did not do it.
    """
    there = _list(wire, remote)
    names = [f"uwf/{thread}", f"uwf/{thread}-base"]
    gone = [name for name in names if _HEADS + name in there]
    if gone:
        updates = [Update(oid=Oid(""), ref=_HEADS + name) for name in gone]
        push_refs(wire, remote.name, updates, git_dir=ledger.store.path)
    return tuple(gone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
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
    step: int | None,
    message: str | None,
    sign: bool | None,
    environment: Mapping[str, str],
) -> Approved:
    """Tag the commit of a step, by default the newest, as approved.

    Args:
        ledger: Where the thread is.
        thread: Which.
        step: Which step.
        message: What the tag says.
        sign: ``None``: when git's own settings say so.
        environment: What git's starts from.

    Raises:
        StateError: It has no step, or this one is approved already.
        NotFoundError: There is no such step.
        StoreError: git could not make the tag; a key may be missing.
    """
    store = ledger.store
    record = open_record(store, load_tip(store, thread))
    number = record.tip.state.steps if step is None else step
    if not record.tip.state.steps:
        raise StateError(f"thread {thread} has no step to approve")
    event = _event_of(record, number)
    if event.node is None:
        raise NotFoundError("step", f"{thread}:{number}")
    tag = f"approved/{thread}/{event.node}"
    if find_ref(store, f"refs/tags/{tag}") is not None:
        raise StateError(f"step {number} of thread {thread} is approved already")
    if sign is None:
        sign = _wants_signature(ledger, environment)
    who = {
        "GIT_COMMITTER_NAME": ledger.identity.name,
        "GIT_COMMITTER_EMAIL": ledger.identity.email,
    }
    text = message or f"approve step {number} of {thread}"
    done = run_git(
        [
            *("tag", "-a", "-s" if sign else "--no-sign", "-m", text),
            *("--", tag, event.commit.oid),
        ],
        git_dir=store.path,
        environment={**environment, **who},
    )
    oid = find_ref(store, f"refs/tags/{tag}")
    if done.code or oid is None:
        raise StoreError(f"git could not make the tag: {done.complaint}")
    return Approved(
        tag=tag, oid=oid, commit=event.commit.oid, step=event.node, signed=sign
    )


def _wants_signature(ledger: Ledger, environment: Mapping[str, str]) -> bool:
    for key in ("tag.gpgSign", "commit.gpgSign"):
        done = run_git(
            ["config", "--get", "--type=bool", key],
            git_dir=ledger.store.path,
            environment=environment,
        )
        if done.code == 0:
            return done.text == "true"
    return False


def set_up(ledger: Ledger, remote: Remote, ci: Ci, *, wire: Wire) -> tuple[str, Oid]:
    """Add the job that verifies reviews to the branch they are compared with.

    Returns:
        The branch's name there, and what it is at.

    Raises:
        StateError: That branch has moved on elsewhere.
        RejectedError, AuthError, RemoteError: The remote did not take it.
    """
    store = ledger.store
    base = _base_name(remote, None, is_cut=False)
    theirs = _list(wire, remote).get(_HEADS + base)
    mine = _main(ledger)
    if theirs is not None and not has_object(store, theirs):
        raise StateError(
            f"'{base}' of '{remote.name}' has commits that are not here",
            hint=f"bring them: uwf git fetch {remote.name} {base}",
        )
    parent = theirs if theirs is not None and is_ancestor(store, mine, theirs) else mine
    oid = _add_job(ledger, parent, ci)
    if find_ref(store, HEAD_REF) != oid:
        move_ref(store, HEAD_REF, old=mine, new=oid, reason="review setup")
    push_refs(
        wire,
        remote.name,
        [Update(oid=oid, ref=_HEADS + base)],
        git_dir=store.path,
    )
    return base, oid


def _add_job(ledger: Ledger, parent: Oid, ci: Ci) -> Oid:
    path, text = JOBS[ci]
    old = read_commit(ledger.store, parent).tree
    entry = Entry(oid=write_blob(ledger.store, text.encode()))
    tree = edit_tree(ledger.store, old, {path: entry})
    if tree == old:
        return parent
    person = committer(ledger)
    return write_commit(
        ledger.store,
        tree=tree,
        parents=(parent,),
        author=person,
        committer=person,
        message="verify threads on review\n",
    )


def _list(wire: Wire, remote: Remote) -> dict[str, Oid]:
    return list_refs_there(
        wire, remote.push_url, name=remote.name, git_dir=None, only_branches=True
    )


def _main(ledger: Ledger) -> Oid:
    return find_ref(ledger.store, HEAD_REF) or GENESIS_OID


def _base_name(remote: Remote, thread: ThreadId | None, *, is_cut: bool) -> str:
    if is_cut:
        return f"uwf/{thread}-base"
    return _SHARED_BASE if remote.kind == "shared" else "main"


def _find_cut(record: Record, first: int | None) -> Oid | None:
    """Give the commit before what is reviewed; ``None`` when that is all of it."""
    if first is not None:
        if first < 1:
            raise NotFoundError("step", f"{record.tip.thread}:{first}")
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
    state = record.tip.state
    wanted = state.start if number == 0 else None
    for step in record.iter_steps() if number else ():
        if step.number == number:
            wanted = step.hash
            break
    for event in iter_events(record.store, record.tip.commit) if wanted else ():
        if event.node == wanted and event.name in (*STEP_EVENTS, "start"):
            return event
    raise NotFoundError(
        "step", f"{state.thread}:{number}", hint=f"the thread has {state.steps} steps"
    )


def _check(
    ledger: Ledger, thread: ThreadId, tip: Oid, verify: Verify, scan: Scan
) -> None:
    problems = verify_unknown(ledger, {thread: tip}, verify)
    if thread in problems:
        raise InvalidError(f"thread {thread} does not verify: {problems[thread]}")
    blocked = scan([(thread_ref(thread), tip, None)])
    for problem in blocked.values():
        raise InvalidError(f"thread {thread} stays here: {problem}")
