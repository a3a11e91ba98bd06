"""Files that ``!include`` names; the only place that opens them."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import Final

from msgspec import Struct

from uwfgit.constants import YAML_MAX_BYTES
from uwfgit.errors import InvalidError, Problem
from uwfgit.model.yaml.located import Included
from uwfgit.store.files import read_start

_PARSED: Final = frozenset({".json", ".yaml", ".yml"})
_MAX_CHAIN: Final = 20
_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_CONFLICT: Final = (
    re.compile(rb"^<{7} [^\n]*\n", re.MULTILINE),
    re.compile(rb"^={7}\r?\n", re.MULTILINE),
    re.compile(rb"^>{7} ", re.MULTILINE),
)
"""The marks of one, in their order: searched one by one, a file is read once."""
_FENCE = re.compile(rb"^[ \t]*(?:```|~~~)", re.MULTILINE)


class DirectoryIncludes(Struct, frozen=True, kw_only=True):
    """Reads the tags of one file: from its own directory, and nowhere else.

    Args:
        directory: The file's directory, symlinks resolved.
        shown: The same directory as problems name it.
        chain: The resolved files that are being read, this one last.
        on_file: Told every resolved file a tag names, also one that is missing.
    """

    directory: Path
    shown: Path
    chain: tuple[Path, ...]
    on_file: Callable[[Path], None] | None = None

    def __call__(self, target: str) -> Included:
        """Read the file a tag names.

        Raises:
            InvalidError: It is missing, outside, no file, too large, or being
                read already.
        """
        path = self._resolve(target)
        if self.on_file is not None:
            self.on_file(path)
        content = _read_file(path, target)
        shown = self.shown / target
        nested = DirectoryIncludes(
            directory=path.parent,
            shown=shown.parent,
            chain=(*self.chain, path),
            on_file=self.on_file,
        )
        return Included(
            key=str(path),
            file=str(shown),
            content=content,
            nested=nested if is_parsed(path) else None,
        )

    def _resolve(self, target: str) -> Path:
        if not target.strip() or "\0" in target:
            raise blank_target()
        path = follow_links(self.directory / target)
        if Path(target).is_absolute() or not path.is_relative_to(self.directory):
            raise leads_out(target)
        require_chain(self.chain, path)
        return path


def blank_target() -> InvalidError:
    """Return the refusal of a tag that names nothing."""
    return refusal("Y12", "'!include' names no file", "write !include FILE")


def leads_out(target: str) -> InvalidError:
    """Return the refusal of a path that leaves the including file's directory."""
    return refusal(
        "Y13",
        f"'{target}' leads out of the including file's directory",
        "include files of that directory, by a relative path",
    )


def require_chain(chain: Sequence[PurePath], path: PurePath) -> None:
    """Make sure that includes end.

    Args:
        chain: The files that are being read.
        path: What the last of them includes.

    Raises:
        InvalidError: It is being read already, or there are too many.
    """
    if path in chain:
        names = [each.name for each in chain[chain.index(path) :]]
        circle = " → ".join((*names, path.name))
        hint = "remove one of these includes"
        raise refusal("Y14", f"include cycle: {circle}", hint)
    if len(chain) >= _MAX_CHAIN:
        message = f"includes nested deeper than {_MAX_CHAIN} files"
        raise refusal("Y14", message, "include fewer files from included ones")


def open_includes(
    path: Path,
    *,
    shown: Path | None = None,
    on_file: Callable[[Path], None] | None = None,
) -> DirectoryIncludes:
    """Return the reader for the tags of a workflow file.

    Args:
        path: The file.
        shown: How problems name it.
        on_file: As for ``DirectoryIncludes``.
    """
    real = follow_links(path)
    return DirectoryIncludes(
        directory=real.parent,
        shown=(shown or path).parent,
        chain=(real,),
        on_file=on_file,
    )


def follow_links(path: Path) -> Path:
    """Return where a path leads; links that lead in a circle stay as they are."""
    # Path.resolve() gives up at them, in some Pythons.
    return Path(os.path.realpath(path))


def _read_file(path: Path, target: str) -> bytes:
    try:
        content = read_start(path, most=YAML_MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as exc:
        hint = "make the file, or fix the path: it is taken from this file's folder"
        if path.name != PurePath(target).name:
            hint = f"fix the link, which leads to '{path.name}'"
        raise refusal("Y12", f"included file '{target}' not found", hint) from exc
    except OSError as exc:
        if exc.errno == errno.ELOOP:
            hint = "check the path and its symlinks"
            raise refusal("Y12", f"cannot include '{target}'", hint) from exc
        if path.exists() and not path.is_file():
            hint = "include one file"
            raise refusal("Y15", f"'{target}' is not a regular file", hint) from exc
        message = f"cannot read '{target}': {exc.strerror}"
        raise refusal("Y15", message, "check its permissions") from exc
    return require_text(content, target)


def require_text(content: bytes, target: str) -> bytes:
    """Return what an included file holds, if it is a text that a person wrote.

    Raises:
        InvalidError: It is too large, or git left something else in its place.
    """
    if len(content) > YAML_MAX_BYTES:
        raise refusal("Y3", f"'{target}' is larger than 1 MiB", "make it smaller")
    broken = find_git_marks(content)
    if broken is not None:
        message, hint, line = broken
        raise refusal("Y17", f"'{target}', line {line}: {message}", hint)
    return content


def find_git_marks(content: bytes) -> tuple[str, str, int] | None:
    """Find what git left in a file's place, and no person wrote.

    Returns:
        What it is, what to do about it, and its line; ``None`` where there is none.
    """
    if content.startswith(_POINTER):
        hint = "run: git lfs pull"
        return "it is a pointer of Git LFS, and not the text itself", hint, 1
    starts, end = [], 0
    for mark in _CONFLICT:
        found = mark.search(content, end)
        if found is None:
            return None
        starts.append(found.start())
        end = found.end()
    # Text about conflicts shows them in a code block.
    if len(_FENCE.findall(content, 0, starts[0])) % 2:
        return None
    line = content.count(b"\n", 0, starts[0]) + 1
    return "it has marks of a merge conflict", "resolve the conflict", line


def is_parsed(path: PurePath) -> bool:
    """Whether what an included file holds is a value, with tags of its own."""
    return path.suffix.lower() in _PARSED


def refusal(code: str, message: str, hint: str) -> InvalidError:
    """Return one problem, whose place the reader adds."""
    return InvalidError([Problem(code=code, message=message, hint=hint)])
