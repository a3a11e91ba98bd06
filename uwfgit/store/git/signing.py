"""Commits signed as the user's own git signs them; the only place for that.

git does it, with the format, key and program that the user's settings name. A
store's config names none of them, and what the repository around a person says
may choose a key but no program: it may have come with the files around it.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct, field

from uwfgit.errors import ConfigError, StoreError
from uwfgit.store import raw
from uwfgit.store.git.gitcmd import GitResult, run_git
from uwfgit.store.git.scratch import open_scratch
from uwfgit.store.handle import Store
from uwfgit.store.objects import write_object
from uwfgit.store.raw import COMMIT, MAX_COMMIT_BYTES
from uwfgit.store.safety.config import is_true, read_config

Mode = Literal["steps", "tip", "never"]

KEY: Final = "uwf.sign"
_MODES: Final[tuple[Mode, ...]] = ("steps", "tip", "never")
_DEFAULT_KEY: Final = "commit.gpgsign"
_CHOOSE_A_KEY: Final = ("gpg.format", "user.signingkey")
_SECONDS: Final = 120.0
"""Someone may have to type a passphrase, or to touch a key."""
_UNWATCHED_SECONDS: Final = 30.0
"""How long a signature may take without a terminal: a key on a card is touched."""
_PERSON: Final = re.compile(r"(author|committer) (.*) <(.*)> ([0-9]+) ([+-][0-9]{4})")
_SIGNATURE: Final = re.compile(rb"\ngpgsig [^\n]*(?:\n [^\n]*)*")
_SSH_KEY: Final = re.compile(r"(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ ([A-Za-z0-9+/=]+)")
_PREFIX: Final = re.compile(r"(?:error|fatal): ?")


class Signing(Struct, frozen=True, kw_only=True):
    """What the user's settings say: when to sign, and options for git."""

    mode: Mode = "never"
    options: tuple[str, ...] = ()


class Signer(Struct, kw_only=True, eq=False):
    """Signs for one command.

    ``signing`` gives what the user's settings say. They are read when first they
    matter, and once: whoever makes a signer sees to that.
    """

    signing: Callable[[], Signing] = Signing
    environment: Mapping[str, str] = field(default_factory=dict)
    make: Callable[
        [Store, bytes, bytes | None, tuple[str, ...], Mapping[str, str]], bytes
    ] = lambda *_: b""
    """Has git sign; unused by one that never signs."""
    warn: Callable[[str], None] = lambda _: None
    """Told why what had to be kept was not signed."""
    _is_proven: bool = False
    _has_given_up: bool = False

    def wants(self, *, is_last: bool = True) -> bool:
        """Whether to sign an event, the last of its command or not.

        Raises:
            ConfigError: ``uwf.sign`` is none of its values.
        """
        mode = self.signing().mode
        return mode == "steps" or (mode == "tip" and is_last)

    def prove(self, store: Store, commit: bytes) -> None:
        """Find out, once a command, whether a commit could be signed.

        Raises:
            StoreError: It could not; says why.
        """
        if not self._is_proven and self.signing().mode != "never":
            self.sign(store, commit)
        self._is_proven = True

    def sign(self, store: Store, commit: bytes, *, tree: bytes | None = None) -> bytes:
        """Return a commit's bytes with a signature, which is all that is added.

        Nothing is written to the store. After an interrupt nobody is asked for
        a passphrase again.

        Args:
            store: What has the commit's parents.
            commit: The commit.
            tree: The bytes of its tree, when the store does not have it yet.

        Raises:
            StoreError: git could not sign; says why.
        """
        if self._has_given_up:
            raise refusal("it was interrupted")
        try:
            options = self.signing().options
            return self.make(store, commit, tree, options, self.environment)
        except KeyboardInterrupt:
            self._has_given_up = True
            raise


NO_SIGNER: Final = Signer()
"""Signs nothing."""


def refusal(why: str) -> StoreError:
    """Return the error of a commit that could not be signed."""
    return StoreError(
        f"cannot sign: {why}",
        hint="see user.signingkey and gpg.format in git's config, or go on without: "
        "git config uwf.sign never",
    )


def read_signing(settings: Mapping[str, str], *, store: Path) -> Signing:
    """Read when commits are signed: the store's config, else git's settings.

    Raises:
        ConfigError: ``uwf.sign`` is none of its values.
    """
    own = read_config(store / "config").values.get(KEY)
    told = settings.get(KEY) if own is None else own
    if told is None:
        is_default = is_true(settings.get(_DEFAULT_KEY, ""))
        mode: Mode = "tip" if is_default else "never"
    else:
        mode = _parse_mode(told)
    chosen = [f"{key}={settings[key]}" for key in _CHOOSE_A_KEY if key in settings]
    return Signing(
        mode=mode, options=tuple(word for each in chosen for word in ("-c", each))
    )


def _parse_mode(text: str) -> Mode:
    for mode in _MODES:
        if text.lower() == mode:
            return mode
    raise ConfigError(
        f"'{text}' is none of {', '.join(_MODES)}",
        source="git config",
        key=KEY,
        hint="git config uwf.sign tip",
    )


def name_key(setting: str, *, home: Path) -> str | None:
    """Name a ``user.signingkey`` as git does when it checks a signature.

    That is an ssh key's fingerprint; any other key is named as it is.

    Args:
        setting: The setting's value: a key, a file of one, or a key's id.
        home: What ``~`` stands for.
    """
    text = setting.removeprefix("key::")
    if not _SSH_KEY.match(text):
        path = home / text[2:] if text.startswith("~/") else Path(text)
        try:
            name = path.name.removesuffix(".pub") + ".pub"
            text = path.with_name(name).read_text("utf-8", "replace")
        except (OSError, ValueError):
            return setting or None
    match = _SSH_KEY.match(text)
    if match is None:
        return None
    try:
        blob = base64.b64decode(match[1], validate=True)
    except ValueError:
        return None
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return f"SHA256:{digest}"


def sign_commit(
    store: Store,
    commit: bytes,
    new_tree: bytes | None,
    options: tuple[str, ...],
    environment: Mapping[str, str],
) -> bytes:
    """Have git sign a commit, as :class:`Signer` says.

    Raises:
        StoreError: It could not; says why.
    """
    head, _, message = commit.partition(b"\n\n")
    words: list[str] = []
    named: dict[str, str] = {}
    tree = ""
    for line in head.decode().split("\n"):
        header, _, value = line.partition(" ")
        if header == "tree":
            tree = value
        elif header == "parent":
            words += ["-p", value]
        else:
            named |= _name_person(line)
    with open_scratch(store) as scratch:
        if new_tree is not None:
            write_object(scratch, raw.TREE, new_tree)
        done = _run(
            [*options, "commit-tree", "-S", *words, tree],
            message,
            scratch,
            {**environment, **named},
        )
        if done.code:
            raise refusal(complaint(done))
        signed = scratch.raw.read(done.text, COMMIT, limit=MAX_COMMIT_BYTES)
    if _SIGNATURE.sub(b"", signed, count=1) != commit or signed == commit:
        raise refusal("git changed more of the commit than that")
    return signed


def _name_person(line: str) -> dict[str, str]:
    match = _PERSON.fullmatch(line)
    if match is None:
        return {}
    who, name, email, time, zone = match.groups()
    prefix = f"GIT_{who.upper()}"
    return {
        f"{prefix}_NAME": name,
        f"{prefix}_EMAIL": email,
        f"{prefix}_DATE": f"@{time} {zone}",
    }


def _run(
    args: list[str], message: bytes, scratch: Store, environment: Mapping[str, str]
) -> GitResult:
    is_watched = _has_terminal()
    try:
        return run_git(
            # Another encoding of the user's would change bytes and add a header.
            ["-c", "i18n.commitEncoding=UTF-8", *args],
            git_dir=scratch.path,
            environment=environment,
            input=message,
            # Where nobody can be asked for a passphrase, nobody gives one.
            timeout=_SECONDS if is_watched else _UNWATCHED_SECONDS,
            # What waits for it ends with git. On a terminal it has to be in front.
            is_grouped=not is_watched,
        )
    except StoreError as exc:
        raise refusal(exc.message) from exc


def _has_terminal() -> bool:
    """Whether this process has a terminal that a passphrase could be typed at."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY))
    except OSError:
        return False
    return True


def complaint(done: GitResult) -> str:
    """Return in one line why git, or the program it called, could not sign."""
    said = done.stderr.decode("utf-8", "replace").split("\n")
    lines = [_PREFIX.sub("", line).strip() for line in said]
    lines = [
        line.rstrip(":?")
        for line in lines
        if line
        and not line.startswith("[GNUPG:]")
        and line != "failed to write commit object"
    ]
    if not lines:
        return f"git exited with {done.code}"
    return lines[0] if lines[0] == lines[-1] else f"{lines[0]}: {lines[-1]}"
