"""Arguments and folders that are no UTF-8: nothing recorded can hold them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.calls import Uwf

BYTES = "\udcff"
"""What a byte that is no UTF-8 becomes in an argument."""


@pytest.mark.parametrize(
    ("words", "what"),
    [
        pytest.param(
            ["thread", "start", "ping.yaml", "-p", BYTES], "--prompt", id="-p"
        ),
        pytest.param(
            ["thread", "start", "ping.yaml", "-p", f"@@{BYTES}"], "--prompt", id="@@"
        ),
        pytest.param(
            ["thread", "start", "ping.yaml", "-p", "x", "-i", f"a={BYTES}"],
            "-i a",
            id="input",
        ),
        pytest.param(["thread", "note", "@last", "-p", BYTES], "--prompt", id="note"),
        pytest.param(
            ["thread", "cancel", "@last", "--reason", BYTES], "--reason", id="reason"
        ),
        pytest.param(
            ["review", "approve", "@last", "-m", BYTES], "--message", id="message"
        ),
        pytest.param(["cas", "put-text", BYTES], "TEXT", id="text"),
        pytest.param(["cas", "put", "text", f'"{BYTES}"'], "JSON", id="json"),
    ],
)
@pytest.mark.usefixtures("thread")
def test_an_argument_that_is_no_text_is_refused_by_its_name(
    uwf: Uwf, words: list[str], what: str
) -> None:
    done = uwf(*words)

    assert done.code == 1
    assert done.err.startswith(f"error: {what} is not UTF-8 (byte ")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["trust", "add", BYTES], id="trust"),
        pytest.param(["config", "set", "defaultModel", BYTES], id="set"),
    ],
)
def test_nothing_is_configured_that_could_not_be_read_again(
    uwf: Uwf, home: Path, words: list[str]
) -> None:
    uwf("config", "set", "limits.idleSeconds", "9")
    before = (home / "config.yaml").read_text()

    done = uwf(*words)

    assert (done.code, "is not UTF-8" in done.err) == (1, True), done.err
    assert (home / "config.yaml").read_text() == before


@pytest.mark.parametrize("how", ["start", "exec"])
def test_a_folder_whose_name_is_no_text_starts_no_agent(
    uwf: Uwf, work: Path, thread: str, how: str
) -> None:
    (work / BYTES).mkdir()
    words = {
        "start": ("thread", "start", "ping.yaml", "-p", "x"),
        "exec": ("thread", "exec", thread, "--agent", "scripted:replies.yaml"),
    }

    done = uwf(*words[how], "--cwd", BYTES)

    assert done.code == 1
    assert "has a name that is not UTF-8\nhint: rename it, or choose" in done.err
    told = uwf(*words[how], "--cwd", BYTES, "--json")
    assert told.error["code"] == "invalid"
    assert uwf("thread", "show", thread, "--json").json["steps"] == 0
