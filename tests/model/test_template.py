from __future__ import annotations

import contextlib
import time
from types import MappingProxyType

import chevron
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwfgit.model.template.render import (
    Rendered,
    Section,
    TemplateError,
    Text,
    Variable,
    parse_template,
    render,
)

VALUES = {
    "$status": "done",
    "text": "a & b",
    "html": "<b>\"x\"</b> & 'y'",
    "n": 3,
    "zero": 0,
    "half": 0.5,
    "whole": 2.0,
    "yes": True,
    "no": False,
    "nothing": None,
    "empty": "",
    "none": [],
    "hollow": {},
    "list": ["a", "b"],
    "mixed": ["a", 1, True, None],
    "items": [{"name": "x", "tags": ["p", "q"]}, {"name": "y"}],
    "map": {"b": 1, "a": {"c": "é"}},
    "a": {"b": {"c": "deep"}},
    "tag": "{{text}} {{{text}}} {{#list}}",
    "has space": "s",
    "func": str.upper,
    "lines": "one\ntwo",
}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("plain", "plain", id="no-tag"),
        pytest.param("{{text}}", "a & b", id="two-braces-escape-nothing"),
        pytest.param("{{{text}}}", "a & b", id="three-braces"),
        pytest.param("{{&text}}", "a & b", id="ampersand"),
        pytest.param("{{html}}{{{html}}}", VALUES["html"] * 2, id="html"),  # type: ignore[operator] # a str
        pytest.param("{{ text }}|{{{ text }}}", "a & b|a & b", id="blanks-in-tag"),
        pytest.param("{{text}}}", "a & b}", id="brace-after-tag"),
        pytest.param("{{$status}}", "done", id="status"),
        pytest.param("{{a.b.c}}", "deep", id="nested-path"),
        pytest.param("{{list.1}}", "b", id="list-index"),
        pytest.param("{{items.0.tags.1}}", "q", id="path-through-lists"),
        pytest.param("{{has space}}", "s", id="name-with-a-blank"),
        pytest.param("{{list}}", "a, b", id="list-of-scalars"),
        pytest.param("{{mixed}}", "a, 1, true, ", id="list-of-mixed-scalars"),
        pytest.param(
            "{{items}}",
            '[{"name":"x","tags":["p","q"]},{"name":"y"}]',
            id="list-of-mappings-is-json",
        ),
        pytest.param("{{map}}", '{"a":{"c":"é"},"b":1}', id="mapping-is-json"),
        pytest.param("{{hollow}}{{none}}", "{}", id="empty-mapping-and-list"),
        pytest.param('{{list | join: "; "}}', "a; b", id="join"),
        pytest.param("{{{ list|join:'-' }}}", "a-b", id="join-single-quotes"),
        pytest.param('{{list | join: ""}}', "ab", id="join-with-nothing"),
        pytest.param('{{text | join: ", "}}', "a & b", id="join-of-text"),
        pytest.param('{{items.1 | join: ","}}', '{"name":"y"}', id="join-of-mapping"),
        pytest.param(
            '{{items | join: "\n"}}',
            '{"name":"x","tags":["p","q"]}\n{"name":"y"}',
            id="join-of-mappings",
        ),
        pytest.param("{{n}} {{half}} {{whole}} {{zero}}", "3 0.5 2 0", id="numbers"),
        pytest.param("{{yes}} {{no}}", "true false", id="booleans"),
        pytest.param("[{{nothing}}]", "[]", id="null"),
        pytest.param("{{tag}}", "{{text}} {{{text}}} {{#list}}", id="tag-in-a-value"),
        pytest.param(
            "{{#list}}{{tag}}{{/list}}", f"{VALUES['tag']}" * 2, id="tag-in-a-section"
        ),
        pytest.param("{{#list}}<{{.}}>{{/list}}", "<a><b>", id="current-item"),
        pytest.param("{{#items}}{{name}};{{/items}}", "x;y;", id="items"),
        pytest.param("{{#items}}{{n}}{{/items}}", "33", id="outer-scope"),
        pytest.param("{{#a}}{{b.c}} {{n}}{{/a}}", "deep 3", id="mapping-section"),
        pytest.param("{{#a.b}}{{c}}{{/a.b}}", "deep", id="section-by-path"),
        pytest.param(
            "{{#items}}{{#tags}}{{.}}{{/tags}}{{^tags}}-{{/tags}}{{/items}}",
            "pq-",
            id="nested-sections",
        ),
        pytest.param("{{#text}}[{{.}}]{{/text}}", "[a & b]", id="text-section"),
        pytest.param("{{#yes}}y{{/yes}}{{^yes}}n{{/yes}}", "y", id="true-section"),
        pytest.param("{{#no}}y{{/no}}{{^no}}n{{/no}}", "n", id="false-is-empty"),
        pytest.param("{{#nothing}}y{{/nothing}}{{^nothing}}n{{/nothing}}", "n", id="0"),
        pytest.param("{{#empty}}y{{/empty}}{{^empty}}n{{/empty}}", "n", id="no-text"),
        pytest.param("{{#none}}y{{/none}}{{^none}}n{{/none}}", "n", id="empty-list"),
        pytest.param("{{#gone}}y{{/gone}}{{^gone}}n{{/gone}}", "n", id="missing"),
        pytest.param("{{#zero}}{{.}}{{/zero}}{{^zero}}n{{/zero}}", "0", id="zero-is-a"),
        pytest.param("{{#hollow}}y{{/hollow}}{{^hollow}}n{{/hollow}}", "y", id="{}"),
        pytest.param("{{^gone}}{{text}}{{/gone}}", "a & b", id="inverted-keeps-scope"),
        pytest.param(
            "{{#list}}{{^gone}}{{.}}{{/gone}}{{/list}}", "ab", id="inverted-."
        ),
        pytest.param("a{{! note }}b", "ab", id="comment"),
        pytest.param("a{{! {{ }}b", "ab", id="comment-with-braces"),
        pytest.param("a\n{{! x }}\nb", "a\nb", id="comment-alone-on-its-line"),
        pytest.param("a\n  {{!\n x\n}}  \nb", "a\nb", id="comment-of-several-lines"),
        pytest.param("{{#yes}}\na\n{{/yes}}\nb", "a\nb", id="sections-take-lines"),
        pytest.param("x\n\t{{#yes}} \ny\n {{/yes}}\t", "x\ny\n", id="blanks-around"),
        pytest.param("a\r\n{{#yes}}\r\nb\r\n{{/yes}}\r\nc", "a\r\nb\r\nc", id="crlf"),
        pytest.param("a {{#yes}}\nb{{/yes}}\n", "a \nb\n", id="not-alone-stays"),
        pytest.param("{{#yes}}{{/yes}}\nb", "\nb", id="two-tags-on-a-line"),
        pytest.param(" {{text}} \n", " a & b \n", id="variable-keeps-its-line"),
        pytest.param("{{lines}}\n  {{lines}}", "one\ntwo\n  one\ntwo", id="no-indent"),
        pytest.param('{"a": {"b": 1}}', '{"a": {"b": 1}}', id="json-is-text"),
        pytest.param("{ {text} } }}", "{ {text} } }}", id="stray-braces"),
    ],
)
def test_template_renders(source: str, expected: str) -> None:
    assert render(source, VALUES) == Rendered(text=expected)


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        pytest.param("{{gone}}", ("gone",), id="unknown"),
        pytest.param("{{text.__class__}}", ("text.__class__",), id="attribute"),
        pytest.param("{{__class__}}", ("__class__",), id="attribute-of-values"),
        pytest.param("{{map.keys}}", ("map.keys",), id="method"),
        pytest.param("{{list.append}}", ("list.append",), id="list-method"),
        pytest.param("{{func}}", ("func",), id="callable"),
        pytest.param("{{#func}}x{{/func}}", (), id="callable-section"),
        pytest.param("{{list.2}}", ("list.2",), id="index-beyond"),
        pytest.param("{{list.-1}}", ("list.-1",), id="negative-index"),
        pytest.param("{{list.\u0660}}", ("list.\u0660",), id="digit-of-another-script"),
        pytest.param("{{list.00000000000}}", ("list.00000000000",), id="long-index"),
        pytest.param("{{a..c}}", ("a..c",), id="empty-part"),
        pytest.param("{{n.real}}", ("n.real",), id="attribute-of-a-number"),
        pytest.param("{{gone}}{{x}}{{gone}}", ("gone", "x"), id="each-once"),
        pytest.param("{{#gone}}{{x}}{{/gone}}", (), id="guarded"),
    ],
)
def test_missing_variable_renders_empty_and_is_reported(
    source: str, missing: tuple[str, ...]
) -> None:
    assert render(source, VALUES) == Rendered(text="", missing=missing)


@pytest.mark.parametrize(
    ("source", "offset", "rule"),
    [
        pytest.param("ab{{}}", 2, "T1", id="empty-tag"),
        pytest.param("{{ }}", 0, "T1", id="blank-tag"),
        pytest.param("{{{}}}", 0, "T1", id="empty-triple"),
        pytest.param("{{&}}", 0, "T1", id="empty-ampersand"),
        pytest.param("{{#}}{{/}}", 0, "T1", id="empty-section"),
        pytest.param("a{{b", 1, "T1", id="unclosed-tag"),
        pytest.param("a{{", 1, "T1", id="unclosed-at-the-end"),
        pytest.param("a{{b}", 1, "T1", id="half-closed"),
        pytest.param("{{{a}}", 0, "T1", id="triple-closed-by-two"),
        pytest.param("{{{a}} {{{b}}}", 0, "T1", id="triple-before-a-good-one"),
        pytest.param("{{{{a}}}}", 0, "T1", id="four-braces"),
        pytest.param('{{"a": {"b": 1}}}', 0, "T1", id="json-with-two-braces"),
        pytest.param("x {{> part}}", 2, "T1", id="partial"),
        pytest.param("x {{=<% %>=}}", 2, "T1", id="delimiters"),
        pytest.param("{{#a}}x", 0, "T1", id="section-left-open"),
        pytest.param("{{#a}}{{^b}}{{/b}}", 0, "T1", id="outer-left-open"),
        pytest.param("x{{/a}}", 1, "T1", id="close-without-open"),
        pytest.param("{{#a}}{{/b}}", 6, "T1", id="closed-by-another-name"),
        pytest.param("{{#a}}{{#b}}{{/a}}{{/b}}", 12, "T1", id="crossed"),
        pytest.param("{{#a}}" * 17 + "{{/a}}" * 17, 96, "T1", id="nested-17-deep"),
        pytest.param("{{" + "a" * 1_001 + "}}", 0, "T1", id="endless-name"),
        pytest.param("a {{x | upcase}}", 2, "T5", id="liquid-filter"),
        pytest.param("{{x | join}}", 0, "T5", id="join-without-separator"),
        pytest.param('{{x | join: ", " | size}}', 0, "T5", id="two-filters"),
        pytest.param('{{#x | join: ","}}{{/x}}', 0, "T5", id="section-filter"),
        pytest.param("{{| size}}", 0, "T1", id="filter-of-nothing"),
    ],
)
def test_template_that_does_not_parse_tells_where(
    source: str, offset: int, rule: str
) -> None:
    with pytest.raises(TemplateError) as raised:
        parse_template(source)

    assert (raised.value.offset, raised.value.rule) == (offset, rule)


def test_join_without_a_separator_is_not_called_unknown() -> None:
    with pytest.raises(TemplateError) as raised:
        parse_template("{{x | join}}")

    assert str(raised.value) == "filter 'join' lacks its separator"


def test_parts_carry_names_offsets_and_separators() -> None:
    parts = parse_template('a{{#b}}{{c.d}}{{/b}}{{^e}}f{{/e}}{{g | join: "+"}}')

    assert parts == (
        Text(text="a"),
        Section(
            name="b",
            inverted=False,
            offset=1,
            children=(Variable(name="c.d", offset=7),),
        ),
        Section(name="e", inverted=True, offset=20, children=(Text(text="f"),)),
        Variable(name="g", offset=33, separator="+"),
    )


def test_sixteen_nested_sections_are_enough() -> None:
    source = "{{#a}}" * 16 + "x" + "{{/a}}" * 16

    assert render(source, {"a": 1}).text == "x"


@pytest.mark.parametrize(
    ("source", "values"),
    [
        pytest.param("{{a}}" * 100_001, {"a": ""}, id="tags-in-the-source"),
        pytest.param(
            "{{#a}}{{.}}{{/a}}", {"a": [""] * 100_001}, id="tags-in-the-rendering"
        ),
        pytest.param(
            "{{#a}}" * 5 + "{{#b}}{{/b}}" + "{{/a}}" * 5,
            {"a": [{}] * 20},
            id="nested-lists-multiply",
        ),
        pytest.param("{{a}}", {"a": "x" * (2**20 + 1)}, id="one-large-value"),
        pytest.param("{{a}}", {"a": "é" * (2**19 + 1)}, id="counted-in-bytes"),
        pytest.param("{{#a}}xy{{/a}}", {"a": [0] * (2**19 + 1)}, id="text-repeated"),
    ],
)
def test_rendering_is_bounded(source: str, values: dict[str, object]) -> None:
    with pytest.raises(TemplateError):
        render(source, values)


def test_values_of_other_types_inside_a_value_are_plain_json() -> None:
    values = {"a": {"map": MappingProxyType({"b": 1}), "func": str.upper}}

    assert render("{{a}}", values).text == '{"func":null,"map":{"b":1}}'


def test_rendering_of_exactly_one_mebibyte_is_allowed() -> None:
    assert len(render("{{a}}", {"a": "x" * 2**20}).text) == 2**20


@pytest.mark.parametrize(
    ("source", "values"),
    [
        pytest.param("{{#a}}{{/a}}" * 40_000, {"a": [0] * 100_000}, id="one-line"),
        pytest.param("{{" * 300_000, {}, id="only-openings"),
        pytest.param("{" * 600_000 + "}}", {}, id="only-braces"),
        pytest.param(("x" * 10 + "{{a}}") * 60_000, {"a": ""}, id="many-variables"),
        pytest.param(
            '{{a | join: ""}}' * 50_000, {"a": [""] * 100_000}, id="blank-list"
        ),
        pytest.param(("\n" + " " * 9 + "{{!x}} x") * 50_000, {}, id="blank-runs"),
        pytest.param("{{!" + "\n{{!}}" * 100_000, {}, id="comments"),
    ],
)
def test_hostile_template_takes_linear_time(
    source: str, values: dict[str, object]
) -> None:
    started = time.process_time()

    with contextlib.suppress(TemplateError):
        render(source, values)

    # A quadratic reading of these takes minutes.
    assert time.process_time() - started < 20


_WORDS = st.sampled_from(
    [
        "x",
        " ",
        "  ",
        "\n",
        "{{{v}}}",
        "{{&v}}",
        "{{{m.k}}}",
        "{{{gone}}}",
        "{{! c }}",
    ]
)
_TREES = st.recursive(
    st.lists(_WORDS, max_size=4).map("".join),
    lambda inner: st.tuples(
        st.sampled_from(["#v", "^v", "#l", "#no", "^no", "#m", "^gone"]),
        st.sampled_from(["", "\n", " \n"]),
        inner,
        st.sampled_from(["", "\n", "z"]),
    ).map(lambda t: f"{{{{{t[0]}}}}}{t[1]}{t[2]}{{{{/{t[0][1:]}}}}}{t[3]}"),
    max_leaves=6,
)


@given(st.lists(_TREES, max_size=4).map("".join))
def test_white_space_and_lookup_are_those_of_chevron(source: str) -> None:
    # Not in here: {{^l}} inside {{#l}}, which chevron cannot read.
    values = {"v": "V", "m": {"k": "K"}, "l": ["1", "2"], "no": False}
    # chevron keeps the blanks of a last line that has a tag alone on it.
    template = source + "\nend"

    assert render(template, values).text == chevron.render(template, values)
