"""``why`` and ``blame``: which step, prompt and workflow wrote a line."""

from __future__ import annotations

import os
import re
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer
from msgspec import Struct

from uwfgit.cli.code.place import path_inside
from uwfgit.cli.code.why_text import blame_text, why_text
from uwfgit.cli.frame.commands import add_command, make_single
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.engine import has_secret, make_camera, now
from uwfgit.cli.frame.output import format_json
from uwfgit.cli.frame.screen import shown
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

_PLACE: Final = re.compile(r"(.+?):([0-9]{1,9})(?:[,-]([0-9]{1,9}))?")
_MS: Final = 1000


class _Asked(Struct, frozen=True, kw_only=True):
    """A file, and the lines asked about; ``None`` means all."""

    text: str
    lines: range | None


@add_command(why_app, "why")
def why(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE[:LINE[,LINE]]...]",
            help="Files, and which lines of them.",
        ),
    ] = None,
    staged: Annotated[
        bool,
        typer.Option("--staged", help="The lines that are staged to be committed."),
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Ask all threads that could know.")
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
    search = _Search(context=context, tree=tree, staged=staged, every=every)
    found: _Found = []
    for each in asked:
        path = path_inside(tree, folder, each.text)
        found.append((path, search.origins(path, each.lines)))
    if export is not None:
        _export(context, tree, found)
        return
    payload = {"files": [_file_payload(path, origins) for path, origins in found]}
    context.output.emit(payload, lambda: why_text(found))


@add_command(blame_app, "blame")
def blame(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file.")],
    every: Annotated[
        bool, typer.Option("--all", help="Ask all threads that could know.")
    ] = False,
) -> None:
    """Show a file with the step, or the commit, of each line."""
    context = get_context(ctx)
    tree = _require_tree(context)
    path = path_inside(tree, context.cwd, file)
    search = _Search(context=context, tree=tree, every=every)
    origins = search.origins(path, None)
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


class _Search(Struct, frozen=True, kw_only=True):
    """Where lines are asked about, and how."""

    context: CommandContext
    tree: WorkTree
    staged: bool = False
    every: bool = False

    def origins(self, path: str, lines: range | None) -> tuple[Origin, ...]:
        """Find where the lines of a file come from.

        Raises:
            StateError: Snapshots leave the file out, so nothing can be told.
        """
        from uwfgit.code.blame.why import staged_lines

        with tempfile.TemporaryDirectory(prefix="uwf-") as place:
            origins = self._find(path, lines, Path(place))
        if not self.staged:
            return origins
        wanted = staged_lines(self.tree, path)
        return tuple(each for each in origins if each.number in wanted)

    def _find(self, path: str, lines: range | None, room: Path) -> tuple[Origin, ...]:
        from uwfgit.code.blame.plain import blame_plainly
        from uwfgit.code.meanwhile import meanwhile

        context, tree, scratch = self.context, self.tree, room / "objects"
        scratch.mkdir()
        contents = room / "staged" if self.staged else None
        if contents is not None:
            contents.write_bytes(tree.ask("cat-file", "blob", f":{path}"))
        # git's own answer takes longest; all else, imports too, is done meanwhile.
        plain = meanwhile(partial(blame_plainly, tree, path, lines, contents=contents))
        from uwfgit.code.blame.why import MOST_CHAINS, Question, all_open, find_origins

        question = Question(
            tree=tree,
            path=path,
            content=_content(context, tree, path, room, staged=self.staged),
            lines=lines,
            scratch=scratch,
        )
        chains = _list_chains(context, tree)
        most = None if self.every else MOST_CHAINS
        known = plain() or all_open(question)
        return find_origins(question, chains, known, most=most)


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


def _list_chains(context: CommandContext, tree: WorkTree) -> list[Chain]:
    """List the chains there are, the one used last first."""
    from uwfgit.code.blame.why import Chain
    from uwfgit.code.chain import (
        list_chain_refs,
        list_held,
        read_began,
        read_snapshots,
    )
    from uwfgit.code.exchange import list_remote_chains

    ledger = _find_ledger(context)
    if ledger is None:
        return []
    refs = list(list_chain_refs(tree).items())
    refs += [(thread, oid) for thread, _, oid in list_remote_chains(tree)]
    # What a remote has is most often what is here.
    refs = list(dict.fromkeys(refs))
    found = read_snapshots(tree, [oid for _, oid in refs])
    known = [
        (thread, tip)
        for (thread, _), tip in zip(refs, found, strict=True)
        if tip is not None
    ]
    known.sort(key=lambda each: (each[1].time, each[0]), reverse=True)
    began = read_began(tree, [tip for _, tip in known])
    return [
        Chain(
            tip=tip,
            began=since,
            snapshots=partial(list_held, tree, tip),
            index=partial(_index, ledger, thread),
        )
        for (thread, tip), since in zip(known, began, strict=True)
    ]


def _index(ledger: Ledger, thread: ThreadId) -> StepIndex | None:
    from uwfgit.code.blame.steps import index_steps
    from uwfgit.model.thread.record import open_record

    try:
        return index_steps(open_record(ledger.store, thread))
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
        "threadsNotAsked": origin.not_asked,
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

    paths = [path for path, _ in found]
    is_head = tree.run(["diff", "--quiet", "HEAD", "--", *paths]).code == 0
    record = make_record(
        found,
        models=_find_models(context, found),
        # That of HEAD, if the files whose lines were counted are its.
        revision=tree.resolve("HEAD") if is_head else None,
        tool_version=__version__,
        now=now(),
        random=os.urandom(16),
    )
    text = format_json(record)
    if has_secret("", text.encode()):
        raise InvalidError("the record would carry a secret: a path or a model is one")
    context.output.emit_data(record, text)


def _find_models(context: CommandContext, found: _Found) -> dict[Any, str | None]:
    from uwfgit.model.node import DETAIL_TYPE
    from uwfgit.model.thread.record import open_record

    ledger = _find_ledger(context)
    steps = {step.hash: step for _, each in found for o in each for step in o.steps}
    models: dict[Any, str | None] = {}
    for name, step in steps.items():
        if ledger is not None:
            record = open_record(ledger.store, step.thread)
            detail = record.node(step.detail, DETAIL_TYPE).payload
            models[name] = _model_id(detail["kind"], detail["model"])
    return models


def _model_id(kind: str | None, model: str | None) -> str | None:
    """Write a model as provider and name, where the agent says only the name."""
    from uwfgit.agents.clis.kinds import CLI_KINDS

    cli = CLI_KINDS.get(kind or "")
    if model is None or "/" in model or cli is None or cli.provider is None:
        return model
    return f"{cli.provider}/{model}"
