from __future__ import annotations

import json

import pytest

from uwfgit.cli.screen import shown, shown_json, shown_lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("plain Ærø 日本 🙂", "plain Ærø 日本 🙂", id="letters-stay"),
        pytest.param("\x1b[31mred", "\\x1b[31mred", id="escape-sequence"),
        pytest.param("\x1b]0;title\x07", "\\x1b]0;title\\x07", id="window-title"),
        pytest.param("\x9b31m", "\\x9b31m", id="c1-control"),
        pytest.param("a\x00b\x7f", "a\\x00b\\x7f", id="nul-and-delete"),
        pytest.param("a\rb", "a\\rb", id="carriage-return"),
        pytest.param("\u202eevil\u2066", "\\u202eevil\\u2066", id="bidi-controls"),
        pytest.param("\u200f\u061c", "\\u200f\\u061c", id="bidi-marks"),
        pytest.param("a\u200bb\ufeff", "a\\u200bb\\ufeff", id="zero-width"),
        pytest.param("\U000e0041", "\\U000e0041", id="invisible-tag"),
        pytest.param("\u2028", "\\u2028", id="line-separator"),
        pytest.param("\ud800", "\\ud800", id="lone-surrogate"),
        pytest.param("\u0e33\u200d", "\u0e33\u200d", id="joiner-stays"),
    ],
)
def test_unsafe_characters_become_visible_escapes(text: str, expected: str) -> None:
    assert shown(text) == expected
    assert shown_lines(text) == expected


def test_one_line_shows_breaks_and_tabs_as_escapes() -> None:
    assert shown("a\nb\tc") == "a\\nb\\tc"


def test_several_lines_keep_breaks_and_tabs() -> None:
    assert shown_lines("a\r\nb\tc\n") == "a\nb\tc\n"


def test_json_escapes_what_a_terminal_must_not_get_and_means_the_same() -> None:
    value = {"text": "a\x7f\x9b\u202e\u2028\U000e0041\ud800b", "plain": "Ærø 🙂"}

    text = shown_json(json.dumps(value, ensure_ascii=False))

    assert json.loads(text) == value
    assert shown_lines(text) == text
    assert "Ærø 🙂" in text
