"""Two people, a bare repository between them, and its queue."""

from __future__ import annotations

from tests.sync.conftest import ada, bare, bob

__all__ = ["ada", "bare", "bob"]
