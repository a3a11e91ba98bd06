"""Ports of this machine that a test has for itself."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_port() -> Iterator[int]:
    """Hold a port for a server that is yet to listen there, and may come again.

    Bound and not listened on: a server that sets ``SO_REUSEADDR``, as servers do,
    gets it; whoever asks the system for any port does not.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        yield port
