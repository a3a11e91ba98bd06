"""What of an agent's words goes into the record: masked, and as long as configured.

Everything an agent says passes here before it is extracted, hashed or shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.agents.base import AgentReply, ToolCall, Turn
from uwfgit.constants import STATUS, SUSPEND
from uwfgit.model.mask import NO_MASK, Masker, mask_warnings
from uwfgit.model.schema.variants import find_variants
from uwfgit.store.canonical import Json

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

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to say on the step about what was masked."""
        return mask_warnings(self.masked)

    def text(self, text: str) -> str:
        """Return a text as it is recorded."""
        return self.masker.mask(text, self.masked)

    def value(self, value: Json) -> Json:
        """Return a JSON value as it is recorded."""
        return self.masker.mask_value(value, self.masked)

    def reply(self, reply: AgentReply) -> AgentReply:
        """Return a reply as it is recorded, its turns and its complaint too."""
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
