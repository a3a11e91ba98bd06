from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwfgit.config.dotenv import add_variable, is_variable_name, parse_dotenv


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
        pytest.param(
            "# A=1\n\nwords\n=x\nB=1", {"B": "1"}, id="what is not a line of it"
        ),
        pytest.param("A=1\r\nA=2\r\n", {"A": "2"}, id="the last counts"),
        pytest.param("A=", {"A": ""}, id="empty"),
    ],
)
def test_a_file_is_read(text: str, expected: dict[str, str]) -> None:
    assert parse_dotenv(text) == expected


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        pytest.param("", "sk-1", "A=sk-1\n", id="the first"),
        pytest.param("# mine\nB=2\n", "x", "# mine\nB=2\nA=x\n", id="behind all"),
        pytest.param("B=2", "x", "B=2\nA=x\n", id="no last break"),
        pytest.param("B=2\r\n", "x", "B=2\r\nA=x\r\n", id="its own breaks"),
        pytest.param("A=\n", "x", "A=\nA=x\n", id="empty before"),
        pytest.param("", "a b#$", "A='a b#$'\n", id="quoted"),
        pytest.param("", "it's $1\n", 'A="it\'s \\$1\\n"\n', id="escaped"),
    ],
)
def test_a_variable_is_added_behind_what_stands_there(
    text: str, value: str, expected: str
) -> None:
    assert add_variable(text, "A", value) == expected
    assert parse_dotenv(expected)["A"] == value


@given(value=st.text(), other=st.text())
def test_an_added_value_is_read_back_and_no_other_changes(
    value: str, other: str
) -> None:
    before = add_variable("", "B", other)
    assert before is not None

    added = add_variable(before, "A", value)

    assert added is not None
    assert added.startswith(before)
    assert parse_dotenv(added) == {"B": other, "A": value}


def test_nothing_is_added_behind_a_quote_that_is_not_closed() -> None:
    assert add_variable("B='open\n", "A", "it' # s") is None


@pytest.mark.parametrize(
    ("name", "fits"), [("A_1.b", True), ("1A", False), ("A B", False), ("", False)]
)
def test_a_variables_name_is_known(name: str, fits: bool) -> None:  # noqa: FBT001 - a table
    assert is_variable_name(name) is fits
