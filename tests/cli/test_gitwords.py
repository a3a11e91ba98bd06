"""What git's words mean, by the user's real git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.builders import git
from uwfgit.cli.store.git_output import GitWords, read_words
from uwfgit.errors import UsageError
from uwfgit.store.handle import Store

NEWER = '[alias "zz"]\n\tcommand = send-pack\n'


def read(store: Store, *words: str) -> GitWords:
    return read_words(words, store=store.path, environment=os.environ)


@pytest.mark.parametrize(
    ("words", "options", "command"),
    [
        pytest.param("log -1", "", "log -1", id="plain"),
        pytest.param("-c a.b=c --no-pager log -c", "-c a.b=c --no-pager", "log -c"),
        pytest.param("--git-dir push log", "--git-dir push", "log", id="value"),
        pytest.param("--git-dir=x push", "--git-dir=x", "push", id="joined value"),
        pytest.param("--help push", "", "--help push", id="help"),
        pytest.param("--exec-path", "--exec-path", "", id="no command"),
        pytest.param("-c", "-c", "", id="cut"),
    ],
)
def test_the_command_is_told_from_gits_options(
    store: Store, words: str, options: str, command: str
) -> None:
    found = read(store, *words.split())

    assert found.options == tuple(options.split())
    assert found.command == found.meant == tuple(command.split())


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        pytest.param("log --format='%h %s'", ["log", "--format=%h %s", "-1"]),
        pytest.param("-p log", ["log", "-1"], id="options"),
        pytest.param("'log", ["zz", "-1"], id="bad"),
        pytest.param("zz", ["zz", "-1"], id="itself"),
    ],
)
def test_an_alias_is_what_it_stands_for(
    store: Store, value: str, meant: list[str]
) -> None:
    assert [*read(store, "-c", f"alias.zz={value}", "zz", "-1").meant] == meant


def test_the_newer_way_to_write_an_alias_counts_too(
    store: Store, tmp_path: Path
) -> None:
    file = tmp_path / "aliases"
    file.write_text(NEWER)
    git(store, "config", "--global", "include.path", str(file))

    with pytest.raises(UsageError):
        read(store, "zz")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("push", (True, False)),
        pytest.param("subtree push --prefix=x", (True, False)),
        pytest.param("push --no-veri", (True, True)),
        pytest.param("push --no-verbose", (True, False)),
        pytest.param("fetch", (False, False)),
    ],
)
def test_a_push_and_one_without_its_scan_are_known(
    store: Store, words: str, expected: tuple[bool, bool]
) -> None:
    found = read(store, *words.split())

    assert (found.is_push, found.is_unscanned) == expected


def test_every_command_of_gits_that_sends_is_refused(store: Store) -> None:
    listed = subprocess.run(
        ["git", "--list-cmds=builtins,main"], check=True, capture_output=True, text=True
    )
    words = ("send", "upload-", "daemon", "remote-", "http-backend", "http-push")
    senders = [name for name in listed.stdout.split() if name.startswith(words)]

    for name in senders:
        with pytest.raises(UsageError) as caught:
            read(store, name)
        assert caught.value.hint
    assert {"send-pack", "upload-pack"} <= {*senders}
