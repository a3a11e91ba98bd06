from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

import pytest

from uwfgit.cli.frame.options import GlobalOptions
from uwfgit.cli.frame.output import (
    Column,
    Output,
    format_duration,
    format_fields,
    format_json,
    format_table,
    format_time,
)

COLUMNS = (
    Column(title="NAME", flexible=True),
    Column(title="STATUS", status=True),
    Column(title="SIZE", right=True),
)


def make_output(
    *, color: str = "auto", environment: dict[str, str] | None = None
) -> Output:
    options = GlobalOptions(color=color)  # type: ignore[arg-type]  # one of the words
    return Output(options=options, environment=environment or {})


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make stdout say that it is a terminal of 30 columns."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "30")


def test_a_table_is_aligned_and_says_dash_for_nothing() -> None:
    rows = [("a", "idle", "1"), ("much longer", None, "1000")]

    text = format_table(make_output(), COLUMNS, rows)

    assert text.splitlines() == [
        "NAME         STATUS  SIZE",
        "a            idle       1",
        "much longer  -       1000",
    ]


def test_wide_letters_count_double() -> None:
    text = format_table(
        make_output(), COLUMNS, [("日本", "end", "1"), ("ab", "end", "2")]
    )

    assert text.splitlines()[1:] == ["日本  end        1", "ab    end        2"]


def test_nothing_is_cut_in_a_pipe() -> None:
    text = format_table(make_output(), COLUMNS, [("x" * 200, "idle", "1")])

    assert "x" * 200 in text


@pytest.mark.usefixtures("terminal")
def test_flexible_columns_are_cut_to_the_terminal() -> None:
    output = make_output(color="never")

    text = format_table(output, COLUMNS, [("x" * 200, "suspended", "1")])

    assert max(len(line) for line in text.splitlines()) == 30
    assert "…" in text
    assert "suspended" in text


def test_control_characters_in_cells_and_fields_are_shown() -> None:
    output = make_output()

    table = format_table(output, COLUMNS, [("\x1b[2J", "idle\n", "1")])
    fields = format_fields(output, [("name", "a\x1b[2J\nb")])

    assert "\x1b" not in table + fields
    assert len(table.splitlines()) == 2
    assert fields == "name  a\\x1b[2J\n      b"


@pytest.mark.parametrize(
    ("color", "environment", "expected"),
    [
        pytest.param("auto", {}, "coloured", id="terminal"),
        pytest.param("auto", {"NO_COLOR": "1"}, "plain", id="no-color"),
        pytest.param("auto", {"NO_COLOR": ""}, "coloured", id="no-color-empty"),
        pytest.param("auto", {"TERM": "dumb"}, "plain", id="dumb"),
        pytest.param("never", {}, "plain", id="never"),
        pytest.param("always", {"NO_COLOR": "1"}, "coloured", id="always-wins"),
    ],
)
@pytest.mark.usefixtures("terminal")
def test_when_status_words_are_coloured(
    color: str, environment: dict[str, str], expected: str
) -> None:
    output = make_output(color=color, environment=environment)

    painted = output.paint("end", "end")

    assert painted == ("end" if expected == "plain" else "\x1b[32mend\x1b[0m")


def test_a_pipe_has_no_colours() -> None:
    assert make_output().paint("end", "end") == "end"
    assert make_output(color="always").paint("end", "end") == "\x1b[32mend\x1b[0m"


def test_json_keeps_letters_and_escapes_controls() -> None:
    assert format_json({"a": "Ø\x1b\x9b"}) == '{\n  "a": "Ø\\u001b\\u009b"\n}'


def test_a_long_listing_has_one_line_an_item() -> None:
    payload = {"threadId": "T", "items": [{"n": n, "t": "\x1bØ"} for n in range(1000)]}

    text = format_json(payload)

    assert json.loads(text) == payload
    assert len(text.splitlines()) == 1000 + 5
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        pytest.param(None, None, id="none"),
        pytest.param(0, "0 ms", id="zero"),
        pytest.param(999, "999 ms", id="ms"),
        pytest.param(4_230, "4.2 s", id="seconds"),
        pytest.param(185_000, "3 m 05 s", id="minutes"),
        pytest.param(7_800_000, "2 h 10 m", id="hours"),
    ],
)
def test_durations(duration: int | None, expected: str | None) -> None:
    assert format_duration(duration) == expected


def test_times_are_local_to_the_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-2")
    time.tzset()

    assert format_time(1_777_593_659_999) == "2026-05-01 02:00"
    assert format_time(None) is None
    assert format_time(10**20) is None


@pytest.fixture(autouse=True)
def _zone_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield
    monkeypatch.undo()
    time.tzset()


def test_notes_wait_in_json_and_are_silent_with_quiet(
    capsys: pytest.CaptureFixture[str],
) -> None:
    waiting = Output(options=GlobalOptions(format="json"), environment={})
    quiet = Output(options=GlobalOptions(quiet=True), environment={})

    waiting.say("later")
    quiet.say("never")

    assert capsys.readouterr().err == ""
    assert (waiting.notes, quiet.notes) == (["later"], [])
