"""YAML 1.2 core with places; the only place to read YAML from.

PyYAML's parser gives events; what the words mean, the limits, and every
refusal are ours. Agents' replies, workflow files and configuration go through
the same reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import yaml
from msgspec import Struct, field

from uwfgit.constants import MAX_BLOB_BYTES, YAML_MAX_DEPTH, YAML_MAX_NODES
from uwfgit.errors import InvalidError, Problem
from uwfgit.model.yaml.dump import TAG_PREFIX, read_plain, read_tagged
from uwfgit.model.yaml.events import decode_text, iter_events
from uwfgit.model.yaml.located import (
    Included,
    IncludeReader,
    Located,
    Mark,
    SourcePlace,
    SourceText,
)
from uwfgit.model.yaml.problems import (
    INCLUDE_TAG,
    bad_alias,
    bad_key,
    bad_tag,
    make_problem,
    refusal,
    second_document,
    shorten,
    sort_problems,
    too_deep,
)
from uwfgit.store.canonical import Json

_BREAK = re.compile(r"\r\n?")


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
    """What the key goes on as; ``None`` when its value is passed over."""


class Composer(Struct):
    """Makes the marks of one document of its events, without recursion."""

    session: Composition
    source: SourceText
    include: IncludeReader | None
    frames: list[_Frame] = field(default_factory=list)
    anchors: dict[str, Mark | None] = field(default_factory=dict)
    size: int = 0
    weight: int = 0
    root: Mark | None = None

    def compose(self) -> Mark:
        """Read the whole document.

        Raises:
            InvalidError: It is no YAML, or beyond a limit.
        """
        documents = 0
        # A table by type: this loop is most of the time reading takes.
        actions: dict[type[yaml.Event], Callable[[Any], None]] = {
            yaml.ScalarEvent: self._add_scalar,
            yaml.AliasEvent: self._add_alias,
            yaml.MappingStartEvent: self._open,
            yaml.SequenceStartEvent: self._open,
            yaml.MappingEndEvent: self._close,
            yaml.SequenceEndEvent: self._close,
        }
        for event in iter_events(self.source):
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
        elif self.root.start >= (end := len(self.source.text.rstrip(" \t\r\n"))) > 0:
            # Behind the last line the parser counts one more, which is not there.
            place = self.source.place_at(end)
            self.root.line, self.root.column = place.line, place.column
        return self.root

    def _add_scalar(self, event: yaml.ScalarEvent) -> None:
        frame = self.frames[-1] if self.frames else None
        value: Json = event.value
        if (
            event.tag == INCLUDE_TAG
            and self.include
            and (
                frame is None
                or frame.key is not None
                or not isinstance(frame.mark.value, dict)
            )
        ):
            mark = self._include(event.value, event, self.include)
        else:
            try:
                if event.tag is not None:
                    value = read_tagged(event.value, event.tag)
                elif not event.style:
                    value = read_plain(event.value)
            except KeyError:
                includes = self.include is not None
                self._break(event, "Y5", *bad_tag(event.tag or "", includes=includes))
                value = None
            except ValueError as exc:
                self._break(event, "Y11", str(exc), "quote it to make it text")
                value = None
            mark = self._mark_of(value, event)
            mark.style = event.style or ""
            mark.weight = len(event.value)
        if event.anchor is not None:
            self.anchors[event.anchor] = mark
        self._put(mark, event, size=mark.size, weight=mark.weight)

    def _open(self, event: yaml.CollectionStartEvent) -> None:
        is_map = isinstance(event, yaml.MappingStartEvent)
        mark = self._mark_of({} if is_map else [], event)
        if event.tag not in (None, "!", f"{TAG_PREFIX}{'map' if is_map else 'seq'}"):
            includes = self.include is not None
            self._break(event, "Y5", *bad_tag(event.tag or "", includes=includes))
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
        self._put(frame.mark, event, size=1, weight=0)

    def _put(self, mark: Mark, event: yaml.Event, *, size: int, weight: int) -> None:
        """Put a value in its place, and count what of it was not counted before."""
        self.size += size
        self.weight += weight
        if mark.depth and len(self.frames) + mark.depth > YAML_MAX_DEPTH:
            raise too_deep(self._event_place(event))
        if self.size > YAML_MAX_NODES or self.weight > MAX_BLOB_BYTES:
            message = "holds more than 100,000 values or 16 MiB with aliases expanded"
            hint = "use fewer or smaller aliases"
            raise refusal("Y9", self._event_place(event), message, hint)
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
            frame.key = mark
            if isinstance(mark.value, str) and mark.value not in frame.keys:
                frame.name = mark.value
            else:
                frame.name = self._odd_key(frame, mark, event)
        else:
            if frame.name is not None:
                parent.value[frame.name] = mark.value
                frame.keys[frame.name] = frame.key
                frame.children[frame.name] = mark
            frame.key = frame.name = None

    def _odd_key(self, frame: _Frame, mark: Mark, event: yaml.Event) -> str | None:
        """Return what a key goes on as that is no text, or is there already."""
        is_text = isinstance(mark.value, str)
        name: str | None = mark.value if is_text else self._key_name(mark, event)
        if name is None or name not in frame.keys:
            return name
        message = f"key '{shorten(name)}' is given twice"
        # What has no file is a part of something, where its lines count on.
        if self.source.file is not None:
            message += f", first on line {frame.keys[name].line}"
        self._report("Y6", self._event_place(event), message, "keep one of them")
        return None

    def _key_name(self, mark: Mark, event: yaml.Event) -> str | None:
        """Return a key that is no text as one; ``None`` for one that cannot be."""
        if isinstance(mark.value, (dict, list)):
            self._report("Y7", mark.place, *bad_key(mark, ""))
            return None
        place = self._event_place(event)
        if place in self.session.broken:
            return None
        written = self.source.text[mark.start : mark.end].strip()
        self._break(event, "Y7", *bad_key(mark, written))
        # The text goes on as the key, so that what leans on it is not reported.
        return written or None

    def _add_alias(self, event: yaml.AliasEvent) -> None:
        anchor = event.anchor or ""
        target = self.anchors.get(anchor)
        if target is not None:
            self._put(target, event, size=target.size, weight=target.weight)
            return
        self._break(event, "Y8", *bad_alias(anchor, is_open=anchor in self.anchors))
        self._put(self._mark_of(None, event), event, size=1, weight=0)

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
    located, problems = read_yaml(text)
    if problems and _SURROGATES.search(text):
        located, problems = read_yaml(_SURROGATES.sub(_join_surrogates, text))
    if problems or located is None:
        raise InvalidError(problems)
    return located.mark.value


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
