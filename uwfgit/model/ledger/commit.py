"""An event as a commit: objects first, then the branch by compare-and-swap.

Whatever fails before the ref moves leaves only garbage for gc.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.constants import MAX_PERSON_BYTES, MAX_STATE_BYTES, MAX_TIME
from uwfgit.errors import InvalidError, SizeError, StoreError
from uwfgit.ids import Oid
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.event import Told
from uwfgit.model.thread.state import AGENT_EMAIL, agent_label, encode_state
from uwfgit.model.thread.tip import Tip
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.git.signing import NO_SIGNER, Signer
from uwfgit.store.layout import STATE_FILE, thread_folder, thread_ref
from uwfgit.store.locks.holding import NO_MOVES, Moves, write_whole
from uwfgit.store.objects import Person, TreeEntry, format_commit, new_file, read_commit
from uwfgit.store.pack import Batch
from uwfgit.store.refs import move_refs

FileChanges: TypeAlias = dict[str, TreeEntry | None]
"""Paths of the repository's root tree to set, or to remove."""
P = ParamSpec("P")
T = TypeVar("T")


def writes_event(
    write: Callable[Concatenate[Ledger, P], T],
) -> Callable[Concatenate[Ledger, P], T]:
    """Mark a function that writes one event, from its first object to its ref.

    No prune takes its objects, and what fails for a moment is done again from
    the start; a lost race is not.
    """

    @wraps(write)
    def run(ledger: Ledger, /, *args: P.args, **options: P.kwargs) -> T:
        return write_whole(ledger.store, lambda: write(ledger, *args, **options))

    return run


def committer(ledger: Ledger, *, not_before: int = 0) -> Person:
    """Return the git identity at this moment, never behind ``not_before`` (s).

    Raises:
        SizeError: It is longer, or later, than any reader would accept.
    """
    who = ledger.identity
    for what, text in (("name", who.name), ("mail address", who.email)):
        size = len(text.encode())
        if size > MAX_PERSON_BYTES:
            raise SizeError(f"your {what} for git", found=size, limit=MAX_PERSON_BYTES)
    time = max(ledger.now_ms() // 1000, not_before)
    # libgit2 writes a later one as 0.
    if time >= MAX_TIME:
        raise SizeError(
            "the clock", found=time, limit=MAX_TIME - 1, unit="seconds since 1970"
        )
    return Person(name=who.name, email=who.email, time=time, offset=ledger.utc_offset)


def require_recordable(folder: Path) -> None:
    """Make sure that a folder can stand in a node, which holds text alone.

    Raises:
        InvalidError: Its name is not UTF-8.
    """
    try:
        str(folder).encode()
    except UnicodeEncodeError as exc:
        raise InvalidError(
            f"working directory '{folder}' has a name that is not UTF-8",
            hint="rename it, or choose one with --cwd DIR",
        ) from exc


def event_person(ledger: Ledger, tip: Tip) -> Person:
    """Return the committer of an event that is no run, never behind the tip."""
    # A whole second, so it may have to lie ahead of the last step's milliseconds.
    behind = -(-tip.state.updated_at_ms // 1000)
    return committer(ledger, not_before=max(tip.committed_at, behind))


def agent_person(label: str, person: Person) -> Person:
    """Return the author of an event that a model or agent decided, at its time."""
    return replace(person, name=agent_label(label), email=AGENT_EMAIL)


def write_event(
    ledger: Ledger,
    parent: Tip | None,
    changes: FileChanges,
    *,
    told: Told,
    author: Person,
    person: Person,
    old: Oid | None = None,
    is_last: bool = True,
    holds_reply: bool = False,
) -> Tip:
    """Write an event: all its objects, then its branch.

    Args:
        ledger: Where to.
        parent: The commit before; ``None`` for genesis.
        changes: Paths to set, but for ``thread.json``.
        told: The state afterwards, and the message.
        author: Who did the work.
        person: Who records it, and when.
        old: What the branch must point at; ``None`` when it must not exist.
        is_last: Whether the command may end with it.
        holds_reply: Whether it keeps what an agent said, signed or not.

    Raises:
        SizeError: Something of it is larger than the format allows.
        StoreError: It was to be signed, and cannot be.
    """
    store, state, message = ledger.store, told.state, told.message
    path = f"{thread_folder(state.thread)}/{STATE_FILE}"
    data = encode_state(state)
    if len(data) > MAX_STATE_BYTES:
        raise SizeError(STATE_FILE, found=len(data), limit=MAX_STATE_BYTES)
    changes = {**changes, path: new_file(data)}
    base = parent.tree if parent else read_commit(store, GENESIS_OID).tree
    batch = Batch(store=store)
    tree = batch.edit_tree(base, changes)
    new = NewCommit(
        tree=tree,
        parent=parent.commit if parent else GENESIS_OID,
        author=author,
        person=person,
        message=message,
        is_last=is_last,
        holds_reply=holds_reply,
    )
    ref = None if ledger.is_draft else thread_ref(state.thread)
    subject = message.partition("\n")[0]
    commit = commit_batch(ledger, batch, new, ref=ref, old=old, reason=subject)
    return Tip(
        thread=state.thread,
        commit=commit,
        tree=tree,
        committed_at=person.time,
        state=state,
    )


class NewCommit(Struct, frozen=True, kw_only=True):
    """What a commit with one parent is made of."""

    tree: Oid
    parent: Oid
    author: Person
    person: Person
    """Who records it, and when."""
    message: str
    is_last: bool = True
    """Whether the command may end with it."""
    holds_reply: bool = False
    """Whether it keeps what an agent said, signed or not."""


def commit_batch(
    ledger: Ledger,
    batch: Batch,
    new: NewCommit,
    *,
    ref: str | None = None,
    old: Oid | None = None,
    reason: str = "",
    beside: Moves = NO_MOVES,
) -> Oid:
    """Write a batch and a commit of a tree in it, then point a ref at the commit.

    It is signed when the user wants it so. One that holds a reply is written
    unsigned, with a warning, when it cannot be signed.

    Args:
        ledger: Where to.
        batch: What the commit needs.
        new: The commit.
        ref: What is to name it; ``None`` when nothing is yet.
        old: What the ref must point at; ``None`` when it must not exist.
        reason: Why the ref moves, for its log.
        beside: Other refs that move with it: all, or none.

    Raises:
        RefConflictError: The ref, or one beside it, does not point at ``old``.
        StoreError: It cannot be signed, or the store not be written.
    """
    data = format_commit(
        tree=new.tree,
        parents=(new.parent,),
        author=new.author,
        committer=new.person,
        message=new.message,
    )
    if ledger.signer.wants(is_last=new.is_last):
        tree = batch.find(new.tree)
        data = _sign(ledger, data, tree, holds_reply=new.holds_reply)
    commit = batch.add("commit", data)
    if ref is None:
        batch.write_loose()
        return commit
    with batch.write():
        # Before the ref: killed in between, it would pass for somebody else's.
        ledger.local.record_commit(commit)
        move_refs(ledger.store, {ref: (old, commit), **beside}, reason=reason)
    return commit


def _sign(
    ledger: Ledger, data: bytes, tree: bytes | None, *, holds_reply: bool
) -> bytes:
    try:
        return ledger.signer.sign(ledger.store, data, tree=tree)
    except StoreError as exc:
        if not holds_reply:
            raise
        ledger.signer.warn(f"kept, but not signed: {exc.message}")
        return data


def signer_for(ledger: Ledger, person: Person) -> Signer:
    """Return who signs an event of somebody's: nobody signs for others."""
    own = (ledger.identity.name, ledger.identity.email)
    return ledger.signer if (person.name, person.email) == own else NO_SIGNER


def require_signing(ledger: Ledger) -> None:
    """Find out, once a command, whether commits can be signed if they are to be.

    Before an agent is asked: its reply would else be kept unsigned.

    Raises:
        StoreError: They cannot be; says why.
    """
    if ledger.signer.signing().mode == "never":
        return
    name, email = ledger.identity.name, ledger.identity.email
    person = Person(name=name, email=email, time=0)
    data = format_commit(
        tree=read_commit(ledger.store, GENESIS_OID).tree,
        parents=(GENESIS_OID,),
        author=person,
        committer=person,
        message="probe\n",
    )
    ledger.signer.prove(ledger.store, data)
