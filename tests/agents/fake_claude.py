#!/usr/bin/env python3
"""A program that speaks as Claude Code does, for tests that need no model.

It answers with the next line (JSON) of the file in ``FAKE_REPLIES``, and keeps its
sessions where Claude Code does. What the real one does is held to in
``test_real_clis.py``.
"""

import json
import os
import re
import sys
from pathlib import Path

words = sys.argv[1:]
prompt = sys.stdin.read()
resumed = words[words.index("--resume") + 1] if "--resume" in words else None
session = resumed or words[words.index("--session-id") + 1]
slug = re.sub(r"[^0-9A-Za-z]", "-", str(Path.cwd().resolve()))
file = Path(os.environ["HOME"]) / ".claude/projects" / slug / f"{session}.jsonl"


def tell(**event: object) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


if resumed and not file.exists():
    told = f"No conversation found with session ID: {session}"
    tell(type="result", subtype="error_during_execution", is_error=True, errors=[told])
    sys.exit(1)
replies = Path(os.environ["FAKE_REPLIES"])
first, *rest = replies.read_text().splitlines()
replies.write_text("\n".join(rest))
answer = json.loads(first)
file.parent.mkdir(parents=True, exist_ok=True)
with file.open("a") as log:
    for role, text in (("user", prompt), ("assistant", answer)):
        log.write(json.dumps({"role": role, "text": text, "sessionId": session}) + "\n")
with Path(f"{replies}.heard").open("a") as heard:
    heard.write(json.dumps(file.read_text()) + "\n")
tell(type="system", subtype="init", session_id=session, claude_code_version="9.9.9")
message = {"id": "m", "model": "m", "content": [{"type": "text", "text": answer}]}
tell(type="assistant", message=message, session_id=session)
usage = {"input_tokens": 10, "output_tokens": 2}
tell(
    type="result",
    subtype="success",
    is_error=False,
    result=answer,
    session_id=session,
    num_turns=1,
    usage=usage,
    total_cost_usd=0.5,
)
