"""What is quoted of an agent's words."""

from __future__ import annotations

import pytest

from uwfgit.model.wording import first_line, last_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("", None, id="nothing"),
        pytest.param("one\n two \n\n", "two", id="blank-lines"),
        pytest.param("---\nwhy: no\n---\n", "why: no", id="end-of-a-block"),
        pytest.param("text\n```\ncode\n```", "code", id="end-of-a-fence"),
        pytest.param("yes\n***\n👍", "👍", id="no-letters"),
        pytest.param("---\n...\n---\n", None, id="marks-alone"),
    ],
)
def test_the_last_line_is_one_that_says_something(text: str, line: str | None) -> None:
    assert last_line(text) == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("# Paint it\n\nblue", "Paint it", id="heading"),
        pytest.param("\n  ###### deep", "deep", id="deep"),
        pytest.param("#42: accents are lost", "#42: accents are lost", id="an-issue"),
        pytest.param("#\n##\nthen", "then", id="headings-that-say-nothing"),
        pytest.param("####### seven", "####### seven", id="no-heading"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_the_first_line_stands_without_the_mark_of_a_heading(
    text: str, line: str | None
) -> None:
    assert first_line(text) == line
