"""A code repository with branches and tags of its own."""

from __future__ import annotations

from pathlib import Path

from tests.builders import git
from tests.sync.people import make_bare, refs_of


def make_code(path: Path) -> Path:
    """Make a bare repository of code: main, a branch and a tag."""
    make_bare(path)
    tree = git(path, "mktree", "--missing").strip()
    who = ("-c", "user.name=Dev", "-c", "user.email=dev@example.com")
    first = git(path, *who, "commit-tree", tree, "-m", "code").strip()
    second = git(path, *who, "commit-tree", tree, "-p", first, "-m", "more").strip()
    git(path, "update-ref", "refs/heads/main", second)
    git(path, "update-ref", "refs/heads/thread", first)
    git(path, "update-ref", "refs/heads/workflows/ci", first)
    git(path, *who, "tag", "-a", "v1", "-m", "one", first)
    return path


def code_refs(path: Path) -> dict[str, str]:
    """Give the refs that belong to the code."""
    return {
        ref: oid
        for ref, oid in refs_of(path).items()
        if not ref.startswith("refs/uwf/")
    }
