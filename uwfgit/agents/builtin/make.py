"""A builtin agent out of its settings; what is missing is told in one line."""

from __future__ import annotations

from collections.abc import Mapping

from uwfgit.agents.builtin.agent import MAX_TURNS, BuiltinAgent
from uwfgit.agents.builtin.tools import DEFAULT_TOOLS, TOOLS
from uwfgit.agents.http.chat import ChatModel
from uwfgit.agents.http.client import Endpoint
from uwfgit.config import AgentSettings, Settings
from uwfgit.config.providers import ModelPlace, find_model
from uwfgit.errors import ConfigError


def make_builtin(
    agent: AgentSettings, *, settings: Settings, variables: Mapping[str, str]
) -> BuiltinAgent:
    """Make the agent.

    Its model: its own ``url`` and ``model``, else what ``model`` names, else
    ``modelOverrides``' entry of the agent, else the default model.

    Raises:
        ConfigError: No model, address or key is configured; or an unknown tool.
    """
    place = _find_place(agent, settings, variables)
    tools = DEFAULT_TOOLS if agent.tools is None else agent.tools
    unknown = [name for name in tools if name not in TOOLS]
    if unknown:
        raise ConfigError(
            f"unknown tool '{unknown[0]}'",
            key=f"agents.{agent.name}.tools",
            hint=f"tools: {', '.join(TOOLS)}, or none for a plain model",
        )
    hidden = () if place.key_variable is None else (place.key_variable,)
    return BuiltinAgent(
        label=agent.name,
        model=chat_model(place),
        tools=tools,
        max_turns=agent.max_turns or MAX_TURNS,
        timeout_seconds=agent.timeout_seconds,
        env=agent.env,
        folders=agent.folders,
        hidden=hidden,
    )


def chat_model(place: ModelPlace) -> ChatModel:
    """Return a model as the client takes it."""
    endpoint = Endpoint(base_url=place.base_url, key=place.key, key_name=place.key_name)
    return ChatModel(endpoint=endpoint, name=place.name)


def _find_place(
    agent: AgentSettings, settings: Settings, variables: Mapping[str, str]
) -> ModelPlace:
    key = f"agents.{agent.name}.model"
    if agent.url is None:
        word = agent.model or settings.model_overrides.get(agent.name)
        return find_model(settings, word, variables=variables, key=key)
    if agent.model is None:
        raise ConfigError(
            "no model is configured", key=key, hint=f"`uwf config set {key} NAME`"
        )
    return ModelPlace(provider=agent.name, name=agent.model, base_url=agent.url)
