"""A commit's raw bytes: which headers, who, when, and the parts of its message (pure).

The only place that reads commits for verify; parents are counted from the
headers as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from uwfgit.constants import (
    MAX_MESSAGE_BYTES,
    MAX_TIME,
    QUOTE_CHARS,
    QUOTE_LINES,
    SUBJECT_CHARS,
)
from uwfgit.ids import Oid
from uwfgit.model.thread.derive import has_unsafe
from uwfgit.sync.verify.report import refusal, shown

_MAX_PARENTS: Final = 2
_PARAGRAPHS: Final = (2, 3)
_OID = re.compile(rb"(tree|parent) ([0-9a-f]{40})")
_PERSON = re.compile(
    rb"(author|committer|tagger) ([^<>\0]{1,1024}) <([^<>\0]{1,1024})> "
    rb"(0|[1-9][0-9]{0,15}) ([+-][0-9]{4})"
)
_ZONE = re.compile(r"[+-](0[0-9]|1[0-3])[0-5][0-9]|[+-]1400", re.ASCII)
"""No place on earth is further from UTC."""
_NO_ZONE: Final = "-0000"
"""Git writes ``+0000``, also where it is told this one."""
_SIGNED = b"gpgsig "
_MAX_SIGNATURE_BYTES: Final = 16 * 1024
SIGNATURE_START: Final = re.compile(
    rb"^-----BEGIN (?:PGP SIGNATURE|SSH SIGNATURE|SIGNED MESSAGE)-----$", re.MULTILINE
)
_SIGNATURE = re.compile(
    rb"-----BEGIN (PGP SIGNATURE|SSH SIGNATURE|SIGNED MESSAGE)-----\n"
    rb"(?:(?:[A-Za-z]{1,20}: [\x20-\x7e]{0,200}\n){0,8}\n)?"
    rb"(?:[A-Za-z0-9+/=]+\n)+"
    rb"-----END \1-----\n{0,2}"
)
_TRAILER = re.compile(r"([A-Z][A-Za-z-]*): ([\x20-\x7e]*)")


class Stamp(Struct, frozen=True, kw_only=True):
    """Who and when, as a commit's header says."""

    name: str
    email: str
    time: int
    zone: str

    @property
    def who(self) -> str:
        """``Name <mail>``."""
        return f"{self.name} <{self.email}>"


class Message(Struct, frozen=True, kw_only=True):
    """The parts of an event's message; ``quote`` is "" when there is none."""

    text: str
    subject: str
    quote: str
    trailers: Mapping[str, str]
    """In the order they stand in."""


class RawCommit(Struct, frozen=True, kw_only=True):
    """A commit as its bytes say."""

    oid: Oid
    tree: Oid
    parents: tuple[Oid, ...]
    author: Stamp
    committer: Stamp
    is_signed: bool
    message: bytes


def parse_commit(oid: Oid, data: bytes) -> RawCommit:
    """Read a commit's headers.

    Raises:
        CorruptError: A header that is missing, out of place, not one of git's
            own plain ones, or that names someone or a time that no event may
            have.
    """
    head, found, message = data.partition(b"\n\n")
    if not found:
        raise refusal("commit", "the commit has no message")
    lines = head.split(b"\n")
    tree = _take_oids(lines, b"tree")
    parents = _take_oids(lines, b"parent")
    author, committer = (
        _take_person(lines, b"author"),
        _take_person(lines, b"committer"),
    )
    if len(tree) != 1:
        raise refusal("commit", "the commit does not name one tree")
    if not 1 <= len(parents) <= _MAX_PARENTS:
        raise refusal("parents", f"the commit has {len(parents)} parents")
    return RawCommit(
        oid=oid,
        tree=tree[0],
        parents=parents,
        author=author,
        committer=committer,
        is_signed=_take_signature(lines),
        message=message,
    )


def _take_oids(lines: list[bytes], name: bytes) -> tuple[Oid, ...]:
    found = []
    while lines and (match := _OID.fullmatch(lines[0])) and match[1] == name:
        found.append(Oid(match[2].decode()))
        del lines[0]
    return tuple(found)


def _take_person(lines: list[bytes], header: bytes) -> Stamp:
    return parse_person(lines.pop(0) if lines else b"", header)


def parse_person(line: bytes, header: bytes) -> Stamp:
    """Read who and when off a line of a commit or a tag.

    Args:
        line: Without its end.
        header: Which one it must be: ``author``, ``committer`` or ``tagger``.

    Raises:
        CorruptError: It is malformed, or names someone or a time that no event
            may have.
    """
    match, what = _PERSON.fullmatch(line), header.decode()
    if match is None or match[1] != header:
        raise refusal("commit", f"malformed {what} line")
    try:
        name, email = match[2].decode(), match[3].decode()
    except UnicodeDecodeError as exc:
        raise refusal("person", f"the {what} is not UTF-8") from exc
    stamp = Stamp(name=name, email=email, time=int(match[4]), zone=match[5].decode())
    if has_unsafe(stamp.who) or name != name.strip() or email != email.strip():
        raise refusal("person", f"the {what} is {shown(stamp.who)}")
    if stamp.time >= MAX_TIME:
        raise refusal("time", f"the {what}'s time is {stamp.time}")
    if stamp.zone == _NO_ZONE or _ZONE.fullmatch(stamp.zone) is None:
        raise refusal("time", f"the {what}'s time zone is {stamp.zone}")
    return stamp


def is_signature(data: bytes) -> bool:
    """Whether bytes are one whole signature as git's programs write them.

    Whether it is good, and whose, is for git to say.
    """
    is_short = len(data) <= _MAX_SIGNATURE_BYTES
    return is_short and _SIGNATURE.fullmatch(data) is not None


def _take_signature(lines: list[bytes]) -> bool:
    if not lines:
        return False
    first, *rest = lines
    if not first.startswith(_SIGNED):
        raise refusal("commit", f"header {shown(first[:40])} is not allowed")
    for line in rest:
        if line[:1] != b" ":
            raise refusal("commit", f"header {shown(line[:40])} is not allowed")
    text = [first.removeprefix(_SIGNED), *(line[1:] for line in rest)]
    if not is_signature(b"\n".join(text) + b"\n"):
        raise refusal("commit", "the signature is none of PGP, SSH or X.509")
    return True


def parse_message(data: bytes) -> Message:
    """Read the message of an event.

    Raises:
        CorruptError: It is too long, not UTF-8, holds control or bidirectional
            characters, or is not subject, quote and trailers in this order.
    """
    if len(data) > MAX_MESSAGE_BYTES:
        raise refusal("size", f"the message has {len(data)} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        raise refusal("message", "the message is not UTF-8") from exc
    if has_unsafe(text.replace("\n", "")):
        raise refusal("message", "the message holds control characters")
    paragraphs = text.removesuffix("\n").split("\n\n")
    if not text.endswith("\n") or len(paragraphs) not in _PARAGRAPHS:
        raise refusal("message", "the message is not subject, quote and trailers")
    subject, *quotes, last = paragraphs
    is_line = subject and "\n" not in subject and subject == subject.strip()
    if not is_line or len(subject) > SUBJECT_CHARS:
        raise refusal("message", f"the subject is {shown(subject)}")
    quote, trailers = _quote(quotes), dict[str, str]()
    before = text.removesuffix("\n").count("\n") - last.count("\n")
    for number, line in enumerate(last.split("\n"), before + 1):
        match = _TRAILER.fullmatch(line)
        if match is None or match[1] in trailers:
            what = "is not a trailer of an event" if match is None else "is there twice"
            where = f"line {number} of the message"
            told = f"{where}: {shown(line)} {what}" if line else f"{where} is empty"
            raise refusal("trailers", told)
        trailers[match[1]] = match[2]
    return Message(text=text, subject=subject, quote=quote, trailers=trailers)


def _quote(paragraphs: list[str]) -> str:
    if not paragraphs:
        return ""
    lines = paragraphs[0].split("\n")
    fits = all(
        line == ">" or (line.startswith("> ") and len(line) <= QUOTE_CHARS + 2)
        for line in lines
    )
    if len(lines) > QUOTE_LINES or not fits:
        raise refusal("message", "the message's body is not a quote of 20 short lines")
    return paragraphs[0]
