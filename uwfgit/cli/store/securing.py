"""Keys moved out of the configuration, into the user's ``.env``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uwfgit.cli.frame.world import DOTENV_BYTES
from uwfgit.config.dotenv import add_variable, is_variable_name, parse_dotenv
from uwfgit.config.keys import check_value
from uwfgit.errors import ConfigError, UwfError
from uwfgit.store.files import read_plain, write_over

if TYPE_CHECKING:
    from uwfgit.model.yaml.located import Located, Mark

_KEY: Final = "apiKey"
_NAME: Final = "apiKeyEnv"
_BOM: Final = "\ufeff"
_LEAST_CHARS: Final = 8
"""A shorter value would be found in ordinary words."""
_CODING: Final = ("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedKey:
    """A provider's key, and the variable that holds it from now on."""

    provider: str
    variable: str
    value: str = field(repr=False)
    was_named: bool

    @property
    def key(self) -> str:
        """Where it stood in the configuration."""
        return f"providers.{self.provider}.{_KEY}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The keys to move, and both files as they are to be."""

    keys: tuple[MovedKey, ...]
    config: bytes = field(repr=False)
    dotenv: bytes = field(repr=False)

    def lines_left(self, moved: MovedKey) -> tuple[int, ...]:
        """Return the lines of the configuration in which the value still stands."""
        if len(moved.value) < _LEAST_CHARS:
            return ()
        lines = self.config.decode().split("\n")
        return tuple(at for at, line in enumerate(lines, 1) if moved.value in line)


def plan_move(config: Path, dotenv: Path) -> Move | None:
    """Find what has to change so that no provider's key stands in the configuration.

    Nothing is written. Of the configuration only the lines of the keys change.

    Returns:
        ``None`` when none stands there.

    Raises:
        ConfigError: A file cannot be read or edited, or a variable that has
            another value would have to be set.
    """
    from uwfgit.model.yaml.core import parse_yaml

    data = read_own(config)
    if not data.strip():
        return None
    try:
        located = parse_yaml(data, file=str(config))
    except UwfError as exc:
        raise ConfigError(exc.message, hint=exc.hint) from exc
    keys = tuple(_find_keys(located.value, str(config)))
    if not keys:
        return None
    return Move(
        keys=keys,
        config=_without_keys(located, data, keys, config).encode(),
        dotenv=_with_keys(dotenv, keys).encode(*_CODING),
    )


def read_own(path: Path) -> bytes:
    """Read one of the user's own files before it is changed; a new one is empty.

    Raises:
        ConfigError: It is there and cannot be read, or is larger than is read of it
            later: nothing may be put in its place.
    """
    try:
        return read_plain(path, most=DOTENV_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as exc:
        raise ConfigError(f"cannot be read: {exc.strerror}", source=path) from exc


def _find_keys(content: object, source: str) -> Iterator[MovedKey]:
    providers = content.get("providers") if isinstance(content, Mapping) else None
    for name, provider in providers.items() if isinstance(providers, Mapping) else ():
        values: Mapping[str, Any] = provider if isinstance(provider, Mapping) else {}
        if values.get(_KEY) is None:
            continue
        check_value(("providers", name, _KEY), values[_KEY], source=source)
        variable = values.get(_NAME)
        if variable is not None:
            check_value(("providers", name, _NAME), variable, source=source)
            if not is_variable_name(variable):
                raise ConfigError(
                    "is not a name of a variable",
                    source=source,
                    key=f"providers.{name}.{_NAME}",
                )
        words = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_") or "PROVIDER"
        digit = "_" if words[0].isdigit() else ""
        yield MovedKey(
            provider=name,
            variable=variable or f"{digit}{words}_API_KEY",
            value=values[_KEY],
            was_named=_NAME in values,
        )


def _with_keys(path: Path, keys: tuple[MovedKey, ...]) -> str:
    text = read_own(path).decode(*_CODING)
    for moved in keys:
        known = parse_dotenv(text).get(moved.variable)
        if known == moved.value:
            continue
        if known:
            raise ConfigError(
                f"{moved.variable} has another value than {moved.key}",
                source=path,
                hint="remove the one that no longer counts, or name another variable "
                f"with {moved.key}Env",
            )
        added = add_variable(text, moved.variable, moved.value)
        if added is None:
            raise ConfigError(
                "a line cannot be added: a quote is not closed",
                source=path,
                hint="close it and try again",
            )
        text = added
    return text


def _without_keys(
    located: Located, data: bytes, keys: tuple[MovedKey, ...], path: Path
) -> str:
    from uwfgit.model.yaml.apply_changes import rewrite_text
    from uwfgit.model.yaml.core import parse_yaml
    from uwfgit.model.yaml.edit_marks import update
    from uwfgit.model.yaml.edits import EditError

    mark = located.mark
    for moved in keys:
        mark = update(mark, ("providers", moved.provider), partial(_name, moved))
    with suppress(EditError, UwfError):
        edited = rewrite_text(located.mark.source, located.mark, mark, fine=False)
        if parse_yaml(edited.text).value == mark.value:
            bom = _BOM if data.decode().startswith(_BOM) else ""
            return bom + edited.text
    raise ConfigError(
        f"the file cannot be edited so that '{keys[0].key}' is out of it",
        source=path,
        hint=f"move it by hand: {keys[0].variable}=… in .env, and "
        f"{keys[0].key}Env: {keys[0].variable} here",
    )


def _name(moved: MovedKey, provider: Mark) -> Mark:
    """Let a provider name the variable in the place where its key stood."""
    from uwfgit.model.yaml.edit_marks import drop, make_mark, put, rename

    variable = make_mark(moved.variable, provider)
    if moved.was_named:
        return put(drop(provider, _KEY), _NAME, variable)
    return rename(put(provider, _KEY, variable), _KEY, _NAME)


def write_config(path: Path, content: Mapping[str, Any]) -> None:
    """Put a configuration in place, as :func:`write_privately` does.

    Raises:
        ConfigError: It cannot be written, or nobody could read it again.
    """
    from uwfgit.model.yaml.dump import dump_yaml

    try:
        json.dumps(content, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as exc:
        raise ConfigError("a value is not UTF-8", source=path) from exc
    write_privately(path, dump_yaml(dict(content)).encode())


def write_privately(path: Path, data: bytes) -> None:
    """Put a file in place, whole or not at all, for its user alone (0600).

    Where the path is a link, the file that it leads to is replaced.

    Raises:
        ConfigError: It cannot be written, or stands for something that is no file.
    """
    try:
        path = path.resolve()
        if path.exists() and not path.is_file():
            raise ConfigError("it is not a file", source=path)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_over(path, data, mode=0o600, fsync=True)
    except OSError as exc:
        raise ConfigError(f"cannot be written: {exc.strerror}", source=path) from exc
