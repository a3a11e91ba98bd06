from __future__ import annotations

import pytest

from uwfgit.ids import ThreadId
from uwfgit.store.layout import (
    find_node_name,
    find_ref_thread,
    find_step_name,
    is_workflow_name,
    nodes_folder,
    step_folder,
    thread_folder,
    thread_ref,
    workflow_ref,
)

THREAD = ThreadId("01JZZZZZZZZZZZZZZZZZZZZZZZ")


def test_a_thread_is_one_branch_and_one_folder() -> None:
    assert thread_ref(THREAD) == "refs/heads/thread/01JZZZZZZZZZZZZZZZZZZZZZZZ"
    assert thread_folder(THREAD) == "threads/01JZZZZZZZZZZZZZZZZZZZZZZZ"
    assert workflow_ref("solve-issue") == "refs/heads/workflow/solve-issue"


@pytest.mark.parametrize(
    ("ref", "thread"),
    [
        pytest.param(f"refs/heads/thread/{THREAD}", THREAD, id="branch"),
        pytest.param(f"refs/heads/thread/{THREAD.lower()}", None, id="lower-case"),
        pytest.param(f"refs/heads/thread/{THREAD}/x", None, id="below-it"),
        pytest.param("refs/heads/thread/x", None, id="no-ulid"),
        pytest.param(f"refs/uwf/trash/{THREAD}", None, id="trash"),
        pytest.param(f"refs/remotes/o/thread/{THREAD}", None, id="of-a-remote"),
        pytest.param(THREAD, None, id="bare-id"),
        pytest.param(
            "refs/heads/thread/81JZZZZZZZZZZZZZZZZZZZZZZZ", None, id="beyond-128-bits"
        ),
    ],
)
def test_only_the_branch_of_a_canonical_id_is_a_thread(
    ref: str, thread: ThreadId | None
) -> None:
    assert find_ref_thread(ref) == thread


@pytest.mark.parametrize(
    ("number", "folder"),
    [
        pytest.param(1, "000", id="first"),
        pytest.param(99, "000", id="last-of-the-first-bucket"),
        pytest.param(100, "001", id="first-of-the-second"),
        pytest.param(99_999, "999", id="last-of-all"),
    ],
)
def test_a_bucket_holds_a_hundred_steps(number: int, folder: str) -> None:
    assert step_folder(number, "dev") == f"history/{folder}/{number:05d}-dev"
    assert nodes_folder(number) == f"nodes/{folder}/{number:05d}"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("00002-developer", (2, "developer"), id="plain"),
        pytest.param("00100-a-b_C", (100, "a-b_C"), id="dashes"),
        pytest.param("2-developer", None, id="short-number"),
        pytest.param("000002-developer", None, id="long-number"),
        pytest.param("00002-", None, id="no-role"),
        pytest.param("00002-1st", None, id="role-starts-with-digit"),
        pytest.param(f"00002-{'a' * 65}", None, id="role-too-long"),
        pytest.param("00002-a\n", None, id="newline"),
        pytest.param("٠٠٠٠٢-a", None, id="other-digits"),
        pytest.param("00002-ä", None, id="other-letters"),
    ],
)
def test_a_step_folder_is_read_back(
    name: str, expected: tuple[int, str] | None
) -> None:
    assert find_step_name(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            "0123456789ABC.944RT37WX1PQ5.json",
            ("0123456789ABC", "944RT37WX1PQ5"),
            id="json",
        ),
        pytest.param(
            "0123456789ABC.7VQ43ZSJTEWA7.md",
            ("0123456789ABC", "7VQ43ZSJTEWA7"),
            id="text",
        ),
        pytest.param("0123456789ABC.7VQ43ZSJTEWA7.json", None, id="text-as-json"),
        pytest.param("0123456789ABC.944RT37WX1PQ5.md", None, id="json-as-text"),
        pytest.param("0123456789abc.944RT37WX1PQ5.json", None, id="lower-case"),
        pytest.param("G123456789ABC.944RT37WX1PQ5.json", None, id="beyond-64-bits"),
        pytest.param("0123456789ABI.944RT37WX1PQ5.json", None, id="letter-i"),
        pytest.param("0123456789ABC.json", None, id="no-type"),
        pytest.param("0123456789ABC.944RT37WX1PQ5.json\n", None, id="newline"),
        pytest.param("0123456789ABC.944RT37WX1PQ5.txt", None, id="other-suffix"),
    ],
)
def test_a_node_file_is_read_back(name: str, expected: tuple[str, str] | None) -> None:
    assert find_node_name(name) == expected


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        pytest.param("a", True, id="letter"),
        pytest.param("solve-issue2", True, id="words"),
        pytest.param("", False, id="empty"),
        pytest.param("2a", False, id="digit-first"),
        pytest.param("Solve", False, id="upper-case"),
        pytest.param("a--b", False, id="two-dashes"),
        pytest.param("a-", False, id="dash-last"),
        pytest.param("a/b", False, id="slash"),
        pytest.param("a\n", False, id="newline"),
    ],
)
def test_a_workflow_name_is_a_safe_ref_and_path(name: str, fits: bool) -> None:  # noqa: FBT001 - a table's column
    assert is_workflow_name(name) is fits
