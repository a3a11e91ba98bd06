"""YAML 1.2 core with places; the only place to read YAML from.

PyYAML's parser gives events; what the words mean, the limits, and every
refusal are ours. Agents' replies, workflow files and configuration go through
the same reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Protocol

import yaml
from msgspec import Struct, field

from uwfgit.constants import MAX_BLOB_BYTES, YAML_MAX_DEPTH, YAML_MAX_NODES
from uwfgit.errors import InvalidError, Problem
from uwfgit.model.yaml.dump import TAG_PREFIX, dump_yaml, read_plain, read_tagged
from uwfgit.model.yaml.events import (
    decode_text,
    hide_old_breaks,
    iter_events,
    make_problem,
    second_document,
    sort_problems,
    too_deep,
)
from uwfgit.model.yaml.located import Located, Mark, SourcePlace, SourceText
from uwfgit.store.canonical import Json

INCLUDE_TAG: Final = "!include"
_MAX_SHOWN: Final = 60
_BREAK = re.compile(r"\r\n?")


class IncludeReader(Protocol):
    """Reads what an ``!include`` tag names."""

    def __call__(self, target: str) -> Included:
        """Read the file; its problems carry no place yet.

        Raises:
            InvalidError: It is not there, or may not be read.
        """


class Included(Struct, frozen=True, kw_only=True):
    """A file that an ``!include`` tag named.

    ``key`` is the same for the same file; ``nested`` reads the tags inside it,
    and is ``None`` for a file that is plain text.
    """

    key: str
    file: str
    content: bytes
    nested: IncludeReader | None


class Composition(Struct):
    """What one reading, with all its includes, has found so far."""

    problems: list[Problem] = field(default_factory=list)
    broken: set[SourcePlace] = field(default_factory=set)
    cache: dict[str, Mark] = field(default_factory=dict)
    includes: bool = False


class _Frame(Struct):
    """A collection that is still open."""

    mark: Mark
    anchor: str | None
    keys: dict[str, Mark] = field(default_factory=dict)
    children: dict[str | int, Mark] = field(default_factory=dict)
    key: Mark | None = None
    name: str | None = None
    skip: bool = False


class Composer:
    """Makes the marks of one document of its events, without recursion."""

    def __init__(
        self, session: Composition, source: SourceText, include: IncludeReader | None
    ) -> None:
        self.session = session
        self.source = source
        self.include = include
        self.frames: list[_Frame] = []
        self.anchors: dict[str, Mark | None] = {}
        self.size = 0
        self.weight = 0
        self.root: Mark | None = None
        self.text, self.restore = hide_old_breaks(source.text)

    def compose(self) -> Mark:
        """Read the whole document.

        Raises:
            InvalidError: It is no YAML, or beyond a limit.
        """
        documents = 0
        # A table by type: this loop is most of the time reading takes.
        actions: dict[type[yaml.Event], Callable[[Any], None]] = {
            yaml.ScalarEvent: self._add_scalar,
            yaml.AliasEvent: lambda event: self._add(self._alias(event), event),
            yaml.MappingStartEvent: self._open,
            yaml.SequenceStartEvent: self._open,
            yaml.MappingEndEvent: self._close,
            yaml.SequenceEndEvent: self._close,
        }
        for event in iter_events(self.text, self.source):
            action = actions.get(type(event))
            if action is not None:
                action(event)
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise second_document(self._event_place(event))
        if self.root is None:
            self.root = Mark(
                value=None, source=self.source, line=1, column=1, start=0, end=0
            )
        elif self.root.start >= (end := len(self.text.rstrip())) > 0:
            # Behind the last line the parser counts one more, which is not there.
            place = self.source.place_at(end)
            self.root.line, self.root.column = place.line, place.column
        return self.root

    def _add_scalar(self, event: yaml.ScalarEvent) -> None:
        mark = self._scalar(event)
        if event.anchor is not None:
            self.anchors[event.anchor] = mark
        self._add(mark, event)

    def _open(self, event: yaml.CollectionStartEvent) -> None:
        is_map = isinstance(event, yaml.MappingStartEvent)
        mark = self._mark_of({} if is_map else [], event)
        if event.tag not in (None, "!", f"{TAG_PREFIX}{'map' if is_map else 'seq'}"):
            self._refuse_tag(event.tag or "", event)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        frame = _Frame(mark=mark, anchor=event.anchor)
        mark.keys, mark.children = frame.keys, frame.children
        self.frames.append(frame)
        if len(self.frames) > YAML_MAX_DEPTH:
            raise too_deep(self._event_place(event))

    def _close(self, event: Any) -> None:  # noqa: ANN401 - see _mark_of
        frame = self.frames.pop()
        frame.mark.end = event.end_mark.index
        if frame.anchor is not None:
            self.anchors[frame.anchor] = frame.mark
        self.size += 1
        self._put(frame.mark, event)

    def _add(self, mark: Mark, event: yaml.Event) -> None:
        """Count what was not counted part by part, and put it in its place."""
        self.size += mark.size
        self.weight += mark.weight
        if mark.depth and len(self.frames) + mark.depth > YAML_MAX_DEPTH:
            raise too_deep(self._event_place(event))
        self._put(mark, event)

    def _put(self, mark: Mark, event: yaml.Event) -> None:
        if self.size > YAML_MAX_NODES or self.weight > MAX_BLOB_BYTES:
            message = "holds more than 100,000 values or 16 MiB with aliases expanded"
            hint = "use fewer or smaller aliases"
            place = self._event_place(event)
            raise InvalidError([make_problem("Y9", place, message, hint)])
        if not self.frames:
            self.root = mark
            return
        frame = self.frames[-1]
        parent = frame.mark
        parent.size += mark.size
        parent.weight += mark.weight
        parent.depth = max(parent.depth, mark.depth + 1)
        if isinstance(parent.value, list):
            frame.children[len(parent.value)] = mark
            parent.value.append(mark.value)
        elif frame.key is None:
            self._add_key(frame, mark, event)
        else:
            name = frame.name
            if not frame.skip and name is not None:
                parent.value[name] = mark.value
                frame.keys[name] = frame.key
                frame.children[name] = mark
            frame.key = frame.name = None

    def _add_key(self, frame: _Frame, mark: Mark, event: yaml.Event) -> None:
        frame.key, name = mark, mark.value
        frame.name = name if isinstance(name, str) else self._key_name(mark, event)
        frame.skip = frame.name is None
        if frame.name is not None and frame.name in frame.keys:
            frame.skip = True
            message = f"key '{_short(frame.name)}' is given twice"
            # What has no file is a part of something, where its lines count on.
            if self.source.file is not None:
                message += f", first on line {frame.keys[frame.name].line}"
            self._report("Y6", self._event_place(event), message, "keep one of them")

    def _key_name(self, mark: Mark, event: yaml.Event) -> str | None:
        """Return a key that is no text as one; ``None`` for one that cannot be."""
        if isinstance(mark.value, (dict, list)):
            kind = "mapping" if isinstance(mark.value, dict) else "list"
            message = f"a key is a {kind}, not text"
            is_braced = self.source.text.startswith("{{", max(mark.start - 1, 0))
            hint = (
                "quote text that begins with '{{'" if is_braced else "use text as key"
            )
            self._report("Y7", mark.place, message, hint)
            return None
        place = self._event_place(event)
        if place in self.session.broken:
            return None
        written = self.source.text[mark.start : mark.end].strip()
        shown = f"key '{_short(written)}'" if written else "an empty key"
        message = f"{shown} is {_kind(mark.value)}, not text"
        self._break(event, "Y7", message, "quote the key")
        # The text goes on as the key, so that what leans on it is not reported.
        return written or None

    def _alias(self, event: yaml.AliasEvent) -> Mark:
        anchor = event.anchor or ""
        target = self.anchors.get(anchor)
        if target is not None:
            return target
        if anchor in self.anchors:
            message = f"alias '*{_short(anchor)}' holds itself"
            hint = "write the value out"
        else:
            message = f"alias '*{_short(anchor)}' names no anchor above it"
            hint = "define it with '&' first, or quote the text"
        self._break(event, "Y8", message, hint)
        return self._mark_of(None, event)

    def _scalar(self, event: yaml.ScalarEvent) -> Mark:
        text = event.value.translate(self.restore) if self.restore else event.value
        style = event.style or ""
        if event.tag == INCLUDE_TAG and self.include:
            frame = self.frames[-1] if self.frames else None
            if (
                frame is None
                or frame.key is not None
                or not isinstance(frame.mark.value, dict)
            ):
                return self._include(text, event, self.include)
        value: Json = text
        try:
            if event.tag is not None:
                value = read_tagged(text, event.tag)
            elif not style:
                value = read_plain(text)
        except KeyError:
            self._refuse_tag(event.tag or "", event)
            value = None
        except ValueError as exc:
            self._break(event, "Y11", str(exc), "quote it to make it text")
            value = None
        mark = self._mark_of(value, event)
        mark.style = style
        mark.weight = len(text)
        return mark

    def _include(
        self, target: str, event: yaml.ScalarEvent, include: IncludeReader
    ) -> Mark:
        self.session.includes = True
        try:
            included = include(target)
        except InvalidError as exc:
            for each in exc.problems:
                self._break(event, each.code, each.message, each.hint)
            return self._mark_of(None, event)
        mark = self.session.cache.get(included.key)
        if mark is None:
            mark = self._read_included(included, event)
            self.session.cache[included.key] = mark
        return mark

    def _read_included(self, included: Included, event: yaml.ScalarEvent) -> Mark:
        try:
            source = decode_text(included.content, included.file)
            if included.nested is not None:
                return Composer(self.session, source, included.nested).compose()
        except InvalidError as exc:
            self.session.problems.extend(exc.problems)
            self.session.broken.add(self._event_place(event))
            return self._mark_of(None, event)
        # As YAML does with its own text: the line ends of a checkout, which git may
        # choose, are no part of what is said.
        text = _BREAK.sub("\n", source.text)
        source = SourceText(file=source.file, text=text)
        return Mark(
            value=text,
            source=source,
            line=1,
            column=1,
            start=0,
            end=len(text),
            style="include",
            weight=len(text),
        )

    def _refuse_tag(self, tag: str, event: yaml.Event) -> None:
        shown = tag.replace(TAG_PREFIX, "!!") if tag.startswith(TAG_PREFIX) else tag
        if shown == INCLUDE_TAG:
            message, hint = "'!include' is not allowed here", "write the text itself"
            if self.include is not None:
                message = "'!include' stands for a value, and takes one path"
                hint = "write !include FILE"
        else:
            message = f"unknown tag '{_short(shown)}'"
            hint = "quote text that starts with '!'; the only tag here is !include"
        self._break(event, "Y5", message, hint)

    def _break(
        self, event: yaml.Event, code: str, message: str, hint: str | None
    ) -> None:
        place = self._event_place(event)
        self.session.broken.add(place)
        self._report(code, place, message, hint)

    def _report(
        self, code: str, place: SourcePlace, message: str, hint: str | None
    ) -> None:
        self.session.problems.append(make_problem(code, place, message, hint))

    def _event_place(self, event: Any) -> SourcePlace:  # noqa: ANN401 - see _mark_of
        mark = event.start_mark
        return SourcePlace(
            file=self.source.file, line=mark.line + 1, column=mark.column + 1
        )

    def _mark_of(self, value: Json, event: Any) -> Mark:  # noqa: ANN401 - its marks are never None
        start = event.start_mark
        return Mark(
            value=value,
            source=self.source,
            line=start.line + 1,
            column=start.column + 1,
            start=start.index,
            end=event.end_mark.index,
        )


def _kind(value: Json) -> str:
    if value is None:
        return "nothing"
    return "true or false" if isinstance(value, bool) else "a number"


def _short(text: str) -> str:
    shown = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
    return shown.encode("unicode_escape").decode() if not shown.isprintable() else shown


__all__ = [
    "IncludeReader",
    "Included",
    "Located",
    "dump_yaml",
    "parse_value",
    "parse_yaml",
    "read_yaml",
    "sort_problems",
]


def parse_yaml(text: str | bytes, *, file: str | None = None) -> Located:
    """Read one document without includes; an empty one is ``None``.

    Args:
        text: The document; bytes are UTF-8.
        file: How problems name the document.

    Raises:
        InvalidError: With every problem found (codes Y…), in order.
    """
    located, problems = read_yaml(text, file=file)
    if problems or located is None:
        raise InvalidError(problems)
    return located


_SURROGATES: Final = re.compile(
    r"\\u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
)


def parse_value(text: str) -> Json:
    """Read one document, without includes, as a plain value.

    Agents write JSON's escapes for what lies beyond the first plane: a text
    that is no YAML for that reason alone is read with YAML's own.

    Raises:
        InvalidError: The places of its problems are inside the text.
    """
    try:
        return parse_yaml(text).mark.value
    except InvalidError:
        mended = _SURROGATES.sub(_join_surrogates, text)
        if mended == text:
            raise
        return parse_yaml(mended).value


def _join_surrogates(match: re.Match[str]) -> str:
    high, low = int(match["high"], 16), int(match["low"], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08X}"


def read_yaml(
    text: str | bytes, *, file: str | None = None, include: IncludeReader | None = None
) -> tuple[Located | None, tuple[Problem, ...]]:
    """Read one document and its problems; ``None`` when it is no YAML at all.

    With problems that concern single values, those values are ``None`` and
    their places are in ``broken``, so that the rest can be checked too.
    """
    session = Composition()
    try:
        mark = Composer(session, decode_text(text, file), include).compose()
    except InvalidError as exc:
        return None, sort_problems((*session.problems, *exc.problems))
    located = Located(
        mark=mark, includes=session.includes, broken=frozenset(session.broken)
    )
    problems = session.problems
    return located, sort_problems(problems) if problems else ()
