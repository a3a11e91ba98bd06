"""Kind ``hermes``: Hermes Agent, one question a run.

It tells no events: its answer is all of its stdout, and its session stands in a line
on stderr. Tokens and turns are not told.
"""

from __future__ import annotations

import re
from typing import Final

from uwfgit.agents.clis.cli import Cli, Invocation

_SESSION: Final = re.compile(r"^session_id: *(\S+)", re.MULTILINE)


def _arguments(call: Invocation) -> list[str]:
    return [
        *("chat", "--quiet", "--source", "tool"),
        *(["--resume", call.session, "--no-restore-cwd"] if call.session else []),
        *(["--model", call.model] if call.model else []),
        *(["--max-turns", str(call.max_turns)] if call.max_turns else []),
        *([] if call.tools is None else ["--toolsets", ",".join(call.tools)]),
        *call.args,
        *("--query", call.prompt),
    ]


CLI: Final = Cli(
    kind="hermes",
    install="pip install hermes-agent",
    login="run `hermes setup`",
    update="hermes update",
    help=("chat", "--help"),
    options=("--query", "--quiet", "--source"),
    arguments=_arguments,
    readers={},
    event_name=lambda _: "",
    terminal="its answer",
    resume=("chat", "--resume"),
    prompt_on_stdin=False,
    session_on_stderr=_SESSION,
)
