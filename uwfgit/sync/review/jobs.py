"""What reviews are compared with: the base's branch, and the CI job on it.

The only place that puts a job into commits, and that knows one made so again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from uwfgit.errors import InvalidError, StateError, UwfError
from uwfgit.ids import Oid
from uwfgit.model.ledger.commit import NewCommit, commit_batch, committer
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.shell import quote_words
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import HEAD_REF
from uwfgit.store.objects import (
    Person,
    find_entry,
    format_commit,
    new_file,
    read_blob,
    read_commit,
)
from uwfgit.store.pack import Batch
from uwfgit.store.refs import find_ref, has_object, is_ancestor, move_ref
from uwfgit.sync.exchange.push import Scan
from uwfgit.sync.exchange.remotes import Remote
from uwfgit.sync.exchange.transport import (
    Update,
    Wire,
    fetched_aside,
    list_refs_there,
    push_refs,
)
from uwfgit.sync.review.forges import JOB_PATHS, Ci, CiJob, make_job
from uwfgit.sync.verify.rawtree import Objects, diff_trees
from uwfgit.sync.verify.shape import Stamp, parse_commit

HEADS: Final = "refs/heads/"
SHARED_BASE: Final = "uwf/main"
_MESSAGE: Final = "verify threads on review\n"
_NAME, _EMAIL = "uwf", "uwf@localhost"
_JOB_BYTES: Final = 64 * 1024


def list_branches(wire: Wire, remote: Remote) -> dict[str, Oid]:
    """Return the branches and tags a remote has, by their names there.

    Raises:
        AuthError, RemoteError: It cannot be asked.
    """
    return list_refs_there(
        wire, remote.push_url, name=remote.name, git_dir=None, only_branches=True
    )


def base_branch(remote: Remote) -> str:
    """Name the branch there that whole threads are compared with."""
    return SHARED_BASE if remote.kind == "shared" else "main"


def find_main(ledger: Ledger) -> Oid:
    """Return the commit that the store's own ``main`` is at."""
    return find_ref(ledger.store, HEAD_REF) or GENESIS_OID


def set_up(
    ledger: Ledger, remote: Remote, ci: Ci, *, install: str, wire: Wire, scan: Scan
) -> tuple[str, Oid]:
    """Add the job that verifies reviews to the branch they are compared with.

    Args:
        ledger: Whose ``main`` goes there, when that has all there is.
        remote: Where the reviews are opened.
        ci: What runs the job.
        install: Where the job installs uwf from.
        wire: How to talk.
        scan: Says what may not leave.

    Returns:
        The branch's name there, and what it is at.

    Raises:
        StateError: That branch has moved on elsewhere.
        InvalidError: The store's ``main`` holds what may not leave.
        StoreError: The commit is to be signed, and cannot be.
        RejectedError, AuthError, RemoteError: The remote did not take it.
    """
    store = ledger.store
    base = base_branch(remote)
    theirs = list_branches(wire, remote).get(HEADS + base)
    mine = find_main(ledger)
    if theirs is not None and not has_object(store, theirs):
        raise StateError(
            f"'{base}' of '{remote.name}' has commits that are not here",
            hint=f"bring them: uwf git fetch {quote_words((remote.name, base))}",
        )
    is_behind = theirs is None or is_ancestor(store, theirs, mine)
    job = make_job(ci, beside_code=remote.kind == "shared", install=install)
    oid = _add_job(ledger, mine if theirs is None or is_behind else theirs, job)
    check_main(scan, oid, theirs)
    if oid != mine and is_ancestor(store, mine, oid):
        move_ref(store, HEAD_REF, old=mine, new=oid, reason="review setup")
    push_refs(wire, store, remote.name, [Update(oid=oid, ref=HEADS + base)])
    return base, oid


def check_main(scan: Scan, new: Oid, old: Oid | None) -> None:
    """Look through what goes to a remote with the store's ``main``.

    Raises:
        InvalidError: Something in it may not leave.
    """
    for problem in scan([(HEAD_REF, new, old)] if new != GENESIS_OID else ()).values():
        raise InvalidError(f"branch main stays here: {problem}")


def _add_job(ledger: Ledger, parent: Oid, job: CiJob) -> Oid:
    old = read_commit(ledger.store, parent).tree
    batch = Batch(store=ledger.store)
    tree = batch.edit_tree(old, {job.path: new_file(job.text.encode())})
    if tree == old:
        return parent
    person = committer(ledger)
    new = NewCommit(
        tree=tree, parent=parent, author=person, person=person, message=_MESSAGE
    )
    return commit_batch(ledger, batch, new)


def add_jobs(
    ledger: Ledger, remote: Remote, cut: Oid, main: Oid | None, *, wire: Wire
) -> Oid:
    """Return what a part of a thread is compared with: where it was cut.

    With the jobs of the remote's base there is one commit more on top, for CIs
    take their jobs from the base. It is the same whoever makes it.

    Args:
        ledger: Where the thread is.
        remote: Where the review is opened.
        cut: The commit before what is reviewed.
        main: What the base of whole threads is at there.
        wire: How to bring it, when it is not here.

    Raises:
        AuthError, RemoteError: It cannot be brought.
    """
    store = ledger.store
    jobs: dict[str, bytes] = {}
    if main is not None and has_object(store, main):
        jobs = _read_jobs(store, main)
    elif main is not None:
        ref, url = HEADS + base_branch(remote), remote.push_url
        # Nothing else of it is kept.
        with fetched_aside(wire, store, url, ref, name=remote.name) as (aside, oid):
            jobs = _read_jobs(aside, oid or main)
    if not jobs:
        return cut
    below = read_commit(store, cut)
    entries = {path: new_file(data) for path, data in jobs.items()}
    batch = Batch(store=store)
    who = Person(name=_NAME, email=_EMAIL, time=below.committer.time)
    data = format_commit(
        tree=batch.edit_tree(below.tree, entries),
        parents=(cut,),
        author=who,
        committer=who,
        message=_MESSAGE,
    )
    oid = batch.add("commit", data)
    batch.write_loose()
    return oid


def _read_jobs(store: Store, main: Oid) -> dict[str, bytes]:
    tree = read_commit(store, main).tree
    found = {path: find_entry(store, tree, path) for path in JOB_PATHS}
    return {
        path: read_blob(store, entry.oid, limit=_JOB_BYTES)
        for path, entry in found.items()
        if entry is not None
    }


def skip_jobs(store: Store, tip: Oid, mains: Iterable[Oid]) -> Oid:
    """Return the commit below one that :func:`add_jobs` made; any other as it is.

    Args:
        store: Where it is; nothing of it is believed.
        tip: The commit.
        mains: The bases whose jobs it may hold.
    """
    objects = Objects(store=store)
    try:
        commit = parse_commit(tip, objects.commit(tip))
        (parent,) = commit.parents
        below = parse_commit(parent, objects.commit(parent))
        changes = diff_trees(objects, below.tree, commit.tree)
    except (UwfError, ValueError):
        return tip
    jobs = {path: new for path, (_, new) in changes.items()}
    is_known = bool(jobs) and any(_list_jobs(objects, each) == jobs for each in mains)
    who = Stamp(name=_NAME, email=_EMAIL, time=below.committer.time, zone="+0000")
    is_made = (
        commit.author == commit.committer == who
        and commit.message == _MESSAGE.encode()
        and not commit.is_signed
    )
    return parent if is_known and is_made else tip


def _list_jobs(objects: Objects, main: Oid) -> Mapping[str, Oid | None]:
    try:
        tree = parse_commit(main, objects.commit(main)).tree
        found = {path: objects.find_file(tree, path) for path in JOB_PATHS}
    except UwfError:
        return {}
    return {path: oid for path, oid in found.items() if oid is not None}
