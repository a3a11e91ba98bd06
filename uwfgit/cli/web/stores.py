"""A store as a page or a hub knows it: what answers for it, what runs for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from msgspec.structs import replace

from uwfgit.cli.frame.app import keep_bug
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.thread.payloads import row_payload, shown_payload, step_item
from uwfgit.cli.web.apart import run_apart
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.workflow.document import graph_payload, roles_payload
from uwfgit.store.repository import open_store
from uwfgit.web.serve.acts import Command, Outcome
from uwfgit.web.serve.shelf import Shelf
from uwfgit.web.serve.site import Served, Shapes

SHAPES = Shapes(
    thread=shown_payload,
    row=row_payload,
    step=step_item,
    roles=roles_payload,
    graph=graph_payload,
)


def serve_store(
    context: CommandContext, path: Path, *, root: str = "", acts: bool
) -> Served:
    """Return what answers for a store, and runs the commands of its pages."""
    # Named by the work tree it belongs to, or by its folder.
    named = path.parents[1] if path.parts[-2:] == (".git", "uwf") else path
    return Served(
        shelf=Shelf(_opener(context, path), name=shown(named.name), root=root),
        run=_runner(context, path),
        acts=acts,
        agents=tuple(sorted(context.settings.agents)),
    )


def on_bug(context: CommandContext, exc: Exception) -> str:
    """Keep what is known of a bug, and say where."""
    message, path = keep_bug(exc, context)
    return f"{message}; the traceback is in {path}" if path else message


def _opener(
    context: CommandContext, path: Path
) -> Callable[[], AbstractContextManager[Ledger]]:
    """Return what opens a store, and closes it, in the thread that asks it."""

    @contextmanager
    def opened() -> Iterator[Ledger]:
        with ExitStack() as closing:
            own = replace(context, closing=closing)
            yield own.make_ledger(open_store(path, home=context.home))

    return opened


def _runner(context: CommandContext, path: Path) -> Callable[[Command], Outcome]:
    def run(command: Command) -> Outcome:
        form = ("--color", "never") if command.is_text else ("--json",)
        words = [*command.words, *form, "--store", str(path)]
        with _written(command.inputs) as path_words:
            given = [*words, *path_words]
            code, out, err = run_apart(context, given, stdin=command.stdin)
        if command.is_text:
            return Outcome(code=code, value={"out": out, "err": err})
        value = _object(out)
        error = value.get("error") or _object(err).get("error")
        if error is None and code not in {0, 3} and not value:
            last = err.strip().splitlines()[-1:] or [f"exit code {code}"]
            error = {"code": "failed", "message": last[0], "hint": None}
        return Outcome(code=code, value=value, error=error)

    return run


@contextmanager
def _written(inputs: Mapping[str, Any] | None) -> Iterator[tuple[str, ...]]:
    """Yield the words that hand inputs over, in a file for as long as it is needed."""
    if inputs is None:
        yield ()
        return
    with NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(dict(inputs), file)
        file.flush()
        yield (f"--inputs={file.name}",)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
