"""Sessions of a CLI that keeps them in a database: it exports and imports them itself.

What is imported may be someone else's. It is made to name nothing that is here, and
to allow nothing: it can add a session, and change none.
"""

from __future__ import annotations

import json
import re
import secrets
import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

from msgspec import Struct

from uwfgit.agents.base import SessionFilesError
from uwfgit.agents.children.process import ProcessResult, TimeLimits, run_process
from uwfgit.agents.clis.session_files import MAIN
from uwfgit.model.memory.memory import MAX_SESSION_BYTES

_LIMITS: Final = TimeLimits(idle_seconds=60, wall_seconds=300)
_NOT_HERE: Final = re.compile(r"Session not found", re.IGNORECASE)
_ITEM: Final = re.compile(r"\b(?:msg|prt)_[0-9A-Za-z]{20,40}\b")
_SORTED: Final = len("ses_") + 12
"""An id's beginning, by which messages are put in order."""
_DIGITS: Final = string.digits + string.ascii_letters


class ExportedFiles(Struct, frozen=True, kw_only=True):
    """The session of a kind as its own ``export`` prints it."""

    command: str

    def read(
        self, session: str, *, cwd: Path, environment: Mapping[str, str]
    ) -> Mapping[str, bytes]:
        """Export a session; empty when it is not here.

        Raises:
            SessionFilesError: It cannot be kept; says why.
        """
        result = self._call(("export", session), cwd=cwd, environment=environment)
        if result.failure is not None:
            if _NOT_HERE.search(result.stderr_tail):
                return {}
            raise SessionFilesError(result.failure.message)
        data = result.stdout.encode()
        if len(data) > MAX_SESSION_BYTES:
            size = MAX_SESSION_BYTES // 1024 // 1024
            raise SessionFilesError(f"its session is larger than {size} MiB")
        return {MAIN: data}

    def write(
        self,
        session: str,
        files: Mapping[str, bytes],
        *,
        renew: bool,
        cwd: Path,
        environment: Mapping[str, str],
    ) -> str:
        """Import a session; see ``SessionFiles``.

        Raises:
            SessionFilesError: What is kept is not of this session, or was refused.
        """
        text = files.get(MAIN, b"").decode(errors="replace")
        _check(text, session)
        here = self.read(session, cwd=cwd, environment=environment)
        if not renew and here == files:
            return session
        name = _renew(session) if renew or here else session
        fresh = {found: _renew(found) for found in set(_ITEM.findall(text))}
        text = _ITEM.sub(lambda found: fresh[found[0]], text.replace(session, name))
        with NamedTemporaryFile("w", encoding="utf-8", suffix=".json") as file:
            file.write(_disarm(text))
            file.flush()
            result = self._call(("import", file.name), cwd=cwd, environment=environment)
        if result.failure is not None:
            raise SessionFilesError(result.failure.message)
        return name

    def _call(
        self, words: Sequence[str], *, cwd: Path, environment: Mapping[str, str]
    ) -> ProcessResult:
        return run_process(
            (self.command, *words),
            prompt="",
            cwd=cwd,
            environment=environment,
            limits=_LIMITS,
        )


def _renew(name: str) -> str:
    """Make an id that differs, at the same place in the order."""
    rest = len(name) - _SORTED
    return name[:_SORTED] + "".join(secrets.choice(_DIGITS) for _ in range(rest))


def _check(text: str, session: str) -> None:
    """Check that an export is one of this session, and names no other.

    Raises:
        SessionFilesError: It is not.
    """
    try:
        export = json.loads(text)
        owners = [export["info"]["id"], *_iter_values(export["messages"], "sessionID")]
        items = [*_iter_values(export["messages"], "id")]
        for message in export["messages"]:
            items += [part["messageID"] for part in message["parts"]]
    except (ValueError, LookupError, TypeError, RecursionError) as exc:
        raise SessionFilesError("what is kept of it cannot be read") from exc
    if any(owner != session for owner in owners):
        raise SessionFilesError("what is kept of it names another session")
    if not all(isinstance(item, str) and _ITEM.fullmatch(item) for item in items):
        raise SessionFilesError("what is kept of it has ids of an unknown form")


def _iter_values(messages: Any, key: str) -> Iterator[Any]:  # noqa: ANN401 - a JSON value
    for message in messages:
        yield message["info"][key]
        yield from (part[key] for part in message["parts"])


def _disarm(text: str) -> str:
    """Keep what a session forbids and nothing that it allows."""
    export = json.loads(text)
    rules = export["info"].get("permission")
    if isinstance(rules, list):
        export["info"]["permission"] = [
            rule
            for rule in rules
            if isinstance(rule, dict) and rule.get("action") == "deny"
        ]
    else:
        export["info"].pop("permission", None)
    return json.dumps(export, ensure_ascii=False, indent=2)
