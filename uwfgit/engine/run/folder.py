"""Where a step runs: the only place that chooses its folder."""

from __future__ import annotations

import os
from pathlib import Path

from uwfgit.engine.run.engine import Cycle, Ground
from uwfgit.errors import InvalidError, StateError
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.step import Step


def find_cwd(
    record: Record, cycle: Cycle, replaced: Step | None, *, folder: Path | None
) -> Path:
    """Choose a step's folder: by flag, as the old step's, by the edge, the thread's.

    Args:
        folder: Where the thread works on this machine, if not where it was started.

    Raises:
        StateError: The chosen one does not exist.
        InvalidError: It has a name that cannot be recorded.
    """
    if cycle.ground is not None:
        chosen = _find_ground(cycle, cycle.ground)
    else:
        chosen = _choose(record, cycle, replaced, folder=folder)
    require_recordable(chosen)
    return chosen


def require_recordable(folder: Path) -> None:
    """Make sure that a folder can stand in a node, which holds text alone.

    Raises:
        InvalidError: Its name is not UTF-8.
    """
    try:
        str(folder).encode()
    except UnicodeEncodeError as exc:
        raise InvalidError(
            f"working directory '{folder}' has a name that is not UTF-8",
            hint="rename it, or choose one with --cwd DIR",
        ) from exc


def _choose(
    record: Record, cycle: Cycle, replaced: Step | None, *, folder: Path | None
) -> Path:
    base = folder or Path(record.start.cwd)
    if cycle.cwd is not None:
        chosen, why = cycle.cwd, "--cwd"
    elif not folder and replaced is not None and _is_folder(Path(replaced.cwd)):
        chosen, why = Path(replaced.cwd), "of the replaced step"
    elif cycle.routed.location is not None:
        chosen, why = base / _trim(cycle.routed.location), "named by the workflow"
    else:
        chosen, why = base, "of the thread"
    if not _is_folder(chosen):
        raise StateError(
            f"working directory '{chosen}' ({why}) does not exist",
            hint=_hint(cycle),
        )
    return chosen


def _trim(location: str) -> str:
    """Return a location without the line ends that a block of YAML leaves on it."""
    return location.strip("\r\n")


def _hint(cycle: Cycle) -> str:
    location = cycle.routed.location or ""
    if cycle.cwd is None and _trim(location).startswith("~"):
        return "'~' is a shell's: write the whole path; or choose one with --cwd DIR"
    return "choose one with --cwd DIR"


def _is_folder(path: Path) -> bool:
    # pathlib's own raises where a name is too long, as a workflow may render it.
    return os.path.isdir(path)  # noqa: PTH112


def _find_ground(cycle: Cycle, ground: Ground) -> Path:
    """Choose the folder of a foreign thread's step; no recorded one is used.

    Raises:
        StateError: The workflow names one that is outside, or does not exist.
    """
    chosen = cycle.cwd or ground.cwd
    if cycle.cwd is None and cycle.routed.location is not None:
        # No path holds a NUL, and realpath gives up at one.
        location = _trim(cycle.routed.location).replace("\0", "\ufffd")
        chosen = Path(os.path.realpath(ground.cwd / location))
        if not any(chosen.is_relative_to(root) for root in ground.roots):
            raise StateError(
                f"the workflow wants to work in '{chosen}', outside of "
                f"{', '.join(map(str, ground.roots))}",
                hint="choose a folder with --cwd DIR, or list it in trustedRoots",
            )
    if not _is_folder(chosen):
        raise StateError(
            f"working directory '{chosen}' does not exist",
            hint=_hint(cycle),
        )
    return chosen
