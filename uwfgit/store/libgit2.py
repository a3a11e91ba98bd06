"""pygit2, as the modules of this room import it.

Its import loads Python's TLS to ask where the computer's certificates are, and reads
them all: a fifth of a short command's time. The program leaves every network to git, so
it tells pygit2 of none. The user of the library may well fetch with pygit2; there
nothing is changed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

_PROGRAM = "uwfgit.cli.start"
_NO_CERTIFICATES = {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.sep}
"""A file that is none, and a folder, of which nothing is read before it is needed."""


class _Places(NamedTuple):
    cafile: str | None = None
    capath: str | None = os.sep


class _NoTls(ModuleType):
    """Answers what pygit2 asks of ``ssl``; whatever else is asked, ``ssl`` itself."""

    DefaultVerifyPaths = _Places
    get_default_verify_paths = _Places

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as it is there
        if name.startswith("__"):
            # The import system's own question.
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def _without_certificates() -> Iterator[None]:
    given = {name: os.environ.get(name) for name in _NO_CERTIFICATES}
    os.environ.update(_NO_CERTIFICATES)
    stand_in = _NoTls("ssl")
    sys.modules.setdefault("ssl", stand_in)
    try:
        yield
    finally:
        if sys.modules.get("ssl") is stand_in:
            del sys.modules["ssl"]
        for name, value in given.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


with _without_certificates() if _PROGRAM in sys.modules else nullcontext():
    import pygit2
    from pygit2.enums import RepositoryOpenFlag

__all__ = ["RepositoryOpenFlag", "pygit2"]
