"""Arguments as they are typed: hashes, times, what may stand in a file or on stdin."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec.structs import replace

from uwfgit.cli.frame.context import CommandContext
from uwfgit.constants import MAX_BLOB_BYTES
from uwfgit.errors import InvalidError, NotFoundError, UsageError
from uwfgit.store.files import read_plain

if TYPE_CHECKING:
    from uwfgit.config import Limits

_SPAN: Final = re.compile(r"([0-9]{1,6})([dhm])", re.ASCII)
_UNIT_MS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000}
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
ThreadArgument = Annotated[
    str,
    typer.Argument(
        metavar="THREAD",
        help="An id, a unique start of one, a unique end of at least 4 "
        "characters, or @last.",
    ),
]
InputsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        metavar="NAME=VALUE",
        help="What the workflow asks for; =@FILE is a file's text.",
    ),
]
InputsFileOption = Annotated[
    str | None,
    typer.Option("--inputs", metavar="FILE", help="The same, many in a JSON file."),
]
TellOption = Annotated[
    str | None,
    typer.Option(
        "--prompt",
        "-p",
        metavar="TEXT",
        help="What to tell the agent; - is stdin, @FILE a file.",
    ),
]
AgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="AGENT",
        help="Who does the work: an alias, or KIND:ARG such as scripted:FILE.",
    ),
]
CwdOption = Annotated[
    str | None,
    typer.Option("--cwd", metavar="DIR", help="Let the agent work in this folder."),
]
TrustOption = Annotated[
    bool,
    typer.Option("--trust", help="Run it although others made it; asked for once."),
]
CountOption = Annotated[
    int | None,
    typer.Option("--count", "-c", metavar="N", help="Run up to N steps instead of 1."),
]
AllOption = Annotated[
    bool, typer.Option("--all", help="Run until the thread stops (limits.maxSteps).")
]
FreshOption = Annotated[
    bool,
    typer.Option("--fresh", help="Begin a new session: the agent remembers nothing."),
]
BudgetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        metavar="NAME=N",
        help="Raise a budget for this run: cost=5, tokens, turns or minutes.",
    ),
]
MemoryOption = Annotated[
    bool,
    typer.Option("--memory", help="Take what others' agents remembered, unproven."),
]
WaitOption = Annotated[
    str | None,
    typer.Option(
        "--wait",
        metavar="TIME",
        help="Wait for a vendor's limit that ends within 30m, 6h, 2d …",
    ),
]
BranchOption = Annotated[
    str | None,
    typer.Option(
        "--branch", metavar="NAME", help="The branch of the work tree; made new."
    ),
]
BackgroundOption = Annotated[
    bool,
    typer.Option(
        "--background", help="Return once it runs; it goes on without the terminal."
    ),
]

_MOST_BYTES: Final = 4 * MAX_BLOB_BYTES
"""Of an argument: no node can hold as much, however widely its JSON is written."""


def read_text(context: CommandContext, argument: str, *, what: str) -> str:
    """Read a text argument: itself, all of stdin for ``-``, a file for ``@FILE``.

    A text that begins with ``@`` itself is written with two of them.

    Args:
        what: Name of the argument, for messages.

    Raises:
        NotFoundError: There is no such file.
        InvalidError: What was read is not UTF-8, or the file cannot be read.
    """
    if argument == "-":
        return _decode(read_stdin(context, what), f"{what} on stdin")
    if argument.startswith("@@"):
        return require_text(argument[1:], what)
    if argument.startswith("@"):
        return _decode(_read_file(context, argument[1:], what), argument[1:])
    return require_text(argument, what)


def require_text(argument: str, what: str) -> str:
    """Return an argument that is text, as all that is recorded has to be.

    Raises:
        InvalidError: It holds other bytes.
    """
    _decode(os.fsencode(argument), what)
    return argument


def require_least(least: int, **numbers: float | None) -> None:
    """See that options are a number or more, where they are given.

    Raises:
        UsageError: One is less; names it.
    """
    for name, value in numbers.items():
        if value is not None and value < least:
            option = name.replace("_", "-")
            raise UsageError(f"--{option}: {value:g} is not {least} or more")


def read_file(context: CommandContext, name: str, *, what: str) -> str:
    """Read the text of a file that an argument names, or all of stdin for ``-``.

    Raises:
        NotFoundError: There is no such file.
        InvalidError: What was read is not UTF-8, or the file cannot be read.
    """
    if name == "-":
        return _decode(read_stdin(context, what), f"{what} on stdin")
    if not name:
        raise UsageError(f"{what} is empty", hint=f"write {what} FILE")
    hint = f"write {what} {name[1:]}, without the '@'" if name[0] == "@" else None
    return _decode(_read_bytes(context, name, hint=hint), name)


def read_stdin(context: CommandContext, what: str) -> bytes:
    """Read all of stdin, for the one argument that is ``-``.

    Raises:
        UsageError: There is none, or another argument has taken it.
        InvalidError: It is too large.
    """
    if sys.stdin is None:
        raise UsageError(f"{what} is '-', but there is no stdin")
    if context.stdin_taker is not None:
        raise UsageError(
            f"{what} is '-', but stdin is that of {context.stdin_taker}",
            hint="give one of them in a file",
        )
    context.stdin_taker = what
    data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise InvalidError(f"{what} on stdin is larger than {_MOST_BYTES // 2**20} MiB")
    return data


def _read_file(context: CommandContext, name: str, what: str) -> bytes:
    if not name:
        raise UsageError(f"{what} is '@', but names no file", hint="write @FILE")
    hint = "if the text itself begins with '@': write '@@', or give it on stdin: -"
    return _read_bytes(context, name, hint=hint)


def _read_bytes(context: CommandContext, name: str, *, hint: str | None) -> bytes:
    try:
        # A pipe too, as a shell's <(…) makes: whoever runs the command named it.
        return read_plain(context.resolve(name), most=_MOST_BYTES, any_kind=True)
    except FileNotFoundError as exc:
        raise NotFoundError("file", name, hint=hint) from exc
    except OSError as exc:
        raise InvalidError(f"cannot read '{name}': {exc.strerror}") from exc


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InvalidError(f"{name} is not UTF-8 (byte {exc.start})") from exc


def read_json(context: CommandContext, argument: str, *, what: str) -> Any:  # noqa: ANN401 - a JSON value
    """Read a JSON argument: itself, stdin for ``-``, a file for ``@FILE``.

    Raises:
        NotFoundError: There is no such file.
        InvalidError: It is no JSON; says where.
    """
    text = read_text(context, argument, what=what)
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except json.JSONDecodeError as exc:
        raise InvalidError(
            f"{what} does not parse: {exc.msg}: line {exc.lineno} column {exc.colno}",
            hint="text goes in quotes: '\"like this\"'",
        ) from exc
    except RecursionError as exc:
        raise InvalidError(f"{what} is nested too deep") from exc
    except ValueError as exc:
        # Python refuses to read so many digits; no node may hold as large a number.
        raise InvalidError(f"{what} has an integer beyond 2^53-1") from exc


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InvalidError(f"key '{key}' is given twice in one object")
            seen.add(key)
    return value


def _refuse(constant: str) -> Any:  # noqa: ANN401 - never returns
    raise InvalidError(f"{constant} is not a JSON value")


def parse_span(text: str) -> int | None:
    """Read a span of time such as 7d, 12h or 30m, in ms; ``None`` when it is none."""
    span = _SPAN.fullmatch(text)
    return None if span is None else int(span[1]) * _UNIT_MS[span[2]]


def parse_time(text: str, *, option: str, now_ms: int) -> int:
    """Read a point in time, in ms since 1970.

    A span counts back from now; a date is its midnight in UTC; a date-time
    without a zone is local.

    Raises:
        UsageError: It is none of these; names the option.
    """
    wanted = text.strip()
    span = parse_span(wanted)
    if span is not None:
        return now_ms - span
    try:
        found = datetime.fromisoformat(wanted)
        if _DATE.fullmatch(wanted):
            found = found.replace(tzinfo=UTC)
        return int(found.timestamp() * 1000)
    except (ValueError, OverflowError, OSError) as exc:
        raise UsageError(
            f"{option}: '{text}' is not a time",
            hint="for example 7d, 12h, 30m, 2026-05-01 or 2026-05-01T12:00",
        ) from exc


_BUDGETS: Final = {
    "cost": "max_cost_usd",
    "tokens": "max_tokens",
    "turns": "max_turns",
    "minutes": "max_minutes",
}


def read_budget(limits: Limits, words: Sequence[str]) -> Limits:
    """Return limits with the budgets that ``--budget`` sets for a run.

    Raises:
        UsageError: A word is not NAME=N.
    """
    for word in words:
        name, _, text = word.partition("=")
        try:
            amount = float(text)
        except ValueError:
            amount = 0.0
        if name not in _BUDGETS or not 0 < amount < math.inf:
            raise UsageError(
                f"--budget: '{word}' is not NAME=N",
                hint=f"names: {', '.join(_BUDGETS)}; for example cost=5",
            )
        value: Any = int(amount) if name in {"tokens", "turns"} else amount
        limits = replace(limits, **{_BUDGETS[name]: value})
    return limits
