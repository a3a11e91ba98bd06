from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.builders import git
from tests.proof import verify_threads
from tests.sync.forge import forge
from tests.sync.people import (
    BAD,
    DONE,
    WIRE,
    Person,
    let_pass,
    make_bare,
    refs_of,
)
from tests.sync.tour import make_tour
from uwfgit.engine.run.thread import fork_thread
from uwfgit.errors import InvalidError, NotFoundError, StateError
from uwfgit.ids import Oid, ThreadId
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.layout import thread_ref
from uwfgit.store.refs import find_ref
from uwfgit.store.safety.trust import install_hook
from uwfgit.sync.exchange.remotes import RemoteKind, get_remote
from uwfgit.sync.exchange.signatures import check_approvals, find_approvals
from uwfgit.sync.review.forges import Ci
from uwfgit.sync.review.jobs import set_up
from uwfgit.sync.review.review import (
    Approved,
    Review,
    approve,
    close_review,
    open_review,
    update_review,
)


def review(person: Person, thread: ThreadId, **options: Any) -> Review:  # noqa: ANN401 - as open takes them
    return open_review(
        person.ledger,
        get_remote(person.store, options.pop("to", "origin")),
        thread,
        **{"wire": WIRE, "verify": verify_threads, "scan": let_pass, **options},
    )


def test_a_review_is_the_thread_s_own_commits_beside_genesis(
    ada: Person, bare: Path
) -> None:
    thread = ada.begin(DONE, BAD)

    opened = review(ada, thread)

    assert refs_of(bare) == {
        f"refs/heads/uwf/{thread}": ada.tip(thread),
        "refs/heads/main": GENESIS_OID,
    }
    names = git(bare, "diff", "--name-only", f"{opened.base}...{opened.head}")
    assert names.splitlines()[0] == f"threads/{thread}/TASK.md"


def test_beside_code_only_branches_of_the_review_appear(
    ada: Person, bare: Path
) -> None:
    ada.join(bare, name="code", kind="shared")
    thread = ada.begin(DONE)

    opened = review(ada, thread, to="code")

    assert opened.base == "uwf/main"
    assert set(refs_of(bare)) == {"refs/heads/uwf/main", f"refs/heads/uwf/{thread}"}


def test_a_part_of_a_thread_is_compared_with_what_was_before(
    ada: Person, bare: Path
) -> None:
    thread = ada.begin(DONE, BAD, DONE)

    opened = review(ada, thread, first=2, last=2)

    changed = git(bare, "diff", "--name-only", f"{opened.base}...{opened.head}")
    assert opened.base == f"uwf/{thread}-base"
    assert "00002-critic/output.md" in changed
    assert "00001" not in changed
    assert "00003" not in changed


def test_a_fork_is_compared_with_where_it_was_forked(ada: Person, bare: Path) -> None:
    thread = ada.begin(DONE, BAD)
    fork = fork_thread(ada.ledger, thread).thread
    ada.go(fork, DONE)

    opened = review(ada, fork)

    assert opened.base_oid == ada.tip(thread)
    assert refs_of(bare)[f"refs/heads/uwf/{fork}-base"] == ada.tip(thread)


def test_a_review_follows_its_thread_and_can_be_closed(ada: Person, bare: Path) -> None:
    thread, remote = ada.begin(DONE), get_remote(ada.store, "origin")
    options: dict[str, Any] = {
        "wire": WIRE,
        "verify": verify_threads,
        "scan": let_pass,
    }
    with pytest.raises(StateError):
        update_review(ada.ledger, remote, thread, **options)
    review(ada, thread)
    ada.go(thread, BAD)

    update_review(ada.ledger, remote, thread, **options)
    updated = refs_of(bare)[f"refs/heads/uwf/{thread}"]
    gone = close_review(ada.ledger, remote, thread, wire=WIRE)

    assert (updated, gone) == (ada.tip(thread), (f"uwf/{thread}",))
    assert set(refs_of(bare)) == {"refs/heads/main"}


def test_what_may_not_leave_is_not_reviewed(ada: Person, bare: Path) -> None:
    thread = ada.begin(DONE)

    with pytest.raises(InvalidError, match="a key"):
        review(ada, thread, scan=lambda _: {"x": "a key"})

    assert refs_of(bare) == {}


def approve_step(
    person: Person, thread: ThreadId, step: int | None, *, message: str | None = None
) -> Approved:
    return approve(
        person.ledger,
        thread,
        verify=verify_threads,
        step=step,
        message=message,
        sign=None,
        environment=os.environ,
    )


def approvals_of(person: Person) -> list[str]:
    return [ref for ref in refs_of(person.store) if ref.startswith("refs/tags/")]


def test_no_approval_is_made_that_others_would_refuse(ada: Person) -> None:
    thread = ada.begin(DONE)

    with pytest.raises(InvalidError, match="its message holds control characters"):
        approve_step(ada, thread, 1, message="fine\x1b[2J")

    assert approvals_of(ada) == []


def test_an_approval_is_a_tag_of_the_step_s_commit(ada: Person) -> None:
    thread = ada.begin(DONE, BAD)

    done = approve_step(ada, thread, 1, message="fine")

    tags = find_approvals(ada.store, thread)
    (found,) = check_approvals(ada.store, tags, [done.commit], environment=os.environ)
    assert (found.problem, found.signer, found.by) == (None, None, "ada@example.com")
    assert git(ada.store, "rev-parse", f"{done.tag}^{{}}").strip() == done.commit
    with pytest.raises(StateError):
        approve_step(ada, thread, 1)


@pytest.mark.parametrize("step", [-1, 0, 3])
def test_what_is_no_step_cannot_be_approved(ada: Person, step: int) -> None:
    thread = ada.begin(DONE, BAD)

    with pytest.raises(NotFoundError) as caught:
        approve_step(ada, thread, step)

    assert (caught.value.kind, caught.value.name) == ("step", f"{thread}:{step}")
    assert approvals_of(ada) == []


@pytest.mark.parametrize("step", [None, 0, 1])
def test_a_thread_without_a_step_cannot_be_approved(
    ada: Person, step: int | None
) -> None:
    thread = ada.begin()

    with pytest.raises((StateError, NotFoundError)):
        approve_step(ada, thread, step)

    assert approvals_of(ada) == []


def test_what_does_not_verify_cannot_be_approved(ada: Person) -> None:
    thread = ada.begin(DONE, BAD)
    tip = Oid(str(ada.tip(thread)))
    forged = forge(ada.store, tip, {2: lambda d: d.trailer("Uwf-Next", "critic")})
    git(ada.store, "update-ref", thread_ref(thread), forged)

    with pytest.raises(InvalidError, match="does not verify"):
        approve_step(ada, thread, None)
    with pytest.raises(InvalidError, match="does not verify"):
        approve_step(ada, thread, 1)

    assert approvals_of(ada) == []


JOB = ".github/workflows/uwf-verify.yml"


def set_job(person: Person, ci: Ci = "github", *, to: str = "origin") -> Oid:
    remote = get_remote(person.store, to)
    return set_up(
        person.ledger, remote, ci, install="uwfgit", wire=WIRE, scan=let_pass
    )[1]


def test_a_job_is_added_to_the_base_once(ada: Person, bare: Path) -> None:
    first = set_job(ada)
    again = set_job(ada)

    assert refs_of(bare) == {"refs/heads/main": first}
    assert first == again
    assert "uwf verify --repo" in git(bare, "show", f"main:{JOB}")


def test_jobs_of_several_forges_stand_side_by_side(ada: Person, bare: Path) -> None:
    for ci in ("github", "gitea", "gitlab"):
        set_job(ada, ci)

    files = git(bare, "ls-tree", "-r", "--name-only", "main").splitlines()
    assert set(files) - {"README.md", ".gitattributes"} == {
        JOB,
        ".gitea/workflows/uwf-verify.yml",
        ".gitlab-ci.yml",
    }


def test_a_job_goes_on_top_of_what_the_base_has_become(
    ada: Person, bob: Person, bare: Path
) -> None:
    thread = ada.begin(DONE)
    review(ada, thread)
    git(bare, "update-ref", "refs/heads/main", f"uwf/{thread}")

    with pytest.raises(StateError, match="commits that are not here"):
        set_job(bob)
    git(bob.store, "fetch", "--quiet", "origin", "main")
    set_job(bob)
    git(ada.store, "fetch", "--quiet", "origin", "main")
    on_top = set_job(ada, "gitlab")

    assert git(bare, "merge-base", "main", f"uwf/{thread}").strip() == ada.tip(thread)
    assert refs_of(bare)["refs/heads/main"] == on_top


def test_two_remotes_whose_bases_differ_both_get_the_job(
    ada: Person, bare: Path, tmp_path: Path
) -> None:
    code = make_bare(tmp_path / "code.git")
    ada.join(code, name="code", kind="shared")
    thread = ada.begin(DONE)
    review(ada, thread, to="code")
    git(code, "update-ref", "refs/heads/uwf/main", f"uwf/{thread}")
    set_job(ada)

    beside_code = set_job(ada, "gitea", to="code")

    assert refs_of(code)["refs/heads/uwf/main"] == beside_code
    assert find_ref(ada.store, "refs/heads/main") == refs_of(bare)["refs/heads/main"]


def test_what_main_holds_is_looked_through_before_it_leaves(
    ada: Person, bare: Path
) -> None:
    thread = ada.begin(DONE)
    tip = str(ada.tip(thread))
    git(ada.store, "update-ref", "refs/heads/main", tip)
    remote = get_remote(ada.store, "origin")

    def scan(leaving: Sequence[tuple[str, Oid, Oid | None]]) -> dict[str, str]:
        return {ref: "a key" for ref, _, _ in leaving if ref == "refs/heads/main"}

    with pytest.raises(InvalidError, match="a key"):
        review(ada, thread, scan=scan)
    with pytest.raises(InvalidError, match="a key"):
        set_up(ada.ledger, remote, "github", install="uwfgit", wire=WIRE, scan=scan)

    assert refs_of(bare) == {}


@pytest.mark.slow
def test_the_base_of_a_part_has_the_job_and_is_one_whoever_opens_it(
    ada: Person, bob: Person, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_hook(bare, "pre-receive")
    program = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{program}:{os.environ['PATH']}")
    thread = ada.begin(DONE, BAD, DONE)
    set_job(ada)
    ada.push(thread)
    bob.pull()

    mine = review(ada, thread, first=2)
    theirs = review(bob, thread, first=2)

    assert mine == theirs
    cut = git(bare, "merge-base", mine.base, mine.head).strip()
    assert git(bare, "rev-parse", f"{mine.base}^").strip() == cut
    assert git(bare, "diff", "--name-only", cut, mine.base).split() == [JOB]
    changed = git(bare, "diff", "--name-only", f"{mine.base}...{mine.head}")
    assert all(name.startswith("threads/") for name in changed.split())


def test_a_job_set_up_later_comes_to_an_open_part(ada: Person, bare: Path) -> None:
    thread = ada.begin(DONE, BAD)
    before = review(ada, thread, first=2)
    set_job(ada)

    after = review(ada, thread, first=2)

    assert git(bare, "rev-parse", f"{after.base}^").strip() == before.base_oid


@pytest.mark.parametrize(
    ("opened", "again"),
    [
        pytest.param({"first": 2}, {}, id="a part, then the whole"),
        pytest.param({"first": 3}, {"first": 2}, id="a later part, then an earlier"),
        pytest.param({}, {"last": 1}, id="all, then less"),
    ],
)
def test_a_review_that_is_open_is_not_turned_into_another(
    ada: Person, bare: Path, opened: dict[str, int], again: dict[str, int]
) -> None:
    thread = ada.begin(DONE, BAD, DONE)
    review(ada, thread, **opened)
    before = refs_of(bare)

    with pytest.raises(StateError) as caught:
        review(ada, thread, **again)

    assert f"uwf review close {thread}" in str(caught.value.hint)
    assert refs_of(bare) == before
    close_review(ada.ledger, get_remote(ada.store, "origin"), thread, wire=WIRE)
    review(ada, thread, **again)


def test_a_review_that_somebody_took_further_is_not_pushed_over(
    ada: Person, bob: Person, bare: Path
) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    bob.go(thread, BAD)
    review(bob, thread)

    with pytest.raises(StateError) as caught:
        review(ada, thread)

    assert f"uwf pull {thread}" in str(caught.value.hint)
    assert refs_of(bare)[f"refs/heads/uwf/{thread}"] == bob.tip(thread)


@pytest.mark.parametrize(
    "part",
    [
        pytest.param({"first": 0}, id="from 0"),
        pytest.param({"first": 3}, id="from behind the last"),
        pytest.param({"last": 3}, id="to behind the last"),
        pytest.param({"last": 0}, id="to 0"),
        pytest.param({"last": -1}, id="to -1"),
        pytest.param({"first": 0, "last": 0}, id="from 0 to 0"),
    ],
)
def test_a_part_that_is_none_is_not_opened(
    ada: Person, bare: Path, part: dict[str, int]
) -> None:
    thread = ada.begin(DONE, BAD)

    with pytest.raises(NotFoundError):
        review(ada, thread, **part)

    assert refs_of(bare) == {}


@pytest.mark.parametrize("last", [1, 2])
def test_a_fork_is_not_reviewed_up_to_what_it_inherits(
    ada: Person, bare: Path, last: int
) -> None:
    thread = ada.begin(DONE, BAD)
    fork = fork_thread(ada.ledger, thread).thread
    ada.go(fork, DONE)

    with pytest.raises(StateError) as caught:
        review(ada, fork, last=last)

    assert refs_of(bare) == {}
    hint = str(caught.value.hint)
    assert f"uwf review open {fork} --from {last} --to {last}" in hint
    part = review(ada, fork, first=last, last=last)
    counted = git(bare, "rev-list", "--count", f"{part.base}..{part.head}")
    assert counted.strip() == "1"


@dataclass(frozen=True)
class Clone:
    """What plain git shows in a plain clone of the remote."""

    folder: Path

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout


@pytest.fixture
def reviewed(ada: Person, bare: Path, tmp_path: Path) -> tuple[Clone, ThreadId]:
    """A clone in which a thread with every event is reviewed."""
    thread = make_tour(ada.ledger, ada.folder)
    review(ada, thread)
    folder = tmp_path / "clone"
    git(bare, "clone", "--quiet", str(bare), str(folder))
    return Clone(folder), thread


def test_the_diff_of_a_review_reads_as_a_transcript(
    reviewed: tuple[Clone, ThreadId],
) -> None:
    clone, thread = reviewed
    both = ("main", f"origin/uwf/{thread}")

    counted = clone.git("diff", "--numstat", *both).splitlines()
    text = clone.git("diff", *both)

    lines = [line.split("\t") for line in counted]
    names = [path.removeprefix(f"threads/{thread}/") for _, _, path in lines]
    kinds = [kind for kind, _ in itertools.groupby(n.split("/")[0] for n in names)]
    assert kinds == ["TASK.md", "history", "nodes", "thread.json", "workflow.yaml"]
    assert [path.split("/")[2] for path in names if path.startswith("history")] == (
        ["00001-worker"] * 3
        + ["00002-critic"] * 2
        + ["00003-worker"] * 4
        + ["00004-critic"] * 4
    )
    folded = {path for added, _, path in lines if added == "-"}
    assert folded == {path for _, _, path in lines if "/nodes/" in path}
    assert '+reason: "Too short"' in text
    assert "assembledPrompt" not in text
    assert "+Decide" in text


def test_plain_git_tells_who_said_what_and_since_when(
    reviewed: tuple[Clone, ThreadId],
) -> None:
    clone, thread = reviewed
    head = f"origin/uwf/{thread}"
    folder = f"threads/{thread}/history/000/00004-critic"

    blamed = clone.git("blame", "--porcelain", head, "--", f"{folder}/output.md")
    found = clone.git("log", "-S", "Too short", "--format=%an: %s", head).splitlines()
    steps = clone.git("shortlog", "-sn", f"main..{head}").split()

    summaries = re.findall(r"^summary (.+)$", blamed, re.MULTILINE)
    assert summaries == ["critic: $SUSPEND", "critic: bad (poke)"]
    assert set(re.findall(r"^author (.+)$", blamed, re.MULTILINE)) == {"scripted"}
    assert found[-1] == "scripted: critic: bad"
    assert steps == ["6", "scripted", "2", "Ada"]


def test_two_forks_are_compared_step_by_step(
    ada: Person, bare: Path, reviewed: tuple[Clone, ThreadId]
) -> None:
    clone, thread = reviewed
    fork = fork_thread(ada.ledger, thread, at=3).thread
    ada.go(fork, BAD)
    review(ada, fork)
    clone.git("fetch", "--quiet", str(bare), f"uwf/{fork}")

    told = clone.git("range-diff", "main", f"origin/uwf/{thread}", "FETCH_HEAD")

    signs = [(line.split()[2], line.split(" ", 4)[-1]) for line in told.splitlines()]
    assert [sign for sign, _ in signs] == ["="] * 5 + ["<"] * 3 + [">"] * 2
    assert "critic: bad" in signs[-1][1]


def _put_code(bare: Path, branch: str) -> None:
    tree = git(bare, "hash-object", "-w", "-t", "tree", os.devnull).strip()
    who = ["-c", "user.name=Eve", "-c", "user.email=eve@example.org"]
    commit = git(bare, *who, "commit-tree", "-m", "Initial commit", tree).strip()
    git(bare, "update-ref", f"refs/heads/{branch}", commit)


@pytest.mark.parametrize(
    ("kind", "branch"), [("shared", "uwf/main"), ("dedicated", "main")]
)
def test_a_base_that_has_nothing_in_common_with_threads_is_refused(
    ada: Person, tmp_path: Path, kind: RemoteKind, branch: str
) -> None:
    bare = tmp_path / "code.git"
    subprocess.run(["git", "init", "-q", "--bare", bare], check=True)
    _put_code(bare, branch)
    ada.join(bare, name="code", kind=kind)
    thread = ada.begin(DONE)

    with pytest.raises(StateError, match="no commit in common"):
        review(ada, thread, to="code")

    assert git(bare, "for-each-ref", "refs/heads/uwf/01*") == ""


def test_a_branch_in_the_place_of_reviews_is_named(ada: Person, tmp_path: Path) -> None:
    bare = tmp_path / "code.git"
    subprocess.run(["git", "init", "-q", "--bare", bare], check=True)
    _put_code(bare, "uwf")
    ada.join(bare, name="code", kind="shared")

    with pytest.raises(StateError, match="branch 'uwf'"):
        review(ada, ada.begin(DONE), to="code")
