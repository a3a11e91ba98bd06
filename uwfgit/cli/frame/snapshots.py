"""What takes snapshots of code, made of the configuration and the user's home."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from uwfgit.cli.frame.screen import shown

if TYPE_CHECKING:
    from uwfgit.code.snapshots.keep import Keeper
    from uwfgit.code.snapshots.take import Camera
    from uwfgit.code.worktree import WorkTree
    from uwfgit.config import Settings
    from uwfgit.model.ledger.ledger import Ledger


def make_camera(folder: Path, *, settings: Settings, home: Path) -> Camera:
    """Return what takes snapshots; ``folder`` is where copies of an index stand."""
    from uwfgit.code.snapshots.leave_out import Bounds
    from uwfgit.code.snapshots.take import Camera

    return Camera(
        folder=folder,
        home=home,
        is_secret=has_secret,
        bounds=Bounds(seconds=settings.limits.snapshot_seconds),
    )


def make_keeper(
    ledger: Ledger,
    *,
    settings: Settings,
    environment: Mapping[str, str],
    home: Path,
    say: Callable[[str], None],
) -> Keeper | None:
    """Return what keeps the code around steps, unless it is not to be kept."""
    if not settings.keeps_code:
        return None
    from uwfgit.code.snapshots.keep import Keeper

    def tell(tree: WorkTree) -> None:
        if ledger.local.is_first(f"code {tree.common_dir}"):
            say(
                "note: the code around each step is kept as refs/uwf/code/ in "
                f"{shown(str(tree.common_dir))}; a plain push, fetch or clone leaves "
                "it there, a mirror takes it (to turn it off: record.code none)"
            )

    return Keeper(
        camera=make_camera(
            ledger.store.state_dir / "code", settings=settings, home=home
        ),
        environment=environment,
        now=now,
        on_first=tell,
    )


def has_secret(path: str, data: bytes) -> bool:
    """Whether the scan would stop a file, by its path or content."""
    from uwfgit.sync.secrets.text import scan_text

    return bool(scan_text(path) or scan_text(data.decode("utf-8", "replace")))


def now() -> int:
    """Return the time in seconds, as git counts it."""
    return int(time.time())
