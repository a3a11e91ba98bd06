from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwfgit.model.thread.derive import (
    find_hash_strings,
    find_hash_words,
    link_field,
    output_file,
    run_files,
    task_file,
)
from uwfgit.store.canonical import Json

H1, H2, H3 = "0123456789ABC", "7VQ43ZSJTEWA7", "FFFFFFFFFFFFF"


@pytest.mark.parametrize(
    ("output", "body", "expected"),
    [
        pytest.param(
            {"b": 1, "$status": "done", "a": [1, "x"]},
            "Hello\n",
            '---\n$status: "done"\na: [1,"x"]\nb: 1\n---\n\nHello\n',
            id="status-first-then-sorted",
        ),
        pytest.param(
            {"$status": "ok", "$a": 1, "A": 2, "_": 3, "é": 4},
            "x",
            '---\n$status: "ok"\n$a: 1\nA: 2\n_: 3\n"é": 4\n---\n\nx\n',
            id="sorted-by-code-points",
        ),
        pytest.param(
            {"a b": 1, "1": 2, "": 3, "a:": 4, "\n": 5},
            "x",
            '---\n"": 3\n"\\n": 5\n"1": 2\n"a b": 1\n"a:": 4\n---\n\nx\n',
            id="odd-keys-are-strings",
        ),
        pytest.param(
            {"a": "\x7f\x85\x9f\xa0\u2028\u202e\x1b"},
            "x",
            '---\na: "\\u007f\\u0085\\u009f\xa0\u2028\u202e\\u001b"\n---\n\nx\n',
            id="controls-are-escaped",
        ),
        pytest.param(
            {"\x80k": {"\x81": 1}},
            "x",
            '---\n"\\u0080k": {"\\u0081":1}\n---\n\nx\n',
            id="controls-in-keys-too",
        ),
        pytest.param(
            {"a": {"z": None, "b": True, "é": 1.5}},
            "x",
            '---\na: {"b":true,"z":null,"é":1.5}\n---\n\nx\n',
            id="compact-json",
        ),
        pytest.param({"a": 1}, "", "---\na: 1\n---\n", id="no-body"),
        pytest.param({"a": 1}, "x\n\n\n", "---\na: 1\n---\n\nx\n", id="many-newlines"),
        pytest.param({"a": 1}, "\n x ", "---\na: 1\n---\n\n\n x \n", id="blanks-stay"),
        pytest.param({"a": 1}, "x\r\n", "---\na: 1\n---\n\nx\r\n", id="cr-stays"),
        pytest.param(
            {"a": 1}, "---\nb: 2\n---", "---\na: 1\n---\n\n---\nb: 2\n---\n", id="rules"
        ),
        pytest.param({}, "x", "---\n---\n\nx\n", id="no-fields"),
    ],
)
def test_an_output_is_written_in_fixed_bytes(
    output: dict[str, Json], body: str, expected: str
) -> None:
    assert output_file(output, body) == expected.encode()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.text(), json_values, min_size=1, max_size=5), st.text())
def test_the_block_of_an_output_is_one_line_a_field_and_reads_back(
    output: dict[str, Json], body: str
) -> None:
    text = output_file(output, body).decode()

    head, *fields, end = text.split("\n")[: len(output) + 2]
    assert (head, end) == ("---", "---")
    assert dict(map(_read_field, fields)) == output


def _read_field(line: str) -> tuple[str, Json]:
    if line.startswith('"'):
        key, end = json.JSONDecoder().raw_decode(line)
    else:
        key, end = line.partition(":")[0], line.index(":")
    assert line[end : end + 2] == ": "
    return key, json.loads(line[end + 2 :])


@pytest.mark.parametrize(
    ("prompt", "note", "expected"),
    [
        pytest.param("Go.", None, "Go.\n", id="no-note"),
        pytest.param("Go.\n", "Why?", "Go.\n\n\n---\n\nWhy?\n", id="prompt-as-it-is"),
        pytest.param("Go.", "Why?\n\n", "Go.\n\n---\n\nWhy?\n", id="note"),
        pytest.param("Go.", "", "Go.\n\n---\n", id="empty-note"),
    ],
)
def test_a_prompt_is_written_with_the_note_below_a_rule(
    prompt: str, note: str | None, expected: str
) -> None:
    files = run_files({}, "Done.", edge_prompt=prompt, note=note)

    assert files["prompt.md"] == expected.encode()
    assert files["output.md"] == output_file({}, "Done.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("x", b"x\n", id="added"),
        pytest.param("x\n", b"x\n", id="kept"),
        pytest.param("x\n\n\n", b"x\n", id="only-one"),
        pytest.param("", b"\n", id="of-nothing"),
        pytest.param("\n", b"\n", id="of-a-newline"),
        pytest.param("é\0", "é\0\n".encode(), id="anything-else-stays"),
    ],
)
def test_a_task_ends_in_exactly_one_newline(text: str, expected: bytes) -> None:
    assert task_file(text) == expected


@pytest.mark.parametrize(
    ("key", "name"),
    [
        pytest.param("plan", "plan.md", id="plain"),
        pytest.param("A-b_1", "A-b_1.md", id="all-kinds"),
        pytest.param("-", "-.md", id="dash"),
        pytest.param("x" * 64, "x" * 64 + ".md", id="longest"),
        pytest.param("x" * 65, None, id="too-long"),
        pytest.param("", None, id="empty"),
        pytest.param("$status", None, id="dollar"),
        pytest.param("a.b", None, id="dot"),
        pytest.param("..", None, id="dots"),
        pytest.param("a/b", None, id="slash"),
        pytest.param("plän", None, id="other-letters"),
        pytest.param("plan\n", None, id="newline"),
    ],
)
def test_only_a_plain_field_has_a_file(key: str, name: str | None) -> None:
    assert link_field(key) == name


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(H1, (H1,), id="string"),
        pytest.param({"b": [H2, {"x": H3}], "a": H1}, (H1, H2, H3), id="in-order"),
        pytest.param([H1, H1], (H1,), id="once"),
        pytest.param({H1: 1}, (), id="not-a-key"),
        pytest.param(f"see {H1}", (), id="not-a-word"),
        pytest.param(H1.lower(), (), id="not-lower-case"),
        pytest.param(f"{H1}\n", (), id="not-with-newline"),
        pytest.param("G123456789ABC", (), id="beyond-64-bits"),
        pytest.param([1, None, True, 1.5], (), id="no-strings"),
    ],
)
def test_strings_of_the_shape_of_a_hash_are_found(
    value: Json, expected: tuple[str, ...]
) -> None:
    assert find_hash_strings(value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"see {H1}, {H2}.\n({H1}) `{H3}`", (H1, H2, H3), id="words"),
        pytest.param(f"x{H1}", (), id="longer-before"),
        pytest.param(f"{H1}Z", (), id="longer-after"),
        pytest.param(f"{H1}_", (), id="underscore"),
        pytest.param(f"{H1}{H2}", (), id="two-in-one"),
        pytest.param(f"{H1}-{H2}", (H1, H2), id="dash"),
        pytest.param(f"é{H1}é", (H1,), id="other-letters"),
        pytest.param("", (), id="empty"),
    ],
)
def test_words_of_the_shape_of_a_hash_are_found(
    text: str, expected: tuple[str, ...]
) -> None:
    assert find_hash_words([text]) == expected


def test_words_of_several_texts_are_given_once() -> None:
    assert find_hash_words([H1, f"{H2} {H1}"]) == (H1, H2)
