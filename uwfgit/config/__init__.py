"""Configuration: the closed table of keys, and settings made of it (pure)."""

from __future__ import annotations

from uwfgit.config.dotenv import masked
from uwfgit.config.keys import (
    get_key,
    is_group,
    parse_dotted,
    set_group,
    set_key,
    unset_key,
)
from uwfgit.config.settings import (
    AgentChoice,
    AgentSettings,
    JudgeSettings,
    Limits,
    Model,
    Provider,
    SettingEntry,
    Settings,
    settings_from,
)
from uwfgit.config.table import KEYS, Key

__all__ = [
    "KEYS",
    "AgentChoice",
    "AgentSettings",
    "JudgeSettings",
    "Key",
    "Limits",
    "Model",
    "Provider",
    "SettingEntry",
    "Settings",
    "get_key",
    "is_group",
    "masked",
    "parse_dotted",
    "set_group",
    "set_key",
    "settings_from",
    "unset_key",
]
