"""What git itself says of the lines of a file.

It takes longest of all that ``why`` needs, so it is begun first: this module loads
little.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from uwfgit.code.blame.porcelain import Blame, parse_blame
from uwfgit.code.worktree import WorkTree
from uwfgit.errors import InvalidError

OPTIONS: Final = (
    "blame",
    "--porcelain",
    "--no-progress",
    "--no-textconv",
    "--ignore-revs-file=",
)


def blame_plainly(
    tree: WorkTree, path: str, lines: range | None, *, contents: Path | None = None
) -> Blame | None:
    """Say what git says of a file; ``None`` when no commit of HEAD has it.

    Args:
        contents: A file with the content asked about, where that is not the
            work tree's.

    Raises:
        InvalidError: git cannot say, as of lines that the file does not have.
    """
    words = [] if contents is None else [f"--contents={contents}"]
    if lines is not None:
        words.append(f"-L{lines.start},{lines.stop - 1}")
    done = tree.run([*OPTIONS, *words, "--", path])
    if done.code and tree.resolve(f"HEAD:{path}") is None:
        return None
    if done.code:
        said = done.complaint.removeprefix("fatal: ")
        raise InvalidError(f"git cannot tell: {said}")
    return parse_blame(done.stdout)
