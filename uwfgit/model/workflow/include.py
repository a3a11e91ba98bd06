"""Files that ``!include`` names; the only place that opens them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uwfgit.constants import YAML_MAX_BYTES
from uwfgit.errors import InvalidError, Problem
from uwfgit.model.yaml.core import Included
from uwfgit.store.safety.plainfile import read_start

_PARSED: Final = frozenset({".json", ".yaml", ".yml"})
_MAX_CHAIN: Final = 20
_POINTER: Final = b"version https://git-lfs.github.com/spec/"
_CONFLICT = re.compile(
    rb"^<{7} [^\n]*\n(?:[^\n]*\n)*?={7}\r?\n(?:[^\n]*\n)*?>{7} ", re.MULTILINE
)
_FENCE = re.compile(rb"^[ \t]*(?:```|~~~)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryIncludes:
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
            nested=nested if path.suffix.lower() in _PARSED else None,
        )

    def _resolve(self, target: str) -> Path:
        if not target.strip() or "\0" in target:
            raise _refusal("Y12", "'!include' names no file", "write !include FILE")
        try:
            path = (self.directory / target).resolve()
        except (OSError, RuntimeError) as exc:
            hint = "check the path and its symlinks"
            raise _refusal("Y12", f"cannot include '{target}'", hint) from exc
        if Path(target).is_absolute() or not path.is_relative_to(self.directory):
            raise _refusal(
                "Y13",
                f"'{target}' leads out of the including file's directory",
                "include files of that directory, by a relative path",
            )
        self._check_chain(path)
        return path

    def _check_chain(self, path: Path) -> None:
        if path in self.chain:
            names = [each.name for each in self.chain[self.chain.index(path) :]]
            circle = " → ".join((*names, path.name))
            hint = "remove one of these includes"
            raise _refusal("Y14", f"include cycle: {circle}", hint)
        if len(self.chain) >= _MAX_CHAIN:
            message = f"includes nested deeper than {_MAX_CHAIN} files"
            raise _refusal("Y14", message, "include fewer files from included ones")


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
    real = path.resolve()
    return DirectoryIncludes(
        directory=real.parent,
        shown=(shown or path).parent,
        chain=(real,),
        on_file=on_file,
    )


def _read_file(path: Path, target: str) -> bytes:
    try:
        content = read_start(path, most=YAML_MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as exc:
        hint = f"make the file, or fix the path; looked for {path.name} beside this one"
        raise _refusal("Y12", f"included file '{target}' not found", hint) from exc
    except OSError as exc:
        if path.exists() and not path.is_file():
            hint = "include one file"
            raise _refusal("Y15", f"'{target}' is not a regular file", hint) from exc
        message = f"cannot read '{target}': {exc.strerror}"
        raise _refusal("Y15", message, "check its permissions") from exc
    if len(content) > YAML_MAX_BYTES:
        raise _refusal("Y3", f"'{target}' is larger than 1 MiB", "make it smaller")
    broken = find_git_marks(content)
    if broken is not None:
        message, hint, line = broken
        raise _refusal("Y17", f"'{target}', line {line}: {message}", hint)
    return content


def find_git_marks(content: bytes) -> tuple[str, str, int] | None:
    """Find what git left in a file's place, and no person wrote.

    Returns:
        What it is, what to do about it, and its line; ``None`` where there is none.
    """
    if content.startswith(_POINTER):
        hint = "run: git lfs pull"
        return "it is a pointer of Git LFS, and not the text itself", hint, 1
    conflict = _CONFLICT.search(content)
    # Text about conflicts shows them in a code block.
    if conflict is None or len(_FENCE.findall(content, 0, conflict.start())) % 2:
        return None
    line = content.count(b"\n", 0, conflict.start()) + 1
    return "it has marks of a merge conflict", "resolve the conflict", line


def _refusal(code: str, message: str, hint: str) -> InvalidError:
    return InvalidError([Problem(code=code, message=message, hint=hint)])
