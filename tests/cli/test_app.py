from __future__ import annotations

import errno
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from uwfgit import errors
from uwfgit.cli.frame.app import EXIT_CODES, EXIT_MEANINGS, RUN_EXITS, make_program
from uwfgit.cli.frame.catalog import CATALOG
from uwfgit.cli.frame.options import hidden_options
from uwfgit.cli.words.reference import iter_commands, root_context
from uwfgit.engine.run.ends import RunEnd
from uwfgit.errors import StoreError, UwfError
from uwfgit.model.node import META_TYPE
from uwfgit.store.canonical import Json

HEAVY = ("pygit2", "jsonschema", "httpx", "yaml", "pydantic", "rich")
UWF = [sys.executable, "-m", "uwfgit"]
ROOT = Path(__file__).parents[2]


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **changes}


def run(*words: str, **options: Json) -> subprocess.CompletedProcess[str]:
    facts = {"capture_output": True, "text": True, "env": environment(), **options}
    return subprocess.run([*UWF, *words], check=False, **facts)


def list_imported(
    words: tuple[str, ...], modules: tuple[str, ...], **options: Json
) -> tuple[int, list[str]]:
    """Run a command in a process; return its code and which modules it imported."""
    script = (
        "import json, sys\nfrom uwfgit.cli.frame.app import main\n"
        f"code = main({list(words)!r})\n"
        f"print(json.dumps([code, [m for m in {modules!r} if m in sys.modules]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
        **options,
    )
    code, found = json.loads(done.stdout.splitlines()[-1])
    return code, found


def test_every_error_class_has_an_exit_code() -> None:
    classes = {
        value
        for _, value in inspect.getmembers(errors, inspect.isclass)
        if issubclass(value, UwfError)
    }

    assert classes == set(EXIT_CODES)


@pytest.mark.parametrize("error", EXIT_CODES)
def test_an_error_leaves_with_the_code_of_its_kind(error: type[UwfError]) -> None:
    of_kind = {errors.UsageError: 2, errors.ConflictError: 4, errors.AgentError: 5}
    wanted = [code for kind, code in of_kind.items() if kind in error.__mro__]

    assert [EXIT_CODES[error]] == (wanted or [1])


@pytest.mark.parametrize("words", [("--help",), ("--version",), (), ("-h",)])
def test_the_top_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    assert list_imported(words, HEAVY) == (0, [])


@pytest.mark.parametrize(
    "words", [("cas", "hash", "text", '"x"'), ("thread", "list", "--limit", "3")]
)
def test_no_command_imports_pydantic_or_rich(
    work: Path, words: tuple[str, ...]
) -> None:
    _, found = list_imported(words, ("pydantic", "rich", "httpx"), cwd=work)

    assert found == []


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        pytest.param(
            ("cas", "get", META_TYPE),
            ("config", "model.ledger.keep", "model.mask", "model.schema.check"),
            id="get",
        ),
        pytest.param(("cas", "put-text", "x"), ("config", "model.yaml"), id="put"),
        pytest.param(
            ("workflow", "validate", str(ROOT / "examples" / "debate.yaml")),
            ("model.ledger", "model.thread", "store.lookup.table"),
            id="validate",
        ),
    ],
)
def test_a_command_imports_nothing_that_it_does_not_need(
    work: Path, words: tuple[str, ...], unused: tuple[str, ...]
) -> None:
    run("init", cwd=work)
    modules = tuple(f"uwfgit.{each}" for each in unused)

    assert list_imported(words, modules, cwd=work) == (0, [])


def test_the_table_of_the_top_is_what_its_modules_hold() -> None:
    root = root_context()

    for entry in CATALOG:
        command = root.command.get_command(root, entry.name)
        assert command.name == entry.name
        assert not entry.help.endswith(".")


def test_a_command_is_made_once_when_it_is_asked_for() -> None:
    root = root_context()
    group = root.command.get_command(root, "cas")

    made = group.get_command(root, "get")

    assert group.commands == {"get": made}
    assert root.command.get_command(root, "cas") is group


def test_no_parameter_of_a_command_has_the_name_of_a_global_option() -> None:
    names = {option.name for option in hidden_options()}

    for ctx in iter_commands(root_context(), hidden=True):
        assert names.isdisjoint(param.name for param in ctx.command.params)


def test_no_option_of_a_command_hides_a_global_one() -> None:
    words = {word for option in hidden_options() for word in option.opts}

    for ctx in iter_commands(root_context(), hidden=True):
        for param in ctx.command.params:
            if param.param_type_name == "option":
                assert words.isdisjoint(param.opts), ctx.command_path


def test_without_words_help_is_printed(uwf: Uwf) -> None:
    shown = uwf()

    assert shown.code == 0
    assert shown.out == uwf("--help").out
    assert "thread" in shown.out


def test_version_is_one_line(uwf: Uwf) -> None:
    shown = uwf("--version")

    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith("uwf ")
    assert shown.out == uwf("-V").out


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--json", "thread", "show", "THREAD"), id="before-the-group"),
        pytest.param(("thread", "--json", "show", "THREAD"), id="before-the-command"),
        pytest.param(("thread", "show", "--json", "THREAD"), id="before-the-argument"),
        pytest.param(("thread", "show", "THREAD", "--json"), id="at-the-end"),
        pytest.param(("thread", "show", "THREAD", "--format", "json"), id="format"),
        pytest.param(("thread", "show", "THREAD", "--format=raw-json"), id="raw"),
        pytest.param(("-q", "thread", "show", "-v", "THREAD", "--json"), id="others"),
    ],
)
def test_global_options_stand_anywhere(
    uwf: Uwf, thread: str, words: tuple[str, ...]
) -> None:
    shown = uwf(*(thread if word == "THREAD" else word for word in words))

    assert shown.code == 0
    assert shown.json["threadId"] == thread


def test_verbose_names_the_store_and_the_agent_on_stderr(uwf: Uwf, thread: str) -> None:
    words = ("thread", "exec", thread, "--agent", "scripted:replies.yaml")
    place = uwf("store", "path").out.strip()

    plain, told = uwf(*words), uwf(*words, "-v")

    said = [f"store: {place} (user)", "agent of role checker: scripted"]
    assert told.err.splitlines()[:2] == said
    assert not any(line in plain.err for line in ("store:", "agent of role"))


def test_notes_beside_json_are_told_once_the_command_has_succeeded(
    uwf: Uwf, thread: str
) -> None:
    done = uwf("thread", "show", thread, "-v", "--json")
    failed = uwf("thread", "show", "0" * 26, "-v", "--json")

    assert (done.code, done.err.startswith("store: ")) == (0, True)
    assert (failed.code, "store: " in failed.err) == (1, False)


@pytest.mark.parametrize("value", ["--json", "--wait", "--worktree"])
def test_a_value_that_looks_like_an_option_is_a_value(uwf: Uwf, value: str) -> None:
    started = uwf("thread", "start", "ping.yaml", "-p", value)

    assert started.code == 0
    assert started.out.startswith("thread ")
    assert f"\n{value}\n" in uwf("thread", "read", "@last").out


def test_behind_two_hyphens_nothing_is_an_option(uwf: Uwf) -> None:
    stored = uwf("cas", "put-text", "--", "--json")

    assert stored.code == 0
    assert uwf("cas", "get", stored.out.strip()).out == "--json\n"


def test_behind_git_no_option_is_ours(uwf: Uwf, thread: str) -> None:
    assert thread

    shown = uwf("git", "log", "--format=%s", "-1", "main")

    assert shown.code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            ("thred", "list"),
            "unknown command 'thred' for 'uwf'; did you mean 'thread'?",
            id="group",
        ),
        pytest.param(
            ("thread", "lst"),
            "unknown command 'lst' for 'uwf thread'; did you mean 'list'?",
            id="command",
        ),
        pytest.param(
            ("xyzzy",), "unknown command 'xyzzy' for 'uwf'", id="nothing-like-it"
        ),
        pytest.param(
            ("exec", "x"),
            "unknown command 'exec' for 'uwf'; did you mean 'uwf thread exec'?",
            id="of-another-group",
        ),
        pytest.param(
            ("live",),
            "unknown command 'live' for 'uwf'; did you mean 'uwf thread live THREAD'?",
            id="another-word",
        ),
    ],
)
def test_unknown_commands_are_one_line_and_exit_2(
    uwf: Uwf, words: tuple[str, ...], message: str
) -> None:
    shown = uwf(*words)

    assert (shown.code, shown.out) == (2, "")
    assert shown.err.splitlines()[0] == f"error: {message}"
    assert uwf(*words, "--json").error["message"] == message


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("thread", "show"), id="missing-argument"),
        pytest.param(("thread", "start", "x"), id="missing-option"),
        pytest.param(("thread", "show", "a", "b"), id="too-many"),
        pytest.param(("thread", "show", "--bogus", "x"), id="unknown-option"),
        pytest.param(("thread", "exec", "x", "-c", "many"), id="not-a-number"),
        pytest.param(("thread", "exec", "x", "-c", "0"), id="out-of-range"),
        pytest.param(("thread", "list", "--format", "xml"), id="unknown-format"),
        pytest.param(("thread", "list", "--color", "pink"), id="unknown-color"),
        pytest.param(("thread", "list", "--status", "lost"), id="unknown-status"),
        pytest.param(("thread", "list", "--after", "soon"), id="no-time"),
        pytest.param(("thread",), id="group-alone"),
        pytest.param(("--json",), id="options-alone"),
    ],
)
def test_usage_errors_exit_2_and_print_nothing_on_stdout(
    uwf: Uwf, words: tuple[str, ...]
) -> None:
    shown = uwf(*words)

    assert (shown.code, shown.out) == (2, "")
    assert len(shown.err.splitlines()) <= 2 or shown.error["code"] == "usage"


@pytest.mark.parametrize("text", ["x", "nan", "1_0", ""])
@pytest.mark.parametrize("words", [("worker", "--poll"), ("thread", "join", "T")])
def test_what_is_no_number_is_told_in_plain_words(
    uwf: Uwf, words: tuple[str, ...], text: str
) -> None:
    option = words[-1] if words[0] == "worker" else "--timeout"
    given = words if words[0] == "worker" else (*words, option)

    shown = uwf(*given, text)

    told = f"error: invalid value for '{option}': '{text}' is not a number"
    assert (shown.code, shown.err.splitlines()[0]) == (2, told)


@pytest.mark.parametrize("words", [("--json",), ("--format", "json")])
def test_usage_errors_are_json_too_when_asked_for(
    uwf: Uwf, words: tuple[str, ...]
) -> None:
    shown = uwf("thread", "show", *words)

    assert shown.error == {
        "code": "usage",
        "message": "missing argument 'THREAD'",
        "hint": "'uwf thread show --help' shows how it is called",
    }


def test_usage_errors_are_json_also_before_any_command(uwf: Uwf) -> None:
    shown = uwf("--json", "--nope", "thread", "list")

    assert (shown.code, shown.error["code"]) == (2, "usage")


def test_a_value_in_a_wrong_command_line_does_not_ask_for_json(uwf: Uwf) -> None:
    shown = uwf("thread", "poke", "-p", "--json")

    assert shown.code == 2
    assert shown.err.startswith("error: ")


def test_errors_are_one_object_in_yaml_too(uwf: Uwf, thread: str) -> None:
    assert thread

    shown = uwf("thread", "show", "nope", "--format", "yaml")

    assert shown.code == 1
    assert shown.err.startswith("error:\n  code: not-found\n")


def test_a_bug_exits_70_and_names_its_log(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret \x1b[31mred")

    monkeypatch.setattr("uwfgit.cli.frame.commands.import_module", broken)

    shown = uwf("store", "path", "--json")

    assert shown.code == 70
    assert shown.error["code"] == "bug"
    logs = list((home / "logs").iterdir())
    assert str(logs[0]) in shown.error["hint"]
    assert "Traceback" in logs[0].read_text()
    assert logs[0].stat().st_mode & 0o777 == 0o600
    assert "\x1b" not in uwf("store", "path").err


def test_no_traceback_without_debug(uwf: Uwf) -> None:
    assert "Traceback" not in uwf("store", "path").err
    assert "Traceback" in uwf("store", "path", "--debug").err


def test_a_closed_pipe_is_141_and_silent(work: Path) -> None:
    command = f"{' '.join(UWF)} --help; echo $? >&2"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        ["sh", "-c", command],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd=work,
        env=environment(),
    )
    os.close(write)

    assert done.stderr.strip() == "141"


def test_a_full_disk_is_an_error_and_no_bug(work: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = run("--help", cwd=work, capture_output=False, stdout=full, stderr=-1)

    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "hint: make room" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        pytest.param(errno.ENOSPC, "make room there, then try again", id="full"),
        pytest.param(
            errno.EACCES, "see to its permissions, or use another place", id="refused"
        ),
        pytest.param(errno.EFBIG, None, id="another"),
    ],
)
def test_what_the_system_refuses_is_told_with_what_helps(
    number: int, hint: str | None
) -> None:
    cause = OSError(number, os.strerror(number))
    bare, told = StoreError("cannot write"), StoreError("cannot write", hint="wait")
    bare.__cause__ = told.__cause__ = cause

    assert (bare.hint, told.hint) == (hint, "wait")


def test_text_survives_a_terminal_that_is_not_utf8(work: Path) -> None:
    start = run("thread", "start", "ping.yaml", "-p", "Ærø 🙂", cwd=work)
    assert start.returncode == 0, start.stderr

    done = run(
        "thread",
        "read",
        "@last",
        cwd=work,
        text=False,
        env=environment(LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0"),
    )

    assert done.returncode == 0
    assert "Ærø 🙂".encode() in bytes(done.stdout)  # type: ignore[arg-type]  # text=False gives bytes


@pytest.mark.parametrize(
    "words", ["thread start ping.yaml -p x --json", "thread show nothing --json"]
)
def test_a_closed_stderr_leaves_stdout_to_the_data(work: Path, words: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{' '.join(UWF)} {words} 2>&-"],
        capture_output=True,
        text=True,
        check=False,
        cwd=work,
        env=environment(),
    )

    assert done.stderr == ""
    assert done.stdout == "" or isinstance(json.loads(done.stdout), dict)
    assert bool(done.stdout) is (done.returncode == 0)


def test_stdin_and_stdout_may_be_closed(work: Path) -> None:
    command = f"{' '.join(UWF)} thread list <&- >&- 2>/dev/null; echo $?"
    done = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        check=True,
        cwd=work,
        env=environment(),
    )

    assert done.stdout.strip() == "1"


@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGINT, 130, id="interrupt"),
        pytest.param(signal.SIGTERM, 143, id="terminate"),
    ],
)
def test_a_signal_stops_the_agent_and_keeps_the_attempt(
    work: Path, number: signal.Signals, code: int
) -> None:
    started = run("thread", "start", "ping.yaml", "-p", "x", "--json", cwd=work)
    thread = json.loads(started.stdout)["threadId"]
    agent = f"stdio:sh -c 'echo $$ > {work}/agent.pid; exec sleep 60'"
    with subprocess.Popen(
        [*UWF, "thread", "exec", thread, "--agent", agent, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=work,
        env=environment(),
    ) as process:
        _wait_for(work / "agent.pid")
        running = run("thread", "show", thread, "--json", cwd=work)
        process.send_signal(number)
        process.communicate(timeout=60)

    assert json.loads(running.stdout)["status"] == "running"
    assert process.returncode == code
    assert not _is_alive(int((work / "agent.pid").read_text()))
    shown = run("thread", "show", thread, "--json", cwd=work)
    assert json.loads(shown.stdout)["status"] == "suspended"


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_command_tree_is_made_anew_each_time() -> None:
    assert make_program() is not make_program()


def test_every_end_of_a_run_has_an_exit_code() -> None:
    assert {
        RunEnd.DONE: 0,
        RunEnd.REFUSED: 1,
        RunEnd.WAITING: 3,
        RunEnd.HELD: 4,
        RunEnd.AGENT_FAILED: 5,
        RunEnd.INTERRUPTED: 130,
    } == RUN_EXITS
    assert len(RUN_EXITS) == len(RunEnd)
    codes = {int(code) for each in EXIT_MEANINGS for code in each.split(", ")}
    assert {*RUN_EXITS.values(), *EXIT_CODES.values()} <= codes


def test_a_group_names_its_commands_in_whole_lines() -> None:
    for ctx in iter_commands(root_context()):
        if not hasattr(ctx.command, "list_visible"):
            continue
        listed = " ".join(ctx.get_help().split())

        for name in ctx.command.list_visible(ctx):
            first = ctx.command.get_command(ctx, name).help.partition("\n")[0]
            assert f" {name} {first.removesuffix('.')} " in f"{listed} "


def test_a_word_that_may_be_left_out_stands_in_brackets() -> None:
    for ctx in iter_commands(root_context()):
        listed = ctx.get_help().partition("Arguments:\n")[2]
        assert "list[str]" not in listed
        for param in ctx.command.params:
            if param.param_type_name == "argument" and ctx.info_name != "git":
                name = param.metavar or param.name.upper()
                assert param.required is not name.startswith("["), ctx.command_path
                bare = name if param.required else name[1:-1]
                assert f"  {bare}  " in f"{listed}  ".replace("\n", "  ")
