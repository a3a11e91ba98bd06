"""The agents of uwf as adapters: commands that older configurations name."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from uwfgit.agents.base import Agent
from uwfgit.agents.registry import Surroundings, make_agent
from uwfgit.config import Settings, settings_from
from uwfgit.config.dotenv import parse_dotenv
from uwfgit.kit.create import make_main
from uwfgit.model.yaml.core import parse_yaml
from uwfgit.store.files import read_plain

_MOST_BYTES: Final = 1024 * 1024
_MOCK_DATA: Final = "--mock-data"


def builtin() -> int:
    """Be ``uwf-builtin``."""
    return _run("builtin")


def claude_code() -> int:
    """Be ``uwf-claude-code``."""
    return _run("claude-code")


def codex() -> int:
    """Be ``uwf-codex``."""
    return _run("codex")


def hermes() -> int:
    """Be ``uwf-hermes``."""
    return _run("hermes")


def cursor() -> int:
    """Be ``uwf-cursor``."""
    return _run("cursor")


def mock(words: Sequence[str] | None = None) -> int:
    """Be ``uwf-mock``: replies out of the file that ``--mock-data`` names."""
    given = list(sys.argv[1:] if words is None else words)
    if _MOCK_DATA not in given[:-1]:
        sys.stderr.write(f"error: uwf-mock needs {_MOCK_DATA} FILE\n")
        return 2
    at = given.index(_MOCK_DATA)
    file = Path(given[at + 1])
    del given[at : at + 2]
    return make_main(lambda env: _make(f"scripted:{file}", env))(given)


def _run(kind: str) -> int:
    return make_main(lambda environment: _make(kind, environment))()


def _make(spec: str, environment: Mapping[str, str]) -> Agent:
    home = Path(environment["UWF_HOME"])
    text = _read(home / ".env").decode("utf-8", "surrogateescape")
    return make_agent(
        spec,
        Surroundings(
            settings=_read_settings(home),
            base_dir=Path.cwd(),
            environment=environment,
            variables={**parse_dotenv(text), **os.environ},
        ),
    )


def _read_settings(home: Path) -> Settings:
    file = home / "config.yaml"
    data = _read(file)
    content = parse_yaml(data, file=str(file)).value if data.strip() else None
    settings, _ = settings_from(
        content,
        None,
        user_source=file,
        repository_source="",
        home=Path.home(),
        root=None,
    )
    return settings


def _read(file: Path) -> bytes:
    try:
        return read_plain(file, most=_MOST_BYTES)
    except OSError:
        return b""
