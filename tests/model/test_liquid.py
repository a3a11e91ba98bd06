"""Liquid as Mustache: what means the same is written so, the rest stays."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from uwfgit.model.template.liquid import Known, write_as_mustache
from uwfgit.model.template.render import render

_KNOWN = {
    ("list",): Known("list"),
    ("items",): Known("list", frozenset(("name", "tags"))),
    ("items", "0", "tags"): Known("list"),
    ("map",): Known("mapping", frozenset(("name", "size"))),
    ("deep",): Known("list", frozenset(("rows", "title"))),
    ("deep", "0", "rows"): Known("list", frozenset(("cell",))),
}


def describe(path: Sequence[str]) -> Known:
    return _KNOWN.get(tuple(path), Known("other"))


@pytest.mark.parametrize(
    ("liquid", "mustache"),
    [
        pytest.param("a {{ x }} b", "a {{ x }} b", id="plain"),
        pytest.param("{{{x}}}{{#x}}y{{/x}}", "{{{x}}}{{#x}}y{{/x}}", id="mustache"),
        pytest.param("{% if x %}A{% endif %}", "{{#x}}A{{/x}}", id="if"),
        pytest.param(
            "{% if x %}A{% else %}B{% endif %}",
            "{{#x}}A{{/x}}{{^x}}B{{/x}}",
            id="if-else",
        ),
        pytest.param(
            "{% if x %}A{% elsif y.z %}B{% else %}C{% endif %}",
            "{{#x}}A{{/x}}{{^x}}{{#y.z}}B{{/y.z}}{{^y.z}}C{{/y.z}}{{/x}}",
            id="elsif",
        ),
        pytest.param("{% unless x %}A{% endunless %}", "{{^x}}A{{/x}}", id="unless"),
        pytest.param(
            "{% unless x %}A{% else %}B{% endunless %}",
            "{{#x}}B{{/x}}{{^x}}A{{/x}}",
            id="unless-else",
        ),
        pytest.param(
            "{% if list %}A{% else %}B{% endif %}",
            "{{#list.0}}A{{/list.0}}{{^list.0}}B{{/list.0}}",
            id="if-of-a-list",
        ),
        pytest.param(
            "{% for i in list %}- {{ i }}{% endfor %}",
            "{{#list}}- {{.}}{{/list}}",
            id="for",
        ),
        pytest.param(
            "{% for i in items %}{{ i.name }} of {{ x }}{% endfor %}",
            "{{#items}}{{name}} of {{ x }}{{/items}}",
            id="for-of-mappings",
        ),
        pytest.param(
            "{% for i in list %}{{i}}{% else %}none{% endfor %}",
            "{{#list}}{{.}}{{/list}}{{^list}}none{{/list}}",
            id="for-else",
        ),
        pytest.param(
            "{% for i in items %}{% for t in i.tags %}{{ t }}{% endfor %}{% endfor %}",
            "{{#items}}{{#tags}}{{.}}{{/tags}}{{/items}}",
            id="for-in-for",
        ),
        pytest.param(
            "{% for d in deep %}{% for r in d.rows %}{{ d.title }}{{ r.cell }}"
            "{% endfor %}{% endfor %}",
            "{{#deep}}{{#rows}}{{title}}{{cell}}{{/rows}}{{/deep}}",
            id="outer-item-that-nothing-hides",
        ),
        pytest.param(
            "{% for i in items %}{% if i.name %}{{ i.name }}{% endif %}{% endfor %}",
            "{{#items}}{{#name}}{{name}}{{/name}}{{/items}}",
            id="if-in-for",
        ),
        pytest.param(
            "{% for i in list %}{% if i %}{{ i }}{% endif %}{% endfor %}",
            "{{#list}}{{#.}}{{.}}{{/.}}{{/list}}",
            id="if-of-the-item",
        ),
        pytest.param(
            "{% for i in items %}{% if i.tags %}{{i.tags | join: '+'}}{% endif %}"
            "{% endfor %}",
            "{{#items}}{{#tags.0}}{{ tags | join: '+' }}{{/tags.0}}{{/items}}",
            id="if-of-a-list-in-for",
        ),
        pytest.param(
            '{{ x | default: "n/a" }}', "{{#x}}{{x}}{{/x}}{{^x}}n/a{{/x}}", id="default"
        ),
        pytest.param(
            "{{ x | default: y }}", "{{#x}}{{x}}{{/x}}{{^x}}{{y}}{{/x}}", id="default-y"
        ),
        pytest.param(
            "{{ x | default: 3 }}", "{{#x}}{{x}}{{/x}}{{^x}}3{{/x}}", id="default-3"
        ),
        pytest.param("{{ x | default: '' }}", "{{#x}}{{x}}{{/x}}", id="default-empty"),
        pytest.param(
            "{{ list | join: ', ' | default: 'none' }}",
            "{{#list.0}}{{ list | join: ', ' }}{{/list.0}}{{^list.0}}none{{/list.0}}",
            id="join-and-default",
        ),
        pytest.param(
            "{% for i in items %}{{ i.name | default: 'x' }}{% endfor %}",
            "{{#items}}{{#name}}{{name}}{{/name}}{{^name}}x{{/name}}{{/items}}",
            id="default-in-for",
        ),
        pytest.param("a {{- x -}} b", "a{{x}}b", id="trimmed-variable"),
        pytest.param(
            "a\n{%- if x -%}\n  A\n{%- endif %} b", "a{{#x}}A{{/x}} b", id="trimmed-tag"
        ),
        pytest.param(
            "{% if a[0].b %}A{% endif %}", "{{#a.0.b}}A{{/a.0.b}}", id="index"
        ),
        pytest.param("{% if map %}{{x}}{% endif %}", "{{#map}}{{x}}{{/map}}", id="map"),
    ],
)
def test_liquid_is_written_as_mustache(liquid: str, mustache: str) -> None:
    assert write_as_mustache(liquid, describe) == mustache


@pytest.mark.parametrize(
    "liquid",
    [
        pytest.param("{% if x == 1 %}A{% endif %}", id="comparison"),
        pytest.param("{% if x and y %}A{% else %}B{% endif %}", id="and"),
        pytest.param("{% if forloop.last %}A{% endif %}", id="forloop"),
        pytest.param("{% assign x = 1 %}", id="assign"),
        pytest.param("{% for i in (1..3) %}A{% endfor %}", id="range"),
        pytest.param("{% for i in list limit: 2 %}A{% endfor %}", id="limit"),
        pytest.param("{% case x %}{% when 1 %}A{% endcase %}", id="case"),
        pytest.param("{% if x %}A", id="never-closed"),
        pytest.param("A{% endif %}", id="never-opened"),
        pytest.param("{% if x %}A{% endfor %}", id="closed-as-another"),
        pytest.param("{% if x %}A{% else %}B", id="else-never-closed"),
        pytest.param("{{ x | upcase }}", id="filter"),
        pytest.param("{{ x | default: 'a' | upcase }}", id="filter-behind-default"),
        pytest.param("{{ x | default: '{{y}}' }}", id="tag-in-a-default"),
        pytest.param("{{ 'x' | default: 'y' }}", id="literal"),
        pytest.param("{{ x | }}", id="no-filter"),
        pytest.param("{% for i in items %}{{ name }}{% endfor %}", id="hidden-name"),
        pytest.param("{% if map %}{{ size }}{% endif %}", id="hidden-by-a-mapping"),
        pytest.param("{{ x | default: true }}", id="word-for-a-value"),
    ],
)
def test_what_has_no_mustache_form_stays(liquid: str) -> None:
    assert write_as_mustache(liquid, describe) == liquid


def test_an_item_is_not_looked_for_behind_another_section() -> None:
    text = "{% for i in list %}{% if x %}{{ i }}{% endif %}{% endfor %}"

    assert write_as_mustache(text, describe) == (
        "{{#list}}{% if x %}{{.}}{% endif %}{{/list}}"
    )


def test_what_can_be_written_is_written_beside_what_cannot() -> None:
    text = "{% for i in list %}{{ i }}{% endfor %}{% if x > 1 %}{{ y }}{% endif %}"

    assert write_as_mustache(text, describe) == (
        "{{#list}}{{.}}{{/list}}{% if x > 1 %}{{ y }}{% endif %}"
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({}, "none", id="nothing"),
        pytest.param({"items": []}, "none", id="empty"),
        pytest.param(
            {"items": [{"name": "a"}, {"tags": [1, 2]}]}, "[a:-][?:1+2]", id="items"
        ),
    ],
)
def test_the_mustache_form_renders_as_liquid_did(
    values: dict[str, object], expected: str
) -> None:
    text = write_as_mustache(
        "{% for i in items %}[{{ i.name | default: '?' }}:"
        "{% if i.tags %}{{ i.tags | join: '+' }}{% else %}-{% endif %}]"
        "{% else %}none{% endfor %}",
        describe,
    )

    assert render(text, values).text == expected
