"""The reader: what words mean, what is refused and where, and the writer."""

from __future__ import annotations

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from uwfgit.constants import MAX_SAFE_INTEGER, YAML_MAX_BYTES
from uwfgit.errors import InvalidError
from uwfgit.model.yaml import events
from uwfgit.model.yaml.core import parse_value, parse_yaml, read_yaml
from uwfgit.model.yaml.dump import dump_yaml
from uwfgit.model.yaml.located import SourcePlace
from uwfgit.store.canonical import Json

CARET = "‸"
"""Stands in a test's text where a problem is expected."""

LOADERS = [
    pytest.param(yaml.BaseLoader, id="python"),
    pytest.param(getattr(yaml, "CBaseLoader", yaml.BaseLoader), id="c"),
]


@pytest.fixture(params=LOADERS)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with both of PyYAML's parsers."""
    monkeypatch.setattr(events, "_LOADER", request.param)


def problems_of(text: str | bytes) -> list[tuple[str, int | None, int | None]]:
    with pytest.raises(InvalidError) as caught:
        parse_yaml(text)
    return [(each.code, each.line, each.column) for each in caught.value.problems]


def take_carets(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Give the text without its carets, and the lines and columns of them."""
    pieces = text.split(CARET)
    places = []
    before = ""
    for piece in pieces[:-1]:
        before += piece
        line = before.count("\n") + 1
        places.append((line, len(before) - (before.rfind("\n") + 1) + 1))
    return "".join(pieces), places


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("null", None, id="null"),
        pytest.param("NULL", None, id="null-upper"),
        pytest.param("~", None, id="tilde"),
        pytest.param("", None, id="empty"),
        pytest.param("nULL", "nULL", id="null-mixed-is-text"),
        pytest.param("true", True, id="true"),
        pytest.param("False", False, id="false-title"),
        pytest.param("yes", "yes", id="yes-is-text"),
        pytest.param("No", "No", id="no-is-text"),
        pytest.param("on", "on", id="on-is-text"),
        pytest.param("OFF", "OFF", id="off-is-text"),
        pytest.param("y", "y", id="y-is-text"),
        pytest.param("12", 12, id="integer"),
        pytest.param("+12", 12, id="plus"),
        pytest.param("-12", -12, id="minus"),
        pytest.param("-0", 0, id="minus-zero"),
        pytest.param("012", 12, id="leading-zero-is-decimal"),
        pytest.param("08", 8, id="eight-with-zero"),
        pytest.param("0o14", 12, id="octal"),
        pytest.param("0x1F", 31, id="hex"),
        pytest.param("0b11", "0b11", id="binary-is-text"),
        pytest.param("-0x1F", "-0x1F", id="signed-hex-is-text"),
        pytest.param("1_000", "1_000", id="underscore-is-text"),
        pytest.param("12:30", "12:30", id="clock-is-text"),
        pytest.param("190:20:30", "190:20:30", id="sexagesimal-is-text"),
        pytest.param("2026-01-01", "2026-01-01", id="date-is-text"),
        pytest.param("2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z", id="time-is-text"),
        pytest.param("1.5", 1.5, id="float"),
        pytest.param(".5", 0.5, id="float-no-integer"),
        pytest.param("1.", 1.0, id="float-no-fraction"),
        pytest.param("1e3", 1000.0, id="exponent-without-point"),
        pytest.param("-1.5E-3", -0.0015, id="negative-exponent"),
        pytest.param("1.2.3", "1.2.3", id="version-is-text"),
        pytest.param(".", ".", id="dot-is-text"),
        pytest.param("-", [None], id="dash-is-a-list"),
        pytest.param("'12'", "12", id="single-quoted"),
        pytest.param('"true"', "true", id="double-quoted"),
        pytest.param("! 12", "12", id="non-specific-tag"),
        pytest.param("!!str 12", "12", id="str-tag"),
        pytest.param('!!int "12"', 12, id="int-tag"),
        pytest.param("!!float 1", 1.0, id="float-tag"),
        pytest.param("!!null ''", None, id="null-tag"),
        pytest.param("!!bool true", True, id="bool-tag"),
        pytest.param("=", "=", id="equals-is-text"),
        pytest.param("<<", "<<", id="merge-is-text"),
        pytest.param(str(MAX_SAFE_INTEGER), MAX_SAFE_INTEGER, id="largest"),
        pytest.param("0" * 60 + "7", 7, id="many-zeros"),
    ],
)
def test_plain_words_mean_what_yaml_1_2_core_says(text: str, value: Json) -> None:
    read = parse_value(text)

    assert (read, type(read)) == (value, type(value))


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("\ufeffa: 1\n", {"a": 1}, id="byte-order-mark"),
        pytest.param("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}, id="crlf"),
        pytest.param("a: &x 1\nb: *x\n", {"a": 1, "b": 1}, id="alias"),
        pytest.param(
            "a: &x 1\nb: &x 2\nc: *x\n", {"a": 1, "b": 2, "c": 2}, id="anchor"
        ),
        pytest.param("<<: {a: 1}\n", {"<<": {"a": 1}}, id="merge-key-is-a-plain-key"),
        pytest.param("yes: 1\non: 2\n", {"yes": 1, "on": 2}, id="bool-keys-of-1.1"),
        pytest.param('"1": a\n', {"1": "a"}, id="quoted-number-key"),
        pytest.param("%YAML 1.2\n---\na: 1\n...\n", {"a": 1}, id="directive-and-end"),
        pytest.param("a: |\n  x\n\n  y\n", {"a": "x\n\ny\n"}, id="literal"),
        pytest.param("a: >-\n  x\n  y\n", {"a": "x y"}, id="folded"),
        pytest.param('{"a": [1, {"b": null}]}', {"a": [1, {"b": None}]}, id="json"),
        pytest.param("a: x\u2028y:z\n", {"a": "x\u2028y:z"}, id="line-separator"),
        pytest.param("a: 'x\u2028 y'\n", {"a": "x\u2028 y"}, id="separator-in-quotes"),
        pytest.param("a: x\x85y\n", {"a": "x\x85y"}, id="next-line-is-a-character"),
        pytest.param(
            'a: "\\u2028\ue000\u2028"', {"a": "\u2028\ue000\u2028"}, id="both"
        ),
        pytest.param("a: x # y\n", {"a": "x"}, id="comment"),
        pytest.param("[a, b,]", ["a", "b"], id="trailing-comma"),
        pytest.param("# nothing\n", None, id="comment-only"),
    ],
)
def test_odd_but_legal_documents_are_read(text: str, value: Json) -> None:
    assert parse_value(text) == value


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("code", "text"),
    [
        pytest.param("Y1", "a: b‸: c", id="colon-in-text"),
        pytest.param("Y1", "a:\n‸\t- b\n", id="tab-indentation"),
        pytest.param("Y1", "a: ‸%x", id="percent"),
        pytest.param("Y1", "a: ‸`x", id="backtick"),
        pytest.param("Y1", "a: ‸@x", id="at"),
        pytest.param("Y2", "a: ‸\0", id="nul"),
        pytest.param("Y2", "a: x\nb: 'c‸\x1b'", id="escape-character"),
        pytest.param("Y2", "a: ‸\x7f", id="delete"),
        pytest.param("Y2", "a: ‸\ud800", id="lone-surrogate"),
        pytest.param("Y4", "a: 1\n‸---\nb: 2\n", id="second-document"),
        pytest.param("Y4", "a: 1\n...\n‸b: 2\n", id="document-after-the-end"),
        pytest.param("Y5", "a: ‸!foo b", id="unknown-tag"),
        pytest.param("Y5", "a: ‸!!binary aGk=", id="tag-beyond-core"),
        pytest.param("Y5", "‸!!python/object:os.system x", id="python-tag"),
        pytest.param("Y5", "a: ‸!!set {x}", id="tag-on-a-mapping"),
        pytest.param("Y5", "a: ‸!include x.md", id="include-where-there-is-none"),
        pytest.param("Y6", "a: 1\n‸a: 2\n", id="duplicate-key"),
        pytest.param("Y6", 'a: 1\n‸"a": 2\n', id="duplicate-key-as-value"),
        pytest.param("Y6", "x:\n  - {b: 1, ‸b: 2}\n", id="duplicate-key-inside"),
        pytest.param("Y7", "‸1: x", id="number-key"),
        pytest.param("Y7", "‸true: x", id="boolean-key"),
        pytest.param("Y7", "‸null: x", id="null-key"),
        pytest.param("Y7", "‸012: x", id="octal-looking-key"),
        pytest.param("Y7", "? ‸[a]\n: x", id="list-key"),
        pytest.param("Y7", "? ‸{a: b}\n: x", id="mapping-key"),
        pytest.param("Y7", '"": x\n? ‸[a]\n: x', id="list-key-beside-an-empty-one"),
        pytest.param("Y8", "a: ‸*x", id="undefined-alias"),
        pytest.param("Y8", "a: &x [‸*x]", id="cycle"),
        pytest.param("Y8", "&x\na: {b: ‸*x}", id="cycle-of-mappings"),
        pytest.param("Y10", "[" * 100 + "‸" + "[" * 100, id="deep"),
        pytest.param("Y10", "- " * 100 + "‸- x", id="deep-in-block-style"),
        pytest.param("Y11", "a: ‸.inf", id="infinity"),
        pytest.param("Y11", "a: ‸.NaN", id="nan"),
        pytest.param("Y11", "a: ‸1e999", id="float-overflow"),
        pytest.param("Y11", "a: ‸9007199254740992", id="beyond-2-53"),
        pytest.param("Y11", f"a: ‸{'9' * 5_000}", id="very-long-number"),
        pytest.param("Y11", "a: ‸!!int x", id="tag-that-does-not-fit"),
    ],
)
def test_a_refusal_has_code_line_and_column(code: str, text: str) -> None:
    text, places = take_carets(text)

    assert problems_of(text) == [(code, *places[-1])]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"a: b\nb: \xff\n", ("Y2", 2, 4), id="not-utf-8"),
        pytest.param(b"\xff\xfea\0", ("Y2", 1, 1), id="utf-16"),
        pytest.param(b"a: " + b"x" * YAML_MAX_BYTES, ("Y3", 1, 1), id="too-large"),
        pytest.param(
            "é: x".encode() + b"\xc3", ("Y2", 1, 5), id="columns-are-characters"
        ),
    ],
)
def test_bytes_are_refused_with_a_place(
    data: bytes, expected: tuple[str, int, int]
) -> None:
    assert problems_of(data) == [expected]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        pytest.param("f.yaml", "key 'a' is given twice, first on line 2", id="file"),
        # A block of a reply: the reply counts its lines otherwise.
        pytest.param(None, "key 'a' is given twice", id="no-file"),
    ],
)
def test_a_line_is_named_only_of_a_file(file: str | None, message: str) -> None:
    _, (problem,) = read_yaml("\na: 1\na: 2\n", file=file)

    assert (problem.message, problem.line) == (message, 3)


@pytest.mark.usefixtures("loader")
def test_any_depth_is_refused_as_such() -> None:
    ((code, line, _),) = problems_of("[" * 100_000)

    assert (code, line) == ("Y10", 1)


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize("escape", ["\\UFFFFFFFF", "\\U00110000", "\\q", "\\x4"])
def test_an_escape_of_no_character_is_refused(escape: str) -> None:
    ((code, line, _),) = problems_of(f'a: "{escape}"')

    assert (code, line) == ("Y1", 1)


def test_an_alias_bomb_is_refused_at_the_alias_that_goes_too_far() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    (problem,) = problems_of("\n".join(lines))

    assert problem[:2] == ("Y9", 5)


def test_a_few_long_texts_named_often_are_a_bomb_too() -> None:
    text = f"a: &a {'x' * 500_000}\nb: [{', '.join(['*a'] * 100)}]\n"

    assert [code for code, _, _ in problems_of(text)] == ["Y9"]


def test_aliases_count_towards_depth() -> None:
    text = f"a: &a {'[' * 60}{']' * 60}\nb: {'[' * 60}*a{']' * 60}\n"

    assert problems_of(text) == [("Y10", 2, 64)]


def test_all_problems_of_single_values_are_told_in_order() -> None:
    text, places = take_carets("‸1: x\nb: ‸!no\nb2: 1\n‸b2: 2\nc: ‸.inf\n")

    assert problems_of(text) == [
        (code, *place)
        for code, place in zip(("Y7", "Y5", "Y6", "Y11"), places, strict=True)
    ]


def test_a_problem_hints_at_the_mend() -> None:
    with pytest.raises(InvalidError) as caught:
        parse_yaml("a: b: c", file="x.yaml")

    assert caught.value.hint == "quote text that holds ': '"
    assert str(caught.value).startswith("x.yaml:1:5: not YAML: ")


@pytest.mark.parametrize("text", ["a: {{x}}", "a: {{{x}}}"])
def test_a_template_that_is_not_quoted_is_told_to_be(text: str) -> None:
    _, problems = read_yaml(text)

    hints = {each.hint for each in problems}
    assert hints == {"quote text that begins with '{{'"}


def test_values_that_cannot_be_read_are_known_as_broken() -> None:
    located, problems = read_yaml("a: !no x\nb: 1\n")

    assert located is not None
    assert located.value == {"a": None, "b": 1}
    assert located.broken == {SourcePlace(file=None, line=1, column=4)}
    assert [each.code for each in problems] == ["Y5"]


DOCUMENT = """\
a:
  b: [x, {c: y}]
  "d e": z
"""


@pytest.mark.parametrize(
    ("path", "key", "expected"),
    [
        pytest.param((), False, (1, 1), id="root"),
        pytest.param(("a",), False, (2, 3), id="value"),
        pytest.param(("a",), True, (1, 1), id="key"),
        pytest.param(("a", "b", 1), False, (2, 10), id="item"),
        pytest.param(("a", "b", 1, "c"), True, (2, 11), id="key-of-an-item"),
        pytest.param(("a", "d e"), False, (3, 10), id="quoted-key"),
        pytest.param(("a", "missing", "x"), False, (1, 1), id="nearest-is-the-key"),
        pytest.param(("missing",), False, (1, 1), id="nearest-is-the-root"),
        pytest.param(("a", "b", 7), False, (2, 3), id="missing-item"),
    ],
)
def test_every_key_and_value_has_a_place(
    path: tuple[str | int, ...],
    key: bool,  # noqa: FBT001 - a parameter of the table
    expected: tuple[int, int],
) -> None:
    place = parse_yaml(DOCUMENT, file="f").place(path, key=key)

    assert place == SourcePlace(file="f", line=expected[0], column=expected[1])


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("p: say ‸{{x}} now\n", id="plain"),
        pytest.param("p: say\n  and ‸{{x}}\n", id="plain-over-lines"),
        pytest.param("p: 'it''s ‸{{x}}'\n", id="single-quoted"),
        pytest.param("p: 'one\n\n  two ‸{{x}}'\n", id="single-quoted-over-lines"),
        pytest.param('p: "a\\n\\"b\\" ‸{{x}}"\n', id="double-quoted-with-escapes"),
        pytest.param('p: "a\\x41\\u00e9\\U0001F600 ‸{{x}}"\n', id="numbered-escapes"),
        pytest.param('p: "a \\\n  b\\  ‸{{x}}"\n', id="escaped-line-break"),
        pytest.param("p: |\n  one\n\n    two ‸{{x}}\n", id="literal"),
        pytest.param("p: |2-\n    one ‸{{x}}\n", id="literal-with-indicators"),
        pytest.param("p: >\n  one\n  two\n\n  ‸{{x}}\n", id="folded"),
        pytest.param("p: |\r\n  one\r\n  ‸{{x}}\r\n", id="literal-crlf"),
        pytest.param("p: !!str &a\n  '‸{{x}}'\n", id="behind-tag-and-anchor"),
        pytest.param("p: &a |  # why\n  one ‸{{x}}\n", id="behind-a-comment"),
        pytest.param("p: '\u2028 ‸{{x}}'\n", id="behind-a-line-separator"),
    ],
)
def test_a_character_of_a_text_is_found_where_it_was_written(text: str) -> None:
    text, ((line, column),) = take_carets(text)
    located = parse_yaml(text)

    place = located.place_of(("p",), located.value["p"].index("{{x}}"))

    assert (place.line, place.column) == (line, column)


TEXTS = [
    "no", "~", "", " x", "x ", "x: y", "- x", "# x", "a\nb", "a\n\n", "\n", "\na",
    "a\n b\n", "012", "1_000", "'", '"', "{{x}}", "!x", "&x", "*x", "a\tb\nc", "<<",
    "\ta\nb", "---", "...", "a\r\nb", "x" * 1_100, "\u2028", "\ufeffx", "\x85", "=",
    "true", "0x1", "1e3", ".inf", "a #b", "a:", "? x", "\x7f\n", "é\n😀", "12:30",
]  # fmt: skip


def texts() -> st.SearchStrategy[str]:
    any_text = st.text(st.characters(exclude_categories=["Cs"]))
    return any_text | st.sampled_from(TEXTS)


def json_values() -> st.SearchStrategy[Json]:
    numbers = st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER) | st.floats(
        allow_nan=False, allow_infinity=False
    )
    leaves = st.none() | st.booleans() | numbers | texts()
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts(), inner),
        max_leaves=12,
    )


@given(json_values())
def test_what_is_written_reads_back(value: Json) -> None:
    assert same(parse_value(dump_yaml(value)), value)


@given(json_values())
def test_what_is_written_reads_back_with_the_python_parser(value: Json) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(events, "_LOADER", yaml.BaseLoader)

        assert same(parse_value(dump_yaml(value)), value)


def same(one: Json, other: Json) -> bool:
    """Compare with types and key order, which equality passes over."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(same(a, b) for a, b in pairs)
    return type(one) is type(other) and bool(one == other)


@given(st.lists(texts()))
def test_nothing_written_is_something_else_to_a_yaml_1_1_reader(
    value: list[str],
) -> None:
    assert yaml.safe_load(dump_yaml(value)) == value


def test_text_of_many_lines_is_written_as_a_block() -> None:
    value = {"goal": "One.\nTwo.\n", "list": ["a", {"b": 1, "c": []}], "no": "no"}

    assert dump_yaml(value) == (
        'goal: |\n  One.\n  Two.\nlist:\n  - a\n  - b: 1\n    c: []\n"no": "no"\n'
    )


def test_nothing_is_shared_in_what_is_written() -> None:
    shared = {"x": 1}

    assert dump_yaml([shared, shared]) == "- x: 1\n- x: 1\n"


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({1: "x"}, id="number-key"),
        pytest.param({"x": object()}, id="object"),
        pytest.param({"x": b""}, id="bytes"),
    ],
)
def test_values_json_does_not_have_are_not_written(value: Json) -> None:
    with pytest.raises(TypeError):
        dump_yaml(value)


def test_a_number_that_is_not_finite_is_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        dump_yaml(math.inf)


def test_a_replys_json_escapes_beyond_the_first_plane_are_read() -> None:
    assert parse_value('title: "\\ud83d\\ude00 done"') == {"title": "\U0001f600 done"}


def test_half_a_surrogate_pair_is_still_refused() -> None:
    with pytest.raises(InvalidError):
        parse_value('title: "\\ud83d done"')


@pytest.mark.parametrize("text", ["---", "--- ", "---\n", "\n---"])
def test_a_document_of_nothing_is_in_a_line_that_is_there(text: str) -> None:
    located, problems = read_yaml(text)

    assert problems == ()
    assert located is not None
    assert located.mark.line == text.rstrip().count("\n") + 1


@pytest.mark.parametrize("blank", ["\u00a0", "\u3000", "\x85", "\u2028"])
def test_a_blank_that_yaml_takes_for_text_stands_where_it_is_written(
    blank: str,
) -> None:
    mark = parse_yaml(f"# only\n{blank}\n").mark

    assert (mark.value, mark.line, mark.column) == (blank, 2, 1)
