"""The files that people read of a step, as its nodes and the tree before give them."""

from __future__ import annotations

from typing import Final

from uwfgit.ids import Hash, Oid, is_hash
from uwfgit.model.derive import link_field, output_file, prompt_file
from uwfgit.model.node import TEXT_TYPE
from uwfgit.model.record import Step
from uwfgit.store.layout import (
    ATTEMPTS,
    LINKS,
    OUTPUT_FILE,
    PROMPT_FILE,
    REPLACED,
    step_folder,
    thread_folder,
)
from uwfgit.sync.rawtree import Objects
from uwfgit.sync.verify_nodes import Places
from uwfgit.sync.verify_settle import Files
from uwfgit.sync.verify_view import View

_OWN_FILES: Final = (OUTPUT_FILE, PROMPT_FILE, LINKS, ATTEMPTS)


def attempt_files(objects: Objects, view: View, step: Step) -> Files:
    """Give the files of a failed try, which is the next one in its step's folder."""
    folder = f"{thread_folder(view.thread)}/{step_folder(step.number, step.role)}"
    number = objects.count(view.root, f"{folder}/{ATTEMPTS}") + 1
    return _read_files(f"{folder}/{ATTEMPTS}/{number}", step)


def _read_files(folder: str, step: Step) -> Files:
    return {
        f"{folder}/{OUTPUT_FILE}": output_file(step.output, step.body),
        f"{folder}/{PROMPT_FILE}": prompt_file(step.edge_prompt, step.note),
    }


def step_files(
    objects: Objects, view: View, nodes: Places, step: Step, *, is_poke: bool
) -> Files:
    """Give the files of a step; a poke moves those of the step it replaces."""
    folder = f"{thread_folder(view.thread)}/{step_folder(step.number, step.role)}"
    files: Files = {}
    if is_poke:
        files |= _moved_files(objects, view.root, folder)
    files |= _read_files(folder, step)
    for key, value in step.output.items():
        name = link_field(key)
        if name is None or not isinstance(value, str) or not is_hash(value):
            continue
        place = nodes.get(Hash(value))
        if place is not None and place[0] == TEXT_TYPE:
            files[f"{folder}/{LINKS}/{name}"] = place[1]
    return files


def _moved_files(objects: Objects, root: Oid, folder: str) -> Files:
    """Give what a poke moves; of an inherited step nothing stands here."""
    if objects.find(root, f"{folder}/{OUTPUT_FILE}") is None:
        return {}
    number = objects.count(root, f"{folder}/{REPLACED}") + 1
    files: Files = {}
    for name in _OWN_FILES:
        for path, oid in objects.files(root, f"{folder}/{name}").items():
            files[path] = None
            files[f"{folder}/{REPLACED}/{number}{path[len(folder) :]}"] = oid
    return files
