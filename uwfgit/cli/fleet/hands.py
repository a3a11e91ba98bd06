"""What a worker does beside its queue: bring, judge, run and set aside threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec import Struct, field

from uwfgit.cli.check.checks import make_scan, make_verify
from uwfgit.cli.fleet.own_agents import OwnAgents
from uwfgit.cli.fleet.own_trees import OwnTrees
from uwfgit.cli.fleet.running import ChildRun, clean_environment, start_run
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.world import child_environment
from uwfgit.errors import StateError, UwfError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.kin import iter_below
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.family import family_of
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.tip import Tip, load_tip
from uwfgit.store.git.enclosing import find_enclosing
from uwfgit.store.git.worktree import root_commit
from uwfgit.store.layout import thread_ref
from uwfgit.store.refs import find_ref, has_object, is_ancestor
from uwfgit.sync.diverged.diverge import resolve_thread, set_aside
from uwfgit.sync.exchange.exchange import FAILED, RefOutcome
from uwfgit.sync.exchange.foreign import find_signer, find_voucher, list_newest
from uwfgit.sync.exchange.incoming import bring_in
from uwfgit.sync.exchange.memory import pull_memory, push_memory
from uwfgit.sync.exchange.pull import finish, look
from uwfgit.sync.exchange.push import push
from uwfgit.sync.exchange.queue_entry import Entry
from uwfgit.sync.exchange.remotes import Remote
from uwfgit.sync.exchange.transport import Wire


class WorkerHands(Struct, kw_only=True):
    """The hands of ``uwf worker``.

    Args:
        repo: Where threads work.
        workflows: Oids of the workflows to run; ``None`` for all.
        agent: The ``--agent`` of each step.
        trust_pushers: Run whatever stands in the queue.
        agents: Those there are for the steps.
        say: Tells an event.
        trees: Gives each thread a work tree of its own.
    """

    context: CommandContext
    ledger: Ledger
    remote: Remote
    wire: Wire
    repo: Path
    workflows: frozenset[Oid] | None
    agent: str | None
    trust_pushers: bool
    agents: OwnAgents
    say: Callable[[str, dict[str, str | float | None]], None]
    trees: OwnTrees | None = None
    _judged: dict[Oid, str | None] = field(default_factory=dict)
    _told: set[tuple[str, str]] = field(default_factory=set)

    def pull(self, thread: ThreadId) -> str | None:
        """Bring a thread and verify it; return why it is not to be had."""
        try:
            outcomes = self._pull(thread)
        except UwfError as exc:
            return exc.message
        for each in outcomes:
            # One that went on here and there is the worker's to set right.
            if each.thread != thread or each.result == "diverged":
                continue
            if each.result in FAILED or each.message:
                return each.message or each.result
        if find_ref(self.ledger.store, thread_ref(thread)) is None:
            return "it was removed here"
        bring = partial(pull_memory, self.ledger, self.remote, [thread], wire=self.wire)
        self._exchange_memory("no-memory", thread, bring)
        return None

    def _pull(self, thread: ThreadId) -> tuple[RefOutcome, ...]:
        found = look(self.ledger, self.remote, wire=self.wire, only=thread)
        brought: tuple[RefOutcome, ...] = ()
        if found.source is not None:
            brought = bring_in(
                self.ledger,
                found.source,
                wire=self.wire,
                verify=make_verify(self.context),
                command=self.context.command,
            )
        return finish(self.ledger, found, brought, wire=self.wire).outcomes

    def distrust_entry(self, entry: Entry) -> str | None:
        """Return why a queue commit is not to be followed.

        Whoever can push can write one: the newest must be ours or signed by
        someone in ``trust``, else an old thread of theirs could be run again.
        """
        if self.workflows is not None and entry.state.workflow not in self.workflows:
            return "its workflow is not one of --workflow"
        if self.trust_pushers or self.ledger.local.is_made_here(entry.oid):
            return None
        if entry.oid not in self._judged:
            self._judged[entry.oid] = self._judge(entry.oid)
        return self._judged[entry.oid]

    def _judge(self, oid: Oid) -> str | None:
        trusted = self.context.settings.trust
        if not trusted:
            return "nobody is trusted: `uwf trust add`, or --trust-pushers"
        signer = find_signer(
            self.ledger.store, oid, trusted, environment=self.context.environment
        )
        return None if signer else "its queue commit is not signed by anyone in trust"

    def distrust_thread(self, tip: Tip) -> str | None:
        """Return why a thread is not to be run."""
        if self.workflows is not None and tip.state.workflow_oid not in self.workflows:
            return "its workflow is not one of --workflow"
        why = None if self.trust_pushers else self._distrust_events(tip)
        return why or self._lacks(tip)

    def _distrust_events(self, tip: Tip) -> str | None:
        if not self._is_vouched_for(tip):
            return "its newest event is not signed by anyone in trust"
        try:
            below = tuple(iter_below(self.ledger, open_record(self.ledger.store, tip)))
        except UwfError as exc:
            return exc.message
        for child in below:
            if not self._is_vouched_for(child.tip):
                name = child.tip.thread
                return f"its child {name} has an event not signed by anyone in trust"
        return None

    def _is_vouched_for(self, tip: Tip) -> bool:
        """Whether a thread was made here, or its newest events are signed."""
        if not self.ledger.local.is_foreign(tip.thread, tip.commit):
            return True
        signer = find_voucher(
            self.ledger,
            list_newest(self.ledger, tip),
            self.context.settings.trust,
            environment=self.context.environment,
        )
        return bool(signer)

    def _lacks(self, tip: Tip) -> str | None:
        code = None if self.trees is None else self.trees.lacks(tip)
        return code or self.agents.lacks(tip)

    def _place(self, trees: OwnTrees, tip: Tip) -> Path:
        """Give a thread's work tree; one that cannot be made fails the step."""
        try:
            return trees.prepare(tip)
        except UwfError as exc:
            self.tell("no-worktree", thread=tip.thread, why=exc.message)
            return trees.folder_of(tip.thread)

    def start(self, tip: Tip, *, taken: int) -> ChildRun:
        """Start one step of a thread, or the retry of one that was interrupted."""
        verb = "resume" if tip.state.status == "suspended" else "exec"
        words = ["--store", str(self.ledger.store.path), "thread", verb, tip.thread]
        words += ["--trust", "--json", "--quiet"]
        words += ["--taken", str(taken)] if taken and verb == "exec" else []
        words += ["--agent", self.agent] if self.agent is not None else []
        # Who is trusted with commands is trusted with what agents remember.
        words += ["--memory"] if self.trust_pushers else []
        is_foreign = self.ledger.local.is_foreign
        if self.trees is not None:
            words += ["--cwd", str(self._place(self.trees, tip))]
        elif is_foreign(tip.thread, tip.commit) and not self._is_its_repository(tip):
            words += ["--cwd", str(self.repo)]
        return start_run(
            words,
            cwd=self.repo,
            environment=clean_environment(child_environment(self.context.environment)),
        )

    def _is_its_repository(self, tip: Tip) -> bool:
        """Whether the worker's folder is a clone of what the thread works in."""
        start = open_record(self.ledger.store, tip).start
        enclosing = find_enclosing(self.repo)
        if enclosing is None or start.root_commit is None:
            return False
        here = root_commit(
            enclosing.root,
            environment=self.context.environment,
            memory=self.context.home,
        )
        return here == start.root_commit

    def blocked(self, thread: ThreadId, new: Oid, old: Oid) -> str | None:
        """Return what the scan for secrets says against a push."""
        ref = thread_ref(thread)
        problems = make_scan(self.context, self.ledger.store)([(ref, new, old)])
        return problems.get(ref)

    def send_children(self, thread: ThreadId) -> str | None:
        """Send the threads that did steps of one; return what keeps them here."""
        store = self.ledger.store
        refs = [
            ref
            for ref in map(thread_ref, family_of(store, thread))
            if find_ref(store, self.remote.tracking(ref)) != find_ref(store, ref)
        ]
        if not refs:
            return None
        sent = push(
            self.ledger,
            self.remote,
            wire=self.wire,
            verify=make_verify(self.context),
            scan=make_scan(self.context, store),
            named=refs,
        )
        failed = (each for each in sent.outcomes if each.result in FAILED)
        return next(
            (f"{each.thread}: {each.message or each.result}" for each in failed), None
        )

    def send_beside(self, thread: ThreadId) -> None:
        """Send the code of a thread's steps, and what its agents remember.

        A step is whole without either: what cannot be sent is told, once.
        """
        if self.trees is not None and (why := self.trees.send(thread)):
            self.tell("without-code", thread=thread, why=why)
        if self.remote.memory:
            send = partial(
                push_memory,
                self.ledger,
                self.remote,
                [thread],
                wire=self.wire,
                scan=make_scan(self.context, self.ledger.store),
            )
            self._exchange_memory("without-memory", thread, send)

    def _exchange_memory(
        self,
        event: str,
        thread: ThreadId,
        exchange: Callable[[], tuple[RefOutcome, ...]],
    ) -> None:
        try:
            failed = [each for each in exchange() if each.result in FAILED]
            why = failed[0].message or failed[0].result if failed else None
        except UwfError as exc:
            why = exc.message
        if why is not None and (event, why) not in self._told:
            self._told.add((event, why))
            self.tell(event, thread=thread, why=why)

    def set_aside(self, thread: ThreadId, base: Oid) -> ThreadId | None:
        """Keep what the remote does not have under an id of its own; return that."""
        store = self.ledger.store
        mine = load_tip(store, thread).commit
        if mine == base:
            return None
        self._pull(thread)
        there = find_ref(store, self.remote.tracking(thread_ref(thread)))
        if there is not None and has_object(store, there):
            if is_ancestor(store, mine, there):
                return None
            base = there if is_ancestor(store, there, mine) else base
        command = self.context.command
        try:
            done = resolve_thread(
                self.ledger,
                thread,
                way="both",
                verify=make_verify(self.context),
                command=command,
                remote=self.remote.name,
            )
        except StateError:
            # Nobody went on with it there: what we did stands on top of theirs.
            aside = set_aside(self.ledger, thread, base=base, command=command)
            return aside.copy.thread if aside and aside.copy else None
        return done.copy.thread if done.copy else None

    def tell(self, event: str, **facts: str | float | None) -> None:
        """Say what happens."""
        if event == "done" and self.trees is not None:
            self.trees.drop(ThreadId(str(facts["thread"])))
        self.say(event, facts)
