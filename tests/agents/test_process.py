from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.agents.children import ENVIRONMENT, is_alive, run_python, wait_for_death
from tests.program import wait_until
from tests.steady import steadily
from uwfgit.agents.base import Failure
from uwfgit.agents.children import child, lines, process, stopping
from uwfgit.agents.children.left import end_run
from uwfgit.agents.children.process import TimeLimits, run_process

START_SLEEPER = """
import subprocess, sys, time
sleeper = subprocess.Popen(
    [sys.executable, "-c", "import time; time.sleep(60)"], {options}
)
print(sleeper.pid, flush=True)
"""
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"asked\\n"))
print(os.getpid(), flush=True)
while True: time.sleep(60)
"""


def press_ctrl_c(_line: str) -> None:
    """Interrupt this very process, as a terminal does, when a line is heard."""
    os.kill(os.getpid(), signal.SIGINT)


def run_argv(argv: list[str], cwd: Path, *, idle: float = 20) -> process.ProcessResult:
    return run_process(
        argv,
        prompt="",
        cwd=cwd,
        environment=ENVIRONMENT,
        limits=TimeLimits(idle_seconds=idle),
    )


def test_a_child_runs_in_the_folder_given(tmp_path: Path) -> None:
    result = run_python("import os; print(os.getcwd())", cwd=tmp_path)

    assert result.stdout == f"{tmp_path}\n"
    assert result.exit_code == 0
    assert result.failure is None


def test_a_child_sees_the_environment_given_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_PARENT", "1")

    result = run_python(
        "import os; print(sorted(set(os.environ) - {'LC_CTYPE', 'PATH'}))",
        cwd=tmp_path,
        extra={"MINE": "2"},
    )

    assert result.stdout == "['MINE']\n"


def test_the_prompt_comes_on_stdin_which_is_then_closed(tmp_path: Path) -> None:
    result = run_python(
        "import sys; sys.stdout.write(sys.stdin.read()[::-1])",
        cwd=tmp_path,
        prompt="tpmorp",
    )

    assert result.stdout == "prompt"


def test_a_prompt_of_a_megabyte_passes_while_the_child_already_speaks(
    tmp_path: Path,
) -> None:
    prompt = "ä" * 500_000 + "x"

    result = run_python(
        "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line)\n",
        cwd=tmp_path,
        prompt=prompt,
    )

    assert result.stdout == prompt
    assert result.failure is None


def test_a_child_may_answer_a_megabyte_before_it_reads(tmp_path: Path) -> None:
    result = run_python(
        "import sys; sys.stdout.write('y' * 1000000); sys.stdout.flush();"
        "print(len(sys.stdin.read()))",
        cwd=tmp_path,
        prompt="x" * 1_000_000,
    )

    assert result.stdout.endswith("y1000000\n")


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("print('ok')", id="never-reads"),
        pytest.param("import os; os.close(0); print('ok')", id="closes-stdin"),
        pytest.param("import sys; sys.stdin.read(10); print('ok')", id="reads-a-bit"),
    ],
)
def test_a_child_need_not_read_its_prompt(code: str, tmp_path: Path) -> None:
    result = run_python(code, cwd=tmp_path, prompt="x" * 1_000_000)

    assert (result.stdout, result.failure) == ("ok\n", None)


def test_output_without_a_final_newline_is_kept_as_it_is(tmp_path: Path) -> None:
    result = run_python("print('a\\r\\nb', end='')", cwd=tmp_path)

    assert result.stdout == "a\r\nb"


def test_bytes_that_are_not_utf8_are_replaced_with_a_warning(tmp_path: Path) -> None:
    result = run_python(
        r"import sys; sys.stdout.buffer.write(b'caf\xe9 \xe2\x82')", cwd=tmp_path
    )

    assert result.stdout == "caf\ufffd \ufffd"
    assert result.warnings == ("reply was not valid UTF-8",)
    assert result.failure is None


def test_a_character_cut_between_two_writes_is_whole(tmp_path: Path) -> None:
    result = run_python(
        r"import os, time; os.write(1, b'\xe2\x82'); time.sleep(.05);"
        r"os.write(1, b'\xac\xef\xbf\xbd')",
        cwd=tmp_path,
    )

    assert result.stdout == "€\ufffd"
    assert result.warnings == ()


def test_lines_are_told_as_they_come(tmp_path: Path) -> None:
    told: list[str] = []

    result = run_python(
        "import os, time; os.write(1, b'o'); time.sleep(.05); os.write(1, b'ne\\r\\n');"
        "os.write(1, b'two\\n\\nlast')",
        cwd=tmp_path,
        on_line=told.append,
    )

    assert told == ["one", "two", "", "last"]
    assert result.stdout == "one\r\ntwo\n\nlast"


def test_a_line_is_told_before_the_child_ends(tmp_path: Path) -> None:
    waiting = tmp_path / "heard"

    result = run_python(
        "import os, time\nprint('first', flush=True)\n"
        "while not os.path.exists('heard'): time.sleep(.01)\nprint('second')\n",
        cwd=tmp_path,
        on_line=lambda _: waiting.touch(),
    )

    assert result.stdout == "first\nsecond\n"


def test_a_listener_that_fails_leaves_no_child_behind(tmp_path: Path) -> None:
    pids: list[int] = []

    def fail(line: str) -> None:
        pids.append(int(line))
        raise RuntimeError(line)

    with pytest.raises(RuntimeError):
        run_python(
            "import os, time; print(os.getpid(), flush=True); time.sleep(60)",
            cwd=tmp_path,
            on_line=fail,
        )

    assert wait_for_death(pids[0])


def test_a_line_without_end_is_told_cut_and_kept_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 10)
    told: list[str] = []

    result = run_python("print('x' * 30)", cwd=tmp_path, on_line=told.append)

    assert told == ["x" * 10]
    assert result.stdout == "x" * 30 + "\n"
    assert len(result.warnings) == 1


@pytest.mark.parametrize(
    ("code", "exit_code", "message"),
    [
        pytest.param(
            "raise SystemExit(3)", 3, "'{name}' exited with code 3", id="silent-crash"
        ),
        pytest.param(
            "import sys\n"
            "sys.stderr.write('warming up\\n\\nno \\x1b[31mkey\\x1b[0m\\a\\n')\n"
            "sys.exit(1)",
            1,
            "'{name}' exited with code 1: warming up / no key",
            id="stderr",
        ),
        pytest.param(
            "import os; os.kill(os.getpid(), 9)",
            -9,
            "'{name}' was killed by SIGKILL",
            id="signal",
        ),
    ],
)
def test_a_bad_end_is_named_and_the_text_kept(
    code: str, exit_code: int, message: str, tmp_path: Path
) -> None:
    result = run_python(f"print('so far', flush=True)\n{code}", cwd=tmp_path)

    name = Path(sys.executable).name
    assert result.exit_code == exit_code
    assert result.failure == Failure(phase="agent", message=message.format(name=name))
    assert result.stdout == "so far\n"


def test_only_the_end_of_a_long_stderr_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "STDERR_TAIL_BYTES", 1000)

    result = run_python(
        "import sys; sys.stderr.write('x' * 300000 + 'the end'); sys.exit(1)",
        cwd=tmp_path,
    )

    assert len(result.stderr_tail) == 1000
    assert result.failure is not None
    assert result.failure.message.endswith("xx" + "the end")
    assert len(result.failure.message) < 600


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param("no-such-agent", "not found on PATH", id="not-on-path"),
        pytest.param("python agent.py", "into its args", id="words-in-one"),
        pytest.param("./missing", "is not there", id="no-file"),
        pytest.param(f"./{'a' * 300}", "File name too long", id="long-name"),
        pytest.param("./plain.txt", "not executable", id="no-x-bit"),
        pytest.param("./no-magic", "without a #! line", id="not-a-program"),
        pytest.param("./bad-magic", "names no program", id="no-interpreter"),
    ],
)
def test_a_command_that_cannot_start_is_a_failure_with_help(
    command: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "plain.txt").write_text("hello")
    (tmp_path / "no-magic").write_text("hello")
    (tmp_path / "no-magic").chmod(0o755)
    (tmp_path / "bad-magic").write_text("#!/no/such/shell\n")
    (tmp_path / "bad-magic").chmod(0o755)

    result = run_argv([command], tmp_path)

    assert result.exit_code is None
    assert result.failure is not None
    assert result.failure.phase == "agent"
    assert expected in result.failure.message
    assert "\n" not in result.failure.message


def test_a_folder_that_vanished_is_a_failure_that_names_it(tmp_path: Path) -> None:
    result = run_argv([sys.executable], tmp_path / "gone")

    assert result.failure is not None
    assert str(tmp_path / "gone") in result.failure.message


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("a\0b", "NUL", id="nul"),
        pytest.param("x" * 10_000_000, "too long", id="too-long"),
    ],
)
def test_a_variable_the_system_refuses_is_a_failure(
    value: str, expected: str, tmp_path: Path
) -> None:
    result = run_python("", cwd=tmp_path, extra={"X": value})

    assert result.failure is not None
    assert expected in result.failure.message


def test_a_silent_child_is_stopped_and_what_it_said_kept(tmp_path: Path) -> None:
    words = ["sh", "-c", "echo thinking; exec sleep 60"]
    result = steadily(lambda: run_argv(words, tmp_path, idle=0.6), within=0.3)

    assert result.failure is not None
    assert result.failure.phase == "agent"
    assert "said nothing for 0.6 s" in result.failure.message
    assert "(see limits.idleSeconds)" in result.failure.message
    assert result.stdout == "thinking\n"
    assert result.exit_code == -signal.SIGTERM


def test_a_child_that_closed_its_outputs_is_silent(tmp_path: Path) -> None:
    result = run_argv(["sh", "-c", "exec sleep 60 <&- >&- 2>&-"], tmp_path, idle=0.3)

    assert result.failure is not None
    assert result.failure.phase == "agent"


@pytest.mark.slow
def test_stderr_counts_as_a_sign_of_life(tmp_path: Path) -> None:
    ticking = "for i in 1 2 3 4 5 6 7 8; do sleep 0.3; echo . >&2; done; echo done"

    words = ["sh", "-c", ticking]
    result = steadily(lambda: run_argv(words, tmp_path, idle=1.6), within=0.6)

    assert (result.stdout, result.failure) == ("done\n", None)


def test_a_child_that_speaks_for_ever_meets_the_wall_limit(tmp_path: Path) -> None:
    result = run_python(
        "import time\nwhile True: print('.', flush=True); time.sleep(.02)",
        cwd=tmp_path,
        wall=0.4,
    )

    assert result.failure is not None
    assert result.failure.phase == "agent"
    assert "ran longer than 0.4 s" in result.failure.message
    assert "(see limits.wallSeconds)" in result.failure.message


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(
            "while time.monotonic() < end: pass", id="computes", marks=pytest.mark.slow
        ),
        pytest.param(
            "while time.monotonic() < end: subprocess.run(['sleep', '0.05'])",
            id="runs others",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_one_that_works_and_prints_at_its_end_is_not_hung(
    work: str, tmp_path: Path
) -> None:
    code = f"import time, subprocess\nend = time.monotonic() + 2.4\n{work}\nprint('x')"

    result = steadily(lambda: run_python(code, cwd=tmp_path, idle=1.4), within=0.6)

    assert (result.stdout, result.failure) == ("x\n", None)


def test_one_that_spins_without_a_word_is_stopped_in_the_end(tmp_path: Path) -> None:
    result = run_python("while True: pass", cwd=tmp_path, idle=0.3)

    assert result.failure is not None
    assert "said nothing for 1.2 s" in result.failure.message


def test_one_that_lives_on_after_its_end_is_stopped_and_has_succeeded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.3)
    heard: list[str] = []

    result = run_python(
        "import time; print('end', flush=True); time.sleep(60)",
        cwd=tmp_path,
        on_line=heard.append,
        is_over=lambda: "end" in heard,
    )

    assert (result.failure, result.stdout) == (None, "")
    assert result.warnings == (
        "'python' still ran 0.3 s after its answer and was stopped",
    )


def test_one_that_ends_by_itself_in_time_is_left_alone(tmp_path: Path) -> None:
    heard: list[str] = []

    result = run_python(
        "import time; print('end', flush=True); time.sleep(0.2); raise SystemExit(3)",
        cwd=tmp_path,
        on_line=heard.append,
        is_over=lambda: "end" in heard,
    )

    assert (result.exit_code, result.warnings) == (3, ())


def test_last_words_after_the_request_to_end_are_kept(tmp_path: Path) -> None:
    result = run_python(
        "import os, signal, time\n"
        "def bye(*_):\n    os.write(1, b'bye\\n'); os._exit(0)\n"
        "signal.signal(signal.SIGTERM, bye)\n"
        "print('hi', flush=True); time.sleep(60)",
        cwd=tmp_path,
        on_line=lambda line: press_ctrl_c(line) if line == "hi" else None,
    )

    assert result.stdout == "hi\nbye\n"
    assert result.exit_code == 0
    assert result.failure is not None


def test_a_child_that_ignores_the_request_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for it to say that it was asked.
    monkeypatch.setattr(stopping, "STOP_SECONDS", 1.0)

    result = run_python(
        STUBBORN,
        cwd=tmp_path,
        on_line=lambda line: None if line == "asked" else press_ctrl_c(line),
    )

    assert result.stdout.endswith("asked\n")
    assert result.exit_code == -signal.SIGKILL


@pytest.mark.parametrize(
    "options",
    [
        pytest.param("start_new_session=False", id="same-session"),
        pytest.param("start_new_session=True", id="own-session"),
    ],
)
def test_a_stop_ends_grandchildren_in_any_session(options: str, tmp_path: Path) -> None:
    result = run_python(
        START_SLEEPER.format(options=options) + "time.sleep(60)",
        cwd=tmp_path,
        on_line=press_ctrl_c,
    )

    assert wait_for_death(int(result.stdout))


def test_a_stop_ends_a_grandchild_whose_parent_died_first(tmp_path: Path) -> None:
    start = START_SLEEPER.format(
        options="start_new_session=True, stdout=subprocess.DEVNULL"
    )

    result = run_python(
        "import subprocess, sys, time\n"
        f"argv = [sys.executable, '-c', {start!r}]\n"
        "done = subprocess.run(argv, stdout=subprocess.PIPE)\n"
        "print(int(done.stdout), flush=True); time.sleep(60)",
        cwd=tmp_path,
        extra={"UWF_STEP": "T:1:abc"},
        on_line=press_ctrl_c,
    )

    assert wait_for_death(int(result.stdout))


def test_a_stop_kills_a_grandchild_that_ignores_the_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "STOP_SECONDS", 0.2)

    result = run_python(
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-c', {STUBBORN!r}], start_new_session=True)",
        cwd=tmp_path,
        on_line=lambda line: None if line == "asked" else press_ctrl_c(line),
    )

    assert wait_for_death(int(result.stdout.split()[0]))


def test_a_stop_leaves_strangers_alone(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"],
        env={"UWF_STEP": "another"},
    ) as stranger:
        run_python(
            "import time; time.sleep(60)",
            cwd=tmp_path,
            idle=0.2,
            extra={"UWF_STEP": "mine"},
        )

        survived = is_alive(stranger.pid)
        stranger.kill()

    assert survived


def test_an_ended_child_is_not_waited_for_when_a_grandchild_holds_its_pipes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "PIPE_SECONDS", 0.3)

    result = run_python(
        START_SLEEPER.format(options="start_new_session=False"), cwd=tmp_path
    )

    assert result.failure is None
    assert result.exit_code == 0
    assert len(result.warnings) == 1
    assert wait_for_death(int(result.stdout))


def test_a_server_left_behind_in_its_own_session_lives_on(tmp_path: Path) -> None:
    quiet = "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL"

    result = run_python(
        START_SLEEPER.format(options=f"start_new_session=True, {quiet}"), cwd=tmp_path
    )

    server = int(result.stdout)
    survived = is_alive(server)
    os.kill(server, signal.SIGKILL)
    assert survived
    assert result.warnings == ()


def test_a_flood_is_stopped_at_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "MAX_STDOUT_BYTES", 1024 * 1024)

    result = run_python("while True: print('x' * 10000)", cwd=tmp_path)

    assert len(result.stdout) == 1024 * 1024
    assert result.failure is not None
    assert result.failure.phase == "agent"
    assert "more than 1 MiB" in result.failure.message


def test_a_short_flood_before_a_good_end_is_a_failure_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "MAX_STDOUT_BYTES", 100)

    result = run_python("print('x' * 101)", cwd=tmp_path)

    assert result.stdout == "x" * 100
    assert result.failure is not None


def test_ctrl_c_is_an_interruption_that_keeps_what_was_said(tmp_path: Path) -> None:
    result = run_python(
        "import time; print('so far', flush=True); time.sleep(60)",
        cwd=tmp_path,
        on_line=press_ctrl_c,
    )

    assert result.failure == Failure(
        phase="interrupted", message=f"'{Path(sys.executable).name}' was interrupted"
    )
    assert result.stdout == "so far\n"


def test_ctrl_c_is_heard_while_the_child_is_silent(tmp_path: Path) -> None:
    begun = tmp_path / "begun"

    def press() -> None:
        wait_until(begun.exists)
        press_ctrl_c("")

    presser = threading.Thread(target=press)
    presser.start()

    code = "import pathlib, time; pathlib.Path('begun').touch(); time.sleep(60)"
    result = run_python(code, cwd=tmp_path)

    presser.join()
    assert result.failure is not None
    assert result.failure.phase == "interrupted"


def test_a_second_ctrl_c_does_not_wait_for_a_stubborn_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "STOP_SECONDS", 50)

    result = run_python(STUBBORN, cwd=tmp_path, on_line=press_ctrl_c)

    assert result.stdout.endswith("asked\n")
    assert result.exit_code == -signal.SIGKILL


def test_an_exit_raised_by_a_signal_handler_is_an_interruption(tmp_path: Path) -> None:
    def end(*_: object) -> None:
        raise SystemExit(143)

    before = signal.signal(signal.SIGTERM, end)
    try:
        result = run_python(
            "import time; print('hi', flush=True); time.sleep(60)",
            cwd=tmp_path,
            on_line=lambda _: os.kill(os.getpid(), signal.SIGTERM),
        )
    finally:
        signal.signal(signal.SIGTERM, before)

    assert result.failure is not None
    assert result.failure.phase == "interrupted"


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208 - counted, not walked

    run_argv(["true"], tmp_path)
    run_python("import time; time.sleep(60)", cwd=tmp_path, idle=0.2)

    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208 - counted, not walked


def test_events_without_end_are_stopped(tmp_path: Path) -> None:
    heard = Counter[str]()

    result = run_python(
        "while True: print('{}\\n' * 30_000)",
        cwd=tmp_path,
        on_line=lambda line: heard.update([line]),
        is_over=lambda: False,
    )

    assert result.failure is not None
    assert "said more than 1,000,000 lines" in result.failure.message
    assert 1_000_000 < heard.total() < 1_200_000


def test_what_a_killed_program_left_is_ended_by_its_mark_alone(tmp_path: Path) -> None:
    def start(mark: str) -> subprocess.Popen[bytes]:
        environment = {**ENVIRONMENT, "UWF_STEP": mark}
        return subprocess.Popen(["/bin/sleep", "600"], cwd=tmp_path, env=environment)

    with start("mine") as mine, start("mine-too") as other:
        ended = end_run("mine")
        code, survived = mine.wait(), other.poll() is None
        other.kill()

    assert (ended, code, survived) == (1, -signal.SIGTERM, True)
