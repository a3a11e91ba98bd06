"""Each line is told as its step's, its commit's, or as what cannot be known."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.code.repo import OTHER, THREAD, Repo
from tests.code.steps import Thread
from uwfgit.code.blame.plain import blame_plainly
from uwfgit.code.blame.steps import KnownStep, StepIndex
from uwfgit.code.blame.why import (
    Chain,
    Origin,
    Question,
    all_open,
    find_origins,
)
from uwfgit.code.chain import chain_ref, list_chain, list_snapshots, read_began
from uwfgit.code.snapshots.keep import Keeper
from uwfgit.ids import Hash, Oid, ThreadId, thread_time_ms

LONG = "this line is long enough for git to see that it was moved, number {}\n"


class Story:
    """Threads that work in one repository, at times of their own."""

    def __init__(self, repo: Repo, keeper: Keeper) -> None:
        self.repo = repo
        self.now = 1_800_000_000
        self.keeper = Keeper(
            camera=keeper.camera, environment=keeper.environment, now=lambda: self.now
        )
        self.threads: dict[ThreadId, Thread] = {}
        self.known: dict[ThreadId, list[KnownStep]] = {}

    def step(self, script: str, thread: ThreadId = THREAD) -> None:
        """Run a step of ten seconds; commits made in it have its time."""
        work = self.threads.setdefault(
            thread, Thread(repo=self.repo, keeper=self.keeper, thread=thread)
        )
        self.now += 100
        head, start = self.head(), self.now
        work.before.append(work.keep(len(work.after) + 1, "before"))
        self.now += 5
        self.sh(script)
        self.now += 5
        work.after.append(work.keep(len(work.after) + 1, "after"))
        number = len(work.after)
        self.known.setdefault(thread, []).append(
            KnownStep(
                thread=thread,
                number=number,
                hash=Hash(f"{number:013}"),
                detail=Hash(f"{number:013}"),
                role="developer",
                agent="scripted",
                status="done",
                prompt="Do it.",
                note=None,
                before=work.before[-1],
                after=work.after[-1],
                head_before=head,
                head_after=self.head(),
                started_at=start,
                completed_at=self.now,
            )
        )

    def person(self, script: str) -> None:
        """Have a person do something, a while later."""
        self.now += 1000
        self.sh(script)

    def sh(self, script: str) -> None:
        date = f"{self.now} +0000"
        export = f"export GIT_AUTHOR_DATE='{date}' GIT_COMMITTER_DATE='{date}'; "
        self.repo.sh(export + script)

    def head(self) -> str | None:
        return self.repo.git("rev-parse", "-q", "--verify", "HEAD", check=False).strip()

    def origins(
        self, path: str, *, lines: range | None = None, most: int | None = None
    ) -> tuple[Origin, ...]:
        """Ask of a file of today."""
        tree = self.repo.tree
        chains = []
        for thread, steps in self.known.items():
            index: dict[Oid, tuple[KnownStep, ...]] = {}
            for step in steps:
                assert step.after is not None
                index[step.after] = (*index.get(step.after, ()), step)
            snapshots = list_snapshots(tree, chain_ref(thread))
            chains.append(
                Chain(
                    tip=snapshots[0],
                    began=snapshots[-1].time,
                    snapshots=partial(tuple, snapshots),
                    index=partial(StepIndex, steps=index),
                )
            )
        chains.sort(key=lambda chain: -chain.tip.time)
        with tempfile.TemporaryDirectory() as scratch:
            camera = self.keeper.camera
            with camera.taking(tree, None, objects=Path(scratch)) as taken:
                question = Question(
                    tree=tree,
                    path=path,
                    content=taken.tree,
                    lines=lines,
                    scratch=Path(scratch),
                )
                plain = blame_plainly(tree, path, lines) or all_open(question)
                return find_origins(question, chains, plain, most=most)

    def told(self, path: str) -> list[str]:
        """Say each line's origin in a word or two."""
        return [tell(each) for each in self.origins(path)]


def tell(origin: Origin) -> str:
    names = {THREAD: "", OTHER: "other "}
    words = [f"{names[step.thread]}{step.number}" for step in origin.steps]
    if origin.commit is not None:
        is_open = origin.commit.is_uncommitted
        words.append("open" if is_open else origin.commit.summary)
    return " or ".join(words)


@pytest.fixture
def story(repo: Repo, keeper: Keeper) -> Iterator[Story]:
    """A story that has not begun."""
    yield Story(repo, keeper)
    assert repo.git("fsck", "--strict", "--no-dangling") == ""


def _two_steps(story: Story) -> None:
    story.step("echo from-one >> a.txt")
    story.step("echo from-two >> a.txt")


OLD = ["first", "first", "first"]
AFTERWARDS: dict[str, tuple[str, list[str]]] = {
    "as they left it": ("true", [*OLD, "1", "2"]),
    "a commit": ("git commit -qam done", [*OLD, "1", "2"]),
    "a commit, amended": (
        "git commit -qam done && echo b >> src/b.txt && git commit -qa --amend -m more",
        [*OLD, "1", "2"],
    ),
    "a squash merge and a deleted branch": (
        (
            "git checkout -q -b side && git commit -qam one && echo c > c && "
            "git add c && git commit -qm two && git checkout -q main && "
            "git merge -q --squash side >/dev/null && git commit -qm squashed && "
            "git branch -qD side"
        ),
        [*OLD, "1", "2"],
    ),
    "a rebase": (
        (
            "git checkout -q -b side && git commit -qam one && git checkout -q main && "
            "echo z > z && git add z && git commit -qm z && git checkout -q side && "
            "git rebase -q main"
        ),
        [*OLD, "1", "2"],
    ),
    "an edit on top": ("sed -i s/from-two/by-hand/ a.txt", [*OLD, "1", "open"]),
    "an edit on top, committed": (
        (
            "git commit -qam done && sed -i s/from-two/by-hand/ a.txt && "
            "git commit -qam hand"
        ),
        [*OLD, "1", "hand"],
    ),
    "a line above": (
        "sed -i '1i by-hand' a.txt && git commit -qam hand",
        ["hand", *OLD, "1", "2"],
    ),
    "a line of theirs gone": ("sed -i /from-one/d a.txt", [*OLD, "2"]),
}


@pytest.mark.parametrize(("script", "told"), AFTERWARDS.values(), ids=AFTERWARDS)
def test_a_line_stays_its_steps(story: Story, script: str, told: list[str]) -> None:
    _two_steps(story)
    story.person(script)

    assert story.told("a.txt") == told


def test_a_rename_keeps_the_steps(story: Story) -> None:
    _two_steps(story)
    story.person("git mv a.txt c.txt && git commit -qam moved")

    assert story.told("c.txt")[3:] == ["1", "2"]


def test_a_rename_by_hand_keeps_the_steps(story: Story) -> None:
    _two_steps(story)
    story.person("mv a.txt c.txt && git add -N c.txt")

    assert story.told("c.txt") == [*OLD, "1", "2"]


def test_a_rename_in_a_step_keeps_the_commits_of_older_lines(story: Story) -> None:
    story.step("mv a.txt c.txt && echo one >> c.txt")

    assert story.told("c.txt") == [*OLD, "1"]


def _write(numbers: range) -> str:
    lines = "".join(LONG.format(number) for number in numbers)
    return f"cat >> a.txt <<'END'\n{lines}END\n"


def test_a_block_moved_inside_a_file_keeps_its_step(story: Story) -> None:
    story.step(_write(range(4)))
    story.step(_write(range(10, 14)))
    story.person(
        "{ tail -n 4 a.txt; head -n 7 a.txt; } > b && mv b a.txt && git commit -qam m"
    )

    assert story.told("a.txt") == ["2"] * 4 + OLD + ["1"] * 4


def test_a_block_moved_to_another_file_keeps_its_step(story: Story) -> None:
    story.step(_write(range(4)))
    story.person(
        "tail -n 4 a.txt >> src/b.txt && head -n 3 a.txt > n && mv n a.txt "
        "&& git commit -qam m"
    )

    assert story.told("src/b.txt") == ["first", "1", "1", "1", "1"]


def test_two_threads_in_turns_have_their_own_lines(story: Story) -> None:
    for number, thread in enumerate(
        itertools.islice(itertools.cycle([THREAD, OTHER]), 4)
    ):
        story.step(f"echo line-{number} >> a.txt", thread)
    story.person("git commit -qam all")

    assert story.told("a.txt") == [*OLD, "1", "other 1", "2", "other 2"]


def test_people_between_steps_have_their_own_lines(story: Story) -> None:
    story.step("echo one >> a.txt")
    story.person("echo by-hand >> a.txt && git commit -qam hand")
    story.step("echo two >> a.txt")
    story.person("echo open-still >> a.txt")
    story.step("true")

    assert story.told("a.txt") == [*OLD, "1", "hand", "2", "open"]


INSIDE: dict[str, tuple[str, list[str]]] = {
    "a commit": ("echo x >> a.txt && git commit -qam agent", [*OLD, "1"]),
    "two commits": (
        "echo x >> a.txt && git commit -qam a && echo y >> a.txt && git commit -qam b",
        [*OLD, "1", "1"],
    ),
    "a commit and more": (
        "echo x >> a.txt && git commit -qam a && echo y >> a.txt",
        [*OLD, "1", "1"],
    ),
    "a merge of others' work": ("git merge -q theirs", [*OLD, "theirs"]),
    "a fast-forward to others' work": (
        "git merge -q --ff-only theirs",
        [*OLD, "theirs"],
    ),
    "a cherry-pick of others' work": (
        "git cherry-pick theirs >/dev/null",
        [*OLD, "1 or theirs"],
    ),
    "a rebase of others' work away": (
        "git reset -q --hard theirs && echo x >> a.txt",
        [*OLD, "theirs", "1"],
    ),
}


@pytest.mark.parametrize(("script", "told"), INSIDE.values(), ids=INSIDE)
def test_commits_made_inside_a_step(story: Story, script: str, told: list[str]) -> None:
    story.person(
        "git checkout -q -b theirs && echo theirs >> a.txt && git commit -qam theirs "
        "&& git checkout -q main"
    )
    story.step(script)

    assert story.told("a.txt") == told


def test_lines_older_than_the_thread_are_what_git_says(story: Story) -> None:
    story.person("echo old >> a.txt && git commit -qam old")
    story.step("echo new >> src/b.txt")

    assert story.told("a.txt") == [*OLD, "old"]
    assert story.told("src/b.txt") == ["first", "1"]


def test_a_line_that_was_there_before_its_step_is_its_commits(story: Story) -> None:
    story.person("git checkout -q -b old && echo same >> a.txt && git commit -qam old")
    story.person("git checkout -q main")
    story.step("echo same >> a.txt")
    story.person("git checkout -q -f old")

    assert story.told("a.txt") == [*OLD, "old"]


def test_a_step_whose_snapshot_follows_another_is_not_named(story: Story) -> None:
    story.step("echo one >> a.txt")
    known = story.known[THREAD]
    known[0] = replace(known[0], before=None)

    assert story.told("a.txt") == [*OLD, "open"]


def test_a_forged_chain_names_no_step(story: Story) -> None:
    _two_steps(story)
    tip = story.repo.git("rev-parse", chain_ref(THREAD)).strip()
    body = story.repo.git("cat-file", "commit", tip)
    story.repo.write("a.txt", "forged\n")
    story.sh("git add -A && git commit -qm forged")
    forged = story.repo.git("rev-parse", "HEAD^{tree}").strip()
    old = body.partition("\n")[0]
    story.repo.write(".git/forged", body.replace(old, f"tree {forged}"))
    oid = story.repo.git("hash-object", "-t", "commit", "-w", ".git/forged").strip()
    story.repo.git("update-ref", chain_ref(THREAD), oid)

    assert story.told("a.txt") == ["forged"]


SHARED: Callable[[int], str] = "echo at-once-{} >> a.txt".format


def test_two_threads_at_once_in_one_folder_are_both_told(story: Story) -> None:
    story.step("true", OTHER)
    story.step("true")
    mine = story.threads[THREAD]
    mine.before.append(mine.keep(2, "before"))
    start = story.now
    story.sh(SHARED(0))
    story.step(SHARED(1), OTHER)
    mine.after.append(mine.keep(2, "after"))
    theirs = story.known[OTHER]
    theirs[-1] = replace(theirs[-1], shared=(THREAD,))
    last = story.known[THREAD][-1]
    story.known[THREAD].append(
        replace(
            last,
            number=2,
            before=mine.before[-1],
            after=mine.after[-1],
            started_at=start,
            completed_at=story.now,
            shared=(OTHER,),
        )
    )

    told = story.told("a.txt")
    # The first stood there before the other began.
    assert told[3] == "2"
    assert told[4] in {"2 or other 2", "other 2 or 2"}


def test_no_more_threads_are_asked_than_the_bound_and_it_is_said(story: Story) -> None:
    story.step("echo from-one >> a.txt")
    story.step("echo from-other >> a.txt", OTHER)

    cut, whole = story.origins("a.txt", most=1), story.origins("a.txt", most=2)

    assert [tell(each) for each in whole] == [*OLD, "1", "other 1"]
    assert all(each.is_sure for each in whole)
    # Only the newest was asked: of a line it does not know, another might.
    assert [tell(each) for each in cut] == [*OLD, "open", "other 1"]
    assert [each.not_asked for each in cut] == [0, 0, 0, 1, 0]
    assert [each.is_sure for each in cut] == [True, True, True, False, True]


def test_a_chain_is_not_read_for_lines_older_than_it(story: Story) -> None:
    story.step("echo x > other.txt")

    told = story.origins("a.txt", most=0)

    assert [(each.not_asked, each.is_sure) for each in told] == [(0, True)] * 3


def test_chains_began_with_their_first_snapshot(story: Story) -> None:
    for number in range(3):
        story.step(f"echo {number} >> a.txt")
    tree = story.repo.tree
    chain = list_chain(tree, chain_ref(THREAD))
    made = thread_time_ms(THREAD) // 1000

    began = read_began(tree, [chain[0], replace(chain[0], length=10_000)])

    assert began == (min(made, chain[-1].time), min(made, chain[0].time))
    late = ThreadId("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
    label = replace(chain[0].label, thread=late)
    assert read_began(tree, [replace(chain[0], label=label)]) == (chain[-1].time,)


def test_a_line_of_a_moved_block_is_told_alone_as_it_is_with_the_others(
    story: Story,
) -> None:
    block = "".join(f"short {number}\\n" for number in range(12))
    story.step(f"printf '{block}' > block.txt")
    story.step("cat block.txt >> a.txt && rm block.txt")
    story.person("git add -A && git commit -qm moved")

    whole = story.told("a.txt")
    alone = [
        tell(*story.origins("a.txt", lines=range(number, number + 1)))
        for number in range(1, 16)
    ]

    assert alone == whole == [*OLD, *["1"] * 12]
