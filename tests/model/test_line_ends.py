from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwfgit.model.yaml.line_ends import with_ends_of

TEXTS = st.lists(
    st.tuples(st.sampled_from(["", "a", "b: c"]), st.sampled_from(["\n", "\r", "\r\n"]))
).map(lambda lines: "".join(line + end for line, end in lines))


def in_browser(text: str) -> str:
    return re.sub("\r\n?", "\n", text)


@given(TEXTS, st.sampled_from(["", "x"]))
def test_a_text_that_was_only_looked_at_stays_as_it_is(text: str, last: str) -> None:
    assert with_ends_of(text + last, in_browser(text + last)) == text + last


@given(TEXTS, TEXTS)
def test_an_edited_text_holds_what_was_written(old: str, new: str) -> None:
    assert in_browser(with_ends_of(old, in_browser(new))) == in_browser(new)


@pytest.mark.parametrize(
    ("old", "new", "saved"),
    [
        pytest.param("a\r\nb\nc\r\n", "a\nB\nc\n", "a\r\nB\nc\r\n", id="changed"),
        pytest.param("a\r\nb\nc\r\n", "a\nx\nb\nc\n", "a\r\nx\r\nb\nc\r\n", id="added"),
        pytest.param("a\r\nb\nc\r\n", "a\nc\n", "a\r\nc\r\n", id="removed"),
        pytest.param("a\nb\r\nc", "a\nb\nc\nd\n", "a\nb\r\nc\r\nd\r\n", id="behind"),
        pytest.param("a\r\nb\r\n", "x\ny\nb\n", "x\r\ny\r\nb\r\n", id="all alike"),
        pytest.param("a\rb\n", "a\nb\n", "a\rb\n", id="returns"),
        pytest.param("\ra\n\n", "b: c\n\n", "b: c\r\r", id="return, empty line"),
        pytest.param("", "a\nb", "a\nb", id="empty"),
    ],
)
def test_lines_end_as_they_did_where_they_are_still_there(
    old: str, new: str, saved: str
) -> None:
    assert with_ends_of(old, new) == saved
