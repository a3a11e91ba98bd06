"""Which name is near a word: what people mistype, and what only looks like it."""

from __future__ import annotations

from typing import Final

import pytest

from uwfgit.cli.frame.catalog import CATALOG
from uwfgit.spelling import find_similar, match_ids, suggest

TOP: Final = [entry.name for entry in CATALOG if not entry.hidden]
THREAD: Final = ["start", "run", "exec", "list", "show", "fork", "rm", "resolve"]


@pytest.mark.parametrize(
    ("word", "names", "expected"),
    [
        pytest.param("thred", TOP, "thread", id="too-few"),
        pytest.param("threaad", TOP, "thread", id="too-many"),
        pytest.param("verfiy", TOP, "verify", id="changed-places"),
        pytest.param("Push", TOP, "push", id="case"),
        pytest.param("workflows", TOP, "workflow", id="plural"),
        pytest.param("conf", TOP, "config", id="start"),
        pytest.param("exce", THREAD, "exec", id="short"),
        pytest.param("fix-bugg", ["solve", "fix-bug"], "fix-bug", id="a-name"),
        pytest.param("fix-bug", ["fix-bug-2", "fix-bugs"], "fix-bugs", id="nearest"),
        pytest.param("foo", TOP, None, id="foo-is-not-hooks"),
        pytest.param("log", ["clone", "gc", "cas"], None, id="log-is-not-clone"),
        pytest.param("setup", ["step", "store"], None, id="setup-is-not-step"),
        pytest.param("ls", ["rm", "gc"], None, id="two-letters"),
        pytest.param("", TOP, None, id="nothing"),
        pytest.param("x" * 500, TOP, None, id="long"),
        pytest.param("foo", [], None, id="no-names"),
    ],
)
def test_a_name_is_near_by_slips_of_the_keys(
    word: str, names: list[str], expected: str | None
) -> None:
    assert find_similar(word, names) == expected


def test_a_suggestion_ends_a_message() -> None:
    assert suggest("thred", TOP) == "; did you mean 'thread'?"
    assert suggest("foo", TOP) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("01ab", ["01ABCD1234", "01ABXY1234"], id="start"),
        pytest.param("01abc", ["01ABCD1234"], id="one"),
        pytest.param("y1234", ["01ABXY1234"], id="end"),
        pytest.param("234", [], id="short-end"),
        pytest.param("0123", ["0123456789"], id="start-before-end"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_an_id_is_meant_by_its_start_or_else_by_its_end(
    text: str, expected: list[str]
) -> None:
    assert match_ids(text, ["01ABCD1234", "01ABXY1234", "0123456789"]) == expected
