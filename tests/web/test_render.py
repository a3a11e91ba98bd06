"""Text of strangers stays text, and pictures show what the chart says."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from tests.builders import make_role, make_workflow, variant
from uwfgit.model.picture.chart import chart_of
from uwfgit.model.workflow.workflow import Target
from uwfgit.web.render.code import code_block
from uwfgit.web.render.markdown import markdown
from uwfgit.web.render.markup import Html, join, tag
from uwfgit.web.render.picture import svg_picture

HOSTILE = [
    pytest.param("<script>alert(1)</script>", id="script"),
    pytest.param("</title></style></script><img src=x onerror=alert(1)>", id="closing"),
    pytest.param('" onmouseover="alert(1)', id="attribute"),
    pytest.param("[x](javascript:alert(1))", id="javascript link"),
    pytest.param("[x](JaVaScRiPt&colon;alert(1))", id="entity in a link"),
    pytest.param("[x](data:text/html,<script>alert(1)</script>)", id="data link"),
    pytest.param("[x](file:///etc/passwd) [y](//evil.example) [z](../x)", id="paths"),
    pytest.param("![x](https://evil.example/pixel.png)", id="remote image"),
    pytest.param("<https://evil.example/> <b onclick=alert(1)>", id="autolink"),
    pytest.param("```html\n<script>alert(1)</script>\n```", id="code"),
    pytest.param('```"><script>\nx\n```', id="language"),
    pytest.param('[x](https://a.example "t\\" onclick=\\"alert(1)")', id="title"),
]
TAGS = frozenset(
    {
        *("div", "p", "a", "pre", "code", "span", "ul", "ol", "li", "strong", "em"),
        *("blockquote", "table", "thead", "tbody", "tr", "th", "td", "hr", "br", "s"),
    }
)


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def tags_of(html: str) -> list[tuple[str, dict[str, str | None]]]:
    seen = _Seen()
    seen.feed(html)
    return seen.tags


@pytest.mark.parametrize("source", HOSTILE)
def test_no_markup_of_a_text_is_live(source: str) -> None:
    for name, attributes in tags_of(markdown(source)):
        assert name in TAGS
        assert not [each for each in attributes if each.startswith("on")]
        assert attributes.keys() <= {
            "class",
            "href",
            "rel",
            "role",
            "aria-level",
            "tabindex",
            "start",
        }
        href = attributes.get("href")
        assert href is None or href.startswith(("https://", "http://", "mailto:"))


@pytest.mark.parametrize("source", HOSTILE)
def test_plain_text_is_escaped_wherever_it_stands(source: str) -> None:
    made = tag("p", source, title=source, data_x=source)

    assert [name for name, _ in tags_of(made)] == ["p"]
    assert tags_of(made)[0][1]["title"] == source.replace("\n", "\\n")


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        pytest.param("a\u202eb", "a\\u202eb", id="as it is"),
        pytest.param("a&#x202e;b", "a\\u202eb", id="as an entity"),
        pytest.param("`a\u202eb`", "a\\u202eb", id="in code"),
        pytest.param("a\x1b[31mb", "a\\x1b[31mb", id="an escape"),
    ],
)
def test_what_would_hide_or_turn_is_shown(source: str, shown: str) -> None:
    assert shown in markdown(source)
    assert "\u202e" not in markdown(source)


def test_an_image_is_words_and_asks_for_nothing() -> None:
    made = markdown("![a cat](https://pictures.example/cat.png)")

    assert "[a cat: https://pictures.example/cat.png]" in made
    assert "<img" not in made


def test_markdown_keeps_its_meaning() -> None:
    made = markdown("# Title\n\n- one\n- **two**\n\n[here](https://a.example/?q=1&r=2)")

    assert 'role="heading" aria-level="4">Title</p>' in made
    assert "<strong>two</strong>" in made
    assert (
        'href="https://a.example/?q=1&amp;r=2" rel="noopener noreferrer nofollow"'
        in made
    )


def test_a_table_keeps_its_sides_without_a_style_of_its_own() -> None:
    made = markdown("| a | b | c |\n|---|:-:|--:|\n| 1 | 2 | 3 |")

    assert '<th>a</th>\n<th class="center">b</th>\n<th class="right">c</th>' in made
    assert '<td>1</td>\n<td class="center">2</td>\n<td class="right">3</td>' in made
    assert "style=" not in made


def test_a_table_can_be_scrolled_by_keys() -> None:
    made = markdown("| a |\n|---|\n| 1 |")

    assert '<div class="scroll" tabindex="0"><table>' in made
    assert "</table></div>" in made


def test_code_is_coloured_by_classes_alone() -> None:
    made = code_block("def f(): return '<b>'", "python")

    assert '<span class="kw">def</span>' in made
    assert "style=" not in made
    assert "&lt;b&gt;" in made


def test_only_markup_of_ours_is_taken_as_it_is() -> None:
    assert (
        join(Html("<b>"), "<b>", None, 3, ["x", [Html("<i>")]]) == "<b>&lt;b&gt;3x<i>"
    )


def test_the_picture_has_every_box_and_every_label() -> None:
    chart = chart_of(make_workflow())

    drawn = ET.fromstring(svg_picture(chart))  # noqa: S314 - our own drawing
    texts = {"".join(each.itertext()) for each in drawn.iter("text")}

    assert {box.name for box in chart.boxes} <= texts
    assert {"done", "good", "bad"} <= texts


def test_a_box_leads_where_it_is_told_to() -> None:
    made = svg_picture(chart_of(make_workflow()), links={"worker": "#w"})

    assert re.search(r'<a href="#w"><title>worker', made)


def test_nothing_in_the_picture_lies_outside_of_it() -> None:
    names = [f"role-{number}" for number in range(12)]
    graph = {
        "$START": {"new": Target(role=names[0], prompt="")},
        **{
            name: {
                "on": Target(
                    role=names[index + 1] if index < 11 else "$END", prompt=""
                ),
                "far": Target(role="$END", prompt=""),
                "a long way back": Target(role=names[index // 2], prompt=""),
            }
            for index, name in enumerate(names)
        },
    }
    roles = {name: make_role(variant("on")) for name in names}
    chart = chart_of(make_workflow(roles=roles, graph=graph))

    drawn = ET.fromstring(svg_picture(chart))  # noqa: S314 - our own drawing
    _, _, width, height = map(float, drawn.attrib["viewBox"].split())
    for path in drawn.iter("path"):
        points = [float(each) for each in re.findall(r"-?\d+\.\d", path.attrib["d"])]
        assert all(0 <= each <= max(width, height) for each in points)
    for box in drawn.iter("rect"):
        assert 0 <= float(box.attrib["x"]) <= width - float(box.attrib["width"])


def test_a_role_with_a_hostile_name_is_a_word_in_the_picture() -> None:
    name = "</script><script>alert(1)</script>"
    graph = {
        "$START": {"new": Target(role=name, prompt="")},
        name: {"</svg>": Target(role="$END", prompt="")},
    }
    made = svg_picture(
        chart_of(make_workflow(roles={name: make_role(variant("x"))}, graph=graph))
    )

    assert "script" not in [name for name, _ in tags_of(made)]
