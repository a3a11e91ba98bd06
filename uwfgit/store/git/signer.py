"""When commits are signed, and by what; the most commands never come to sign."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from msgspec import Struct, field

from uwfgit.errors import StoreError
from uwfgit.store.handle import Store

Mode = Literal["steps", "tip", "never"]


class Signing(Struct, frozen=True, kw_only=True):
    """What the user's settings say: when to sign, and options for git."""

    mode: Mode = "never"
    options: tuple[str, ...] = ()


class Signer(Struct, kw_only=True, eq=False):
    """Signs for one command; the settings are read when first they matter."""

    read: Callable[[], Signing] = Signing
    environment: Mapping[str, str] = field(default_factory=dict)
    make: Callable[
        [Store, bytes, bytes | None, tuple[str, ...], Mapping[str, str]], bytes
    ] = lambda *_: b""
    """Has git sign; unused by one that never signs."""
    warn: Callable[[str], None] = lambda _: None
    """Told why what had to be kept was not signed."""
    _signing: Signing | None = None
    _is_proven: bool = False
    _has_given_up: bool = False

    @property
    def signing(self) -> Signing:
        """What the settings say.

        Raises:
            ConfigError: ``uwf.sign`` is none of its values.
        """
        if self._signing is None:
            self._signing = self.read()
        return self._signing

    @property
    def options(self) -> tuple[str, ...]:
        """Return what git has to be told to sign as the user does."""
        return self.signing.options

    def wants(self, *, is_last: bool = True) -> bool:
        """Whether to sign an event, the last of its command or not."""
        mode = self.signing.mode
        return mode == "steps" or (mode == "tip" and is_last)

    def prove(self, store: Store, commit: bytes) -> None:
        """Find out, once a command, whether a commit could be signed.

        Raises:
            StoreError: It could not; says why.
        """
        if not self._is_proven and self.signing.mode != "never":
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
            return self.make(store, commit, tree, self.options, self.environment)
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
