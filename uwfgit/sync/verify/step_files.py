"""The files and folders that a run leaves in a thread, by what stood there before."""

from __future__ import annotations

from typing import Final

from uwfgit.constants import MAX_RUNS, MAX_STEPS
from uwfgit.ids import Hash, is_hash
from uwfgit.model.node import TEXT_TYPE
from uwfgit.model.thread.derive import link_field, run_files
from uwfgit.model.thread.step import Step
from uwfgit.store.layout import (
    ATTEMPTS,
    LINKS,
    OUTPUT_FILE,
    PROMPT_FILE,
    REPLACED,
    nodes_folder,
    step_folder,
    thread_folder,
)
from uwfgit.sync.verify.nodes import Places
from uwfgit.sync.verify.rawtree import Objects
from uwfgit.sync.verify.report import refusal
from uwfgit.sync.verify.settle import Files
from uwfgit.sync.verify.view import View

_OWN_FILES: Final = (OUTPUT_FILE, PROMPT_FILE, LINKS, ATTEMPTS)


def attempt_files(objects: Objects, view: View, step: Step) -> Files:
    """Return the files of a failed try, which is the next one in its step's folder."""
    folder = f"{thread_folder(view.thread)}/{step_folder(step.number, step.role)}"
    number = objects.count(view.root, f"{folder}/{ATTEMPTS}") + 1
    return _read_files(f"{folder}/{ATTEMPTS}/{number}", step)


def _read_files(folder: str, step: Step) -> Files:
    files = run_files(
        step.output, step.body, edge_prompt=step.edge_prompt, note=step.note
    )
    return {f"{folder}/{name}": data for name, data in files.items()}


def next_run_folder(objects: Objects, view: View, number: int) -> str:
    """Name the folder that the next run of a step puts its nodes into.

    Raises:
        CorruptError: The thread, or the step, may have no more.
    """
    if number > MAX_STEPS:
        raise refusal("size", f"more than {MAX_STEPS} steps")
    own = thread_folder(view.thread)
    folder = f"{own}/{nodes_folder(number)}"
    run = objects.count(view.root, folder) + 1
    if run > MAX_RUNS:
        raise refusal("size", f"step {number} has more than {MAX_RUNS} runs")
    return f"{folder}/{run}"


def step_files(
    objects: Objects, view: View, nodes: Places, step: Step, *, is_poke: bool
) -> Files:
    """Return the files of a step; a poke moves those of the step it replaces."""
    folder = f"{thread_folder(view.thread)}/{step_folder(step.number, step.role)}"
    root = view.root
    files: Files = {}
    # A poke of an inherited step moves nothing: none of its files stand here.
    if is_poke and objects.find(root, f"{folder}/{OUTPUT_FILE}") is not None:
        number = objects.count(root, f"{folder}/{REPLACED}") + 1
        for own in _OWN_FILES:
            for path, oid in objects.files(root, f"{folder}/{own}").items():
                files[path] = None
                files[f"{folder}/{REPLACED}/{number}{path[len(folder) :]}"] = oid
    files |= _read_files(folder, step)
    for key, value in step.output.items():
        name = link_field(key)
        if name is None or not isinstance(value, str) or not is_hash(value):
            continue
        place = nodes.get(Hash(value))
        if place is not None and place[0] == TEXT_TYPE:
            files[f"{folder}/{LINKS}/{name}"] = place[1]
    return files
