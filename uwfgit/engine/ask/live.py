"""An agent's words: made what is recorded of them, and shown while it runs.

Everything an agent says is masked here, and cut as configured, before it is
extracted, hashed or shown. Turns of a running step stand in a file beside the store,
for whoever looks on. The only place that knows the file. It is a view: what is
recorded is never read from it, and that it cannot be written stops nothing. Where a
reply could not be recorded, its words are kept under the same name; those are never
removed here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.agents.base import Agent, AgentReply, AgentRequest, ToolCall, Turn, Usage
from uwfgit.constants import MAX_BLOB_BYTES, STATUS, SUSPEND
from uwfgit.ids import ThreadId
from uwfgit.model.mask import NO_MASK, Masker
from uwfgit.model.schema.variants import find_variants
from uwfgit.store.canonical import Json
from uwfgit.store.files import write_private
from uwfgit.store.handle import Store

HEAD_CHARS: Final = 1_000
"""What ``record.toolResults: head`` keeps of a tool's result."""
_TOOL: Final = "tool"


class Recorder(Struct, kw_only=True):
    """Makes of an agent's words what is recorded of them, for one step.

    Attributes:
        masker: Knows the secrets.
        tool_results: ``full``, ``head`` or ``none``: how much of them to keep.
        schema: The role's, whose statuses are never masked.
        masked: The names of the secrets met so far.
    """

    masker: Masker = NO_MASK
    tool_results: str = "full"
    schema: Json = None
    masked: set[str] = field(default_factory=set)

    def text(self, text: str) -> str:
        """Return a text as it is recorded."""
        return self.masker.mask(text, self.masked)

    def value(self, value: Json) -> Json:
        """Return a JSON value as it is recorded."""
        return self.masker.mask_value(value, self.masked)

    def reply(self, reply: AgentReply) -> AgentReply:
        """Return a reply as it is recorded, its turns and its complaint too."""
        if not self.masker.secrets and self.tool_results == "full":
            return reply
        failure = reply.failure
        return replace(
            reply,
            text=self._reply_text(reply.text),
            turns=tuple(self.turn(turn) for turn in reply.turns),
            warnings=tuple(self._short(text) for text in reply.warnings),
            failure=failure and replace(failure, message=self._short(failure.message)),
        )

    def turn(self, turn: Turn) -> Turn:
        """Return a turn as it is recorded."""
        content = self._reply_text(turn.content)
        if turn.role == _TOOL:
            content = self._trim(content) or ""
        return replace(
            turn,
            content=content,
            tool_calls=turn.tool_calls
            and tuple(
                ToolCall(
                    name=call.name,
                    arguments=self.value(call.arguments),
                    result=self._trim(call.result and self.text(call.result)),
                )
                for call in turn.tool_calls
            ),
            reasoning=turn.reasoning and self.text(turn.reasoning),
        )

    def detail(self, payload: Mapping[str, Json]) -> dict[str, Json]:
        """Return the detail an adapter made as it is recorded."""
        detail: dict[str, Json] = self.value(payload)
        detail["turns"] = [self._trim_turn(turn) for turn in detail["turns"]]
        return detail

    def _trim_turn(self, turn: Mapping[str, Json]) -> Json:
        calls = turn["toolCalls"]
        trimmed = {
            **turn,
            "toolCalls": calls
            and [{**call, "result": self._trim(call["result"])} for call in calls],
        }
        if turn["role"] == _TOOL:
            trimmed["content"] = self._trim(turn["content"]) or ""
        return trimmed

    def _reply_text(self, text: str) -> str:
        if self.masker.mask(text) == text:
            return text
        variants = find_variants(self.schema) if self.schema is not None else ()
        statuses = frozenset({SUSPEND, *(each.status for each in variants)})
        return self.masker.mask_reply(text, self.masked, statuses=statuses)

    def _short(self, text: str) -> str:
        return self.masker.mask_cut(text, self.masked)

    def _trim(self, result: str | None) -> str | None:
        """Shorten a tool's result; masked before, no value is cut in two."""
        if result is None or self.tool_results == "none":
            return None
        left = len(result) - HEAD_CHARS
        if self.tool_results == "full" or left <= 0:
            return result
        return f"{result[:HEAD_CHARS]}\n[{left} more characters]"


def mask_output(recorder: Recorder, output: Mapping[str, Json]) -> dict[str, Json]:
    """Return an output as it is recorded; its ``$status`` stays."""
    masked: dict[str, Json] = recorder.value(output)
    if STATUS in output:
        masked[STATUS] = output[STATUS]
    return masked


class Watcher(Protocol):
    """Who looks on while a step runs, in the program that runs it."""

    def begin(self, *, number: int, role: str, agent: str) -> None:
        """See that an agent is asked now."""

    def turn(self, turn: Turn) -> None:
        """See a turn, or the next part of one, as it would be recorded."""

    def spent(self, usage: Usage) -> None:
        """See what the run has cost so far."""

    def end(self) -> None:
        """See that the agent is done."""


_FIRST: Final = b'{"step":'
"""How a file of live turns begins, and one of kept words does not."""
_FULL: Final = "[what is said from here on is not shown before its end]\n"


def live_path(store: Store, thread: ThreadId) -> Path:
    """Return the file of a thread's running step."""
    return store.state_dir / "live" / f"{thread}.jsonl"


def turn_payload(turn: Turn) -> dict[str, Any]:
    """Return a turn as the record and the live file have it."""
    calls = turn.tool_calls
    return {
        "index": turn.index,
        "role": turn.role,
        "content": turn.content,
        "toolCalls": None
        if calls is None
        else [
            {"name": call.name, "arguments": call.arguments, "result": call.result}
            for call in calls
        ],
        "reasoning": turn.reasoning,
        "atMs": turn.at_ms,
    }


def detail_payload(
    kind: str, prompt: str, reply: AgentReply, turns: Iterable[Turn]
) -> dict[str, Json]:
    """Return how an answer came about, as a detail node has it.

    Args:
        kind: The agent's.
        prompt: What it was told first.
        reply: The last it gave.
        turns: All that was said.
    """
    return {
        "kind": kind,
        "agentVersion": reply.agent_version,
        "sessionId": reply.session_id,
        "model": reply.model,
        "exitCode": reply.exit_code,
        "assembledPrompt": prompt,
        "turns": [turn_payload(turn) for turn in turns],
    }


def clear_live(path: Path) -> bool:
    """Remove the turns of a run that was killed, or that is recorded.

    Return whether another file stands there: kept words stay.
    """
    with suppress(OSError):
        with path.open("rb") as file:
            is_live = file.read(len(_FIRST)) in (_FIRST, b"")
        if is_live:
            path.unlink()
    # pathlib's own raises where the folder cannot be read.
    return os.path.isfile(path)  # noqa: PTH113


def keep_words(path: Path, text: str) -> None:
    """Write words that could not be recorded; earlier ones get another name.

    Raises:
        OSError: It cannot be written.
    """
    _make_room(path)
    write_private(path, text)


def _make_room(path: Path) -> None:
    """Let nothing stand at a path; kept words move beside it."""
    if clear_live(path):
        names = (path.with_name(f"{path.stem}.{number}.jsonl") for number in count(1))
        path.rename(next(name for name in names if not name.exists()))


@contextmanager
def followed(
    agent: Agent,
    path: Path,
    *,
    step: int,
    role: str,
    recorder: Recorder,
    watcher: Watcher | None = None,
) -> Iterator[Agent]:
    """Yield an agent whose turns are in the file as soon as they come.

    Kinds that give turns only at their end make no file. It is gone after the
    block; left behind by an exception, the next run of the thread clears it.
    """
    live = _LiveFile(
        path=path, step=step, role=role, recorder=recorder, watcher=watcher
    )
    if watcher is not None:
        watcher.begin(number=step, role=role, agent=agent.label)
    try:
        yield _Followed(agent=agent, live=live)
    finally:
        if live.is_made:
            live.close()
        if watcher is not None:
            watcher.end()
    if live.is_made:
        clear_live(path)


class _LiveFile(Struct, kw_only=True):
    path: Path
    step: int
    role: str
    recorder: Recorder
    watcher: Watcher | None = None
    is_made: bool = False
    call: int = 0
    """How many were made; in each the agent counts its turns from 0."""
    _descriptor: int | None = None
    _room: int = MAX_BLOB_BYTES
    _newest: tuple[int, int] = (0, 0)
    _number: int = -1

    def add(self, turn: Turn) -> None:
        """Append a turn, or the next part of one, as it would be recorded."""
        is_closed = self.is_made and self._descriptor is None
        if is_closed and self.watcher is None:
            return
        newest = (self.call, turn.index)
        if newest != self._newest:
            self._newest = newest
            self._number += 1
        turn = replace(self.recorder.turn(turn), index=self._number)
        if self.watcher is not None:
            self.watcher.turn(turn)
        if is_closed:
            return
        try:
            self._append(turn)
        except OSError:
            # Nobody can look on, and the run is none the worse.
            self.close()

    def _append(self, turn: Turn) -> None:
        line = self._line(turn)
        is_full = len(line) > self._room
        if is_full:
            line = self._line(replace(turn, content=_FULL, tool_calls=None))
        self._room -= len(line)
        if not self.is_made:
            self.is_made = True
            _make_room(self.path)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            self._descriptor = os.open(self.path, flags, 0o600)
        if self._descriptor is not None:
            written = os.write(self._descriptor, line)
            # Behind half a line no other could be read.
            if is_full or written < len(line):
                self.close()

    def _line(self, turn: Turn) -> bytes:
        known = {"step": self.step, "of": self.role, **turn_payload(turn)}
        return json.dumps(known).encode() + b"\n"

    def close(self) -> None:
        """Write no more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class _Followed(Struct, frozen=True, kw_only=True):
    """An agent that tells its turns to a live file."""

    agent: Agent
    live: _LiveFile

    @property
    def kind(self) -> str:
        return self.agent.kind

    @property
    def label(self) -> str:
        return self.agent.label

    @property
    def has_sessions(self) -> bool:
        return self.agent.has_sessions

    def run(self, request: AgentRequest) -> AgentReply:
        if request.correction and self.live.is_made:
            self.live.call += 1
            told = Turn(
                index=0, role="user", content=request.prompt, at_ms=request.now_ms()
            )
            self.live.add(told)
        self.live.call += 1
        watcher = self.live.watcher
        return self.agent.run(
            replace(
                request,
                on_turn=self.live.add,
                on_usage=None if watcher is None else watcher.spent,
            )
        )


def read_live(store: Store, thread: ThreadId) -> list[dict[str, Any]]:
    """Read the turns of a thread's running step so far, whole ones and the newest.

    None are there before the first, or where the agent's kind tells none. Whether
    the thread runs is for the caller to know.
    """
    try:
        with live_path(store, thread).open("rb") as file:
            data = file.read(2 * MAX_BLOB_BYTES)
    except OSError:
        return []
    turns: list[dict[str, Any]] = []
    # What stands behind the last break is just being written.
    for line in data.split(b"\n")[:-1]:
        turn = _parse(line)
        if turn is None:
            continue
        if turns and turns[-1]["index"] == turn["index"]:
            turns[-1]["content"].append(turn["content"])
        else:
            turns.append({**turn, "content": [turn["content"]]})
    return [{**turn, "content": "".join(turn["content"])} for turn in turns]


_SHAPE: Final[Mapping[str, type]] = {
    "step": int,
    "of": str,
    "index": int,
    "role": str,
    "content": str,
    "atMs": int,
}


def _parse(line: bytes) -> dict[str, Any] | None:
    """Read one line; ``None`` for one that is not ours: agents can write there."""
    try:
        turn = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(turn, dict):
        return None
    calls, reasoning = turn.get("toolCalls"), turn.get("reasoning")
    fits = (
        all(type(turn.get(name)) is kind for name, kind in _SHAPE.items())
        and (calls is None or isinstance(calls, list))
        and all(isinstance(call, dict) for call in calls or ())
        and (reasoning is None or isinstance(reasoning, str))
    )
    return turn if fits else None
