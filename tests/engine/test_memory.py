"""An agent's session around runs: kept, restored elsewhere, forked, masked."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.builders import begin, make_engine, record_of, reply
from tests.history import check_thread
from uwfgit.agents.base import AgentReply, AgentRequest, Failure
from uwfgit.agents.clis.session_files import LocatedFiles, Place
from uwfgit.config import Settings
from uwfgit.engine.run.ends import RunEnd
from uwfgit.engine.run.executor import (
    Engine,
    RunReport,
    exec_thread,
    poke_thread,
    resume_thread,
)
from uwfgit.engine.run.thread import fork_thread
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.mask import Masker, Secret
from uwfgit.model.memory.memory import forget_memory, iter_memory, read_session
from uwfgit.model.node import DETAIL_TYPE
from uwfgit.store.layout import memory_ref
from uwfgit.store.refs import find_ref

GOOD: Final = reply(plan="x")
BAD: Final = reply("bad", "Not fine.", reason="slow")
SECRET: Final = "kV9-pq27Zx-walrus-83"  # noqa: S105 - made up


@dataclass(slots=True, kw_only=True)
class Diary:
    """An agent whose session is a file of what it was told and said."""

    home: Path
    answers: list[str]
    label: str = "diary"
    kind: str = "diary"
    has_sessions: bool = True
    heard: list[str] = field(default_factory=list)
    sessions: list[str | None] = field(default_factory=list)

    @property
    def session_files(self) -> LocatedFiles:
        def locate(session: str, cwd: Path, environment: Mapping[str, str]) -> Place:  # noqa: ARG001 - as every kind's
            folder = self.home / "diaries"
            return Place(
                base=self.home, file=folder / f"{session}.txt", folder=folder / session
            )

        return LocatedFiles(locate=locate)

    def run(self, request: AgentRequest) -> AgentReply:
        self.sessions.append(request.session_id)
        session = request.session_id or str(uuid.uuid4())
        path = self.home / "diaries" / f"{session}.txt"
        if request.session_id and not path.exists():
            failure = Failure(phase="agent", message="no such diary")
            return AgentReply(text="", is_session_refused=True, failure=failure)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = self.answers.pop(0)
        with path.open("a") as file:
            file.write(f"TOLD {request.prompt}\nSAID {text}\n")
        self.heard.append(path.read_text())
        return AgentReply(text=text, session_id=session)


@dataclass(slots=True, kw_only=True)
class Desk:
    """A thread, and the machine it runs on."""

    ledger: Ledger
    thread: ThreadId
    diary: Diary
    masker: Masker | None = None
    settings: Settings = field(default_factory=Settings)

    @property
    def engine(self) -> Engine:
        more = {} if self.masker is None else {"masker": self.masker}
        return make_engine(
            self.ledger, choose=lambda *_: self.diary, settings=self.settings, **more
        )

    def run(self, *answers: str) -> RunReport:
        self.diary.answers += answers
        return exec_thread(self.engine, self.thread, count=len(answers))

    def move(self, home: Path) -> None:
        """Go on at a machine that has the store and nothing else."""
        self.diary = Diary(home=home, answers=[])
        self.ledger.local.forget_sessions(self.thread)

    @property
    def memory(self) -> list[Oid]:
        tip = find_ref(self.ledger.store, memory_ref(self.thread))
        if tip is None:
            return []
        return [commit.oid for commit in iter_memory(self.ledger.store, tip)]

    def warnings(self) -> tuple[str, ...]:
        record = record_of(self.ledger, self.thread)
        return record.steps()[-1].warnings


@pytest.fixture
def desk(ledger: Ledger, tmp_path: Path) -> Desk:
    thread = begin(ledger, tmp_path).thread
    diary = Diary(home=tmp_path / "home", answers=[])
    return Desk(ledger=ledger, thread=thread, diary=diary)


def test_each_run_is_kept_and_named_by_its_step(desk: Desk) -> None:
    desk.run(GOOD, BAD)

    record = record_of(desk.ledger, desk.thread)
    details = [
        record.node(step.detail_hash, DETAIL_TYPE).payload for step in record.steps()
    ]
    kept = [read_session(desk.ledger.store, commit) for commit in desk.memory]
    assert [detail["session"]["commit"] for detail in details] == desk.memory[::-1]
    assert [detail["session"]["id"] for detail in details] == [
        session.id for session in kept[::-1]
    ]
    assert [(s.number, s.run, s.role) for s in kept] == [
        (2, 1, "critic"),
        (1, 1, "worker"),
    ]
    assert [kept[0].files["session"].decode()] == desk.diary.heard[1:]
    check_thread(desk.ledger.store, desk.thread)


class Impatient(LocatedFiles, frozen=True):
    """Files that a person does not wait for."""

    def read(
        self, session: str, *, cwd: Path, environment: Mapping[str, str]
    ) -> Mapping[str, bytes]:
        del session, cwd, environment
        raise KeyboardInterrupt


class Interrupted(Diary):
    @property
    def session_files(self) -> LocatedFiles:
        return Impatient(locate=super().session_files.locate)


def test_an_interrupt_while_a_session_is_kept_loses_no_reply(desk: Desk) -> None:
    desk.diary = Interrupted(home=desk.diary.home, answers=[])

    report = desk.run(GOOD, BAD)

    step = record_of(desk.ledger, desk.thread).step_at(1)
    assert (report.end, len(report.steps)) == (RunEnd.INTERRUPTED, 1)
    assert step.body.strip() in GOOD
    assert step.warnings == ("the agent's session was not kept: interrupted",)
    check_thread(desk.ledger.store, desk.thread)


def test_a_session_is_restored_where_it_is_not(desk: Desk, tmp_path: Path) -> None:
    desk.run(GOOD, BAD)
    before = desk.diary.sessions, desk.diary.heard[0]
    desk.move(tmp_path / "elsewhere")

    desk.run(reply(plan="two"))

    assert desk.diary.sessions[0] is not None
    assert desk.diary.heard[0].startswith(before[1])
    told = desk.diary.heard[0].removeprefix(before[1])
    assert "The task of this thread" not in told
    assert "Not fine." in told
    assert desk.warnings() == ()


def test_a_session_that_was_cleaned_up_is_restored(desk: Desk) -> None:
    desk.run(GOOD, BAD)
    for path in (desk.diary.home / "diaries").iterdir():
        path.unlink()

    desk.run(reply(plan="two"))

    assert desk.diary.heard[2].startswith(desk.diary.heard[0])


def test_a_fork_goes_on_from_the_memory_up_to_its_step(desk: Desk) -> None:
    desk.run(GOOD, BAD, reply(plan="walrus"), BAD)
    fork = fork_thread(desk.ledger, desk.thread, at=2).thread
    desk.thread = fork

    desk.run(reply(plan="otherwise"))

    asked, heard = desk.diary.sessions[-1], desk.diary.heard[-1]
    assert asked not in desk.diary.sessions[:-1]
    assert heard.startswith(desk.diary.heard[0])
    assert "walrus" not in heard
    assert len(desk.memory) == 1
    check_thread(desk.ledger.store, fork)


def test_a_fork_has_a_session_of_its_own_on_another_machine_too(
    desk: Desk, tmp_path: Path
) -> None:
    desk.run(GOOD, BAD)
    known = {read_session(desk.ledger.store, commit).id for commit in desk.memory}
    desk.thread = fork_thread(desk.ledger, desk.thread, at=2).thread
    desk.move(tmp_path / "elsewhere")

    desk.run(reply(plan="otherwise"))

    assert desk.diary.sessions[-1] is not None
    assert desk.diary.sessions[-1] not in known


def test_a_session_others_changed_is_left_alone(desk: Desk) -> None:
    desk.run(GOOD, BAD)
    record = record_of(desk.ledger, desk.thread)
    detail = record.node(record.steps()[0].detail_hash, DETAIL_TYPE).payload
    mine = desk.diary.home / "diaries" / f"{detail['sessionId']}.txt"
    mine.write_text(mine.read_text() + "octopus went on here\n")
    changed = mine.read_text()

    desk.run(reply(plan="two"))

    assert mine.read_text() == changed
    assert desk.diary.sessions[-1] != detail["sessionId"]
    assert desk.diary.heard[-1].startswith(desk.diary.heard[0])
    assert "octopus" not in desk.diary.heard[-1]


def test_a_poke_goes_on_in_the_session_of_the_run_it_replaces(
    desk: Desk, tmp_path: Path
) -> None:
    desk.run(GOOD)
    first = desk.diary.heard[0]
    desk.move(tmp_path / "elsewhere")
    desk.diary.answers.append(reply(plan="shorter"))

    poke_thread(desk.engine, desk.thread, note="Shorter.")

    assert desk.diary.heard[0].startswith(first)
    assert "Shorter." in desk.diary.heard[0]


def test_a_failed_run_is_kept_too_and_gone_on_with(desk: Desk, tmp_path: Path) -> None:
    desk.run("No block.", "None.", "None.")
    first = desk.diary.heard[-1]
    desk.move(tmp_path / "elsewhere")
    desk.diary.answers.append(GOOD)

    resume_thread(desk.engine, desk.thread, note="With a block.")

    assert desk.diary.heard[0].startswith(first)


def test_a_secret_is_masked_in_what_is_kept(desk: Desk) -> None:
    desk.masker = Masker([Secret(name="API_TOKEN", value=SECRET)])
    desk.run(reply(plan="x", body=f"I read {SECRET}."))
    (session,) = [read_session(desk.ledger.store, oid) for oid in desk.memory]

    kept = session.files["session"].decode()

    assert SECRET not in kept
    assert "[redacted:API_TOKEN]" in kept
    assert SECRET in desk.diary.heard[0]
    desk.run(BAD, reply(plan="two"))
    assert desk.diary.heard[-1].startswith(desk.diary.heard[0])


def test_bytes_that_are_no_text_are_a_warning_and_no_failure(desk: Desk) -> None:
    folder = desk.diary.home / "diaries"

    def say(_: AgentRequest) -> AgentReply:
        folder.mkdir(parents=True)
        (folder / "s-1.txt").write_bytes(b"\xff\xfe")
        return AgentReply(text=GOOD, session_id="s-1")

    desk.diary = _Speaking(home=desk.diary.home, answers=[], say=say)

    report = desk.run(GOOD)

    assert report.end is RunEnd.DONE
    assert desk.memory == []
    (warning,) = desk.warnings()
    assert warning == "the agent's session was not kept: it is not UTF-8"


def test_nothing_is_kept_where_the_user_wants_none(desk: Desk) -> None:
    desk.settings = Settings(keeps_sessions=False)

    desk.run(GOOD, BAD, reply(plan="two"))

    assert desk.memory == []
    assert desk.diary.heard[2].startswith(desk.diary.heard[0])


def test_a_thread_whose_memory_was_forgotten_is_told_all_again(
    desk: Desk, tmp_path: Path
) -> None:
    desk.run(GOOD, BAD)
    forget_memory(desk.ledger, desk.thread)
    desk.move(tmp_path / "elsewhere")

    desk.run(reply(plan="two"))

    assert desk.diary.sessions == [None]
    assert "The task of this thread" in desk.diary.heard[0]
    check_thread(desk.ledger.store, desk.thread)


@dataclass(slots=True, kw_only=True)
class _Speaking(Diary):
    say: object = None

    def run(self, request: AgentRequest) -> AgentReply:
        assert callable(self.say)
        said = self.say(request)
        assert isinstance(said, AgentReply)
        return said
