"""The builtin agent's sessions: one file of messages each, under ``UWF_HOME``."""

from __future__ import annotations

import json
import os
import re
import secrets
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from uwfgit.agents.http.chat import ChatMessage
from uwfgit.store.files import read_plain

MAX_BYTES: Final = 64 * 1024 * 1024
_ID: Final = re.compile(r"[0-9a-f]{32}")
_LOST: Final = "error: interrupted; whether it did anything is not known"


class Session(Struct, kw_only=True):
    """A conversation, kept as it goes; what cannot be written is not kept.

    ``path`` is ``None`` where nothing is kept at all.
    """

    id: str
    path: Path | None
    messages: list[ChatMessage] = field(default_factory=list)
    is_kept: bool = True

    def add(self, message: ChatMessage) -> None:
        """Add a message, in the file too."""
        self.messages.append(message)
        if self.path is None or not self.is_kept:
            return
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
            descriptor = os.open(self.path, flags | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "ab") as file:
                file.write(json.dumps(message).encode() + b"\n")
        except OSError:
            # The step is none the worse; only its session cannot be gone on with.
            self.is_kept = False


def new_session(folder: Path | None) -> Session:
    """Begin a conversation."""
    name = secrets.token_hex(16)
    return Session(id=name, path=None if folder is None else _file(folder, name))


def open_session(folder: Path | None, name: str) -> Session | None:
    """Go on with a conversation; ``None`` when there is no such, or a broken one.

    Calls of tools that have no result, as a kill leaves them, get one that says so:
    servers refuse a conversation with a hole.
    """
    if folder is None or not _ID.fullmatch(name):
        return None
    path = _file(folder, name)
    try:
        lines = read_plain(path, most=MAX_BYTES).splitlines()
        found = [json.loads(line) for line in lines]
    except (OSError, ValueError, RecursionError):
        return None
    if not found or not all(isinstance(item, dict) for item in found):
        return None
    session = Session(id=name, path=path, messages=found)
    for call in _open_calls(found):
        session.add({"role": "tool", "tool_call_id": call, "content": _LOST})
    return session


def _open_calls(messages: list[ChatMessage]) -> list[str]:
    """List the calls of the newest message with calls that have no result."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.get("role") == "tool":
            answered.add(str(message.get("tool_call_id")))
            continue
        calls = message.get("tool_calls") or []
        return [call["id"] for call in calls if call["id"] not in answered]
    return []


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.jsonl"
