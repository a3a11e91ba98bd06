"""The composition root: the world as a command sees it, and what is made of it.

The only place that reads the environment, the working directory, the user's
home and the configuration files, and hands values of them to the rooms below; but
that output goes into a CI's log is asked where it is written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import typer
from msgspec import Struct, field

from uwfgit.cli.frame.options import GlobalOptions
from uwfgit.cli.frame.output import Output
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.frame.world import (
    DOTENV_FILE,
    VARIABLE,
    InputSource,
    Ready,
    StoreChoice,
    make_masker,
    now_ms,
    read_config,
    read_dotenv,
    registered_home,
    utc_offset,
)
from uwfgit.errors import ConfigError, NotFoundError, StoreError, UsageError, UwfError

if TYPE_CHECKING:
    from uwfgit.config import Settings
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.mask import Masker
    from uwfgit.store.git.enclosing import Enclosing
    from uwfgit.store.git.settings import Identity
    from uwfgit.store.handle import Store

CONFIG_FILE: Final = "config.yaml"
REPOSITORY_FILE: Final = ".uwf.yaml"
_AUTO_INIT: Final = "uwf.autoinit"
_OFF: Final = ("false", "no", "off", "0", "")


class CommandContext(Struct, kw_only=True, dict=True):
    """One run of the program; files are read when they are first asked for."""

    options: GlobalOptions
    environment: Mapping[str, str]
    folder: Path | None = None
    """The working directory: the process's by default; ``None`` when it is gone."""
    command: str = "uwf"
    closing: ExitStack = field(default_factory=ExitStack)
    has_begun: bool = False
    """Whether the whole command line was parsed and a command runs."""
    is_plain: bool = False
    """Whether nobody's configuration counts."""
    is_told: bool = False
    """Whether the error that ends the command stands in its object already."""
    stdin_taker: str | None = None
    """The argument that was read from stdin, of which there is one."""

    def __post_init__(self) -> None:
        """Work out what a look at no file is needed for."""
        self.output = Output(options=self.options, environment=self.environment)
        """Where results and notes go."""
        told = self.environment.get(VARIABLE, "")
        is_worker = told.isascii() and told.isdigit()
        self.ready = Ready(int(told)) if is_worker else None
        """The line to the command that started this process as a worker."""
        if self.folder is None:
            with suppress(OSError):
                self.folder = Path.cwd()

    @property
    def cwd(self) -> Path:
        """The working directory.

        Raises:
            StoreError: It does not exist any more.
        """
        if self.folder is not None:
            return self.folder
        try:
            return Path.cwd()
        except OSError as exc:
            raise StoreError(
                f"the current directory is gone: {exc.strerror}",
                hint="change to a directory that exists",
            ) from exc

    @cached_property
    def user_home(self) -> Path:
        """The user's home directory: HOME, else what the system knows.

        Raises:
            ConfigError: There is none.
        """
        home = self.environment.get("HOME") or registered_home()
        if not home:
            raise ConfigError("HOME is not set", hint="set HOME or UWF_HOME")
        return self.resolve(home)

    @cached_property
    def home(self) -> Path:
        """Where the user's own configuration and store are: ``UWF_HOME``."""
        given = self.environment.get("UWF_HOME")
        return self.resolve(given) if given else self.user_home / ".uwf"

    def resolve(self, path: str) -> Path:
        """Make a path of the command line absolute, with ``~/`` expanded."""
        if path == "~" or path.startswith("~/"):
            return Path(os.path.normpath(self.user_home / path[2:]))
        if os.path.isabs(path):  # noqa: PTH117 - before Path.cwd, which may be gone
            return Path(os.path.normpath(path))
        return Path(os.path.normpath(self.cwd / path))

    @cached_property
    def enclosing(self) -> Enclosing | None:
        """The repository whose work tree the working directory is in."""
        from uwfgit.store.git.enclosing import find_enclosing

        return None if self.folder is None else find_enclosing(self.folder)

    @cached_property
    def store_choice(self) -> StoreChoice:
        """Which store this command uses; it may not exist yet."""
        source: InputSource
        if self.options.store is not None:
            path, source = self.resolve(self.options.store), "option"
        elif given := self.environment.get("UWF_STORE"):
            path, source = self.resolve(given), "environment"
        elif (enclosing := self.enclosing) is None:
            from uwfgit.store.git.enclosing import find_lost_pointer

            # Of a place that is no more, nobody knows which store it means.
            here = self.cwd
            path, source = self.home / "store", "user"
            if (lost := find_lost_pointer(here)) is not None:
                self.output.warn(
                    f"'{lost}' points to a repository that is not there; "
                    f"this is about the store {path} (git worktree repair may help)"
                )
        else:
            from uwfgit.store.git.enclosing import enclosing_setting

            path, source = enclosing.common_dir / "uwf", "repository"
            if named := enclosing_setting(enclosing, "uwf.store"):
                own = self.resolve(named) if named.startswith("~") else Path(named)
                path = Path(os.path.normpath(enclosing.root / own))
                source = "git config"
        if self.options.verbose:
            self.output.say(shown(f"store: {path} ({source})"))
        return StoreChoice(path=path, source=source)

    def open_store(self, *, write: bool = False, create: bool = True) -> Store:
        """Open the store; a command that writes creates it and says so.

        Raises:
            NotFoundError: There is none, and the command only reads.
            UntrustedError: It was not made on this machine.
            StoreError: It cannot be used.
        """
        from uwfgit.store.repository import init_store, open_store

        path = self.store_choice.path
        if not path.exists():
            # A place that somebody named and that is not there is a slip of the keys.
            is_named = self.store_choice.source in {"option", "environment"}
            if not (write and create) or is_named or not self.may_create():
                raise NotFoundError("store", str(path), hint=self._missing_hint())
            if init_store(path, home=self.home):
                self.output.say(f"created store {shown(str(path))}")
        return open_store(
            path, home=self.home, write=write, on_many_packs=self._merge_packs
        )

    def _missing_hint(self) -> str:
        """Say how to make the store, or that the working directory is one itself."""
        here, choice = self.folder, self.store_choice
        is_usual = choice.source == "user"
        if is_usual and here and (here / "HEAD").is_file() and (here / "uwf").is_dir():
            return "this folder looks like a store itself: use it with --store ."
        return choice.init_hint

    def _merge_packs(self, store: Store) -> None:
        """Have git merge a store's packs, and wait for nothing."""
        from uwfgit.store.care.maintain import merge_packs

        merge_packs(store, self.environment)

    def may_create(self) -> bool:
        """Whether a command that writes may make the store: ``uwf.autoInit``."""
        return self.git_settings.get(_AUTO_INIT, "true").lower() not in _OFF

    def open_ledger(self, *, write: bool = False, create: bool = True) -> Ledger:
        """Open the store for threads and nodes; closed when the command ends.

        Args:
            write: The command may change the store.
            create: It may also create it; not for one that needs what is in it.
        """
        store = self.open_store(write=write, create=create)
        return self.make_ledger(store, write=write)

    def make_ledger(self, store: Store, *, write: bool = False) -> Ledger:
        """Put a ledger over an open store."""
        from uwfgit.model.ledger.kept import Kept
        from uwfgit.model.ledger.ledger import Ledger
        from uwfgit.model.node import STEP_TYPE
        from uwfgit.store.git.settings import Identity
        from uwfgit.store.git.signing import Signer, read_signing, sign_commit
        from uwfgit.store.local import Local
        from uwfgit.store.lookup.table import Lookup

        lookup, local = Lookup(store, step_type=STEP_TYPE), Local(store)
        self.closing.callback(lookup.close)
        self.closing.callback(local.close)
        local.on_missed = partial(
            self.output.warn,
            f"{local.name} could not be written: what was made here will pass for the "
            "work of others, and be run with --trust only",
        )
        if (
            write
            and self.identity.is_default
            and not self.environment.get("UWF_STEP")
            and local.is_first("made-up committer")
        ):
            self.output.say(
                "note: git knows no name and address of yours; committing as "
                f"{shown(str(self.identity))}"
            )
        return Ledger(
            store=store,
            kept=Kept(store=store),
            lookup=lookup,
            local=local,
            # Readers commit nothing; asking git's config for a name would cost them.
            identity=self.identity if write else Identity(name="", email=""),
            signer=Signer(
                signing=cache(
                    lambda: read_signing(self.git_settings, store=store.path)
                ),
                make=sign_commit,
                environment=self.environment,
                warn=self.output.warn,
            ),
            now_ms=now_ms,
            random=os.urandom,
            utc_offset=utc_offset() if write else 0,
        )

    @cached_property
    def git_settings(self) -> Mapping[str, str]:
        """What git's config says here: the repository's around us, and the user's."""
        from uwfgit.store.git.settings import read_settings

        return read_settings(self.environment, enclosing=self.enclosing)

    @cached_property
    def identity(self) -> Identity:
        """Who commits: git's identity, else the configured one, else a made-up one."""
        from uwfgit.store.git.settings import Identity, find_identity

        found = find_identity(self.environment, self.git_settings)
        if not found.is_default:
            return found
        name, email = self.settings.identity_name, self.settings.identity_email
        if name and email:
            return Identity(name=name, email=email)
        return found

    @cached_property
    def settings(self) -> Settings:
        """The configuration in force; what has no effect in it is warned about once."""
        settings, warnings = self.loaded_settings
        for warning in warnings:
            self.output.warn(warning)
        return settings

    @cached_property
    def loaded_settings(self) -> tuple[Settings, tuple[str, ...]]:
        """The configuration in force, and a warning for all that has no effect."""
        from uwfgit.config import Settings, settings_from

        if self._layers is None:
            return Settings(), ()
        root = self.enclosing.root if self.enclosing is not None else None
        return settings_from(
            *self._layers,
            user_source=self.home / CONFIG_FILE,
            repository_source=(root or Path()) / REPOSITORY_FILE,
            home=self.home_for_paths,
            root=root,
        )

    @cached_property
    def _layers(self) -> tuple[object, object] | None:
        """What the user's configuration file and the repository's hold, if anything."""
        if self.is_plain:
            return None
        user = read_config(self.home / CONFIG_FILE)
        inside = self.enclosing
        theirs = None if inside is None else read_config(inside.root / REPOSITORY_FILE)
        return None if user is None and theirs is None else (user, theirs)

    @property
    def home_for_paths(self) -> Path:
        """Where ``~`` of a setting leads; ``UWF_HOME`` when there is no HOME."""
        return self.user_home if self.environment.get("HOME") else self.home

    @cached_property
    def variables(self) -> Mapping[str, str]:
        """Where API keys are: the environment, over the user's ``.env`` file."""
        return {**read_dotenv(self.home / DOTENV_FILE), **self.environment}

    @cached_property
    def masker(self) -> Masker:
        """What knows the secrets of this user: of variables, ``.env`` and settings."""
        # Where nothing is configured, no setting is a secret or names one.
        settings = None if self._layers is None else self.settings
        return make_masker(self.environment, self.home, settings)

    def mask(self, text: str, *, what: str) -> str:
        """Take known secrets out of a text that will be stored; say so."""
        from uwfgit.model.mask import mask_warnings

        found: set[str] = set()
        masked = self.masker.mask(text, found)
        for warning in mask_warnings(found):
            self.output.warn(f"{what}: {warning}")
        return masked

    def warn_of_secrets(self, text: str, *, what: str) -> None:
        """Say which known secrets stand in a text that is kept as it was given."""
        found: set[str] = set()
        self.masker.mask(text, found)
        for name in sorted(found):
            self.output.warn(f"{what} has the value of {name}, and is kept for good")

    def mask_message(self, text: str) -> str:
        """Take known secrets out of a message; nothing that is broken is a bar."""
        try:
            return make_masker(self.environment, self.home).mask_cut(text)
        except UwfError:
            # Without a home there is no file, and the variables count all the same.
            return make_masker(self.environment, Path("/nonexistent")).mask_cut(text)


def get_context(ctx: typer.Context) -> CommandContext:
    """Return the context of a running command; the command line is parsed then."""
    context = cast("CommandContext", ctx.obj)
    context.has_begun = True
    if context.options.format == "github" and ctx.info_name != "validate":
        raise UsageError(
            "--format github is for 'uwf workflow validate' alone",
            hint="use --format json",
        )
    return context
