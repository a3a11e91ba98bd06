from __future__ import annotations

import json
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.calls import Uwf
from tests.cli.screens import is_unsafe, list_unsafe
from uwfgit.cli.frame.output import format_json, format_yaml, shown_page, write
from uwfgit.cli.frame.screen import (
    UNSAFE,
    paint_log,
    pattern_with_commands,
    shown,
    shown_lines,
    without_commands,
)
from uwfgit.model.yaml.dump import dump_yaml

# As text comes, and with what is never seen there at every turn.
NASTY = st.sampled_from(
    "\x00\x07\b\t\n\r\x1b\x7f\x85\x9b\x9d\xad\u061c\u180e\u200b\u200c\u200d\u200e\u2028"
    "\u202e\u2060\u2066\u2069\ufeff\ufff9\U000e0001\U000e007f[;m\\"
)
TEXT = st.text(st.one_of(NASTY, st.characters()), max_size=80)
YAML_TEXT = TEXT.filter(
    lambda text: not set(text) & set(map(chr, range(0xD800, 0xE000)))
)


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
        pytest.param("\U0001d173", "\\U0001d173", id="invisible-mark-of-music"),
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

    text = format_json(value)

    assert json.loads(text) == value
    assert shown_lines(text) == text
    assert "Ærø 🙂" in text


def test_yaml_escapes_it_too_and_means_the_same() -> None:
    value = {"a\u202eb": "one\ntwo\u2066\n", "tag": "\U000e0041", "plain": "Ærø\n🙂\n"}

    text = format_yaml(value)

    assert yaml.safe_load(text) == value
    assert list_unsafe(text) == set()
    assert "Ærø\n" in text


def test_a_page_keeps_our_colours_and_no_other_escape() -> None:
    page = "\x1b[31merror\x1b[0m: \x1b[1mbold\x1b[2J \x1b[38;5;1m\x1b[K\r\u202e\n"

    assert shown_page(page) == (
        "\x1b[31merror\x1b[0m: \\x1b[1mbold\\x1b[2J \\x1b[38;5;1m\\x1b[K\\r\\u202e\n"
    )


def test_no_character_that_unicode_says_is_unsafe_is_left_out() -> None:
    every = map(chr, range(sys.maxunicode + 1))

    assert [char for char in every if is_unsafe(char) and not UNSAFE.match(char)] == []


@given(TEXT)
def test_nothing_unsafe_is_left_of_any_text(text: str) -> None:
    line, lines, page = shown(text), shown_lines(text), shown_page(text)

    assert list_unsafe(line) == set()
    assert not {"\n", "\t"} & set(line)
    assert list_unsafe(lines) == set()
    assert list_unsafe(page, own=True) == set()


@given(TEXT)
def test_what_is_safe_is_not_changed(text: str) -> None:
    line, lines = shown(text), shown_lines(text)

    assert (shown(line), shown_lines(lines), shown_page(lines)) == (line, lines, lines)
    assert text.isprintable() <= (line == text)
    assert lines.count("\n") == text.count("\n")


@given(
    st.dictionaries(YAML_TEXT, st.one_of(YAML_TEXT, st.lists(YAML_TEXT)), max_size=4)
)
def test_json_and_yaml_of_any_text_are_safe_and_read_back(value: object) -> None:
    as_json = format_json(value)
    as_yaml = format_yaml(value)

    assert list_unsafe(as_json) == list_unsafe(as_yaml) == set()
    assert json.loads(as_json) == value
    assert yaml.safe_load(as_yaml) == value


LOG = """\
commit 0123456789012345678901234567890123456789
Author: Ada

    +not a line of a diff

diff --git a/x b/x
--- a/x
+++ b/x
@@ -1 +1 @@
-old
+new
 same
"""


def test_a_log_is_coloured_where_git_would_and_no_text_of_a_commit_is() -> None:
    painted = paint_log(LOG).splitlines()

    assert re.sub(r"\x1b\[[0-9]*m", "", "\n".join(painted) + "\n") == LOG
    colors = [re.match(r"\x1b\[(\d+)m", line) for line in painted]
    assert {
        line: found and found[1]
        for line, found in zip(LOG.splitlines(), colors, strict=True)
        if line
    } == {
        "commit 0123456789012345678901234567890123456789": "33",
        "Author: Ada": None,
        "    +not a line of a diff": None,
        "diff --git a/x b/x": "2",
        "--- a/x": "2",
        "+++ b/x": "2",
        "@@ -1 +1 @@": "36",
        "-old": "31",
        "+new": "32",
        " same": None,
    }


def is_command(line: str) -> bool:
    """Tell what the runner of GitHub Actions takes for a command in a log."""
    return line.lstrip().startswith("::") or "##[" in line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "::error::x\n \u00a0::add-mask::y",
            "\\x3a:error::x\n \u00a0\\x3a:add-mask::y",
        ),
        ("a ##[group]b ###[error]", "a \\x23#[group]b #\\x23#[error]"),
        ("std::vector ## [a]", "std::vector ## [a]"),
    ],
)
def test_commands_to_a_log_become_visible_escapes(text: str, expected: str) -> None:
    assert without_commands(text) == expected


@given(st.text(st.sampled_from(":# [e\t\n\u00a0\u3000"), max_size=20))
def test_no_line_of_any_text_is_left_a_command(text: str) -> None:
    value = {"text": text, "list": [text]}
    data = pattern_with_commands()
    as_yaml = dump_yaml(value, escape=data)

    assert not any(map(is_command, without_commands(text).split("\n")))
    assert not any(map(is_command, as_yaml.split("\n")))
    assert yaml.safe_load(as_yaml) == value


def test_a_log_of_github_actions_is_given_no_command_and_a_file_all(
    uwf: Uwf, work: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    thread = uwf("thread", "start", "ping.yaml", "-p", "x", "--json").json["threadId"]
    text = "---\\n$status: stuck\\n---\\n::error::hi\\n ##[add-mask]x"
    (work / "r.yaml").write_text(f'replies:\n  writer: ["{text}"]\n')
    read = ("thread", "read", thread)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")

    ran = uwf("thread", "exec", thread, "--agent", "scripted:r.yaml", "-v")
    told = [uwf(*read), uwf("step", "turns", thread), uwf(*read, "--format", "yaml")]
    data = uwf("step", "show", f"{thread}:1", "--json")
    with (tmp_path / "page.md").open("w+") as file, redirect_stdout(file):
        write("::error::hi\n")
    monkeypatch.delenv("GITHUB_ACTIONS")
    plain = uwf(*read)

    assert ran.code == 0
    lines = "\n".join([each.out + each.err for each in [ran, *told, data]]).split("\n")
    assert not any(map(is_command, lines))
    assert "\\x3a:error::hi\n \\x23#[add-mask]x" in told[0].out
    assert data.json["body"].strip() == "::error::hi\n ##[add-mask]x"
    assert (tmp_path / "page.md").read_text() == "::error::hi\n"
    assert "\n::error::hi\n ##[add-mask]x" in plain.out
