"""Where a workflow came from, as ``git+URL@REV:PATH#OID``: read and written (pure).

In REV and PATH a character that would end them is percent-encoded, as in any URL.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

from msgspec import Struct

from uwfgit.errors import UsageError
from uwfgit.ids import Oid, is_oid

_PREFIX: Final = "git+"
DEFAULT: Final = "HEAD"
_MOST: Final = 2_000
"""Characters; it stands in one line of a commit's message."""
_URL: Final = re.compile(
    r"(?P<scheme>https?|ssh|git|file)://(?:(?P<user>[^/@]*)@)?(?P<host>[^/@]*)"
    r"(?P<folder>/[^@:#?]*)(?P<rest>(?:[@:#].*)?)",
    re.IGNORECASE | re.DOTALL,
)
_LOGIN: Final = re.compile(r"[A-Za-z0-9._-]{1,32}")
# What git lets a ref be called, short of names that mean something to it.
_REV: Final = re.compile(
    r"(?!-|/|\.)(?!.*(?:\.\.|//|/\.|@\{|\.lock(?:/|$)))[^\x00-\x20\x7f~^:?*\[\\]+(?<![./])"
)
_KEPT: Final = "/-._~+,=!"
_HOW: Final = "write git+https://HOST/REPOSITORY@REV:PATH"


class Origin(Struct, frozen=True, kw_only=True):
    """A file of a repository: where that is, and which commit of it.

    Args:
        url: The repository's address, as git takes it; with user and password,
            where someone gave them.
        rev: A branch, a tag, a ref's full name, a commit, or ``HEAD``.
        path: The file, or a name as in ``.workflows/``; ``None`` for the only one.
        oid: The commit that ``rev`` must be, or was.
    """

    url: str
    rev: str = DEFAULT
    path: str | None = None
    oid: Oid | None = None

    @property
    def place(self) -> str:
        """The repository's address as it is kept and shown: without a secret.

        ssh needs its user's name; everywhere else it may be a token.
        """
        found = _URL.fullmatch(self.url)
        assert found is not None  # noqa: S101 - as parsed
        user = (found["user"] or "").partition(":")[0]
        is_login = found["scheme"].lower() == "ssh" and _LOGIN.fullmatch(user)
        who = f"{user}@" if is_login else ""
        return f"{found['scheme'].lower()}://{who}{found['host']}{found['folder']}"

    def hide(self, text: str) -> str:
        """Return a text about the repository without the user and password of it."""
        found = _URL.fullmatch(self.url)
        assert found is not None  # noqa: S101 - as parsed
        user, _, password = (found["user"] or "").partition(":")
        if user and f"{user}@" not in self.place:
            text = text.replace(f"{user}:{password}@", "").replace(f"{user}@", "")
        return text.replace(password, "***") if password else text

    @property
    def repository(self) -> str:
        """The repository's own name."""
        return self.place.rstrip("/").rpartition("/")[2].removesuffix(".git")

    def __str__(self) -> str:
        path = "" if self.path is None else f":{quote(self.path, safe=_KEPT)}"
        oid = "" if self.oid is None else f"#{self.oid}"
        return f"{_PREFIX}{self.place}@{quote(self.rev, safe=_KEPT)}{path}{oid}"


def is_origin(text: str) -> bool:
    """Whether an argument names a file of a repository elsewhere."""
    return text.startswith(_PREFIX)


def is_kept_origin(text: str) -> bool:
    """Whether a text is what is kept of an origin, to the letter."""
    try:
        origin = parse_origin(text)
    except UsageError:
        return False
    return str(origin) == text and origin.oid is not None and origin.path is not None


def parse_origin(text: str) -> Origin:
    """Read ``git+URL[@REV][:PATH][#OID]``; without REV, OID is the commit itself.

    Raises:
        UsageError: It is none.
    """
    found = _URL.fullmatch(text.removeprefix(_PREFIX))
    if not is_origin(text) or found is None:
        raise UsageError("this is not the address of a file in git", hint=_HOW)
    if not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError(
            "the address has a blank or a character beyond ASCII",
            hint="percent-encode it: %20 for a blank",
        )
    if len(text) > _MOST:
        raise UsageError(f"the address is longer than {_MOST:,} characters")
    head, _, oid = found["rest"].partition("#")
    before, colon, path = head.partition(":")
    rev = before.removeprefix("@")
    url = text.removeprefix(_PREFIX)[: found.start("rest") - found.start()]
    if oid and not is_oid(oid):
        raise UsageError(f"'#{oid}' is not a full commit oid", hint="40 characters")
    return Origin(
        url=url,
        rev=_read_rev(rev) if rev else oid or DEFAULT,
        path=_read_path(path) if colon else None,
        oid=Oid(oid) if oid else None,
    )


def _read_rev(text: str) -> str:
    rev = unquote(text)
    if not _REV.fullmatch(rev) or not rev.isprintable():
        raise UsageError(f"'{rev}' cannot be a branch, a tag or a commit", hint=_HOW)
    return rev


def _read_path(text: str) -> str:
    """Read a path from the repository's top downwards."""
    path = unquote(text)
    parts = path.rstrip("/").split("/")
    if not path.isprintable() or any(part in {"", ".", ".."} for part in parts):
        raise UsageError(
            f"'{path}' is not a path in the repository",
            hint="from its top downwards: .workflows/solve-issue.yaml",
        )
    return path.rstrip("/")
