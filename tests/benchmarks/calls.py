"""Count the functions and modules of ours that one command runs through.

``python tests/benchmarks/calls.py exec|get [--tree]`` prints a line a module,
or the tree of calls in the order of their first call. A function is counted once
and by its name, so what has none (a lambda, a comprehension) is not. The command
runs outside of a work tree, as the third of its kind in one process; ``get`` may be
counted in a work tree too, and of a node that nobody asked for before.
"""
# ruff: noqa: T201 - a program, it prints

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import uwfgit
from tests.cli.calls import REPLIES, WORKFLOW
from uwfgit.cli.frame.app import main

_PACKAGE = str(Path(uwfgit.__file__).parent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The first call of a function: how many of ours were above it."""

    module: str
    name: str
    depth: int


def count_exec(folder: Path) -> list[Call]:
    """Return what one step of ``thread exec`` with scripted replies runs."""
    _enter(folder)
    Path("ping.yaml").write_text(WORKFLOW, "utf-8")
    Path("replies.yaml").write_text(REPLIES, "utf-8")
    started = _run("thread", "start", "ping.yaml", "-p", "Write.", "-q", "--json")
    thread = json.loads(started)["threadId"]
    words = ("thread", "exec", thread, "--agent", "scripted:replies.yaml")
    _run(*words)
    _run(*words)
    return _count(words)


def count_get(
    folder: Path,
    *,
    in_tree: bool = False,
    is_new: bool = False,
) -> list[Call]:
    """Return what ``cas get`` of a node runs.

    Args:
        folder: An empty one.
        in_tree: The store is that of a repository whose work tree we are in.
        is_new: Nobody has asked for the node since it was put.
    """
    _enter(folder)
    if in_tree:
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    _run("cas", "get", _run("cas", "put", "text", '"first"', "-q").strip())
    words = ("cas", "get", _run("cas", "put", "object", '{"a": 1}', "-q").strip())
    if not is_new:
        _run(*words)
    return _count(words)


def _enter(folder: Path) -> None:
    """Go where no repository is, as somebody without settings of their own."""
    home = folder / "home"
    home.mkdir()
    os.chdir(folder)
    os.environ.update(
        HOME=str(home),
        UWF_HOME=str(home / ".uwf"),
        GIT_CEILING_DIRECTORIES=str(folder),
        GIT_CONFIG_NOSYSTEM="1",
        GIT_COMMITTER_NAME="Ada",
        GIT_COMMITTER_EMAIL="ada@example.com",
        GIT_AUTHOR_NAME="Ada",
        GIT_AUTHOR_EMAIL="ada@example.com",
    )


def _run(*words: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main(list(words))
    if code:
        raise SystemExit(f"{' '.join(words)} ended with {code}")
    return out.getvalue()


def _count(words: Sequence[str]) -> list[Call]:
    depth, seen = 0, dict[CodeType, Call]()

    def note(frame: FrameType, event: str, _arg: object) -> None:
        nonlocal depth
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            return
        if event == "call":
            if code not in seen and not code.co_name.startswith("<"):
                module = os.path.relpath(code.co_filename, _PACKAGE)
                call = Call(module=module, name=code.co_qualname, depth=depth)
                seen[code] = call
            depth += 1
        elif event == "return":
            depth -= 1

    sys.setprofile(note)
    try:
        _run(*words)
    finally:
        sys.setprofile(None)
    return list(seen.values())


def _print_modules(calls: Sequence[Call]) -> None:
    names = defaultdict[str, list[str]](list)
    for call in calls:
        names[call.module].append(call.name)
    for module, found in sorted(names.items()):
        print(f"{len(found):3} {module}  {' '.join(found)}")
    print(f"{len(calls)} functions in {len(names)} modules")


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("exec", "get"))
    parser.add_argument("--tree", action="store_true", help="the tree of calls")
    parser.add_argument("--inside", action="store_true", help="get: in a work tree")
    parser.add_argument("--new", action="store_true", help="get: of a new node")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if asked.command == "exec":
            calls = count_exec(Path(name))
        else:
            calls = count_get(Path(name), in_tree=asked.inside, is_new=asked.new)
        if asked.tree:
            for call in calls:
                print(f"{'  ' * call.depth}{call.name}  [{call.module}]")
        else:
            _print_modules(calls)


if __name__ == "__main__":
    _main()
