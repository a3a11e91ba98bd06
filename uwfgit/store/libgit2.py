"""pygit2, as the modules of this room import it.

Its import reads all certificates of the computer, a sixth of a short command's time.
The program leaves every network to git, so it reads none. The user of the library may
well fetch with pygit2; there nothing is changed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

_PROGRAM = "uwfgit.cli.start"
_NO_CERTIFICATES = {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.sep}
"""A file that is none, and a folder, of which nothing is read before it is needed."""


@contextmanager
def _without_certificates() -> Iterator[None]:
    given = {name: os.environ.get(name) for name in _NO_CERTIFICATES}
    os.environ.update(_NO_CERTIFICATES)
    try:
        yield
    finally:
        for name, value in given.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


with _without_certificates() if _PROGRAM in sys.modules else nullcontext():
    import pygit2
    from pygit2.enums import RepositoryOpenFlag

__all__ = ["RepositoryOpenFlag", "pygit2"]
