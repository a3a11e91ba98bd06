"""Files written whole or not at all: new ones, and ones in place of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import files_of
from uwfgit.errors import InvalidError, StoreError
from uwfgit.store.files import write_new, write_over


def test_a_file_is_written_with_its_folders_and_mode(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "new"

    write_new(path, b"all of it\n", mode=0o750)

    assert path.read_bytes() == b"all of it\n"
    assert path.stat().st_mode & 0o777 == 0o750


def test_what_cannot_be_written_whole_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "new"

    with files_of(10), pytest.raises(StoreError) as caught:
        write_new(path, bytes(100), name="new")

    assert caught.value.message == "cannot write 'new': File too large"
    assert not path.exists()
    write_new(path, bytes(100))


@pytest.mark.parametrize("kind", ["file", "link"])
def test_nothing_is_written_over_what_is_there(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "new"
    if kind == "link":
        path.symlink_to("gone")
    else:
        path.write_text("mine")

    with pytest.raises(InvalidError) as caught:
        write_new(path, b"ours", name="new")

    assert caught.value.message == "'new' is there already"
    assert path.is_symlink() or path.read_text() == "mine"


@pytest.mark.parametrize("inside", ["new", "deeper/new"])
@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_is_no_folder_on_the_way_is_named(
    tmp_path: Path, kind: str, inside: str
) -> None:
    way = tmp_path / "way"
    if kind == "link":
        way.symlink_to("gone")
    else:
        way.write_text("mine")

    with pytest.raises(InvalidError) as caught:
        write_new(way / inside, b"ours", name="new")

    assert caught.value.message == f"cannot write 'new': '{way}' is not a folder"


@pytest.mark.parametrize("mode", [None, 0o600, 0o777])
def test_a_file_takes_the_place_of_another(tmp_path: Path, mode: int | None) -> None:
    path, usual = tmp_path / "in" / "file", tmp_path / "usual"
    path.parent.mkdir()
    path.write_text("before")
    usual.touch()

    write_over(path, b"after", mode=mode, fsync=True)

    wanted = usual.stat().st_mode & 0o777 if mode is None else mode
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("after", wanted)
    assert list(path.parent.iterdir()) == [path]


def test_what_there_is_no_room_for_leaves_all_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "in" / "file"
    path.parent.mkdir()
    path.write_text("before")

    with files_of(10), pytest.raises(OSError, match="File too large"):
        write_over(path, bytes(100))

    assert path.read_text() == "before"
    assert list(path.parent.iterdir()) == [path]
