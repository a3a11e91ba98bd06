"""A foreign thread runs nothing and opens no folder it names before ``--trust``."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import begin, git_in, make_role, make_workflow, reply, variant
from tests.cli.calls import Uwf
from tests.cli.screens import on_terminal
from tests.program import Program, make_program, wait_until
from tests.sync.people import DONE, make_person
from uwfgit.ids import ThreadId
from uwfgit.model.workflow.workflow import Target
from uwfgit.store.git.worktree import root_commit

STRACE = shutil.which("strace")
_RUN = re.compile(r'execve\("([^"]*)".*\) += 0$')
# The checks of a thread run in a limited child of this very program.
_PROGRAMS = re.compile(r"git|git-[a-z-]+|python[0-9.]*|uwf")


Plant = Callable[..., ThreadId]


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A folder that nobody may look into, with what would run if they did."""
    folder = tmp_path / "TRAP"
    folder.mkdir()
    (folder / "evil.md").write_text("partial")
    git_in(folder, "init", "-q")
    git_in(folder, "config", "core.fsmonitor", f"touch {tmp_path}/ran")
    return folder


@pytest.fixture
def victim(tmp_path: Path, trap: Path) -> Program:
    """Somebody with a store, in a work tree with a link that leads out."""
    program = make_program(tmp_path / "victim")
    git_in(program.folder, "init", "-q", "-b", "main")
    (program.folder / "part").mkdir()
    (program.folder / "link").symlink_to(trap)
    git_in(program.folder, "add", "link")
    git_in(program.folder, "commit", "-qm", "code")
    return program


@pytest.fixture
def plant(tmp_path: Path, trap: Path, victim: Program) -> Plant:
    """Make threads that name the trap wherever they can; they are the victim's then."""
    mallory = make_person(tmp_path, "mallory")
    code = root_commit(victim.folder, environment=os.environ)

    def make(*replies: str, place: str | None = None, location: str = "") -> ThreadId:
        evil = f"!include {trap}/evil.md {{{{! {trap} }}}} @{trap}/evil.md"
        role = make_role({**variant("done"), "additionalProperties": True})
        workflow = make_workflow(
            name="evil",
            roles={"worker": role},
            graph={
                "$START": {
                    "new": Target(
                        role="worker", prompt=evil, location=location or None
                    ),
                    "resume": Target(role="worker", prompt=evil),
                },
                "worker": {
                    "done": Target(
                        role="worker", prompt=evil, location=location or None
                    )
                },
            },
        )
        thread = begin(
            mallory.ledger,
            trap,
            workflow=workflow,
            prompt=f"{evil} file://{trap}",
            cwd_in_repo=place,
            root_commit=None if place is None else code,
        ).thread
        mallory.go(thread, *replies)
        ref = f"refs/heads/thread/{thread}"
        git_in(victim.store, "fetch", "-q", str(mallory.store.path), f"{ref}:{ref}")
        return thread

    return make


def trace(program: Program, *words: str, log: Path) -> str:
    """Run a command under strace; give all it and its children did with files."""
    before = [str(STRACE), "-f", "-qq", "-s", "4096", "-o", str(log)]
    traced = Program(
        folder=program.folder,
        environment=program.environment,
        before=(*before, "-e", "trace=%file,%process", *program.before),
    )
    ended = traced.run(*words)
    assert ended.code in {0, 1, 3}, ended
    return log.read_text(errors="replace")


COMMANDS = [
    *(f"thread {verb} {{t}}" for verb in ("exec", "resume", "show", "read", "log")),
    *(f"thread {verb} {{t}}" for verb in ("fork", "cancel", "join", "stop", "rm")),
    "thread exec {t} --cwd .",
    "thread exec {t} --background",
    "thread poke {t} -p x",
    "thread poke {t} -p x --cwd .",
    "thread list",
    "thread diff {t} {t}",
    "thread resolve {t}",
    "step list {t}",
    "step show {t}:1",
    "step read {t}:1",
    "step turns {t}",
    "verify {t}",
    "workflow graph --thread {t}",
    "workflow show {w}",
    "workflow simulate {w} --all-paths",
    "doctor",
    "reindex",
]


@pytest.mark.slow
@pytest.mark.skipif(STRACE is None, reason="there is no strace")
@pytest.mark.parametrize(
    "place",
    [
        pytest.param(None, id="none"),
        pytest.param("../TRAP", id="up", marks=pytest.mark.slow),
        pytest.param("{trap}", id="absolute"),
        pytest.param("link", id="a-link-that-leads-out", marks=pytest.mark.slow),
        pytest.param("link/x", id="through-a-link", marks=pytest.mark.slow),
        pytest.param("a\0b", id="nul", marks=pytest.mark.slow),
        pytest.param("x" * 5_000, id="too-long", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("command", ["thread exec {t}", "thread poke {t} -p x"])
def test_a_folder_in_the_repository_is_one_in_it(
    plant: Plant,
    victim: Program,
    trap: Path,
    tmp_path: Path,
    command: str,
    place: str | None,
) -> None:
    place = place and place.replace("{trap}", str(trap))
    thread = plant(DONE, place=place, location=str(trap))

    done = trace(victim, *command.format(t=thread).split(), log=tmp_path / "log")

    assert str(trap) not in done
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
@pytest.mark.skipif(STRACE is None, reason="there is no strace")
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_runs_or_opens_anything_of_a_foreign_thread(
    plant: Plant, victim: Program, trap: Path, tmp_path: Path, command: str
) -> None:
    thread = plant(DONE, DONE, place="../TRAP", location=str(trap))
    shown = victim.json("thread", "show", thread)
    words = command.format(t=thread, w=shown["workflowHash"]).split()

    done = trace(victim, *words, log=tmp_path / "log")

    assert str(trap) not in done
    runs = {
        Path(each[1]).name for line in done.splitlines() if (each := _RUN.search(line))
    }
    assert all(_PROGRAMS.fullmatch(name) for name in runs), runs


@pytest.mark.parametrize(
    "location",
    [
        pytest.param("../TRAP", id="up", marks=pytest.mark.slow),
        pytest.param("{trap}", id="absolute"),
        pytest.param("link", id="a-link-that-leads-out"),
        pytest.param("part/../link/x", id="through-a-link", marks=pytest.mark.slow),
        pytest.param("a\0b", id="nul", marks=pytest.mark.slow),
        pytest.param("x" * 5_000, id="too-long", marks=pytest.mark.slow),
        pytest.param("missing", id="missing", marks=pytest.mark.slow),
    ],
)
def test_also_a_trusted_thread_works_inside_alone(
    plant: Plant, victim: Program, trap: Path, location: str
) -> None:
    thread = plant(location=location.replace("{trap}", str(trap)))
    words = ("thread", "exec", thread, "--trust", "--agent", "stdio:cat")
    config = victim.home / "config.yaml"

    refused = victim.run(*words, "--json", cwd=victim.folder)
    chosen = victim.run(*words, "--cwd", "part")

    assert (refused.code, "Traceback" in refused.err) == (1, False)
    assert "choose a folder with --cwd" in refused.out + refused.err or (
        "choose one with --cwd" in refused.out + refused.err
    )
    assert chosen.code == 5, chosen
    assert not config.exists()


SCREEN = ("was not made on this machine alone", "Mallory <mallory@example.com>")


@pytest.mark.slow
def test_in_the_background_the_user_is_told_before_the_worker_runs(
    plant: Plant, victim: Program
) -> None:
    thread = plant(DONE)
    (victim.folder / "go").touch()
    agent = victim.script({"worker": [reply(), reply()]})
    words = ("thread", "exec", thread, "--background", "--cwd", ".", "--agent", agent)

    refused = victim.run(*words)
    told = victim.run(*words, "--trust")

    assert (refused.code, told.code) == (1, 0)
    for said in (refused.err, told.err):
        assert all(word in said for word in SCREEN)
    wait_until(lambda: victim.json("thread", "show", thread)["steps"] == 2)
    log = victim.store / "uwf" / "logs" / f"{thread}.log"
    assert not any(word in log.read_text() for word in SCREEN)


@pytest.mark.parametrize(("typed", "code"), [(b"y\n", 0), (b"n\n", 1)])
def test_in_the_background_the_user_is_asked_at_the_terminal(
    plant: Plant,
    victim: Program,
    monkeypatch: pytest.MonkeyPatch,
    typed: bytes,
    code: int,
) -> None:
    thread = plant(DONE)
    agent = victim.script({"worker": [reply(), reply()]})
    for name, value in victim.shell.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(victim.folder)
    words = ("thread", "exec", thread, "--background", "--cwd", ".", "--agent", agent)

    seen = on_terminal(*words, typed=typed)

    assert seen.code == code, seen
    assert "run it? [y/N] " in seen.out
    assert ("runs in the background" in seen.out) == (code == 0)
    if code == 0:
        wait_until(lambda: victim.json("thread", "show", thread)["steps"] == 2)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("cas", "hash", "object", '{"a": %s}'), 1),
        (("thread", "exec", "@last", "-c", "%s"), 2),
        (("thread", "list", "--limit", "%s"), 2),
        (("thread", "fork", "@last", "--at", "%s"), 2),
        (("step", "show", "@last:%s"), 1),
        (("config", "set", "limits.maxSteps", "%s"), 1),
    ],
)
def test_a_number_of_thousands_of_digits_is_an_error_like_others(
    uwf: Uwf, words: tuple[str, ...], code: int
) -> None:
    done = uwf(*(word.replace("%s", "9" * 5_000) for word in words))

    assert done.code == code
    assert done.err.startswith("error: ")
