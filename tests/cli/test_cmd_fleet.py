"""The queue through the program: two people, a bare repository, and workers."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from tests.agents.record import RECORDED
from tests.builders import git
from tests.cli.calls import Uwf
from tests.cli.family import FILES
from tests.cli.test_cli_modes import REPLAY
from tests.cli.test_cli_modes import WORKFLOW as BUILD
from tests.cli.test_waiting import ended_limit, set_limit
from tests.code.repo import Repo
from tests.fleet.seats import Seat
from tests.program import PATIENCE, wait_until

_FAMILY_AGENT = """\
#!/bin/sh
cat > /dev/null
case "$UWF_ROLE" in
preparer) status=ready ;;
coder) status=coded ;;
prober) status='built\nwhat: a tool' ;;
*) status=sent ;;
esac
printf -- '---\n$status: %b\n---\nDone.\n' "$status"
"""


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    path = tmp_path / "bare.git"
    git(path, "init", "--quiet", "--bare", "--initial-branch=main", str(path))
    return path


@pytest.mark.slow
def test_a_worker_takes_one_thread_and_says_which(tmp_path: Path, remote: Path) -> None:
    ada, bob = Seat(tmp_path, "ada", remote), Seat(tmp_path, "bob", remote)
    (thread,) = ada.queue(1)
    assert ada.items()[thread]["state"] == "queued"

    with bob.work("--once") as worker:
        out, err = worker.communicate(timeout=PATIENCE)

    assert f'"ran": "{thread}"' in out, err
    assert ada.items()[thread]["state"] == "done"
    ada.uwf("pull")
    assert '"status": "end"' in ada.uwf("thread", "show", thread, "--json")
    ada.uwf("verify")


@pytest.mark.slow
def test_threads_that_did_steps_go_along_to_a_remote_that_demands_them(
    tmp_path: Path, remote: Path
) -> None:
    # Where the hook, which runs with what pushes, finds the program.
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    ada = Seat(tmp_path, "ada", remote, PATH=path)
    bob = Seat(tmp_path, "bob", remote, PATH=path)
    for name, text in FILES.items():
        (ada.folder / name).write_text(text)
    (bob.folder / "agent").write_text(_FAMILY_AGENT)
    (thread,) = ada.queue(1, "./deliver.yaml")
    ada.uwf("hooks", "install", "--server", str(remote))

    with bob.work("--once") as worker:
        _, err = worker.communicate(timeout=2 * PATIENCE)

    assert ada.items()[thread]["state"] == "done", err
    ada.uwf("pull")
    ada.uwf("verify", "--children")


@pytest.mark.slow
def test_a_worker_that_is_told_to_stop_gives_its_thread_back(
    tmp_path: Path, remote: Path
) -> None:
    ada, bob = Seat(tmp_path, "ada", remote), Seat(tmp_path, "bob", remote)
    (thread,) = ada.queue(1)
    (bob.home / "slow").touch()
    worker = bob.work("--grace", "0.2")
    wait_until((bob.home / "busy").exists)

    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=PATIENCE)

    assert worker.returncode == 0, err
    assert ada.items()[thread]["state"] == "queued"
    (bob.home / "slow").unlink()
    with bob.work("--once") as again:
        again.communicate(timeout=PATIENCE)
    assert ada.items()[thread]["state"] == "done"


# Its checker is at work until it is let go.
_PATIENT = """\
#!/bin/sh
cat > /dev/null
case "$UWF_ROLE" in
writer) printf -- '---\\n$status: done\\ntext: one\\n---\\nWritten.\\n' ;;
*) while [ -e "$UWF_HOME/slow" ]; do sleep 0.1; done ;;
esac
"""


@pytest.mark.slow
def test_what_a_killed_worker_pushed_is_gone_on_with(
    tmp_path: Path, remote: Path
) -> None:
    ada, bob = Seat(tmp_path, "ada", remote), Seat(tmp_path, "bob", remote)
    cas = Seat(tmp_path, "cas", remote)
    threads = ada.queue(4)
    (bob.folder / "agent").write_text(_PATIENT)
    (bob.home / "slow").touch()
    dying = bob.work("--lease", "3")
    wait_until(lambda: "writer: done" in git(remote, "log", "--all", "--format=%s"))
    dying.kill()
    (bob.home / "slow").unlink()
    dying.communicate()
    wait_until(lambda: "bob  its lease is over" in ada.uwf("fleet", "list"))

    with cas.work("--lease", "3", "--idle-exit", "20") as living:
        living.communicate(timeout=2 * PATIENCE)

    items = ada.items()
    assert {thread: items[thread]["state"] for thread in threads} == dict.fromkeys(
        threads, "done"
    )
    ada.uwf("pull")
    ada.uwf("verify")


@pytest.mark.slow
def test_a_thread_whose_agent_met_a_limit_comes_back_when_it_is_over(
    tmp_path: Path, remote: Path
) -> None:
    replay = tmp_path / "replay"
    replay.write_text("limit\nanswer\n")
    ada = Seat(tmp_path, "ada", remote)
    bob = Seat(
        tmp_path,
        "bob",
        remote,
        REPLAY=str(replay),
        REPLAY_FROM=f"{RECORDED / 'claude-code'}:{tmp_path}",
    )
    (ada.folder / "build.yaml").write_text(BUILD)
    bob.uwf("config", "set", "agents.a.kind", "claude-code")
    bob.uwf("config", "set", "agents.a.command", str(REPLAY))
    (thread,) = ada.queue(1, "./build.yaml")

    set_limit(tmp_path, seconds=None)
    worker = bob.start("worker", "--trust-pushers", "--agent", "a", "--poll", "0.3")
    wait_until(lambda: ada.items()[thread]["state"] == "done")
    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=PATIENCE)

    assert worker.returncode == 0, err
    told = git(
        remote, "log", "--reverse", "--format=%ct %s", f"refs/uwf/queue/{thread}"
    )
    states = [line.split(f" queue {thread}: ") for line in told.splitlines()]
    words = [word for _, word in states]
    assert words == ["queued", "claimed", "waiting", "claimed", "done"]
    assert int(states[3][0]) >= ended_limit(replay)
    ada.uwf("pull")
    assert ada.uwf("thread", "log", thread).count("limit") == 1
    ada.uwf("verify")


@pytest.mark.slow
def test_without_trust_nothing_is_run_and_why_is_said(
    tmp_path: Path, remote: Path
) -> None:
    ada, bob = Seat(tmp_path, "ada", remote), Seat(tmp_path, "bob", remote)
    (thread,) = ada.queue(1)

    told = bob.uwf("worker", "--check")

    assert thread in told
    assert "trust" in told


@pytest.mark.slow
def test_a_worker_without_the_agent_leaves_threads_to_others(
    tmp_path: Path, remote: Path
) -> None:
    ada, bob = Seat(tmp_path, "ada", remote), Seat(tmp_path, "bob", remote)
    (thread,) = ada.queue(1)
    bob.uwf("config", "set", "agents.gone.kind", "stdio")
    bob.uwf("config", "set", "agents.gone.command", "no-such-program")
    alone = ("worker", "--trust-pushers")

    without = bob.uwf(*alone, "--once", "--json")
    bob.uwf("config", "set", "defaultAgent", "gone")
    missing = bob.uwf(*alone, "--once", "--json")
    check = bob.uwf(*alone, "--check")
    with bob.start(*alone, "--once", "--agent", "nosuch") as refused:
        _, err = refused.communicate(timeout=PATIENCE)

    assert (json.loads(without)["ran"], json.loads(missing)["ran"]) == (None, None)
    assert f"passes by   {thread}  command 'no-such-program' not found" in check
    assert (refused.returncode, "no agent 'nosuch'" in err) == (1, True)
    assert ada.items()[thread]["state"] == "queued"


@pytest.mark.parametrize(
    "words",
    [
        ("--name", "a b"),
        ("--lease", "9999"),
        ("--jobs", "0"),
        ("--poll", "nan"),
        ("--max-cost", "nan"),
        ("--idle-exit", "-1"),
    ],
)
def test_a_name_a_lease_and_a_count_have_bounds(
    uwf: Uwf, words: tuple[str, ...]
) -> None:
    assert uwf("worker", *words).code == 2


def test_a_claim_is_released_by_a_name_that_one_queued_thread_has(
    uwf: Uwf, thread: str, remote: Path
) -> None:
    other = uwf("thread", "start", "ping.yaml", "-p", "2", "--json").json["threadId"]
    assert uwf("remote", "add", "origin", str(remote)).code == 0
    assert uwf("thread", "queue", thread).code == 0

    nothing = uwf("fleet", "release", "")
    queued = uwf("fleet", "release", thread[-6:])
    unknown = uwf("fleet", "release", other)
    assert uwf("thread", "queue", other).code == 0
    both = uwf("fleet", "release", thread[:4])

    assert nothing.err.startswith("error: queued thread '' not found")
    assert f"thread {thread} is not claimed, it is queued" in queued.err
    assert f"queued thread '{other}' not found" in unknown.err
    assert f"queued thread '{thread[:4]}' is ambiguous: " in both.err
    assert {nothing.code, queued.code, unknown.code, both.code} == {1}


_CODING = """\
#!/bin/sh
cat > /dev/null
case "$UWF_ROLE" in
writer) echo made > made
  printf -- '---\\n$status: done\\ntext: one\\n---\\nWritten.\\n' ;;
*) if [ -e "$UWF_HOME/slow" ]; then touch "$UWF_HOME/busy"; sleep 600; fi
  if [ -e made ]; then printf -- '---\\n$status: good\\n---\\nFine.\\n'
  else printf -- '---\\n$status: bad\\nwhy: no file\\n---\\n'; fi ;;
esac
"""


def _clone(seat: Seat, code: Path) -> Path:
    """Give a worker a clone of the code, and an agent that works in it."""
    (seat.folder / "agent").write_text(_CODING)
    place = seat.folder / "code"
    git(code, "clone", "--quiet", str(code), str(place))
    return place


@pytest.mark.slow
def test_with_work_trees_the_code_goes_on_at_the_next_worker(
    tmp_path: Path, remote: Path
) -> None:
    code = tmp_path / "code.git"
    git(code, "init", "--quiet", "--bare", "--initial-branch=main", str(code))
    git(code, "fetch", "--quiet", str(Repo.make(tmp_path / "first").root), "main:main")
    ada, bob, cleo = (Seat(tmp_path, name, remote) for name in ("ada", "bob", "cleo"))
    places = {seat.name: _clone(seat, code) for seat in (bob, cleo)}
    (thread,) = ada.queue(1)
    (bob.home / "slow").touch()
    words = ("--worktrees", "--repo", str(places["bob"]), "--grace", "0.2")
    worker = bob.work(*words)
    wait_until((bob.home / "busy").exists)

    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=PATIENCE)
    assert worker.returncode == 0, err
    with cleo.work("--once", "--worktrees", "--repo", str(places["cleo"])) as again:
        out, err = again.communicate(timeout=PATIENCE)

    assert f'"ran": "{thread}"' in out, err
    ada.uwf("pull")
    steps = json.loads(ada.uwf("step", "list", thread, "--json"))["items"]
    assert [step["status"] for step in steps] == ["done", "good"]
    assert not (places["cleo"] / "made").exists()
    ada.uwf("verify")
