"""Origins of lines as an Agent Trace record, for tools of others to read (pure).

It says who wrote which lines; it holds no prompt, no text and no absolute path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from uwfgit.code.blame.why import Origin
from uwfgit.ids import Hash

VERSION: Final = "0.1.0"
"""Of the specification at agent-trace.dev: three parts, as its issue 10 settled."""
_MODEL_CHARS: Final = 250
_UUID_VERSION: Final = 4


def make_record(
    files: Sequence[tuple[str, Sequence[Origin]]],
    *,
    models: Mapping[Hash, str | None],
    revision: str | None,
    tool_version: str,
    now: int,
    random: bytes,
) -> dict[str, object]:
    """Make the record of some files.

    Args:
        files: Paths below the repository's top, and the origins of their lines.
        models: The model of each step, by its hash, where it is known.
        revision: The commit the lines are counted in, if they are committed.
        tool_version: Our own.
        now: The time in seconds.
        random: Sixteen random bytes.
    """
    record: dict[str, object] = {
        "version": VERSION,
        "id": str(UUID(bytes=random, version=_UUID_VERSION)),
        "timestamp": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "tool": {"name": "uwf", "version": tool_version},
        "files": [
            {"path": path, "conversations": _conversations(origins, models)}
            for path, origins in files
        ],
    }
    if revision is not None:
        record["vcs"] = {"type": "git", "revision": revision}
    return record


def _conversations(
    origins: Sequence[Origin], models: Mapping[Hash, str | None]
) -> list[dict[str, object]]:
    grouped: dict[str, list[Origin]] = {}
    for origin in origins:
        grouped.setdefault(_voice(origin), []).append(origin)
    return [_conversation(lines, models) for lines in grouped.values()]


def _voice(origin: Origin) -> str:
    """Return what lines must have in common to be of one conversation."""
    if not origin.is_sure:
        return "unknown"
    return origin.steps[0].hash if origin.steps else "human"


def _conversation(
    lines: Sequence[Origin], models: Mapping[Hash, str | None]
) -> dict[str, object]:
    first = lines[0]
    contributor: dict[str, object] = {"type": "human"}
    found: dict[str, object] = {}
    if not first.is_sure:
        contributor = {"type": "unknown"}
    elif first.steps:
        step = first.steps[0]
        contributor = {"type": "ai"}
        model = models.get(step.hash)
        if model:
            contributor["model_id"] = model[:_MODEL_CHARS]
        found["url"] = f"urn:uwf:{step.thread}:{step.number}"
    return {
        **found,
        "contributor": contributor,
        "ranges": [_range(group) for group in _group(lines)],
    }


def _group(lines: Sequence[Origin]) -> Iterable[list[Origin]]:
    """Put lines that follow each other together."""
    group: list[Origin] = []
    for line in lines:
        if group and line.number != group[-1].number + 1:
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def _range(group: Sequence[Origin]) -> dict[str, object]:
    text = b"".join(line.text + b"\n" for line in group)
    return {
        "start_line": group[0].number,
        "end_line": group[-1].number,
        "content_hash": f"sha256:{hashlib.sha256(text).hexdigest()}",
    }
