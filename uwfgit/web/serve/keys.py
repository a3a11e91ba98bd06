"""Who may come in: a server's key, its one-time codes, its cookie and its tokens.

The only place that makes or compares them. They outlive a restart, so that an open
page goes on: one file a port, mode 0600, in ``<UWF_HOME>/web``.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from uwfgit.errors import StoreError
from uwfgit.store.files import write_private

CODE_SECONDS: Final = 60
BEARER: Final = "token"
"""The key's name that scripts send as it is."""
_BYTES: Final = 32
_MOST: Final = 256
_PARTS: Final = 3
_DIGITS: Final = 12


def keys_folder(home: Path) -> Path:
    """Name the folder of all keys."""
    return home / "web"


def hub_file(home: Path) -> Path:
    """Name the file of a hub's clients."""
    return keys_folder(home) / "hub.json"


def load_key(home: Path, name: str, *, renew: bool = False) -> str:
    """Read a key, or make it.

    Raises:
        StoreError: It can be neither read nor made, or others can read it.
    """
    path = keys_folder(home) / f"{name}.key"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if renew or not path.exists():
            write_private(path, secrets.token_urlsafe(_BYTES))
        return _read(path)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise StoreError(f"cannot use '{path}': {reason}") from exc


def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, encoding="utf-8") as stream:
        is_private = not os.fstat(descriptor).st_mode & 0o077
        key = stream.read(_MOST).strip()
    if not is_private or len(key) < _BYTES:
        what = "holds no key" if is_private else "can be read by others"
        raise StoreError(f"'{path}' {what}", hint="remove it; it is made again")
    return key


def make_code(key: str, now_s: float) -> str:
    """Make a code that opens the server once, within a minute."""
    body = f"{int(now_s) + CODE_SECONDS}.{secrets.token_urlsafe(_BYTES // 2)}"
    return f"{body}.{_mac(key, 'code', body)}"


def _mac(key: str, purpose: str, text: str) -> str:
    return hmac.new(key.encode(), f"{purpose}\0{text}".encode(), sha256).hexdigest()


def _is_same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


@dataclass(slots=True, kw_only=True)
class Keys:
    """What a running server compares what it is given with.

    ``bearer`` gives the user's token for scripts each time, so that a new one counts
    at once.
    """

    key: str = field(repr=False)
    port: int
    bearer: Callable[[], str] = field(repr=False)
    now_s: Callable[[], float]
    _used: dict[str, int] = field(default_factory=dict, repr=False)

    @property
    def cookie_name(self) -> str:
        """The cookie's name: two servers of one machine do not share it."""
        return f"uwf_{self.port}"

    @property
    def cookie(self) -> str:
        """The cookie's value."""
        return _mac(self.key, "cookie", str(self.port))

    @property
    def page_token(self) -> str:
        """What a form of a page sends along, and a page of others cannot know."""
        return _mac(self.key, "page", str(self.port))

    def take_code(self, code: str) -> bool:
        """Whether a code opens the server; it does so once."""
        parts = code.split(".")
        if len(parts) != _PARTS or not code.isascii() or not parts[0].isdigit():
            return False
        expires, now = int(parts[0][:_DIGITS]), self.now_s()
        body, _, mac = code.rpartition(".")
        if not _is_same(mac, _mac(self.key, "code", body)) or expires < now:
            return False
        self._used = {each: end for each, end in self._used.items() if end >= now}
        if code in self._used:
            return False
        self._used[code] = expires
        return True

    def is_cookie(self, value: str) -> bool:
        """Whether it is this server's cookie."""
        return _is_same(value, self.cookie)

    def is_page_token(self, value: str) -> bool:
        """Whether it is this server's page token."""
        return _is_same(value, self.page_token)

    def is_bearer(self, value: str) -> bool:
        """Whether it is the user's token for scripts."""
        return _is_same(value, self.bearer())
