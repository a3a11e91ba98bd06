"""Which processes there are, and whether a silent child is at work."""

from __future__ import annotations

import subprocess
from typing import Final

from msgspec import Struct, field

from uwfgit.agents.children import tree

_LOOKS: Final = 4
"""So many looks at a child in the time it may be silent."""
_LEAST_SECONDS: Final = 0.1
_BUSY: Final = 0.05
"""Part of a processor that tells work from a program that waits."""
_MOST: Final = 4
"""So many times the allowed silence is the end even for one that computes."""
_PS: Final = ("ps", "-A", "-o", tree.PS_COLUMNS)


def read_processes() -> tree.Table:
    """List all live processes, by files or by ``ps``."""
    if tree.has_proc():
        return tree.read_table()
    try:
        done = subprocess.run(_PS, capture_output=True, text=True, check=False)  # noqa: S603 - constant words
    except OSError:
        # Without it the child's own group is still reached.
        return {}
    return tree.parse_ps(done.stdout)


class Vitals(Struct, kw_only=True):
    """Looks at a child's processes now and then while it is silent.

    Work is processor time used by the child or by what it started, or a process
    that came or went. A child that spins is found out after four times ``idle``.
    """

    pid: int
    idle: float
    _looked_at: float = 0.0
    _worked_at: float = 0.0
    _seconds: float = 0.0
    _processes: frozenset[tree.Process] = field(default_factory=frozenset)

    def find_silence(self, now: float, *, heard_at: float) -> float | None:
        """Return the silence that was reached, of those that are too long.

        Args:
            now: The monotonic time.
            heard_at: When it said something.
        """
        if now - heard_at >= _MOST * self.idle:
            return _MOST * self.idle
        if now - heard_at < self.idle / _LOOKS:
            return None
        if now - self._looked_at >= max(self.idle / _LOOKS, _LEAST_SECONDS):
            self._look(now)
        rested = now - max(heard_at, self._worked_at)
        return self.idle if rested >= self.idle else None

    def _look(self, now: float) -> None:
        table = read_processes()
        members = frozenset(
            tree.find_members(table, root=self.pid, is_root_ours=True, also=())
        )
        seconds = sum(process.seconds for process in members)
        used = seconds - self._seconds
        is_first = not self._looked_at
        has_changed = members != self._processes
        if not is_first and (has_changed or used >= _BUSY * (now - self._looked_at)):
            self._worked_at = now
        self._looked_at, self._seconds, self._processes = now, seconds, members
