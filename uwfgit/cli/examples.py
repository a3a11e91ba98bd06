"""Where the packaged examples are: in the wheel, else beside the source folder."""

from __future__ import annotations

from pathlib import Path

import uwfgit
from uwfgit.errors import NotFoundError


def find_examples() -> Path:
    """Give the folder of the examples.

    Raises:
        NotFoundError: This installation has none.
    """
    package = Path(uwfgit.__file__).parent
    for folder in (package / "examples", package.parent / "examples"):
        if (folder / "solve-issue.yaml").is_file():
            return folder
    raise NotFoundError("folder", "examples", hint="install uwfgit again")
