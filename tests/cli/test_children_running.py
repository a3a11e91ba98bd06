"""Threads that call threads, run by real processes that are stopped and killed."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.builders import TEXT, make_role, reply, variant
from tests.engine.nested import by, line
from tests.program import Program, is_alive, make_program, wait, wait_until
from uwfgit.model.workflow.document import workflow_document
from uwfgit.model.workflow.workflow import Workflow
from uwfgit.model.yaml.dump import dump_yaml
from uwfgit.store.canonical import Json

pytestmark = pytest.mark.slow

DONE = variant("done", ["plan"], plan=TEXT)
DEVELOP = line(
    "develop",
    ("coder", make_role(DONE), "done"),
    ("tester", make_role(DONE), "done"),
)
DELIVER = line(
    "deliver",
    ("preparer", make_role(DONE), "done"),
    ("builder", by("develop", DONE), "done"),
    ("sender", make_role(DONE), "done"),
)
# Notes who is asked, and waits for as long as a file of its role's name is there.
_AGENT = """\
#!/bin/sh
cat > /dev/null
echo "$UWF_ROLE" >> "$UWF_CWD/asked"
echo $$ >> "$UWF_CWD/agents"
while [ -e "$UWF_CWD/wait-$UWF_ROLE" ]; do sleep 0.05; done
sleep "${PACE:-0}"
cat "$UWF_CWD/reply"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested:
    """A thread whose second step a thread of another workflow does."""

    program: Program
    thread: str
    agent: str

    def exec(self, *words: str) -> tuple[str, ...]:
        return ("thread", "exec", self.thread, "--all", "--agent", self.agent, *words)

    def asked(self) -> list[str]:
        path = self.program.folder / "asked"
        return path.read_text().split() if path.exists() else []

    def hold(self, role: str) -> Path:
        """Let the agent of a role wait until the file is gone."""
        path = self.program.folder / f"wait-{role}"
        path.touch()
        return path

    def show(self, thread: str | None = None) -> Json:
        return self.program.json("thread", "show", thread or self.thread)

    def children(self) -> list[str]:
        words = ("thread", "list", "--all", "--children")
        items = self.program.json(*words)["items"]
        return [each["threadId"] for each in items if each["threadId"] != self.thread]

    def kill_in(self, role: str) -> None:
        """Run it, and kill the program with SIGKILL while a role's agent works."""
        held = self.hold(role)
        process = self.program.spawn(*self.exec())
        wait_until(lambda: role in self.asked())
        os.kill(process.pid, signal.SIGKILL)
        wait(process)
        held.unlink()
        wait_until(lambda: not any(map(is_alive, self.program.pids("agents"))))

    def check(self) -> None:
        """Make sure that all of it is whole, and that the one child is named once."""
        (child,) = self.children()
        steps = self.program.json("step", "list", self.thread)["items"]
        shown = [self.program.json("step", "show", each["hash"]) for each in steps]
        assert [each["role"] for each in steps] == ["preparer", "builder", "sender"]
        assert [each["child"] and each["child"]["thread"] for each in shown] == [
            None,
            child,
            None,
        ]
        assert (self.show()["status"], self.show(child)["status"]) == ("end", "end")
        verified = self.program.run("verify", "--children")
        assert verified.code == 0, verified
        self.program.fsck()


@pytest.fixture
def nested(tmp_path: Path) -> Iterator[Nested]:
    program = make_program(tmp_path / "user", DELIVER)
    for workflow in (DELIVER, DEVELOP):
        _write(program.folder, workflow)
    path = program.folder / "agent"
    path.write_text(_AGENT)
    path.chmod(0o700)
    (program.folder / "reply").write_text(reply(plan="p"))
    started = program.json("thread", "start", "deliver.yaml", "-p", "the task")
    yield Nested(
        program=program,
        thread=started["threadId"],
        agent=f"stdio:{shlex.quote(str(path))}",
    )
    for held in program.folder.glob("wait-*"):
        held.unlink()
    for pid in program.pids("agents"):
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


def _write(folder: Path, workflow: Workflow) -> None:
    text = dump_yaml(workflow_document(workflow))
    (folder / f"{workflow.name}.yaml").write_text(text)


@pytest.mark.parametrize("role", ["coder", "tester"])
def test_killed_in_the_middle_of_its_child_it_goes_on_there(
    nested: Nested, role: str
) -> None:
    nested.kill_in(role)
    shown = nested.show()
    (child,) = nested.children()
    before = nested.show(child)

    rest = nested.program.run(*nested.exec())

    assert (shown["status"], shown["steps"]) == ("idle", 1)
    assert before["steps"] == ["coder", "tester"].index(role)
    assert rest.code == 0, rest
    assert nested.asked().count(role) == 2
    nested.check()


def test_killed_it_takes_the_child_that_was_brought_to_its_end_by_hand(
    nested: Nested,
) -> None:
    nested.kill_in("tester")
    (child,) = nested.children()
    words = ("thread", "exec", child, "--all", "--agent", nested.agent)
    assert nested.program.run(*words).code == 0
    tip = nested.show(child)["oid"]

    rest = nested.program.run(*nested.exec())

    assert rest.code == 0
    assert nested.show(child)["oid"] == tip
    nested.check()


def test_a_fork_that_was_killed_goes_on_in_the_child_it_had_got(
    nested: Nested,
) -> None:
    said = nested.program.folder / "reply"
    said.write_text("---\n$status: done\nplan: p\n---\n")
    nested.program.run(*nested.exec()[:3], "-c", "1", "--agent", nested.agent)
    said.write_text("---\n$status: $SUSPEND\nreason: Which?\n---\n")
    nested.program.run(*nested.exec())
    fork = nested.program.json("thread", "fork", nested.thread)["threadId"]
    said.write_text(reply(plan="p"))
    words = ("thread", "resume", fork, "-p", "This", "--agent", nested.agent)
    held = nested.hold("tester")
    process = nested.program.spawn(*words)
    wait_until(lambda: "tester" in nested.asked())
    process.kill()
    wait(process)
    held.unlink()
    wait_until(lambda: not any(map(is_alive, nested.program.pids("agents"))))
    there = set(nested.children())

    rest = nested.program.run(*words)

    assert rest.code == 0, rest
    assert set(nested.children()) == there
    assert nested.asked() == ["preparer", "coder", "coder", "tester", "tester"]
    step = nested.program.json("step", "show", f"{fork}:3")
    assert nested.show(step["child"]["thread"])["status"] == "end"
    assert nested.program.run("verify", "--children").code == 0


def test_killed_again_and_again_it_ends_with_one_child(nested: Nested) -> None:
    code = -signal.SIGKILL
    for round_ in range(40):
        process = nested.program.spawn(*nested.exec(), PACE="0.1")
        # Longer and longer, or on a busy machine it would die as it starts each time.
        pause = (0.25 + 0.13 * (round_ % 11)) * 1.08**round_
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=pause)
        process.kill()
        code = wait(process).code
        if code == 0:
            break

    assert code == 0, "it never came to its end"
    nested.check()


def test_stopped_in_the_middle_of_its_child_both_wait_and_resume_goes_on(
    nested: Nested,
) -> None:
    held = nested.hold("coder")
    process = nested.program.spawn(*nested.exec())
    wait_until(lambda: "coder" in nested.asked())

    stopped = nested.program.run("thread", "stop", nested.thread)
    ended = wait(process)
    held.unlink()
    (child,) = nested.children()
    states = [nested.show()["status"], nested.show(child)["status"]]
    agent = ("--agent", nested.agent)
    resumed = nested.program.run("thread", "resume", nested.thread, *agent)
    rest = nested.program.run(*nested.exec())

    assert (stopped.code, states) == (0, ["suspended", "suspended"])
    assert ended.code == 143
    assert not any(map(is_alive, nested.program.pids("agents")))
    assert (resumed.code, rest.code) == (0, 0)
    nested.check()


def test_paused_it_finishes_its_child_first(nested: Nested) -> None:
    held = nested.hold("coder")
    process = nested.program.spawn(*nested.exec())
    wait_until(lambda: "coder" in nested.asked())

    nested.program.run("thread", "pause", nested.thread)
    held.unlink()
    ended = wait(process)

    assert ended.code == 0
    assert (nested.show()["status"], nested.show()["steps"]) == ("idle", 2)
    assert nested.program.run(*nested.exec()).code == 0
    nested.check()


def test_cancelled_in_the_middle_of_its_child_both_are(nested: Nested) -> None:
    nested.hold("tester")
    process = nested.program.spawn(*nested.exec())
    wait_until(lambda: "tester" in nested.asked())

    cancelled = nested.program.run("thread", "cancel", nested.thread)
    wait(process)
    (child,) = nested.children()

    assert cancelled.code == 0
    assert [nested.show()["status"], nested.show(child)["status"]] == ["cancelled"] * 2
    assert not any(map(is_alive, nested.program.pids("agents")))
    assert nested.program.run("verify", "--children").code == 0


def test_threads_that_an_agent_starts_itself_are_as_deep_as_the_limit(
    tmp_path: Path,
) -> None:
    """Each agent starts a thread and runs it, until that is refused."""
    program = make_program(
        tmp_path / "user", line("again", ("doer", make_role(DONE), "done"))
    )
    _write(program.folder, line("again", ("doer", make_role(DONE), "done")))
    (program.folder / "reply").write_text(reply(plan="p"))
    path = program.folder / "agent"
    uwf = shlex.join(program.before)
    path.write_text(
        "#!/bin/sh\ncat > /dev/null\n"
        f"{uwf} thread run again.yaml -p inner --agent stdio:{path} "
        '>> "$UWF_CWD/inner" 2>&1\n'
        'cat "$UWF_CWD/reply"\n'
    )
    path.chmod(0o700)

    ran = program.run(
        "thread", "run", "again.yaml", "-p", "x", "--agent", f"stdio:{path}"
    )

    items = program.json("thread", "list", "--all", "--children")["items"]
    last = program.json("thread", "show", "@last")
    assert ran.code == 0, ran
    assert len(items) == 4
    assert {each["status"] for each in items} == {"end"}
    assert "limits.depth" in (program.folder / "inner").read_text()
    assert last["threadId"] in ran.err
    assert program.run("verify").code == 0
