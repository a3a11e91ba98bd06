from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from uwfgit.errors import InvalidError
from uwfgit.store.safety.config import read_config

_TEXT = r"""
# a comment \
; another
[core]
	bare = true
	logAllRefUpdates=always
[Core] # twice
	repositoryFormatVersion = 0 ; trailing
[remote "Origin"]
	url = https://example.org/x#y
	url = "https://example.org/x#y"
	fetch = +refs/heads/*:refs/remotes/origin/*
[remote "we\"ird\\ name"]
	url = " kept  spaces "
[uwf]
	flag
	empty =
	escaped = a\tb \"c\" \\ d
	inner = a   b
	trailing = x   ; comment
"""


def test_the_reading_is_gits_own(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(_TEXT)
    listed = subprocess.run(
        ["git", "config", "--file", str(file), "--list", "-z"],
        capture_output=True,
        check=True,
    ).stdout.decode()

    ours = [(entry.key, entry.value) for entry in read_config(file).entries]

    assert ours == [
        (key, value if found else None)
        for key, found, value in (
            item.partition("\n") for item in listed.split("\0") if item
        )
    ]


def test_an_entry_knows_its_line_and_how_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("\n[Core]\n\tsshCommand = x\n")

    (entry,) = read_config(file).entries

    assert (entry.key, entry.written, entry.line) == (
        "core.sshcommand",
        "Core.sshCommand",
        3,
    )


def test_includes_are_entries_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "more").write_text("[a]\nb = c\n")
    file = tmp_path / "config"
    file.write_text("[include]\npath = more\n")

    assert [entry.key for entry in read_config(file).entries] == ["include.path"]


def test_the_last_value_holds(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("[a]\nb = 1\n[c]\nb = x\n[a]\nB = 2\n")

    config = read_config(file)

    assert config.values == {"a.b": "2", "c.b": "x"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("key = value\n", 1, id="no section"),
        pytest.param("[a] b = c\n", 1, id="key beside its section"),
        pytest.param("[a]\nb = c \\\nd\n", 2, id="value over two lines"),
        pytest.param("[a]\nb = x\\q\n", 2, id="unknown escape"),
        pytest.param('[a]\nb = "x\n', 2, id="open quote"),
        pytest.param("[a\nb = x\n", 1, id="open section"),
        pytest.param("[a]\n1b = x\n", 2, id="key starts with a digit"),
        pytest.param("[a]\nb\x00 = x\n", 2, id="nul"),
        pytest.param("[a]\rb = x\n", 1, id="carriage return in a line"),
        pytest.param("[a]\nb = x\x1b[0m\n", 2, id="escape character"),
        pytest.param("\ufeff[a]\nb = x\n", 1, id="byte order mark"),
    ],
)
def test_what_is_not_plain_is_refused(tmp_path: Path, text: str, line: int) -> None:
    file = tmp_path / "config"
    file.write_bytes(text.encode())

    with pytest.raises(InvalidError) as caught:
        read_config(file)

    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == (str(file), line)
