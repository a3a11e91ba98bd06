"""Who may connect to a hub: a secret a name; only its digest is kept."""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.errors import NotFoundError, StateError, StoreError, UsageError
from uwfgit.store.files import write_over

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", re.ASCII)
"""What a client may be called."""
_BYTES: Final = 32


def require_name(name: str) -> str:
    """Return a client's name.

    Raises:
        UsageError: It is none.
    """
    if not NAME.fullmatch(name):
        raise UsageError(
            f"'{name}' is not a name for a client",
            hint="letters, digits, '-' and '_', at most 40",
        )
    return name


class Doors(Struct, frozen=True, kw_only=True):
    """The names that a hub knows, in a file of this user's."""

    path: Path

    def names(self) -> tuple[str, ...]:
        """Return all names, in order.

        Raises:
            StoreError: The file cannot be read.
        """
        return tuple(sorted(self._read()))

    def digest(self, name: str) -> str | None:
        """Return what a name's secret is compared with; ``None`` for no such name.

        Raises:
            StoreError: The file cannot be read.
        """
        return self._read().get(name)

    def is_open(self, name: str, secret: str) -> bool:
        """Whether a secret is the one of a name.

        Raises:
            StoreError: The file cannot be read.
        """
        return hmac.compare_digest(_digest(secret), self.digest(name) or "")

    def add(self, name: str, *, renew: bool) -> str:
        """Make a name's secret and return it; it cannot be read again.

        Raises:
            StateError: The name has one, and it is not to be renewed.
            UsageError: It is not a name.
            StoreError: The file cannot be read or written.
        """
        known = dict(self._read())
        if require_name(name) in known and not renew:
            raise StateError(
                f"'{name}' has a secret already", hint="--renew makes another"
            )
        secret = secrets.token_urlsafe(_BYTES)
        self._write({**known, name: _digest(secret)})
        return secret

    def remove(self, name: str) -> None:
        """Forget a name; its client is let go.

        Raises:
            NotFoundError: There is no such name.
            StoreError: The file cannot be read or written.
        """
        known = dict(self._read())
        if known.pop(name, None) is None:
            raise NotFoundError("client", name)
        self._write(known)

    def _read(self) -> Mapping[str, str]:
        try:
            value = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as exc:
            raise StoreError(f"cannot read '{self.path}': {exc}") from exc
        if not isinstance(value, dict):
            raise StoreError(f"'{self.path}' holds no names", hint="remove it")
        return {str(name): str(digest) for name, digest in value.items()}

    def _write(self, known: Mapping[str, str]) -> None:
        text = json.dumps(dict(sorted(known.items())), indent=2) + "\n"
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_over(self.path, text.encode(), mode=0o600)
        except OSError as exc:
            raise StoreError(f"cannot write '{self.path}': {exc.strerror}") from exc


def _digest(secret: str) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest()
