"""Git heard while it runs."""

from __future__ import annotations

import os

import pytest

from uwfgit.errors import StoreError
from uwfgit.store.gitcmd import stream_git
from uwfgit.store.repository import Store


def test_lines_of_standard_error_come_one_by_one(store: Store) -> None:
    lines: list[str] = []

    done = stream_git(
        ["hash-object", "--stdin-paths"],
        git_dir=store.path,
        environment=os.environ,
        on_line=lines.append,
        input=b"/nowhere\n",
    )

    assert done.code == 128
    assert lines
    assert done.complaint == lines[-1]


def test_input_and_output_of_any_size_go_through(store: Store) -> None:
    data = b"refs/heads/main\n" * 50_000

    done = stream_git(
        ["cat-file", "--batch-check=%(objectname)"],
        git_dir=store.path,
        environment=os.environ,
        on_line=print,
        input=data,
    )

    assert done.code == 0
    assert len(done.stdout.splitlines()) == 50_000


def test_a_git_that_stops_reading_is_no_failure_of_ours(store: Store) -> None:
    done = stream_git(
        ["rev-parse", "main"],
        git_dir=store.path,
        environment=os.environ,
        on_line=print,
        input=b"x" * 1_000_000,
    )

    assert done.code == 0


def test_progress_is_told_line_by_line(store: Store) -> None:
    lines: list[str] = []
    script = "!printf 'one\\rtwo\\n\\nthree' >&2"

    done = stream_git(
        ["-c", f"alias.x={script}", "x"],
        git_dir=store.path,
        environment=os.environ,
        on_line=lines.append,
    )

    assert (done.code, lines) == (0, ["one", "two", "three"])


def test_without_git_there_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError):
        stream_git(
            ["version"],
            git_dir=store.path,
            environment={"PATH": "/nowhere"},
            on_line=print,
        )
