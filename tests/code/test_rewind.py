"""Rewinding gives exactly the files of a step, and loses nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tests.code.repo import Repo, read_files
from tests.code.steps import FIVE, Thread
from uwfgit.code.chain import chain_ref, list_chain, list_snapshots
from uwfgit.code.changes import list_files
from uwfgit.code.snapshots.keep import Keeper
from uwfgit.code.snapshots.leave_out import Bounds
from uwfgit.errors import StateError


@pytest.fixture
def thread(repo: Repo, keeper: Keeper) -> Thread:
    """A thread without steps."""
    return Thread(repo=repo, keeper=keeper)


def test_each_of_five_steps_can_be_come_back_to(repo: Repo, thread: Thread) -> None:
    for script in FIVE:
        thread.step(script)
    repo.write(".git/info/exclude", "ignored*\n")
    repo.write("ignored-one", "mine\n")
    own, ignored = repo.own_state(), repo.files()["ignored-one"]

    for number in (5, 1, 4, 2, 3, 5):
        thread.back(thread.after[number - 1])

        assert repo.files() == {**thread.files[number - 1], "ignored-one": ignored}
    assert repo.own_state() == own
    assert repo.git("fsck", "--strict") == ""


def test_the_difference_of_each_step_is_what_it_changed(
    repo: Repo, thread: Thread
) -> None:
    for script in FIVE:
        thread.step(script)

    told = [
        {(each.what, each.path) for each in list_files(repo.tree, old, new)}
        for old, new in zip(thread.before, thread.after, strict=True)
    ]

    assert told == [
        {
            ("modified", b"a.txt"),
            ("added", b"new/with space"),
            ("added", b"bin"),
            ("added", b"a\"b'c"),
        },
        {
            ("deleted", b"src/b.txt"),
            ("renamed", b"renamed.txt"),
            ("added", b"n\xff\nm"),
        },
        {("mode", b"renamed.txt"), ("added", b"link"), ("modified", b"bin")},
        {
            ("deleted", b"new/with space"),
            ("added", b"new"),
            ("deleted", b"link"),
            ("added", b"link/f"),
        },
        {("modified", b"renamed.txt"), ("type", b"bin"), ("added", b"src/b.txt")},
    ]


def _merge(repo: Repo) -> None:
    repo.sh(
        "git checkout -q -b side && echo s > c.txt && git add . && git commit -qm s && "
        "git checkout -q main && echo m > c.txt && git add . && git commit -qm m && "
        "(git merge -q side >/dev/null || true)"
    )


def _filter(repo: Repo) -> None:
    repo.sh(
        "git config filter.lfs-like.clean 'tr a-z A-Z' && "
        "git config filter.lfs-like.smudge 'tr A-Z a-z' && "
        "git config filter.lfs-like.required true && "
        "echo 'a.txt filter=lfs-like' > .gitattributes"
    )


PLACES: dict[str, Callable[[Repo], None]] = {
    "a detached head": lambda repo: repo.sh("git checkout -q --detach"),
    "an unborn branch": lambda repo: repo.sh("git checkout -q --orphan fresh"),
    "during a merge": _merge,
    "a filter both ways": _filter,
    "line ends of other systems, one way": lambda repo: repo.sh(
        "git config core.autocrlf input"
    ),
    "line ends of other systems": lambda repo: repo.sh(
        "git config core.autocrlf true && rm a.txt src/b.txt && git checkout -q ."
    ),
    "sparse": lambda repo: repo.sh("git sparse-checkout set --no-cone a.txt new"),
    "a read-only file": lambda repo: repo.sh("chmod 444 a.txt"),
    "staged things": lambda repo: repo.sh("echo s >> a.txt && git add a.txt"),
}


def _config(repo: Repo) -> str:
    return (repo.root / ".git" / "config").read_text()


@pytest.mark.parametrize("prepare", PLACES.values(), ids=PLACES)
def test_a_step_can_be_come_back_to_in_any_state_of_the_repository(
    repo: Repo, thread: Thread, prepare: Callable[[Repo], None]
) -> None:
    prepare(repo)
    # An editor writes the line ends that the repository wants.
    ends = "\\r\\n" if "autocrlf = true" in _config(repo) else "\\n"
    thread.step(
        f"printf 'one-more{ends}' >> a.txt && mkdir -p new && printf 'x{ends}' > new/f "
        "&& chmod 644 a.txt"
    )
    thread.step(f"rm a.txt && printf 'y{ends}' > new/f && printf 'z{ends}' > new/g")
    own = repo.own_state()

    thread.back(thread.after[0])
    assert repo.files() == thread.files[0]
    thread.back(thread.after[1])
    assert repo.files() == thread.files[1]

    assert repo.own_state() == own


def test_a_linked_worktree_is_rewound_alone(repo: Repo, keeper: Keeper) -> None:
    repo.git("worktree", "add", "-q", "../linked")
    linked = Repo(root=repo.root.parent / "linked")
    thread = Thread(repo=linked, keeper=keeper)
    thread.step("echo x >> a.txt")
    thread.step("rm a.txt")
    main = repo.files()

    thread.back(thread.after[0])

    assert linked.files() == thread.files[0]
    assert repo.files() == main


def test_a_line_end_that_git_would_not_check_out_so_comes_back_as_it_would(
    repo: Repo, thread: Thread
) -> None:
    repo.git("config", "core.autocrlf", "true")
    thread.step("printf 'unix\\n' > n")
    thread.step("printf 'dos\\r\\n' > n")

    thread.back(thread.after[0])

    # A snapshot holds what a commit would, so the text alone.
    assert repo.files()["n"][1] == b"unix\r\n"


@pytest.mark.slow
def test_a_thousand_steps_add_one_ref(repo: Repo, thread: Thread) -> None:
    before = set(repo.git("for-each-ref", "--format=%(refname)").split())
    own = repo.own_state()

    for number in range(1, 1001):
        thread.keep(number, "before")
        repo.write("a.txt", f"{number}\n")
        thread.after.append(thread.keep(number, "after"))

    refs = set(repo.git("for-each-ref", "--format=%(refname)").split())
    assert refs - before == {chain_ref(thread.thread)}
    assert repo.own_state() == own
    chain = list_chain(repo.tree, chain_ref(thread.thread))
    # A step begins with what the one before it left: that costs no commit.
    assert [each.length for each in chain] == list(range(1001, 0, -1))
    assert [each.tree for each in chain[-2::-1]] == thread.after
    thread.back(thread.after[499])
    assert repo.files()["a.txt"][1] == b"500\n"


def test_a_submodule_stays_where_it_is_and_is_named(repo: Repo, thread: Thread) -> None:
    Repo.make(repo.root.parent / "other")
    repo.sh("git -c protocol.file.allow=always submodule --quiet add ../other sub")
    repo.commit("sub")
    thread.step("echo x >> a.txt")
    thread.step("cd sub && echo y > in && git add in && git commit -qm in")
    inside = read_files(repo.root / "sub")

    done = thread.back(thread.after[0])

    assert done.submodules == (b"sub",)
    assert read_files(repo.root / "sub") == inside


def test_what_was_changed_by_hand_stops_it(repo: Repo, thread: Thread) -> None:
    thread.step("echo x >> a.txt")
    thread.step("echo y >> a.txt")
    repo.write("by-hand", "mine\n")
    files = repo.files()

    with pytest.raises(StateError, match=r"changed since.*by-hand"):
        thread.back(thread.after[0])
    assert repo.files() == files

    done = thread.back(thread.after[0], discard=True)
    assert "by-hand" not in repo.files()

    thread.back(done.before.tree)
    assert repo.files() == files


IN_THE_WAY: dict[str, tuple[str, str]] = {
    "an ignored file": ("rm n && echo n > .git/info/exclude && echo mine > n", "n"),
    "an ignored folder": (
        "rm n && echo n > .git/info/exclude && mkdir n && echo mine > n/f",
        "n",
    ),
    "an ignored file above": (
        "rm -r d && echo d > .git/info/exclude && echo mine > d",
        "d/f",
    ),
    "an ignored link above": (
        (
            "rm -r d && mkdir ../elsewhere && echo d > .git/info/exclude"
            " && ln -s ../elsewhere d"
        ),
        "d/f",
    ),
    "another repository": (
        "rm -r d && git init -q d && echo mine > d/f",
        "d/f",
    ),
    "a secret": ("rm n && echo SECRET > n", "n"),
    "a large file": ("head -c 3000 /dev/zero > n", "n"),
    "taken as unchanged": (
        (
            "echo 2 > n && git add n && git update-index --assume-unchanged n && "
            "echo mine >> n && rm -r d"
        ),
        "n",
    ),
}


@pytest.mark.parametrize(("script", "path"), IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_what_no_snapshot_holds_is_never_overwritten(
    repo: Repo, thread: Thread, script: str, path: str
) -> None:
    thread.step("echo x > n && mkdir d && echo x > d/f")
    bounds = Bounds(file_bytes=2000)
    thread.keeper = replace(
        thread.keeper, camera=replace(thread.keeper.camera, bounds=bounds)
    )
    repo.sh(script)
    files = repo.files()

    with pytest.raises(StateError, match=f"in no snapshot: {path}"):
        thread.back(thread.after[0], discard=True)

    assert repo.files() == files


def test_the_chain_goes_on_from_the_step_rewound_to(repo: Repo, thread: Thread) -> None:
    for line in ("one", "two", "three"):
        thread.step(f"echo {line} >> a.txt")
    thread.back(thread.after[0])
    thread.step("echo four >> a.txt")

    chain = list_chain(repo.tree, chain_ref(thread.thread))

    assert [str(each.label.number) + each.label.when for each in chain] == [
        "4after",
        "3now",
        "1after",
        "1before",
    ]
    trees = {each.tree for each in list_snapshots(repo.tree, chain_ref(thread.thread))}
    assert set(thread.after) <= trees
