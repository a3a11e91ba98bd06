"""Git heard while it runs."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from uwfgit.errors import StoreError
from uwfgit.store.git.streaming import pass_to_git, stream_git
from uwfgit.store.handle import Store


def test_lines_of_standard_error_come_one_by_one(store: Store) -> None:
    lines: list[str] = []

    done = stream_git(
        ["rev-parse", "nowhere"],
        git_dir=store.path,
        environment=os.environ,
        on_line=lines.append,
    )

    assert done.code == 128
    assert lines
    assert done.complaint == lines[-1]


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


def test_of_a_flood_the_last_lines_are_kept(store: Store) -> None:
    script = (
        "!yes $(head -c 1000 /dev/zero | tr '\\0' x) | head -n 20000 >&2; echo end >&2"
    )

    done = stream_git(
        ["-c", f"alias.x={script}", "x"],
        git_dir=store.path,
        environment=os.environ,
        on_line=lambda _: None,
    )

    assert done.complaint == "end"
    assert len(done.stderr) < 200_000


def test_a_line_without_an_end_comes_in_pieces(store: Store) -> None:
    lines: list[str] = []
    script = "!head -c 3000000 /dev/zero >&2"

    stream_git(
        ["-c", f"alias.x={script}", "x"],
        git_dir=store.path,
        environment=os.environ,
        on_line=lines.append,
    )

    assert sum(map(len, lines)) == 3_000_000
    assert max(map(len, lines)) <= 2 * 65_536


def test_more_output_than_allowed_is_an_error(store: Store) -> None:
    args = ["-c", "alias.x=!yes", "x"]

    with pytest.raises(StoreError, match="more than 1,000 bytes"):
        stream_git(
            args,
            git_dir=store.path,
            environment=os.environ,
            on_line=print,
            most_bytes=1000,
        )


# Waits until there is a file, a minute at most.
UNTIL = "for i in $(seq 600); do [ -e {told} ] && break; sleep 0.1; done"
LATE = f"({UNTIL}; echo late >&2; echo later >&2) &"


def test_what_outlives_a_git_that_was_ended_is_not_heard(
    store: Store, tmp_path: Path
) -> None:
    late = LATE.format(told=tmp_path / "told")
    lines: list[str] = []
    before = threading.active_count()

    with pytest.raises(StoreError):
        stream_git(
            ["-c", f"alias.x=!{late} yes", "x"],
            git_dir=store.path,
            environment=os.environ,
            on_line=lines.append,
            most_bytes=1000,
        )

    (tmp_path / "told").touch()
    # An exception in a thread is one here, too.
    assert await_threads(before)
    assert lines == []


def test_an_interrupt_ends_listening(store: Store, tmp_path: Path) -> None:
    late = LATE.format(told=tmp_path / "told")
    lines: list[bytes] = []
    before = threading.active_count()

    def stop(_: bytes) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pass_to_git(
            ["-c", f"alias.x=!{late} echo out; exit", "x"],
            git_dir=store.path,
            environment=os.environ,
            stdout=stop,
            stderr=lambda line, _: lines.append(line),
        )

    (tmp_path / "told").touch()
    assert await_threads(before)
    assert lines == []


def await_threads(count: int) -> bool:
    deadline = time.monotonic() + 60
    while threading.active_count() > count and time.monotonic() < deadline:
        time.sleep(0.05)
    return threading.active_count() <= count


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param("a\\nb", [(b"a", b"\n"), (b"b", b"")], id="no-end"),
        pytest.param("a\\rb\\n", [(b"a", b"\r"), (b"b", b"\n")], id="return"),
        pytest.param(
            "a\\r\\n\\nb\\n", [(b"a", b"\r\n"), (b"", b"\n"), (b"b", b"\n")], id="pair"
        ),
    ],
)
def test_passing_on_tells_lines_and_how_they_ended(
    store: Store, said: str, expected: list[tuple[bytes, bytes]]
) -> None:
    heard: list[tuple[bytes, bytes]] = []
    printed: list[bytes] = []

    code = pass_to_git(
        ["-c", f"alias.x=!printf '{said}' >&2; echo out; exit 3 #", "x"],
        git_dir=store.path,
        environment=os.environ,
        stdout=printed.append,
        stderr=lambda line, end: heard.append((line, end)),
    )

    assert (code, heard, printed) == (3, expected, [b"out\n"])


def test_a_pair_that_comes_apart_is_one_end(store: Store, tmp_path: Path) -> None:
    heard: list[tuple[bytes, bytes]] = []
    told = tmp_path / "told"
    script = f"!printf 'a\\r' >&2; {UNTIL.format(told=told)}; printf '\\nb\\n' >&2 #"

    def hear(line: bytes, end: bytes) -> None:
        heard.append((line, end))
        told.touch()

    pass_to_git(
        ["-c", f"alias.x={script}", "x"],
        git_dir=store.path,
        environment=os.environ,
        stderr=hear,
    )

    assert heard == [(b"a", b"\r"), (b"b", b"\n")]


def test_without_git_there_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError):
        stream_git(
            ["version"],
            git_dir=store.path,
            environment={"PATH": "/nowhere"},
            on_line=print,
        )
