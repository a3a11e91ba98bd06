"""The client: initialize, a session, one prompt; then the server may go."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from uwfgit.agents.acp.rpc import Params, Peer
from uwfgit.agents.acp.updates import Updates
from uwfgit.agents.base import AgentReply, AgentRequest, Failure, Usage
from uwfgit.agents.children.child import Child
from uwfgit.agents.children.complaints import one_line
from uwfgit.agents.children.process import ProcessResult, run_process
from uwfgit.agents.foreign_json import Event
from uwfgit.agents.speech import Speech
from uwfgit.agents.stdio import (
    find_missing_command,
    merge_environment,
    time_limits,
)
from uwfgit.model.wording import count_of

VERSION: Final = 1
ALL_TOOLS: Final = "all"
_CANCELLED: Final[Params] = {"outcome": {"outcome": "cancelled"}}
_SHOWN_CHARS: Final = 300
_GOOD_ENDS: Final = ("end_turn", "max_tokens")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AcpAgent:
    """A server's command; ``tools`` are the kinds of tool it may use unasked.

    ACP's kinds: read, edit, delete, move, search, execute, think, fetch, other; or
    ``all``. What it asks for and may not is refused, and told as a warning.
    """

    label: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    tools: tuple[str, ...] = ()
    timeout_seconds: float | None = None
    kind: str = dataclasses.field(default="acp", init=False)
    has_sessions: bool = dataclasses.field(default=True, init=False)

    def find_missing(self, environment: Mapping[str, str], *, cwd: Path) -> str | None:
        """Say why the server cannot be started; ``None`` when it can."""
        return find_missing_command(self.argv, self.env, environment, cwd=cwd)

    def run(self, request: AgentRequest) -> AgentReply:
        """Start the server, have it work on the prompt, and let it go."""
        return _Dialogue(agent=self, request=request).run()


class _Dialogue(Struct, kw_only=True, dict=True):
    """One run: what was agreed, asked and heard."""

    agent: AcpAgent
    request: AgentRequest
    session: str | None = None
    version: str | None = None
    tokens: Event = Event({})
    denied: list[str] = field(default_factory=list)
    failure: Failure | None = None
    is_refused: bool = False
    is_prompted: bool = False
    is_over: bool = False
    is_cancelled: bool = False
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        speech = Speech(tell=self.request.on_turn, now_ms=self.request.now_ms)
        self.updates = Updates(speech=speech)
        self.peer = Peer(
            send=self._say, on_notice=self._on_notice, on_request=self._on_request
        )
        self.child: Child | None = None

    def run(self) -> AgentReply:
        result = run_process(
            self.agent.argv,
            prompt="",
            cwd=self.request.cwd,
            environment=merge_environment(self.agent.env, self.request.environment),
            limits=time_limits(
                self.request,
                label=self.agent.label,
                timeout_seconds=self.agent.timeout_seconds,
            ),
            on_line=self.peer.take,
            is_over=lambda: self.is_over,
            dialogue=self,
        )
        self.updates.finish()
        failure, texts = self._failure(result), self.updates.texts
        text = (texts[-1] if texts else "") if failure is None else "\n\n".join(texts)
        if failure is None and not text:
            failure = Failure(phase="agent", message="the agent said nothing")
        usage, total = self._usage()
        return AgentReply(
            text=text,
            turns=tuple(self.updates.speech.turns),
            usage=usage,
            session_total=total,
            agent_version=self.version,
            session_id=None if self.is_refused else self.session,
            is_session_refused=self.is_refused,
            exit_code=result.exit_code,
            warnings=self._warnings(result),
            failure=failure,
        )

    def begin(self, child: Child) -> None:
        """Take the child to talk to, and introduce ourselves."""
        self.child = child
        capabilities = {
            "fs": {"readTextFile": False, "writeTextFile": False},
            "terminal": False,
        }
        params = {
            "protocolVersion": VERSION,
            "clientCapabilities": capabilities,
            "clientInfo": {"name": "uwfgit", "version": str(VERSION)},
        }
        self.peer.ask("initialize", params, self._on_initialized)

    def cancel(self) -> None:
        """Call the work off."""
        self.is_cancelled = True
        if self.is_prompted and not self.is_over:
            self.peer.tell("session/cancel", {"sessionId": self.session})

    def has_left(self) -> bool:
        """Whether there is nothing to wait for."""
        return self.is_over or not self.is_prompted

    def _say(self, line: bytes) -> None:
        if self.child is not None:
            self.child.say(line)

    def _end(self, message: str | None = None) -> None:
        if message is not None and self.failure is None:
            told = one_line(message, _SHOWN_CHARS)
            self.failure = Failure(phase="agent", message=told)
        self.is_over = True
        if self.child is not None:
            self.child.hang_up()

    def _on_initialized(self, result: Params | None, error: str | None) -> None:
        if result is None:
            self._end(f"the server refused to begin: {error}")
            return
        version = result.get("protocolVersion")
        if version != VERSION:
            self._end(
                f"the server speaks version {version} of the protocol, "
                f"this uwf speaks {VERSION}"
            )
            return
        info = Event(result).part("agentInfo")
        self.version = f"{info.text('name')} {info.text('version')}".strip() or None
        if self.request.session_id is None:
            where = {"cwd": str(self.request.cwd), "mcpServers": []}
            self.peer.ask("session/new", where, self._on_new)
        else:
            known = Event(result).part("agentCapabilities")
            self._go_on(self.request.session_id, known)

    def _go_on(self, session: str, known: Event) -> None:
        params = {
            "sessionId": session,
            "cwd": str(self.request.cwd),
            "mcpServers": [],
        }
        if known.raw("sessionCapabilities", "resume") is not None:
            method = "session/resume"
        elif known.raw("loadSession"):
            method = "session/load"
        else:
            self.is_refused = True
            self._end("the server cannot go on in an earlier session")
            return

        def on_loaded(result: Params | None, error: str | None) -> None:
            if result is None:
                self.is_refused = True
                self._end(f"session {session}: {error}")
            else:
                self._prompt(session)

        self.peer.ask(method, params, on_loaded)

    def _on_new(self, result: Params | None, error: str | None) -> None:
        session = Event(result or {}).text("sessionId")
        if session:
            self._prompt(session)
        else:
            self._end(f"the server made no session: {error or 'without an id'}")

    def _prompt(self, session: str) -> None:
        self.session = session
        self.is_prompted = self.updates.is_open = True
        blocks = [{"type": "text", "text": self.request.prompt}]
        params = {"sessionId": session, "prompt": blocks}
        self.peer.ask("session/prompt", params, self._on_answered)

    def _on_answered(self, result: Params | None, error: str | None) -> None:
        if result is None:
            self._end(f"the server could not answer: {error}")
            return
        self.tokens = Event(result).part("usage")
        reason = result.get("stopReason")
        if reason in _GOOD_ENDS or self.is_cancelled:
            self._end()
        else:
            self._end(f"the agent stopped without an answer: {reason}")

    def _on_notice(self, method: str, params: Params) -> None:
        update = params.get("update")
        if method == "session/update" and isinstance(update, dict):
            self.updates.take(update)

    def _on_request(self, method: str, params: Params) -> Params | None:
        if method != "session/request_permission":
            return None
        if self.is_cancelled:
            return _CANCELLED
        asked = Event(params)
        kind = asked.text("toolCall", "kind") or "other"
        is_allowed = not {kind, ALL_TOOLS}.isdisjoint(self.agent.tools)
        wish = "allow" if is_allowed else "reject"
        if not is_allowed:
            title = asked.text("toolCall", "title") or "a tool"
            self.denied.append(f"{kind}: {title}")
        options: dict[str, str] = {}
        for option in asked.parts("options"):
            if isinstance(option.raw("optionId"), str):
                options.setdefault(option.text("kind"), option.raw("optionId"))
        # Once rather than always.
        chosen = options.get(f"{wish}_once") or options.get(f"{wish}_always")
        if chosen is None:
            return _CANCELLED
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    def _failure(self, result: ProcessResult) -> Failure | None:
        if self.failure is not None:
            return self.failure
        if self.is_over and not self.is_cancelled:
            # It answered; how it ended then is its own affair.
            return None
        if result.failure is not None:
            return result.failure
        name = self.agent.argv[0]
        message = f"'{name}' ended before it had answered"
        return Failure(phase="agent", message=message)

    def _warnings(self, result: ProcessResult) -> tuple[str, ...]:
        found = [one_line(f"not allowed: {each}", _SHOWN_CHARS) for each in self.denied]
        if self.denied:
            found.append(f"allow kinds of tools with agents.{self.agent.label}.tools")
        if self.peer.noise:
            noise = count_of(self.peer.noise, "line")
            found.append(f"not of its protocol: {noise} of the server")
        if self.updates.is_cut:
            found.append("the agent said more than is kept of a run")
        # That a server stays until it is stopped is the rule, not a remark.
        return (*found, *(() if result.was_over else result.warnings))

    def _usage(self) -> tuple[Usage, Usage | None]:
        """Return what this run cost, and the session's money so far."""
        earlier = self.request.session_total
        before = earlier.cost_usd if earlier is not None else None
        cost = self.updates.cost_usd
        usage = Usage(
            turns=len(self.updates.speech.turns),
            input_tokens=self.tokens.number("inputTokens"),
            output_tokens=self.tokens.number("outputTokens"),
            duration_ms=int((time.monotonic() - self.started) * 1000),
            cost_usd=None if cost is None else max(0.0, cost - (before or 0.0)),
        )
        if cost is None:
            return usage, None
        total = Usage(
            turns=0, input_tokens=0, output_tokens=0, duration_ms=0, cost_usd=cost
        )
        return usage, total
