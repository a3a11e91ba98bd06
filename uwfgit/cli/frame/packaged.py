"""Files that come with the product beside its code: examples and hooks."""

from __future__ import annotations

from pathlib import Path

import uwfgit
from uwfgit.errors import NotFoundError


def find_packaged(folder: str, name: str) -> Path:
    """Return such a file: in the wheel, else beside the source folder.

    Raises:
        NotFoundError: This installation lacks it.
    """
    package = Path(uwfgit.__file__).parent
    for place in (package, package.parent):
        path = place / folder / name
        if path.is_file():
            return path
    raise NotFoundError("file", f"{folder}/{name}", hint="install uwfgit again")
