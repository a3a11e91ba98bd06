"""Settings: the configuration's layers merged into frozen values.

Pure: home and root come in; paths are made absolute by their names alone.
"""

from __future__ import annotations

import dataclasses
import os.path
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import fields

from uwfgit.config.keys import LayerValues, find_key, read_layer
from uwfgit.config.table import ALIAS, KeyPath
from uwfgit.errors import ConfigError

Item = TypeVar("Item")
DEFAULT: Final = "default"
"""The origin of a value that nobody set."""

_API_KEY: Final = ("providers", ("apiKey",))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """An agent's alias, or what ``--agent KIND:ARG`` says of one.

    ``timeout_seconds`` is how long one run may take, silent or not; it stands in
    for both general limits. ``tools`` is empty for ``none``.
    """

    name: str
    kind: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    model: str | None = None
    tools: tuple[str, ...] | None = None
    max_turns: int | None = None
    timeout_seconds: float | None = None
    script: Path | None = None
    url: str | None = None
    gateway: str | None = None
    workflow: str | None = None
    folders: tuple[Path, ...] = ()


class AgentChoice(Struct, frozen=True, kw_only=True):
    """An agent as a configuration names it; a repository may name aliases only."""

    spec: str
    source: str
    key: str
    alias_only: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A model provider; the key itself is never shown."""

    base_url: str | None = None
    api_key_env: str | None = None
    api_key: str | None = dataclasses.field(default=None, repr=False)


class Model(Struct, frozen=True, kw_only=True):
    """A model of a provider."""

    provider: str
    name: str


class JudgeSettings(Struct, frozen=True, kw_only=True):
    """Who judges from outside the workflow, and after how many steps."""

    model: str | None = None
    agent: str | None = None
    every: int = 1


class Limits(Struct, frozen=True, kw_only=True, rename="camel"):
    """Bounds of a run, each below ``limits``; a repository can lower them only."""

    max_steps: int = 100
    idle_seconds: float = 900
    wall_seconds: float | None = None
    corrections: int = 2
    context_chars: int = 32_000
    snapshot_seconds: float = 10
    max_cost_usd: float | None = None
    max_tokens: int | None = None
    max_turns: int | None = None
    max_minutes: float | None = None
    depth: int = 3
    """How many threads deep one may call others."""


DEFAULTS: Final[Mapping[KeyPath, object]] = {
    ("concurrency", "maxRunning"): 4,
    ("hub", "timeoutSeconds"): 30,
    ("record", "toolResults"): "full",
    ("record", "mask"): "known",
    ("record", "code"): "keep",
    ("record", "session"): "keep",
    **{
        ("limits", each.encode_name): each.default
        for each in fields(Limits)
        if each.default is not None
    },
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SettingEntry:
    """One value in force and where it comes from; ``value`` is not masked."""

    path: KeyPath
    value: object = dataclasses.field(repr=False)
    origin: str

    @property
    def key(self) -> str:
        """The dotted name."""
        return ".".join(self.path)


class Settings(Struct, frozen=True, kw_only=True):
    """Everything configured: layers merged, paths absolute; by default, the defaults.

    ``agent_overrides`` is keyed by workflow and role; ``extract_model`` reads the
    fields of a reply that has none: the override, else the model ``extract``, else the
    default one; ``entries`` lists every value with its origin.
    """

    agents: Mapping[str, AgentSettings] = field(default_factory=dict)
    default_agent: AgentChoice | None = None
    agent_overrides: Mapping[tuple[str, str], AgentChoice] = field(default_factory=dict)
    providers: Mapping[str, Provider] = field(default_factory=dict)
    models: Mapping[str, Model] = field(default_factory=dict)
    default_model: str | None = None
    supervise: JudgeSettings | None = None
    summarize: JudgeSettings | None = None
    model_overrides: Mapping[str, str] = field(default_factory=dict)
    extract_model: str | None = None
    max_running: int = 4
    limits: Limits = field(default_factory=Limits)
    workflow_paths: tuple[Path, ...] = ()
    tool_results: str = "full"
    masks: bool = True
    keeps_code: bool = True
    keeps_sessions: bool = True
    trust: tuple[str, ...] = ()
    trusted_roots: tuple[Path, ...] = ()
    identity_name: str | None = None
    identity_email: str | None = None
    notify: str | None = None
    hub_secret: str | None = None
    hub_timeout_seconds: float = 30
    share: str | None = None
    entries: tuple[SettingEntry, ...] = tuple(
        SettingEntry(path=path, value=DEFAULTS[path], origin=DEFAULT)
        for path in sorted(DEFAULTS)
    )

    def __repr__(self) -> str:
        """Return no value of any: one of them is a secret."""
        return f"Settings(of {len(self.entries)} entries)"


def settings_from(
    user: object,
    repository: object,
    *,
    user_source: Path | str,
    repository_source: Path | str,
    home: Path,
    root: Path | None,
) -> tuple[Settings, tuple[str, ...]]:
    """Merge the user's configuration and the repository's over the defaults.

    Args:
        user: The content of the user's file; ``None`` when there is none.
        repository: The content of ``.uwf.yaml``; ``None`` when there is none.
        user_source: The user's file; its folder is where its ``script`` starts from.
        repository_source: How messages name the repository's file.
        home: What ``~/`` and the user's relative paths stand for.
        root: The repository's root, which its paths may not leave.

    Returns:
        The settings, and one line for everything that has no effect.

    Raises:
        ConfigError: A value of the wrong type, or one a repository may not give.
    """
    own = read_layer(user, source=str(user_source), layer="user")
    theirs = read_layer(repository, source=str(repository_source), layer="repository")
    entries = {path: _entry(path, DEFAULTS[path], DEFAULT) for path in DEFAULTS}
    entries |= {path: _entry(path, own.values[path], own.source) for path in own.values}
    allowed = {path: _allow(path, theirs, entries) for path in theirs.values}
    entries |= {path: entry for path, entry in allowed.items() if entry is not None}
    without_effect = [path for path, entry in allowed.items() if entry is None]
    settings = _build(entries, own=own, theirs=theirs, home=home, root=root)
    remarks = [
        f"{theirs.source}: '{'.'.join(path)}' is not below yours and has no effect"
        for path in without_effect
        if theirs.values[path] != own.values.get(path, DEFAULTS.get(path))
    ]
    remarks += [
        f"{own.source}: '{'.'.join(path)}' is a secret in a plain file; "
        "`uwf config secure` moves it"
        for path in own.values
        if (path[0], path[2:]) == _API_KEY
    ]
    return settings, (*own.warnings, *theirs.warnings, *remarks)


def _entry(path: KeyPath, value: object, origin: str) -> SettingEntry:
    return SettingEntry(path=path, value=value, origin=origin)


def _allow(
    path: KeyPath, theirs: LayerValues, entries: Mapping[KeyPath, SettingEntry]
) -> SettingEntry | None:
    """Return what a repository's value comes to; ``None`` when it has no effect."""
    value: Any = theirs.values[path]
    if path[0] == "limits":
        mine: Any = entries[path].value if path in entries else float("inf")
        return _entry(path, value, theirs.source) if value < mine else None
    if path[0] == "record":
        key = find_key(path)
        order = () if key is None else key.choices
        is_less = order.index(value) > order.index(str(entries[path].value))
        return _entry(path, value, theirs.source) if is_less else None
    if path[0] in ("defaultAgent", "agentOverrides") and not ALIAS.fullmatch(value):
        raise ConfigError(
            "a repository may name an agent's alias only",
            source=theirs.source,
            key=".".join(path),
            hint="define the agent in your own configuration and name it here",
        )
    return _entry(path, value, theirs.source)


def _judge(get: Callable[[str], Any], section: str) -> JudgeSettings | None:
    model, agent = get(f"{section}.model"), get(f"{section}.agent")
    if model is None and agent is None:
        return None
    every = get(f"{section}.every") or 1
    return JudgeSettings(model=model, agent=agent, every=every)


def _build(
    entries: Mapping[KeyPath, SettingEntry],
    *,
    own: LayerValues,
    theirs: LayerValues,
    home: Path,
    root: Path | None,
) -> Settings:
    def get(dotted: str) -> Any:  # noqa: ANN401 - the border of configuration
        entry = entries.get(tuple(dotted.split(".")))
        return None if entry is None else entry.value

    folder = home / Path(own.source).parent
    overrides = _group(entries, "modelOverrides", lambda _, of: of[()])
    models = _group(
        entries, "models", lambda name, of: _model(name, of, source=own.source)
    )
    usual = "extract" if "extract" in models else get("defaultModel")
    return Settings(
        agents=_group(
            entries,
            "agents",
            lambda name, of: _agent(name, of, folder=folder, home=home),
        ),
        default_agent=_choice(entries.get(("defaultAgent",)), theirs),
        agent_overrides={
            (path[1], path[2]): choice
            for path, entry in entries.items()
            if path[0] == "agentOverrides"
            and (choice := _choice(entry, theirs)) is not None
        },
        providers=_group(entries, "providers", _provider),
        models=models,
        default_model=get("defaultModel"),
        supervise=_judge(get, "supervise"),
        summarize=_judge(get, "summarize"),
        model_overrides=overrides,
        extract_model=overrides.get("extract") or usual,
        max_running=get("concurrency.maxRunning"),
        limits=Limits(
            **{each.name: get(f"limits.{each.encode_name}") for each in fields(Limits)}
        ),
        workflow_paths=_workflow_paths(own, theirs, home=home, root=root),
        tool_results=get("record.toolResults"),
        masks=get("record.mask") == "known",
        keeps_code=get("record.code") == "keep",
        keeps_sessions=get("record.session") == "keep"
        and get("record.toolResults") == "full",
        trust=tuple(get("trust") or ()),
        trusted_roots=tuple(
            _absolute(p, home, home) for p in get("trustedRoots") or ()
        ),
        identity_name=get("identity.name"),
        identity_email=get("identity.email"),
        notify=get("notify"),
        hub_secret=get("hub.secret"),
        hub_timeout_seconds=get("hub.timeoutSeconds"),
        share=get("share"),
        entries=(*(entries[path] for path in sorted(entries)), *_beside(own, theirs)),
    )


def _group(
    entries: Mapping[KeyPath, SettingEntry],
    head: str,
    make: Callable[[str, dict[KeyPath, Any]], Item],
) -> dict[str, Item]:
    """Make one item of each name below a head, from its values by remaining path."""
    found: dict[str, dict[KeyPath, Any]] = {}
    for path, entry in entries.items():
        if path[0] == head:
            found.setdefault(path[1], {})[path[2:]] = entry.value
    return {name: make(name, values) for name, values in found.items()}


def _agent(
    name: str, values: Mapping[KeyPath, Any], *, folder: Path, home: Path
) -> AgentSettings:
    def get(key: str) -> Any:  # noqa: ANN401 - the border of configuration
        return values.get((key,))

    tools, script, command = get("tools"), get("script"), get("command")
    if command is not None and "/" in command:
        command = str(_absolute(command, folder, home))
    return AgentSettings(
        name=name,
        kind=get("kind"),
        command=command,
        args=tuple(get("args") or ()),
        env={path[1]: value for path, value in values.items() if path[0] == "env"},
        model=get("model"),
        tools=None if tools is None else () if tools == "none" else tuple(tools),
        max_turns=get("maxTurns"),
        timeout_seconds=get("timeoutSeconds"),
        script=None if script is None else _absolute(script, folder, home),
        url=get("url") or get("host"),
        gateway=get("gateway"),
        workflow=get("workflow"),
        folders=tuple(_absolute(p, home, home) for p in get("folders") or ()),
    )


def _provider(name: str, values: Mapping[KeyPath, Any]) -> Provider:  # noqa: ARG001 - as _group calls it
    return Provider(
        base_url=values.get(("baseUrl",)),
        api_key_env=values.get(("apiKeyEnv",)),
        api_key=values.get(("apiKey",)),
    )


def _model(name: str, values: Mapping[KeyPath, Any], *, source: str) -> Model:
    if () in values:
        provider, _, model = values[()].partition("/")
        return Model(provider=provider, name=model)
    for key in ("provider", "name"):
        if (key,) not in values:
            raise ConfigError("is missing", source=source, key=f"models.{name}.{key}")
    return Model(provider=values["provider",], name=values["name",])


def _choice(entry: SettingEntry | None, theirs: LayerValues) -> AgentChoice | None:
    if entry is None:
        return None
    return AgentChoice(
        spec=str(entry.value),
        source=entry.origin,
        key=entry.key,
        alias_only=entry.path in theirs.values,
    )


def _workflow_paths(
    own: LayerValues, theirs: LayerValues, *, home: Path, root: Path | None
) -> tuple[Path, ...]:
    """Return the repository's paths, then the user's: both are searched."""
    mine: Any = own.values.get(("workflowPaths",), ())
    added: Any = theirs.values.get(("workflowPaths",), ())
    inside = []
    for path in added:
        if root is None:
            break
        found = Path(os.path.normpath(root / path))
        if path.startswith("~") or not found.is_relative_to(os.path.normpath(root)):
            raise ConfigError(
                f"'{path}' must stay inside the repository",
                source=theirs.source,
                key="workflowPaths",
            )
        inside.append(found)
    return (*inside, *(_absolute(path, home, home) for path in mine))


def _beside(own: LayerValues, theirs: LayerValues) -> list[SettingEntry]:
    """Return the user's values that count although the repository has its own."""
    path = ("workflowPaths",)
    both = path in own.values and path in theirs.values
    return [_entry(path, own.values[path], own.source)] if both else []


def _absolute(path: str, base: Path, home: Path) -> Path:
    if path == "~" or path.startswith("~/"):
        return Path(os.path.normpath(home / path[2:]))
    return Path(os.path.normpath(base / path))
