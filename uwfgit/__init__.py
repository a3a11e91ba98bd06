"""uwfgit: multi-role agent workflows, run step by step and kept in git.

The public names are imported when they are first used, so that importing the
package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uwfgit.agents.base import AgentReply as AgentReply
    from uwfgit.errors import Problem as Problem
    from uwfgit.errors import UwfError as UwfError
    from uwfgit.kit.context import AgentContext as AgentContext
    from uwfgit.kit.create import create_agent as create_agent
    from uwfgit.library import Store as Store
    from uwfgit.library import Thread as Thread
    from uwfgit.library import open_store as open_store
    from uwfgit.model.node import Node as Node
    from uwfgit.model.node import make_node as make_node
    from uwfgit.model.workflow.source import read_workflow as read_workflow
    from uwfgit.model.workflow.workflow import Workflow as Workflow

    __version__: str

_HOMES = {
    "AgentContext": "uwfgit.kit.context",
    "AgentReply": "uwfgit.agents.base",
    "Node": "uwfgit.model.node",
    "Problem": "uwfgit.errors",
    "Store": "uwfgit.library",
    "Thread": "uwfgit.library",
    "UwfError": "uwfgit.errors",
    "Workflow": "uwfgit.model.workflow.workflow",
    "create_agent": "uwfgit.kit.create",
    "make_node": "uwfgit.model.node",
    "open_store": "uwfgit.library",
    "read_workflow": "uwfgit.model.workflow.source",
}

__all__ = [
    "AgentContext",
    "AgentReply",
    "Node",
    "Problem",
    "Store",
    "Thread",
    "UwfError",
    "Workflow",
    "__version__",
    "create_agent",
    "make_node",
    "open_store",
    "read_workflow",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return _read_version()
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'uwfgit' has no attribute '{name}'")
    return getattr(import_module(home), name)


def _read_version() -> str:
    # Reading metadata costs more than everything else here.
    from importlib.metadata import (  # noqa: PLC0415
        PackageNotFoundError,
        version,
    )

    try:
        return version("uwfgit")
    except PackageNotFoundError:
        # Run from a source folder that was never installed.
        return "0+source"


def __dir__() -> list[str]:
    return sorted(__all__)
