"""Code carried between two clones with its threads, and what is never carried."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from tests.cli.test_code import Desk, desk  # noqa: F401 - a fixture
from tests.code.repo import Repo


@dataclass(frozen=True, slots=True)
class Two:
    """Two clones of one repository, the second without any thread yet."""

    mine: Desk
    theirs: Repo
    uwf: Uwf

    def there(self) -> None:
        """Go to the other clone."""
        os.chdir(self.theirs.root)


@pytest.fixture
def two(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Two:  # noqa: F811 - the fixture
    repo = desk.repo
    repo.git("init", "-q", "--bare", "-b", "main", "../hub.git")
    repo.git("remote", "add", "origin", str(tmp_path / "hub.git"))
    repo.git("push", "-q", "-u", "origin", "main")
    assert desk.uwf("init").code == 0
    assert desk.uwf("remote", "add", "--shared").code == 0
    repo.git("clone", "-q", str(tmp_path / "hub.git"), "../theirs")
    monkeypatch.chdir(repo.root)
    return Two(desk, Repo(root=tmp_path / "theirs"), desk.uwf)


def share(two: Two, thread: str) -> None:
    """Send a thread and its code, and bring both to the other clone."""
    for words in (("push", "--all"), ("push", "--code", thread)):
        sent = two.uwf(*words)
        assert sent.code == 0, sent.err
    two.there()
    bring(two)


def bring(two: Two) -> None:
    """Bring the threads of the remote to the clone one is in."""
    for line in ("init", "remote add --shared", "pull"):
        done = two.uwf(*line.split())
        assert done.code == 0, done.err


def test_a_thread_and_its_code_are_carried_to_another_clone(two: Two) -> None:
    thread = two.mine.run("echo one >> a.txt", "echo two >> a.txt && echo x > n")

    share(two, thread)

    files = two.uwf("step", "diff", f"{thread}:2", "--json").json["files"]
    assert [each["path"] for each in files] == ["a.txt", "n"]
    refs = two.theirs.git("for-each-ref", "--format=%(refname)", "refs/uwf")
    assert refs.split() == [f"refs/uwf/remotes/origin/code/{thread}"]
    two.theirs.sh("printf 'one\\ntwo\\nthree\\none\\ntwo\\n' > a.txt")
    lines = two.uwf("why", "a.txt", "--json").json["files"][0]["lines"]
    assert [line["kind"] for line in lines[3:]] == ["step", "step"]


def test_a_clone_by_hard_links_gets_a_chain_for_the_objects_it_has(two: Two) -> None:
    thread = two.mine.run("echo one >> a.txt")
    for words in (("push", "--all"), ("push", "--code", thread)):
        assert two.uwf(*words).code == 0
    two.mine.repo.git("clone", "-q", "../hub.git", "../late")
    os.chdir(two.theirs.root.parent / "late")

    bring(two)

    refs = Repo(root=Path.cwd()).git("for-each-ref", "--format=%(refname)", "refs/uwf")
    assert refs.split() == [f"refs/uwf/remotes/origin/code/{thread}"]


@pytest.mark.slow
def test_without_the_code_each_command_says_what_is_missing(two: Two) -> None:
    thread = two.mine.run("echo one >> a.txt", "true")
    assert two.uwf("push", "--all").code == 0
    two.there()
    bring(two)

    for words in (
        f"step diff {thread}:1",
        f"thread code {thread}",
        f"thread rewind {thread} --at 1",
        f"thread undo {thread}",
        f"thread fork {thread} --at 1 --worktree ../own",
        f"bisect {thread} -- true",
    ):
        refused = two.uwf(*words.split())
        assert refused.code == 1, words
        assert "not here" in refused.err
        assert "push --code" in refused.err


def test_a_strangers_code_asks_before_it_becomes_files(two: Two) -> None:
    thread = two.mine.run("mkdir .claude && echo x > .claude/settings.json", "true")
    share(two, thread)

    words = ("thread", "rewind", thread, "--at", "1")
    refused = two.uwf(*words)

    assert refused.code == 1
    assert "added .claude/settings.json" in refused.err
    assert not (two.theirs.root / ".claude").exists()
    assert two.uwf(*words, "--trust").code == 0
    assert (two.theirs.root / ".claude" / "settings.json").exists()


def test_a_change_by_hand_is_not_lost_to_a_strangers_code(two: Two) -> None:
    thread = two.mine.run("echo one >> a.txt", "echo two >> a.txt")
    share(two, thread)
    two.theirs.write("a.txt", "mine\n")
    words = ("thread", "rewind", thread, "--at", "1", "--trust")

    refused = two.uwf(*words)

    assert refused.code == 1
    assert "changed since the thread's last snapshot: a.txt" in refused.err
    assert (two.theirs.root / "a.txt").read_text() == "mine\n"
    assert two.uwf(*words, "--yes").code == 0


def test_a_secret_does_not_leave(two: Two) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    # Tracked: an untracked one would not be in the snapshot.
    two.mine.repo.write("config.py", "x = 1\n")
    two.mine.repo.commit("config")
    thread = two.mine.run(f"echo 'token = \"{token}\"' >> config.py", "true")

    refused = two.uwf("push", "--code", thread)

    assert refused.code == 1
    assert "config.py:2" in refused.err
    assert token not in refused.err
    assert "refs/uwf/code" not in two.mine.repo.git("ls-remote", "origin")
    name = refused.err.partition("(")[2].partition(")")[0]
    assert two.uwf("push", "--code", thread, "--allow", name).code == 0


@pytest.mark.slow
def test_no_unpushed_commit_travels(two: Two) -> None:
    two.mine.repo.write("mine", "not for others\n")
    secret = two.mine.repo.commit("mine")
    thread = two.mine.run("echo one >> a.txt", "true")

    told = two.uwf("push", "--code", thread)

    assert "without 1 commit" in told.out
    bare = Repo(root=two.mine.repo.root.parent / "hub.git")
    assert secret not in bare.git("rev-list", "--all")
    with_them = two.uwf("push", "--code", thread, "--with-commits", "--json")
    assert with_them.code == 0, with_them.err


@pytest.mark.slow
def test_dry_run_sends_nothing(two: Two) -> None:
    thread = two.mine.run("echo one >> a.txt", "true")

    told = two.uwf("push", "--code", thread, "--dry-run", "--json").json

    assert told["threads"][0]["result"] == "new"
    assert "refs/uwf/code" not in two.mine.repo.git("ls-remote", "origin")


def test_a_private_thread_never_leaves(two: Two, tmp_path: Path) -> None:
    thread = two.mine.run("echo one >> a.txt", "true", start=("--private",))

    for words in (
        ("push", "origin", thread),
        ("push", "--code", thread),
        ("bundle", "create", str(tmp_path / "b"), thread),
        ("review", "open", thread),
    ):
        refused = two.uwf(*words)
        assert refused.code == 1, words
        assert "private" in refused.out + refused.err, words
    # Of all threads it is none that was meant.
    rest = two.uwf("push", "--all")
    assert (rest.code, "private" in rest.out) == (0, True)
    plain = two.uwf("git", "push", "origin", f"refs/heads/thread/{thread}")
    assert plain.code == 1
    assert thread not in two.mine.repo.git("ls-remote", "origin")
    fork = two.uwf("thread", "fork", thread, "--json").json["threadId"]
    assert two.uwf("push", "origin", fork).code == 1
