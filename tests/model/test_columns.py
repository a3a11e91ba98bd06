from __future__ import annotations

import pytest

from uwfgit.model.picture.columns import (
    cut,
    display_width,
    fill,
    hang,
    one_line,
    wrap,
)


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


@pytest.mark.parametrize(
    ("text", "wrapped"),
    [
        ("short", "short"),
        ("one two three", "one two\nthree"),
        ("  in four five", "  in four\n  five"),
        ("averyverylongword on", "averyverylongword\non"),
        ("one two\n\nthree", "one two\n\nthree"),
        ("\u4e00\u4e8c \u4e09\u56db\u4e94", "\u4e00\u4e8c\n\u4e09\u56db\u4e94"),
    ],
)
def test_lines_are_broken_at_blanks_alone(text: str, wrapped: str) -> None:
    assert wrap(text, 10) == wrapped
    assert wrap(text, None) == text


def test_a_line_that_is_broken_hangs() -> None:
    assert hang("one two three four", 9) == "one two\n  three\n  four"
    assert hang("one two", 9) == "one two"
    assert hang("one two three", None) == "one two three"
