"""Record what the real CLIs print in each mode of the fake API, for tests without them.

``python -m tests.agents.record KIND [MODE …]``. A recording is three files: what was
printed on stdout and on stderr, and the exit code (empty: it ran on and was killed).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.agents.fake_api import Call, FakeApi, Script, modes, tools_only
from tests.agents.real import ARGS, Home, find_binary
from uwfgit.agents.clis.cli import Invocation
from uwfgit.agents.clis.kinds import load_cli

RECORDED: Final = Path(__file__).parents[1] / "data" / "agents"
DONE: Final = "---\n$status: done\nsum: first\n---\n\nBuilt.\n"
RUN: Final[Mapping[str, Call]] = {
    "claude-code": Call(
        name="Bash", arguments={"command": "echo hi", "description": ""}
    ),
    "codex": Call(name="exec_command", arguments={"cmd": "echo hi"}),
    "gemini": Call(
        name="run_shell_command", arguments={"command": "echo hi", "description": ""}
    ),
    "opencode": Call(name="bash", arguments={"command": "echo hi", "description": ""}),
    "hermes": Call(name="terminal", arguments={"command": "echo hi"}),
}
_SCRIPTS: Final[Mapping[str, Callable[[str], Script]]] = {
    "answer": lambda _: modes.answer(DONE),
    "prose": lambda _: modes.no_frontmatter(),
    "tool-call": lambda kind: modes.tool_call(RUN[kind], DONE),
    "tool-loop": lambda kind: modes.tool_loop(RUN[kind]),
    "hang": lambda _: modes.hang(),
    "cut-stream": lambda _: modes.cut_stream(DONE),
    "400": lambda _: modes.fail(400, message="the request is not valid"),
    "401": lambda _: modes.MODES["401"](),
    "429": lambda _: modes.MODES["429"](),
    "500": lambda _: modes.MODES["500"](),
    "529": lambda _: modes.MODES["529"](),
    "bad-json": lambda _: modes.bad_json(),
}
_SECONDS: Final = 240.0
_LOOP_SECONDS: Final = 40.0
_ENDLESS: Final = ("hang", "tool-loop")


def record(kind: str, mode: str) -> None:
    """Run a CLI once in a home of its own and keep what it printed."""
    program = find_binary(kind)
    if program is None:
        sys.exit(f"{kind} is not installed")
    with (
        tempfile.TemporaryDirectory() as name,
        FakeApi(_SCRIPTS[mode](kind), is_side=tools_only) as api,
    ):
        root = Path(name)
        (root / "work").mkdir()
        call = Invocation(
            session=None,
            new_id=str(uuid.uuid4()),
            model=None,
            max_turns=4,
            tools=None,
            args=ARGS[kind],
            prompt="Do it.",
        )
        out, err, code = _run(
            [program, *load_cli(kind).arguments(call)],
            cwd=root / "work",
            env={
                **load_cli(kind).environment,
                **Home(path=root / "home").point_at(kind, api.url),
            },
            seconds=_LOOP_SECONDS if mode in _ENDLESS else _SECONDS,
        )
        place = RECORDED / kind
        place.mkdir(parents=True, exist_ok=True)
        for suffix, text in (("out", out), ("err", err), ("code", code)):
            (place / f"{mode}.{suffix}").write_text(_clean(text, root, api.url))


def _run(
    argv: list[str], *, cwd: Path, env: Mapping[str, str], seconds: float
) -> tuple[str, str, str]:
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate("Do it.", timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return (*process.communicate(), "")
    return out, err, str(process.returncode)


def _clean(text: str, root: Path, url: str) -> str:
    """Take out what is of this machine."""
    here = re.escape(str(Path(__file__).resolve().parents[2]))
    text = text.replace(str(root), "/place").replace(url, "http://127.0.0.1:8099")
    return re.sub(here, "/repository", text)


if __name__ == "__main__":
    for each in sys.argv[2:] or _SCRIPTS:
        record(sys.argv[1], each)
