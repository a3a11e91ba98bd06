"""What the world around a command says: its time, its folders, files and secrets.

Beside the context, the only place that asks the system for any of it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from uwfgit.cli.frame.screen import shown
from uwfgit.constants import YAML_MAX_BYTES
from uwfgit.errors import ConfigError, StateError, UwfError
from uwfgit.shell import quote_word
from uwfgit.store.files import read_plain

if TYPE_CHECKING:
    from uwfgit.config import Settings
    from uwfgit.model.mask import Masker, Secret

VARIABLE: Final = "UWF_READY_FD"
"""Names the file descriptor to write to; of no meaning to a worker's children."""


class Ready(Struct):
    """The line to whoever started this process; says one thing, then is silent."""

    descriptor: int | None

    def tell(self, message: Mapping[str, object]) -> None:
        """Say that the first step is about to run, or why nothing will run."""
        descriptor, self.descriptor = self.descriptor, None
        if descriptor is None:
            return
        with suppress(OSError):
            os.write(descriptor, json.dumps(message).encode() + b"\n")
        with suppress(OSError):
            os.close(descriptor)


InputSource = Literal["option", "environment", "git config", "repository", "user"]

_FARTHEST: Final = 14 * 60
"""Minutes from UTC, on the Line Islands; nowhere is farther."""


class StoreChoice(Struct, frozen=True, kw_only=True):
    """The store a command uses, and what chose it."""

    path: Path
    source: InputSource

    @property
    def init_hint(self) -> str:
        """Say how to make it."""
        words = {"repository": "", "user": " --user"}
        named = f" --store {quote_word(str(self.path))}"
        return f"create it with: uwf init{words.get(self.source, named)}"


def registered_home() -> str | None:
    """Return the home folder that the system knows the user by."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return None


def now_ms() -> int:
    """Return the time in ms since 1970."""
    return time.time_ns() // 1_000_000


def utc_offset() -> int:
    """Return the local time's distance from UTC, in minutes.

    Of a zone that no place on earth has, the nearest that one has: commits with
    any other do not verify.
    """
    minutes = time.localtime().tm_gmtoff // 60
    return max(-_FARTHEST, min(minutes, _FARTHEST))


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment agents start from: ours, with this ``uwf`` first."""
    child = {name: value for name, value in environment.items() if name != VARIABLE}
    started = shutil.which(sys.argv[0], path=child.get("PATH"))
    beside = Path(sys.executable).parent / "uwf"
    for program in (*([Path(started)] if started else []), beside):
        if program.name == "uwf" and os.access(program, os.X_OK):
            own, path = str(program.absolute().parent), child.get("PATH") or os.defpath
            child["PATH"] = os.pathsep.join([own, path])
            break
    return child


def read_config(path: Path) -> object:
    """Read a configuration file; ``None`` when there is none.

    Raises:
        ConfigError: It cannot be read, or is no YAML.
    """
    try:
        data = read_plain(path, most=YAML_MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise ConfigError(f"cannot be read: {exc.strerror}", source=path) from exc
    from uwfgit.model.yaml.core import parse_yaml

    if not data.strip():
        return None
    try:
        return parse_yaml(data, file=str(path)).value
    except UwfError as exc:
        raise ConfigError(exc.message, hint=exc.hint) from exc


def require_extra(extra: str, parts: Sequence[str], *, what: str) -> None:
    """Refuse what needs packages that are installed only when asked for.

    Raises:
        StateError: They are not installed; says how, as this uwf was installed.
    """
    from importlib.util import find_spec

    if all(find_spec(name) is not None for name in parts):
        return
    here = Path(sys.prefix).parts
    if "pipx" in here:
        command = f"pipx inject uwfgit 'uwfgit[{extra}]'"
    elif "uv" in here and "tools" in here:
        command = f"uv tool install 'uwfgit[{extra}]'"
    else:
        command = f"{shown(sys.executable)} -m pip install 'uwfgit[{extra}]'"
    raise StateError(
        f"{what} needs uwfgit[{extra}], which is not installed",
        hint=f"run: {command}",
    )


DOTENV_FILE: Final = ".env"
DOTENV_BYTES: Final = 1024 * 1024


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
    from uwfgit.model.mask import Masker, collect_secrets

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
    try:
        data = read_plain(path, most=DOTENV_BYTES)
    except OSError:
        return {}
    from uwfgit.config.dotenv import parse_dotenv

    text = data.decode("utf-8", "surrogateescape")
    return parse_dotenv(text.replace("\r\n", "\n").replace("\r", "\n"))
