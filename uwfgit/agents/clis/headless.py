"""CLIs that people have, run headless: what is the same for all of them.

A kind is data (``Cli``).
"""

from __future__ import annotations

import dataclasses
import re
import shutil
import uuid
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.agents.base import (
    AgentReply,
    AgentRequest,
    Failure,
    SessionFiles,
    SessionFilesError,
    Usage,
)
from uwfgit.agents.children.complaints import check_command, explain_end, one_line
from uwfgit.agents.children.lines import MAX_LINE_BYTES
from uwfgit.agents.children.process import (
    STDERR_SHOWN_CHARS,
    ProcessResult,
    TimeLimits,
    run_process,
)
from uwfgit.agents.clis.cli import Cli, Invocation
from uwfgit.agents.clis.examine import examine
from uwfgit.agents.clis.transcript import Transcript
from uwfgit.agents.foreign_json import Event, clean_text, read_event
from uwfgit.agents.stdio import merge_environment, time_limits
from uwfgit.constants import MAX_TIME

STREAM_IDLE_SECONDS: Final = 300.0
"""The longest silence of a kind that tells its answer as it comes."""
_VERSION_SECONDS: Final = 15.0
_NOISE_CHARS: Final = 4_000
_UNREAD: Final = (
    f"an event of more than {MAX_LINE_BYTES // 1024 // 1024} MiB was not read"
)
_ARGUMENT_BYTES: Final = 120_000
_CUT_SHOWN_CHARS: Final = 1_000
_UNKNOWN_OPTION: Final = re.compile(
    r"(unknown|unexpected|unrecognized) (option|argument)s?|Unknown arguments?",
    re.IGNORECASE,
)
_USAGE: Final = re.compile(r"^(Usage|Options|Positionals):", re.MULTILINE)
_VERSION: Final = re.compile(r"\d+(?:\.\d+)+\S*")
_NOTICES: Final = re.compile(r"\A(?:\s*⚠[^\n]*\n)+")
"""What a program says of itself before its answer."""
_HTTP_STATUS: Final = re.compile(r"\bHTTP ([45]\d\d)\b")
_UNAUTHORIZED: Final = (401, 403)
_LIMITED: Final = 429
_HOPELESS: Final = (*_UNAUTHORIZED, _LIMITED)
_REFUSALS: Final = range(400, 500)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HeadlessAgent:
    """An installed CLI that is run once for each call."""

    cli: Cli
    label: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    model: str | None = None
    max_turns: int | None = None
    tools: tuple[str, ...] | None = None
    timeout_seconds: float | None = None
    has_sessions: bool = dataclasses.field(default=True, init=False)

    @property
    def kind(self) -> str:
        """The kind's name in the registry."""
        return self.cli.kind

    @property
    def tells_cost(self) -> bool:
        """Whether the CLI's events say what a run cost."""
        return self.cli.tells_cost

    def open_command(self, session: str | None) -> tuple[str, ...]:
        """Return the command of the CLI's own interactive session."""
        if session is None or not self._is_own(session):
            return (self.command,)
        return (self.command, *self.cli.resume, session)

    @property
    def session_files(self) -> SessionFiles | None:
        """Where the CLI keeps its sessions; ``None`` when they are no files."""
        return None if self.cli.session_files is None else _OwnFiles(agent=self)

    def check_up(self, environment: Mapping[str, str], *, cwd: Path) -> str | None:
        """Say why the CLI cannot be run, and how to fix it, in one line.

        It is asked what options it knows, and for its login where it tells.
        """
        return self.find_missing(environment, cwd=cwd) or examine(
            self.cli,
            self.command,
            self.args,
            cwd=cwd,
            environment=self._environment(environment),
        )

    def find_missing(self, environment: Mapping[str, str], *, cwd: Path) -> str | None:
        """Say why the CLI cannot be started, and how to fix it."""
        given = self._environment(environment)
        missing = self._find_missing(given)
        if missing is not None:
            return missing.message
        return check_command(self.command, cwd=cwd, environment=given)

    def run(self, request: AgentRequest) -> AgentReply:
        """Run the CLI once, in the session of the request if there is one."""
        environment = self._environment(request.environment)
        missing = self._find_missing(environment)
        if missing is not None:
            return AgentReply(text="", failure=missing)
        if not self._is_own(request.session_id):
            message = f"'{request.session_id}' is not a session of {self.kind}"
            failure = Failure(phase="agent", message=message)
            return AgentReply(text="", is_session_refused=True, failure=failure)
        call = self._invocation(request)
        reader = _Reader(
            cli=self.cli,
            run=Transcript(
                now_ms=request.now_ms,
                tell=request.on_turn,
                before=request.session_total,
                session_id=call.session,
            ),
            spent=request.on_usage,
        )
        result = run_process(
            (self.command, *self.cli.arguments(call)),
            prompt=request.prompt if self.cli.prompt_on_stdin else "",
            cwd=request.cwd,
            environment=environment,
            limits=self._limits(request),
            on_line=reader.hear if self.cli.has_events else None,
            is_over=(lambda: reader.run.is_over) if self.cli.has_events else None,
        )
        if not self.cli.has_events:
            reader.hear_all(result)
        return self._reply(reader, result, request, environment)

    def _environment(self, given: Mapping[str, str]) -> dict[str, str]:
        return {**self.cli.environment, **merge_environment(self.env, given)}

    def _find_missing(self, environment: Mapping[str, str]) -> Failure | None:
        if "/" in self.command or shutil.which(
            self.command, path=environment.get("PATH")
        ):
            return None
        return Failure(
            phase="agent",
            message=f"'{self.command}' is not on PATH; install it with "
            f"`{self.cli.install}`, or give its path in agents.{self.label}.command",
        )

    def _is_own(self, session: str | None) -> bool:
        return session is None or self.cli.session.fullmatch(session) is not None

    def _invocation(self, request: AgentRequest) -> Invocation:
        prompt = request.prompt.replace("\0", "\ufffd")
        file = request.environment.get("UWF_PROMPT_FILE", "")
        # Linux takes 128 KiB an argument.
        if len(request.prompt.encode()) > _ARGUMENT_BYTES and file:
            prompt = f"Your whole task stands in the file {file}. "
            prompt += "Read all of it, then do it."
        return Invocation(
            session=request.session_id,
            new_id=str(uuid.uuid4()),
            model=self.model,
            max_turns=self.max_turns,
            tools=self.tools,
            args=self.args,
            prompt=prompt,
        )

    def _limits(self, request: AgentRequest) -> TimeLimits:
        limits = time_limits(
            request, label=self.label, timeout_seconds=self.timeout_seconds
        )
        if (
            self.timeout_seconds is not None
            or not self.cli.streams
            or limits.idle_seconds <= STREAM_IDLE_SECONDS
        ):
            return limits
        setting = f"agents.{self.label}.timeoutSeconds"
        return replace(limits, idle_seconds=STREAM_IDLE_SECONDS, idle_setting=setting)

    def _reply(
        self,
        reader: _Reader,
        result: ProcessResult,
        request: AgentRequest,
        environment: Mapping[str, str],
    ) -> AgentReply:
        run = reader.run
        run.end_stream()
        failure = self._find_failure(reader, result)
        answer = run.answer or run.last_said
        version = run.version
        if not self.cli.tells_version and result.exit_code is not None:
            version = _find_version(self.command, environment.get("PATH", ""))
        return AgentReply(
            text=answer if failure is None else run.said,
            turns=run.turns,
            usage=run.usage,
            agent_version=version,
            session_id=run.session_id,
            session_total=run.session_total,
            is_session_refused=failure is not None
            and request.session_id is not None
            and _is_refused(run, result),
            model=run.model,
            exit_code=result.exit_code,
            warnings=(*result.warnings, *run.warnings),
            failure=failure,
        )

    def _find_failure(self, reader: _Reader, result: ProcessResult) -> Failure | None:
        """Return why the run is no good: it must have ended, well, and say so."""
        run, stopped = reader.run, result.failure
        if result.was_stopped or result.exit_code is None:
            return stopped
        if run.failure is not None:
            known = self.cli.exit_statuses.get(result.exit_code)
            run.http_status = run.http_status or known
            if run.http_status in _UNAUTHORIZED or run.is_logged_out:
                message = f"{run.failure.message}; {self.cli.login}"
                return replace(run.failure, message=message)
            if run.retry_at_ms is not None or run.http_status == _LIMITED:
                until = run.retry_at_ms and min(run.retry_at_ms, MAX_TIME * 1000)
                return replace(run.failure, phase="limit", retry_at_ms=until)
            return run.failure
        if stopped is not None:
            return self._explain(reader, result, stopped)
        return self._find_lack(reader, result)

    def _find_lack(self, reader: _Reader, result: ProcessResult) -> Failure | None:
        """Return what a run lacks that ended by itself and complained of nothing."""
        run = reader.run
        if reader.is_answer_unread:
            return Failure(phase="size", message=reader.unread)
        if not run.is_over:
            message = f"'{Path(self.command).name}' ended without its last event"
            why = _last_words(reader, result)
            return Failure(
                phase="agent", message=f"{message} ('{self.cli.terminal}'){why}"
            )
        if not (run.answer or run.last_said).strip():
            why = "" if self.cli.has_events else _last_words(reader, result)
            return Failure(phase="agent", message=f"the agent said nothing{why}")
        return None

    def _explain(
        self, reader: _Reader, result: ProcessResult, stopped: Failure
    ) -> Failure:
        """Put into words how the program ended, with the way on where it is known."""
        told = result.stderr_tail or reader.noise
        lines = [line for line in told.splitlines() if _UNKNOWN_OPTION.search(line)]
        usage = ["it printed how it is called"] if _USAGE.search(told) else []
        refused = next(iter((*lines, *usage)), None)
        if refused is not None and not reader.run.has_spoken:
            # Some print all their options below it.
            ending = explain_end(Path(self.command).name, result.exit_code or 1)
            return replace(
                stopped,
                message=f"{ending}: {one_line(refused, STDERR_SHOWN_CHARS)}; fix "
                f"agents.{self.label}.args, or bring it up to date with "
                f"`{self.cli.update}`",
            )
        known = self.cli.explain_exit.get(result.exit_code or 0)
        if known is not None:
            return replace(stopped, message=f"{stopped.message} ({known})")
        if not result.stderr_tail.strip() and reader.noise.strip():
            return replace(
                stopped, message=f"{stopped.message}{_last_words(reader, result)}"
            )
        return stopped


class _OwnFiles(Struct, frozen=True, kw_only=True):
    """The session files of one agent: its own variables say where they are."""

    agent: HeadlessAgent

    def read(
        self, session: str, *, cwd: Path, environment: Mapping[str, str]
    ) -> Mapping[str, bytes]:
        files = self._files(session)
        given = merge_environment(self.agent.env, environment)
        return files.read(session, cwd=cwd, environment=given)

    def write(
        self,
        session: str,
        files: Mapping[str, bytes],
        *,
        renew: bool,
        cwd: Path,
        environment: Mapping[str, str],
    ) -> str:
        given = merge_environment(self.agent.env, environment)
        return self._files(session).write(
            session, files, renew=renew, cwd=cwd, environment=given
        )

    def _files(self, session: str) -> SessionFiles:
        cli = self.agent.cli
        if cli.session_files is None or not cli.session.fullmatch(session):
            raise SessionFilesError(f"'{session[:80]}' is not a session of {cli.kind}")
        return cli.session_files(self.agent.command)


class _Reader(Struct, kw_only=True):
    """Hears the lines of a run and hands each event to its kind's reader."""

    cli: Cli
    run: Transcript
    spent: Callable[[Usage], None] | None = None
    """Told what the run has taken so far, as often as that changes."""
    noise: str = ""
    unread: str = ""
    """What is said of an event that was too long, once there was one."""

    def hear(self, line: str) -> None:
        event = read_event(line)
        if event is None and len(line.encode(errors="replace")) >= MAX_LINE_BYTES:
            shown = clean_text(line[:_CUT_SHOWN_CHARS])
            self.unread = _UNREAD
            self.run.say(f"[{self.unread}] {shown}")
        elif event is None:
            self.noise = f"{self.noise}\n{clean_text(line)}"[-_NOISE_CHARS:]
        else:
            self._take(event)

    def _take(self, event: Event) -> None:
        name = self.cli.event_name(event)
        read = self.cli.readers.get(name)
        if read is None:
            self.run.note_unknown(name)
            return
        before = self.run.usage
        read(self.run, event)
        usage = self.run.usage
        # What is over cannot be cut short any more: the answer is there.
        is_news = usage != before and not self.run.is_over
        if usage is not None and is_news and self.spent is not None:
            self.spent(usage)

    def hear_all(self, result: ProcessResult) -> None:
        """Take what a program without events printed for its answer."""
        pattern = self.cli.session_on_stderr
        found = pattern.search(result.stderr_tail) if pattern else None
        self.run.session_id = found[1] if found else self.run.session_id
        answer = _NOTICES.sub("", clean_text(result.stdout), count=1)
        if result.failure is None:
            self.run.say(answer)
            self.run.finish(answer)
            return
        self.noise = answer[-_NOISE_CHARS:]
        if answer.strip() and not result.was_stopped:
            # What it prints when it fails is its complaint.
            status = _HTTP_STATUS.search(answer)
            self.run.http_status = int(status[1]) if status else None
            self.run.fail(one_line(answer, STDERR_SHOWN_CHARS))

    @property
    def is_answer_unread(self) -> bool:
        """Whether what was too long is the answer, or the end that it comes with."""
        if not self.unread:
            return False
        answer = self.run.answer or self.run.last_said
        return not self.run.is_over or answer.startswith(f"[{self.unread}]")


def _last_words(reader: _Reader, result: ProcessResult) -> str:
    session = reader.cli.session_on_stderr
    told = (
        result.stderr_tail if session is None else session.sub("", result.stderr_tail)
    )
    tail = one_line(told or reader.noise, STDERR_SHOWN_CHARS)
    return f": {tail}" if tail else ""


def _is_refused(run: Transcript, result: ProcessResult) -> bool:
    """Whether the session was not gone on with and nothing was done.

    A login that is missing and a limit would meet a fresh session just the same.
    """
    if result.was_stopped or result.exit_code is None or result.exit_code < 0:
        return False
    status = run.http_status
    if status is not None and (status not in _REFUSALS or status in _HOPELESS):
        return False
    return not run.has_spoken and not run.is_logged_out


@lru_cache(maxsize=64)
def _find_version(command: str, path: str) -> str | None:
    """Ask a program for its version, once in the life of this one."""
    result = run_process(
        (command, "--version"),
        prompt="",
        cwd=Path("/"),
        environment={"PATH": path, "HOME": "/nonexistent"},
        limits=TimeLimits(idle_seconds=_VERSION_SECONDS, wall_seconds=_VERSION_SECONDS),
    )
    found = _VERSION.search(result.stdout)
    return found[0] if found else None
