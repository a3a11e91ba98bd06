"""What a repository's next commit will hold; read through git, never written.

The contents are the index's own: no filter, line-ending rule or file of the
work tree has a part in them.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.errors import StoreError
from uwfgit.store.git.gitcmd import run_git

_LINK: Final = "120000"
_FILES: Final = ("100644", "100755")
_LINK_ROUNDS: Final = 5


class StagedFile(Struct, frozen=True, kw_only=True):
    """A file of the index, its path from the work tree's top."""

    path: str
    mode: str
    oid: str


class Staging(Struct, frozen=True, kw_only=True):
    """A work tree whose next commit is looked at.

    ``index`` is the one git names to a hook: a commit of some files, or of all
    (``-a``), is made from another than the repository's own.
    """

    root: Path
    index: Path | None
    environment: Mapping[str, str]


def list_changed(staging: Staging, folders: Sequence[str]) -> tuple[str, ...]:
    """List what the next commit changes in folders of these names, removals too.

    Raises:
        StoreError: git cannot tell.
    """
    return _list_changed(staging, folders)


def list_removed(staging: Staging, folders: Sequence[str]) -> tuple[str, ...]:
    """List what the next commit removes or moves away from such folders.

    Raises:
        StoreError: git cannot tell.
    """
    return _list_changed(staging, folders, "--diff-filter=D")


def _list_changed(
    staging: Staging, folders: Sequence[str], *options: str
) -> tuple[str, ...]:
    head = _git(staging, "rev-parse", "--verify", "--quiet", "HEAD", codes=(0, 1))
    base = head.decode().strip() or _empty_tree(staging)
    links = _list_names(staging, base, _named(folders))
    found = _list_names(staging, base, _inside(folders), *options)
    for link, target in _iter_linked(staging, folders):
        # Of a link that is new, all is new that it leads to.
        start = _empty_tree(staging) if link in links else base
        names = _list_names(staging, start, [f":(literal){target}"], *options)
        # As one finds it in the folder.
        found |= {link + name.removeprefix(target) for name in names}
    return tuple(sorted(found))


def _iter_linked(staging: Staging, folders: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield folders of these names that are symlinks, with where they lead."""
    empty = _empty_tree(staging)
    found = [
        file
        for file in _list_files(staging, empty, _named(folders))
        if file.mode == _LINK
    ]
    contents = _read_blobs(staging, {file.oid for file in found})
    for file in found:
        target = _find_target(file, contents)
        if target is not None:
            yield file.path, target


def write_staged(staging: Staging, folders: Sequence[str], target: Path) -> None:
    """Write the staged files of folders of these names below an empty folder.

    Where a symlink among them, or in place of one, leads to another staged file or
    folder, that is written too. A relative one that leads out of the repository is
    left out: from another folder it would lead elsewhere.

    Raises:
        StoreError: git cannot read them, or they cannot be written.
    """
    empty = _empty_tree(staging)
    found: dict[str, StagedFile] = {}
    contents: dict[str, bytes] = {}
    wanted = (*_named(folders), *_inside(folders))
    for _ in range(_LINK_ROUNDS):
        new = [
            each
            for each in _list_files(staging, empty, wanted)
            if each.path not in found
        ]
        if not new:
            break
        found |= {each.path: each for each in new}
        contents |= _read_blobs(staging, {each.oid for each in new} - set(contents))
        wanted = tuple(_iter_targets(new, contents))
        if not wanted:
            break
    try:
        _write(found.values(), contents, target)
    except OSError as exc:
        raise StoreError(f"cannot write staged files: {exc.strerror}") from exc


def _named(folders: Sequence[str]) -> tuple[str, ...]:
    return tuple(f":(glob)**/{name}" for name in folders)


def _inside(folders: Sequence[str]) -> tuple[str, ...]:
    return tuple(f":(glob)**/{name}/**" for name in folders)


def _git(
    staging: Staging, *args: str, feed: bytes | None = None, codes: Sequence[int] = (0,)
) -> bytes:
    result = run_git(
        args,
        git_dir=None,
        cwd=staging.root,
        environment=staging.environment,
        input=feed,
        index=staging.index,
    )
    if result.code not in codes:
        raise StoreError(f"git {args[0]}: {result.complaint}")
    return result.stdout


def _empty_tree(staging: Staging) -> str:
    # Asked of git, since its name is another one in a sha256 repository.
    found = _git(staging, "hash-object", "-t", "tree", "--stdin", feed=b"")
    return found.decode().strip()


def _diff(
    staging: Staging, base: str, wanted: Sequence[str], *options: str
) -> list[bytes]:
    # What 'git add -N' only announces is in the index, and in no commit; ls-files
    # would list it.
    out = _git(
        staging,
        *("diff-index", "--cached", "--ita-invisible-in-index", "-r", "-z"),
        *("--no-renames", *options, base, "--", *wanted),
    )
    return [each for each in out.split(b"\0") if each]


def _list_names(
    staging: Staging, base: str, wanted: Sequence[str], *options: str
) -> set[str]:
    names = _diff(staging, base, wanted, "--name-only", *options)
    return {os.fsdecode(name) for name in names}


def _list_files(
    staging: Staging, empty: str, wanted: Sequence[str]
) -> Iterator[StagedFile]:
    fields = _diff(staging, empty, wanted, "--raw", "--no-abbrev")
    for facts, path in zip(fields[::2], fields[1::2], strict=True):
        _, mode, _, oid, _ = facts.decode().split(" ")
        if mode == _LINK or mode in _FILES:
            yield StagedFile(path=os.fsdecode(path), mode=mode, oid=oid)


def _read_blobs(staging: Staging, oids: set[str]) -> dict[str, bytes]:
    if not oids:
        return {}
    feed = "".join(f"{oid}\n" for oid in sorted(oids)).encode()
    out = _git(staging, "cat-file", "--batch", feed=feed)
    return dict(_iter_blobs(out))


def _iter_blobs(out: bytes) -> Iterator[tuple[str, bytes]]:
    start = 0
    while start < len(out):
        end = out.index(b"\n", start)
        oid, *facts = out[start:end].decode().split(" ")
        start = end + 1
        if facts == ["missing"]:
            # A partial clone; git would fetch it only by running what its
            # config names. A commit cannot have changed it.
            continue
        size = int(facts[1])
        yield oid, out[start : start + size]
        start += size + 1


def _iter_targets(
    files: Sequence[StagedFile], contents: Mapping[str, bytes]
) -> Iterator[str]:
    """Yield pathspecs of what symlinks lead to, with a file's neighbours."""
    for file in files:
        path = _find_target(file, contents)
        if path is None:
            continue
        yield f":(literal){path}"
        # A linked workflow includes from where it really is.
        if path.endswith((".yaml", ".yml")) and posixpath.dirname(path):
            yield f":(literal){posixpath.dirname(path)}"


def _find_target(file: StagedFile, contents: Mapping[str, bytes]) -> str | None:
    """Return what a symlink leads to; ``None`` if it leads out, or is none."""
    if file.mode != _LINK or file.oid not in contents:
        return None
    leads = os.fsdecode(contents[file.oid])
    path = posixpath.normpath(posixpath.join(posixpath.dirname(file.path), leads))
    is_out = posixpath.isabs(leads) or path.split("/")[0] in {"..", "."}
    return None if is_out else path


def _write(
    files: Iterable[StagedFile], contents: Mapping[str, bytes], target: Path
) -> None:
    # Links last, so that no file is written through one.
    for file in sorted(files, key=lambda each: each.mode == _LINK):
        content = contents.get(file.oid)
        if content is None or ".." in file.path.split("/"):
            continue
        path = target / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.mode == _LINK:
            leads = os.fsdecode(content.partition(b"\0")[0])
            if posixpath.isabs(leads) or _find_target(file, contents) is not None:
                path.symlink_to(leads)
        else:
            path.write_bytes(content)
