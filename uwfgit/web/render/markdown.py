"""Agents' markdown as HTML: no markup of theirs is live, nothing is fetched (pure)."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from uwfgit.model.visible import UNSAFE, escape, shown_lines
from uwfgit.web.render.code import code_block
from uwfgit.web.render.markup import Html, div, tag

_SCHEMES: Final = frozenset({"http", "https", "mailto"})
_MOST: Final = 400_000
"""Characters that are laid out as markdown; a longer text is shown as it is."""


def markdown(source: str) -> Html:
    """Lay out a markdown text.

    HTML in it is text, an image is the words for it, a link leads to the web or to
    a mail address only, and what an entity would hide is shown.
    """
    plain = shown_lines(source).strip()
    if len(plain) > _MOST:
        return tag("pre", plain, class_="plain")
    laid_out = _parser().render(plain)
    # An entity such as &#x202e; has become the character by now.
    return div("prose", Html(UNSAFE.sub(escape, laid_out)))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    parser.enable(["table", "strikethrough"])
    # What is no link of the web stays the text it was; the parser's own hook.
    setattr(parser, "validateLink", _is_web)  # noqa: B010 - a method, to the type checker
    return parser


def _is_web(url: str) -> bool:
    try:
        return urlsplit(url).scheme.lower() in _SCHEMES
    except ValueError:
        return False


class _Renderer(RendererHTML):
    """Headings below the page's own, code in colours, images as words."""

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:  # noqa: ANN401 - as the parser calls it
        token = tokens[idx]
        name = token.info.split()[0] if token.info.split() else ""
        return code_block(token.content.rstrip("\n"), name)

    def code_block(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:  # noqa: ANN401 - as the parser calls it
        return code_block(tokens[idx].content.rstrip("\n"), "")

    def image(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:  # noqa: ANN401 - as the parser calls it
        token = tokens[idx]
        words = token.content or "image"
        source = str(token.attrs.get("src", ""))
        return tag("span", f"[{words}: {source}]", class_="image")

    def heading_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:  # noqa: ANN401 - as the parser calls it
        level = tokens[idx].tag.removeprefix("h")
        return (
            f'<p class="h{level}" role="heading" aria-level="{min(6, 3 + int(level))}">'
        )

    def heading_close(self, *_: Any) -> str:  # noqa: ANN401 - as the parser calls it
        return "</p>\n"

    def link_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:  # noqa: ANN401 - as the parser calls it
        href = html.escape(str(tokens[idx].attrs.get("href", "")))
        return f'<a href="{href}" rel="noopener noreferrer nofollow">'


def plain_fields(value: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the fields of an output, the status apart."""
    return [(name, each) for name, each in value.items() if name != "$status"]
