"""``why`` and ``blame``: which step, prompt and workflow wrote a line."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from uwfgit.cli.code.place import path_inside
from uwfgit.cli.code.why_text import blame_text, why_text
from uwfgit.cli.frame.commands import add_command, make_single
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import format_json
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.frame.snapshots import has_secret, make_camera, now
from uwfgit.errors import InvalidError, NotFoundError, StateError, UsageError, UwfError

if TYPE_CHECKING:
    from uwfgit.code.blame.porcelain import Commit
    from uwfgit.code.blame.steps import KnownStep, StepIndex
    from uwfgit.code.blame.why import Chain, Origin
    from uwfgit.code.worktree import WorkTree
    from uwfgit.ids import Oid, ThreadId
    from uwfgit.model.ledger.ledger import Ledger

    _Found: TypeAlias = list[tuple[str, tuple[Origin, ...]]]

why_app = make_single()
blame_app = make_single()

_PLACE: Final = re.compile(r"(.+?):([0-9]{1,9})(?:,([0-9]{1,9}))?")
_MS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A file, and the lines asked about; ``None`` means all."""

    text: str
    lines: range | None


@add_command(why_app, "why")
def why(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE[:LINE[,LINE]]...", help="Files, and which lines of them."
        ),
    ] = None,
    staged: Annotated[
        bool,
        typer.Option("--staged", help="The lines that are staged to be committed."),
    ] = False,
    export: Annotated[
        str | None,
        typer.Option(
            "--export",
            metavar="FORMAT",
            help="Write a record for other tools: agent-trace.",
        ),
    ] = None,
) -> None:
    """Say which step wrote a line, and the prompt that led to it.

    It compares the file with the snapshots around steps, so it holds after a squash
    merge, a rebase, a rename and a deleted branch. Lines by people, and older ones,
    are told as git says. Where two answers are left, both are told.
    """
    context = get_context(ctx)
    if export not in (None, "agent-trace"):
        raise UsageError(f"--export: '{export}' is not agent-trace")
    if not files and not staged:
        raise UsageError("name a file, or --staged")
    tree = _require_tree(context)
    asked = [_read_place(context, text) for text in files or ()]
    if staged and not asked:
        asked = [_Asked(text=path, lines=None) for path in _list_staged(tree)]
        if not asked:
            raise StateError("nothing is staged", hint="git add stages changes")
    folder = tree.root if staged and not files else context.cwd
    found: _Found = []
    for each in asked:
        path = path_inside(tree, folder, each.text)
        found.append((path, _origins(context, tree, path, each.lines, staged)))
    if export is not None:
        _export(context, tree, found)
        return
    payload = {"files": [_file_payload(path, origins) for path, origins in found]}
    context.output.emit(payload, lambda: why_text(found))


@add_command(blame_app, "blame")
def blame(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file.")],
) -> None:
    """Show a file with the step, or the commit, of each line."""
    context = get_context(ctx)
    tree = _require_tree(context)
    path = path_inside(tree, context.cwd, file)
    origins = _origins(context, tree, path, None, staged=False)
    if context.output.is_text:
        context.output.emit_document(blame_text(origins))
    else:
        context.output.emit(_file_payload(path, origins), str)


def _require_tree(context: CommandContext) -> WorkTree:
    from uwfgit.code.worktree import WorkTree

    tree = WorkTree.find(context.cwd, context.environment)
    if tree is None:
        raise StateError(
            "this is not a git work tree", hint="run it in a clone of the code"
        )
    return tree


def _read_place(context: CommandContext, text: str) -> _Asked:
    match = _PLACE.fullmatch(text)
    if match is None or (context.cwd / text).exists():
        return _Asked(text=text, lines=None)
    first = int(match[2])
    last = int(match[3] or first)
    if first < 1 or last < first:
        raise UsageError(f"'{text}': lines count from 1, the last not before the first")
    return _Asked(text=match[1], lines=range(first, last + 1))


def _list_staged(tree: WorkTree) -> list[str]:
    words = (
        "diff",
        "--cached",
        "--name-only",
        "--diff-filter=AMR",
        "-z",
        "--no-ext-diff",
    )
    names = tree.ask(*words).decode("utf-8", "surrogateescape").split("\0")
    return [name for name in names if name and (tree.root / name).exists()]


def _origins(
    context: CommandContext,
    tree: WorkTree,
    path: str,
    lines: range | None,
    staged: bool,
) -> tuple[Origin, ...]:
    """Find where the lines of a file come from.

    Raises:
        StateError: Snapshots leave the file out, so nothing can be told.
    """
    from uwfgit.code.blame.why import (
        Question,
        all_open,
        blame_plainly,
        find_origins,
        staged_lines,
    )

    with tempfile.TemporaryDirectory(prefix="uwf-") as place:
        room = Path(place)
        scratch = room / "objects"
        scratch.mkdir()
        contents = _staged_copy(tree, path, room) if staged else None
        with ThreadPoolExecutor(max_workers=1) as pool:
            # git's own answer takes longest; what else is needed is made meanwhile.
            asked = pool.submit(blame_plainly, tree, path, lines, contents=contents)
            content = _content(context, tree, path, room, staged=staged)
            plain = asked.result()
        question = Question(
            tree=tree, path=path, content=content, lines=lines, scratch=scratch
        )
        chains = _iter_chains(context, tree)
        origins = find_origins(question, chains, plain or all_open(question))
    if not staged:
        return origins
    wanted = staged_lines(tree, path)
    return tuple(each for each in origins if each.number in wanted)


def _content(
    context: CommandContext, tree: WorkTree, path: str, room: Path, *, staged: bool
) -> Oid:
    """Return a tree of the files as they are asked about.

    Raises:
        StateError: Snapshots leave the file out, so nothing can be told.
    """
    from uwfgit.code.snapshots.take import write_staged

    scratch = room / "objects"
    if staged:
        return write_staged(tree, room, scratch)
    camera = make_camera(
        room / "index", settings=context.settings, home=context.user_home
    )
    with camera.taking(tree, None, objects=scratch) as taken:
        for left in taken.left_out:
            if left.path == os.fsencode(path):
                raise StateError(
                    f"snapshots leave '{shown(path)}' out: {left.why}",
                    hint="git blame may say more",
                )
        return taken.tree


def _staged_copy(tree: WorkTree, path: str, room: Path) -> Path:
    copy = room / "staged"
    copy.write_bytes(tree.ask("cat-file", "blob", f":{path}"))
    return copy


def _iter_chains(context: CommandContext, tree: WorkTree) -> Iterator[Chain]:
    """Yield the chains there are, the one used last first."""
    from uwfgit.code.blame.why import Chain
    from uwfgit.code.chain import chain_ref, list_chain_refs, list_snapshots, read_tips
    from uwfgit.code.exchange import list_remote_chains

    ledger = _find_ledger(context)
    if ledger is None:
        return
    refs = [(thread, chain_ref(thread)) for thread in list_chain_refs(tree)]
    refs += list_remote_chains(tree)
    tips = [(thread, ref, read_tips(tree, ref).snapshot) for thread, ref in refs]
    known = [(thread, ref, tip) for thread, ref, tip in tips if tip is not None]
    for thread, ref, tip in sorted(known, key=lambda each: -each[2].time):
        yield Chain(
            tip=tip,
            snapshots=list_snapshots(tree, ref),
            index=partial(_index, ledger, thread),
        )


def _index(ledger: Ledger, thread: ThreadId) -> StepIndex | None:
    from uwfgit.code.blame.steps import index_steps
    from uwfgit.model.thread.record import load_tip, open_record

    try:
        return index_steps(open_record(ledger.store, load_tip(ledger.store, thread)))
    except UwfError:
        # A thread that is not here, or is damaged, can name no step.
        return None


def _find_ledger(context: CommandContext) -> Ledger | None:
    try:
        return context.open_ledger()
    except NotFoundError:
        return None


def _file_payload(path: str, origins: tuple[Origin, ...]) -> dict[str, Any]:
    return {"path": path, "lines": [_line_payload(each) for each in origins]}


def _line_payload(origin: Origin) -> dict[str, Any]:
    return {
        "line": origin.number,
        "text": origin.text.decode("utf-8", "replace"),
        "kind": _kind(origin),
        "steps": [_step_payload(step) for step in origin.steps],
        "commit": None if origin.commit is None else _commit_payload(origin.commit),
        "sharedWith": list(origin.shared),
    }


def _kind(origin: Origin) -> str:
    if not origin.is_sure:
        return "unsure"
    if origin.steps:
        return "step"
    is_open = origin.commit is not None and origin.commit.is_uncommitted
    return "uncommitted" if is_open else "commit"


def _step_payload(step: KnownStep) -> dict[str, Any]:
    return {
        "threadId": step.thread,
        "number": step.number,
        "hash": step.hash,
        "role": step.role,
        "agent": step.agent,
        "status": step.status,
        "prompt": step.prompt,
        "note": step.note,
        "timeMs": step.completed_at * _MS,
    }


def _commit_payload(commit: Commit) -> dict[str, Any] | None:
    if commit.is_uncommitted:
        return None
    return {
        "oid": commit.oid,
        "author": commit.author,
        "mail": commit.mail,
        "authoredAtMs": commit.authored_at * _MS,
        "subject": commit.summary,
    }


def _export(context: CommandContext, tree: WorkTree, found: _Found) -> None:
    from uwfgit import __version__
    from uwfgit.code.blame.agent_trace import make_record

    record = make_record(
        found,
        models=_find_models(context, found),
        revision=_revision(tree, [path for path, _ in found]),
        tool_version=__version__,
        now=now(),
        random=os.urandom(16),
    )
    text = format_json(record)
    if has_secret("", text.encode()):
        raise InvalidError("the record would carry a secret: a path or a model is one")
    context.output.emit_data(record, text)


def _revision(tree: WorkTree, paths: list[str]) -> str | None:
    """Return the commit whose lines were counted, if the files are those of HEAD."""
    is_same = tree.run(["diff", "--quiet", "HEAD", "--", *paths]).code == 0
    return tree.resolve("HEAD") if is_same else None


def _find_models(context: CommandContext, found: _Found) -> dict[Any, str | None]:
    from uwfgit.model.ledger.ledger import load_node

    ledger = _find_ledger(context)
    steps = {step.hash: step for _, each in found for o in each for step in o.steps}
    models: dict[Any, str | None] = {}
    for name, step in steps.items():
        if ledger is not None:
            detail = load_node(ledger, step.detail, thread=step.thread).payload
            models[name] = _model_id(detail.get("kind"), detail.get("model"))
    return models


def _model_id(kind: str | None, model: str | None) -> str | None:
    """Write a model as provider and name, where the agent says only the name."""
    if model is None or "/" in model:
        return model
    providers = {"claude-code": "anthropic", "codex": "openai", "gemini": "google"}
    provider = providers.get(kind or "")
    return f"{provider}/{model}" if provider else model
