"""Where things stand in git: ref names and tree paths (pure)."""

from __future__ import annotations

import re
from typing import Final

from uwfgit.ids import HASH_SHAPE, THREAD_SHAPE, Hash, ThreadId, is_thread_id
from uwfgit.store.canonical import TEXT_TYPE

HEAD_REF: Final = "refs/heads/main"
THREAD_PREFIX: Final = "refs/heads/thread/"
WORKFLOW_PREFIX: Final = "refs/heads/workflow/"
KEEP_REF: Final = "refs/uwf/keep"
TRASH_PREFIX: Final = "refs/uwf/trash/"
MEMORY_PREFIX: Final = "refs/uwf/memory/"

THREADS: Final = "threads"
WORKFLOWS: Final = "workflows"
STATE_FILE: Final = "thread.json"
WORKFLOW_FILE: Final = "workflow.yaml"
TASK_FILE: Final = "TASK.md"
SUMMARY_FILE: Final = "SUMMARY.md"
OUTPUT_FILE: Final = "output.md"
PROMPT_FILE: Final = "prompt.md"
HISTORY: Final = "history"
NODES: Final = "nodes"
START_NODES: Final = "nodes/start"
ATTEMPTS: Final = "attempts"
REPLACED: Final = "replaced"
LINKS: Final = "links"

_BUCKET: Final = 100
"""Steps whose folders stand in one: its name is their hundred."""
_NODE_NAME = re.compile(rf"({HASH_SHAPE})\.({HASH_SHAPE})\.(json|md)", re.ASCII)
_STEP_NAME = re.compile(
    r"(?P<number>[0-9]{5})-(?P<role>[A-Za-z][A-Za-z0-9_-]{0,63})", re.ASCII
)
WORKFLOW_SHAPE: Final = r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*"
_WORKFLOW_NAME = re.compile(WORKFLOW_SHAPE, re.ASCII)
NODE_REF: Final = re.compile(
    rf"{THREAD_PREFIX}{THREAD_SHAPE}|{WORKFLOW_PREFIX}{WORKFLOW_SHAPE}|{KEEP_REF}",
    re.ASCII,
)
"""The refs whose commits hold nodes."""


def thread_ref(thread: ThreadId) -> str:
    """Name the branch of a thread."""
    return THREAD_PREFIX + thread


def memory_ref(thread: ThreadId) -> str:
    """Name the ref of what agents remember of a thread."""
    return MEMORY_PREFIX + thread


def workflow_ref(name: str) -> str:
    """Name the branch of a registered workflow."""
    return WORKFLOW_PREFIX + name


def find_ref_thread(ref: str) -> ThreadId | None:
    """Read the thread a branch is for; ``None`` for any other ref."""
    name = ref.removeprefix(THREAD_PREFIX)
    return ThreadId(name) if name != ref and is_thread_id(name) else None


def is_workflow_name(name: str) -> bool:
    """Whether a workflow may have this name."""
    return _WORKFLOW_NAME.fullmatch(name) is not None


def thread_folder(thread: ThreadId) -> str:
    """Name the one folder that the commits of a thread change."""
    return f"{THREADS}/{thread}"


def workflow_folder(name: str) -> str:
    """Name the one folder that the versions of a registered workflow change."""
    return f"{WORKFLOWS}/{name}"


def step_folder(number: int, role: str) -> str:
    """Name the folder of what people read of a step, within the thread's."""
    return f"{HISTORY}/{number // _BUCKET:03d}/{number:05d}-{role}"


def nodes_folder(number: int) -> str:
    """Name the folder of a step's runs, a numbered one each, within the thread's."""
    return f"{NODES}/{number // _BUCKET:03d}/{number:05d}"


def find_step_name(name: str) -> tuple[int, str] | None:
    """Read number and role off a step folder's own name."""
    match = _STEP_NAME.fullmatch(name)
    return (int(match["number"]), match["role"]) if match else None


def find_node_name(name: str) -> tuple[Hash, Hash] | None:
    """Read hash and type off a node's file name."""
    match = _NODE_NAME.fullmatch(name)
    if match is None:
        return None
    node, kind, suffix = match.groups()
    is_text = kind == TEXT_TYPE
    return (Hash(node), Hash(kind)) if is_text == (suffix == "md") else None


_TASK_BYTES: Final = 4096
_TASK_CHARS: Final = 120


def task_line(data: bytes) -> str | None:
    """Return the first line of a task that says something, for listings."""
    lines = data[:_TASK_BYTES].decode(errors="replace").splitlines()
    found = next((line.strip() for line in lines if line.strip()), None)
    return None if found is None else found[:_TASK_CHARS]
