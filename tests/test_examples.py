"""The examples hold together, and their replies go everywhere.

The walk below is a scripted run without a store. It knows of the engine only
what reads a reply and what routes; a replies file's own head comment says which
commands to give, and is thereby proved.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from uwfgit.agents.scripted import ScriptEntry, read_script
from uwfgit.constants import END, NEW, RESUME, START, STATUS, SUSPEND
from uwfgit.engine.ask.extract import Extraction, extract_reply
from uwfgit.engine.decide.moderator import Routed, route
from uwfgit.model.node import make_text
from uwfgit.model.thread.derive import find_hash_words
from uwfgit.model.workflow.source import check_workflow_file, read_workflow
from uwfgit.model.workflow.workflow import Workflow
from uwfgit.store.canonical import Json

EXAMPLES: Final = Path(__file__).parent.parent / "examples"
REPLIES: Final = sorted(EXAMPLES.glob("*.replies.yaml"))
WORKFLOWS: Final = sorted(set(EXAMPLES.glob("*.yaml")) - set(REPLIES))
NAMES: Final = [file.stem for file in WORKFLOWS]
WANTED: Final = {
    "analyze-topic",
    "brainstorm",
    "debate",
    "develop",
    "release",
    "review-pr",
    "solve-issue",
    "solve-issue-nested",
}

CORRECTIONS: Final = 2
MAX_STEPS: Final = 100
COMMAND: Final = "#   uwf "
EXIT: Final = "#     exit "
THREAD: Final = "01J00000000000000000000000"

Edge = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of a replies file's head comment, and the exit it announces."""

    words: tuple[str, ...]
    exit_code: int

    @property
    def verb(self) -> str:
        return self.words[2]

    def option(self, name: str) -> str | None:
        if name not in self.words:
            return None
        return self.words[self.words.index(name) + 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One link of the walk's logical chain."""

    role: str
    output: Mapping[str, Json]
    body: str

    @property
    def status(self) -> Json:
        return self.output[STATUS]


@dataclass(slots=True, kw_only=True)
class Walk:
    """A thread without a store, driven by scripted replies."""

    workflow: Workflow
    replies: Mapping[str, Sequence[ScriptEntry]]
    status: str = "idle"
    task: str = ""
    chain: list[Step] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    spoken: Counter[str] = field(default_factory=Counter)
    edges: set[Edge] = field(default_factory=set)
    locations: list[str | None] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def give(self, command: Command) -> int:
        match command.verb:
            case "put-text":
                return 0
            case "start":
                self.task = command.option("-p") or ""
                return 0
            case "exec" if "--all" in command.words:
                return self._cycle_up_to(MAX_STEPS)
            case "exec":
                return self._cycle_up_to(int(command.option("-c") or "1"))
            case "poke":
                role = self.chain.pop().role
                return self._speak(role, "poke")
            case "resume":
                assert self.status in {"suspended", "end"}, "nothing to resume"
                return self._speak(self._base().role, "resume")
            case _:
                raise AssertionError(command.words)

    def unused(self) -> dict[str, int]:
        left = {
            role: len(entries) - self.spoken[role]
            for role, entries in self.replies.items()
        }
        return {role: count for role, count in left.items() if count}

    def _cycle_up_to(self, count: int) -> int:
        assert self.status == "idle", f"exec on a thread that is {self.status}"
        for _ in range(count):
            code = self._speak(self._base().role, "step")
            if self.status != "idle":
                return code
        return 0

    def _base(self) -> Routed:
        """What the moderator prescribes for the next step of the chain."""
        for step in reversed(self.chain):
            if step.status == SUSPEND:
                continue
            target = self._route(step.role, step.output, step.body)
            if target.role != END:
                return target
            return self._route(START, {STATUS: RESUME}, step.body)
        return self._route(START, {STATUS: NEW}, "")

    def _route(self, role: str, output: Mapping[str, Json], body: str) -> Routed:
        injected = {"_body": body.strip(), "_prompt": self.task, "_thread": THREAD}
        target = route(self.workflow.graph, role, output, injected=injected)
        assert isinstance(target, Routed), target
        self.edges.add((role, str(output[STATUS])))
        self.locations.append(target.location)
        self.complaints += [
            f"{role}: '{name}' is missing in the prompt" for name in target.missing
        ]
        return target

    def _speak(self, role: str, event: str) -> int:
        reply = self._ask(role)
        if reply is None:
            self.events.append(f"attempt {role}")
            self.status = "suspended"
            return 5
        self.complaints += [f"{role}: {warning}" for warning in reply.warnings]
        self.chain.append(Step(role=role, output=reply.output, body=reply.body))
        self.events.append(f"{event} {role} {reply.output[STATUS]}")
        if reply.suspended:
            self.status = "suspended"
            return 3
        target = self._route(role, reply.output, reply.body)
        self.status = "end" if target.role == END else "idle"
        return 0

    def _ask(self, role: str) -> Extraction | None:
        """Read the role's next reply, and its answers to corrections if it is bad."""
        name = self.workflow.roles[role].workflow
        if name is not None:
            return self._ask_workflow(name)
        script = self.replies[role]
        assert self.spoken[role] < len(script), f"no reply left for {role}"
        texts = script[self.spoken[role]]
        self.spoken[role] += 1
        for correction in range(CORRECTIONS + 1):
            found = extract_reply(
                texts[min(correction, len(texts) - 1)],
                schema=dict(self.workflow.roles[role].schema),
                listed=False,
                is_link=lambda _: False,
            )
            if isinstance(found, Extraction):
                return found
        return None

    def _ask_workflow(self, name: str) -> Extraction:
        """Run the workflow that does the role; its scripts begin at their beginning."""
        child = Walk(
            workflow=read_workflow(EXAMPLES / f"{name}.yaml").workflow,
            replies=self.replies,
        )
        assert child._cycle_up_to(MAX_STEPS) == 0
        assert child.status == "end"
        self.spoken.update(child.spoken)
        self.complaints += child.complaints
        last = child.chain[-1]
        return Extraction(output=dict(last.output), body=last.body)


def read_commands(file: Path) -> list[Command]:
    """Read the commands in a replies file's head comment; exit 0 unless it says so."""
    commands: list[Command] = []
    for line in file.read_text("utf-8").splitlines():
        if line.startswith(COMMAND):
            words = tuple(shlex.split(line.removeprefix("#").strip()))
            commands.append(Command(words=words, exit_code=0))
        elif line.startswith(EXIT):
            code = int(line.removeprefix(EXIT).partition(":")[0])
            commands[-1] = Command(words=commands[-1].words, exit_code=code)
    return commands


def workflow_of(replies: Path) -> Path:
    return EXAMPLES / f"{replies.name.partition('.')[0]}.yaml"


def start_walk(replies: Path) -> Walk:
    return Walk(
        workflow=read_workflow(workflow_of(replies)).workflow,
        replies=read_script(replies).replies,
    )


@cache
def finish_walk(replies: Path) -> Walk:
    walk = start_walk(replies)
    for command in read_commands(replies):
        walk.give(command)
    return walk


def edges_of(workflow: Workflow) -> set[Edge]:
    edges: set[Edge] = set()
    for node, targets in workflow.graph.items():
        assert isinstance(targets, Mapping)
        edges |= {(node, status) for status in targets}
    return edges


def test_all_examples_are_there() -> None:
    assert set(NAMES) >= WANTED
    assert {workflow_of(file).stem for file in REPLIES} == set(NAMES)


@pytest.mark.parametrize("file", WORKFLOWS, ids=NAMES)
def test_an_example_validates_without_errors_and_warnings(file: Path) -> None:
    assert check_workflow_file(file) == ()


@pytest.mark.parametrize("file", WORKFLOWS, ids=NAMES)
def test_the_replies_of_an_example_take_every_edge(file: Path) -> None:
    taken: set[Edge] = set()
    for replies in EXAMPLES.glob(f"{file.stem}.*replies.yaml"):
        taken |= finish_walk(replies).edges

    assert taken == edges_of(read_workflow(file).workflow)


@pytest.mark.parametrize("file", REPLIES, ids=lambda file: file.name)
def test_a_replies_file_runs_to_the_end_as_its_comment_says(file: Path) -> None:
    walk = start_walk(file)
    commands = read_commands(file)

    codes = [walk.give(command) for command in commands]

    assert codes == [command.exit_code for command in commands]
    assert walk.status == "end"
    assert walk.unused() == {}


@pytest.mark.parametrize("file", REPLIES, ids=lambda file: file.name)
def test_a_scripted_run_has_no_warning_and_no_empty_variable(file: Path) -> None:
    assert finish_walk(file).complaints == []


@pytest.mark.parametrize("file", REPLIES, ids=lambda file: file.name)
def test_a_scripted_run_works_in_any_folder(file: Path) -> None:
    assert set(finish_walk(file).locations) <= {None, "."}


@pytest.mark.parametrize("file", REPLIES, ids=lambda file: file.name)
def test_the_commands_of_a_replies_file_name_its_workflow_and_itself(
    file: Path,
) -> None:
    commands = [each for each in read_commands(file) if each.verb != "put-text"]
    start, *others = commands

    workflow = f"examples/{workflow_of(file).name}"
    assert start.words[:4] == ("uwf", "thread", "start", workflow)
    assert {command.words[3] for command in others} == {"T"}
    assert {command.option("--agent") for command in others} == {
        f"scripted:examples/{file.name}"
    }


def test_one_edge_of_the_examples_chooses_a_folder() -> None:
    locations = [
        location
        for file in REPLIES
        for location in finish_walk(file).locations
        if location is not None
    ]

    assert locations


def test_the_demo_is_rejected_once_and_fails_one_test() -> None:
    walk = finish_walk(EXAMPLES / "solve-issue.replies.yaml")

    assert walk.events == [
        "step planner ready",
        "step developer done",
        "step reviewer rejected",
        "step developer done",
        "step reviewer approved",
        "step tester fix_code",
        "step developer done",
        "step reviewer approved",
        "step tester passed",
        "step committer committed",
    ]


def test_the_journey_meets_everything_that_can_go_wrong() -> None:
    walk = finish_walk(EXAMPLES / "solve-issue.journey.replies.yaml")

    assert walk.events == [
        "step planner $SUSPEND",
        "resume planner ready",
        "step developer done",
        "step reviewer rejected",
        "step developer done",
        "step reviewer approved",
        "poke reviewer approved",
        "step tester fix_code",
        "attempt developer",
        "resume developer done",
        "step reviewer approved",
        "step tester passed",
        "step committer committed",
    ]


@pytest.mark.parametrize("file", REPLIES, ids=lambda file: file.name)
def test_the_hashes_in_a_replies_file_are_those_of_the_texts_that_are_put(
    file: Path,
) -> None:
    put = {
        make_text(command.words[3]).hash
        for command in read_commands(file)
        if command.verb == "put-text"
    }

    text = file.read_text("utf-8").partition("\nreplies:\n")[2]

    assert set(find_hash_words([text])) == put


def test_the_phases_of_develop_are_done_one_at_a_time_until_none_is_left() -> None:
    chain = finish_walk(EXAMPLES / "develop.replies.yaml").chain
    planned = chain[0].output["phases"]
    done = [step.output.get("completedPhase") for step in chain]

    assert isinstance(planned, list)
    assert [each for each in done if each] == [each["hash"] for each in planned]
