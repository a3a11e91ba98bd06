"""A file of inputs through the program: order, failures, exit codes, going on."""

from __future__ import annotations

import importlib.util
import json
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from tests.program import PATIENCE, wait_until
from tests.stress.map import Bench, play


def test_results_come_in_the_order_of_the_lines_and_failures_are_named(
    tmp_path: Path,
) -> None:
    bench = Bench.make(tmp_path, ["one", "bad", "one"])

    found = bench.run("-j", "2", code=1)

    assert bench.seen(found) == ["one", None, "one"]
    assert found["ended"] == 2
    assert [item["line"] for item in found["items"]] == [1, 2, 3]
    bad = found["items"][1]
    assert (bad["status"], bad["steps"]) == ("suspended", 0)
    assert bad["why"]

    # Run again it does what is missing: what failed, and a line that came.
    (tmp_path / "mended").touch()
    bench.write(["zero", "one", "bad", "one"])
    again = bench.run("-j", "2")

    assert bench.seen(again) == ["zero", "one", "bad", "one"]
    assert bench.looked() == Counter({"zero": 1, "one": 2, "bad": 2})


@pytest.mark.slow
def test_stopped_it_gives_back_what_is_at_work(tmp_path: Path) -> None:
    bench = Bench.make(tmp_path, ["a", "b", "c", "d"])
    (tmp_path / "slow").touch()
    running = bench.start("-j", "2")
    wait_until(lambda: len(bench.looked()) >= 2)

    running.send_signal(signal.SIGTERM)
    _, err = running.communicate(timeout=PATIENCE)

    assert running.returncode == 143, err
    assert "claimed" not in {item["state"] for item in bench.owner.items().values()}
    (tmp_path / "slow").unlink()
    assert bench.seen(bench.run("-j", "2")) == ["a", "b", "c", "d"]


@pytest.mark.slow
def test_killed_and_run_again_each_line_is_run_once(tmp_path: Path) -> None:
    play(tmp_path, lines=8, executor="process", kill=True)


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="Dask is not installed"
)
def test_a_dask_cluster_runs_the_lines(tmp_path: Path) -> None:
    play(tmp_path, lines=8, executor="dask", kill=True)


def test_without_dask_it_says_what_to_install(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)

    done = uwf("fleet", "map", "w", "--inputs", "f", "--executor", "dask:tcp://h:1")

    assert done.code == 1
    assert "needs uwfgit[fleet], which is not installed" in done.err
    assert "install 'uwfgit[fleet]'" in done.err


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--inputs", "f", "-j", "0"),
        ("--inputs", "f", "--executor", "cloud"),
        ("--inputs", "f", "--executor", "dask:"),
        ("origin", "--inputs", "f"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(
    uwf: Uwf, words: tuple[str, ...]
) -> None:
    assert uwf("fleet", "map", "w", *words).code == 2


def test_all_that_is_wrong_in_a_file_is_said_and_nothing_begun(tmp_path: Path) -> None:
    bench = Bench.make(tmp_path, ["a"])
    (bench.owner.folder / "in.jsonl").write_text('{"what": 1}\n{"wat": "x"}\n')

    with bench.start() as done:
        _, err = done.communicate(timeout=PATIENCE)

    assert done.returncode == 1
    assert json.loads(err)["error"]["code"] == "invalid"
    assert "line 1: what" in err
    assert json.loads(bench.owner.uwf("thread", "list", "--json"))["items"] == []
