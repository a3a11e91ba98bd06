from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents.children import run_python, wait_for_death
from uwfgit.agents.children import tree
from uwfgit.agents.children.tree import Process, find_members, parse_ps, read_table

PS = """\
    1     0     1 Ss   00:00:01 Mon Jan  5 10:00:00 2026
   50     1    50 S+   00:00:01 Mon Jan  5 10:00:01 2026
   51    50    50 R    00:00:01 Mon Jan  5 10:00:02 2026
   52    51    52 S    00:00:01 Mon Jan  5 10:00:03 2026
   53     1    53 Z    00:00:01 Mon Jan  5 10:00:04 2026
   54     1    50 S    00:00:01 Mon Jan  5 10:00:05 2026
   60     1    60 S    00:00:01 Mon Jan  5 10:00:06 2026
   61    60    60 S    00:00:01 Mon Jan  5 10:00:07 2026
"""


def make_process(pid: int, *, parent: int = 1, session: int = 0) -> Process:
    return Process(
        pid=pid, parent=parent, group=session, session=session, started=f"at {pid}"
    )


def pids_of(members: set[Process]) -> list[int]:
    return sorted(member.pid for member in members)


def test_this_very_process_is_in_the_table() -> None:
    me = read_table()[os.getpid()]

    assert (me.parent, me.group) == (os.getppid(), os.getpgid(0))
    assert me.session == os.getsid(0)


def test_a_name_with_parentheses_and_blanks_is_no_trouble(tmp_path: Path) -> None:
    odd = tmp_path / ") R 1 (x"
    odd.symlink_to(sys.executable)

    with subprocess.Popen([odd, "-c", "import time; time.sleep(60)"]) as child:
        found = read_table().get(child.pid)
        child.kill()

    assert found is not None
    assert found.parent == os.getpid()


def test_the_table_of_ps_leaves_zombies_out() -> None:
    table = parse_ps(PS)

    assert sorted(table) == [1, 50, 51, 52, 54, 60, 61]
    assert table[52] == Process(
        pid=52, parent=51, group=52, session=0, started="Mon Jan  5 10:00:03 2026"
    )


def test_members_are_the_root_its_group_and_all_below() -> None:
    members = find_members(parse_ps(PS), root=50, is_root_ours=True, also=())

    assert pids_of(members) == [50, 51, 52, 54]


def test_members_known_before_count_with_what_they_started_since() -> None:
    table = parse_ps(PS)

    members = find_members(table, root=99, is_root_ours=False, also={table[60]})

    assert pids_of(members) == [60, 61]


def test_a_process_that_took_over_a_pid_is_a_stranger() -> None:
    table = {60: make_process(60), 70: make_process(70, parent=60)}
    before = Process(pid=60, parent=1, group=1, session=1, started="earlier")

    assert find_members(table, root=99, is_root_ours=False, also={before}) == set()


def test_a_session_whose_leader_is_gone_is_still_the_roots() -> None:
    table = {70: make_process(70, session=50)}

    members = find_members(table, root=50, is_root_ours=False, also=())

    assert pids_of(members) == [70]


def test_a_reaped_roots_pid_in_use_again_is_a_strangers_session() -> None:
    table = {50: make_process(50, session=50), 70: make_process(70, session=50)}

    assert find_members(table, root=50, is_root_ours=False, also=()) == set()


def test_a_mark_that_this_program_inherited_itself_finds_nothing() -> None:
    own = Path("/proc/self/environ").read_bytes().split(b"\0")[0].decode()

    assert tree.find_marked(read_table(), own) == set()


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(os.defpath, id="by-ps"),
        pytest.param("/nowhere", id="by-group-alone"),
    ],
)
def test_a_tree_is_stopped_where_there_is_no_proc(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "has_proc", lambda: False)
    monkeypatch.setenv("PATH", path)

    result = run_python(
        "import subprocess, sys, time\n"
        "argv = [sys.executable, '-c', 'import time; time.sleep(60)']\n"
        "print(subprocess.Popen(argv).pid, flush=True); time.sleep(60)",
        cwd=tmp_path,
        on_line=lambda _: os.kill(os.getpid(), signal.SIGINT),
    )

    assert result.failure is not None
    assert wait_for_death(int(result.stdout))
