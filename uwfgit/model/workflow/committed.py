"""Workflow files in a commit of any repository, read without a work tree.

Nothing is checked out, so no filter, hook or link of that repository counts: what
is read are the bytes of blobs.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct

from uwfgit.constants import YAML_MAX_BYTES
from uwfgit.errors import AmbiguousError, CorruptError, InvalidError, NotFoundError
from uwfgit.ids import Oid
from uwfgit.model.workflow.include import (
    blank_target,
    is_parsed,
    leads_out,
    refusal,
    require_chain,
    require_text,
)
from uwfgit.model.workflow.source import (
    FOLDERS,
    WorkflowSource,
    is_path,
    list_candidates,
    name_of,
    read_workflow_content,
)
from uwfgit.model.yaml.located import Included
from uwfgit.spelling import find_similar
from uwfgit.store.handle import Store
from uwfgit.store.objects import TREE_MODE, TreeEntry, find_entry, list_tree
from uwfgit.store.raw import BLOB

_FILE_MODES: Final = frozenset({0o100644, 0o100755, 0o100664})
_LINK_MODE: Final = 0o120000
_SUBMODULE_MODE: Final = 0o160000
_NAME_ONE: Final = "name a workflow file of it behind the address: …:PATH"
_POINTER: Final = b"version https://git-lfs.github.com/spec/"


class CommittedTree(Struct, frozen=True, kw_only=True):
    """The files of one commit.

    Args:
        store: A repository that has them.
        tree: The commit's tree.
        name: What the repository is called; a workflow in ``index.yaml`` at its top
            is called so.
    """

    store: Store
    tree: Oid
    name: str

    def find(self, path: PurePosixPath) -> TreeEntry | None:
        """Return what is at a path; ``None`` when there is nothing.

        Raises:
            InvalidError: A symlink or a submodule stands there, or on the way.
        """
        entry = TreeEntry(oid=self.tree, mode=TREE_MODE)
        for part in path.parts:
            if entry.mode != TREE_MODE:
                return None
            found = find_entry(self.store, entry.oid, part)
            if found is None:
                return None
            entry = found
            if entry.mode in {_LINK_MODE, _SUBMODULE_MODE}:
                what = "a symlink" if entry.mode == _LINK_MODE else "a submodule"
                hint = "name a file that is committed as one"
                raise refusal("Y15", f"'{path}' is or is in {what}", hint)
        return entry

    def has_file(self, path: PurePosixPath) -> bool:
        """Whether a regular file is at a path."""
        try:
            entry = self.find(path)
        except InvalidError:
            return False
        return entry is not None and entry.mode in _FILE_MODES

    def read(self, path: PurePosixPath, target: str) -> bytes:
        """Read a file as a text that a person wrote.

        Args:
            path: Where it is.
            target: What refusals call it.

        Raises:
            InvalidError: It is missing, no regular file, too large, or not a text.
        """
        entry = self.find(path)
        if entry is None:
            hint = "looked for it in the same commit"
            raise refusal("Y12", f"file '{target}' not found", hint)
        if entry.mode not in _FILE_MODES:
            raise refusal("Y15", f"'{target}' is not a regular file", "name one file")
        try:
            found = self.store.raw.load(entry.oid, limit=YAML_MAX_BYTES)
        except CorruptError:
            # It was left out when the commit was fetched, being too large.
            found = None
        if found is None or found.data is None:
            raise refusal("Y3", f"'{target}' is larger than 1 MiB", "make it smaller")
        if found.kind != BLOB:
            raise CorruptError(f"object {entry.oid} is not a blob")
        if found.data.startswith(_POINTER):
            message = f"'{target}' is kept by Git LFS: only a pointer is in git"
            raise refusal("Y17", message, "keep workflow files out of Git LFS")
        return require_text(found.data, target)

    def list_folder(self, path: PurePosixPath) -> list[str]:
        """Name what is in a folder; nothing when there is none."""
        try:
            entry = self.find(path)
        except InvalidError:
            return []
        if entry is None or entry.mode != TREE_MODE:
            return []
        names = list_tree(self.store, entry.oid)
        return [name for name in names if name.isprintable()]


class _TreeIncludes(Struct, frozen=True, kw_only=True):
    """Reads the tags of one file: from its own directory, and nowhere else."""

    files: CommittedTree
    chain: tuple[PurePosixPath, ...]

    def __call__(self, target: str) -> Included:
        """Read the file a tag names.

        Raises:
            InvalidError: It may not be read, or is being read already.
        """
        path = self._resolve(target)
        nested = _TreeIncludes(files=self.files, chain=(*self.chain, path))
        return Included(
            key=str(path),
            file=str(path),
            content=self.files.read(path, target),
            nested=nested if is_parsed(path) else None,
        )

    def _resolve(self, target: str) -> PurePosixPath:
        if not target.strip() or "\0" in target:
            raise blank_target()
        folder = self.chain[-1].parent
        path = PurePosixPath(posixpath.normpath(folder / target))
        inside = path.is_relative_to(folder) and ".." not in path.parts
        if target.startswith("/") or not inside:
            raise leads_out(target)
        require_chain(self.chain, path)
        return path


def read_committed(files: CommittedTree, path: str) -> WorkflowSource:
    """Read a workflow of a commit that has no errors, with all it includes.

    Raises:
        InvalidError: It is no file that can be read.
        WorkflowError: With every error of it.
    """
    place = PurePosixPath(path)
    is_top_index = len(place.parts) == 1 and place.stem == "index"
    return read_workflow_content(
        files.read(place, path),
        Path(path),
        stem=files.name if is_top_index else name_of(Path("/", path)),
        include=_TreeIncludes(files=files, chain=(place,)),
    )


def find_committed(files: CommittedTree, argument: str | None) -> str:
    """Find the file that a path or a name means in a commit.

    Args:
        files: The commit's.
        argument: A path; a name, as in ``.workflows/``; ``None``: the only workflow
            that stands there.

    Raises:
        NotFoundError: There is none.
        AmbiguousError: There are several, and none was named.
        InvalidError: A link or a submodule is in the way.
    """
    if argument is None:
        return _find_only(files)
    place = PurePosixPath(argument)
    if not is_path(argument):
        for folder in FOLDERS:
            for path in list_candidates(PurePosixPath(folder), argument):
                if files.has_file(path):
                    return str(path)
    entry = files.find(place)
    if entry is not None and entry.mode == TREE_MODE:
        for suffix in (".yaml", ".yml"):
            if files.has_file(place / f"index{suffix}"):
                return str(place / f"index{suffix}")
    if entry is None or entry.mode == TREE_MODE:
        known = {name_of(Path("/", path)): path for path in _iter_workflows(files)}
        near = find_similar(argument, known)
        hint = f"did you mean '{near}'?" if near else _NAME_ONE
        raise NotFoundError("workflow file", argument, hint=hint)
    return argument


def _find_only(files: CommittedTree) -> str:
    found = sorted(set(_iter_workflows(files)))
    if len(found) > 1:
        hint = f"name one behind the address, as in …:{found[0]}"
        raise AmbiguousError("workflow of repository", files.name, found, hint=hint)
    if not found:
        raise NotFoundError("workflow", f"{FOLDERS[0]}/", hint=_NAME_ONE)
    return found[0]


def _iter_workflows(files: CommittedTree) -> Iterator[str]:
    for folder in map(PurePosixPath, FOLDERS):
        for name in files.list_folder(folder):
            stem = name_of(Path("/", name))
            for path in list_candidates(folder, stem):
                if files.has_file(path):
                    yield str(path)
                    break


def find_beside(files: CommittedTree, path: str, name: str) -> str | None:
    """Find the workflow of a name in the folder of another one's file."""
    folder = PurePosixPath(path).parent
    places = list_candidates(folder, name)
    return next((str(place) for place in places if files.has_file(place)), None)
