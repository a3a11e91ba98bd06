"""The real CLIs, as ``make test-agents`` installs them, in front of the fake API."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.agents.children import make_request
from tests.agents.fake_api import FakeApi, Script
from uwfgit.agents.base import AgentReply, Turn, Usage
from uwfgit.agents.clis.headless import HeadlessAgent
from uwfgit.agents.clis.kinds import CLI_KINDS, load_cli

_HERE: Final = Path(__file__).resolve().parents[2] / "build" / "agents"
_PLACES: Final[Mapping[str, str]] = {
    "claude-code": "python/claude_agent_sdk/_bundled/claude",
    "codex": "python/codex_cli_bin/bin/codex",
    "gemini": "node/node_modules/.bin/gemini",
    "opencode": "node/node_modules/.bin/opencode",
    "hermes": "hermes/bin/hermes",
}
_CODEX_CONFIG: Final = """\
model = "fake-1"
model_provider = "fake"

[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"""


def find_binary(kind: str) -> str | None:
    """Find the CLI of a kind: the one installed for tests, else one on PATH."""
    place = _HERE / _PLACES[kind]
    return str(place) if place.exists() else shutil.which(CLI_KINDS[kind].program)


def need_binary(kind: str) -> str:
    """Give the CLI of a kind, or skip the test with the reason."""
    found = find_binary(kind)
    if found is None:
        pytest.skip(f"{kind} is not installed (`make test-agents` does)")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A machine's user, as far as a CLI sees one: a home and what is set in it."""

    path: Path

    def point_at(self, kind: str, url: str) -> dict[str, str]:
        """Write what the CLI needs to reach an API; give the variables it needs."""
        self.path.mkdir(parents=True, exist_ok=True)
        return {
            "HOME": str(self.path),
            "PATH": os.environ["PATH"],
            **_POINTERS[kind](self.path, url),
        }


def _point_claude(home: Path, url: str) -> dict[str, str]:  # noqa: ARG001 - one of a table
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "x",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
    }


def _point_codex(home: Path, url: str) -> dict[str, str]:
    folder = home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(_CODEX_CONFIG.format(url=url))
    return {"CODEX_HOME": str(folder), "FAKE_KEY": "x"}


def _point_gemini(home: Path, url: str) -> dict[str, str]:
    folder = home / ".gemini"
    folder.mkdir(exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "maxAttempts": 1},
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    return {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "x"}


def _point_opencode(home: Path, url: str) -> dict[str, str]:
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "fake",
        "options": {"baseURL": f"{url}/v1", "apiKey": "x"},
        "models": {"m": {"name": "m", "tool_call": True}},
    }
    config = {
        "provider": {"fake": provider},
        "model": "fake/m",
        "small_model": "fake/m",
        "autoupdate": False,
        "share": "disabled",
    }
    (folder / "opencode.json").write_text(json.dumps(config))
    return {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }


def _point_hermes(home: Path, url: str) -> dict[str, str]:
    folder = home / ".hermes"
    folder.mkdir(exist_ok=True)
    config = {
        "model": {
            "default": "fake-1",
            "provider": "custom",
            "base_url": f"{url}/v1",
            "api_key": "x",
        },
        # It would be fetched from the network.
        "security": {"tirith_enabled": False},
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    return {}


_POINTERS: Final[Mapping[str, Callable[[Path, str], dict[str, str]]]] = {
    "claude-code": _point_claude,
    "codex": _point_codex,
    "gemini": _point_gemini,
    "opencode": _point_opencode,
    "hermes": _point_hermes,
}
ARGS: Final[Mapping[str, tuple[str, ...]]] = {
    "claude-code": ("--permission-mode", "bypassPermissions"),
    "codex": ("--skip-git-repo-check", "-s", "workspace-write"),
    "gemini": ("--approval-mode", "yolo", "--skip-trust", "-m", "gemini-2.5-pro"),
    "opencode": (),
    "hermes": ("--yolo",),
}
"""What an agent that edits is given beyond the defaults."""


@dataclass(slots=True, kw_only=True)
class Machine:
    """One machine with one CLI, a folder to work in and the API it talks to."""

    kind: str
    home: Home
    cwd: Path
    api: FakeApi
    told: list[Turn] = field(default_factory=list)

    def ask(
        self,
        prompt: str = "Do it.",
        *,
        session: str | None = None,
        total: Usage | None = None,
        idle: float = 60,
        args: tuple[str, ...] | None = None,
        **env: str,
    ) -> AgentReply:
        """Run the CLI once, as the engine would."""
        cli = load_cli(self.kind)
        agent = HeadlessAgent(
            cli=cli,
            label=self.kind,
            command=need_binary(self.kind),
            args=ARGS[self.kind] if args is None else args,
        )
        self.cwd.mkdir(parents=True, exist_ok=True)
        environment = {**self.home.point_at(self.kind, self.api.url), **env}
        return agent.run(
            make_request(
                cwd=self.cwd,
                prompt=prompt,
                session=session,
                total=total,
                environment=environment,
                idle=idle,
                on_turn=self.told.append,
            )
        )


def make_machine(kind: str, api: FakeApi, folder: Path) -> Machine:
    """Make a machine of its own in a folder."""
    return Machine(
        kind=kind, home=Home(path=folder / "home"), cwd=folder / "work", api=api
    )


Play = Callable[[Script], Machine]
