from __future__ import annotations

import subprocess

import pytest

from tests.builders import git
from uwfgit.errors import InvalidError, LockedError
from uwfgit.store.care.config_edit import append_section
from uwfgit.store.handle import Store
from uwfgit.store.safety.config import read_config

ODD = 'a "b" \\ #c;  d'


def test_what_is_appended_reads_back_with_git_and_with_us(store: Store) -> None:
    config = store.path / "config"
    mode = config.stat().st_mode
    config.write_text(config.read_text().rstrip("\n"))

    append_section(
        config, "remote", "x.y", [("url", ODD), ("fetch", "a"), ("fetch", "b")]
    )

    assert git(store, "config", "remote.x.y.url").rstrip("\n") == ODD
    assert git(store, "config", "--get-all", "remote.x.y.fetch").split() == ["a", "b"]
    found = [
        entry.value
        for entry in read_config(config).entries
        if entry.section == "remote"
    ]
    assert found == [ODD, "a", "b"]
    assert config.stat().st_mode == mode
    assert git(store, "config", "uwf.format").strip() == "1"


@pytest.mark.parametrize("text", ["a\nb", "a\x00", "\x1b[2J"])
def test_control_characters_are_refused(store: Store, text: str) -> None:
    before = (store.path / "config").read_bytes()

    for name, value in ((text, "x"), ("x", text)):
        with pytest.raises(InvalidError):
            append_section(store.path / "config", "remote", name, [("url", value)])

    assert (store.path / "config").read_bytes() == before


@pytest.mark.slow
def test_a_config_that_git_holds_is_left_alone(store: Store) -> None:
    held = store.path / "config.lock"
    held.touch()

    with pytest.raises(LockedError):
        append_section(store.path / "config", "remote", "x", [("url", "y")])

    assert held.exists()
    held.unlink()
    with pytest.raises(subprocess.CalledProcessError):
        git(store, "config", "remote.x.url")
