"""What a CLI is to its adapter: data, and a reader for each of its events."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from uwfgit.agents.base import SessionFiles
from uwfgit.agents.clis.transcript import Transcript
from uwfgit.agents.foreign_json import Event


class Invocation(Struct, frozen=True, kw_only=True):
    """What one call's arguments are made of.

    ``session`` is the one to go on with, ``new_id`` the name of a fresh one, for
    kinds that let the caller choose; ``prompt`` is for those that do not read stdin.
    """

    session: str | None
    new_id: str
    model: str | None
    max_turns: int | None
    tools: tuple[str, ...] | None
    args: tuple[str, ...]
    prompt: str


class LoginStatus(Struct, frozen=True, kw_only=True):
    """How a CLI is asked whether it has a login, where its answer can be trusted.

    Attributes:
        words: What it is called with; without a login it exits with code 1.
        denial: What it says then.
        known_by: What its help holds if it knows the words: one that does not
            would take them for a prompt.
        may_do_without: Whether its arguments, variables or settings may give it
            what the answer does not count; nothing is asked then.
    """

    words: tuple[str, ...]
    denial: re.Pattern[str]
    known_by: str = ""
    may_do_without: Callable[[Sequence[str], Mapping[str, str]], bool]


class Cli(Struct, frozen=True, kw_only=True):
    """One kind.

    Attributes:
        kind: Its name.
        install: The command that installs it.
        login: How one gets it a login.
        update: The command that brings it up to date.
        arguments: Makes its arguments.
        readers: What to do with each of its events.
        event_name: Which of them an event is.
        terminal: The event that ends a run, as people are told.
        session: What its session ids look like.
        streams: Whether it tells its answer as it comes.
        tells_version: Whether its events name its version.
        tells_cost: Whether its events say what a run cost.
        prompt_on_stdin: Whether it reads its prompt there.
        environment: Variables it is given unless the user sets them.
        explain_exit: What its exit codes mean.
        exit_statuses: The vendor's HTTP statuses that its exit codes stand for.
        session_files: Says where it keeps its sessions, if they can be kept.
            Takes the program's name.
        help: The words that print its options.
        options: Those that an older one does not know.
        login_status: How it is asked for its login; ``None`` where that proves nothing.
        resume: The words before a session's id in its interactive command.
        session_on_stderr: Finds the session's id there, of a kind without events.
    """

    kind: str
    install: str
    login: str
    update: str
    arguments: Callable[[Invocation], list[str]]
    readers: Mapping[str, Callable[[Transcript, Event], None]]
    event_name: Callable[[Event], str]
    terminal: str
    session: re.Pattern[str] = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,127}")
    streams: bool = False
    tells_version: bool = False
    tells_cost: bool = False
    prompt_on_stdin: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    explain_exit: Mapping[int, str] = field(default_factory=dict)
    exit_statuses: Mapping[int, int] = field(default_factory=dict)
    session_files: Callable[[str], SessionFiles] | None = None
    session_on_stderr: re.Pattern[str] | None = None
    help: tuple[str, ...] = ("--help",)
    options: tuple[str, ...] = ()
    login_status: LoginStatus | None = None
    resume: tuple[str, ...] = ("--resume",)

    @property
    def has_events(self) -> bool:
        """Whether it tells events; all that another prints is its answer."""
        return bool(self.readers)
