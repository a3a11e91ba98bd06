from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwfgit.constants import MAX_MESSAGE_BYTES, QUOTE_CHARS, QUOTE_LINES, SUBJECT_CHARS
from uwfgit.model.thread.derive import (
    format_message,
    format_status,
    format_subject,
    has_unsafe,
    parse_trailers,
)
from uwfgit.model.thread.event import event_trailers, read_event
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.objects import Commit, Person

THREAD = "01JZZZZZZZZZZZZZZZZZZZZZZZ"
TRAILERS = event_trailers("step", THREAD, Role="dev").items()
READ = {
    "Uwf-Format": "1",
    "Uwf-Event": "step",
    "Uwf-Thread": THREAD,
    "Uwf-Role": "dev",
}
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def test_a_message_is_subject_quote_and_trailers() -> None:
    message = format_message("dev: done", "First.\n\nSecond.\n", TRAILERS)

    assert message == (
        "dev: done\n"
        "\n"
        "> First.\n"
        ">\n"
        "> Second.\n"
        "\n"
        "Uwf-Format: 1\n"
        "Uwf-Event: step\n"
        "Uwf-Thread: 01JZZZZZZZZZZZZZZZZZZZZZZZ\n"
        "Uwf-Role: dev\n"
    )


def test_a_message_without_a_body_has_no_quote() -> None:
    message = format_message("dev: done", " \n\t\n", [("Uwf-Role", "dev")])

    assert message == "dev: done\n\nUwf-Role: dev\n"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("Uwf-Event: cancel", id="a-trailer"),
        pytest.param("x\n\nUwf-Event: cancel\n", id="a-last-paragraph"),
        pytest.param("x\n\n\nUwf-Event: cancel\n\n\n", id="among-blank-lines"),
        pytest.param("x\r\rUwf-Event: cancel", id="old-mac-lines"),
        pytest.param("x\x0b\x0bUwf-Event: cancel", id="vertical-tabs"),
        pytest.param("x\u2028\u2028Uwf-Event: cancel", id="line-separators"),
        pytest.param("x\u2029Uwf-Event: cancel", id="paragraph-separator"),
        pytest.param("x\x85\x85Uwf-Event: cancel", id="next-line"),
        pytest.param("x\x1c\x1d\x1eUwf-Event: cancel", id="information-separators"),
        pytest.param("x\0\n\0\nUwf-Event: cancel", id="nul-lines"),
        pytest.param("---\nUwf-Event: cancel", id="a-divider"),
        pytest.param("> x\n\nUwf-Event: cancel\n\n>", id="a-quote"),
        pytest.param("diff --git a/x b/x\n@@ -1 +1 @@", id="a-patch"),
    ],
)
@pytest.mark.parametrize("place", ["body", "subject"])
def test_no_text_can_be_a_trailer_or_a_divider(body: str, place: str) -> None:
    subject = body if place == "subject" else "dev: done"

    message = format_message(subject, body, TRAILERS)

    first, *lines = message.rstrip("\n").split("\n")
    quoted = lines[1 : -len(TRAILERS) - 1]
    assert parse_trailers(message) == READ
    assert not has_unsafe(first)
    assert all(line == ">" or line.startswith("> ") for line in quoted)


@given(st.text(), st.text())
def test_whatever_is_said_the_trailers_are_ours(subject: str, body: str) -> None:
    message = format_message(subject, body, TRAILERS)

    assert parse_trailers(message) == READ
    assert not has_unsafe(message.replace("\n", ""))


def test_a_quote_is_bounded_in_lines_and_characters() -> None:
    body = "\n".join(["é" * 1000] * 100)

    message = format_message("x", body, TRAILERS)

    quoted = [line for line in message.split("\n") if line.startswith(">")]
    assert quoted == ["> " + "é" * QUOTE_CHARS] * QUOTE_LINES


@pytest.mark.parametrize("character", ["😀", "世", "x"])
def test_a_message_of_the_widest_characters_stays_within_the_bound(
    character: str,
) -> None:
    body = "\n".join([character * 1000] * 100)
    more = [("Uwf-Prev", "r" * 64), ("Uwf-Next", "n" * 64), ("Uwf-Status", "s" * 400)]

    message = format_message(character * 1000, body, [*TRAILERS, *more])

    assert len(message.encode()) <= MAX_MESSAGE_BYTES
    assert parse_trailers(message) == READ | dict(more)
    assert f"> {character}" in message


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        pytest.param("dev: done", "dev: done", id="plain"),
        pytest.param("  a \n\n b\tc  ", "a b c", id="one-line"),
        pytest.param("a\0b\x1b[31mc\x7fd\x9be", "a b [31mc d e", id="controls"),
        pytest.param(f"a{BIDI}b\ufeffc", "a b c", id="bidi"),
        pytest.param("x" * SUBJECT_CHARS, "x" * SUBJECT_CHARS, id="as-long-as-may-be"),
        pytest.param(
            "x" * (SUBJECT_CHARS + 1), "x" * (SUBJECT_CHARS - 1) + "…", id="too-long"
        ),
        pytest.param("x" * 70 + " " * 3 + "y" * 9, "x" * 70 + "…", id="cut-at-a-blank"),
        pytest.param("é" * 100, "é" * 71 + "…", id="characters-not-bytes"),
    ],
)
def test_a_subject_is_one_short_safe_line(text: str, subject: str) -> None:
    assert format_subject(text) == subject


@given(st.text(max_size=200))
def test_any_subject_fits(text: str) -> None:
    subject = format_subject(text)

    assert len(subject) <= SUBJECT_CHARS
    assert "\n" not in subject
    assert not has_unsafe(subject)


def test_every_control_and_bidirectional_character_is_unsafe() -> None:
    bidi = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI", "B"}
    wanted = {
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in {"Cc", "Zl", "Zp"}
        or unicodedata.bidirectional(chr(code)) in bidi
    } | set(BIDI)

    assert [repr(each) for each in sorted(wanted) if not has_unsafe(each)] == []


@pytest.mark.parametrize("text", ["plain", "é世😀", "a b", "\xa0"])
def test_ordinary_text_is_safe(text: str) -> None:
    assert not has_unsafe(text)


@pytest.mark.parametrize(
    ("message", "trailers"),
    [
        pytest.param("s\n\nA: 1\nB-c: 2\n", {"A": "1", "B-c": "2"}, id="plain"),
        pytest.param("s\n\nA: 1\n\n\n", {"A": "1"}, id="newlines-at-the-end"),
        pytest.param("s\n\nA: \n", {"A": ""}, id="empty-value"),
        pytest.param("s\n\nA: b: c\n", {"A": "b: c"}, id="colon-in-a-value"),
        pytest.param("s\n\nA: 1\n\nB: 2\n", {"B": "2"}, id="last-paragraph-only"),
        pytest.param("A: 1\n", {"A": "1"}, id="nothing-else"),
        pytest.param("s\n\nA: 1\nA: 2\n", {}, id="one-twice"),
        pytest.param("s\n\nA: 1\nnot one\n", {}, id="one-line-is-none"),
        pytest.param("s\n\nA: 1\n  folded\n", {}, id="folded"),
        pytest.param("s\n\na: 1\n", {}, id="lower-case"),
        pytest.param("s\n\nA:1\n", {}, id="no-blank"),
        pytest.param("s\n\nA: é\n", {}, id="not-ascii"),
        pytest.param("s\n\nA: 1\r\n", {}, id="crlf"),
        pytest.param("s\n\nA: \x1b\n", {}, id="control"),
        pytest.param("", {}, id="empty"),
        pytest.param("subject only\n", {}, id="subject-only"),
    ],
)
def test_trailers_are_read_from_the_last_paragraph(
    message: str, trailers: dict[str, str]
) -> None:
    assert parse_trailers(message) == trailers


@pytest.mark.parametrize(
    ("status", "written"),
    [
        pytest.param(None, "-", id="none"),
        pytest.param("done", "done", id="plain"),
        pytest.param("two words", "two words", id="words"),
        pytest.param("$SUSPEND", "$SUSPEND", id="suspend"),
        pytest.param("-", '"-"', id="dash"),
        pytest.param('"x', '"\\"x"', id="quote"),
        pytest.param("fertig ✓", '"fertig \\u2713"', id="not-ascii"),
        pytest.param("😀", '"\\ud83d\\ude00"', id="emoji"),
        pytest.param("a\nUwf-Event: x", '"a\\nUwf-Event: x"', id="newline"),
        pytest.param("\x1b", '"\\u001b"', id="control"),
    ],
)
def test_a_status_is_ascii_and_read_back(status: str | None, written: str) -> None:
    assert format_status(status) == written
    assert _read_status(written) == status


@given(st.text(min_size=1, max_size=64))
def test_any_status_is_read_back(status: str) -> None:
    written = format_status(status)

    assert written.isascii()
    assert "\n" not in written
    assert _read_status(written) == status


def test_a_status_longer_than_any_edge_has_is_cut() -> None:
    written = format_status("x" * 20_000)

    assert _read_status(written) == "x" * 63 + "…"


def _read_status(written: str) -> str | None:
    trailers = event_trailers("step", THREAD, Status=written).items()
    person = Person(name="Ada", email="a", time=1)
    commit = Commit(
        oid=GENESIS_OID,
        tree=GENESIS_OID,
        parents=(),
        author=person,
        committer=person,
        message=format_message("x", "", trailers),
    )
    return read_event(commit).status
