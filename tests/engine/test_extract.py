from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwfgit.engine.ask.extract import Extraction, extract_reply
from uwfgit.engine.ask.prompt import correction_prompt, correction_without_session
from uwfgit.model.yaml.dump import dump_yaml
from uwfgit.store.canonical import Json

LINK: Final = "0123456789ABC"
SCHEMA: Final[Json] = {
    "properties": {"note": {"type": "string"}},
    "oneOf": [
        {
            "properties": {
                "$status": {"const": "done"},
                "summary": {"type": "string"},
                "count": {"type": "number"},
                "due": {"type": "string", "format": "date"},
                "plan": {"type": "string", "format": "ocas_ref"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["$status"],
        },
        {
            "properties": {"$status": {"const": "failed"}, "error": {"type": "string"}},
            "required": ["$status", "error"],
        },
    ],
}
FREE: Final[Json] = {"type": "object"}


def _extract(
    text: str, schema: Json = SCHEMA, *, listed: bool = False
) -> Extraction | Sequence[tuple[str, str | None, int | None]]:
    found = extract_reply(
        text, schema=schema, listed=listed, is_link=lambda link: link == LINK
    )
    if isinstance(found, Extraction):
        return found
    return [(problem.code, problem.path, problem.line) for problem in found]


def _good(
    output: Mapping[str, Json], body: str = "", *warnings: str, suspended: bool = False
) -> Extraction:
    return Extraction(
        output=dict(output), body=body, warnings=warnings, suspended=suspended
    )


DONE: Final = {"$status": "done"}
FENCED = "the block stands in a code fence"
PREAMBLE = "text before the block is not part of the body"
AT_END = "the block stands at the end; the body is above it"
NUL = "NUL characters in the body were replaced"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param("---\n$status: done\n---\nHi", _good(DONE, "Hi"), id="plain"),
        pytest.param("---\n$status: done\n---", _good(DONE), id="no-last-newline"),
        pytest.param("---\n$status: done\n---\n\n\n", _good(DONE), id="no-body"),
        pytest.param(
            "---\n$status: done\n---\n \n\n  Hi\n\nyou \n\n",
            _good(DONE, "  Hi\n\nyou "),
            id="body-without-blank-ends",
        ),
        pytest.param("\ufeff---\n$status: done\n---\nHi", _good(DONE, "Hi"), id="bom"),
        pytest.param(
            "\n \t\r\n\ufeff\n---\n$status: done\n---\nHi",
            _good(DONE, "Hi"),
            id="leading-white-space",
        ),
        pytest.param(
            "---\r\n$status: done\r\nsummary: a\r\n---\r\n\r\nHi\r\nyou\r\n",
            _good(DONE | {"summary": "a"}, "Hi\r\nyou"),
            id="crlf",
        ),
        pytest.param(
            "--- \t\n$status: done\n---  \nHi", _good(DONE, "Hi"), id="trailing-blanks"
        ),
        pytest.param(
            "```yaml\n---\n$status: done\n---\n```\nHi",
            _good(DONE, "Hi", FENCED),
            id="block-in-a-fence",
        ),
        pytest.param(
            "~~~~\n\n---\n$status: done\n---\n~~~~\n\nHi\n```\ncode\n```",
            _good(DONE, "Hi\n```\ncode\n```", FENCED),
            id="block-in-a-tilde-fence",
        ),
        pytest.param(
            "```markdown\n---\n$status: done\n---\nHi\n```sh\nls\n```\nbye\n```\n",
            _good(DONE, "Hi\n```sh\nls\n```\nbye", FENCED),
            id="reply-in-a-fence",
        ),
        pytest.param(
            "````\n---\n$status: done\n---\n```sh\nls\n```\n````",
            _good(DONE, "```sh\nls\n```", FENCED),
            id="reply-in-a-longer-fence",
        ),
        pytest.param(
            "```\n---\n$status: done\n---\n```sh\nls\n```",
            _good(DONE, "```sh\nls\n```", FENCED),
            id="fence-left-open",
        ),
        pytest.param(
            "```\n---\n$status: done\n---\nHi",
            _good(DONE, "Hi", FENCED),
            id="fence-never-closed",
        ),
        pytest.param(
            "---\n$status: done\n---\n```sh\nls\n```",
            _good(DONE, "```sh\nls\n```"),
            id="fence-in-the-body-stays",
        ),
        pytest.param(
            "Here it is:\n\n---\n$status: done\n---\nHi",
            _good(DONE, "Hi", PREAMBLE),
            id="preamble",
        ),
        pytest.param(
            "Here:\n```yaml\n---\n$status: done\n---\n```\nHi",
            _good(DONE, "Hi", PREAMBLE, FENCED),
            id="preamble-and-fence",
        ),
        pytest.param(
            "```sh\nls\n```\n---\n$status: done\n---\nHi",
            _good(DONE, "Hi", PREAMBLE),
            id="fence-before-the-block-is-closed",
        ),
        pytest.param(
            "All is well.\n\n---\n$status: done\n---\n",
            _good(DONE, "All is well.", AT_END),
            id="block-at-the-end",
        ),
        pytest.param(
            "---\n\nThinking: so\n\n---\n$status: done\n---\nHi",
            _good(DONE, "Hi", PREAMBLE),
            id="rule-above-a-preamble",
        ),
        pytest.param(
            "---\nSo: I: think\n---\n$status: done\n---\nHi",
            _good(DONE, "Hi", PREAMBLE),
            id="rule-above-prose-that-is-no-yaml",
        ),
        pytest.param(
            "---\nSo: I: think\n---\nHi", [("Y1", None, 2)], id="prose-that-is-no-yaml"
        ),
        pytest.param(
            "```sh\n~~~\n```\n---\n$status: done\n---\nHi",
            _good(DONE, "Hi", PREAMBLE),
            id="other-fence-inside-a-fence",
        ),
        pytest.param(
            "---\n---\n$status: done\n---\nHi",
            _good(DONE, "Hi", PREAMBLE),
            id="empty-block-above",
        ),
        pytest.param(
            "---\n$status: done\n---\nHi\n\n---\n$status: failed\n---\nyou",
            _good(DONE, "Hi\n\n---\n$status: failed\n---\nyou"),
            id="two-blocks-first-at-the-start",
        ),
        pytest.param(
            "Hi\n---\n$status: done\n---\n---\n$status: failed\n---\n",
            [("reply-block", None, None)],
            id="two-blocks-after-a-preamble",
        ),
        pytest.param(
            "Hi\n---\n$status: done\n---\n$status: failed\n---\n",
            _good(DONE, "$status: failed\n---", PREAMBLE),
            id="closing-line-opens-nothing",
        ),
        pytest.param(
            "---\n$status: done\n---\n$status: failed\n---\n",
            _good(DONE, "$status: failed\n---"),
            id="two-documents",
        ),
        pytest.param(
            "---\n$status: done\n--- # next\nsummary: x\n---\n",
            [("Y4", None, 3)],
            id="document-marker-inside",
        ),
        pytest.param("---\n$status: done\nHi", [("reply-block", None, 1)], id="open"),
        pytest.param("\n\n---\n", [("reply-block", None, 3)], id="only-a-rule"),
        pytest.param("---\n---\nHi", [("reply-block", None, 2)], id="empty-block"),
        pytest.param("---\n# x\n---\n", [("reply-block", None, 2)], id="only-comments"),
        pytest.param("---\n{}\n---\n", [("reply-block", None, 2)], id="empty-mapping"),
        pytest.param("---\n- a\n---\n", [("reply-block", None, 2)], id="list-block"),
        pytest.param("---\njust text\n---\n", [("reply-block", None, 2)], id="prose"),
        pytest.param("", [("reply-block", None, None)], id="empty"),
        pytest.param(" \n\ufeff\n", [("reply-block", None, None)], id="only-blanks"),
        pytest.param("Done.", [("reply-block", None, None)], id="no-block"),
        pytest.param(
            "$status: done\n", [("reply-block", None, None)], id="no-delimiters"
        ),
        pytest.param(
            "```yaml\n$status: done\n```",
            [("reply-block", None, None)],
            id="bare-fence",
        ),
        pytest.param(
            "----\n$status: done\n----", [("reply-block", None, None)], id="four-dashes"
        ),
        pytest.param(
            "  ---\n  $status: done\n  ---", [("reply-block", None, 1)], id="indented"
        ),
        pytest.param(
            "---\n$status:\tdone\n---\n", _good(DONE), id="tab-after-the-colon"
        ),
        pytest.param(
            "---\n$status: done\ntags:\n\t- a\n---\n",
            [("Y1", None, 4)],
            id="tab-indent",
        ),
        pytest.param(
            "---\n$status: done\nsummary: a\nsummary: b\n---\n",
            [("Y6", None, 4)],
            id="duplicate-key",
        ),
        pytest.param(
            "---\n$status: done\nsummary: a: b\n---\n",
            [("Y1", None, 3)],
            id="unquoted-colon",
        ),
        pytest.param(
            "Hi\n\n---\n$status: done\nsummary: a: b\n---\n",
            [("Y1", None, 5)],
            id="unquoted-colon-after-a-preamble",
        ),
        pytest.param(
            "---\n$status: done\nsummary: no\nnote: on\n---\n",
            _good(DONE | {"note": "on", "summary": "no"}),
            id="no-and-on-are-text",
        ),
        pytest.param(
            "---\n$status: done\nsummary: 12:30\nnote: 2026-01-01\n---\n",
            _good(DONE | {"note": "2026-01-01", "summary": "12:30"}),
            id="times-and-dates-are-text",
        ),
        pytest.param(
            "---\n$status: done\ndue: 2026-01-31\n---\n",
            _good(DONE | {"due": "2026-01-31"}),
            id="date-field",
        ),
        pytest.param(
            "---\n$status: done\ncount: 012\n---\n",
            _good(DONE | {"count": 12}),
            id="leading-zero-number",
        ),
        pytest.param(
            "---\n$status: done\nsummary: 012\n---\n",
            [("reply-field", "summary", None)],
            id="leading-zero-for-text",
        ),
        pytest.param(
            "---\n$status: done\ncount: 12:30\n---\n",
            [("reply-field", "count", None)],
            id="time-for-a-number",
        ),
        pytest.param(
            "---\n$status: done\ncount: no\n---\n",
            [("reply-field", "count", None)],
            id="no-for-a-number",
        ),
        pytest.param(
            "---\n$status: done\ncount: 1.0\n---\n",
            _good(DONE | {"count": 1}),
            id="integral-number",
        ),
        pytest.param(
            "---\n$status: done\ncount: .nan\n---\n",
            [("Y11", None, 3)],
            id="not-a-number",
        ),
        pytest.param(
            "---\n$status: done\ncount: 9007199254740992\n---\n",
            [("Y11", None, 3)],
            id="number-too-large",
        ),
        pytest.param(
            "---\n$status: done\nextra: 1\n---\n",
            _good(DONE, "", "field 'extra' is not known and was dropped"),
            id="unknown-field",
        ),
        pytest.param(
            "---\n$status: done\nerror: x\n---\n",
            _good(
                DONE, "", "field 'error' belongs to $status 'failed' and was dropped"
            ),
            id="field-of-another-variant",
        ),
        pytest.param(
            "---\n$status: done\nnote: x\n---\n",
            _good(DONE | {"note": "x"}),
            id="field-around-the-variants",
        ),
        pytest.param(
            "---\n$status: Done\n---\n",
            [("reply-status", "$status", None)],
            id="unknown-status",
        ),
        pytest.param(
            "---\n$status: true\n---\n",
            [("reply-status", "$status", None)],
            id="status-is-no-text",
        ),
        pytest.param(
            "---\n$status:\n---\n",
            [("reply-status", "$status", None)],
            id="null-status",
        ),
        pytest.param(
            "---\nsummary: x\n---\n", [("reply-block", None, 2)], id="no-status"
        ),
        pytest.param(
            "---\nstatus: done\n---\nHi",
            _good(DONE, "Hi", "'status' was read as '$status'"),
            id="status-without-the-dollar",
        ),
        pytest.param(
            "---\n$status: done\nstatus: failed\n---\n",
            _good(DONE, "", "field 'status' is not known and was dropped"),
            id="both-statuses",
        ),
        pytest.param(
            "---\n$status: failed\n---\n",
            [("reply-field", "error", None)],
            id="missing-required",
        ),
        pytest.param(
            "---\n$status: done\ntags: [a, 1]\ncount: x\n---\n",
            [("reply-field", "count", None), ("reply-field", "tags[1]", None)],
            id="every-problem-is-told",
        ),
        pytest.param(
            "---\n$status: done\ndue: tomorrow\n---\n",
            [("reply-field", "due", None)],
            id="wrong-format",
        ),
        pytest.param(
            f"---\n$status: done\nplan: {LINK}\n---\n",
            _good(DONE | {"plan": LINK}),
            id="link",
        ),
        pytest.param(
            "---\n$status: done\nplan: 0123456789ABD\n---\n",
            [("reply-field", "plan", None)],
            id="hash-that-is-no-link",
        ),
        pytest.param(
            "---\n$status: $SUSPEND\nreason: Which one?\n---\nHi",
            _good(
                {"$status": "$SUSPEND", "reason": "Which one?"}, "Hi", suspended=True
            ),
            id="suspend",
        ),
        pytest.param(
            '---\n$status: "$SUSPEND"\n---\n',
            _good({"$status": "$SUSPEND", "reason": ""}, suspended=True),
            id="suspend-without-a-reason",
        ),
        pytest.param(
            "---\n$status: $SUSPEND\nreason: [1, é]\nother: 1\n---\n",
            _good({"$status": "$SUSPEND", "reason": '[1, "é"]'}, suspended=True),
            id="suspend-with-another-reason",
        ),
        pytest.param(
            "---\nreason: Need this: a key # x\n  and: more\n$status: $SUSPEND\n---\n",
            _good(
                {"$status": "$SUSPEND", "reason": "Need this: a key # x\nand: more"},
                "",
                "the reason of $SUSPEND is not valid YAML; read as text",
                suspended=True,
            ),
            id="suspend-with-a-colon",
        ),
        pytest.param(
            '---\n$status: $SUSPEND\nreason: "a" or "b": which\n---\n',
            _good(
                {"$status": "$SUSPEND", "reason": '"a" or "b": which'},
                "",
                "the reason of $SUSPEND is not valid YAML; read as text",
                suspended=True,
            ),
            id="suspend-with-quotes-inside",
        ),
        pytest.param(
            "---\nstatus: $SUSPEND\nreason: a: b\n---\n",
            _good(
                {"$status": "$SUSPEND", "reason": "a: b"},
                "",
                "the reason of $SUSPEND is not valid YAML; read as text",
                suspended=True,
            ),
            id="suspend-without-the-dollar",
        ),
        pytest.param(
            "---\n$status: $SUSPEND\nreason: 'It's: this'\n---\n",
            _good(
                {"$status": "$SUSPEND", "reason": "It's: this"},
                "",
                "the reason of $SUSPEND is not valid YAML; read as text",
                suspended=True,
            ),
            id="suspend-with-a-quote-inside-quotes",
        ),
        pytest.param(
            "---\n$status: $SUSPEND\nreason: |\nNot: indented: at all\n---\n",
            _good(
                {"$status": "$SUSPEND", "reason": "Not: indented: at all"},
                "",
                "the reason of $SUSPEND is not valid YAML; read as text",
                suspended=True,
            ),
            id="suspend-with-a-broken-block-scalar",
        ),
        pytest.param(
            "---\n$status: $SUSPEND\nnote: a: b\nreason: c\n---\n",
            [("Y1", None, 3)],
            id="suspend-broken-elsewhere",
        ),
        pytest.param(
            f"---\n$status: done\n{BOMB}---\n", [("Y9", None, None)], id="alias-bomb"
        ),
        pytest.param(
            "---\n$status: &s done\nsummary: *s\n---\n",
            _good(DONE | {"summary": "done"}),
            id="alias",
        ),
        pytest.param(
            "---\n$status: !!python/name:os.system done\n---\n",
            [("Y5", None, 2)],
            id="python-tag",
        ),
        pytest.param(
            "---\n$status: done\nsummary: !include /etc/passwd\n---\n",
            [("Y5", None, 3)],
            id="include",
        ),
        pytest.param(
            "---\n$status: done\n---\na\0b",
            _good(DONE, "a\ufffdb", NUL),
            id="nul-bytes",
        ),
        pytest.param(
            "---\n$status: done\nsummary: a\0b\n---\n",
            [("Y2", None, 3)],
            id="nul-in-the-block",
        ),
        pytest.param(
            "---\n$status: done\n---\na\ud800b",
            _good(DONE, "a\ufffdb", "characters that are no text were replaced"),
            id="lone-surrogate",
        ),
        pytest.param(
            '---\n$status: done\nsummary: "\\ud800"\n---\n',
            [("Y1", None, 3)],
            id="lone-surrogate-by-escape",
        ),
        pytest.param(
            "---\n$status: done\nsummary: see #12\n---\n",
            _good(
                DONE | {"summary": "see #12"},
                "",
                "line 3: text after ' #' was kept; put such text in quotes",
            ),
            id="value-cut-by-a-comment",
        ),
        pytest.param(
            "---\n$status: done\nsummary: |\n  a: b\n   ---\n  # c\n---\nHi",
            _good(DONE | {"summary": "a: b\n ---\n# c\n"}, "Hi"),
            id="block-scalar",
        ),
    ],
)
def test_reply_gives(
    reply: str, expected: Extraction | Sequence[tuple[str, str | None, int | None]]
) -> None:
    found = _extract(reply)

    if isinstance(found, Extraction) or isinstance(expected, Extraction):
        assert found == expected
        return
    assert [each[:2] for each in found] == [each[:2] for each in expected]
    lines = [(f[2], e[2]) for f, e in zip(found, expected, strict=True)]
    assert all(line == wanted for line, wanted in lines if wanted is not None)


@pytest.mark.parametrize(
    ("schema", "reply", "expected"),
    [
        pytest.param(FREE, "a: 1", _good({"a": 1}), id="any-fields"),
        pytest.param(FREE, "$status: x", _good({"$status": "x"}), id="any-status"),
        pytest.param(FREE, "status: x", _good({"status": "x"}), id="status-is-a-field"),
        pytest.param(
            FREE,
            "status: $SUSPEND",
            _good(
                {"$status": "$SUSPEND", "reason": ""},
                "",
                "'status' was read as '$status'",
                suspended=True,
            ),
            id="status-suspends",
        ),
        pytest.param(FREE, "{}", _good({}), id="no-fields"),
        pytest.param(FREE, "a: b: c", [("Y1", None, 2)], id="broken"),
        pytest.param(
            {"properties": {"a": {"type": "string"}}},
            "a: x\nb: 1",
            _good({"a": "x"}, "", "field 'b' is not known and was dropped"),
            id="unknown-field",
        ),
        pytest.param(
            {"properties": {"a": {"type": "string"}}, "additionalProperties": True},
            "a: x\nb: 1",
            _good({"a": "x", "b": 1}),
            id="open",
        ),
        pytest.param(
            {"properties": {}, "additionalProperties": False},
            "a: x",
            _good({}, "", "field 'a' is not known and was dropped"),
            id="closed",
        ),
        pytest.param(SCHEMA, "summary: x", [("reply-block", None, 2)], id="fixed"),
    ],
)
def test_reply_of_a_role_with_listed_edges(
    schema: Json,
    reply: str,
    expected: Extraction | Sequence[tuple[str, str | None, int | None]],
) -> None:
    assert _extract(f"---\n{reply}\n---\n", schema, listed=True) == expected


def test_a_block_after_a_preamble_may_hold_any_fields_of_a_listed_role() -> None:
    assert _extract("Hi\n---\na: 1\n---\nyou", FREE, listed=True) == _good(
        {"a": 1}, "you", PREAMBLE
    )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({}, DONE, id="nothing-said"),
        pytest.param({"additionalProperties": False}, DONE, id="forbidden"),
        pytest.param({"additionalProperties": {}}, DONE | {"x": 1}, id="allowed"),
        pytest.param(
            {"patternProperties": {"^x$": {}}}, DONE | {"x": 1}, id="named-by-a-pattern"
        ),
    ],
)
def test_unknown_field_stays_only_where_the_schema_allows_it(
    schema: Json, expected: Mapping[str, Json]
) -> None:
    status = {"properties": {"$status": {"const": "done"}}, "required": ["$status"]}

    found = _extract("---\n$status: done\nx: 1\n---\n", {**status, **schema})

    assert isinstance(found, Extraction)
    assert found.output == expected


def test_a_role_may_have_a_field_named_status() -> None:
    schema = {
        "properties": {"$status": {"const": "done"}, "status": {"type": "integer"}},
        "required": ["$status"],
    }

    assert _extract("---\n$status: done\nstatus: 3\n---\n", schema) == _good(
        {"status": 3, "$status": "done"}
    )
    assert _extract("---\nstatus: done\n---\n", schema) == [
        ("reply-field", "status", None)
    ]


def test_a_schema_may_declare_suspend_without_effect() -> None:
    schema = {
        "properties": {"$status": {"enum": ["done", "$SUSPEND"]}, "x": {}},
        "required": ["x"],
    }

    found = _extract("---\n$status: $SUSPEND\nx: 1\n---\n", schema)

    assert found == _good({"$status": "$SUSPEND", "reason": ""}, suspended=True)


def test_unknown_status_names_the_allowed_ones() -> None:
    found = extract_reply(
        "---\n$status: finished\n---\n",
        schema=SCHEMA,
        listed=False,
        is_link=lambda _: True,
    )

    assert not isinstance(found, Extraction)
    assert found[0].message == (
        'found the text "finished", must be one of done, failed, $SUSPEND'
    )


LARGE: Final = 5 * 1024 * 1024


@pytest.mark.parametrize(
    ("reply", "is_good"),
    [
        pytest.param("---\n$status: done\n---\n" + "x" * LARGE, True, id="one-line"),
        pytest.param("---\n$status: done\n---\n" + "\n" * LARGE, True, id="newlines"),
        pytest.param("---\n$status: done\n---\n" + " " * LARGE, True, id="blanks"),
        pytest.param("---\n" * (LARGE // 4), False, id="only-rules"),
        pytest.param("Hi\n" + "---\nstatus\n" * 400_000, False, id="no-block-at-all"),
        pytest.param("Hi\n" + "---\n$status: a\n" * 300_000, False, id="many-blocks"),
        pytest.param("---\n$status: done\nsummary: " + "x" * LARGE, False, id="open"),
        pytest.param(
            f"---\n$status: done\nsummary: {'x' * LARGE}\n---\n",
            False,
            id="large-block",
        ),
        pytest.param("```\n" * (LARGE // 4), False, id="only-fences"),
        pytest.param(
            "```\n---\n$status: done\n---\n" + "```\nx\n" * 800_000, True, id="fences"
        ),
        pytest.param("-" * LARGE, False, id="dashes"),
        pytest.param(("---" + " " * 97 + "x\n") * 50_000, False, id="near-rules"),
        pytest.param("\ufeff \n" * (LARGE // 5), False, id="white-space"),
        pytest.param(
            "---\n$status: $SUSPEND\nreason: a: b\n" + "c d\n" * 200_000 + "---\n",
            True,
            id="large-reason",
        ),
    ],
)
def test_large_reply_is_read_in_linear_time(reply: str, *, is_good: bool) -> None:
    started = time.process_time()

    found = _extract(reply)

    assert isinstance(found, Extraction) is is_good
    # A quadratic reading of these takes many minutes.
    assert time.process_time() - started < 20


@given(
    summary=st.text(st.characters(exclude_categories=["Cs", "Cc"])),
    body=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    leading=st.text("\n\r\t \ufeff", max_size=4),
)
def test_what_a_well_formed_reply_holds_comes_back(
    summary: str, body: str, leading: str
) -> None:
    fields = {"$status": "done", "summary": summary}

    found = _extract(f"{leading}---\n{dump_yaml(fields)}---\n{body}")

    assert isinstance(found, Extraction)
    assert found.output == fields
    assert found.body.strip() == body.strip()


@given(st.text("-$status: done\n`~#xé\0\ufeff\ud800", max_size=80))
def test_no_reply_makes_extract_raise(reply: str) -> None:
    _extract(reply)


def _problems(reply: str) -> Sequence[Json]:
    found = extract_reply(reply, schema=SCHEMA, listed=False, is_link=lambda _: True)
    assert not isinstance(found, Extraction)
    return found


def test_correction_names_every_problem_and_the_format() -> None:
    problems = _problems("---\n$status: done\ncount: x\ntags: 1\n---\n")

    text = correction_prompt(problems, schema=SCHEMA, listed=False)

    assert text.startswith(
        "# Your last reply could not be used\n\n"
        '- `count`: must be a number, found the text "x"\n'
        "- `tags`: must be a list, found the number 1\n\n"
        "Your work is done: do not do it again."
    )
    assert "## `$status: failed`" in text
    assert "$status: $SUSPEND" in text


def test_correction_names_the_line_of_broken_yaml_and_the_mend() -> None:
    problems = _problems("\n---\n$status: done\nsummary: a: b\n---\n")

    text = correction_prompt(problems, schema=SCHEMA, listed=False)

    assert "\n- line 4 of the reply: the block cannot be read: " in text
    assert "quote text that holds ': '" in text


def test_correction_without_a_session_repeats_prompt_and_reply() -> None:
    reply = "Hi\n```\nx\n```\n"

    text = correction_without_session(
        "PROMPT\n", reply, _problems(reply), schema=SCHEMA, listed=False
    )

    assert text.startswith(
        "PROMPT\n\n# Your reply to all this\n\n````data\nHi\n```\nx\n```\n````\n\n"
        "# Your last reply could not be used\n\n"
        "- the reply has no YAML block between two '---'"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "path", "at"),
    [
        pytest.param(
            {"properties": {"v": {"items": {"pattern": "^(a+)+$"}}}},
            "v[0]",
            "'pattern' \"^(a+)+$\"",
            id="a-value",
        ),
        pytest.param(
            {
                "properties": {"v": {}},
                "patternProperties": {"^(a+)+$": {}},
                "additionalProperties": False,
            },
            None,
            "'patternProperties' \"^(a+)+$\"",
            id="a-name",
        ),
    ],
)
def test_an_answer_that_cannot_be_checked_in_time_has_one_problem(
    schema: dict[str, Json], path: str | None, at: str
) -> None:
    schema["properties"] |= {"$status": {"const": "done"}}
    endless = "a" * 60 + "!"
    reply = f"---\n$status: done\n{endless}: 1\nv: [{endless}]\n---\nHi"

    found = extract_reply(reply, schema=schema, listed=False, is_link=bool)

    assert not isinstance(found, Extraction)
    [problem] = found
    assert problem.code == "reply-field"
    assert problem.path == path
    assert problem.message == f"takes more than 5 seconds to check against {at}"


# --- text that YAML cuts at ' #' ---

KEPT = "text after ' #' was kept; put such text in quotes"
LEFT = "what follows ' #' is a YAML comment and left out"


@pytest.mark.parametrize(
    ("block", "expected", "warnings"),
    [
        pytest.param("a: PR #4 x", {"a": "PR #4 x"}, (f"line 2: {KEPT}",), id="field"),
        pytest.param(
            "a:\n  - see #4\n  - C# too",
            {"a": ["see #4", "C# too"]},
            (f"line 3: {KEPT}",),
            id="item",
        ),
        pytest.param(
            "a:\n- see #4\nb: x",
            {"a": ["see #4"], "b": "x"},
            (f"line 3: {KEPT}",),
            id="item-at-the-margin",
        ),
        pytest.param(
            "a:\n  b.c: see #4",
            {"a": {"b.c": "see #4"}},
            (f"line 3: {KEPT}",),
            id="nested-and-no-word",
        ),
        pytest.param('"a": PR #4', {"a": "PR #4"}, (f"line 2: {KEPT}",), id="key"),
        pytest.param("a: !!str #4", {"a": "#4"}, (f"line 2: {KEPT}",), id="only-tag"),
        pytest.param("a: !!str x #4", {"a": "x #4"}, (f"line 2: {KEPT}",), id="tag"),
        pytest.param(
            "a: &n x #4\nb: *n",
            {"a": "x #4", "b": "x #4"},
            (f"line 2: {KEPT}",),
            id="anchor",
        ),
        pytest.param("a: #4", {"a": "#4"}, (f"line 2: {KEPT}",), id="nothing-else"),
        pytest.param("a:\n- #4", {"a": ["#4"]}, (f"line 3: {KEPT}",), id="bare-item"),
        pytest.param(
            "a: one\n  two #4", {"a": "one two #4"}, (f"line 3: {KEPT}",), id="folded"
        ),
        pytest.param("a: 'it' #4", {"a": "it"}, (), id="behind-quotes"),
        pytest.param("a: x # why", {"a": "x"}, (f"line 2: {LEFT}",), id="a-comment"),
        pytest.param("a: # why\n  - x", {"a": ["x"]}, (), id="a-comment-of-a-key"),
        pytest.param("a: 5 #five", {"a": 5}, (), id="behind-a-number"),
        pytest.param("a: |\n  x #4", {"a": "x #4\n"}, (), id="literal"),
        pytest.param("a: x#4", {"a": "x#4"}, (), id="no-blank"),
        pytest.param("#a: b\na: c", {"a": "c"}, (), id="a-line-of-comment"),
        pytest.param(
            "a: 'q' \nb: say \"hi\" #4",
            {"a": "q", "b": 'say "hi" #4'},
            (f"line 3: {KEPT}",),
            id="quotes-inside",
        ),
        pytest.param(
            "{a: x #4\n}",
            {"a": "x #4"},
            (f"line 2: {KEPT}",),
            id="flow",
        ),
    ],
)
def test_text_is_kept_where_a_comment_was_hardly_meant(
    block: str, expected: Mapping[str, Json], warnings: tuple[str, ...]
) -> None:
    found = _extract(f"---\n{block}\n---\n", FREE, listed=True)

    assert found == _good(expected, "", *warnings)


def test_a_status_is_never_made_longer_and_a_question_is_whole() -> None:
    done = _extract("---\n$status: done #1\n---\n")
    asked = _extract("---\n$status: $SUSPEND\nreason: Which, #3 or #4?\n---\n")

    assert done == _good(DONE, "", f"line 2: {LEFT}")
    assert isinstance(asked, Extraction)
    assert asked.output["reason"] == "Which, #3 or #4?"


# --- a role that has one status, or none ---

ONE: Final[Json] = {
    "properties": {"$status": {"const": "done"}, "a": {"type": "string"}},
    "required": ["$status"],
}
TAKEN = "the block has no $status; taken for 'done', the only one"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(
            "---\na: x\n---\nHi", _good(DONE | {"a": "x"}, "Hi", TAKEN), id="a"
        ),
        pytest.param("---\n{}\n---\nHi", _good(DONE, "Hi", TAKEN), id="empty"),
        pytest.param("---\n---\nHi", _good(DONE, "Hi", TAKEN), id="nothing"),
        pytest.param("---\nb: x\n---\n", [("reply-block", None, 2)], id="other-fields"),
        pytest.param("Hi", [("reply-block", None, None)], id="no-block"),
        pytest.param(
            "---\na: draft\n---\n\n---\n$status: done\na: x\n---\nHi",
            _good(DONE | {"a": "x"}, "Hi", PREAMBLE),
            id="a-block-with-a-status-wins",
        ),
        pytest.param(
            "```\n---\na: x\n---\n```\n",
            _good(DONE | {"a": "x"}, "", FENCED, TAKEN),
            id="in-a-fence",
        ),
    ],
)
def test_the_only_status_need_not_be_said(
    reply: str, expected: Extraction | Sequence[tuple[str, str | None, int | None]]
) -> None:
    assert _extract(reply, ONE) == expected


def test_of_two_statuses_one_must_be_said() -> None:
    assert _extract("---\nsummary: x\n---\n") == [("reply-block", None, 2)]


def test_nothing_is_an_answer_where_nothing_is_asked_for() -> None:
    needs = {"type": "object", "properties": {"a": {}}, "required": ["a"]}

    assert _extract("---\n---\nHi", FREE, listed=True) == _good({}, "Hi")
    assert _extract("---\n{}\n---\n", needs, listed=True) == [
        ("reply-field", "a", None)
    ]


# --- thoughts ---

THOUGHT = "thoughts before the block are not part of the body"
DRAFT = "---\n$status: failed\nerror: x\n---\n"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(
            f"<think>\n{DRAFT}Or so?\n</think>\n\n---\n$status: done\n---\nHi",
            _good(DONE, "Hi", THOUGHT),
            id="a-draft",
        ),
        pytest.param(
            f"I may say\n{DRAFT}</think>\n---\n$status: done\n---\nHi",
            _good(DONE, "Hi", THOUGHT),
            id="only-the-end",
        ),
        pytest.param(
            f"<think>a</think>\n<thinking>\n{DRAFT}</thinking>\n"
            "---\n$status: done\n---\nHi",
            _good(DONE, "Hi", THOUGHT),
            id="two-words",
        ),
        pytest.param(
            f"Sure.\n<think>\n{DRAFT}</think>\n---\n$status: done\n---\nHi",
            _good(DONE, "Hi", PREAMBLE),
            id="behind-a-preamble",
        ),
        pytest.param(
            f"Done.\n<think>\n{DRAFT}</think>\n\n---\n$status: done\n---\n",
            _good(DONE, "Done.", AT_END),
            id="no-part-of-the-body",
        ),
        pytest.param(
            f"<think>\n{DRAFT}</think>\n", [("reply-block", None, None)], id="alone"
        ),
        pytest.param(
            "<think>\nnever closed\n---\n$status: done\n---\nHi",
            _good(DONE, "Hi", PREAMBLE),
            id="never-closed",
        ),
        pytest.param(
            "---\n$status: done\n---\nA\n<think>\nb\n</think>\n",
            _good(DONE, "A\n<think>\nb\n</think>"),
            id="in-the-body",
        ),
        pytest.param(
            "I took `</think>` out.\n\n---\n$status: done\n---\n",
            _good(DONE, "I took `</think>` out.", AT_END),
            id="spoken-of",
        ),
    ],
)
def test_a_thought_is_no_answer(
    reply: str, expected: Extraction | Sequence[tuple[str, str | None, int | None]]
) -> None:
    assert _extract(reply) == expected


def test_lines_are_counted_from_the_start_of_the_reply() -> None:
    reply = "<think>\na\n</think>\n---\n$status: done\nsummary: a: b\n---\n"

    assert _extract(reply) == [("Y1", None, 6)]


def test_much_cut_text_is_kept_in_time_and_told_in_short() -> None:
    items = "".join(f"- see #{number}\n" for number in range(5_000))

    found = _extract(f"---\na:\n{items}---\n", FREE, listed=True)

    assert isinstance(found, Extraction)
    assert found.output["a"][-1] == "see #4999"
    assert len(found.warnings) == 21
