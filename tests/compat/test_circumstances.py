"""The day's work where something around the program is odd, full or broken."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tests.builders import flip_byte, git, object_file, reply
from tests.program import Ended, Program, make_program, wait
from uwfgit.ids import Oid

pytestmark = [pytest.mark.slow, pytest.mark.compat]

_IS_ROOT: Final = os.geteuid() == 0


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return make_program(tmp_path / "user")


def _script(program: Program) -> str:
    bad = [reply("bad", reason="r"), reply("good")]
    return program.script({"worker": [reply(plan="p")] * 3, "critic": bad})


def _work(program: Program) -> str:
    """Do a day's work: start, run, fork, poke, run on, cancel; give the thread."""
    agent, folder = ["--agent", _script(program)], str(program.folder)

    def run(*words: str) -> Ended:
        ended = program.run(*words, "--json")
        assert ended.code == 0, (words, ended)
        return ended

    workflow = str(program.folder / "work.yaml")
    run("workflow", "add", workflow)
    started = run("thread", "start", workflow, "-p", "Fix it", "--cwd", folder)
    thread: str = started.json["threadId"]
    run("thread", "exec", thread, *agent)
    fork = run("thread", "fork", thread).json["threadId"]
    run("thread", "poke", thread, "-p", "Better.", *agent)
    assert run("thread", "exec", thread, "--all", *agent).json["status"] == "end"
    run("thread", "cancel", fork)
    items = run("thread", "list", "--all").json["items"]
    statuses = {item["threadId"]: item["status"] for item in items}
    assert statuses == {thread: "end", fork: "cancelled"}
    program.fsck()
    return thread


@pytest.mark.parametrize(
    "name",
    [
        pytest.param('it\'s "quoted" $HOME `x`', id="spaces and quotes"),
        pytest.param("-é日本", id="dash and non-ascii"),
    ],
)
def test_a_folder_of_any_name_is_worked_in(tmp_path: Path, name: str) -> None:
    _work(make_program(tmp_path / name))


def test_a_locale_that_is_not_utf_8_is_no_hindrance(tmp_path: Path) -> None:
    program = replace(
        make_program(tmp_path / "é 日本"),
        environment={
            "LC_ALL": "C",
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
        },
    )

    thread = _work(program)

    shown = program.json("step", "show", f"{thread}:1")
    assert shown["cwd"] == str(program.folder)


def test_words_of_the_command_line_are_utf_8_in_any_locale(program: Program) -> None:
    started = program.run(
        "thread", "start", "work.yaml", "-p", "tâche 日", "--json",
        LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0",
    )  # fmt: skip

    thread = started.json["threadId"]
    task = git(program.store, "show", f"thread/{thread}:threads/{thread}/TASK.md")
    assert task == "tâche 日\n"


def test_home_may_be_unset(program: Program) -> None:
    _work(replace(program, environment={"HOME": ""}))


def test_a_git_that_changes_line_ends_changes_none_of_ours(program: Program) -> None:
    (program.home / ".gitconfig").write_text(
        "[core]\n\tautocrlf = true\n\teol = crlf\n"
    )

    thread = _work(program)

    task = git(program.store, "show", f"thread/{thread}:threads/{thread}/TASK.md")
    assert task == "Fix it\n"
    assert program.run("verify", thread).code == 0


_ODD_CONFIG: Final = """\
[core]
	fsmonitor = {trap}
	hooksPath = {hooks}
	pager = {trap}
	quotePath = false
	abbrev = 4
	attributesFile = {attributes}
	editor = {trap}
[commit]
	template = /nowhere/template
[log]
	showSignature = true
	date = relative
	decorate = full
[format]
	pretty = oneline
[color]
	ui = always
[push]
	default = nothing
	followTags = true
	autoSetupRemote = true
[pull]
	rebase = true
[fetch]
	prune = true
	pruneTags = true
	fsckObjects = true
	parallel = 4
[init]
	defaultBranch = trunk
	templateDir = {hooks}
[safe]
	directory = /elsewhere
	bareRepository = explicit
[tag]
	gpgSign = false
[gc]
	auto = 1
	cruftPacks = true
	pruneExpire = now
	reflogExpire = now
[maintenance]
	auto = true
[transfer]
	hideRefs = refs/uwf
[receive]
	denyNonFastForwards = false
[remote]
	pushDefault = elsewhere
[protocol]
	version = 0
[alias]
	log = !{trap}
	push = !{trap}
[url "file:///nowhere/"]
	insteadOf = https://example.com/
[include]
	path = /nowhere/more
"""


def test_the_users_git_config_is_no_hindrance_and_runs_nothing(
    program: Program, tmp_path: Path
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    trap, marker = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {marker}\nexit 1\n")
    trap.chmod(0o700)
    # No hook of a receiving git: that is the remote's, wherever it runs.
    for name in ("pre-push", "post-checkout", "pre-auto-gc", "fsmonitor-watchman"):
        (hooks / name).symlink_to(trap)
    (tmp_path / "attributes").write_text("* text eol=crlf\n")
    facts = {"trap": trap, "hooks": hooks, "attributes": tmp_path / "attributes"}
    (program.home / ".gitconfig").write_text(_ODD_CONFIG.format(**facts))

    thread = _work(program)
    _share(program, thread, tmp_path / "remote.git")
    for words in (["log", thread], ["read", thread], ["fork", thread, "--at", "1"]):
        assert program.run("thread", *words).code == 0
    # What is thrown away is what the store says, not what its user says.
    assert program.run("gc").code == 0
    assert program.run("gc", "--prune").code == 0
    assert program.run("verify").code == 0

    assert not marker.exists()


def _share(program: Program, thread: str, remote: Path) -> None:
    """Push a thread, clone it elsewhere, and pull there."""
    plain = ["git", "init", "--quiet", "--bare", "--initial-branch=main"]
    done = subprocess.run(
        [*plain, "--template=", str(remote)],
        env={"PATH": os.environ["PATH"]},
        check=False,
    )
    assert done.returncode == 0
    elsewhere = str(program.folder / "elsewhere")
    for words in (
        ["remote", "add", "origin", str(remote)],
        ["push", "origin", thread],
        ["clone", str(remote), elsewhere],
        ["--store", elsewhere, "pull"],
        ["--store", elsewhere, "verify", thread],
    ):
        ended = program.run(*words)
        assert ended.code == 0, (words, ended)


def test_a_umask_that_forbids_nothing_will_do_and_the_store_stays_private(
    tmp_path: Path,
) -> None:
    program = make_program(tmp_path / "user")
    words = ("sh", "-c", 'umask 0; exec "$@"', "sh")
    program = replace(program, before=(*words, *program.before))

    thread = _work(program)
    _share(program, thread, tmp_path / "remote.git")

    for store in (program.store, program.folder / "elsewhere"):
        assert store.stat().st_mode & 0o077 == 0
        for path in (store / "uwf").rglob("*"):
            assert path.is_dir() or path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param(
            {
                "LC_ALL": "C",
                "PYTHONIOENCODING": "latin-1",
                "PYTHONOPTIMIZE": "2",
                "TMPDIR": "/nowhere/at/all",
                "TERM": "",
                "COLUMNS": "0",
            },
            id="latin-1-and-no-terminal-docstrings-or-temporary-files",
        ),
        pytest.param(
            {
                "LANG": "de_DE.ISO-8859-1",
                "LC_ALL": "",
                "PYTHONIOENCODING": "ascii:strict",
                "TZ": "Mars/Olympus",
                "LINES": "x",
            },
            id="ascii-and-an-unknown-locale-and-time-zone",
        ),
    ],
)
def test_an_odd_environment_is_no_hindrance(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    program = replace(make_program(tmp_path / "é 日本"), environment=environment)

    thread = _work(program)
    shown = program.run("thread", "read", thread)
    _share(program, thread, tmp_path / "remote.git")

    assert (shown.code, program.run("thread", "list", "--all").code) == (0, 0)


def test_a_folder_whose_name_is_no_text_is_named_and_nothing_is_lost(
    program: Program,
) -> None:
    folder = os.fsencode(program.folder) + b"/caf\xe9"
    Path(os.fsdecode(folder)).mkdir()
    there = program.spawn(
        "thread", "start", str(program.folder / "work.yaml"), "-p", "x", "--json",
        cwd=Path(os.fsdecode(folder)),
    )  # fmt: skip

    failed = wait(there)

    assert (failed.code, failed.error["code"]) == (1, "invalid"), failed
    assert program.json("thread", "list")["items"] == []


def test_a_working_directory_that_vanished_is_no_hindrance(program: Program) -> None:
    gone = program.folder / "gone"
    gone.mkdir()
    command = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    away = replace(
        program, before=("sh", "-c", command, "sh", str(gone), *program.before)
    )
    thread = program.start()

    ended = away.run("thread", "exec", thread, "--agent", _script(program))
    gone.mkdir()
    listed = away.run("thread", "list", "--json")

    assert (ended.code, listed.code) == (0, 0), ended
    assert listed.json["items"][0]["steps"] == 1


def test_a_threads_folder_that_vanished_is_named_with_the_way_out(
    program: Program,
) -> None:
    work = program.folder / "work"
    work.mkdir()
    started = program.json(
        "thread", "start", "work.yaml", "-p", "x", "--cwd", str(work)
    )
    thread, agent = started["threadId"], _script(program)
    work.rmdir()

    failed = program.run("thread", "exec", thread, "--agent", agent, "--json")
    here = ["--cwd", str(program.folder)]
    ended = program.run("thread", "exec", thread, "--agent", agent, *here)

    assert (failed.code, failed.error["code"]) == (1, "state")
    assert "--cwd" in failed.error["hint"]
    assert ended.code == 0


_SHIFTED: Final = """
import sys, time
real, by = time.time_ns, int(sys.argv.pop(1)) * 10**9
time.time_ns = lambda: real() + by
from uwfgit.cli.frame.app import run
run()
"""
_YEAR: Final = 365 * 24 * 3600


def _shifted(program: Program, seconds: int) -> Program:
    """Give the program with a clock that is wrong by so much."""
    return replace(program, before=(sys.executable, "-c", _SHIFTED, str(seconds)))


@pytest.mark.parametrize("seconds", [50 * _YEAR, -20 * _YEAR], ids=["ahead", "behind"])
def test_a_clock_that_is_far_off_is_no_hindrance(
    program: Program, seconds: int
) -> None:
    thread = _work(_shifted(program, seconds))

    assert program.run("verify", thread).code == 0


def test_times_never_go_back_when_the_clock_does(program: Program) -> None:
    agent = ["--agent", _script(program)]
    thread = program.start()
    ahead = _shifted(program, 50 * _YEAR).run("thread", "exec", thread, *agent)

    behind = program.run("thread", "exec", thread, *agent)

    assert (ahead.code, behind.code) == (0, 0)
    log = git(program.store, "log", "--reverse", "--format=%ct", f"thread/{thread}")
    times = [int(line) for line in log.split()]
    assert times == sorted(times)
    assert program.run("verify", thread).code == 0


def test_threads_of_two_hosts_whose_clocks_differ_live_in_one_store(
    program: Program,
) -> None:
    other = _shifted(program, -3 * _YEAR)
    words = ("thread", "start", "work.yaml", "-p", "x")
    names = [host.json(*words)["threadId"] for host in (program, other, program)]

    items = program.json("thread", "list")["items"]

    assert {item["threadId"] for item in items} == set(names)


def _object_file(program: Program, name: str) -> Path:
    oid = Oid(git(program.store, "rev-parse", name).strip())
    return object_file(program.store, oid)


@pytest.mark.parametrize("damage", [flip_byte, Path.unlink], ids=["flipped", "missing"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("thread/{0}", id="commit"),
        pytest.param("thread/{0}^{{tree}}", id="tree"),
        pytest.param("thread/{0}:threads/{0}/thread.json", id="state"),
    ],
)
def test_one_damaged_thread_is_one_line_and_breaks_no_listing(
    program: Program, name: str, damage: Callable[[Path], None]
) -> None:
    damaged, sound = program.start(), program.start()
    agent = _script(program)
    assert program.run("thread", "exec", damaged, "--agent", agent).code == 0
    damage(_object_file(program, name.format(damaged)))

    failed = program.run("thread", "exec", damaged, "--agent", agent, "--json")
    listed = program.run("thread", "list", "--json")
    ended = program.run("thread", "exec", sound, "--agent", agent)

    assert (failed.code, failed.error["code"]) == (1, "corrupt")
    statuses = {item["threadId"]: item["status"] for item in listed.json["items"]}
    assert statuses == {damaged: "corrupt", sound: "idle"}
    assert (listed.code, ended.code) == (0, 0)


@pytest.mark.parametrize(
    ("words", "file"),
    [
        pytest.param(["cancel"], "refs/heads/thread/{0}.lock", id="branch"),
        pytest.param(["rm"], "packed-refs.lock", id="packed-refs"),
    ],
)
def test_a_lock_file_of_a_killed_git_is_named(
    program: Program, words: list[str], file: str
) -> None:
    thread = program.start()
    git(program.store, "pack-refs", "--all")
    path = program.store / file.format(thread)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()

    failed = program.run("thread", *words, thread, "--json")
    shown = program.json("thread", "show", thread)
    path.unlink()
    again = program.run("thread", *words, thread)

    assert (failed.code, failed.error["code"]) == (4, "locked")
    assert str(path) in failed.error["message"]
    assert shown["status"] == "idle"
    assert again.code == 0


def test_a_lock_file_that_stays_while_a_step_is_recorded_loses_no_reply(
    program: Program,
) -> None:
    thread = program.start()
    path = program.store / f"refs/heads/thread/{thread}.lock"
    agent = program.folder / "locking"
    agent.write_text(f"#!/bin/sh\ncat > /dev/null; touch '{path}'; cat reply\n")
    agent.chmod(0o700)
    (program.folder / "reply").write_text(reply(plan="p"))

    ended = program.run("thread", "exec", thread, "--agent", f"stdio:{agent}", "--json")

    assert ended.code == 4
    (step,) = ended.json["steps"]
    live = program.store / "uwf" / "live" / f"{thread}.jsonl"
    assert (step["hash"], ended.json["status"]) == (None, "idle")
    assert str(path) in step["error"]
    assert str(live) in step["error"]
    assert "Did it." in live.read_text()


def _limited(words: list[str], program: Program, *, size: int) -> Ended:
    """Run the program where no file may grow beyond a size, as on a full disk."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    done = subprocess.run(
        [*program.before, *words],
        cwd=program.folder,
        # Python would leave modules' compiled files behind, cut at that size.
        env={**program.shell, "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )
    return Ended(code=done.returncode, out=done.stdout, err=done.stderr)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["thread", "start", "work.yaml", "-p", "x"], id="start"),
        pytest.param(["workflow", "add", "work.yaml"], id="workflow-add"),
        pytest.param(["cas", "put-text", "x" * 5000], id="cas-put"),
        pytest.param(["thread", "cancel", "@only"], id="cancel"),
        pytest.param(["thread", "exec", "@only"], id="exec"),
    ],
)
def test_a_full_disk_is_one_line_and_loses_nothing(
    program: Program, words: list[str]
) -> None:
    thread = program.start()
    words = [thread if word == "@only" else word for word in words]
    agent = ["--agent", _script(program)]
    words += agent if "exec" in words else []

    failed = _limited([*words, "--json"], program, size=80)

    assert failed.code == 1, failed
    assert "File too large" in failed.error["message"]
    program.fsck()
    assert program.json("thread", "show", thread)["status"] == "idle"
    assert program.run("thread", "exec", thread, *agent).code == 0
    assert not list(program.store.rglob("*.lock"))


@pytest.mark.skipif(not _IS_ROOT, reason="only root gives files away")
def test_a_store_of_another_user_is_refused(program: Program) -> None:
    thread = program.start()
    os.chown(program.store, 12345, 12345)

    for words in (["thread", "list"], ["thread", "exec", thread]):
        failed = program.run(*words, "--json")
        assert (failed.code, failed.error["code"]) == (1, "untrusted")
        assert "another user" in failed.error["message"]


def _without_privileges(program: Program) -> Program:
    """Give the program as a user for whom the modes of files count."""
    if not _IS_ROOT:
        return program
    drop = shutil.which("setpriv")
    if drop is None:
        pytest.skip("nothing here takes root's privileges away")
    words = (drop, "--inh-caps=-all", "--bounding-set=-all")
    return replace(program, before=(*words, *program.before))


@pytest.mark.slow
def test_a_plain_gc_that_prunes_at_once_takes_no_reported_step(
    program: Program,
) -> None:
    thread = program.start()
    said = reply("bad", reason="not yet")
    script = program.script({"worker": [reply(plan="p")] * 30, "critic": [said] * 30})
    loop = 'while :; do git --git-dir="$1" gc --quiet --prune=now; done'
    collecting = subprocess.Popen(
        ["sh", "-c", loop, "sh", str(program.store)],
        env=program.shell,
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        words = ("thread", "exec", thread, "-c", "40", "--agent", script)
        reported = program.json(*words)["steps"]
    finally:
        os.killpg(collecting.pid, signal.SIGKILL)
        collecting.wait()

    assert len(reported) == 40
    assert program.json("verify", thread)["items"][0]["steps"] == 40
    assert program.run("gc").code == 0
    program.fsck()


def test_where_the_home_cannot_be_written_the_way_is_named(program: Program) -> None:
    plain = _without_privileges(program)
    home = program.folder / "locked"
    home.mkdir()
    words = ("init", "--store", str(program.folder / "other"), "--json")

    with _modes([home], 0o555):
        failed = plain.run(*words, HOME=str(home), UWF_HOME="")
        given = plain.run(*words, HOME=str(home), UWF_HOME=str(program.folder / "mine"))

    assert failed.code == 1, failed
    assert "set UWF_HOME" in failed.error["hint"]
    assert given.code == 0, given


@contextmanager
def _modes(paths: Iterable[Path], mode: int) -> Iterator[None]:
    before = [(path, path.stat().st_mode) for path in paths]
    for path, _ in before:
        path.chmod(mode)
    try:
        yield
    finally:
        for path, old in before:
            path.chmod(old)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["thread", "start", "work.yaml", "-p", "x"], id="start"),
        pytest.param(["thread", "exec", "@only"], id="exec"),
        pytest.param(["thread", "exec", "@only", "--background"], id="background"),
        pytest.param(["thread", "fork", "@only"], id="fork"),
        pytest.param(["thread", "cancel", "@only"], id="cancel"),
        pytest.param(["thread", "rm", "@only"], id="rm"),
        pytest.param(["workflow", "add", "work.yaml"], id="workflow-add"),
        pytest.param(["cas", "put-text", "x"], id="cas-put"),
        pytest.param(["remote", "add", "origin", "/nowhere.git"], id="remote-add"),
        pytest.param(["reindex"], id="reindex"),
        pytest.param(["gc"], id="gc"),
    ],
)
def test_a_read_only_store_is_read_and_not_written(
    program: Program, words: list[str]
) -> None:
    thread = program.start()
    program = _without_privileges(program)
    words = [thread if word == "@only" else word for word in words]
    words += ["--agent", _script(program)] if "exec" in words else []
    folders = [program.store, *(p for p in program.store.rglob("*") if p.is_dir())]

    with _modes(folders, 0o500):
        shown = program.run("thread", "show", thread, "--json")
        listed = program.run("thread", "list", "--json")
        failed = program.run(*words, "--json")
        looked = program.run("doctor", "--json")

    assert (shown.code, shown.json["status"]) == (0, "idle")
    assert [item["status"] for item in listed.json["items"]] == ["idle"]
    assert (failed.code, failed.error["code"]) == (1, "store")
    wrong = [e["check"] for e in looked.json["checks"] if e["level"] == "problem"]
    assert (looked.code, wrong) == (1, ["disk"])
    assert program.json("thread", "show", thread)["status"] == "idle"


def test_a_read_only_store_knows_what_was_made_here(program: Program) -> None:
    thread = program.json("thread", "start", "work.yaml", "-p", "x")["threadId"]
    program = _without_privileges(program)

    with _modes([program.store, *program.store.rglob("*")], 0o500):
        shown = program.run("thread", "show", "@last", "--json")
        checked = program.run("thread", "check", thread, "--json")

    assert shown.code == 0, shown
    assert shown.json["threadId"] == thread
    assert "trust" not in {each["what"] for each in checked.json["checks"]}


@pytest.mark.parametrize("name", ["refs/heads/thread", "config", "HEAD", "."])
def test_a_store_that_cannot_be_read_is_never_taken_for_an_empty_one(
    program: Program, name: str
) -> None:
    program.start()
    program = _without_privileges(program)

    with _modes([program.store / name], 0o000):
        listed = program.run("thread", "list", "--json")

    assert (listed.code, listed.error["code"]) == (1, "store"), listed
    assert "Permission denied" in listed.error["message"]
    assert len(program.json("thread", "list")["items"]) == 1
