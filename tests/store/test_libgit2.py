"""pygit2 as the program and a user of the library get it."""

import os
import ssl
import subprocess
import sys
from typing import Final

import pytest

from uwfgit.ids import Oid
from uwfgit.store.handle import Store
from uwfgit.store.pack import Batch, ObjectKind
from uwfgit.store.raw import BLOB, name_object

_ASK = """
import os
import sys
{first}
before = dict(os.environ)
from uwfgit.store.libgit2 import pygit2
print(os.environ == before, pygit2.settings.ssl_cert_file, "_ssl" in sys.modules)
"""
_ASK_TLS = """
import sys
import uwfgit.cli.start
from uwfgit.store import libgit2
import ssl
print(ssl.OPENSSL_VERSION)
sys.modules["ssl"] = libgit2._NoTls("ssl")
from ssl import OPENSSL_VERSION
print(OPENSSL_VERSION)
import ssl
left = libgit2._NoTls("ssl")
print(left.OPENSSL_VERSION, sys.modules["ssl"] is ssl, sep="\\n")
"""


@pytest.mark.parametrize(
    ("first", "told"),
    [
        pytest.param("import uwfgit.cli.start", "True None False", id="the program"),
        pytest.param("import uwfgit", "True {file} True", id="a library"),
    ],
)
def test_certificates_are_read_for_users_of_the_library_alone(
    first: str, told: str
) -> None:
    ours = ssl.get_default_verify_paths().cafile

    done = subprocess.run(
        [sys.executable, "-c", _ASK.format(first=first)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == told.format(file=ours)


def test_the_programs_tls_is_pythons_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ASK_TLS], capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines() == [*[ssl.OPENSSL_VERSION] * 3, "True"]


_MAPPED: Final = """
import sys
from pathlib import Path
from uwfgit.store.handle import map_little
from uwfgit.store.raw import BLOB, RawObjects
if "little" in sys.argv:
    map_little()
objects = RawObjects(Path("objects"))
for name in sys.stdin.read().split():
    objects.read(name, BLOB, limit=1 << 20)
is_pack, mapped = False, 0
for line in Path("/proc/self/smaps").read_text().splitlines():
    first, *rest = line.split()
    if not first.endswith(":"):
        is_pack = line.endswith(".pack")
    elif first == "Rss:" and is_pack:
        mapped += int(rest[0])
print(mapped)
"""


def test_a_run_maps_little_of_a_large_pack(store: Store) -> None:
    blobs = [os.urandom(64 * 1024) for _ in range(128)]
    packed: dict[Oid, tuple[ObjectKind, bytes]] = {
        name_object(BLOB, data): ("blob", data) for data in blobs
    }
    with Batch(store=store, objects=packed).write():
        pass

    def mapped_kib(*words: str) -> int:
        done = subprocess.run(
            [sys.executable, "-c", _MAPPED, *words],
            cwd=store.path,
            input="\n".join(packed),
            capture_output=True,
            text=True,
            check=True,
        )
        return int(done.stdout)

    assert mapped_kib() > 8_000
    assert mapped_kib("little") <= 1_024
