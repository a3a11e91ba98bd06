"""The examples that come with the product, as workflows to begin with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.cli.frame.packaged import find_packaged
from uwfgit.errors import NotFoundError
from uwfgit.spelling import find_similar

_FOLDER: Final = "examples"
_ANY: Final = "solve-issue.yaml"
"""One that is always there, to find the folder by."""
_INCLUDE: Final = re.compile(r"!include +([\w./-]+)")
_CHILD: Final = re.compile(r"^    workflow: +([a-z0-9-]+)$", re.MULTILINE)
_NAME: Final = re.compile(r"^name: .*$", re.MULTILINE)
_DESCRIPTION: Final = re.compile(r"^description: +(.+)$", re.MULTILINE)


class Example(Struct, frozen=True, kw_only=True):
    """A workflow of the product's own."""

    name: str
    description: str


def list_examples() -> list[Example]:
    """Return the examples by name.

    Raises:
        NotFoundError: This installation lacks them.
    """
    files = sorted(find_packaged(_FOLDER, _ANY).parent.glob("*.yaml"))
    examples = []
    for file in files:
        if ".replies" not in file.name:
            found = _DESCRIPTION.search(file.read_text("utf-8"))
            description = found[1] if found else ""
            examples.append(Example(name=file.stem, description=description))
    return examples


def example_files(example: str, *, name: str) -> Iterator[tuple[str, str]]:
    """Yield the files of an example, the workflow itself first, by their paths.

    Args:
        example: Which.
        name: What it is to be called.

    Raises:
        NotFoundError: There is no such example.
    """
    names = [each.name for each in list_examples()]
    if example not in names:
        near = find_similar(example, names)
        hint = f"did you mean '{near}'?" if near else "see: uwf workflow new --list"
        raise NotFoundError("example", example, hint=hint)
    folder = find_packaged(_FOLDER, _ANY).parent
    text = (folder / f"{example}.yaml").read_text("utf-8")
    yield f"{name}.yaml", _NAME.sub(f"name: {name}", text, count=1)
    seen = {example}
    yield from _needed(folder, text, seen)


def _needed(folder: Path, text: str, seen: set[str]) -> Iterator[tuple[str, str]]:
    for path in _INCLUDE.findall(text):
        if path not in seen:
            seen.add(path)
            yield path, (folder / path).read_text("utf-8")
    for child in _CHILD.findall(text):
        if child not in seen:
            seen.add(child)
            inner = (folder / f"{child}.yaml").read_text("utf-8")
            yield f"{child}.yaml", inner
            yield from _needed(folder, inner, seen)
