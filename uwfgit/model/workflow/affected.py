"""Which workflow files an edit concerns: the only place that maps parts to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from uwfgit.errors import UwfError
from uwfgit.model.workflow.include import follow_links, open_includes
from uwfgit.model.workflow.source import FOLDERS, is_replies, read_file
from uwfgit.model.yaml.core import read_yaml

_PATTERNS: Final = ("*.yaml", "*.yml", "*/index.yaml", "*/index.yml")


def list_folder(folder: Path) -> list[Path]:
    """List the workflow files of a folder.

    Replies of the agent scripted are none, and neither are hidden files: editors
    and file systems keep their own beside the ones a person wrote.
    """
    return sorted(
        file
        for pattern in _PATTERNS
        for file in folder.glob(pattern)
        if not is_replies(file)
        and not file.relative_to(folder).parts[0].startswith(".")
    )


def find_affected(edited: Iterable[Path]) -> tuple[Path, ...]:
    """Find the workflow files that are among edited files or include one.

    They are looked for in the workflow folders around each file, or beside it
    when there is none. A file that another workflow includes is a part of that
    one, and checked with it alone. An edited file may be gone.
    """
    paths = tuple(edited)
    files = {
        follow_links(file): file
        for folder in sorted({each for path in paths for each in _iter_folders(path)})
        for file in list_folder(folder)
        # A link that leads nowhere was to be one.
        if file.is_file() or (file.is_symlink() and not file.exists())
    }
    parts: dict[Path, set[Path]] = {}
    for real, file in files.items():
        # What is missing too. Whoever checks the file says what is wrong with it.
        parts[real] = set()
        with suppress(UwfError):
            includes = open_includes(file, on_file=parts[real].add)
            read_yaml(read_file(file), include=includes)
    touched = set(map(follow_links, paths))
    return tuple(
        sorted(
            file
            for real, file in files.items()
            if not _is_part(real, parts)
            and not touched.isdisjoint({real, *parts[real]})
        )
    )


def _iter_folders(path: Path) -> Iterator[Path]:
    found = [each for each in path.parents if each.name in FOLDERS]
    yield from found or [path.parent]


def _is_part(real: Path, parts: dict[Path, set[Path]]) -> bool:
    # Two files that include each other are both checked: that is an error.
    return any(
        real in included and other not in parts[real]
        for other, included in parts.items()
        if other != real
    )
