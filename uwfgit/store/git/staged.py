"""What a repository's next commit will hold; read through git, never written.

The contents are the index's own: no filter, line-ending rule or file of the
work tree has a part in them.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from uwfgit.errors import StoreError
from uwfgit.store.git.gitcmd import run_git

_LINK: Final = "120000"
_FILES: Final = ("100644", "100755")
_LINK_ROUNDS: Final = 5
_WILD: Final = re.compile(r"[*?\[\\]")
_ESCAPED: Final = r"\\\g<0>"


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


def list_changed(
    staging: Staging, folders: Sequence[str], *, only_removed: bool = False
) -> tuple[str, ...]:
    """List what the next commit changes in folders of these names, removals too.

    Args:
        staging: The work tree.
        folders: The names.
        only_removed: Only what it removes or moves away from them.

    Raises:
        StoreError: git cannot tell.
    """
    options = ("--diff-filter=D",) if only_removed else ()
    head = _git(staging, "rev-parse", "--verify", "--quiet", "HEAD", codes=(0, 1))
    empty = _empty_tree(staging)
    base = head.decode().strip() or empty
    found = _list_names(staging, base, _inside(folders), *options)
    links = _follow(staging, folders).links
    moved = _list_names(staging, base, _literal(links)) if links else set[str]()
    for link in links:
        seen = _find_alias(link, links, folders)
        if seen is None:
            continue
        real, passed = _resolve(link, links)
        # Of a link that is new, all is new that it leads to.
        start = base if moved.isdisjoint(passed) else empty
        for name in _list_names(staging, start, _literal(_around(real)), *options):
            found.add(_as_found(name, real, link, seen))
    return tuple(sorted(found))


def _as_found(name: str, real: str, link: str, seen: str) -> str:
    """Name a file that a link leads to, or one beside it, as the folder has it."""
    if name == real or name.startswith(f"{real}/"):
        return seen + name.removeprefix(real)
    # A path from the folder itself, so that its workflows are looked through.
    return posixpath.join(
        posixpath.dirname(seen), posixpath.relpath(name, posixpath.dirname(link) or ".")
    )


def _find_alias(
    path: str, links: Mapping[str, str], folders: Sequence[str]
) -> str | None:
    """Name a path as one finds it in a folder of these names, by one link or more."""
    for _ in range(_LINK_ROUNDS):
        if not {*folders}.isdisjoint(path.split("/")):
            return path
        for link in links:
            real = _resolve(link, links)[0]
            if link != path and path.startswith(f"{real}/"):
                path = link + path.removeprefix(real)
                break
        else:
            return None
    return None


def _resolve(path: str, links: Mapping[str, str]) -> tuple[str, frozenset[str]]:
    """Return where a path leads, and the links that it passes; a circle ends."""
    passed: set[str] = set()
    while True:
        parts = path.split("/")
        heads = ("/".join(parts[: at + 1]) for at in range(len(parts)))
        link = next((each for each in heads if each in links), None)
        if link is None or link in passed:
            return path, frozenset(passed)
        passed.add(link)
        path = links[link] + path.removeprefix(link)


def write_staged(staging: Staging, folders: Sequence[str], target: Path) -> None:
    """Write the staged files of folders of these names below an empty folder.

    Where a symlink among them, or in place of one, leads to another staged file or
    folder, that is written too. A relative one that leads out of the repository is
    left out: from another folder it would lead elsewhere.

    Raises:
        StoreError: git cannot read them, or they cannot be written.
    """
    found = _follow(staging, folders)
    try:
        _write(found.files.values(), found.contents, target)
    except OSError as exc:
        raise StoreError(f"cannot write staged files: {exc.strerror}") from exc


class _Followed(Struct, kw_only=True):
    """Staged files, by path, and all that they lead to; contents by oid."""

    files: dict[str, StagedFile] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)

    @property
    def links(self) -> dict[str, str]:
        """The symlinks among them, and where each leads."""
        targets = {
            path: _find_target(file, self.contents) for path, file in self.files.items()
        }
        return {path: target for path, target in targets.items() if target is not None}


def _follow(staging: Staging, folders: Sequence[str]) -> _Followed:
    """Read the folders of these names, and what links lead to, one link a round."""
    empty = _empty_tree(staging)
    found = _Followed()
    wanted = [*_named(folders), *_inside(folders)]
    asked: set[str] = set()
    for _ in range(_LINK_ROUNDS):
        heads = _heads(asked)
        new = {each.path: each for each in _list_files(staging, empty, wanted)}
        for each in (
            _list_files(staging, empty, [*map(_exactly, heads)]) if heads else ()
        ):
            new |= {each.path: each} if each.path in heads else {}
        found.files |= new
        oids = {each.oid for each in new.values()}
        found.contents |= _read_blobs(staging, oids - found.contents.keys())
        links = found.links
        aims = {_resolve(link, links)[0] for link in links} - asked
        if not aims:
            break
        asked |= aims
        wanted = _literal(each for aim in aims for each in _around(aim))
    return found


def _around(path: str) -> tuple[str, ...]:
    """Return a path to look at, with a file's neighbours."""
    folder = posixpath.dirname(path)
    # A linked workflow includes from where it really is.
    return (path, folder) if path.endswith((".yaml", ".yml")) and folder else (path,)


def _heads(paths: Iterable[str]) -> set[str]:
    """Return the folders above paths: each may be a link."""
    return {path[:at] for path in paths for at, char in enumerate(path) if char == "/"}


def _literal(paths: Iterable[str]) -> list[str]:
    return [f":(literal){path}" for path in paths]


def _exactly(path: str) -> str:
    # Without a wildcard it would match all that is below it.
    return f":(glob)**/{_WILD.sub(_ESCAPED, path)}"


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
