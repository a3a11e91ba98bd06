"""Which step wrote a line: the content of today, blamed on the chains of threads.

It compares content with the snapshots, not with commits, so a squash, a rebase or
a branch that is gone loses nothing. A line is a step's only when it stands between
the snapshots the step names; where two answers are left, both are told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from uwfgit.code.blame.plain import OPTIONS
from uwfgit.code.blame.porcelain import ZERO, Blame, Commit, parse_blame
from uwfgit.code.blame.steps import KnownStep, StepIndex
from uwfgit.code.chain import Snapshot, is_ancestor, write_snapshot
from uwfgit.code.meanwhile import meanwhile
from uwfgit.code.worktree import WorkTree
from uwfgit.errors import InvalidError, StoreError
from uwfgit.ids import Oid, ThreadId

_SLACK: Final = 2
"""Seconds by which git's times and ours may differ."""
_AROUND: Final = 20
"""Lines before and after one asked about that git looks at with it."""
_MOST_SPANS: Final = 50
MOST_CHAINS: Final = 100
"""Chains that are asked about one file; each costs git two blames."""


class Origin(Struct, frozen=True, kw_only=True):
    """Where a line comes from; more than one answer when it cannot be known.

    ``steps`` are the steps that may have written it, ``commit`` is what git says,
    ``shared`` threads that worked in the same folder at the same time. ``not_asked``
    counts the threads that might know and were not asked.
    """

    number: int
    text: bytes
    steps: tuple[KnownStep, ...] = ()
    commit: Commit | None = None
    shared: tuple[ThreadId, ...] = ()
    not_asked: int = 0

    @property
    def is_sure(self) -> bool:
        """Whether there is one answer alone."""
        answers = len(self.steps) + (self.commit is not None) + len(self.shared)
        return answers == 1 and not self.not_asked


class Chain(Struct, frozen=True, kw_only=True):
    """A thread's snapshots, and the steps they may belong to; read when asked for.

    It had begun by ``began``, in seconds. ``snapshots`` gives them newest first,
    ``index`` ``None`` when the thread is not here.
    """

    tip: Snapshot
    began: int
    snapshots: Callable[[], tuple[Snapshot, ...]]
    index: Callable[[], StepIndex | None]


class Question(Struct, frozen=True, kw_only=True):
    """A file of a work tree, as it is or as it is staged, and the lines asked for."""

    tree: WorkTree
    path: str
    content: Oid
    """The tree that holds the file as it is asked about."""
    lines: range | None = None
    scratch: Path
    """Where objects of today go."""


class _Claims(Struct, kw_only=True):
    """What the chains say of each line."""

    steps: dict[int, list[KnownStep]] = field(default_factory=dict)
    commits: dict[int, Commit] = field(default_factory=dict)
    older: dict[int, Commit] = field(default_factory=dict)
    """Lines that stood elsewhere before the chain began, with their commits."""
    asked: dict[int, set[ThreadId]] = field(default_factory=dict)
    """Threads whose chains had their say."""
    not_asked: dict[int, int] = field(default_factory=dict)
    """How many might have had one."""

    def settled(self) -> set[int]:
        """Return the lines that a step claims beside which no other thread was."""
        return {
            number
            for number, steps in self.steps.items()
            if steps and not any(step.shared for step in steps)
        }


def find_origins(
    question: Question,
    chains: Iterable[Chain],
    plain: Blame,
    *,
    most: int | None,
) -> tuple[Origin, ...]:
    """Say of each line where it comes from.

    Args:
        question: The file.
        chains: Those that could know, newest first; no more are read than are
            needed.
        plain: What git says of the file.
        most: How many are asked; a line that more could know says so.

    Raises:
        StoreError: git cannot say.
    """
    claims = _Claims()
    since, open_lines = _since(plain), set(plain.lines)
    asked = 0
    for chain in chains:
        # What was committed before it began is none of its work.
        wanted = {n for n in open_lines if since[n] >= chain.began - _SLACK}
        if not wanted:
            continue
        if asked == most:
            for number in wanted:
                claims.not_asked[number] = claims.not_asked.get(number, 0) + 1
            continue
        asked += 1
        snapshots = chain.snapshots()
        began = min((each.time for each in snapshots), default=0)
        wanted = {n for n in wanted if since[n] >= began - _SLACK}
        is_still = len({each.tree for each in snapshots}) <= 1
        if not wanted or is_still:
            continue
        found = _ask(question, chain, snapshots, wanted)
        if found is not None:
            _take(found, chain.tip.label.thread, claims, plain, wanted)
            open_lines -= claims.settled()
    return tuple(_settle(number, plain, claims) for number in sorted(plain.lines))


def _since(plain: Blame) -> dict[int, float]:
    """Say since when a commit has each line, in seconds; an open one never."""
    times: dict[Oid, float] = {}
    for commit in plain.lines.values():
        if commit.oid not in times:
            is_open = commit.is_uncommitted
            times[commit.oid] = math.inf if is_open else commit.committed_at
    return {number: times[commit.oid] for number, commit in plain.lines.items()}


def _take(
    found: _Answer,
    thread: ThreadId,
    claims: _Claims,
    plain: Blame,
    wanted: Collection[int],
) -> None:
    """Add what a chain says to what others said."""
    for number in wanted:
        claims.asked.setdefault(number, set()).add(thread)
    for number, (steps, commit) in found.told.items():
        claims.steps.setdefault(number, []).extend(steps)
        if commit is not None:
            claims.commits.setdefault(number, commit)
    lost = {n for n in found.older if plain.lines[n].is_uncommitted}
    if lost - claims.older.keys():
        claims.older |= found.trace(lost)


def _settle(number: int, plain: Blame, claims: _Claims) -> Origin:
    """Choose among what chains and git say of a line."""
    text, inside = plain.texts[number], claims.commits.get(number)
    steps = _latest(tuple(dict.fromkeys(claims.steps.get(number, ()))))
    more = claims.not_asked.get(number, 0)
    if not steps:
        commit = claims.older.get(number, plain.lines[number])
        return Origin(number=number, text=text, commit=commit, not_asked=more)
    # One that was asked and does not claim the line did not write it.
    others = {step.thread for step in steps} | claims.asked.get(number, set())
    shared = tuple(
        dict.fromkeys(
            thread for step in steps for thread in step.shared if thread not in others
        )
    )
    return Origin(
        number=number,
        text=text,
        steps=steps,
        commit=inside,
        shared=shared,
        not_asked=more,
    )


def _latest(steps: tuple[KnownStep, ...]) -> tuple[KnownStep, ...]:
    """Keep the step that ended last, and those that ran at the same time."""
    if len(steps) < 2:  # noqa: PLR2004 - nothing to choose from
        return steps
    last = max(steps, key=lambda step: step.completed_at)
    return tuple(step for step in steps if step.completed_at >= last.started_at)


def _ask(
    question: Question,
    chain: Chain,
    held: Sequence[Snapshot],
    lines: Collection[int],
) -> _Answer | None:
    """Ask a chain of some lines: the steps that may have written them, with a doubt.

    ``None`` when a line is of its snapshots and its thread is not here.
    """
    tree = question.tree
    snapshots = {each.commit: each for each in held}
    today = write_snapshot(
        tree,
        question.content,
        chain.tip.label,
        previous=chain.tip,
        head=None,
        with_head=False,
        time=chain.tip.time,
        objects=question.scratch,
    )
    oldest = next((each for each in snapshots.values() if each.length == 1), None)
    edge = [f"^{oldest.head}"] if oldest is not None and oldest.head else []
    words = [*_spans(lines), today.commit, *edge]
    both = meanwhile(lambda: _blame(question, words))
    straight = _blame(question, ["--first-parent", *words])
    whole = both()
    known = [n for n in lines if n in whole.lines and n in straight.lines]
    after = {oid for oid, each in snapshots.items() if each.label.when == "after"}
    is_landed = any(straight.lines[n].oid in after for n in known)
    # Reading a thread is worth it only for lines that may be its own.
    index = chain.index() if is_landed else StepIndex()
    if index is None:
        return None
    judge = _Judge(tree=tree, snapshots=snapshots, index=index)
    told = {n: judge.judge(whole.lines[n], straight.lines[n]) for n in known}

    def trace(numbers: Collection[int]) -> dict[int, Commit]:
        # Beyond the edge: only now is it worth the walk through all of history.
        far = _blame(question, [*_spans(numbers), today.commit]).lines
        mine = {*snapshots, today.commit}
        return {n: far[n] for n in numbers if n in far and far[n].oid not in mine}

    return _Answer(
        told={number: each for number, each in told.items() if each[0]},
        older=frozenset(n for n in known if whole.lines[n].is_edge),
        trace=trace,
    )


class _Answer(Struct, frozen=True, kw_only=True):
    """What one chain says; ``trace`` finds the commits of what is older than it."""

    told: Mapping[int, tuple[list[KnownStep], Commit | None]]
    older: frozenset[int]
    trace: Callable[[Collection[int]], dict[int, Commit]]


def all_open(question: Question) -> Blame:
    """Return the lines of a file that no commit has: all are nobody's yet.

    Raises:
        InvalidError: It does not have the lines asked about.
    """
    name = f"{question.content}:{question.path}"
    text = question.tree.ask("cat-file", "blob", name, objects=question.scratch)
    count = text.count(b"\n") + (bool(text) and not text.endswith(b"\n"))
    lines = question.lines or range(1, count + 1)
    if lines.stop - 1 > count:
        raise InvalidError(f"'{question.path}' has {count} lines")
    return _all_open(text, lines)


def _all_open(text: bytes, lines: range) -> Blame:
    nobody = Commit(
        oid=Oid(ZERO * 40),
        author="",
        mail="",
        authored_at=0,
        committed_at=0,
        summary="",
    )
    found = Blame()
    for number, line in enumerate(text.split(b"\n"), 1):
        if number in lines:
            found.lines[number], found.texts[number] = nobody, line
    return found


def _blame(question: Question, words: Sequence[str]) -> Blame:
    done = question.tree.run(
        [*OPTIONS, "-M", "-C", *words, "--", question.path],
        objects=question.scratch,
    )
    if done.code:
        raise StoreError(f"git blame failed: {done.complaint}")
    return parse_blame(done.stdout)


def _spans(lines: Collection[int]) -> list[str]:
    """Write lines and those around them for git; nothing where they are all over.

    git sees that a block was moved only when it looks at enough of it.
    """
    spans: list[tuple[int, int]] = []
    for number in sorted(lines):
        first, last = max(1, number - _AROUND), number + _AROUND
        if spans and first <= spans[-1][1]:
            first = spans.pop()[0]
        spans.append((first, last))
    if len(spans) > _MOST_SPANS:
        return []
    return [f"-L{first},{last}" for first, last in spans]


class _Judge(Struct, kw_only=True):
    """Tells whose a line is by the two commits that blame names for it."""

    tree: WorkTree
    snapshots: Mapping[Oid, Snapshot]
    index: StepIndex
    _known: dict[tuple[Oid, str], bool] = field(default_factory=dict)

    def judge(
        self, whole: Commit, straight: Commit
    ) -> tuple[list[KnownStep], Commit | None]:
        """Return the steps that may have written a line, and a commit in doubt."""
        snapshot = self.snapshots.get(straight.oid)
        if snapshot is None or snapshot.label.when != "after":
            # A person's, older than the thread, or not in this chain.
            return [], None
        step = self.index.find(snapshot)
        # The snapshot before it must be the one that the step began with.
        previous = self.snapshots.get(snapshot.previous or Oid(""))
        if step is None or previous is None or previous.tree != step.before:
            return [], None
        if whole.oid == straight.oid:
            return [step], None
        if whole.oid in self.snapshots or whole.is_edge:
            return [], None
        return self._judge_commit(step, whole)

    def _judge_commit(
        self, step: KnownStep, commit: Commit
    ) -> tuple[list[KnownStep], Commit | None]:
        """Say who wrote what a commit holds too, the step or whoever committed it."""
        if not self._is_in(commit.oid, step.head_after):
            # It was committed after the step.
            return [step], None
        if self._is_in(commit.oid, step.head_before):
            # Committed before it, though not among the files it began with.
            return [step], commit
        start, end = step.started_at - _SLACK, step.completed_at + _SLACK
        if start <= commit.authored_at <= end:
            return [step], None
        if start <= commit.committed_at <= end:
            # Amended in the step, or brought in by it: that cannot be known.
            return [step], commit
        return [], None

    def _is_in(self, commit: Oid, head: str | None) -> bool:
        if head is None:
            return False
        key = (commit, head)
        if key not in self._known:
            self._known[key] = is_ancestor(self.tree, commit, head)
        return self._known[key]


def staged_lines(tree: WorkTree, path: str) -> frozenset[int]:
    """Return the lines of a staged file that HEAD's does not have, by number."""
    words = ("diff", "--cached", "--unified=0", "--no-ext-diff", "--no-textconv")
    return read_staged_lines(tree.ask(*words, "--no-color", "--", path))


def read_staged_lines(output: bytes) -> frozenset[int]:
    """Return the lines a ``diff --unified=0`` adds, by number in the new file."""
    found: set[int] = set()
    for line in output.split(b"\n"):
        if not line.startswith(b"@@ "):
            continue
        place = line.split(b" ")[2].lstrip(b"+")
        start, _, count = place.partition(b",")
        first = int(start)
        found.update(range(first, first + int(count or b"1")))
    return frozenset(found)
