"""What travels between stores, what became of each ref, and what remotes had.

Shared by push, pull and bundles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias, TypeVar

from msgspec import Struct, field

from uwfgit.ids import Oid, ThreadId
from uwfgit.model.thread.family import family_of
from uwfgit.shell import quote_word, quote_words
from uwfgit.store.git.refbatch import move_many
from uwfgit.store.handle import Store
from uwfgit.store.layout import (
    HEAD_REF,
    THREAD_PREFIX,
    TRASH_PREFIX,
    WORKFLOW_PREFIX,
    find_ref_thread,
    thread_ref,
)
from uwfgit.store.locks.holding import Moves
from uwfgit.store.refs import (
    find_ref,
    has_object,
    is_ancestor,
    read_last_reason,
    scan_refs,
    tracking_ref,
)
from uwfgit.sync.exchange.remotes import APPROVED_PREFIX, Remote, is_exchanged
from uwfgit.sync.verify.registry import diverged_versions_hint
from uwfgit.sync.verify.report import ThreadReport

T = TypeVar("T")

_WENT_BACK: Final = "uwf exchange: the remote went back"
CHUNK: Final = 1000
"""Refs in one fetch, and in one atomic push."""

Result = Literal[
    "new",
    "updated",
    "up-to-date",
    "ahead",
    "behind",
    "went-back",
    "diverged",
    "available",
    "not-shared",
    "private",
    "removed",
    "busy",
    "refused",
    "rejected",
]
FAILED: Final[frozenset[Result]] = frozenset({"refused", "rejected"})

Verify: TypeAlias = Callable[[Store, Sequence[ThreadId]], Iterable[ThreadReport]]
"""Verifies the branches of some threads in a store that may be a scratch one."""


class RefOutcome(Struct, frozen=True, kw_only=True):
    """What became of one ref; ``ref`` is its name here.

    ``old`` is what was there before, at the end that was to change. A refused
    thread has the first of its problems as ``message``.
    """

    ref: str
    result: Result
    old: Oid | None = None
    new: Oid | None = None
    message: str | None = None

    @property
    def thread(self) -> ThreadId | None:
        """The thread, when the ref is a thread's branch."""
        return find_ref_thread(self.ref)

    @property
    def workflow(self) -> str | None:
        """The workflow, when the ref is a registered workflow's branch."""
        name = self.ref.removeprefix(WORKFLOW_PREFIX)
        return name if name != self.ref else None


def is_amiss(outcome: RefOutcome) -> bool:
    """Whether a person has to see to it: it was refused, or both sides went on.

    Of an approval each side keeps its own.
    """
    is_apart = outcome.result == "diverged"
    is_approval = outcome.ref.startswith(APPROVED_PREFIX)
    return outcome.result in FAILED or (is_apart and not is_approval)


class Outcomes(Struct, kw_only=True):
    """What became of some refs so far."""

    all: list[RefOutcome] = field(default_factory=list)

    def tell(
        self, ref: str, result: Result, message: str | None = None, **oids: Oid | None
    ) -> None:
        """Note what became of one."""
        self.all.append(RefOutcome(ref=ref, result=result, message=message, **oids))


def compare(
    store: Store, mine: Oid, theirs: Oid | None
) -> Literal["new", "up-to-date", "ahead", "behind", "diverged"]:
    """Say how our tip of a ref stands to theirs.

    One of theirs that we do not have lies ahead of ours, or diverged.
    """
    if theirs is None:
        return "new"
    if theirs == mine:
        return "up-to-date"
    if not has_object(store, theirs):
        return "behind"
    if is_ancestor(store, theirs, mine):
        return "ahead"
    return "behind" if is_ancestor(store, mine, theirs) else "diverged"


def list_own(store: Store) -> dict[str, Oid]:
    """Return the refs here that may travel, and ``main``, on which they start."""
    prefixes = (THREAD_PREFIX, WORKFLOW_PREFIX, APPROVED_PREFIX)
    found = {
        ref: oid
        for prefix in prefixes
        for ref, oid in sorted(scan_refs(store, prefix).items())
        if is_exchanged(ref)
    }
    main = find_ref(store, HEAD_REF)
    return found | ({HEAD_REF: main} if main else {})


def with_children(
    store: Store, wanted: Mapping[str, Oid], theirs: Mapping[str, Oid]
) -> dict[str, Oid]:
    """Put the children of threads before them, as far as another store lacks them.

    They go along, or nobody there can prove what they did.

    Args:
        store: Whose.
        wanted: The branches to send.
        theirs: What the other has, by our names.
    """
    found: dict[str, Oid] = {}
    for ref, oid in wanted.items():
        thread = find_ref_thread(ref)
        for child in family_of(store, thread) if thread is not None else ():
            name = thread_ref(child)
            tip = find_ref(store, name)
            if tip and compare(store, tip, theirs.get(name)) in {"ahead", "new"}:
                found[name] = tip
        found[ref] = oid
    return found


def has_gone_back(store: Store, remote: Remote, ref: str, theirs: Oid) -> bool:
    """Whether a remote had more of a branch than it has, and nobody sent it since."""
    name = remote.tracking(ref)
    known = find_ref(store, name)
    if known is None or known == theirs:
        return known is not None and read_last_reason(store, name) == _WENT_BACK
    return has_object(store, theirs) and is_ancestor(store, theirs, known)


def back_hint(remote: Remote, ref: str) -> str:
    """Say what to do about a branch of which a remote had more."""
    name = find_ref_thread(ref) or ref.removeprefix("refs/heads/")
    return (
        "someone took commits away there that it had; yours are kept, to send them "
        f"again: uwf push {quote_words((remote.name, name))}"
    )


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Cut a sequence into pieces."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def halves(items: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """Cut a sequence in two, to find the one that spoils it."""
    middle = len(items) // 2
    return items[:middle], items[middle:]


def note_tracking(
    store: Store,
    remote: Remote,
    theirs: Mapping[str, Oid],
    *,
    mine: Mapping[str, Oid],
    gone: Iterable[str],
    environment: Mapping[str, str],
) -> None:
    """Keep what a remote has, as far as our own branches hold it.

    Nothing that a remote alone has is noted so: that has to be verified first.
    And nothing is forgotten that a remote alone had.

    Args:
        store: Ours.
        remote: The remote.
        theirs: Our names of its refs → what it has.
        mine: Our branches.
        gone: Those that the remote does not have.
        environment: What git's starts from.
    """
    before = scan_refs(store, f"refs/remotes/{remote.name}/")
    moves: dict[str, tuple[Oid | None, Oid | None]] = {}
    back: dict[str, tuple[Oid | None, Oid | None]] = {}
    for ref, oid in theirs.items():
        name = remote.tracking(ref)
        held, known = mine.get(ref), before.get(name)
        if known == oid or held is None or not is_ancestor(store, oid, held):
            continue
        if known is None or is_ancestor(store, known, oid):
            moves[name] = (known, oid)
        elif is_ancestor(store, oid, known):
            back[name] = (known, oid)
    for ref in gone:
        had = before.get(remote.tracking(ref))
        if had is not None and is_ancestor(store, had, mine[ref]):
            moves[remote.tracking(ref)] = (had, None)
    move_all(store, moves, environment=environment)
    move_all(store, back, environment=environment, reason=_WENT_BACK)


def move_all(
    store: Store,
    moves: Moves,
    *,
    environment: Mapping[str, str],
    reason: str = "uwf exchange",
) -> None:
    """Move refs that only tell what others had; a lost race does no harm."""
    if moves and not move_many(store, moves, reason=reason, environment=environment):
        for ref, move in moves.items():
            move_many(store, {ref: move}, reason=reason, environment=environment)


class ExchangeSource(Struct, frozen=True, kw_only=True):
    """Where refs come from.

    Args:
        url: A remote's address, or a bundle's file.
        name: What it is called in messages, and below ``refs/remotes``.
        names: Our name of each ref to bring → its name there.
        is_remote: Whether what it had is kept; of a bundle only what diverged.
    """

    url: str
    name: str
    names: Mapping[str, str]
    is_remote: bool

    def tracking(self, ref: str) -> str:
        """Name the ref that keeps what it had of a branch of ours."""
        return tracking_ref(self.name, ref)


def is_removed(store: Store, ref: str, oid: Oid, *, where: Store) -> bool:
    """Whether a branch was removed here since others went on with it.

    Args:
        store: Ours.
        ref: Our name of the branch.
        oid: Their tip.
        where: A store that has their commits.
    """
    trash = trash_ref(ref)
    if trash is None or find_ref(store, ref) is not None:
        return False
    removed = find_ref(store, trash)
    return removed is not None and is_ancestor(where, oid, removed)


def trash_ref(ref: str) -> str | None:
    """Name the ref under which a removed branch is kept."""
    thread = find_ref_thread(ref)
    if thread is not None:
        return TRASH_PREFIX + thread
    name = ref.removeprefix(WORKFLOW_PREFIX)
    return f"{TRASH_PREFIX}workflow-{name}" if name != ref else None


def removed_message(ref: str) -> str:
    """Say why a removed branch stays away, and how to have it again."""
    thread = find_ref_thread(ref)
    name = ref.removeprefix(WORKFLOW_PREFIX)
    way = (
        f"thread restore {thread}" if thread else f"workflow restore {quote_word(name)}"
    )
    return f"removed here, and nothing new since; to have it again: uwf {way}"


def approval_hint(ref: str) -> str:
    """Say how to go on where two people approved the same step."""
    name = ref.removeprefix("refs/tags/")
    drop = f"uwf git tag -d {quote_word(name)}"
    return f"approved here and there; to have theirs: {drop}; uwf pull"


def diverged_hint(store: Store, ref: str) -> str:
    """Say how to go on with a branch that two people continued."""
    thread = find_ref_thread(ref)
    if thread is not None:
        return f"see both sides and choose: uwf thread resolve {thread}"
    return diverged_versions_hint(store, ref.removeprefix(WORKFLOW_PREFIX))
