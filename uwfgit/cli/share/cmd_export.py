"""``export html``: threads as pages that need no server, scanned as a push is."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from msgspec import Struct

from uwfgit import __version__
from uwfgit.cli.frame.commands import add_command, make_group
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import count_of, format_time
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.frame.world import now_ms
from uwfgit.errors import CorruptError, InvalidError, StateError

if TYPE_CHECKING:
    from uwfgit.ids import ThreadId
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.web.export.folder import Written
    from uwfgit.web.export.pages import Export
    from uwfgit.web.view.listing import Line

app = make_group("Write threads as pages that open without a server.")

_KILO = 1000
Code: TypeAlias = "Mapping[tuple[ThreadId, int], str]"


@add_command(app, "html")
def html(
    ctx: typer.Context,
    folder: Annotated[
        str,
        typer.Argument(
            metavar="DIR", help="A new folder, or one of an earlier export."
        ),
    ],
    threads: Annotated[
        list[str] | None,
        typer.Argument(metavar="[THREAD...]", help="Which threads; else all of them."),
    ] = None,
    one_file: Annotated[
        bool, typer.Option("--one-file", help="One page that holds everything.")
    ] = False,
    full: Annotated[
        bool,
        typer.Option("--full", help="Tool results, reasoning, code and addresses too."),
    ] = False,
) -> None:
    """Write threads as web pages that work from a folder, without JavaScript.

    Everything is scanned for secrets first, as before a push, and a find stops it.
    Left out unless --full asks for it: tool results, reasoning, code diffs, mail
    addresses and host names. Home folders show as ~. With --one-file DIR may be
    the page itself, NAME.html.
    """
    context = get_context(ctx)
    ledger = context.open_ledger()
    target = context.resolve(folder)
    payload = export_threads(
        context, ledger, target, threads or [], one_file=one_file, full=full
    )
    context.output.emit(payload, lambda: _words(payload))


def export_threads(
    context: CommandContext,
    ledger: Ledger,
    target: Path,
    names: Sequence[str],
    *,
    one_file: bool,
    full: bool,
) -> dict[str, Any]:
    """Scan threads, write their pages, and say what the export holds.

    Raises:
        InvalidError: A secret would leave, or the folder holds something else.
        NotFoundError, AmbiguousError: A thread's name.
    """
    from uwfgit.web.export.folder import (
        check_folder,
        check_page,
        write_folder,
        write_page,
    )
    from uwfgit.web.export.links import INDEX

    is_page = one_file and target.suffix == ".html"
    if is_page:
        check_page(target)
    else:
        check_folder(target)
    lines = _choose(ledger, names)
    _refuse_private(ledger, lines)
    _scan(context, ledger, lines)
    code = _read_code(context, ledger, lines) if full else {}
    export = _make_export(context, ledger, lines, full=full, code=code)
    page = target if is_page else target / INDEX
    if is_page:
        written = write_page(page, export.single())
    else:
        pages = [(INDEX, export.single())] if one_file else export.iter_folder()
        written = write_folder(target, pages)
    for thread, problem in export.problems.items():
        context.output.warn(f"thread {thread} has no page: {problem}")
    return _payload(export, _Target(folder=target, page=page), written)


def _choose(ledger: Ledger, names: Sequence[str]) -> list[Line]:
    from uwfgit.model.ledger.ledger import resolve_thread
    from uwfgit.model.thread.family import family_of
    from uwfgit.web.view.listing import list_lines

    lines = list_lines(ledger)
    if not names:
        return list(lines)
    named = [resolve_thread(ledger, name) for name in names]
    # What did steps of a thread goes along with it, as in a push.
    wanted = {*named, *(each for one in named for each in family_of(ledger.store, one))}
    return [line for line in lines if line.thread in wanted]


def _refuse_private(ledger: Ledger, lines: Sequence[Line]) -> None:
    """Refuse threads that were started so as to stay here.

    Raises:
        StateError: One is private.
    """
    from uwfgit.model.thread.record import open_record
    from uwfgit.model.thread.tip import read_tip

    for line in lines:
        try:
            tip = read_tip(ledger.store, line.thread, line.commit)
            is_private = open_record(ledger.store, tip, checked=False).start.private
        except CorruptError:
            continue
        if is_private:
            raise StateError(
                f"thread {line.thread} is private: it does not leave this store",
                hint="name the threads to export",
            )


def _scan(context: CommandContext, ledger: Ledger, lines: Sequence[Line]) -> None:
    from uwfgit.model.thread.private import find_private
    from uwfgit.store.layout import thread_ref
    from uwfgit.sync.secrets.scan import describe_findings, find_leaving

    leaving = [(thread_ref(line.thread), line.commit, None) for line in lines]
    for ref, why in find_private(ledger.store, [ref for ref, _, _ in leaving]).items():
        name = ref.rpartition("/")[2]
        raise InvalidError(f"nothing was exported: thread {name}: {why}")
    found = find_leaving(ledger.store, leaving, environment=context.environment)
    if found:
        raise InvalidError(f"nothing was exported: {describe_findings(found, leaving)}")


def _read_code(context: CommandContext, ledger: Ledger, lines: Sequence[Line]) -> Code:
    """Read what steps changed in the code, as far as it is here.

    Raises:
        InvalidError: A secret would leave.
    """
    from uwfgit.cli.code.cmd_changes import read_step_diff
    from uwfgit.model.thread.record import open_record
    from uwfgit.model.thread.tip import read_tip
    from uwfgit.sync.secrets.scan import describe_findings, find_in_texts

    found: dict[tuple[ThreadId, int], str] = {}
    for line in lines:
        try:
            tip = read_tip(ledger.store, line.thread, line.commit)
            record = open_record(ledger.store, tip, checked=False)
            steps = record.steps()
        except CorruptError:
            continue
        for step in steps:
            diff = read_step_diff(context, ledger, record, step)
            if diff:
                found[line.thread, step.number] = diff
    texts = {f"code of {t}:{number}": text for (t, number), text in found.items()}
    secrets = find_in_texts(ledger.store, texts)
    if secrets:
        raise InvalidError(f"nothing was exported: {describe_findings(secrets)}")
    return found


def _make_export(
    context: CommandContext,
    ledger: Ledger,
    lines: Sequence[Line],
    *,
    full: bool,
    code: Code,
) -> Export:
    from uwfgit.web.export.pages import Export
    from uwfgit.web.view.cleaning import Cleaner

    cleaner = Cleaner(
        full=full,
        home=context.environment.get("HOME", ""),
        hosts=tuple({platform.node(), platform.node().partition(".")[0]}),
    )
    root = context.enclosing.root if context.enclosing is not None else None
    return Export(
        ledger=ledger,
        lines=lines,
        cleaner=cleaner,
        name=root.name if root is not None else ledger.store.path.name,
        about=f"Exported {format_time(now_ms())} by uwf {__version__}",
        year=time.localtime().tm_year,
        code=code,
    )


class _Target(Struct, frozen=True, kw_only=True):
    folder: Path
    page: Path


def _payload(export: Export, target: _Target, written: Written) -> dict[str, Any]:
    from uwfgit.web.view.cleaning import KINDS

    shown_threads: list[ThreadId] = [
        line.thread for line in export.lines if line.thread not in export.problems
    ]
    return {
        "folder": str(target.folder),
        "page": str(target.page),
        "threads": len(shown_threads),
        "workflows": export.workflows,
        "comparisons": export.comparisons,
        "nodes": export.nodes,
        "files": written.files,
        "bytes": written.size,
        "leftOut": [] if export.cleaner.full else list(KINDS),
        "problems": [
            {"threadId": thread, "message": problem}
            for thread, problem in export.problems.items()
        ],
    }


def _words(payload: dict[str, Any]) -> str:
    holds = [
        count_of(payload["threads"], "thread"),
        *(
            count_of(payload[f"{noun}s"], noun)
            for noun in ("workflow", "comparison", "node")
            if payload[f"{noun}s"]
        ),
    ]
    size = f"{max(1, payload['bytes'] // _KILO):,} kB"
    lines = [
        f"exported {', '.join(holds)} in {count_of(payload['files'], 'file')}, {size}"
    ]
    if payload["leftOut"]:
        lines.append(
            f"left out: {', '.join(payload['leftOut'])}; keep them with --full"
        )
    lines.append(f"open {shown(payload['page'])}")
    return "\n".join(lines)
