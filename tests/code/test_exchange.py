"""Chains go to the code's remote and come back, and nothing else of the user's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.code.repo import Repo
from tests.code.steps import Thread
from tests.sync.serving import serve_http
from uwfgit.code.chain import chain_ref, list_snapshots
from uwfgit.code.exchange import (
    Parcel,
    choose_remote,
    fetch_chains,
    list_commits,
    list_new_objects,
    list_remote,
    pack_chain,
    push_chains,
    remote_ref,
)
from uwfgit.code.snapshots.keep import Keeper
from uwfgit.errors import NotFoundError, RejectedError


@pytest.fixture
def thread(repo: Repo, keeper: Keeper) -> Thread:
    """A thread in a repository whose first commit its remote has."""
    repo.git("init", "-q", "--bare", "../hub/code.git")
    repo.git("remote", "add", "origin", str(repo.root.parent / "hub" / "code.git"))
    repo.git("push", "-q", "-u", "origin", "main")
    return Thread(repo=repo, keeper=keeper)


@pytest.fixture(params=["file", "http"])
def carried(request: pytest.FixtureRequest, repo: Repo) -> Iterator[Repo]:
    """The repository, with its remote reached in each of two ways."""
    if request.param == "file":
        yield repo
        return
    with serve_http(repo.root.parent / "hub") as url:
        bare = repo.root.parent / "hub" / "code.git"
        repo.git("-C", str(bare), "config", "http.receivepack", "true")
        repo.git("remote", "set-url", "origin", f"{url}/code.git")
        yield repo


def pack(thread: Thread, *, with_commits: bool = False) -> Parcel:
    tree = thread.repo.tree
    return pack_chain(
        tree,
        "origin",
        thread.thread,
        list_remote(tree, "origin"),
        with_commits=with_commits,
    )


def send(thread: Thread) -> Parcel:
    parcel = pack(thread)
    push_chains(thread.repo.tree, "origin", [parcel])
    return parcel


def clone(repo: Repo) -> Repo:
    url = repo.git("remote", "get-url", "origin").strip()
    repo.git("clone", "-q", url, str(repo.root.parent / "other"))
    return Repo(root=repo.root.parent / "other")


def trees(repo: Repo, ref: str) -> list[str]:
    return [each.tree for each in list_snapshots(repo.tree, ref)]


def test_a_chain_is_carried_to_another_clone(thread: Thread, carried: Repo) -> None:
    thread.step("echo one >> a.txt")
    thread.step("echo two >> a.txt")
    send(thread)
    other = clone(carried)
    assert other.git("for-each-ref", "refs/uwf").strip() == ""

    found = fetch_chains(other.tree, "origin", [thread.thread])

    assert found == (thread.thread,)
    ref = remote_ref("origin", thread.thread)
    assert trees(other, ref) == trees(carried, chain_ref(thread.thread))
    assert other.git("fsck", "--strict") == ""
    assert other.git("show", f"{thread.after[0]}:a.txt").endswith("one\n")


def test_plain_git_moves_no_chain(thread: Thread, repo: Repo) -> None:
    thread.step("echo one >> a.txt")
    repo.commit("mine")

    repo.git("push", "-q", "--all")
    repo.git("push", "-q", "--tags")

    assert "refs/uwf" not in repo.git("ls-remote", "origin")
    send(thread)
    other = clone(repo)
    other.git("fetch", "-q", "--all")
    assert "refs/uwf" not in other.git("for-each-ref")


def test_no_unpushed_commit_travels_unless_it_is_wanted(
    thread: Thread, repo: Repo
) -> None:
    thread.step("echo one >> a.txt")
    secret = repo.commit("not for others")
    thread.step("echo two >> a.txt")

    parcel = pack(thread)

    assert parcel.without == (secret,)
    assert parcel.commits == ()
    there = list_remote(repo.tree, "origin")
    assert secret not in list_new_objects(repo.tree, [parcel.tip], there)
    wanted = pack(thread, with_commits=True)
    assert wanted.tip == repo.git("rev-parse", chain_ref(thread.thread)).strip()
    assert list_commits(repo.tree, [wanted], there) == ((secret, "not for others"),)


def test_a_subject_is_told_whole_whatever_ends_a_line_elsewhere(
    thread: Thread, repo: Repo
) -> None:
    repo.sh("echo mine >> src/b.txt")
    mine = repo.commit("one\u2028two")
    thread.step("echo one >> a.txt")

    there = list_remote(repo.tree, "origin")
    wanted = pack(thread, with_commits=True)

    assert list_commits(repo.tree, [wanted], there) == ((mine, "one\u2028two"),)


def test_a_remote_of_many_refs_costs_no_more_calls_of_git(
    thread: Thread, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread.step("echo one >> a.txt")
    real, folder, log = shutil.which("git"), tmp_path / "bin", tmp_path / "calls"
    folder.mkdir()
    program = folder / "git"
    program.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {real} "$@"\n')
    program.chmod(0o755)

    def count() -> int:
        log.write_text("")
        parcel = pack(thread)
        list_new_objects(repo.tree, [parcel.tip], list_remote(repo.tree, "origin"))
        return len(log.read_text().splitlines())

    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        few = count()
    for number in range(20):
        repo.sh(f"echo {number} >> src/b.txt")
        repo.commit(f"more {number}")
        repo.git("push", "-q", "origin", f"HEAD:refs/heads/more-{number}")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        many = count()

    assert few > 0
    assert many == few


def test_what_was_sent_is_gone_on_from_whatever_is_pushed_later(
    thread: Thread, repo: Repo
) -> None:
    thread.step("echo one >> a.txt")
    repo.commit("mine")
    thread.step("echo two >> a.txt")
    first = send(thread)
    repo.git("push", "-q")
    thread.step("echo three >> a.txt")

    second = send(thread)

    assert second.old == first.tip
    assert pack(thread).is_new is False
    assert repo.git("merge-base", "--is-ancestor", first.tip, second.tip) == ""


def test_two_clones_that_sent_theirs_are_joined(
    thread: Thread, repo: Repo, keeper: Keeper
) -> None:
    thread.step("echo one >> a.txt")
    other = clone(repo)
    theirs = Thread(repo=other, keeper=keeper)
    theirs.step("echo elsewhere >> a.txt")
    send(theirs)

    send(thread)

    sent = set(trees(repo, remote_ref("origin", thread.thread)))
    assert {thread.after[0], theirs.after[0]} <= sent
    send(theirs)
    assert {thread.after[0], theirs.after[0]} <= set(
        trees(other, remote_ref("origin", thread.thread))
    )


def test_a_chain_that_is_behind_the_remote_s_has_nothing_to_send(
    thread: Thread, repo: Repo, keeper: Keeper
) -> None:
    thread.step("echo one >> a.txt")
    send(thread)
    ahead = Thread(repo=clone(repo), keeper=keeper)
    ahead.step("echo elsewhere >> a.txt")
    newest = send(ahead).tip

    parcel = pack(thread)

    assert (parcel.is_new, parcel.tip) == (False, newest)


def test_who_comes_second_is_told_to_push_again(
    thread: Thread, repo: Repo, keeper: Keeper
) -> None:
    thread.step("echo one >> a.txt")
    mine = pack(thread)
    other = Thread(repo=clone(repo), keeper=keeper)
    other.step("echo elsewhere >> a.txt")
    send(other)

    with pytest.raises(RejectedError):
        push_chains(repo.tree, "origin", [mine])


def test_a_rewound_chain_is_carried_whole(thread: Thread, repo: Repo) -> None:
    for line in ("one", "two"):
        thread.step(f"echo {line} >> a.txt")
    thread.back(thread.after[0])
    send(thread)
    other = clone(repo)

    fetch_chains(other.tree, "origin", [thread.thread])

    held = trees(other, remote_ref("origin", thread.thread))
    assert set(thread.after) <= set(held)


@pytest.mark.parametrize("name", ["nowhere", "-x", "--upload-pack=evil"])
def test_a_remote_that_is_none_is_refused(thread: Thread, name: str) -> None:
    # The store has remotes of its own, which these are not.
    with pytest.raises(NotFoundError, match=f"code remote '{name}' not found"):
        choose_remote(thread.repo.tree, name)


def test_the_branchs_own_remote_is_chosen(thread: Thread, tmp_path: Path) -> None:
    repo = thread.repo
    repo.git("remote", "add", "fork", str(tmp_path / "hub" / "code.git"))
    assert choose_remote(repo.tree, None) == "origin"
    repo.git("config", "branch.main.remote", "fork")
    assert choose_remote(repo.tree, None) == "fork"
