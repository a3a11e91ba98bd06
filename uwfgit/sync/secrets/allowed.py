"""Findings that the user has let through, and who did so; the only place for them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from uwfgit.errors import InvalidError, NotFoundError, StoreError
from uwfgit.store.handle import Store
from uwfgit.store.log import append_private

ALLOWED_FILE: Final = "allowed-secrets.jsonl"
"""In the store's own folder: local, and not derived from anything."""
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*-[0-9a-f]{12}")


def _allowed_path(store: Store) -> Path:
    return store.state_dir / ALLOWED_FILE


def read_allowed(store: Store) -> frozenset[str]:
    """Return the ids of the findings that the user has let through."""
    try:
        lines = _allowed_path(store).read_text("utf-8", "replace").splitlines()
    except OSError:
        return frozenset()
    found = {}
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and isinstance(record.get("id"), str):
            found[record["id"]] = not record.get("revoked")
    return frozenset(id_ for id_, is_allowed in found.items() if is_allowed)


def allow_findings(
    store: Store, ids: Iterable[str], *, by: str, now_ms: int, revoke: bool = False
) -> None:
    """Let findings through from now on, or no longer, and record who did and when.

    Raises:
        InvalidError: One is no id of a finding.
        NotFoundError: One that is revoked was not let through.
        StoreError: It cannot be recorded.
    """
    wanted = list(ids)
    for each in wanted:
        if not _ID.fullmatch(each):
            raise InvalidError(
                f"'{each}' is not an id of a finding",
                hint="give it as the refusal shows it, in brackets",
            )
    known = read_allowed(store)
    unknown = [each for each in wanted if each not in known]
    if revoke and unknown:
        raise NotFoundError("finding", unknown[0], hint="it is not let through here")
    record = {"by": by, "atMs": now_ms} | ({"revoked": True} if revoke else {})
    lines = [
        json.dumps({"id": each, **record}) + "\n"
        for each in (dict.fromkeys(wanted) if revoke else unknown)
    ]
    if not lines:
        return
    try:
        append_private(_allowed_path(store), "".join(lines).encode())
    except OSError as exc:
        raise StoreError(f"cannot record what is allowed: {exc.strerror}") from exc
