"""Which model a word means, where it is and which key it takes (pure).

The only place that knows providers by name; a name given in the configuration wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from uwfgit.config.settings import Provider, Settings
from uwfgit.errors import ConfigError
from uwfgit.spelling import suggest


class Preset(Struct, frozen=True, kw_only=True):
    """A provider everyone calls by the same name; without ``key`` it takes none."""

    base_url: str
    key: str | None


PRESETS: Final[Mapping[str, Preset]] = {
    "openai": Preset(base_url="https://api.openai.com/v1", key="OPENAI_API_KEY"),
    "anthropic": Preset(
        base_url="https://api.anthropic.com/v1", key="ANTHROPIC_API_KEY"
    ),
    "xai": Preset(base_url="https://api.x.ai/v1", key="XAI_API_KEY"),
    "openrouter": Preset(
        base_url="https://openrouter.ai/api/v1", key="OPENROUTER_API_KEY"
    ),
    "venice": Preset(base_url="https://api.venice.ai/api/v1", key="VENICE_API_KEY"),
    "dashscope": Preset(
        base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
        key="DASHSCOPE_API_KEY",
    ),
    "deepseek": Preset(base_url="https://api.deepseek.com/v1", key="DEEPSEEK_API_KEY"),
    "siliconflow": Preset(
        base_url="https://api.siliconflow.cn/v1", key="SILICONFLOW_API_KEY"
    ),
    "volcengine": Preset(
        base_url="https://ark.cn-beijing.volces.com/api/v3", key="ARK_API_KEY"
    ),
    "kimi": Preset(base_url="https://api.moonshot.cn/v1", key="MOONSHOT_API_KEY"),
    "glm": Preset(base_url="https://open.bigmodel.cn/api/paas/v4", key="ZHIPU_API_KEY"),
    "stepfun": Preset(base_url="https://api.stepfun.com/v1", key="STEPFUN_API_KEY"),
    "minimax": Preset(base_url="https://api.minimax.io/v1", key="MINIMAX_API_KEY"),
    "ollama": Preset(base_url="http://localhost:11434/v1", key=None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlace:
    """A model, where it is asked, and what identifies us there.

    ``key_variable`` is ``None`` where the key stands in the configuration, and where
    none is needed.
    """

    provider: str
    name: str
    base_url: str
    key: str | None = field(default=None, repr=False)
    key_variable: str | None = None

    @property
    def key_name(self) -> str | None:
        """How messages call the key."""
        if self.key_variable is not None:
            return f"${self.key_variable}"
        return f"providers.{self.provider}.apiKey" if self.key else None


def find_provider(settings: Settings, name: str) -> Provider | None:
    """Return what is known of a provider: the configured values, else the preset's."""
    own, preset = settings.providers.get(name), PRESETS.get(name)
    if preset is None:
        return own
    if own is None:
        return Provider(base_url=preset.base_url, api_key_env=preset.key)
    has_key = own.api_key_env is not None or own.api_key is not None
    return Provider(
        base_url=own.base_url or preset.base_url,
        api_key_env=own.api_key_env if has_key else preset.key,
        api_key=own.api_key,
    )


def find_model(
    settings: Settings, word: str | None, *, variables: Mapping[str, str], key: str
) -> ModelPlace:
    """Find the model a word means: an alias of ``models``, or ``PROVIDER/NAME``.

    Args:
        settings: Where aliases and providers are looked up.
        word: ``None`` means the default model.
        variables: Where keys are: the environment, over the ``.env`` file.
        key: The configuration's key that should name a model, for messages.

    Raises:
        ConfigError: A setting it needs is missing; names it and how to set it.
    """
    word = word or settings.default_model
    if word is None:
        raise ConfigError(
            "no model is configured",
            key=key,
            hint="`uwf setup`, or `uwf config set defaultModel PROVIDER/NAME`",
        )
    provider, name = _split(settings, word, key)
    found = find_provider(settings, provider)
    if found is None:
        names = [*settings.providers, *PRESETS]
        raise ConfigError(
            f"unknown provider '{provider}'{suggest(provider, names)}",
            key=key,
            hint=f"`uwf config set providers.{provider}.baseUrl URL`, or one of "
            f"{', '.join(dict.fromkeys(names))}",
        )
    if found.base_url is None:
        raise ConfigError(
            f"provider '{provider}' has no address",
            hint=f"`uwf config set providers.{provider}.baseUrl URL`",
        )
    return ModelPlace(
        provider=provider,
        name=name,
        base_url=found.base_url,
        key=_find_key(provider, found, variables),
        key_variable=found.api_key_env,
    )


def _split(settings: Settings, word: str, key: str) -> tuple[str, str]:
    model = settings.models.get(word)
    if model is not None:
        return model.provider, model.name
    provider, slash, name = word.partition("/")
    if slash and provider and name:
        return provider, name
    raise ConfigError(
        f"unknown model '{word}'{suggest(word, list(settings.models))}",
        key=key,
        hint="an alias of your models, or PROVIDER/NAME",
    )


def _find_key(
    name: str, provider: Provider, variables: Mapping[str, str]
) -> str | None:
    if provider.api_key_env is None:
        return provider.api_key
    value = variables.get(provider.api_key_env) or provider.api_key
    if not value:
        raise ConfigError(
            f"provider '{name}' has no key: {provider.api_key_env} is not set",
            hint=f"set {provider.api_key_env}, or put a line "
            f"{provider.api_key_env}=KEY into <UWF_HOME>/.env",
        )
    return value
