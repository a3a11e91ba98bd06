"""Makes ``words.json``, what completion knows of the commands.

``scripts/write_docs.py`` writes it; a test says when it must be written again.
"""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final

from uwfgit.agents.registry import KINDS
from uwfgit.cli.frame.commands import Click, Passthrough
from uwfgit.cli.frame.options import hidden_options
from uwfgit.cli.store.cmd_prompt import list_guides
from uwfgit.cli.words.reference import iter_commands, root_context
from uwfgit.cli.workflow.examples import list_examples
from uwfgit.config.table import KEYS
from uwfgit.model.node import BUILTIN_NAMES
from uwfgit.sync.review.forges import CIS, FORGES

FILE: Final = Path(__file__).with_name("words.json")
ANY: Final = "any"
"""Kind of a value that only its user knows."""

_BY_OPTION: Final = {
    "--agent": "agent",
    "--as": "form",
    "--ci": "ci",
    "--color": "color",
    "--forge": "forge",
    "--format": "format",
    "--from-role": "role",
    "--remote": "remote",
    "--role": "role",
    "--script": "file",
    "--status": "status",
    "--store": "store",
    "--thread": "thread",
    "--workflow": "registered",
}
_BY_METAVAR: Final = {
    "A": "thread",
    "B": "thread",
    "DIR": "folder",
    "EXAMPLE": "example",
    "FILE": "file",
    "KEY": "key",
    "PATH": "file",
    "REMOTE": "remote",
    "REMOVED": "removed",
    "SHELL": "shell",
    "STEP": "thread",
    "T": "thread",
    "THREAD": "thread",
    "THREAD|STEP": "thread",
    "TYPE": "type",
    "list|NAME": "guide",
    "WORKFLOW": "workflow",
}


def words_table() -> dict[str, Any]:
    """Return each command's own options, arguments and commands, by its path."""
    root = root_context()
    # The global options stand once, with the root: all commands have them.
    shared = {name for option in hidden_options() for name in option.opts}
    shared |= {"--help", "-h"}
    # The words of each kind that stand in the program itself.
    fixed = {
        "agent": list(KINDS),
        "ci": list(CIS),
        "example": [each.name for each in list_examples()],
        "forge": list(FORGES),
        "guide": ["list", *list_guides()],
        "key": [str(key) for key in KEYS],
        "type": sorted(BUILTIN_NAMES),
    }
    table = {"": {**_entry(root, without=frozenset()), "values": fixed}}
    for ctx in iter_commands(root, hidden=True):
        path = ctx.command_path.removeprefix("uwf ")
        table[path] = _entry(ctx, without=shared)
    return table


def _entry(ctx: Click, *, without: AbstractSet[str]) -> dict[str, Any]:
    command = ctx.command
    entry: dict[str, Any] = {}
    params = [] if isinstance(command, Passthrough) else command.get_params(ctx)
    options = {
        name: ""
        if param.is_flag or param.count
        else _BY_OPTION.get(name) or _BY_METAVAR.get(param.metavar or "", ANY)
        for param in params
        if param.param_type_name == "option" and not param.hidden
        for name in param.opts
        if name not in without
    }
    arguments = [p for p in params if p.param_type_name == "argument"]
    if options:
        entry["options"] = dict(sorted(options.items()))
    if arguments:
        entry["arguments"] = [_argument_kind(ctx, each) for each in arguments]
        if any(each.nargs == -1 for each in arguments):
            entry["more"] = True
    if hasattr(command, "list_commands"):
        entry["commands"] = _commands(ctx)
    return entry


def _argument_kind(ctx: Click, param: Click) -> str:
    name = (param.metavar or "").strip("[]").removesuffix("...")
    if ctx.command_path == "uwf workflow new":
        return ANY
    if name == "NAME" and ctx.command_path.startswith("uwf workflow "):
        return "registered"
    if name == "NAME" and ctx.command_path.startswith("uwf remote "):
        return "remote"
    return _BY_METAVAR.get(name, ANY)


def _commands(ctx: Click) -> dict[str, str]:
    found = {}
    for name in ctx.command.list_commands(ctx):
        command = ctx.command.get_command(ctx, name)
        if not command.hidden:
            found[name] = (command.help or "").partition("\n")[0].removesuffix(".")
    return found


def words_text() -> str:
    """Return the content of ``words.json``."""
    return json.dumps(words_table(), indent=1, ensure_ascii=False) + "\n"
