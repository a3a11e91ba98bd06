"""``workflow validate``: files, folders, edited files, or what a commit will hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from msgspec import Struct
from msgspec.structs import replace

from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import Output, count_of, write
from uwfgit.errors import NotFoundError, Problem, UsageError

if TYPE_CHECKING:
    from uwfgit.store.git.staged import Staging


def validate_command(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE...]", help="Files, their names, or folders; - is stdin."
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Count warnings as errors.")
    ] = False,
    staged: Annotated[
        bool,
        typer.Option(
            "--staged", help="What the next commit changes, as it is in git's index."
        ),
    ] = False,
    edited: Annotated[
        bool,
        typer.Option(
            "--edited", help="FILEs may be parts: check the workflows they are in."
        ),
    ] = False,
) -> None:
    """Check workflow files by all rules; exit code 1 on any error.

    Needs no store. In a folder every .yaml and .yml file is checked, and every
    subfolder's index.yaml; replies of the agent scripted (.replies.yaml) are
    not. --format github writes annotations for GitHub Actions.

    --staged is for a pre-commit hook of git ('uwf hooks install'): it checks the
    workflows in .workflows folders that the next commit changes, or changes
    something they include, whatever the work tree holds.
    """
    context = get_context(ctx)
    how = "'uwf workflow validate --help' shows how it is called"
    if staged and (files or edited):
        raise UsageError("'--staged' takes no files", hint=how)
    if not staged and not edited and not files:
        raise UsageError(
            "missing argument 'FILE...'",
            hint="for a whole folder: uwf workflow validate .workflows",
        )
    if staged:
        with _staged(context) as checked:
            _finish(context, checked, strict=strict, quiet=True)
    named = files or []
    if named == ["-"]:
        from uwfgit.cli.frame.arguments import read_stdin
        from uwfgit.engine.decide.conditions import find_syntax_error
        from uwfgit.model.workflow.source import check_workflow_text

        problems = check_workflow_text(
            read_stdin(context, "FILE"),
            folder=context.cwd,
            find_syntax_error=find_syntax_error,
        )
        checked = _Checked(results=(("-", problems),))
        _finish(context, checked, strict=strict, quiet=False)
    results: list[_Result] = []
    if edited:
        from uwfgit.model.workflow.affected import find_affected

        given = [_as_path(context, name) for name in named]
        results += _check(find_affected([*given, *_list_removed(context)]))
    else:
        for name in named:
            try:
                results += _check(_list_files(context, name))
            except NotFoundError as exc:
                if len(named) == 1:
                    raise
                # The others are checked all the same.
                results.append((name, (_missing(name, exc.message, exc.hint),)))
    _finish(context, _Checked(results=(*results,)), strict=strict, quiet=edited)


_Result: TypeAlias = tuple[str, tuple[Problem, ...]]
"""A file, as the user named it, and what is wrong with it."""


class _Checked(Struct, frozen=True, kw_only=True):
    """What was checked; ``folder`` holds the files that the problems name."""

    results: tuple[_Result, ...]
    folder: Path | None = None

    @property
    def problems(self) -> list[Problem]:
        """What is wrong with any of them."""
        return [problem for _, problems in self.results for problem in problems]


def _check(paths: Iterable[Path]) -> Iterator[_Result]:
    from uwfgit.engine.decide.conditions import find_syntax_error
    from uwfgit.model.workflow.source import check_workflow_file

    for path in paths:
        try:
            problems = check_workflow_file(path, find_syntax_error=find_syntax_error)
        except NotFoundError:
            # One of a folder: the others are checked all the same.
            problems = (_missing(str(path), "it is gone"),)
        yield str(path), problems


def _missing(name: str, message: str, hint: str | None = None) -> Problem:
    return Problem(code="Y15", message=message, hint=hint, file=name, line=1, column=1)


@contextmanager
def _staged(context: CommandContext) -> Iterator[_Checked]:
    """Check the next commit's workflows in a folder that holds them meanwhile."""
    from uwfgit.model.workflow.affected import find_affected
    from uwfgit.model.workflow.source import FOLDERS
    from uwfgit.store.git.staged import list_changed, write_staged

    staging = _find_staging(context)
    changed = list_changed(staging, FOLDERS)
    with TemporaryDirectory(prefix="uwf-staged-") as name:
        folder = Path(name).resolve()
        if changed:
            write_staged(staging, FOLDERS, folder)
        found = _check(find_affected(folder / path for path in changed))
        results = tuple(
            (str(Path(file).relative_to(folder)), _within(folder, problems))
            for file, problems in found
        )
        yield _Checked(results=results, folder=folder)


def _within(folder: Path, problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(
        problem
        if problem.file is None
        else replace(problem, file=str(Path(problem.file).relative_to(folder)))
        for problem in problems
    )


def _find_staging(context: CommandContext) -> Staging:
    from uwfgit.store.git.staged import Staging

    enclosing = context.enclosing
    if enclosing is None:
        hint = "run it inside a git repository's work tree"
        raise NotFoundError("repository", str(context.cwd), hint=hint)
    # git names the index a commit is made from to its hooks: that of
    # 'git commit -a' and of 'git commit FILE' is another than the usual one.
    index = context.environment.get("GIT_INDEX_FILE")
    return Staging(
        root=enclosing.root,
        index=enclosing.root / index if index else None,
        environment=context.environment,
    )


def _finish(
    context: CommandContext, checked: _Checked, *, strict: bool, quiet: bool
) -> None:
    """Report, and end the command.

    Args:
        quiet: A hook says nothing when nothing concerned it.
    """
    from uwfgit.cli.workflow.problems import (
        github_lines,
        problem_lines,
        problem_payload,
    )

    def fails(problem: Problem) -> bool:
        return strict or problem.severity == "error"

    problems = checked.problems
    errors = [p for p in problems if fails(p)]
    payload = {
        "valid": not errors,
        "problems": [problem_payload(p) for p in problems],
        "errors": [p.message for p in errors],
        "files": [
            {"file": file, "valid": not any(map(fails, found))}
            for file, found in checked.results
        ],
    }
    if context.options.format == "github":
        lines = github_lines(problems, strict=strict)
        write("".join(f"{line}\n" for line in lines), has_commands=True)
    elif checked.results or not quiet or not context.output.is_text:
        warnings = len(problems) - len(errors)
        summary = _summary(context.output, len(checked.results), warnings, len(errors))
        context.output.emit(
            payload,
            lambda: "\n".join(
                [*problem_lines(context, problems, folder=checked.folder), summary]
            ),
        )
    raise typer.Exit(1 if errors else 0)


def _list_removed(context: CommandContext) -> list[Path]:
    """List what is removed in git's index: a hook is not told of those files."""
    from uwfgit.model.workflow.source import FOLDERS
    from uwfgit.store.git.staged import list_changed

    if context.enclosing is None:
        return []
    root = context.enclosing.root
    # As the user would name it, so that editors find the workflow beside it.
    top = Path(os.path.relpath(root, context.cwd))
    return [
        top / name
        for name in list_changed(_find_staging(context), FOLDERS, only_removed=True)
    ]


def _as_path(context: CommandContext, name: str) -> Path:
    # Problems name the file as the user did, so that editors find it.
    return context.resolve(name) if name.startswith("~") else Path(name)


def _list_files(context: CommandContext, name: str) -> list[Path]:
    from uwfgit.model.workflow.affected import list_folder
    from uwfgit.model.workflow.source import FOLDERS

    path = context.resolve(name)
    if path.is_dir():
        found = list_folder(path)
        if not found:
            below = next((each for each in FOLDERS if (path / each).is_dir()), None)
            hint = below and f"its workflows are in: {Path(name) / below}"
            raise NotFoundError("workflow file", f"{name}/*.yaml", hint=hint)
        return sorted(
            _as_path(context, name) / file.relative_to(path) for file in found
        )
    if not path.exists() and not path.is_symlink():
        # It brings the ledger, which files that are named need not.
        from uwfgit.cli.workflow.workflows import find_file

        return [Path(os.path.relpath(find_file(context, name), context.cwd))]
    return [_as_path(context, name)]


def _summary(output: Output, files: int, warnings: int, errors: int) -> str:
    word = "invalid" if errors else "valid"
    counts = [count_of(files, "file")]
    if errors:
        counts.append(count_of(errors, "error"))
    if warnings:
        counts.append(count_of(warnings, "warning"))
    return f"{output.paint(word, word)}: {', '.join(counts)}"
