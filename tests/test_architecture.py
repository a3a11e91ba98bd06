"""What docs/architecture.md names is there, and the package is as it says."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

import uwfgit
from uwfgit.model.thread.event import EventName
from uwfgit.store.layout import (
    HEAD_REF,
    KEEP_REF,
    THREAD_PREFIX,
    TRASH_PREFIX,
    WORKFLOW_PREFIX,
)
from uwfgit.store.refs import REMOTES_PREFIX
from uwfgit.sync.exchange.remotes import APPROVED_PREFIX

_MODULES = 16
_LINES = 450
_ONCE = 0.3
"""Of all functions, those that are private and used in one place alone."""
TEXT = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text("utf-8")


def first_cells() -> str:
    """Give the first cell of each row of its tables."""
    return "\n".join(re.findall(r"^\| ([^|]+) \|", TEXT, re.MULTILINE))


@pytest.mark.parametrize("event", get_args(EventName))
def test_each_event_stands_in_its_table(event: str) -> None:
    assert re.search(rf"\b{event}\b", first_cells())


@pytest.mark.parametrize(
    "prefix",
    [
        HEAD_REF,
        KEEP_REF,
        THREAD_PREFIX,
        WORKFLOW_PREFIX,
        TRASH_PREFIX,
        APPROVED_PREFIX,
        REMOTES_PREFIX,
    ],
)
def test_each_kind_of_ref_stands_in_its_table(prefix: str) -> None:
    assert f"`{prefix}" in first_cells()


def test_each_place_it_names_is_there() -> None:
    package = Path(uwfgit.__file__).parent
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", TEXT))

    assert named
    assert [name for name in sorted(named) if not (package / name).is_file()] == []


def test_each_package_stands_in_its_table() -> None:
    package = Path(uwfgit.__file__).parent
    rooms = TEXT.partition("## Rooms")[2].partition("## On disk")[0]
    folders = {
        path.parent.name
        for path in package.glob("*/*/__init__.py")
        if path.parent.parent.name != "examples"
    }

    assert [name for name in sorted(folders) if f"{name}/" not in rooms] == []


def test_no_folder_holds_more_modules_than_a_reader_can_keep_in_mind() -> None:
    package = Path(uwfgit.__file__).parent
    counts = {
        str(folder.relative_to(package)): len(list(folder.glob("*.py")))
        for folder in {path.parent for path in package.rglob("*.py")}
    }

    assert {name: count for name, count in counts.items() if count > _MODULES} == {}


def test_no_module_is_too_long_to_read_in_one_go() -> None:
    package = Path(uwfgit.__file__).parent
    lengths = {
        str(path.relative_to(package)): len(path.read_text("utf-8").splitlines())
        for path in package.rglob("*.py")
    }

    assert {name: count for name, count in lengths.items() if count > _LINES} == {}


def test_few_functions_are_private_and_used_once() -> None:
    package = Path(uwfgit.__file__).parent
    uses: list[int] = []
    for path in package.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        names = Counter(node.id for node in nodes if isinstance(node, ast.Name))
        names += Counter(node.attr for node in nodes if isinstance(node, ast.Attribute))
        # What others may use counts as used often.
        uses += [
            names[node.name] if re.match("_[^_]", node.name) else 2
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]

    once = [count for count in uses if count < 2]
    assert len(once) / len(uses) < _ONCE


def test_one_module_imports_pygit2() -> None:
    package = Path(uwfgit.__file__).parent
    found = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"^ *(import|from) pygit2", path.read_text("utf-8"), re.MULTILINE)
    ]

    assert found == ["store/libgit2.py"]
