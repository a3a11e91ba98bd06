"""The exception tree; the only place for exception classes.

UwfError
├─ NotFoundError
├─ AmbiguousError
├─ InvalidError
│  ├─ WorkflowError
│  ├─ CorruptError
│  ├─ FormatVersionError
│  ├─ EarlierFormatError
│  ├─ SizeError
│  └─ OverrunError
├─ StateError
│  └─ BudgetError
├─ RoutingFailedError
├─ UsageError
├─ UntrustedError
├─ ConflictError
│  ├─ RefConflictError
│  └─ LockedError
├─ StoreError
├─ AgentError
│  ├─ AgentTimeoutError
│  └─ OutputError
├─ RemoteError
│  ├─ RejectedError
│  └─ AuthError
└─ ConfigError

Expected outcomes are values; an exception means "cannot go on". Constructors
take the facts and build one line; ``hint`` says what to do next.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

Severity = Literal["error", "warning"]


def name_some(names: Sequence[str], *, most: int = 5) -> str:
    """Write the first of some names, and how many more there are."""
    more = len(names) - most
    tail = f" and {more} more" if more > 0 else ""
    return f"{', '.join(names[:most])}{tail}"


def first_of(things: Sequence[object]) -> str:
    """Write the first of some things, and how many more there are."""
    more = len(things) - 1
    return f"{things[0]} (and {more} more)" if more else str(things[0])


class Problem(Struct, frozen=True, kw_only=True):
    """One thing wrong with input: where, which rule, what, and how to mend it.

    ``line`` and ``column`` count from 1; ``path`` is dotted
    (``roles.planner.goal``).
    """

    code: str
    message: str
    hint: str | None = None
    path: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    severity: Severity = "error"

    def __str__(self) -> str:
        parts = (self.file, self.line, self.column)
        place = ":".join(str(part) for part in parts if part is not None)
        if self.file is None and self.line is not None:
            place = f"line {self.line}"
        where = f"{self.path}: " if self.path else ""
        return f"{place}: {where}{self.message}" if place else f"{where}{self.message}"


_PERMISSIONS: Final = "see to its permissions, or use another place"
_ROOM: Final = "make room there, then try again"
_SYSTEMS_HINTS: Final = {
    errno.EACCES: _PERMISSIONS,
    errno.EPERM: _PERMISSIONS,
    errno.EROFS: "its file system is read-only: use another place",
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
}


class UwfError(Exception):
    """Root of all errors a user can meet; one line, and a hint.

    ``needs`` names the options that would let it happen, as far as there are any.
    """

    code = "error"
    needs: tuple[str, ...] = ()

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self._hint = hint

    @property
    def hint(self) -> str | None:
        """What to do next; else what helps when it was the system that refused."""
        cause = self.__cause__
        if self._hint is not None or not isinstance(cause, OSError):
            return self._hint
        return _SYSTEMS_HINTS.get(cause.errno or 0)

    @hint.setter
    def hint(self, hint: str | None) -> None:
        self._hint = hint


class NotFoundError(UwfError):
    """Something was named that is not there."""

    code = "not-found"

    def __init__(self, kind: str, name: str, *, hint: str | None = None) -> None:
        super().__init__(f"{kind} '{name}' not found", hint=hint)
        self.kind = kind
        self.name = name


class AmbiguousError(UwfError):
    """A short name fits several things."""

    code = "ambiguous"

    def __init__(
        self,
        kind: str,
        name: str,
        candidates: Iterable[str],
        *,
        hint: str = "give more characters",
    ) -> None:
        self.kind = kind
        self.name = name
        self.candidates = tuple(candidates)
        shown = name_some(self.candidates)
        super().__init__(f"{kind} '{name}' is ambiguous: {shown}", hint=hint)


class InvalidError(UwfError):
    """Input that does not hold; carries every problem found."""

    code = "invalid"

    def __init__(
        self, problems: Iterable[Problem] | str, *, hint: str | None = None
    ) -> None:
        if isinstance(problems, str):
            problems = (Problem(code=self.code, message=problems, hint=hint),)
        self.problems = tuple(problems)
        hint = hint or self.problems[0].hint
        super().__init__(first_of(self.problems), hint=hint)


class WorkflowError(InvalidError):
    """A workflow definition does not hold together."""

    code = "invalid-workflow"


class CorruptError(InvalidError):
    """Stored data fails validation."""

    code = "corrupt"


class FormatVersionError(InvalidError):
    """Data of a newer format than this program knows."""

    code = "format-version"

    def __init__(self, what: str, *, found: str, supported: str) -> None:
        self.found = found
        self.supported = supported
        super().__init__(
            f"{what} has format {found}, this uwf knows up to {supported}",
            hint="upgrade uwfgit",
        )


class EarlierFormatError(InvalidError):
    """A thread that was written before format 1 was fixed; it is whole, not read."""

    code = "earlier-format"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} was written by a uwf from before the first release, "
            "whose format this one does not read",
            hint="read it with that uwf, or start the thread again",
        )


class SizeError(InvalidError):
    """Something is larger than the format allows; nothing of it was written."""

    code = "size"

    def __init__(
        self, what: str, *, found: int, limit: int, unit: str = "bytes"
    ) -> None:
        self.found = found
        self.limit = limit
        super().__init__(f"{what} has {found:,} {unit}, the limit is {limit:,}")


class OverrunError(InvalidError):
    """What others wrote takes too long, or too much memory, to work on."""

    code = "overrun"

    def __init__(self, what: str, *, limit: str) -> None:
        self.what = what
        self.limit = limit
        super().__init__(
            f"{what} takes more than {limit}",
            hint="fix the schema or expression: a pattern such as (a+)+ never ends",
        )


class StateError(UwfError):
    """The thread's state does not allow the command."""

    code = "state"


class BudgetError(StateError):
    """A thread has used up what it may cost."""

    code = "budget"


class RoutingFailedError(UwfError):
    """The moderator finds no next role."""

    code = "routing"


class UsageError(UwfError):
    """A command was called with words that do not fit."""

    code = "usage"


class UntrustedError(UwfError):
    """A store or thread that this user has not agreed to use."""

    code = "untrusted"

    def __init__(
        self, message: str, *, hint: str | None = None, needs: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.needs = needs


class ConflictError(UwfError):
    """Someone else holds it or won; nothing changed and a retry is safe."""

    code = "conflict"


class RefConflictError(ConflictError):
    """A ref did not hold what its writer expected."""

    code = "ref-conflict"

    def __init__(self, ref: str, *, expected: str | None, actual: str | None) -> None:
        self.ref = ref
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"ref '{ref}' moved: expected {expected or 'none'}, "
            f"found {actual or 'none'}",
            hint="another command changed it; run yours again",
        )


class LockedError(ConflictError):
    """Another process holds a lock."""

    code = "locked"

    def __init__(self, what: str, *, holder: str | None = None) -> None:
        self.what = what
        self.holder = holder
        by = f" by {holder}" if holder else ""
        super().__init__(f"{what} is held{by}", hint="wait for it or try again")


class StoreError(UwfError):
    """The store cannot be used: permissions, disk, or a git it cannot read."""

    code = "store"


class AgentError(UwfError):
    """An agent or model failed."""

    code = "agent"

    def __init__(
        self, message: str, *, role: str = "", agent: str = "", hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.role = role
        self.agent = agent


class AgentTimeoutError(AgentError):
    """An agent was silent, or busy, for longer than its limit."""

    code = "agent-timeout"


class OutputError(AgentError):
    """A reply did not satisfy the role's schema."""

    code = "output"

    def __init__(
        self, problems: Iterable[Problem], *, role: str = "", agent: str = ""
    ) -> None:
        self.problems = tuple(problems)
        text = "; ".join(str(problem) for problem in self.problems)
        super().__init__(text, role=role, agent=agent)


class RemoteError(UwfError):
    """A remote cannot be reached, or is not one that uwf can use."""

    code = "remote"

    def __init__(self, message: str, *, remote: str, hint: str | None = None) -> None:
        super().__init__(f"remote '{remote}': {message}", hint=hint)
        self.remote = remote


class RejectedError(RemoteError):
    """A remote took none of what was pushed; ``refs`` says why, ref by ref."""

    code = "rejected"

    def __init__(
        self, refs: Mapping[str, str], *, remote: str, hint: str | None = None
    ) -> None:
        self.refs = dict(refs)
        told = [f"'{name}' was rejected: {why}" for name, why in refs.items()]
        super().__init__(
            first_of(told),
            remote=remote,
            hint=hint or _find_way(self.refs.values()),
        )


def _find_way(reasons: Iterable[str]) -> str:
    # git's own word when the remote has what we lack; a server's rules differ.
    if any(reason.startswith("[rejected]") for reason in reasons):
        return "bring what it has with: `uwf pull`"
    return "rules of the remote refused it; whoever looks after it can change them"


class AuthError(RemoteError):
    """A remote does not let this user in."""

    code = "auth"


class ConfigError(UwfError):
    """A configuration file holds something it may not."""

    code = "config"

    def __init__(
        self,
        message: str,
        *,
        source: Path | str | None = None,
        key: str | None = None,
        hint: str | None = None,
    ) -> None:
        where = ": ".join(str(part) for part in (source, key) if part is not None)
        super().__init__(f"{where}: {message}" if where else message, hint=hint)
        self.source = source
        self.key = key
