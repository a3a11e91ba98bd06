from __future__ import annotations

import subprocess
from pathlib import Path

import pygit2
import pytest

from uwfgit.store.genesis import ATTRIBUTES, GENESIS_OID, README, write_genesis


@pytest.fixture
def repo(tmp_path: Path) -> pygit2.Repository:
    return pygit2.init_repository(str(tmp_path / "r"), bare=True, initial_head="main")


def test_genesis_has_the_oid_that_is_in_every_store_for_ever(
    repo: pygit2.Repository,
) -> None:
    assert write_genesis(repo) == "9a4de2affdf269baf455460a4e4e8327a8b8b2c0"
    assert GENESIS_OID == "9a4de2affdf269baf455460a4e4e8327a8b8b2c0"


def test_genesis_bytes_are_the_ones_the_format_fixes(repo: pygit2.Repository) -> None:
    commit = repo[write_genesis(repo)].peel(pygit2.Commit)

    assert repo.odb.read(commit.id)[1] == (
        b"tree 992cfb026a8a3fe518e9040d45570043a351663f\n"
        b"author uwf <uwf@localhost> 0 +0000\n"
        b"committer uwf <uwf@localhost> 0 +0000\n"
        b"\n"
        b"uwf store, format 1\n"
    )


def test_genesis_tree_holds_two_plain_files(repo: pygit2.Repository) -> None:
    tree = repo[write_genesis(repo)].peel(pygit2.Commit).tree

    found = {
        entry.name: (entry.filemode, repo[entry.id].peel(pygit2.Blob).data)
        for entry in tree
    }
    assert found == {
        ".gitattributes": (0o100644, ATTRIBUTES),
        "README.md": (0o100644, README),
    }


def test_attributes_are_two_lines() -> None:
    assert ATTRIBUTES.splitlines() == [
        b"* -text",
        b"**/nodes/** -diff linguist-generated gitlab-generated",
    ]


def test_readme_is_readable_anywhere() -> None:
    text = README.decode("ascii")

    assert text.endswith(".\n")
    assert max(map(len, text.splitlines())) < 80


def test_writing_twice_changes_nothing(repo: pygit2.Repository) -> None:
    first = write_genesis(repo)
    count = len(list(repo.odb))

    assert write_genesis(repo) == first
    assert len(list(repo.odb)) == count == 4
    assert list(repo.references) == []


@pytest.mark.compat
def test_git_fsck_strict_accepts_genesis(repo: pygit2.Repository) -> None:
    repo.references.create("refs/heads/main", write_genesis(repo))

    done = subprocess.run(
        ["git", f"--git-dir={repo.path}", "fsck", "--strict"],
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, b"")
