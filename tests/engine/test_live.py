"""The turns of a running step, as they stand beside the store meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acting import DONE, NO_BLOCK, acting, steps_of
from tests.builders import git
from uwfgit.agents.base import AgentReply, AgentRequest, ToolCall, Turn
from uwfgit.engine.ask.live import live_path, read_live
from uwfgit.engine.run.ends import RunEnd
from uwfgit.engine.run.executor import Engine, RunReport, exec_thread
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.mask import Masker, Secret
from uwfgit.store.canonical import Json
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.layout import thread_ref

VALUE = "s3cr3t-Value-0123456789"


def turn(content: str, index: int = 0) -> Turn:
    return Turn(index=index, role="assistant", content=content, at_ms=5)


def telling(
    look: Callable[[], None], *turns: Turn, reply: str = DONE
) -> Callable[[AgentRequest], str]:
    """Tell turns, have the file looked at, then reply."""

    def act(request: AgentRequest) -> str:
        assert request.on_turn is not None
        for each in turns:
            request.on_turn(each)
        look()
        return reply

    return act


def run(engine: Engine, thread: ThreadId) -> RunReport:
    return exec_thread(engine, thread, count=1)


@pytest.fixture
def path(ledger: Ledger, thread: ThreadId) -> Path:
    """The live file of the thread."""
    return live_path(ledger.store, thread)


def test_turns_are_there_while_the_step_runs_and_gone_when_it_is_recorded(
    ledger: Ledger, thread: ThreadId, path: Path
) -> None:
    seen: list[Json] = []
    modes: list[int] = []

    def look() -> None:
        seen.extend(read_live(ledger.store, thread))
        modes.append(path.stat().st_mode & 0o777)

    call = ToolCall(name="sh", arguments={"x": 1}, result="ok")
    tool = Turn(
        index=1, role="tool", content="", tool_calls=(call,), reasoning="why", at_ms=6
    )
    engine = acting(ledger, telling(look, turn("Reading\n"), turn("on.\n"), tool))

    report = run(engine, thread)

    common = {"step": 1, "of": "worker"}
    calls = [{"name": "sh", "arguments": {"x": 1}, "result": "ok"}]
    assert seen == [
        {
            **common,
            "index": 0,
            "role": "assistant",
            "content": "Reading\non.\n",
            "toolCalls": None,
            "reasoning": None,
            "atMs": 5,
        },
        {
            **common,
            "index": 1,
            "role": "tool",
            "content": "",
            "toolCalls": calls,
            "reasoning": "why",
            "atMs": 6,
        },
    ]
    assert modes == [0o600]
    assert report.end is RunEnd.DONE
    assert list(path.parent.iterdir()) == []


def test_every_turn_is_one_line_as_soon_as_it_is_told(
    ledger: Ledger, thread: ThreadId, path: Path
) -> None:
    lines: list[int] = []

    def act(request: AgentRequest) -> str:
        assert request.on_turn is not None
        for number in range(3):
            request.on_turn(turn("x\ny", number))
            lines.append(path.read_bytes().count(b"\n"))
        return DONE

    run(acting(ledger, act), thread)

    assert lines == [1, 2, 3]


def test_a_correction_stands_between_the_two_answers(
    ledger: Ledger, thread: ThreadId
) -> None:
    seen: list[tuple[int, str, str]] = []

    def act(request: AgentRequest) -> AgentReply | str:
        assert request.on_turn is not None
        text = DONE if request.correction else NO_BLOCK
        request.on_turn(turn(text))
        if request.correction:
            seen.extend(
                (item["index"], item["role"], item["content"])
                for item in read_live(ledger.store, thread)
            )
        return text

    run(acting(ledger, act), thread)

    recorded = steps_of(ledger, thread)[0]
    assert [(index, role) for index, role, _ in seen] == [
        (0, "assistant"),
        (1, "user"),
        (2, "assistant"),
    ]
    assert (seen[0][2], seen[2][2]) == (NO_BLOCK, DONE)
    assert "frontmatter" in seen[1][2] or "---" in seen[1][2]
    assert recorded.number == 1


def test_secrets_are_masked_as_in_the_record(
    ledger: Ledger, thread: ThreadId, path: Path
) -> None:
    seen: list[str] = []
    masker = Masker([Secret(name="KEY", value=VALUE)])
    act = telling(lambda: seen.append(path.read_text()), turn(f"It is {VALUE}.\n"))

    run(acting(ledger, act, masker=masker), thread)

    assert VALUE not in seen[0]
    assert "It is [redacted:KEY]." in seen[0]


def test_an_agent_that_tells_nothing_makes_no_file(
    ledger: Ledger, thread: ThreadId, path: Path
) -> None:
    seen: list[bool] = []

    def act(request: AgentRequest) -> str:
        seen.append(path.exists())
        return DONE if request.correction else NO_BLOCK

    run(acting(ledger, act), thread)

    assert seen == [False, False]


def test_what_a_killed_run_left_is_gone_before_the_next_begins(
    ledger: Ledger, thread: ThreadId, path: Path
) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"step": 1, "of": "worker", "content": "old"}\n{"st')
    seen: list[bool] = []

    engine = acting(
        ledger,
        lambda _: DONE,
        on_ready=lambda: seen.append(path.exists()),
    )
    run(engine, thread)

    assert seen == [False]


def test_a_reply_that_was_kept_is_neither_cleared_nor_overwritten(
    ledger: Ledger, thread: ThreadId, path: Path
) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"role": "assistant", "content": "kept"}\n')
    path.with_name(f"{thread}.1.jsonl").write_text("older")

    run(acting(ledger, telling(lambda: None, turn("new"))), thread)

    assert not path.exists()
    assert "kept" in path.with_name(f"{thread}.2.jsonl").read_text()
    assert path.with_name(f"{thread}.1.jsonl").read_text() == "older"


def test_without_a_turn_a_kept_reply_stays_where_it_was_said_to_be(
    ledger: Ledger, thread: ThreadId, path: Path
) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"role": "assistant", "content": "kept"}\n')

    run(acting(ledger, lambda _: DONE), thread)

    assert "kept" in path.read_text()


def test_a_reply_that_cannot_be_recorded_takes_the_place_of_its_turns(
    ledger: Ledger, thread: ThreadId, path: Path
) -> None:
    def look() -> None:
        git(ledger.store, "update-ref", thread_ref(thread), GENESIS_OID)

    report = run(acting(ledger, telling(look, turn("Did it.\n"))), thread)

    (line,) = path.read_text().splitlines()
    assert report.end is RunEnd.AGENT_FAILED
    assert str(path) in (report.problem or "")
    assert json.loads(line)["content"] == DONE


def test_words_too_large_for_a_node_stay_when_the_attempt_is_recorded(
    ledger: Ledger, thread: ThreadId, path: Path
) -> None:
    said = "Some words. " * 200_000
    engine = acting(ledger, telling(lambda: None, turn("Some"), reply=said))

    report = exec_thread(engine, thread, count=1)

    assert report.end is RunEnd.AGENT_FAILED
    assert said in path.read_text()


def test_a_file_that_cannot_be_written_stops_nothing(
    ledger: Ledger, thread: ThreadId, path: Path
) -> None:
    path.mkdir(parents=True)
    engine = acting(ledger, telling(lambda: None, turn("a"), turn("b", 1)))

    report = run(engine, thread)

    assert report.end is RunEnd.DONE
    assert path.is_dir()


def test_the_file_is_bounded_and_says_where_it_ends(
    ledger: Ledger, thread: ThreadId, path: Path
) -> None:
    seen: list[str] = []
    sizes: list[int] = []

    def look() -> None:
        sizes.append(path.stat().st_size)
        seen.extend(item["content"][-60:] for item in read_live(ledger.store, thread))

    parts = [turn("x" * 1024 * 1024 + "\n") for _ in range(20)]
    run(acting(ledger, telling(look, *parts)), thread)

    assert sizes[0] <= 16 * 1024 * 1024 + 1000
    assert len(seen) == 1
    assert seen[0].endswith("is not shown before its end]\n")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("no json", id="words"),
        pytest.param("[1]", id="a-list"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param('{"role": "assistant", "content": "kept"}', id="a-kept-reply"),
        pytest.param(
            '{"step": true, "of": "x", "index": 0, "role": "a", "content": "", '
            '"atMs": 1}',
            id="a-wrong-type",
        ),
        pytest.param(
            '{"step": 1, "of": "x", "index": 0, "role": "a", "content": "", '
            '"atMs": 1, "toolCalls": [1]}',
            id="wrong-calls",
        ),
    ],
)
def test_lines_that_are_no_turns_are_passed_over(
    ledger: Ledger, thread: ThreadId, path: Path, line: str
) -> None:
    good = (
        '{"step": 1, "of": "x", "index": 0, "role": "a", "content": "c", "atMs": 1}\n'
    )
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{line}\n{good}{good[:20]}")

    assert [item["content"] for item in read_live(ledger.store, thread)] == ["c"]
