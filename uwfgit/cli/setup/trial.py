"""Whether what was set up works: one call of the model, or the program's version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from uwfgit.errors import ConfigError

if TYPE_CHECKING:
    from uwfgit.config import Settings

_SECONDS: Final = 15.0


class Trial(Struct, frozen=True, kw_only=True):
    """How it went, in one line."""

    ok: bool
    message: str


def try_model(settings: Settings, variables: Mapping[str, str]) -> Trial:
    """Ask the default model for one word; costs a few tokens."""
    from uwfgit.agents.builtin.make import chat_model
    from uwfgit.agents.http.chat import Completion, Patience, complete
    from uwfgit.agents.http.client import HttpBounds
    from uwfgit.config.providers import find_model

    try:
        place = find_model(settings, None, variables=variables, key="defaultModel")
    except ConfigError as exc:
        return Trial(ok=False, message=exc.message)
    found = complete(
        chat_model(place),
        [{"role": "user", "content": "Say ok."}],
        bounds=HttpBounds(
            idle_seconds=_SECONDS, total_seconds=_SECONDS, max_bytes=65_536
        ),
        patience=Patience(tries=1),
    )
    if isinstance(found, Completion):
        return Trial(ok=True, message=f"{found.model or place.name} answered")
    return Trial(ok=False, message=found.message)
