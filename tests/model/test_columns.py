from __future__ import annotations

import pytest

from uwfgit.model.picture.columns import cut, display_width, fill, one_line


@pytest.mark.parametrize(
    ("text", "width"),
    [
        pytest.param("", 0, id="empty"),
        pytest.param("abc", 3, id="ascii"),
        pytest.param("日本", 4, id="wide"),
        pytest.param("é", 1, id="combining"),
    ],
)
def test_a_width_is_counted_in_columns(text: str, width: int) -> None:
    assert display_width(text) == width


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        pytest.param("abc", 3, "abc", id="fits"),
        pytest.param("abcd", 3, "ab…", id="cut"),
        pytest.param("日本語", 4, "日…", id="wide"),
        pytest.param("abc", 1, "…", id="one"),
        pytest.param("abc", 0, "", id="none"),
    ],
)
def test_a_line_is_cut_to_a_width(text: str, width: int, expected: str) -> None:
    assert cut(text, width) == expected


def test_a_line_is_filled_to_a_width() -> None:
    assert fill("日", 4, "-") == "日--"


def test_nothing_moves_the_cursor() -> None:
    assert one_line("a\nb\x1b[31m\u202e") == "a�b�[31m�"
