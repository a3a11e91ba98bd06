"""What stands in a work tree is read within bounds, whatever it is."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from uwfgit.store.files import read_plain, read_start


def test_a_file_is_read_whole_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")

    assert read_plain(tmp_path / "link", most=7) == b"content"
    assert read_start(tmp_path / "link", most=3) == b"con"


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/null", "pipe"])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, target: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(target)

    with pytest.raises(OSError, match="it is not a regular file"):
        read_plain(tmp_path / "link", most=100)


def test_a_folder_is_refused_as_the_system_does(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_plain(tmp_path, most=100)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    os.truncate(file, 8 * 2**30)

    with pytest.raises(OSError, match="larger than 1 MiB") as told:
        read_plain(file, most=2**20)

    assert told.value.errno == errno.EFBIG


def test_a_pipe_of_the_shell_is_read_by_its_descriptor() -> None:
    read, write = os.pipe()
    try:
        os.write(write, b"content")
        os.close(write)

        assert read_plain(Path(f"/dev/fd/{read}"), most=100) == b"content"
    finally:
        os.close(read)


def test_what_the_user_named_may_be_endless_and_is_bounded() -> None:
    with pytest.raises(OSError, match="larger than 1 MiB"):
        read_plain(Path("/dev/zero"), most=2**20, any_kind=True)
