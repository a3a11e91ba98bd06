"""The secrets of this user; the only place that gathers them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uwfgit.model.mask import Masker, Secret, collect_secrets
from uwfgit.store.files import read_plain

if TYPE_CHECKING:
    from uwfgit.config import Settings

DOTENV_FILE: Final = ".env"
_MOST_BYTES: Final = 1024 * 1024


def make_masker(
    environment: Mapping[str, str], home: Path, settings: Settings | None = None
) -> Masker:
    """Make what knows the secrets of variables, of ``.env`` and of the settings.

    Args:
        environment: The variables.
        home: ``UWF_HOME``; its ``.env`` may be missing or unreadable.
        settings: Without them where there are none, and as long as it is not known
            whether they load.
    """
    if settings is not None and not settings.masks:
        return Masker()
    providers = settings.providers if settings else {}
    named = {each.api_key_env for each in providers.values() if each.api_key_env}
    secrets: list[Secret] = [*collect_secrets(environment, names=named)]
    secrets += collect_secrets(read_dotenv(home / DOTENV_FILE))
    for agent in settings.agents.values() if settings else ():
        secrets += collect_secrets(agent.env)
    keys = {
        f"providers.{name}.apiKey": provider.api_key
        for name, provider in providers.items()
        if provider.api_key
    }
    if settings is not None and settings.hub_secret:
        keys["hub.secret"] = settings.hub_secret
    return Masker([*secrets, *collect_secrets(keys, names=keys)])


def read_dotenv(path: Path) -> Mapping[str, str]:
    """Read a ``.env`` file; one that cannot be read holds nothing."""
    text = read_dotenv_text(path)
    if not text:
        return {}
    from uwfgit.config.dotenv import parse_dotenv

    return parse_dotenv(text.replace("\r\n", "\n").replace("\r", "\n"))


def read_dotenv_text(path: Path) -> str:
    """Read a ``.env`` file as it is; one that cannot be read is empty."""
    try:
        data = read_plain(path, most=_MOST_BYTES)
    except OSError:
        return ""
    return data.decode("utf-8", "surrogateescape")
