from __future__ import annotations

import os
from pathlib import Path

from uwfgit.store.private import write_private


def test_a_private_file_is_the_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o666)
    before = os.umask(0)
    try:
        write_private(path, "new")
    finally:
        os.umask(before)

    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600
