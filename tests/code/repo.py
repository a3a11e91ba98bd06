"""A repository of the user's, worked in through git and a shell as a user would."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from uwfgit.code.worktree import WorkTree
from uwfgit.ids import ThreadId

THREAD = ThreadId("01J8Z3NDEKTSV4RRFFQ69G5FAV")
OTHER = ThreadId("01J8Z3NDEKTSV4RRFFQ69G5FAW")
PEOPLE = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repo:
    """A work tree and its repository."""

    root: Path

    @classmethod
    def make(cls, root: Path) -> Repo:
        """Make one with two files in its first commit."""
        root.mkdir()
        repo = cls(root=root)
        repo.git("init", "-q", "-b", "main")
        repo.write("a.txt", "one\ntwo\nthree\n")
        repo.write("src/b.txt", "b\n")
        # Before whatever a test's own clock says.
        repo.commit("first", at="1700000000 +0000")
        return repo

    @property
    def tree(self) -> WorkTree:
        """As the product sees it."""
        found = WorkTree.find(self.root, dict(os.environ))
        assert found is not None
        return found

    def git(self, *words: str, check: bool = True, at: str | None = None) -> str:
        """Run git as the user does and return what it prints."""
        environment = {**os.environ, **PEOPLE}
        if at is not None:
            environment |= {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
        done = subprocess.run(
            ["git", *words],
            cwd=self.root,
            env=environment,
            capture_output=True,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr.decode()
        return done.stdout.decode("utf-8", "surrogateescape")

    def commit(self, message: str, *, at: str | None = None) -> str:
        """Commit all there is and return the oid."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message, at=at)
        return self.git("rev-parse", "HEAD").strip()

    def sh(self, script: str) -> None:
        """Do something in the work tree through a shell."""
        subprocess.run(
            ["sh", "-ec", script],
            cwd=self.root,
            env={**os.environ, **PEOPLE},
            check=True,
        )

    def write(self, path: str, text: str | bytes) -> Path:
        """Write a file, with its folders."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def files(self) -> dict[str, tuple[int, bytes]]:
        """Read every file of the work tree: mode, and content or target."""
        return read_files(self.root)

    def own_state(self) -> dict[str, object]:
        """Read what belongs to the user: index, refs, logs, stash, hooks, config."""
        state: dict[str, object] = dict(read_files(self.root / ".git"))
        return {
            path: what
            for path, what in state.items()
            if not path.startswith(("objects/", "refs/uwf/"))
        }

    def list_tree(self, tree: str) -> dict[str, str]:
        """List the files of a tree: mode and oid by path."""
        lines = self.git("ls-tree", "-r", "-z", tree).split("\0")
        pairs = (line.split("\t", 1) for line in lines if line)
        return {path: head for head, path in pairs}


def read_files(root: Path) -> dict[str, tuple[int, bytes]]:
    """Read a folder: mode, and content or target, of each file but those of git."""
    found = {}
    for folder, folders, names in os.walk(root):
        if ".git" in folders and Path(folder) == root:
            folders.remove(".git")
        for name in [*names, *(f for f in folders if (Path(folder) / f).is_symlink())]:
            path = Path(folder) / name
            info = path.lstat()
            data = (
                os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            )
            found[str(path.relative_to(root))] = (info.st_mode, data)
    return found
