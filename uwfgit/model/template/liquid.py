"""Liquid in templates, written as Mustache (pure).

Loops, conditions on a name, and defaults become sections. What has no Mustache
form stays as it is, for the rules to name; so does what would mean something
else, since a section looks names up in its item first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct, field

LiquidKind: TypeAlias = Literal["list", "mapping", "other"]


class Known(NamedTuple):
    """What is known of a value: what it is, and the names in it or its items."""

    kind: LiquidKind
    names: frozenset[str] = frozenset()


Describe: TypeAlias = Callable[[Sequence[str]], Known]
"""Says what a path from the output leads to."""

_TAG = re.compile(
    r"(?P<bare>\{\{\{[^{}]*\}\}\}|\{\{[#^/&!>=][^{}]*\}\})"
    r"|\{%(?P<open>-?)(?P<block>[^{}]*?)(?P<close>-?)%\}"
    r"|\{\{(?P<left>-?)(?P<value>[^{}]*?)(?P<right>-?)\}\}"
)
_NAME = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+|\[\d+\])*")
_FOR = re.compile(r"(\w+)\s+in\s+(\S+)")
_FILTER = re.compile(
    r"""\s*(\w+)\s*(?::\s*("[^"]*"|'[^']*'|[\w.\[\]-]+))?\s*(?=\||\Z)"""
)
_MAX_DEPTH: Final = 16
_MAX_TAG: Final = 1_000
_RESERVED: Final = frozenset(
    ("forloop", "true", "false", "nil", "null", "blank", "empty")
)
_OPENING: Final = frozenset(("if", "unless", "for", "case", "capture", "raw"))


def is_liquid(text: str) -> bool:
    """Whether a template may hold what only Liquid has."""
    return "{%" in text or "{{-" in text or "-}}" in text or "default" in text


def write_as_mustache(text: str, describe: Describe) -> str:
    """Write a template as Mustache, as far as that means the same."""
    return _Writer(describe).write(_parse(text), ())


class _Text(Struct):
    text: str


class _Output(Struct):
    raw: str
    value: str


class _Block(Struct):
    """A tag with what it holds: the parts before and after its ``else``."""

    word: str
    rest: str
    raw: str
    parts: list[_Part] = field(default_factory=list)
    otherwise: list[_Part] | None = None
    middle: str = ""
    end: str = ""


_Part: TypeAlias = _Text | _Output | _Block


def _parse(text: str) -> list[_Part]:
    root: list[_Part] = []
    stack: list[_Block] = []
    position, strip = 0, False
    for tag in _TAG.finditer(text):
        before = text[position : tag.start()]
        before = before.lstrip() if strip else before
        before = before.rstrip() if tag["open"] or tag["left"] else before
        _target(stack, root).append(_Text(before))
        _take(tag, stack, root)
        position, strip = tag.end(), bool(tag["close"] or tag["right"])
    rest = text[position:]
    _target(stack, root).append(_Text(rest.lstrip() if strip else rest))
    while stack:
        # A tag that is never closed means nothing; it stays, and so does the rest.
        block = stack.pop()
        into = _target(stack, root)
        into.remove(block)
        into += [_Text(block.raw), *block.parts]
        if block.otherwise is not None:
            into += [_Text(block.middle), *block.otherwise]
    return root


def _target(stack: list[_Block], root: list[_Part]) -> list[_Part]:
    if not stack:
        return root
    block = stack[-1]
    return block.parts if block.otherwise is None else block.otherwise


def _take(tag: re.Match[str], stack: list[_Block], root: list[_Part]) -> None:
    target = _target(stack, root)
    if tag["bare"] is not None:
        target.append(_Text(tag[0]))
        return
    if tag["value"] is not None:
        target.append(_Output(raw=tag[0], value=tag["value"].strip()))
        return
    word, _, rest = tag["block"].strip().partition(" ")
    rest = rest.strip()
    if word in _OPENING and len(stack) < _MAX_DEPTH:
        block = _Block(word=word, rest=rest, raw=tag[0])
        target.append(block)
        stack.append(block)
    elif word == "elsif" and stack and _takes_elsif(stack):
        inner = _Block(word="elsif", rest=rest, raw=tag[0])
        stack[-1].otherwise = [inner]
        stack.append(inner)
    elif word == "else" and stack and stack[-1].otherwise is None:
        stack[-1].otherwise, stack[-1].middle = [], tag[0]
    elif word.startswith("end") and stack:
        _close(tag[0], word.removeprefix("end"), stack, target)
    else:
        target.append(_Text(tag[0]))


def _takes_elsif(stack: list[_Block]) -> bool:
    block = stack[-1]
    is_branch = block.word in ("if", "unless", "elsif") and block.otherwise is None
    return is_branch and len(stack) < 2 * _MAX_DEPTH


def _close(raw: str, word: str, stack: list[_Block], target: list[_Part]) -> None:
    while stack[-1].word == "elsif":
        # The end is that of the 'if' it belongs to.
        stack.pop()
    if stack[-1].word == word:
        stack.pop().end = raw
    else:
        target.append(_Text(raw))


class _OtherMeaningError(Exception):
    """A part cannot be written as Mustache, or would mean something else."""


class _Scope(NamedTuple):
    """A section: the loop's variable, where it leads, and the names inside."""

    variable: str | None
    path: tuple[str, ...] | None
    names: frozenset[str]


LiquidScopes: TypeAlias = tuple[_Scope, ...]
"""Outermost first."""


class _Writer(Struct):
    describe: Describe

    def write(self, parts: Iterable[_Part], scopes: LiquidScopes) -> str:
        """Write parts; what cannot be written stays as it is."""
        pieces = []
        for part in parts:
            if isinstance(part, _Text):
                pieces.append(part.text)
            elif isinstance(part, _Output):
                pieces.append(self._output(part, scopes, keep=True))
            else:
                pieces.append(self._block(part, scopes))
        return "".join(pieces)

    def _check(self, parts: Iterable[_Part], scopes: LiquidScopes) -> None:
        """Refuse parts of a section; before its blocks are written, for speed.

        Raises:
            _OtherMeaningError: A name would mean something else there.
        """
        for part in parts:
            if isinstance(part, _Output):
                self._output(part, scopes, keep=False)

    def _output(self, part: _Output, scopes: LiquidScopes, *, keep: bool) -> str:
        name = part.value.partition("|")[0].strip()
        try:
            path = self._resolve(name, scopes)
        except _OtherMeaningError:
            if keep or not _NAME.fullmatch(name) or _path(name)[0] in _RESERVED:
                return part.raw
            raise
        try:
            return self._value(part, name, path, scopes)
        except _OtherMeaningError:
            return part.raw

    def _value(self, part: _Output, name: str, path: str, scopes: LiquidScopes) -> str:
        if len(part.value) > _MAX_TAG:
            raise _OtherMeaningError
        shown, default = path, None
        for word, argument in _read_filters(part.value):
            if word == "join" and argument[:1] in ('"', "'") and shown == path:
                shown = f"{path} | join: {argument}"
            elif word == "default" and default is None:
                default = argument
            else:
                raise _OtherMeaningError
        if default is None:
            plain = name == path and not part.raw.startswith("{{-")
            return part.raw if plain and "-}}" not in part.raw else _tag(shown)
        section = self._section(name, path, scopes).tag
        missing = self._default(default, scopes)
        return f"{{{{#{section}}}}}{_tag(shown)}{{{{/{section}}}}}" + (
            f"{{{{^{section}}}}}{missing}{{{{/{section}}}}}" if missing else ""
        )

    def _default(self, argument: str, scopes: LiquidScopes) -> str:
        if argument[:1] in ('"', "'"):
            if "{{" in argument or "}}" in argument:
                raise _OtherMeaningError
            return argument[1:-1]
        if re.fullmatch(r"\d[\d.]*", argument):
            return argument
        return _tag(self._resolve(argument, scopes))

    def _block(self, block: _Block, scopes: LiquidScopes) -> str:
        try:
            if block.word == "for":
                return self._loop(block, scopes)
            if block.word in ("if", "unless", "elsif"):
                return self._condition(block, scopes)
        except _OtherMeaningError:
            pass
        pieces = [block.raw, self.write(block.parts, scopes)]
        if block.otherwise is not None:
            pieces += [block.middle, self.write(block.otherwise, scopes)]
        return "".join((*pieces, block.end))

    def _loop(self, block: _Block, scopes: LiquidScopes) -> str:
        match = _FOR.fullmatch(block.rest)
        if match is None:
            raise _OtherMeaningError
        path = self._resolve(match[2], scopes)
        known = self._known(match[2], scopes)
        inner = _Scope(match[1], self._whole(match[2], scopes), known.names)
        inside = (*scopes, inner)
        self._check(block.parts, inside)
        self._check(block.otherwise or (), scopes)
        text = f"{{{{#{path}}}}}{self.write(block.parts, inside)}{{{{/{path}}}}}"
        if block.otherwise is None:
            return text
        empty = self.write(block.otherwise, scopes)
        return f"{text}{{{{^{path}}}}}{empty}{{{{/{path}}}}}"

    def _condition(self, block: _Block, scopes: LiquidScopes) -> str:
        path = self._resolve(block.rest, scopes)
        section = self._section(block.rest, path, scopes)
        then, otherwise = block.parts, block.otherwise or []
        if block.word == "unless":
            then, otherwise = otherwise, then
        tag, inner = section.tag, (*scopes, section.scope)
        self._check(then, inner)
        self._check(otherwise, scopes)
        text = self.write(then, inner)
        text = f"{{{{#{tag}}}}}{text}{{{{/{tag}}}}}" if text else ""
        if not otherwise:
            return text
        missing = self.write(otherwise, scopes)
        return f"{text}{{{{^{tag}}}}}{missing}{{{{/{tag}}}}}"

    def _section(self, name: str, path: str, scopes: LiquidScopes) -> _Section:
        """Return the section that a value opens at most once."""
        known = self._known(name, scopes)
        is_list = known.kind == "list"
        if is_list and path == ".":
            raise _OtherMeaningError
        # A condition is on the value; a section over a list would repeat.
        tag = f"{path}.0" if is_list else path
        scope = _Scope(None, None, known.names)
        if path == ".":
            scope = scopes[-1]
        return _Section(tag, scope)

    def _known(self, name: str, scopes: LiquidScopes) -> Known:
        whole = self._whole(name, scopes)
        return Known("other") if whole is None else self.describe(whole)

    def _whole(self, name: str, scopes: LiquidScopes) -> tuple[str, ...] | None:
        """Return the path from the output; an item stands for all of its list."""
        first, *rest = _path(name)
        for scope in reversed(scopes):
            if scope.variable == first:
                return None if scope.path is None else (*scope.path, "0", *rest)
        return (first, *rest)

    def _resolve(self, name: str, scopes: LiquidScopes) -> str:
        """Write a name as it is found from inside the sections.

        Raises:
            _OtherMeaningError: It is no name, or one that a section hides.
        """
        if not _NAME.fullmatch(name):
            raise _OtherMeaningError
        first, *rest = _path(name)
        if first in _RESERVED:
            raise _OtherMeaningError
        for depth in range(len(scopes) - 1, -1, -1):
            if scopes[depth].variable == first:
                return _from_item(rest, scopes[depth + 1 :])
        if any(first in scope.names for scope in scopes):
            raise _OtherMeaningError
        return ".".join((first, *rest))


class _Section(NamedTuple):
    tag: str
    scope: _Scope


def _from_item(rest: list[str], inner: LiquidScopes) -> str:
    if not rest and inner:
        raise _OtherMeaningError
    if rest and any(rest[0] in scope.names for scope in inner):
        raise _OtherMeaningError
    if rest and any(scope.variable and not scope.names for scope in inner):
        # An item of which nothing is known may have any name.
        raise _OtherMeaningError
    return ".".join(rest) or "."


def _path(name: str) -> list[str]:
    return re.sub(r"\[(\d+)\]", r".\1", name).split(".")


def _read_filters(text: str) -> list[tuple[str, str]]:
    _, bar, rest = text.partition("|")
    filters: list[tuple[str, str]] = []
    while bar:
        match = _FILTER.match(rest)
        if match is None:
            raise _OtherMeaningError
        filters.append((match[1], match[2] or ""))
        bar, rest = rest[match.end() : match.end() + 1], rest[match.end() + 1 :]
    return filters


def _tag(name: str) -> str:
    return f"{{{{ {name} }}}}" if "|" in name else f"{{{{{name}}}}}"
