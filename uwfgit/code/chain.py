"""The chain of a thread's snapshots in the code repository, and its commits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from uwfgit.code.worktree import NAMESPACE, Deadline, WorkTree
from uwfgit.errors import RefConflictError, StoreError
from uwfgit.ids import Oid, ThreadId, find_thread_id, is_oid, thread_time_ms

When = Literal["before", "after", "now"]
_AUTHOR: Final = "uwf <uwf@localhost>"
_SUBJECT = re.compile(
    r"([0-7][0-9A-HJKMNP-TV-Z]{25}):([0-9]{1,5})\.([0-9]{1,4}) (before|after|now)"
)
_COMMITTER = re.compile(rf"{re.escape(_AUTHOR)} ([0-9]{{1,11}}) \+0000")
_TRAILER = re.compile(r"^Uwf-(Head|Length): (\S+)$", re.MULTILINE)
_NOTHING: Final = "0" * 40
_LONGEST: Final = 1_000_000
_SHORT: Final = 100
_MS: Final = 1000


class Label(Struct, frozen=True, kw_only=True):
    """Which run of which step a snapshot belongs to, and which side of it.

    ``now`` is one that a command took for the way back.
    """

    thread: ThreadId
    number: int
    run: int
    when: When

    def __str__(self) -> str:
        return f"{self.thread}:{self.number}.{self.run} {self.when}"


class Snapshot(Struct, frozen=True, kw_only=True):
    """A commit of a chain; ``head`` is what HEAD was then, ``length`` the chain's."""

    commit: Oid
    tree: Oid
    label: Label
    parents: tuple[Oid, ...]
    head: Oid | None
    length: int
    time: int

    @property
    def previous(self) -> Oid | None:
        """The snapshot before it in the chain."""
        return self.parents[0] if self.length > 1 and self.parents else None


class Tips(Struct, frozen=True, kw_only=True):
    """Where a chain and HEAD stand, read in one go."""

    snapshot: Snapshot | None
    head: Oid | None


def chain_ref(thread: ThreadId) -> str:
    """Return the ref of a thread's own chain."""
    return f"{NAMESPACE}{thread}"


def read_tips(tree: WorkTree, ref: str, *, deadline: Deadline | None = None) -> Tips:
    """Read the newest snapshot of a chain, and HEAD.

    A ref that holds anything but a snapshot is read as no chain.
    """
    names = f"{ref}\nHEAD\n".encode()
    found = list(
        _parse_batch(tree.ask("cat-file", "--batch", input=names, deadline=deadline))
    )
    chain, head = found[0], found[1]
    return Tips(
        snapshot=None if chain is None else parse_snapshot(*chain),
        head=None if head is None else head[0],
    )


def read_snapshots(
    tree: WorkTree, commits: Iterable[Oid]
) -> tuple[Snapshot | None, ...]:
    """Read some commits; one that is missing, or no snapshot, is ``None``."""
    names = "".join(f"{oid}\n" for oid in commits).encode()
    if not names:
        return ()
    found = _parse_batch(tree.ask("cat-file", "--batch", input=names))
    return tuple(None if each is None else parse_snapshot(*each) for each in found)


def list_chain(tree: WorkTree, ref: str) -> tuple[Snapshot, ...]:
    """List the snapshots of a chain, newest first.

    Its first parents alone; a chain of a fork goes on in what it was forked from.
    """
    tip = read_tips(tree, ref).snapshot
    return () if tip is None else _walk(tree, tip)


def _walk(tree: WorkTree, tip: Snapshot) -> tuple[Snapshot, ...]:
    if tip.length <= _SHORT:
        # One process in place of two.
        names = [f"{tip.commit}~{back}" for back in range(tip.length)]
    else:
        count = f"--max-count={min(tip.length, _LONGEST)}"
        words = ["rev-list", count, "--first-parent", tip.commit]
        names = tree.ask(*words).decode().split()
    chain = []
    for snapshot in read_snapshots(tree, map(Oid, names)):
        if snapshot is None:
            break
        chain.append(snapshot)
    return tuple(chain)


def list_snapshots(tree: WorkTree, ref: str) -> tuple[Snapshot, ...]:
    """List all snapshots a chain holds, those before a rewind too, newest first."""
    tip = read_tips(tree, ref).snapshot
    return () if tip is None else list_held(tree, tip)


def list_held(tree: WorkTree, tip: Snapshot) -> tuple[Snapshot, ...]:
    """List all snapshots of the chain that ends with ``tip``, newest first."""
    chain = _walk(tree, tip)
    if not any(_has_further(each) for each in chain):
        return chain
    # The user's own history, as far as it is known, need not be walked.
    heads = sorted({each.head for each in chain if each.head is not None})
    words = ["rev-list", "--fixed-strings", "--author=uwf@localhost", tip.commit]
    words += ["--not", *heads, "--"] if heads else ["--"]
    done = tree.run(words)
    if done.code:
        return ()
    listed = [Oid(oid) for oid in done.text.split()]
    known: dict[Oid, Snapshot | None] = {each.commit: each for each in chain}
    further = [oid for oid in listed if oid not in known]
    known.update(zip(further, read_snapshots(tree, further), strict=True))
    return tuple(each for oid in listed if (each := known[oid]) is not None)


def _has_further(snapshot: Snapshot) -> bool:
    """Whether other snapshots hang on it: those before a rewind, or of a remote."""
    return not {*snapshot.parents} <= {snapshot.previous, snapshot.head}


def read_began(tree: WorkTree, tips: Sequence[Snapshot]) -> tuple[int, ...]:
    """Return by when the chains of these tips had begun, in seconds; never later.

    A thread that went on elsewhere began when its id was made.
    """
    names = [Oid(f"{tip.commit}~{tip.length - 1}") for tip in tips]
    firsts = read_snapshots(tree, names)
    return tuple(
        min(
            thread_time_ms(tip.label.thread) // _MS,
            *(each.time for each in (tip, first) if each is not None),
        )
        for tip, first in zip(tips, firsts, strict=True)
    )


def find_snapshot(tree: WorkTree, ref: str, wanted: Oid) -> Snapshot | None:
    """Find the newest snapshot of a chain with this tree."""
    chain = list_chain(tree, ref)
    found = next((each for each in chain if each.tree == wanted), None)
    if found is None:
        every = list_snapshots(tree, ref)
        found = next((each for each in every if each.tree == wanted), None)
    return found


def list_chain_refs(tree: WorkTree) -> dict[ThreadId, Oid]:
    """List the chains a repository keeps, by thread."""
    words = ["for-each-ref", "--format=%(objectname) %(refname)", NAMESPACE]
    lines = tree.ask(*words).decode("utf-8", "replace").splitlines()
    found = {}
    for oid, _, ref in (line.partition(" ") for line in lines):
        thread = find_thread_id(ref.rpartition("/")[2])
        if thread is not None and ref == f"{NAMESPACE}{thread}":
            found[thread] = Oid(oid)
    return found


def add_snapshot(
    tree: WorkTree,
    taken: Oid,
    label: Label,
    *,
    tips: Tips,
    origin: Oid | None = None,
    time: int,
    deadline: Deadline | None = None,
) -> Snapshot:
    """Put a snapshot on a thread's chain; none when nothing is new since the last.

    Args:
        taken: Its tree.
        tips: Where chain and HEAD stood when it was taken.
        origin: The snapshot a new chain goes on from, of the thread it was
            forked from.
        time: When it was taken.

    Returns:
        The newest snapshot of the chain afterwards.

    Raises:
        RefConflictError: Someone else moved the chain.
        StoreError: git cannot write it.
    """
    ref, last = chain_ref(label.thread), tips.snapshot
    if last is None and origin is not None:
        last = read_snapshots(tree, [origin])[0]
    if last is not None and (last.tree, last.head) == (taken, tips.head):
        if tips.snapshot is None:
            move_chain(tree, ref, new=last.commit, old=None, deadline=deadline)
        return last
    made = write_snapshot(
        tree,
        taken,
        label,
        previous=last,
        head=tips.head,
        time=time,
    )
    old = None if tips.snapshot is None else tips.snapshot.commit
    move_chain(tree, ref, new=made.commit, old=old, deadline=deadline)
    return made


def write_snapshot(
    tree: WorkTree,
    taken: Oid,
    label: Label,
    *,
    previous: Snapshot | None,
    head: Oid | None,
    time: int,
    with_head: bool = True,
    further: Iterable[Oid] = (),
    objects: Path | None = None,
) -> Snapshot:
    """Write the commit of a snapshot; no ref moves.

    Args:
        objects: Where it goes in place of the repository.
        with_head: Whether HEAD becomes a parent, when it is another than last
            time.
        further: More parents.

    Raises:
        StoreError: git cannot write it.
    """
    parents = [] if previous is None else [previous.commit]
    if with_head and head is not None and (previous is None or previous.head != head):
        parents.append(head)
    parents += further
    length = 1 if previous is None else previous.length + 1
    time = max(time, 0 if previous is None else previous.time)
    lines = [
        f"tree {taken}",
        *(f"parent {oid}" for oid in parents),
        f"author {_AUTHOR} {time} +0000",
        f"committer {_AUTHOR} {time} +0000",
        "",
        str(label),
        "",
        f"Uwf-Head: {head or '-'}",
        f"Uwf-Length: {length}",
        "",
    ]
    written = tree.ask(
        "hash-object",
        "-t",
        "commit",
        "-w",
        "--stdin",
        input="\n".join(lines).encode(),
        objects=objects,
    )
    return Snapshot(
        commit=Oid(written.decode().strip()),
        tree=taken,
        label=label,
        parents=tuple(parents),
        head=head,
        length=length,
        time=time,
    )


def move_chain(
    tree: WorkTree,
    ref: str,
    *,
    new: Oid | None,
    old: Oid | None,
    deadline: Deadline | None = None,
) -> None:
    """Point a chain at a snapshot, or away, if it still stands where it did.

    Raises:
        RefConflictError: It does not.
        StoreError: git cannot move it.
    """
    if new is None:
        words = ["update-ref", "-d", ref, old or _NOTHING]
    else:
        words = ["update-ref", ref, new, old or "0" * len(new)]
    done = tree.run(words, deadline=deadline)
    if done.code == 0:
        return
    actual = tree.resolve(ref)
    if actual != old:
        raise RefConflictError(ref, expected=old, actual=actual)
    raise StoreError(f"git update-ref failed: {done.complaint}")


def is_ancestor(tree: WorkTree, old: Oid, new: str) -> bool:
    """Whether a commit comes before another, or is it."""
    return tree.run(["merge-base", "--is-ancestor", old, new]).code == 0


def parse_snapshot(commit: Oid, data: bytes) -> Snapshot | None:
    """Read a commit as a snapshot; ``None`` when it is not shaped like one."""
    head, _, message = data.decode("utf-8", "replace").partition("\n\n")
    fields = [line.partition(" ") for line in head.split("\n")]
    subject = _SUBJECT.fullmatch(message.partition("\n")[0])
    trees = [value for key, _, value in fields if key == "tree"]
    people = [value for key, _, value in fields if key == "committer"]
    trailers = dict(_TRAILER.findall(message))
    made = _COMMITTER.fullmatch(people[0]) if people else None
    if subject is None or not trees or made is None:
        return None
    length, old_head = trailers.get("Length", ""), trailers.get("Head", "-")
    if not length.isdecimal() or not is_oid_like(old_head):
        return None
    thread, number, run, when = subject.groups()
    return Snapshot(
        commit=commit,
        tree=Oid(trees[0]),
        label=Label(
            thread=ThreadId(thread),
            number=int(number),
            run=int(run),
            when=when,  # type: ignore[arg-type] # the pattern's
        ),
        parents=tuple(Oid(value) for key, _, value in fields if key == "parent"),
        head=None if old_head == "-" else Oid(old_head),
        length=int(length),
        time=int(made[1]),
    )


def is_oid_like(text: str) -> bool:
    """Whether a text is an oid of any format, or the sign for none."""
    return text == "-" or is_oid(text) or bool(re.fullmatch(r"[0-9a-f]{64}", text))


def _parse_batch(output: bytes) -> Iterator[tuple[Oid, bytes] | None]:
    """Read what ``cat-file --batch`` wrote; what is no commit is ``None``."""
    place = 0
    while place < len(output):
        end = output.index(b"\n", place)
        words = output[place:end].split(b" ")
        place = end + 1
        if len(words) != 3 or not words[2].isdigit():  # noqa: PLR2004 - oid, type, size
            yield None
            continue
        size = int(words[2])
        data = output[place : place + size]
        place += size + 1
        is_commit = words[1] == b"commit"
        yield (Oid(words[0].decode()), data) if is_commit else None
