"""A work tree of the user's, and git run in it; the only place this room calls git."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from msgspec import Struct

from uwfgit.errors import StoreError
from uwfgit.ids import Oid
from uwfgit.store.git.enclosing import find_enclosing
from uwfgit.store.git.gitcmd import GitResult, check_operand, run_code_git

NAMESPACE = "refs/uwf/code/"
"""Below it the code repository keeps a chain of snapshots a thread."""


class Deadline(Struct, frozen=True, kw_only=True):
    """A moment by which a piece of work has to be done."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Return the moment that many seconds from now."""
        return cls(at=time.monotonic() + seconds)

    def left(self) -> float:
        """Return how many seconds there are until then.

        Raises:
            StoreError: There are none.
        """
        left = self.at - time.monotonic()
        if left <= 0:
            raise StoreError("it took too long (limits.snapshotSeconds)")
        return left


class WorkTree(Struct, frozen=True, kw_only=True):
    """A work tree and its repository; git runs in it as it does for the user."""

    root: Path
    git_dir: Path
    common_dir: Path
    environment: Mapping[str, str]

    @classmethod
    def find(cls, folder: Path, environment: Mapping[str, str]) -> Self | None:
        """Find the work tree a folder is in."""
        found = find_enclosing(folder)
        if found is None:
            return None
        return cls(
            root=found.root,
            git_dir=found.git_dir,
            common_dir=found.common_dir,
            environment=environment,
        )

    @property
    def index(self) -> Path:
        """The user's own index; only ever read."""
        return self.git_dir / "index"

    def run(
        self,
        args: Sequence[str],
        *,
        input: bytes = b"",  # noqa: A002 - subprocess's own word
        index: Path | None = None,
        objects: Path | None = None,
        literal: bool = True,
        deadline: Deadline | None = None,
    ) -> GitResult:
        """Run git here; a failure is a value.

        Args:
            args, index, literal: As in ``run_code_git``.
            objects: Where new objects go, in place of the repository.

        Raises:
            StoreError: There is no git binary, or the deadline has passed.
        """
        return run_code_git(
            args,
            root=self.root,
            environment=self.environment,
            input=input,
            index=index,
            objects=None if objects is None else (objects, self.common_dir / "objects"),
            literal=literal,
            timeout=None if deadline is None else deadline.left(),
        )

    def ask(
        self,
        *args: str,
        input: bytes = b"",  # noqa: A002 - subprocess's own word
        index: Path | None = None,
        objects: Path | None = None,
        deadline: Deadline | None = None,
    ) -> bytes:
        """Run git here and return what it writes.

        Raises:
            StoreError: It failed.
        """
        done = self.run(
            args, input=input, index=index, objects=objects, deadline=deadline
        )
        if done.code:
            raise StoreError(f"git {args[0]} failed: {done.complaint}")
        return done.stdout

    def resolve(self, name: str) -> Oid | None:
        """Find the object a name means; ``None`` when there is none."""
        done = self.run(["rev-parse", "--verify", "--quiet", check_operand(name)])
        return Oid(done.text) if done.code == 0 and done.text else None


def name_text(path: bytes) -> str:
    """Write a path as text that any record can hold, whatever its bytes are."""
    text = path.decode("utf-8", "backslashreplace")
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text
    )
