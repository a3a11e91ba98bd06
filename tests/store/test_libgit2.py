"""pygit2 as the program and a user of the library get it."""

import ssl
import subprocess
import sys

import pytest

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
