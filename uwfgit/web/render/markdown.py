"""Agents' markdown as HTML: no markup of theirs is live, nothing is fetched (pure)."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from uwfgit.model.wording import UNSAFE, escape, shown_lines
from uwfgit.web.render.code import code_block
from uwfgit.web.render.markup import Html, div, tag

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_SCHEMES: Final = frozenset({"http", "https", "mailto"})
_SIDES: Final = frozenset({"center", "right"})
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
    # A server that only lists threads does not need it.
    from markdown_it import MarkdownIt  # noqa: PLC0415 - see above

    parser = MarkdownIt("commonmark", {"html": False})
    parser.enable(["table", "strikethrough"])
    # What is no link of the web stays the text it was; the parser's own hook.
    setattr(parser, "validateLink", _is_web)  # noqa: B010 - a method, to the type checker
    for name, rule in _RULES.items():
        parser.add_render_rule(name, rule)
    return parser


def _is_web(url: str) -> bool:
    try:
        return urlsplit(url).scheme.lower() in _SCHEMES
    except ValueError:
        return False


def _code(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:  # noqa: ANN401 - as the parser calls it
    """Show code in colours: what its fence names, if there is one."""
    language, *_rest = [*tokens[at].info.split(), ""]
    return code_block(tokens[at].content.rstrip("\n"), language)


def _image(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:  # noqa: ANN401 - as the parser calls it
    """Show an image as words."""
    token = tokens[at]
    source = str(token.attrs.get("src", ""))
    return tag("span", f"[{token.content or 'image'}: {source}]", class_="image")


def _heading(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:  # noqa: ANN401 - as the parser calls it
    """Open a heading below the page's own."""
    level = int(tokens[at].tag.removeprefix("h"))
    return f'<p class="h{level}" role="heading" aria-level="{min(6, 3 + level)}">'


def _link(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:  # noqa: ANN401 - as the parser calls it
    href = html.escape(str(tokens[at].attrs.get("href", "")))
    return f'<a href="{href}" rel="noopener noreferrer nofollow">'


def _cell(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:  # noqa: ANN401 - as the parser calls it
    """Open a cell; its side is a class, as no style of a text is taken."""
    token = tokens[at]
    side = str(token.attrs.get("style", "")).removeprefix("text-align:")
    return f'<{token.tag} class="{side}">' if side in _SIDES else f"<{token.tag}>"


_RULES: Final[Mapping[str, Callable[..., str]]] = {
    "fence": _code,
    "code_block": _code,
    "image": _image,
    "heading_open": _heading,
    "heading_close": lambda *_: "</p>\n",
    "link_open": _link,
    # A wide table is scrolled, by keys too.
    "table_open": lambda *_: '<div class="scroll" tabindex="0"><table>\n',
    "table_close": lambda *_: "</table></div>\n",
    "th_open": _cell,
    "td_open": _cell,
}


def plain_fields(value: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the fields of an output, the status apart."""
    return [(name, each) for name, each in value.items() if name != "$status"]
