"""What a choice of agent and model changes in the user's files (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from uwfgit.agents.installed import edit_args
from uwfgit.config import get_key, set_key
from uwfgit.config.dotenv import add_variable, parse_dotenv
from uwfgit.config.providers import PRESETS
from uwfgit.errors import ConfigError, NotFoundError, UsageError

BUILTIN: Final = "builtin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An agent, a model, or both; what is ``None`` stays as it is."""

    agent: str | None = None
    kind: str | None = None
    command: str | None = None
    edits: bool = False
    provider: str | None = None
    base_url: str | None = None
    key: str | None = field(default=None, repr=False)
    model: str | None = None


def change_config(
    content: Mapping[str, Any], choice: Choice, *, source: str
) -> dict[str, Any]:
    """Return the configuration with the choice in it; all else stays."""
    changed: dict[str, Any] = dict(content)
    for key, value in _changes(changed, choice):
        changed = set_key(changed, key, value, source=source)
    return changed


def _changes(content: Mapping[str, Any], choice: Choice) -> Iterator[tuple[str, str]]:
    provider = choice.provider
    if provider is not None:
        if choice.base_url is not None:
            yield f"providers.{provider}.baseUrl", choice.base_url
        variable = key_variable(content, provider)
        if choice.key is not None and variable is not None:
            yield f"providers.{provider}.apiKeyEnv", variable
    if choice.model is not None:
        model = choice.model
        yield "defaultModel", model if provider is None else f"{provider}/{model}"
    agent = choice.agent
    if agent is None:
        return
    yield f"agents.{agent}.kind", choice.kind or agent
    if choice.command is not None:
        yield f"agents.{agent}.command", choice.command
    args = edit_args(choice.kind or agent) if choice.edits else ()
    if args and _find(content, f"agents.{agent}.args") is None:
        yield f"agents.{agent}.args", json.dumps(args)
    yield "defaultAgent", agent


def key_variable(content: Mapping[str, Any], provider: str) -> str | None:
    """Name the variable of a provider's key; ``None`` for one that takes none."""
    configured = _find(content, f"providers.{provider}.apiKeyEnv")
    if isinstance(configured, str):
        return configured
    preset = PRESETS.get(provider)
    if preset is not None:
        return preset.key
    words = "".join(c if c.isalnum() else "_" for c in provider.upper())
    return f"{'_' if words[0].isdigit() else ''}{words}_API_KEY"


def change_dotenv(text: str, variable: str, key: str) -> str:
    """Return ``.env`` with a key in it; the last line of a name counts.

    Raises:
        ConfigError: No line can be added to it.
    """
    if parse_dotenv(text).get(variable) == key:
        return text
    added = add_variable(text, variable, key)
    if added is None:
        raise ConfigError(
            "a line cannot be added to .env: a quote is not closed",
            hint="close it and try again",
        )
    return added


def check_choice(content: Mapping[str, Any], choice: Choice) -> None:
    """Refuse a choice that could not work.

    Raises:
        UsageError: A provider without an address, a model without a provider, or
            a key of nobody.
    """
    provider = choice.provider
    if provider is None:
        if choice.base_url is not None or choice.key is not None:
            raise UsageError("--base-url and --api-key need --provider NAME")
        if choice.model is not None and "/" not in choice.model:
            known = _find(content, f"models.{choice.model}")
            if known is None:
                raise UsageError(
                    f"--model '{choice.model}' needs --provider NAME",
                    hint="or write it as PROVIDER/NAME",
                )
        return
    address = choice.base_url or _find(content, f"providers.{provider}.baseUrl")
    if address is None and provider not in PRESETS:
        raise UsageError(
            f"provider '{provider}' needs --base-url URL",
            hint=f"known without it: {', '.join(PRESETS)}",
        )
    if choice.model is None and _find(content, "defaultModel") is None:
        raise UsageError("--provider needs --model NAME")


def _find(content: Mapping[str, Any], key: str) -> object:
    try:
        return get_key(content, key)
    except NotFoundError:
        return None
