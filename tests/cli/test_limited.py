from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import (
    begin,
    make_role,
    make_workflow,
    reply,
    run,
    variant,
    write_script,
)
from tests.proof import verify_threads
from tests.sync.changes import OTHER
from tests.sync.forge import amend_step, codes, forge
from tests.sync.tour import make_tour, set_tip, tip_of
from uwfgit.cli.check import limited
from uwfgit.cli.check.limited import (
    CheckLimits,
    CheckPlace,
    verify_limited,
    verify_refs_limited,
)
from uwfgit.errors import NotFoundError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.sync.verify.report import ThreadReport


def make_endless(ledger: Ledger, folder: Path) -> ThreadId:
    """Make a thread whose schema takes ages to say no."""
    text = {"type": "string", "pattern": "^(a|aa|a*)+$"}
    roles = {
        **make_workflow().roles,
        "worker": make_role(variant("done", ["plan"], plan=text)),
    }
    workflow = make_workflow(roles=roles)
    thread = begin(ledger, folder, workflow=workflow).thread
    run(ledger, thread, write_script(folder, {"worker": [reply(plan="a")]}))
    change = amend_step(output={"plan": "a" * 60 + "b"})
    forged = forge(ledger.store, tip_of(ledger, thread), {1: change})
    set_tip(ledger.store, thread, forged)
    return thread


def told(report: ThreadReport) -> str:
    (problem,) = report.problems
    return problem.message


def test_the_child_reports_what_the_check_itself_does(
    ledger: Ledger, tmp_path: Path
) -> None:
    good = make_tour(ledger, tmp_path)
    bad = begin(ledger, tmp_path).thread
    set_tip(ledger.store, bad, tip_of(ledger, good))

    reports = verify_limited(ledger.store, environment=os.environ)

    assert reports == verify_threads(ledger.store)
    assert {each.thread: each.ok for each in reports} == {good: True, bad: False}


def test_a_thread_that_takes_too_long_is_a_problem_and_the_next_is_checked(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine a second of work takes many by the clock.
    monkeypatch.setattr(limited, "_PATIENCE", 120)
    endless = make_endless(ledger, tmp_path)
    after = begin(ledger, tmp_path).thread

    reports = verify_limited(
        ledger.store,
        [endless, after],
        environment=os.environ,
        limits=CheckLimits(seconds=1),
    )

    assert [codes(each.problems) for each in reports] == [{"limits"}, set()]
    assert told(reports[0]) == "checking it takes longer than 1 s of CPU time"
    assert [each.thread for each in reports] == [endless, after]


def test_a_check_that_needs_too_much_memory_is_a_problem(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path, prompt="x" * 900_000).thread

    (report,) = verify_limited(
        ledger.store,
        [thread],
        environment=os.environ,
        limits=CheckLimits(memory=resource.getpagesize()),
    )

    assert codes(report.problems) == {"limits"}


def test_a_process_that_never_begins_is_given_up(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    (tmp_path / "sitecustomize.py").write_text("import time\ntime.sleep(600)\n")

    (report,) = verify_limited(
        ledger.store,
        [thread],
        environment={**os.environ, "PYTHONPATH": str(tmp_path)},
        limits=CheckLimits(start_seconds=0.5),
    )

    assert codes(report.problems) == {"limits"}
    assert told(report) == "beginning to check it takes longer than 0.5 s by the clock"


def test_a_check_that_waits_instead_of_working_is_given_up(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    (tmp_path / "sitecustomize.py").write_text(
        "import time\nprint('{\"ready\": true}', flush=True)\ntime.sleep(600)\n"
    )

    (report,) = verify_limited(
        ledger.store,
        [thread],
        environment={**os.environ, "PYTHONPATH": str(tmp_path)},
        limits=CheckLimits(seconds=0.1),
    )

    assert told(report) == "checking it takes longer than 0.5 s by the clock"


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import os\nos.abort()\n", id="killed"),
        pytest.param("import os\nos._exit(3)\n", id="exits"),
        pytest.param("import os\nos._exit(0)\n", id="exits as if all were well"),
        pytest.param("print('{}', flush=True)\n1 / 0\n", id="says nonsense"),
    ],
)
def test_a_check_that_crashes_is_a_problem(
    ledger: Ledger, tmp_path: Path, code: str
) -> None:
    thread = begin(ledger, tmp_path).thread
    (tmp_path / "sitecustomize.py").write_text(code)

    (report,) = verify_limited(
        ledger.store,
        [thread],
        environment={**os.environ, "PYTHONPATH": str(tmp_path)},
    )

    assert codes(report.problems) == {"limits"}


@pytest.mark.slow
def test_a_time_for_all_bounds_the_whole(ledger: Ledger, tmp_path: Path) -> None:
    threads = [make_endless(ledger, tmp_path), begin(ledger, tmp_path).thread]

    reports = verify_limited(
        ledger.store,
        threads,
        environment=os.environ,
        limits=CheckLimits(all_seconds=2),
    )

    assert [codes(each.problems) for each in reports] == [{"limits"}, {"limits"}]
    why = "checking all takes longer than 2 s by the clock"
    assert [told(each) for each in reports] == [why, why]


def test_a_named_thread_that_is_missing_is_an_error(ledger: Ledger) -> None:
    with pytest.raises(NotFoundError):
        verify_limited(ledger.store, [OTHER], environment=os.environ)


def test_a_branch_whose_file_holds_garbage_is_a_problem(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    (ledger.store.path / "refs/heads/thread" / thread).write_text("garbage\n")

    every = verify_limited(ledger.store, environment=os.environ)
    named = verify_limited(ledger.store, [thread], environment=os.environ)

    assert [codes(each.problems) for each in (*every, *named)] == [{"ref"}, {"ref"}]


def test_a_missing_repository_is_a_problem(tmp_path: Path) -> None:
    place = CheckPlace(repository=tmp_path / "none")

    (report,) = verify_refs_limited(
        place, [("refs/x", "0" * 40)], environment=os.environ
    )

    assert codes(report.problems) == {"limits"}


def test_what_checks_brings_no_rules_and_no_lookup() -> None:
    script = (
        "import sys, uwfgit.cli.check.limited_child\n"
        "unneeded = 'model.rules model.legacy model.ledger store.lookup.fill'.split()\n"
        "print([m for m in unneeded if f'uwfgit.{m}' in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"
