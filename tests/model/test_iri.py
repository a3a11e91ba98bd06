from __future__ import annotations

import subprocess
import sys

import pytest

from uwfgit.model.schema.check import validate_value

_PROBE = """
import sys
from uwfgit.model.schema.check import validate_value
assert not validate_value({"type": "string", "format": "uri"}, "https://x.example/a")
assert "lark" not in sys.modules, "the IRI grammar was built"
"""


def test_validating_builds_no_iri_grammar() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROBE], capture_output=True, check=False
    )

    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        pytest.param("https://müller.example/straße", True, id="iri"),
        pytest.param("no iri at all", False, id="text"),
    ],
)
@pytest.mark.slow
def test_the_iri_format_is_asserted(value: str, *, fits: bool) -> None:
    violations = validate_value({"type": "string", "format": "iri"}, value)

    assert (not violations) is fits
