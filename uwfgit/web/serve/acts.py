"""What a page may set going: a command of ours, with words that nobody else chooses.

The only place that makes them. Text of a form reaches a command on its stdin, or
behind an ``=``; ids, names and numbers are checked before. So no text can be taken
for an option, a file to be read, or another program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import UNSET, Struct, field

from uwfgit.errors import InvalidError, UwfError
from uwfgit.ids import ThreadId
from uwfgit.model.workflow.inputs import parse_input
from uwfgit.web.render.forms.form import INPUT
from uwfgit.web.render.forms.start import (
    default_text,
    input_choices,
    input_text,
    input_types,
)

_STATUS: Final = {
    "not-found": 404,
    "refused": 403,
    "usage": 400,
    "invalid": 400,
    "ambiguous": 400,
    "workflow": 400,
    "client-answer": 502,
    "client-gone": 503,
    "client-timeout": 504,
}
_CONFLICT: Final = 409
_FAILED: Final = 500
_ORDINARY: Final = (0, 3)
_TEXT: Final = 200_000


class Command(Struct, frozen=True, kw_only=True):
    """Words of the command line, and what it finds on stdin.

    With ``is_text`` its words to people are wanted: ``out`` and ``err`` of the
    outcome's value.
    """

    words: tuple[str, ...]
    stdin: str | None = None
    is_text: bool = False
    inputs: Mapping[str, Any] | None = None
    """What a workflow asks for; handed over in a file that only this user reads."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What a command printed, as JSON, and how it ended."""

    code: int
    value: Mapping[str, Any] = field(default_factory=dict)
    error: Mapping[str, Any] | None = None

    @property
    def is_done(self) -> bool:
        """Whether it did what it was asked to."""
        return self.error is None and self.code in _ORDINARY

    @property
    def http_status(self) -> int:
        """The status that tells it over HTTP."""
        if self.is_done:
            return 200
        code = str((self.error or {}).get("code", ""))
        return _STATUS.get(code, _FAILED if code in {"", "bug"} else _CONFLICT)


class RefusedError(UwfError):
    """What may not be done from here."""

    code = "refused"


_SWITCH: Final = {
    **dict.fromkeys(("1", "on", "true"), True),
    **dict.fromkeys(("", "0", "off", "false"), False),
}

Run = Callable[[Command], Outcome]
"""Runs a command as this user would, and waits for it."""


class Request(Struct, frozen=True, kw_only=True):
    """The fields of a form or of a JSON body."""

    fields: Mapping[str, Any]
    agents: Sequence[str]

    def text(self, name: str) -> str:
        """Return a text; "" when there is none.

        Raises:
            InvalidError: It is none, or too long.
        """
        value = self.fields.get(name, "")
        if value is None:
            return ""
        if not isinstance(value, str) or len(value) > _TEXT or "\0" in value:
            raise InvalidError(f"{name}: is not a text of at most {_TEXT:,} characters")
        return value.replace("\r\n", "\n")

    def number(self, name: str) -> int | None:
        """Return a number of a step; ``None`` when there is none.

        Raises:
            InvalidError: It is none.
        """
        value = self.fields.get(name)
        if value is None or value == "":
            return None
        text = str(value)
        if isinstance(value, bool) or not text.isascii() or not text.isdigit():
            raise InvalidError(f"{name}: '{text}' is not a number")
        return int(text[:9])

    def is_on(self, name: str) -> bool:
        """Whether a box was ticked, or its field is true.

        Raises:
            InvalidError: It is neither true nor false.
        """
        value = self.fields.get(name)
        word = "" if value is None else str(value).casefold()
        if word not in _SWITCH:
            raise InvalidError(f"{name}: is not true or false")
        return _SWITCH[word]

    def agent(self) -> tuple[str, ...]:
        """Return the words that choose an agent: one of the user's own aliases.

        Raises:
            InvalidError: It is none; a page must not name a command to run.
        """
        value = self.text("agent")
        if not value:
            return ()
        if value not in self.agents:
            raise InvalidError(
                f"agent: '{value}' is not one of this user's agents",
                hint=f"agents: {', '.join(self.agents) or 'none is configured'}",
            )
        return (f"--agent={value}",)


def thread_command(thread: ThreadId, act: str, request: Request) -> Command:
    """Return the command for an act on a thread.

    Raises:
        InvalidError: The form does not fit.
    """
    make = THREAD_ACTS.get(act)
    if make is None:
        raise InvalidError(f"'{act}' is not an act")
    return make(thread, request)


def _exec(thread: ThreadId, request: Request) -> Command:
    count = ("--all",) if request.is_on("all") else ()
    trust = ("--trust",) if request.is_on("trust") else ()
    words = ("thread", "exec", thread, "--background")
    return Command(words=(*words, *count, *trust, *request.agent()))


def _with_text(
    thread: ThreadId, request: Request, *, verb: str, is_needed: bool
) -> Command:
    text = request.text("prompt")
    if is_needed and not text.strip():
        raise InvalidError("the correction is empty", hint="say what to do differently")
    told = ("-p", "-") if text.strip() else ()
    trust = ("--trust",) if request.is_on("trust") else ()
    return Command(
        words=("thread", verb, thread, "--background", *told, *trust, *request.agent()),
        stdin=text if told else None,
    )


def _option(name: str, value: str | int | None) -> tuple[str, ...]:
    """Write an option behind an ``=``; none for what was left empty."""
    return () if value is None or value == "" else (f"--{name}={value}",)


THREAD_ACTS: Final[Mapping[str, Callable[[ThreadId, Request], Command]]] = {
    "exec": _exec,
    "resume": partial(_with_text, verb="resume", is_needed=False),
    "poke": partial(_with_text, verb="poke", is_needed=True),
    "fork": lambda thread, asked: Command(
        words=("thread", "fork", thread, *_option("at", asked.number("at")))
    ),
    "stop": lambda thread, _: Command(words=("thread", "stop", thread)),
    "pause": lambda thread, _: Command(words=("thread", "pause", thread)),
    "cancel": lambda thread, asked: Command(
        words=(
            *("thread", "cancel", thread),
            *_option("reason", asked.text("reason").strip()),
        )
    ),
    "approve": lambda thread, asked: Command(
        words=(
            *("review", "approve", thread),
            *_option("step", asked.number("step")),
            *_option("message", asked.text("message").strip()),
        )
    ),
}


def typed_inputs(
    schemas: Mapping[str, Any], fields: Mapping[str, str]
) -> dict[str, Any]:
    """Read what a form holds of inputs: numbers and ticks as what they are.

    An empty field is one that was not filled in, but for a text that was emptied.
    """
    values: dict[str, Any] = {}
    for name, asked in schemas.items():
        schema = asked if isinstance(asked, Mapping) else {}
        text, choices = fields.get(f"{INPUT}{name}"), input_choices(schema)
        if text is None and input_types(schema) == ("boolean",) and choices is None:
            values[name] = False
        elif text is not None:
            given = _typed(schema, text.replace("\r\n", "\n"))
            values.update({} if given is UNSET else {name: given})
    return values


def _typed(schema: Mapping[str, Any], text: str) -> Any:  # noqa: ANN401 - a JSON value
    """Read a field by its schema; what is no such value stays a text, and is refused.

    A field as it was found is left to the default, whatever is shown of that.
    """
    choices, kinds = input_choices(schema), input_types(schema)
    if choices is not None:
        found = [each for each in choices if input_text(each) == text]
        return found[0] if found else (text or UNSET)
    if kinds == ("boolean",):
        return bool(text)
    if text == default_text(schema) and ("default" in schema or not text):
        return UNSET
    if not text and kinds and "string" not in kinds:
        return UNSET
    return parse_input(schema, text)


def start_command(
    workflow: str, request: Request, inputs: Mapping[str, Any]
) -> Command:
    """Return the command that starts a thread of a workflow whose name is known.

    Raises:
        InvalidError: There is no task.
    """
    task = request.text("prompt")
    if not task.strip():
        raise InvalidError("the task is empty", hint="say what is to be done")
    words = ("thread", "start", workflow, "-p", "-")
    return Command(words=words, stdin=task, inputs=inputs or None)
