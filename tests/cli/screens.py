"""The program in a process of its own, on a terminal or in pipes, and what got out."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
import termios
import time
import traceback
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uwfgit.cli.frame.app import main

SECONDS: Final = 60.0
"""After which a run is ended and has failed; what none comes near to."""

_OWN: Final = re.compile(r"\x1b\[(?:0|2|3[1-6])m|\r\x1b\[K|\x1b\[K[\r\n]")
"""What uwf writes itself: its colours, and what clears a line of progress."""
_BIDI: Final = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
_SIGNS: Final = re.compile(
    "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd]"
)
"""Of the format characters, those that are seen."""
_HIEROGLYPHS: Final = range(0x13430, 0x13440)
"""And those that put hieroglyphs together."""
_JOINERS: Final = "\u200c\u200d"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a run put out; on a terminal both streams are ``out``."""

    code: int
    out: str
    err: str = ""


def list_unsafe(text: str, *, own: bool = False) -> set[str]:
    """Find what moves a cursor, hides, reorders or is not seen, and so may not get out.

    Args:
        own: Leave aside what uwf itself writes on a terminal.
    """
    rest = _OWN.sub("", text) if own else text
    return {char for char in set(rest) if is_unsafe(char)}


def is_unsafe(char: str) -> bool:
    """Tell it by what Unicode says of the character."""
    if char in "\n\t" or char in _JOINERS or ord(char) in _HIEROGLYPHS:
        return False
    category = unicodedata.category(char)
    is_mark = category == "Cf" and not _SIGNS.match(char)
    return (
        category in {"Cc", "Cs", "Zl", "Zp"}
        or unicodedata.bidirectional(char) in _BIDI
        or is_mark
    )


def on_terminal(
    *words: str, typed: bytes = b"", columns: int = 100, pager: str = "cat"
) -> Seen:
    """Call the program on a terminal that is its controlling one."""
    pid, master = pty.fork()
    _make_plain(1 if pid == 0 else master)
    if pid == 0:
        os.environ.update(PAGER=pager, TERM="xterm", COLUMNS=str(columns), LINES="24")
        os.environ.pop("MANPAGER", None)
        _call(words)
    if typed:
        os.write(master, typed)
    data = _read(pid, {master: bytearray()})
    return Seen(code=_wait(pid), out=data[master].decode())


def in_pipes(*words: str, stdin: bytes = b"") -> Seen:
    """Call the program with a pipe for each stream."""
    ends = [os.pipe() for _ in range(3)]
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for number, (reading, writing) in enumerate(ends):
            os.dup2(writing if number else reading, number)
        os.closerange(3, 256)
        _call(words)
    (source, feed), (out, out_there), (err, err_there) = ends
    for descriptor in (source, out_there, err_there):
        os.close(descriptor)
    os.write(feed, stdin)
    os.close(feed)
    data = _read(pid, {out: bytearray(), err: bytearray()})
    return Seen(code=_wait(pid), out=data[out].decode(), err=data[err].decode())


def _make_plain(terminal: int) -> None:
    """Let a terminal hand on what is written, and not what is typed."""
    mode = termios.tcgetattr(terminal)
    mode[1] &= ~termios.OPOST
    mode[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, mode)


def _call(words: tuple[str, ...]) -> None:
    """Be the program; never returns."""
    code = 70
    try:
        for name, number, mode in (("in", 0, "r"), ("out", 1, "w"), ("err", 2, "w")):
            stream = open(number, mode, closefd=False)  # noqa: SIM115 - a descriptor
            setattr(sys, f"std{name}", stream)
            setattr(sys, f"__std{name}__", stream)
        code = main(list(words))
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - this process is the program's
        traceback.print_exc()
    finally:
        os._exit(code)


def _read(pid: int, ends: dict[int, bytearray]) -> dict[int, bytearray]:
    waiting, deadline = set(ends), time.monotonic() + SECONDS
    while waiting:
        ready, _, _ = select.select([*waiting], [], [], deadline - time.monotonic())
        if not ready or time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
            raise AssertionError(f"took more than {SECONDS} s: {ends}")
        for descriptor in ready:
            try:
                data = os.read(descriptor, 65_536)
            except OSError:
                # The other end of a terminal is closed.
                data = b""
            ends[descriptor] += data
            if not data:
                waiting.discard(descriptor)
                os.close(descriptor)
    return ends


def _wait(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def write_program(path: Path, text: str) -> str:
    """Write a program; give its path."""
    path.write_text(text)
    path.chmod(0o700)
    return str(path)


Run = Callable[..., Seen]
