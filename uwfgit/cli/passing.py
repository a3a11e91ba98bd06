"""Git's own output on the user's streams: shown on a terminal, as it is in a pipe.

git prints names, messages, contents and what a remote says as they came. So each
of our streams that is a terminal gets them through ``screen`` only, and git's
pager and colours, which would pass that by, stay off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from uwfgit.cli.output import Output, talk_git, talk_width, write
from uwfgit.cli.screen import shown_lines

if TYPE_CHECKING:
    from uwfgit.store.gitcmd import Hear


def run_shown(
    output: Output,
    words: Sequence[str],
    store: Path,
    *,
    environment: Mapping[str, str],
    is_live: bool = False,
) -> int:
    """Run git in the store for the user; give what it exits with.

    Args:
        is_live: Show on a terminal what git prints while it runs; else all of it
            at its end, through the pager when it is long.

    Raises:
        StoreError: There is no git binary.
    """
    from uwfgit.store.gitcmd import pass_to_git

    printed: list[bytes] = []
    sink = _show if is_live else printed.append
    code = pass_to_git(
        words,
        git_dir=store,
        environment=environment,
        stdout=None if output.width is None else sink,
        stderr=_talker(),
    )
    if printed:
        output.emit_document(shown_lines(b"".join(printed).decode(errors="replace")))
    return code


def _show(data: bytes) -> None:
    write(shown_lines(data.decode(errors="replace")))


def _talker() -> Hear | None:
    # Also with -q, which is no word of git's: its errors are no notes of ours.
    width = talk_width(quiet=False)
    if width is None:
        return None

    def tell(line: bytes, end: bytes) -> None:
        talk_git(line.decode(errors="replace"), width, is_over=end == b"\r")

    return tell
