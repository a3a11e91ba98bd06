"""The demo: a whole run in a scratch repository, each command as one would type it."""

from __future__ import annotations

import io
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Annotated, Final

import typer
from msgspec import Struct
from msgspec.structs import replace

from uwfgit.cli.frame.app import run_command
from uwfgit.cli.frame.commands import add_command, make_single
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.options import GlobalOptions
from uwfgit.cli.frame.output import write
from uwfgit.cli.frame.packaged import find_packaged
from uwfgit.cli.frame.screen import shown_lines
from uwfgit.errors import InvalidError, StoreError
from uwfgit.shell import quote_word, quote_words

app = make_single()

_WORKFLOW: Final = "solve-issue"
_TASK: Final = "#42: accents are lost in the addresses of posts"
_REPLIES: Final = f"scripted:../examples/{_WORKFLOW}.replies.yaml"
_FORK_ROLE: Final = "tester"
_THREAD: Final = re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")
_IDENTITY: Final = {
    "GIT_AUTHOR_NAME": "uwf demo",
    "GIT_AUTHOR_EMAIL": "demo@localhost",
    "GIT_COMMITTER_NAME": "uwf demo",
    "GIT_COMMITTER_EMAIL": "demo@localhost",
}


@add_command(app, "demo")
def demo(
    ctx: typer.Context,
    folder: Annotated[
        str | None,
        typer.Argument(metavar="[DIR]", help="Where; else a new temporary folder."),
    ] = None,
) -> None:
    """Run a workflow to its end in a scratch repository, without a model.

    Registers the example solve-issue, runs it with scripted replies, forks the
    thread, runs the fork, and shows both in git. No network, no keys, no git
    identity.
    """
    context = get_context(ctx)
    root = _make_root(context, folder)
    stage = _Stage(
        context=context,
        root=root,
        environment=_environment(context),
        talks=context.output.is_text,
    )
    thread, fork = _play(stage)
    store = root / "blog" / ".git" / "uwf"
    page = root / "pages" / "threads" / f"{thread}.html"
    payload = {
        "threadId": thread,
        "fork": fork,
        "store": str(store),
        "page": str(page),
    }
    program = _program(context)
    context.output.emit(
        payload, lambda: _closing_words(root, page, thread, program=program)
    )


def _make_root(context: CommandContext, folder: str | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="uwf-demo-")).resolve()
    root = context.resolve(folder)
    if root.exists() and any(root.iterdir()):
        raise InvalidError(f"'{folder}' is not empty", hint="name a new folder")
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreError(f"cannot make '{folder}': {exc.strerror}") from exc
    return root.resolve()


def _environment(context: CommandContext) -> dict[str, str]:
    """Leave out what would lead elsewhere; make up an identity where there is none."""
    from uwfgit.store.git.settings import find_identity, read_settings

    kept = {
        name: value
        for name, value in context.environment.items()
        if name == "UWF_HOME" or not name.startswith(("UWF_", "GIT_"))
    }
    settings = read_settings(context.environment)
    if find_identity(context.environment, settings).is_default:
        return {**kept, **_IDENTITY}
    names = [name for name in context.environment if name in _IDENTITY]
    return {**kept, **{name: context.environment[name] for name in names}}


class _Stage(Struct, frozen=True, kw_only=True):
    """Where the demo plays, and whether anybody watches."""

    context: CommandContext
    root: Path
    environment: Mapping[str, str]
    talks: bool

    @property
    def work_tree(self) -> Path:
        """The repository whose store it is."""
        return self.root / "blog"

    def show(self, line: str, text: str) -> None:
        """Print a command and what it printed."""
        if self.talks:
            printed = shown_lines(text).rstrip()
            write(f"$ {line}\n{printed}\n\n" if printed else f"$ {line}\n\n")

    def uwf(self, *words: str) -> str:
        """Run a uwf command as if typed in the work tree; give what it printed.

        Raises:
            StoreError: It failed.
        """
        context = CommandContext(
            options=GlobalOptions(),
            environment=self.environment,
            folder=self.work_tree,
            command="uwf demo",
            is_plain=True,
        )
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            code = run_command(list(words), context)
        self.show(quote_words(["uwf", *words]), printed.getvalue())
        if code:
            said = "; ".join(printed.getvalue().split("\n")).strip("; ")
            raise StoreError(f"'uwf {words[0]}' failed: {said}")
        return printed.getvalue()

    def git(self, *words: str, store: Path | None = None) -> None:
        """Run git in the work tree, or in a store as ``uwf git`` would.

        Raises:
            StoreError: There is no git, or it failed.
        """
        from uwfgit.store.git.gitcmd import run_git

        done = run_git(
            words, git_dir=store, cwd=self.work_tree, environment=self.environment
        )
        if done.code:
            raise StoreError(f"git {words[0]} failed: {done.complaint}")
        prefix = ["git"] if store is None else ["uwf", "git"]
        self.show(quote_words([*prefix, *words]), done.text)


def _play(stage: _Stage) -> tuple[str, str]:
    _lay_out(stage)
    stage.git("init", "--quiet")
    # It is a play: nobody is asked for a passphrase, or has to have a key.
    replace(stage, talks=False).git("config", "uwf.sign", "never")
    stage.uwf("workflow", "add", f"../examples/{_WORKFLOW}.yaml")
    thread = _first_thread(stage.uwf("thread", "start", _WORKFLOW, "-p", _TASK))
    stage.uwf("thread", "exec", thread, "--all", "--agent", _REPLIES)
    fork = _first_thread(stage.uwf("thread", "fork", thread, "--from-role", _FORK_ROLE))
    stage.uwf("thread", "exec", fork, "--all", "--agent", _REPLIES)
    stage.uwf("thread", "show", thread)
    stage.uwf("thread", "list", "--all")
    branches = [f"thread/{fork}", f"thread/{thread}"]
    store = stage.work_tree / ".git" / "uwf"
    stage.git("log", "--graph", "--oneline", "--decorate", *branches, store=store)
    stage.uwf("export", "html", "../pages")
    return thread, fork


def _lay_out(stage: _Stage) -> None:
    try:
        examples = find_packaged("examples", "solve-issue.yaml").parent
        shutil.copytree(examples, stage.root / "examples")
        stage.work_tree.mkdir()
    except OSError as exc:
        # shutil collects the reasons of all files in one error without an errno.
        reason = exc.strerror or str(exc.args[0][0][-1])
        raise StoreError(f"cannot write to '{stage.root}': {reason}") from exc


def _first_thread(text: str) -> str:
    found = _THREAD.search(text)
    if found is None:
        raise StoreError("the demo's own command printed no thread")
    return found[0]


def _program(context: CommandContext) -> str:
    """Name this program as the user can call it from anywhere."""
    path = context.environment.get("PATH")
    called = Path(sys.argv[0])
    if called.name != "uwf" or shutil.which("uwf", path=path):
        return "uwf"
    return quote_word(str(called.absolute()))


def _closing_words(root: Path, page: Path, thread: str, *, program: str) -> str:
    return "\n".join(
        [
            f"Everything is in {root}.",
            "Look around:",
            f"  cd {quote_word(str(root / 'blog'))}",
            f"  {program} thread read {thread}",
            f"  {program} git log -p thread/{thread}",
            f"  {program} web --open",
            f"Remove it with: rm -r {quote_word(str(root))}",
            f"The thread as a page, to open in a browser: {page.as_uri()}",
        ]
    )
