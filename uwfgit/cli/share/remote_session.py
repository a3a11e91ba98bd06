"""How commands talk to remotes: environment, terminal, progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.output import Output, can_ask, talk_over, talk_width
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import NotFoundError, RemoteError, UsageError, UwfError, name_some
from uwfgit.shell import quote_word

if TYPE_CHECKING:
    from uwfgit.ids import ThreadId
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.store.handle import Store
    from uwfgit.sync.exchange.exchange import RefOutcome
    from uwfgit.sync.exchange.pull import PullReport
    from uwfgit.sync.exchange.push import PushReport
    from uwfgit.sync.exchange.remotes import Remote
    from uwfgit.sync.exchange.transport import Wire

"""Threads named one by one when there are many of a kind."""
_TOLD: Final = 20
"""Lines for refs that went well, of each kind."""
_GOOD: Final = ("new", "updated")
_COLORS: Final = {
    "new": "end",
    "updated": "end",
    "refused": "error",
    "rejected": "error",
    "diverged": "error",
    "went-back": "warning",
    "busy": "warning",
    "behind": "warning",
}


def push_payload(report: PushReport) -> dict[str, Any]:
    """Return a push as JSON; what is up to date is only counted."""
    sent, waiting = _split(report)
    return {
        "remote": report.remote.name,
        "dryRun": report.dry_run,
        "items": [outcome_payload(each) for each in sent],
        "upToDate": report.up_to_date,
        "notShared": [_name(each) for each in waiting],
    }


def _split(report: PushReport) -> tuple[list[RefOutcome], list[RefOutcome]]:
    """Return what was tried, and what is not shared yet and was not asked for."""
    tried: list[RefOutcome] = []
    waiting: list[RefOutcome] = []
    for each in report.outcomes:
        (waiting if each.result == "not-shared" else tried).append(each)
    return tried, waiting


def pull_payload(report: PullReport) -> dict[str, Any]:
    """Return a pull as JSON; what is up to date is only counted."""
    return {
        "remote": report.source,
        "items": [outcome_payload(each) for each in report.outcomes],
        "upToDate": report.up_to_date,
        "collisions": [
            {"hash": each.hash, "threads": list(each.threads)}
            for each in report.collisions
        ],
    }


def outcome_payload(outcome: RefOutcome) -> dict[str, Any]:
    """Return what became of one ref."""
    return {
        "threadId": outcome.thread,
        "workflow": outcome.workflow,
        "ref": outcome.ref,
        "result": outcome.result,
        "old": outcome.old,
        "oid": outcome.new,
        "message": outcome.message,
    }


def _name(outcome: RefOutcome) -> str:
    return outcome.thread or outcome.ref.removeprefix("refs/heads/")


def push_text(output: Output, report: PushReport) -> str:
    """Write a push for people."""
    told, waiting = _split(report)
    lines = list(_lines(output, told))
    if report.up_to_date:
        lines.append(f"{report.up_to_date} up to date")
    if not lines or (told and all(each.result == "behind" for each in told)):
        lines.insert(0, "nothing to push")
    if any(each.result in _GOOD for each in told):
        word = "would push to" if report.dry_run else "pushed to"
        lines.insert(0, f"{word} {shown(report.remote.name)}:")
    if waiting:
        names = name_some([shown(_name(each)) for each in waiting], most=10)
        lines.append(f"not shared yet: {names} (name them, or --all)")
    return "\n".join(lines)


def pull_text(output: Output, report: PullReport, store: Store | None = None) -> str:
    """Write a pull for people: what came, by whom, and what waits for somebody."""
    lines = list(_lines(output, report.outcomes, store))
    if report.up_to_date:
        lines.append(f"{report.up_to_date} up to date")
    lines.insert(0, f"from {shown(report.source)}:")
    return "\n".join(lines if len(lines) > 1 else [*lines, "nothing there"])


def _lines(
    output: Output, outcomes: Sequence[RefOutcome], store: Store | None = None
) -> Iterator[str]:
    """Write a line a ref; of many that went well, the first ones and a count.

    Args:
        store: Has the threads that came; each is told with what it is.
    """
    counts = Counter(outcome.result for outcome in outcomes)
    told: Counter[str] = Counter()
    for outcome in outcomes:
        told[outcome.result] += 1
        if outcome.message is None and told[outcome.result] > _TOLD:
            continue
        what = outcome.message
        if what is None and store is not None and outcome.result in _GOOD:
            what = _describe(store, outcome.thread)
        tail = f"  {shown(what)}" if what else ""
        yield f"{_word(output, outcome.result)}  {shown(_name(outcome))}{tail}"
    for result in _GOOD:
        if counts[result] > _TOLD:
            yield f"{_word(output, result)}  {counts[result] - _TOLD} more"


def _describe(store: Store, thread: ThreadId | None) -> str | None:
    """Say how a thread stands, by whom, and what it is about."""
    from uwfgit.model.thread.hold import HELD, find_hold
    from uwfgit.model.thread.task import find_task_line
    from uwfgit.model.thread.tip import load_tip
    from uwfgit.model.wording import first_line, without_mark

    if thread is None:
        return None
    try:
        tip = load_tip(store, thread)
    except UwfError:
        return None
    state = tip.state
    who = state.updated_by.rpartition(" <")[0] or state.updated_by
    about = without_mark(find_task_line(store, tip) or "")
    if state.status == "suspended":
        asked = first_line(state.suspend_message or "") or ""
        about = f"{state.suspended_role} waits: {asked}"
        if (held := find_hold(store, tip.commit, state)) is not None:
            about = f"{HELD}: {first_line(held) or ''}"
    return f"{state.workflow_name}, {state.status}, by {who}  {about}".rstrip()


def _word(output: Output, result: str) -> str:
    return output.paint(result.ljust(10), _COLORS.get(result, ""))


def warn_collisions(context: CommandContext, report: PullReport) -> None:
    """Tell of hashes that name different contents in different threads."""
    for each in report.collisions:
        context.output.warn(
            f"hash {each.hash} names different contents in threads "
            f"{', '.join(each.threads)}; name the thread when you ask for it"
        )


@contextmanager
def open_wire(context: CommandContext, remote: Remote | None = None) -> Iterator[Wire]:
    """Yield the way to talk to remotes; on a terminal it shows progress.

    Args:
        context: Of the command.
        remote: One that is talked to as the repository around the store would.
    """
    from uwfgit.sync.exchange.transport import Wire

    environment, folder = context.environment, None
    root = _followed_root(context, remote)
    if remote is not None and remote.follows is not None and root is not None:
        from uwfgit.store.git.settings import pass_settings

        folder = root
        environment = pass_settings(
            root, remote.follows, environment, called=remote.name
        )
    width = talk_width(quiet=context.options.quiet)
    if width is None:
        yield Wire(environment=environment, folder=folder)
        return
    try:
        yield Wire(
            environment=environment,
            folder=folder,
            on_progress=lambda line: talk_over(line, width),
            can_ask=can_ask(),
        )
    finally:
        talk_over("", width)


def _followed_root(context: CommandContext, remote: Remote | None) -> Path | None:
    """Return the work tree whose remote this one is, when we are in it."""
    if remote is None or remote.follows is None or not belongs_here(context):
        return None
    return context.enclosing.root if context.enclosing is not None else None


def belongs_here(context: CommandContext) -> bool:
    """Whether the store is that of the repository around the working directory."""
    return context.store_choice.source in ("repository", "git config")


def require_same_address(context: CommandContext, store: Store, remote: Remote) -> None:
    """Make sure that a push goes where ``git push`` in the repository would.

    Raises:
        RemoteError: The repository's remote leads elsewhere, or is gone.
    """
    from uwfgit.store.git.settings import (
        ask_addresses,
        ask_push_addresses,
        pass_settings,
    )
    from uwfgit.sync.exchange.remotes import absolute_url, shown_url

    root = _followed_root(context, remote)
    if root is None or remote.follows is None:
        return
    theirs = ask_addresses(root, remote.follows, context.environment)
    quoted = quote_word(remote.name)
    again = f"uwf remote rm {quoted}, then uwf remote add {quoted}"
    if theirs is None:
        raise RemoteError(
            f"this repository has no remote '{remote.follows}' any more",
            remote=remote.name,
            hint=again,
        )
    passed = pass_settings(
        root, remote.follows, context.environment, called=remote.name
    )
    ours = ask_push_addresses(store.path, remote.name, passed, folder=root)
    expected = [absolute_url(each, root) for each in theirs.push]
    if [absolute_url(each, root) for each in ours] != expected:
        raise RemoteError(
            f"'git push {remote.follows}' here goes to "
            f"{', '.join(map(shown_url, expected))}; this remote, to "
            f"{', '.join(map(shown_url, ours))}",
            remote=remote.name,
            hint=again,
        )


def take_remote(
    context: CommandContext, store: Store, words: list[str]
) -> tuple[Remote, list[str]]:
    """Take the remote off a command's words, when the first one names one.

    Else it is the one to take: what the repository's ``.uwf.yaml`` says, the
    only one there is, or ``origin``.

    Raises:
        NotFoundError, UsageError, RemoteError: As choosing says.
    """
    from uwfgit.sync.exchange.remotes import choose_remote, find_remote

    if words and find_remote(store, words[0]) is not None:
        return choose_remote(store, words[0], share=None), words[1:]
    return choose_remote(store, None, share=context.settings.share), words


def require_known(ledger: Ledger, word: str, *, hint: str | None = None) -> None:
    """See to it that the first word names a remote, or what can be sent to one.

    Raises:
        NotFoundError: It does neither.
        AmbiguousError: It names several threads.
    """
    from uwfgit.model.ledger.registry import find_branch as find_workflow
    from uwfgit.sync.exchange.remotes import find_remote

    if find_remote(ledger.store, word) is not None:
        return
    try:
        find_branch(ledger, word)
    except NotFoundError as exc:
        if word == "@last":
            raise
        if hint is None and find_workflow(ledger, word) is not None:
            hint = f"a registered workflow is named so: workflow/{word}"
        raise NotFoundError(
            "remote or thread",
            word,
            hint=hint or "list them: uwf remote list, uwf thread list --all",
        ) from exc


def find_branch(ledger: Ledger, name: str) -> str:
    """Return the branch of a thread or, as ``workflow/NAME``, of a workflow.

    Raises:
        NotFoundError, AmbiguousError: As finding a thread says.
    """
    from uwfgit.model.ledger.ledger import resolve_thread
    from uwfgit.store.layout import is_workflow_name, thread_ref, workflow_ref

    workflow = name.removeprefix("workflow/")
    if workflow != name and is_workflow_name(workflow):
        return workflow_ref(workflow)
    return thread_ref(resolve_thread(ledger, name))


def take_source(
    context: CommandContext, ledger: Ledger, words: list[str]
) -> tuple[Remote, list[str]]:
    """Take the remote off the words of a pull, whose thread need not be here.

    Raises:
        NotFoundError: There are several, and the first word names nothing.
        AmbiguousError: It names several threads.
        UsageError, RemoteError: As choosing says.
    """
    from uwfgit.sync.exchange.remotes import list_remotes

    try:
        return take_remote(context, ledger.store, words)
    except UsageError:
        if words:
            names = ", ".join(each.name for each in list_remotes(ledger.store))
            hint = f"one that is not here yet needs its remote before it: {names}"
            require_known(ledger, words[0], hint=hint)
        raise
