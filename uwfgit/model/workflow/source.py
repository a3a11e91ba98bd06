"""Workflow files: the only place that reads and finds them on disk."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.constants import YAML_MAX_BYTES
from uwfgit.errors import NotFoundError, Problem, WorkflowError
from uwfgit.model.legacy.read import Normalised, normalise_document
from uwfgit.model.rules.check import check_normalised
from uwfgit.model.rules.graph import FindSyntaxError
from uwfgit.model.workflow.include import find_git_marks, open_includes
from uwfgit.model.workflow.pinned import workflow_from_document
from uwfgit.model.workflow.workflow import Workflow
from uwfgit.model.yaml.core import read_yaml
from uwfgit.model.yaml.dump import dump_yaml
from uwfgit.model.yaml.located import IncludeReader
from uwfgit.model.yaml.problems import sort_problems
from uwfgit.store.files import read_start

_SUFFIXES: Final = (".yaml", ".yml")
_INDEX: Final = "index"
_DROPPED: Final = ".workflow"
_REPLIES: Final = ".replies"
_LINK_HINT: Final = "fix or remove the link"
_NOTHING: Final = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}
FOLDERS: Final = (".workflows", ".workflow")
_REPOSITORY: Final = ".git"

_BREAK = re.compile(rb"\r\n?")

LOCAL: Final = "local"
CONFIGURED: Final = "path"
STDIN: Final = "-"


class WorkflowSource(Struct, frozen=True, kw_only=True):
    """A workflow, its file, and the bytes a thread keeps of it."""

    workflow: Workflow
    file: Path
    data: bytes


class _Reading(Struct, frozen=True, kw_only=True):
    """A file as read; ``normalised`` is missing when it is no YAML at all."""

    content: bytes
    normalised: Normalised | None
    problems: tuple[Problem, ...]


def read_workflow(path: Path) -> WorkflowSource:
    """Read a workflow file that has no errors; warnings do not matter.

    Older forms are read as the current one.

    Raises:
        NotFoundError: There is no such file.
        WorkflowError: With every error of the file.
    """
    return _finish(path, _read(path))


def read_workflow_content(
    content: bytes, path: Path, *, stem: str, include: IncludeReader
) -> WorkflowSource:
    """Read a workflow of no file on disk, as :func:`read_workflow` does.

    Args:
        content: Its text.
        path: What problems call it.
        stem: The name it must have.
        include: Reads what it includes.

    Raises:
        WorkflowError: With every error of it.
    """
    return _finish(path, _read_content(content, path, stem, None, include))


def _finish(path: Path, reading: _Reading) -> WorkflowSource:
    errors = [each for each in reading.problems if each.severity == "error"]
    if errors or reading.normalised is None:
        raise WorkflowError(errors)
    return WorkflowSource(
        workflow=workflow_from_document(reading.normalised.doc),
        file=path,
        data=_data(path, reading.content, reading.normalised),
    )


def check_workflow_file(
    path: Path, *, find_syntax_error: FindSyntaxError | None = None
) -> tuple[Problem, ...]:
    """Check a workflow file against every rule; warnings are included.

    Args:
        path: The file.
        find_syntax_error: Reads conditions; without it they are not checked.

    Raises:
        NotFoundError: There is no such file.
    """
    return _read(path, find_syntax_error).problems


def _read(path: Path, find_syntax_error: FindSyntaxError | None = None) -> _Reading:
    content, problem = _read_bytes(path)
    if problem is not None:
        return _Reading(content=content, normalised=None, problems=(problem,))
    return _read_content(content, path, name_of(path), find_syntax_error)


def check_workflow_text(
    content: bytes,
    *,
    folder: Path,
    file: Path | None = None,
    find_syntax_error: FindSyntaxError | None = None,
) -> tuple[Problem, ...]:
    """Check a workflow that is in no file; problems name it ``-``.

    Args:
        content: Its text.
        folder: Where its includes are.
        file: The file that it is to become: then problems name that.
        find_syntax_error: Reads conditions; without it they are not checked.
    """
    if file is not None:
        return _read_content(content, file, name_of(file), find_syntax_error).problems
    return _read_content(content, folder / STDIN, None, find_syntax_error).problems


def _read_content(
    content: bytes,
    path: Path,
    stem: str | None,
    find_syntax_error: FindSyntaxError | None,
    include: IncludeReader | None = None,
) -> _Reading:
    broken = find_git_marks(content)
    if broken is not None:
        message, hint, line = broken
        told = replace(_file_problem(path, "Y17", message, hint), line=line)
        return _Reading(content=content, normalised=None, problems=(told,))
    file = STDIN if stem is None else str(path)
    located, problems = read_yaml(
        content, file=file, include=include or open_includes(path)
    )
    if located is None:
        return _Reading(content=content, normalised=None, problems=problems)
    normalised = normalise_document(located)
    found = check_normalised(normalised, stem=stem, find_syntax_error=find_syntax_error)
    problems = sort_problems((*problems, *found))
    if not any(each.severity == "error" for each in problems):
        problems = (*problems, *_check_resolved(path, content, normalised))
    return _Reading(content=content, normalised=normalised, problems=problems)


def read_file(path: Path) -> bytes:
    """Read the bytes of a workflow file, up to one more than it may have.

    Raises:
        NotFoundError: There is no such file.
        WorkflowError: It cannot be read.
    """
    content, problem = _read_bytes(path)
    if problem is not None:
        raise WorkflowError([problem])
    return content


def _read_bytes(path: Path) -> tuple[bytes, Problem | None]:
    try:
        # One byte more shows that the file is too large, however large.
        return read_start(path, most=YAML_MAX_BYTES + 1), None
    except (FileNotFoundError, NotADirectoryError, ValueError) as exc:
        if not path.is_symlink():
            raise NotFoundError("workflow file", str(path)) from exc
        message = "it is a link to a file that is not there"
        return b"", _file_problem(path, "Y15", message, _LINK_HINT)
    except OSError as exc:
        if exc.errno == errno.ELOOP:
            message = "it is a link that leads to itself"
            return b"", _file_problem(path, "Y15", message, _LINK_HINT)
        if path.exists() and not path.is_file():
            hint = "name a workflow file"
            return b"", _file_problem(path, "Y15", "is not a regular file", hint)
        message = f"cannot be read: {exc.strerror}"
        return b"", _file_problem(path, "Y15", message, "check its permissions")


def _file_problem(path: Path, code: str, message: str, hint: str) -> Problem:
    return Problem(
        code=code, message=message, hint=hint, file=str(path), line=1, column=1
    )


def _data(path: Path, content: bytes, normalised: Normalised) -> bytes:
    doc = normalised.doc
    resolved = ["older forms"] * normalised.is_older + ["!include"] * doc.includes
    if not resolved:
        return _BREAK.sub(b"\n", content)
    shown = "".join(c if c.isprintable() else "?" for c in path.name)
    first = f"# Written by uwf: {' and '.join(resolved)} resolved from {shown}\n"
    return (first + dump_yaml(doc.value)).encode()


def _check_resolved(
    path: Path, content: bytes, normalised: Normalised
) -> tuple[Problem, ...]:
    if len(_data(path, content, normalised)) <= YAML_MAX_BYTES:
        return ()
    message = "with what it includes, the workflow is larger than 1 MiB"
    return (_file_problem(path, "Y3", message, "include less"),)


def name_of(path: Path) -> str:
    """Return the name a workflow must have to be in this file."""
    if path.stem == _INDEX:
        return path.absolute().parent.name
    return path.stem.removesuffix(_DROPPED)


def is_replies(path: Path) -> bool:
    """Whether a file beside workflows holds replies of the agent scripted."""
    return path.stem.endswith(_REPLIES)


def is_path(name: str) -> bool:
    """Whether a workflow argument is a path, not a name."""
    return "/" in name or name.endswith(_SUFFIXES)


def resolve_workflow(
    name: str, *, cwd: Path, workflow_paths: Sequence[Path]
) -> Path | None:
    """Find the file a workflow argument means; ``None`` when it means none.

    A path is taken from ``cwd``; a name is looked for in the workflow folders
    from ``cwd`` up to the repository's root, then in ``workflow_paths``.

    Raises:
        NotFoundError: The argument is a path and there is no file.
    """
    if is_path(name):
        return _resolve_path(name, cwd)
    if not name or name.startswith(".") or "\0" in name:
        return None
    for folder in (*_iter_folders(cwd), *workflow_paths):
        for candidate in list_candidates(folder, name):
            if _is_there(candidate):
                return candidate
    return None


def _is_there(path: Path) -> bool:
    """Whether something other than a folder has this name.

    Be it a link that leads nowhere: whoever reads it says what is wrong.

    Raises:
        OSError: The system does not tell.
    """
    try:
        path.lstat()
    except OSError as exc:
        if exc.errno not in _NOTHING:
            raise
        return False
    return not path.is_dir()


def list_workflow_files(
    *, cwd: Path, workflow_paths: Sequence[Path]
) -> list[tuple[str, Path, str]]:
    """List the workflows a name can mean: name, file, and ``local`` or ``path``.

    Each name once, with the file :func:`resolve_workflow` finds for it.
    """
    folders = [(folder, LOCAL) for folder in _iter_folders(cwd)]
    folders += [(folder, CONFIGURED) for folder in workflow_paths]
    found: dict[str, tuple[str, Path, str]] = {}
    for folder, label in folders:
        for name in sorted(_iter_names(folder)):
            for candidate in list_candidates(folder, name):
                if name not in found and _is_there(candidate):
                    found[name] = (name, candidate, label)
    return [found[name] for name in sorted(found)]


def _resolve_path(name: str, cwd: Path) -> Path:
    path = cwd / name
    try:
        if path.is_dir():
            for suffix in _SUFFIXES:
                if (path / f"{_INDEX}{suffix}").is_file():
                    return path / f"{_INDEX}{suffix}"
        if path.exists() or path.is_symlink():
            return path
    except (OSError, ValueError) as exc:
        raise NotFoundError("workflow file", name) from exc
    raise NotFoundError("workflow file", name, hint="check the path")


def _iter_folders(cwd: Path) -> Iterator[Path]:
    """Yield the workflow folders, nearest first, not above the repository's root.

    Outside a repository a folder that is another user's is none of ours: any
    directory above might be one that all may write to.
    """
    parents = (cwd, *cwd.parents)
    root = next((each for each in parents if (each / _REPOSITORY).exists()), None)
    for directory in parents:
        for name in FOLDERS:
            folder = directory / name
            if folder.is_dir() and (root is not None or _is_own(folder)):
                yield folder
        if directory == root:
            return


def _is_own(folder: Path) -> bool:
    try:
        return folder.stat().st_uid == os.getuid()
    except OSError:
        return False


_Folder = TypeVar("_Folder", bound=PurePath)


def list_candidates(folder: _Folder, name: str) -> Iterator[_Folder]:
    """Yield the files that a workflow of this name can be in, the likeliest first."""
    for stem in (name, f"{name}{_DROPPED}"):
        for suffix in _SUFFIXES:
            yield folder / f"{stem}{suffix}"
    for suffix in _SUFFIXES:
        yield folder / name / f"{_INDEX}{suffix}"


def _iter_names(folder: Path) -> Iterator[str]:
    try:
        entries = list(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.suffix in _SUFFIXES:
            if not is_replies(entry):
                yield name_of(entry)
        elif any((entry / f"{_INDEX}{suffix}").is_file() for suffix in _SUFFIXES):
            yield entry.name
