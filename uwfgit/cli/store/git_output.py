"""What the words behind ``uwf git`` make git do, and what of that is refused.

Objects leave by a push, which the store's hook scans, and by nothing else.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from uwfgit.cli.frame.output import Output, talk_git, talk_width, write
from uwfgit.cli.frame.screen import paint_log, shown_lines
from uwfgit.errors import UsageError

if TYPE_CHECKING:
    from uwfgit.store.git.streaming import Hear


_PLAIN: Final = frozenset({"--no-color", "--color=never"})
"""Words by which git is asked for no colours."""


def run_shown(
    output: Output,
    words: Sequence[str],
    store: Path | None,
    *,
    environment: Mapping[str, str],
    is_live: bool = False,
    root: Path | None = None,
) -> int:
    """Run git in the store for the user; give what it exits with.

    Args:
        root: A work tree of the user's own to run it in, in place of the store.
        is_live: Show on a terminal what git prints while it runs; else all of it
            at its end, through the pager when it is long.

    Raises:
        StoreError: There is no git binary.
    """
    from uwfgit.store.git.streaming import pass_to_git

    printed: list[bytes] = []
    sink = _show if is_live else printed.append
    code = pass_to_git(
        words,
        git_dir=store,
        root=root,
        environment=environment,
        stdout=None if output.width is None else sink,
        stderr=_talker(),
    )
    if printed:
        text = shown_lines(b"".join(printed).decode(errors="replace"))
        is_colored = output.is_colored and _PLAIN.isdisjoint(words)
        output.emit_document(paint_log(text) if is_colored else text)
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


_WITH_VALUE: Final = frozenset(
    {
        "-C",
        "-c",
        "--attr-source",
        "--config-env",
        "--git-dir",
        "--namespace",
        "--shallow-file",
        "--super-prefix",
        "--work-tree",
    }
)
"""Options of git itself whose value is the next word."""
_AS_COMMAND: Final = frozenset({"--help", "-h", "--version", "-v"})
"""Options that are commands: what follows them is theirs."""
_PUSH: Final = "uwf push scans it first, and so does uwf git push"
_SERVE: Final = "uwf push to a repository that others fetch from"
_MAIL: Final = "uwf push, or uwf bundle create FILE THREAD..."
_WAYS: Final = {
    "http-push": _PUSH,
    "send-pack": _PUSH,
    "imap-send": _MAIL,
    "send-email": _MAIL,
    "cvsserver": _SERVE,
    "daemon": _SERVE,
    "http-backend": _SERVE,
    "instaweb": _SERVE,
    "shell": _SERVE,
    "upload-archive": _SERVE,
    "upload-archive--writer": _SERVE,
    "upload-pack": _SERVE,
}
"""A command that sends what nothing scanned, and how uwf does the same."""


class GitWords(Struct, frozen=True, kw_only=True):
    """The words git gets, and the command they are when aliases are resolved."""

    options: tuple[str, ...]
    command: tuple[str, ...]
    meant: tuple[str, ...]

    @property
    def name(self) -> str:
        """The command that is meant; empty for none."""
        return self.meant[0] if self.meant else ""

    @property
    def is_push(self) -> bool:
        """Whether something may be pushed: by ``subtree``, too."""
        return "push" in self.meant

    @property
    def is_unscanned(self) -> bool:
        """Whether git is told to leave its hook out; it takes a part of the word."""
        return any(
            len(word) > len("--no-ver") and "--no-verify".startswith(word)
            for word in self.meant
        )


def read_words(
    words: Sequence[str], *, store: Path, environment: Mapping[str, str]
) -> GitWords:
    """Split git's words, and resolve the aliases git would.

    Raises:
        UsageError: It is an alias for a shell, or sends what nothing scanned.
        StoreError: There is no git binary.
    """
    at = _find_command(words)
    options, command = tuple(words[:at]), tuple(words[at:])
    aliases = _read_aliases(options, store, environment) if command else {}
    meant = _resolve(command, aliases, environment)
    _require_scanned(meant)
    return GitWords(options=options, command=command, meant=meant)


def _find_command(words: Sequence[str]) -> int:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] in _AS_COMMAND:
            break
        at += 2 if words[at] in _WITH_VALUE else 1
    return min(at, len(words))


def _read_aliases(
    options: Sequence[str], store: Path, environment: Mapping[str, str]
) -> dict[str, str]:
    from uwfgit.store.git.gitcmd import run_git

    done = run_git(
        [*options, "config", "--null", "--get-regexp", r"^alias\."],
        git_dir=store,
        environment=environment,
    )
    found = (entry.partition("\n") for entry in done.text.split("\0"))
    return {key.removeprefix("alias."): value for key, _, value in found}


def _resolve(
    command: tuple[str, ...],
    aliases: Mapping[str, str],
    environment: Mapping[str, str],
) -> tuple[str, ...]:
    seen = set[str]()
    while command and command[0] not in seen:
        name = command[0]
        # "[alias "x"] command = ..." is the newer way to write it.
        value = aliases.get(name.lower(), aliases.get(f"{name}.command"))
        if value is None or name in _list_commands(environment):
            break
        if value.lstrip().startswith("!"):
            raise UsageError(
                f"'{name}' is an alias for a shell command, which is not looked into",
                hint="write the git command itself",
            )
        seen.add(name)
        try:
            first = shlex.split(value)
        except ValueError:
            # git will say that it is a bad alias.
            break
        command = (*first[_find_command(first) :], *command[1:])
    return command


def _list_commands(environment: Mapping[str, str]) -> frozenset[str]:
    """Return git's own commands, for which it knows no aliases."""
    from uwfgit.store.git.gitcmd import run_git

    words = ["--list-cmds=builtins,main,others"]
    done = run_git(words, git_dir=None, environment=environment)
    return frozenset(done.text.split())


def _require_scanned(meant: Sequence[str]) -> None:
    name = meant[0] if meant else ""
    way = _WAYS.get(name)
    if name.startswith("remote-"):
        way = _PUSH
    elif name == "bundle":
        does = next((word for word in meant[1:] if not word.startswith("-")), None)
        if does == "create":
            name, way = "bundle create", "uwf bundle create FILE THREAD..."
    if way is not None:
        raise UsageError(
            f"'git {name}' gives away what nothing scanned for secrets", hint=way
        )
