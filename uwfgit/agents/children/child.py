"""A running child process: the only reader and writer of its pipes."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Final

from msgspec import Struct, field

from uwfgit.agents.children import tree
from uwfgit.agents.children.lines import Lines

STDERR_TAIL_BYTES: Final = 1024 * 1024

TICK: Final = 0.05
_CHUNK: Final = 65_536


class Child(Struct, kw_only=True):
    """A running child and what it has said.

    ``room`` is how much it may still say on stdout; what it said is kept in
    ``stdout`` unless only its lines are wanted. With ``stays_open`` its stdin is not
    closed when all was sent: more can be said, until it is hung up.
    """

    name: str
    process: subprocess.Popen[bytes]
    lines: Lines
    room: int
    keeps_stdout: bool = True
    stays_open: bool = False
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    heard_at: float = field(default_factory=time.monotonic)
    is_too_loud: bool = False
    warnings: list[str] = field(default_factory=list)
    members: set[tree.Process] = field(default_factory=set)
    _pipes: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _unsent: memoryview = field(default_factory=lambda: memoryview(b""))

    def listen(self, prompt: bytes) -> None:
        """Take over the pipes; the prompt goes as fast as the child reads it."""
        self._unsent = memoryview(prompt)
        self._register(self.process.stdout, selectors.EVENT_READ, self._hear)
        self._register(self.process.stderr, selectors.EVENT_READ, self._note)
        self._register(self.process.stdin, selectors.EVENT_WRITE, self._send)

    def say(self, data: bytes) -> None:
        """Send more, behind what is not sent yet; nothing to one that hung up."""
        stdin = self.process.stdin
        if stdin is None or stdin.closed:
            return
        is_sending = bool(self._unsent)
        self._unsent = memoryview(bytes(self._unsent) + data)
        if not is_sending and stdin not in self._pipes.get_map():
            self._pipes.register(stdin, selectors.EVENT_WRITE, self._send)

    def hang_up(self) -> None:
        """Close its stdin as soon as all is sent."""
        self.stays_open = False
        stdin = self.process.stdin
        if stdin is not None and not stdin.closed and not self._unsent:
            if stdin in self._pipes.get_map():
                self._pipes.unregister(stdin)
            stdin.close()

    def _register(
        self, pipe: IO[bytes] | None, event: int, move: Callable[[int], bool]
    ) -> None:
        if pipe is not None:
            os.set_blocking(pipe.fileno(), False)
            self._pipes.register(pipe, event, move)

    @property
    def is_speaking(self) -> bool:
        """Whether someone still holds one of its outputs open."""
        pipes = (self.process.stdout, self.process.stderr)
        return any(pipe is not None and not pipe.closed for pipe in pipes)

    def pump(self) -> None:
        """Move what can be moved; wait a moment for that, or for the end."""
        if not self._pipes.get_map():
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(TICK)
            return
        for key, _ in self._pipes.select(TICK):
            self.heard_at = time.monotonic()
            if not key.data(key.fd):
                self._pipes.unregister(key.fileobj)
                self._close_pipe(key.fd)

    def _close_pipe(self, descriptor: int | None = None) -> None:
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is None or pipe.closed:
                continue
            if descriptor in (None, pipe.fileno()):
                pipe.close()

    def _send(self, descriptor: int) -> bool:
        try:
            self._unsent = self._unsent[os.write(descriptor, self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return True
        except OSError:
            # EPIPE: the child does not read its prompt to the end, its own affair.
            return False
        if self._unsent or not self.stays_open:
            return bool(self._unsent)
        if self.process.stdin is not None:
            self._pipes.unregister(self.process.stdin)
        return True

    def _hear(self, descriptor: int) -> bool:
        chunk = os.read(descriptor, _CHUNK)
        self.is_too_loud = self.is_too_loud or len(chunk) > self.room
        kept = chunk[: self.room]
        self.room -= len(kept)
        if self.keeps_stdout:
            self.stdout += kept
        self.lines.feed(kept)
        self.is_too_loud = self.is_too_loud or self.lines.is_endless
        return bool(chunk)

    def _note(self, descriptor: int) -> bool:
        chunk = os.read(descriptor, _CHUNK)
        self.stderr += chunk
        del self.stderr[:-STDERR_TAIL_BYTES]
        return bool(chunk)

    def close(self) -> None:
        """Let go of the pipes; the child must have ended or been stopped."""
        self._pipes.close()
        self._close_pipe()
        self.process.poll()
        self.lines.finish()
