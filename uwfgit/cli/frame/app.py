"""The one entry: runs a command, and turns what it raises into an exit code."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Final, TextIO

import typer

from uwfgit import errors
from uwfgit.cli.frame.commands import CONTEXT, Group, Root, value_options
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.options import GlobalOptions, root_options
from uwfgit.cli.frame.output import format_json, format_yaml, talk
from uwfgit.cli.frame.screen import shown, shown_lines
from uwfgit.errors import UsageError, UwfError

EXIT_CODES: Final[dict[type[UwfError], int]] = {
    errors.UwfError: 1,
    errors.NotFoundError: 1,
    errors.AmbiguousError: 1,
    errors.InvalidError: 1,
    errors.WorkflowError: 1,
    errors.CorruptError: 1,
    errors.FormatVersionError: 1,
    errors.EarlierFormatError: 1,
    errors.SizeError: 1,
    errors.OverrunError: 1,
    errors.StateError: 1,
    errors.BudgetError: 1,
    errors.RoutingFailedError: 1,
    errors.UntrustedError: 1,
    errors.StoreError: 1,
    errors.ConfigError: 1,
    errors.RemoteError: 1,
    errors.RejectedError: 1,
    errors.AuthError: 1,
    errors.UsageError: 2,
    errors.ConflictError: 4,
    errors.RefConflictError: 4,
    errors.LockedError: 4,
    errors.AgentError: 5,
    errors.AgentTimeoutError: 5,
    errors.OutputError: 5,
}
"""Error class → exit code; every class of ``errors.py`` has a row."""

RUN_EXITS: Final[dict[str, int]] = {
    "done": 0,
    "refused": 1,
    "waiting": 3,
    "held": 4,
    "agent-failed": 5,
    "interrupted": 130,
}
"""The end of a run, ``engine.run.ends.RunEnd`` → exit code; every end has a row."""

EXIT_MEANINGS: Final = {
    "0": "done; the thread is idle or at its end",
    "1": "expected failure, invalid input, a check that found problems",
    "2": "usage",
    "3": "the thread is waiting for a person",
    "4": "someone else holds it, or won a race; safe to try again",
    "5": "an agent or model failed; what it said was kept",
    "70": "a bug; the path of its log is printed",
    "130, 141, 143": "interrupted, closed pipe, terminated",
}

EXIT_BUG: Final = 70
EXIT_INTERRUPTED: Final = 130
EXIT_PIPE: Final = 141
EXIT_TERMINATED: Final = 143

# Typer carries click inside and exports of its exceptions only this one's child.
_USAGE_ERROR: Final[type[Exception]] = typer.BadParameter.__mro__[1]


_PROBLEMS: Final = 20
_SYSTEMS_OWN: Final = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EROFS,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ESTALE,
        errno.EACCES,
        errno.ENAMETOOLONG,
    }
)
"""What any file may meet, whoever opened or named it: no bug."""

_signals: list[int] = []
"""Signals that came, in case their exception is turned into a result below."""


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP came; handled like Ctrl-C, so that children are stopped."""


def run() -> None:
    """Run the program and leave the process with its exit code."""
    if sys.getfilesystemencoding() != "utf-8":
        # Under a locale such as C, a path or an argument that is not ASCII would
        # become text that no node can hold.
        words = [sys.executable, "-X", "utf8", *sys.orig_argv[1:]]
        os.execv(sys.executable, words)  # noqa: S606 - this very program
    code = EXIT_INTERRUPTED
    with suppress(KeyboardInterrupt):
        # Of two, the second may come while the first is told of.
        code = main()
    # What is over stays so: no late Ctrl-C, no terminal that went away and
    # cannot be flushed to, gives Python a reason for an exit code of its own.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            _silence(stream)
    # What is left goes with the process; Python would first look through all of it.
    gc.freeze()
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; never raises.

    Args:
        argv: The words after ``uwf``; those of the process by default.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    _signals.clear()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            with suppress(ValueError, OSError):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    context = CommandContext(
        options=GlobalOptions(),
        environment=dict(os.environ),
        command=" ".join(["uwf", *words[:2]]),
    )
    try:
        with _signals_raise():
            code = run_command(words, context)
            for note in context.output.notes if code == 0 else ():
                talk(note)
            if sys.stdout is not None:
                sys.stdout.flush()
    except Terminated:
        talk("terminated")
        code = EXIT_TERMINATED
    except KeyboardInterrupt:
        talk("interrupted")
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader went away; nothing may be flushed into the pipe at exit.
        _silence(sys.stdout)
        code = EXIT_PIPE
    # An interrupted agent is recorded, and the run ends as a result; or as an
    # error, when it cannot be told to a terminal that was closed.
    return EXIT_TERMINATED if code and _signals else code


def run_command(words: list[str], context: CommandContext) -> int:
    """Run one command in a given context and give its exit code.

    Raises:
        KeyboardInterrupt, BrokenPipeError: As they come.
    """
    try:
        # Not root.main(): it would turn Ctrl-C into an exit code of its own. The
        # parser takes words away.
        given = [*words] or ["--help"]
        with (
            context.closing,
            make_program().make_context("uwf", given, obj=context) as ctx,
        ):
            code = ctx.command.invoke(ctx)
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        raise
    except typer.Exit as exc:
        return exc.exit_code
    except Exception as exc:  # noqa: BLE001 - the edge: whatever is unknown is a bug
        error = _as_error(exc)
        if not context.has_begun and _asks_for_json(words, exc):
            context.options.format = "json"
        if error is None:
            message, path = keep_bug(exc, context)
            hint = (
                f"the traceback is in {path}" if path else "--debug shows the traceback"
            )
            _print_error("bug", message, hint, context)
            return EXIT_BUG
        return _report(error, context)


def _as_error(exc: Exception) -> UwfError | None:
    if isinstance(exc, UwfError):
        return exc
    if isinstance(exc, _USAGE_ERROR):
        return _usage_error(exc)
    if isinstance(exc, OSError) and exc.strerror and exc.filename is None:
        # No file of ours: a stream of the user's, such as a full disk. What is
        # left of it would fail again at exit, with an exit code of Python's.
        _silence(sys.stdout)
        return _refused("the system refused", exc)
    if isinstance(exc, OSError) and exc.errno in _SYSTEMS_OWN:
        return _refused(f"the system refused '{exc.filename}'", exc)
    return None


def _refused(what: str, exc: OSError) -> UwfError:
    error = errors.StoreError(f"{what}: {exc.strerror}")
    error.__cause__ = exc
    return error


def make_program() -> Root:
    """Make the command tree."""
    return Root(
        name="uwf",
        help="Run multi-role agent workflows step by step, and keep every step in git.",
        params=[root_options()[0]],
        rich_markup_mode=None,
        context_settings=dict(CONTEXT),
    )


def _usage_error(exc: BaseException) -> UsageError:
    message = str(getattr(exc, "format_message", exc.__str__)())
    message = message.strip().removesuffix(".")
    ctx = getattr(exc, "ctx", None)
    hint = None
    if (
        ctx is not None
        and isinstance(ctx.command, Group)
        and message == "Missing command"
    ):
        hint = f"commands: {', '.join(ctx.command.list_visible(ctx))}"
    path = ctx.command_path if ctx is not None else "uwf"
    return UsageError(
        message[:1].lower() + message[1:] if message else "no command given",
        hint=hint or f"'{path} --help' shows how it is called",
    )


def _report(error: UwfError, context: CommandContext) -> int:
    if context.options.debug:
        talk(shown_lines("".join(traceback.format_exception(error))))
    hint = None
    if isinstance(error, errors.NotFoundError):
        from uwfgit.cli.frame.other_stores import find_elsewhere

        hint = find_elsewhere(error, context)
    hint = hint or error.hint
    problems = error.problems if isinstance(error, errors.InvalidError) else ()
    told = (error.code, error.message, hint, context)
    _print_error(*told, problems=map(str, problems), needs=error.needs)
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


def _print_error(
    code: str,
    message: str,
    hint: str | None,
    context: CommandContext,
    *,
    problems: Iterable[str] = (),
    needs: Sequence[str] = (),
) -> None:
    message = context.mask_message(message)
    hint = hint and context.mask_message(hint)
    told = {"code": code, "message": message, "hint": hint}
    if context.ready is not None:
        context.ready.tell({"error": told})
    all_of_them = [context.mask_message(each) for each in problems]
    # The message names the first and how many more there are.
    more = {"problems": all_of_them} if len(all_of_them) > 1 else {}
    if needs:
        more["needs"] = list(needs)
    error = {"error": {**told, **more}}
    if context.is_told:
        return
    if context.options.format == "json":
        talk(format_json(error))
    elif context.options.format == "yaml":
        talk(format_yaml(error).rstrip())
    else:
        talk(f"error: {shown(message)}")
        if hint:
            talk(f"hint: {shown(hint)}")
        for each in all_of_them[1:_PROBLEMS]:
            talk(f"also: {shown(each)}")


def _asks_for_json(words: Sequence[str], exc: BaseException) -> bool:
    """Whether ``--json`` stands in words that the parser gave up on."""
    ctx = getattr(exc, "ctx", None)
    taking = value_options(ctx) if ctx is not None else frozenset()
    before = words[: words.index("--")] if "--" in words else words
    pairs = zip(("", *before), before, strict=False)
    return any(
        (word in {"--json", "--format=json"} and last not in taking)
        or (last, word) == ("--format", "json")
        for last, word in pairs
    )


def keep_bug(exc: BaseException, context: CommandContext) -> tuple[str, Path | None]:
    """Write a bug's traceback into a log; give a line about it, and the log."""
    text = context.mask_message("".join(traceback.format_exception(exc)))
    if context.options.debug:
        talk(shown_lines(text))
    path = _write_crash(text, context)
    last = str(exc).partition("\n")[0]
    return f"this is a bug in uwf: {type(exc).__name__}: {last}".rstrip(": "), path


def _write_crash(text: str, context: CommandContext) -> Path | None:
    for folder in _log_folders(context):
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / f"crash-{os.getpid()}-{os.urandom(4).hex()}.log"
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
            return path
    return None


def _log_folders(context: CommandContext) -> Iterator[Path]:
    with suppress(UwfError, OSError):
        store = context.store_choice.path
        if (store / "uwf").is_dir():
            yield store / "uwf" / "logs"
    with suppress(UwfError, OSError):
        yield context.home / "logs"


def _silence(stream: TextIO) -> None:
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def _signals_raise() -> Iterator[None]:
    def stop(number: int, _frame: FrameType | None) -> None:
        _signals.append(number)
        raise Terminated

    # A hang-up that is ignored, as under nohup, stays so.
    wanted = [
        number
        for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
        if signal.getsignal(number) != signal.SIG_IGN
    ]
    try:
        before = {number: signal.signal(number, stop) for number in wanted}
    except ValueError:
        # Not the main thread: somebody embeds us and keeps the signals.
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
