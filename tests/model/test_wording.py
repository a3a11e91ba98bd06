"""What is quoted of an agent's words."""

from __future__ import annotations

import pytest

from uwfgit.model.wording import last_line


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
