"""Names that stand in files here, for completion: agents, roles, remotes, the trash.

Read with plain text tools, as all of completion: neither git nor a store is opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_REMOTE: Final = re.compile(
    r"^[ \t]*\[remote[ \t]+\"([A-Za-z0-9][A-Za-z0-9._/-]*)\"\]", re.MULTILINE
)
_ROLES: Final = re.compile(
    r"^roles:[ \t]*(?:#[^\n]*)?\n((?:[ \t]+[^\n]*\n|[ \t]*(?:#[^\n]*)?\n)+)",
    re.MULTILINE,
)
_FIRST_KEY: Final = re.compile(r"^([ \t]+)([A-Za-z][\w-]*)[ \t]*:", re.MULTILINE)
_ALIAS: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def list_remotes(config: bytes) -> list[str]:
    """Return the remotes of a git configuration file."""
    return sorted(set(_REMOTE.findall(config.decode("utf-8", "replace"))))


def list_aliases(config: bytes) -> list[str]:
    """Return the agents that a ``config.yaml`` defines."""
    if b"agents" not in config:
        return []
    import yaml

    try:
        read = yaml.safe_load(config)
    except (yaml.YAMLError, ValueError):
        return []
    agents = read.get("agents") if isinstance(read, dict) else None
    names = agents if isinstance(agents, dict) else {}
    return sorted(n for n in names if isinstance(n, str) and _ALIAS.fullmatch(n))


def list_roles(texts: Iterable[bytes]) -> Iterator[str]:
    """Yield the roles of workflow files, each name once.

    By their layout, as people write them: the keys below ``roles:`` that are
    indented least.
    """
    seen: set[str] = set()
    for text in texts:
        block = _ROLES.search(text.decode("utf-8", "replace") + "\n")
        keys = _FIRST_KEY.findall(block[1]) if block else []
        for indent, name in keys:
            if indent == keys[0][0] and name not in seen:
                seen.add(name)
                yield name
