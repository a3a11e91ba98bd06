"""What threads and steps cost, where their agents tell tokens and no money."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.record import RECORDED
from tests.cli.calls import Uwf
from tests.cli.test_cli_modes import WORKFLOW, use_replay


@pytest.fixture
def use(
    uwf: Uwf, home: Path, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Uwf:
    """Gemini CLI, as recorded: it tells its model and tokens, and no money."""
    (work / "build.yaml").write_text(WORKFLOW)
    use_replay("gemini", home, tmp_path, monkeypatch).write_text("answer\n")
    return uwf


def run(uwf: Uwf) -> str:
    started = uwf("thread", "start", "build.yaml", "-p", "Fix it.", "--json")
    thread: str = started.json["threadId"]
    assert uwf("thread", "exec", thread).code == 0
    return thread


def test_an_estimate_stands_in_show_list_and_steps(use: Uwf) -> None:
    thread = run(use)

    shown = use("thread", "show", thread, "--json").json
    # 100 tokens in and 20 out of gemini-2.5-pro, at 1.25 and 10 dollars a million.
    cost = {"usd": 0.000325, "isEstimate": True, "isWhole": True}
    assert (shown["usage"]["costUsd"], shown["cost"]) == (None, cost)
    (step,) = use("step", "list", thread, "--json").json["items"]
    (row,) = use("thread", "list", "--all", "--json").json["items"]
    assert step["cost"] == row["cost"] == cost
    assert "~$0.0003" in use("thread", "show", thread).out
    assert "~$0.0003" in use("step", "show", f"{thread}:1").out
    assert "~$0.0003" in use("thread", "list", "--all").out
    diff = use("thread", "diff", thread, run(use), "--json").json
    assert diff["totals"]["a"]["cost"] == diff["steps"][0]["b"]["cost"] == cost
    assert use("thread", "diff", thread, "@last").out.count("~$0.0003") == 4


def use_an_unknown_model(folder: Path) -> None:
    for suffix in ("out", "err", "code"):
        text = (RECORDED / "gemini" / f"answer.{suffix}").read_text()
        text = text.replace("gemini-2.5-pro", "gemini-of-mine")
        (folder / f"answer.{suffix}").write_text(text)


def test_a_list_is_sorted_by_the_costs_that_it_shows(use: Uwf, tmp_path: Path) -> None:
    of_known_price = run(use)
    use_an_unknown_model(tmp_path)
    newest = run(use)

    items = use("thread", "list", "--all", "--sort", "cost", "--json").json["items"]

    assert [each["threadId"] for each in items] == [of_known_price, newest]


def test_what_is_not_known_is_said_to_be_unknown(use: Uwf, tmp_path: Path) -> None:
    use_an_unknown_model(tmp_path)

    thread = run(use)

    shown = use("thread", "show", thread, "--json").json
    assert shown["cost"] == {"usd": None, "isEstimate": False, "isWhole": False}
    assert "cost unknown" in use("thread", "show", thread).out
