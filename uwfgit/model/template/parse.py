"""The parts of a Mustache template: the only place that parses one (pure).

The language is Mustache as chevron reads it, without partials and changes of
delimiters. Its tokenizer copies the rest of the template at every tag, knows no
offsets and takes some broken tags for text; so it gets tokens made of these parts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import Struct, field

from uwfgit.constants import TEMPLATE_MAX_SECTIONS, TEMPLATE_MAX_TAGS
from uwfgit.errors import InvalidError, Problem

NAME_MAX_CHARS: Final = 1_000
"""Longest name of a tag; keeps a lookup's cost independent of the template."""

_INDENT: Final = " \t"
_REST_OF_LINE = re.compile(r"[ \t]*(?:\r?\n|\Z)")
_JOIN = re.compile(r"""join[ \t]*:[ \t]*(?:"([^"]*)"|'([^']*)')""")


class TemplateError(InvalidError):
    """A template that does not parse (T1, T5) or renders beyond its bounds."""

    code = "template"

    def __init__(
        self, message: str, *, offset: int, rule: str = "T1", hint: str | None = None
    ) -> None:
        super().__init__([Problem(code=rule, message=message, hint=hint)])
        self.rule = rule
        self.offset = offset


class Text(Struct, frozen=True, kw_only=True):
    """Text that renders as it stands; never empty."""

    text: str


class Variable(Struct, frozen=True, kw_only=True):
    """A tag that a value replaces; ``separator`` is that of its ``join``."""

    name: str
    offset: int
    separator: str | None = None


class Section(Struct, frozen=True, kw_only=True):
    """Parts that render once per item, once, or not at all."""

    name: str
    inverted: bool
    offset: int
    children: tuple[Part, ...]


Part: TypeAlias = Text | Variable | Section


class _Tag(Struct, frozen=True, kw_only=True):
    """One tag of the source: ``sigil`` is ``# ^ / ! &``, or empty."""

    sigil: str
    body: str
    start: int
    end: int


class _Open(Struct, kw_only=True):
    """A section whose end has not come yet; the outermost has no tag."""

    tag: _Tag | None
    parts: list[Part] = field(default_factory=list)

    def add_text(self, text: str) -> None:
        if text:
            self.parts.append(Text(text=text))


@lru_cache(maxsize=64)
def parse_template(source: str) -> tuple[Part, ...]:
    """Read a template into parts, each text once; linear in its length.

    A section or comment tag alone on its line takes the line with it.

    Raises:
        TemplateError: It does not parse; ``offset`` is that of the tag.
    """
    stack = [_Open(tag=None)]
    position = count = 0
    found = source.find("{{")
    while found >= 0:
        tag = _read_tag(source, found)
        found = source.find("{{", tag.end)
        count += 1
        if count > TEMPLATE_MAX_TAGS:
            raise TemplateError(
                f"template has more than {TEMPLATE_MAX_TAGS:,} tags", offset=tag.start
            )
        start, end = _extent(source, tag, position)
        stack[-1].add_text(source[position:start])
        _place(tag, stack)
        position = end
    stack[-1].add_text(source[position:])
    if (opened := stack[-1].tag) is not None:
        raise TemplateError(
            f"section '{opened.body}' is never closed",
            offset=opened.start,
            hint=f"add {{{{/{opened.body}}}}}",
        )
    return tuple(stack[0].parts)


def _read_tag(source: str, start: int) -> _Tag:
    end = source.find("}}", start + 2)
    if end < 0:
        raise TemplateError(
            "tag is not closed", offset=start, hint="close it with '}}'"
        )
    inner = source[start + 2 : end]
    sigil = inner[:1] if inner[:1] in ("#", "^", "/", "!", "&", "{", ">", "=") else ""
    if sigil == "!":
        return _Tag(sigil="!", body="", start=start, end=end + 2)
    if sigil in {">", "="}:
        what = "a partial" if sigil == ">" else "a change of delimiters"
        raise TemplateError(f"{what} is not allowed in a template", offset=start)
    if sigil == "{":
        if source[end + 2 : end + 3] != "}":
            raise TemplateError(
                "tag opens with three braces and closes with two",
                offset=start,
                hint="close it with '}}}', or open it with '{{'",
            )
        return _Tag(sigil="&", body=_name(inner[1:], start), start=start, end=end + 3)
    body = _name(inner[len(sigil) :], start)
    return _Tag(sigil=sigil, body=body, start=start, end=end + 2)


def _name(inner: str, start: int) -> str:
    name = inner.strip()
    bare = name.partition("|")[0]
    if not bare.strip():
        raise TemplateError("tag has no name", offset=start, hint="name a variable")
    if "{" in bare or "}" in bare:
        raise TemplateError(
            "brace inside a tag",
            offset=start,
            hint="a tag is '{{name}}'; text that needs '{{' cannot be a template",
        )
    if len(name) > NAME_MAX_CHARS:
        raise TemplateError(
            f"tag is longer than {NAME_MAX_CHARS:,} characters", offset=start
        )
    return name


def _extent(source: str, tag: _Tag, position: int) -> tuple[int, int]:
    """Return what the tag takes from the source: itself, or its whole line.

    The line's start is looked for since the tag before only, which keeps many
    tags on one long line linear.
    """
    if tag.sigil not in {"#", "^", "/", "!"}:
        return tag.start, tag.end
    line = source.rfind("\n", position, tag.start) + 1
    if not line:
        if position and source[position - 1] != "\n":
            return tag.start, tag.end
        line = position
    rest = _REST_OF_LINE.match(source, tag.end)
    if rest is None or source[line : tag.start].strip(_INDENT):
        return tag.start, tag.end
    return line, rest.end()


def _place(tag: _Tag, stack: list[_Open]) -> None:
    if tag.sigil in {"#", "^"}:
        if "|" in tag.body:
            raise _no_filter(tag)
        if len(stack) > TEMPLATE_MAX_SECTIONS:
            raise TemplateError(
                f"sections are nested deeper than {TEMPLATE_MAX_SECTIONS}",
                offset=tag.start,
            )
        stack.append(_Open(tag=tag))
    elif tag.sigil == "/":
        section = _close(tag, stack[-1])
        stack.pop()
        stack[-1].parts.append(section)
    elif tag.sigil != "!":
        name, bar, expression = tag.body.partition("|")
        join = _JOIN.fullmatch(expression.strip())
        if bar and join is None:
            raise _no_filter(tag)
        separator = join and (join[1] if join[1] is not None else join[2])
        name = name.strip()
        stack[-1].parts.append(
            Variable(name=name, offset=tag.start, separator=separator)
        )


def _close(tag: _Tag, opened: _Open) -> Section:
    if opened.tag is None:
        raise TemplateError(
            f"section '{tag.body}' is closed but was never opened", offset=tag.start
        )
    if opened.tag.body != tag.body:
        raise TemplateError(
            f"section '{opened.tag.body}' is closed as '{tag.body}'", offset=tag.start
        )
    return Section(
        name=tag.body,
        inverted=opened.tag.sigil == "^",
        offset=opened.tag.start,
        children=tuple(opened.parts),
    )


def _no_filter(tag: _Tag) -> TemplateError:
    name, _, expression = tag.body.partition("|")
    message = f"filter '{expression.strip()}' is not Mustache"
    if expression.strip(" :") == "join":
        message = "filter 'join' lacks its separator"
    return TemplateError(
        message,
        offset=tag.start,
        rule="T5",
        hint=f'the only filter is join: {{{{ {name.strip()} | join: ", " }}}}',
    )
