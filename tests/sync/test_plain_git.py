"""The same with plain git push and git fetch, by the refspecs in the config."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import git
from tests.proof import assert_verified
from tests.sync.code import code_refs, make_code
from tests.sync.people import (
    DONE,
    GOOD,
    Person,
    approve,
    make_bare,
    make_person,
    plain_git,
    refs_of,
)
from uwfgit.store.layout import thread_ref
from uwfgit.sync.exchange.remotes import RemoteKind


def make_two(folder: Path, url: Path, kind: RemoteKind) -> tuple[Person, Person]:
    people = make_person(folder, "ada"), make_person(folder, "bob", hours=5)
    for person in people:
        person.join(url, kind=kind)
    return people


def fetched(person: Person, thread: str) -> str:
    return git(
        person.store, "rev-parse", f"refs/remotes/origin/thread/{thread}"
    ).strip()


@pytest.mark.parametrize("kind", ["dedicated", "shared"])
def test_a_thread_goes_back_and_forth_by_plain_git(
    tmp_path: Path, kind: RemoteKind
) -> None:
    make = make_code if kind == "shared" else make_bare
    url = make(tmp_path / "between.git")
    code = code_refs(url)
    ada, bob = make_two(tmp_path, url, kind)
    thread = ada.begin(DONE)

    plain_git(ada, "push", "--quiet", "origin")
    plain_git(bob, "fetch", "--quiet", "origin")

    assert fetched(bob, thread) == ada.tip(thread)
    git(bob.store, "branch", f"thread/{thread}", f"origin/thread/{thread}")
    assert_verified(bob.store)
    bob.go(thread, GOOD)
    plain_git(bob, "push", "--quiet", "origin")
    plain_git(ada, "fetch", "--quiet", "origin")
    local = f"refs/remotes/origin/thread/{thread}:{thread_ref(thread)}"
    plain_git(ada, "fetch", "--quiet", str(ada.store.path), local)
    assert ada.tip(thread) == bob.tip(thread)
    assert_verified(ada.store)
    if kind == "shared":
        assert code_refs(url) == code
        assert set(refs_of(url)) - set(code) == {f"refs/uwf/thread/{thread}"}
    else:
        assert set(refs_of(url)) == {"refs/heads/main", thread_ref(thread)}


@pytest.mark.parametrize("kind", ["dedicated", "shared"])
def test_plain_git_forces_neither_a_push_nor_a_fetch(
    tmp_path: Path, kind: RemoteKind
) -> None:
    ada, bob = make_two(tmp_path, make_bare(tmp_path / "between.git"), kind)
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    ada.go(thread, GOOD)
    bob.poke(thread, DONE)
    plain_git(ada, "push", "--quiet", "origin")
    tip, before = ada.tip(thread), fetched(bob, thread)

    with pytest.raises(Exception, match="exit status"):
        plain_git(bob, "push", "origin")
    git(tmp_path / "between.git", "update-ref", "-d", next(iter(_threads(tmp_path))))
    plain_git(bob, "push", "--quiet", "origin")
    with pytest.raises(Exception, match="exit status"):
        plain_git(ada, "fetch", "origin")

    assert fetched(ada, thread) == tip
    assert before != tip


def _threads(folder: Path) -> list[str]:
    return [ref for ref in refs_of(folder / "between.git") if "/thread/" in ref]


def test_what_plain_git_fetched_is_adopted_by_a_pull_once_it_verifies(
    tmp_path: Path,
) -> None:
    ada, bob = make_two(tmp_path, make_bare(tmp_path / "between.git"), "dedicated")
    thread = ada.begin(DONE)
    ada.push(thread)
    plain_git(bob, "fetch", "--quiet", "origin")

    bob.pull()

    assert bob.tip(thread) == ada.tip(thread)


def test_in_a_code_repository_only_names_below_refs_uwf_are_touched(
    tmp_path: Path,
) -> None:
    url = make_code(tmp_path / "code.git")
    code = code_refs(url)
    ada, bob = make_two(tmp_path, url, "shared")
    thread, other = ada.begin(DONE), ada.begin(DONE)
    approve(ada, other, "1")

    ada.push(send_all=True)
    bob.pull()
    bob.go(thread, GOOD)
    bob.push()

    assert code_refs(url) == code
    assert set(refs_of(url)) - set(code) == {
        f"refs/uwf/thread/{thread}",
        f"refs/uwf/thread/{other}",
        f"refs/uwf/approved/{other}/1",
    }
    assert not [ref for ref in refs_of(bob.store) if "v1" in ref or ref.endswith("/ci")]
