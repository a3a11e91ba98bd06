from __future__ import annotations

import pytest

from uwfgit.config.dotenv import parse_dotenv


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("A=1\nB=two words\n", {"A": "1", "B": "two words"}, id="plain"),
        pytest.param("export A=1", {"A": "1"}, id="export"),
        pytest.param("  A = 1  ", {"A": "1"}, id="blanks"),
        pytest.param('A="x # y"  # note', {"A": "x # y"}, id="quotes and a note"),
        pytest.param("A=x # note", {"A": "x"}, id="a note"),
        pytest.param(r'A="x\ny\"z\\"', {"A": 'x\ny"z\\'}, id="escapes"),
        pytest.param(r"A='x\ny'", {"A": r"x\ny"}, id="none in single quotes"),
        pytest.param('A="x\ny"\nB=1', {"A": "x\ny", "B": "1"}, id="several lines"),
        pytest.param("# A=1\n\nwords\n=x\nB=1", {"B": "1"}, id="what is no line of it"),
        pytest.param("A=1\r\nA=2\r\n", {"A": "2"}, id="the last counts"),
        pytest.param("A=", {"A": ""}, id="empty"),
    ],
)
def test_a_file_is_read(text: str, expected: dict[str, str]) -> None:
    assert parse_dotenv(text) == expected
