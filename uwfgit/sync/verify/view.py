"""What a thread amounts to as of a commit, recomputed, and what one run keeps.

A view is the truth that verify built from the commits before, never what a
``thread.json`` claims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.engine.decide.moderator import Routed, RoutingError, base_prompt
from uwfgit.errors import ConfigError, OverrunError
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.thread.record import NodePlaces
from uwfgit.model.thread.state import ThreadState
from uwfgit.model.thread.step import Start, Step, Usage, read_step
from uwfgit.model.workflow.workflow import Workflow
from uwfgit.sync.verify.nodes import NodeReader, Places, load_node
from uwfgit.sync.verify.rawtree import Objects
from uwfgit.sync.verify.report import Fact, VerifyProblem, refusal
from uwfgit.sync.verify.shape import RawCommit

KEPT_STEPS: Final = 8
"""Steps kept for routing, which looks at one or two."""
ALL_STEPS: Final = 100_000
"""Steps kept where conditions look at all of them each time."""
_KEPT_ROUTES: Final = 8


class Link(Struct, frozen=True, kw_only=True):
    """One step of the logical chain."""

    hash: Hash
    number: int
    before: Link | None


class View(Struct, frozen=True, kw_only=True):
    """The state of a thread after a commit that was checked."""

    commit: Oid
    root: Oid
    """The commit's root tree."""
    committed_at: int
    state: ThreadState
    start: Start
    workflow: Workflow
    schemas: Mapping[str, Hash]
    """Role → the hash of its output's schema."""
    chain: Link | None
    pending: Mapping[str, tuple[Hash, ...]]
    """Role → its attempts since its newest good step."""
    lineage: tuple[ThreadId, ...]
    """The thread, then those it was forked from, nearest first."""
    taken: Mapping[ThreadId, Usage | None] = field(default_factory=dict)
    """Child thread → its usage as of the newest step or try that named it."""
    is_copy: bool = False
    """Whether it is a fork's first event, or one replayed on top of that."""

    @property
    def thread(self) -> ThreadId:
        """The thread whose events these are."""
        return self.state.thread

    def after(self, commit: RawCommit, state: ThreadState) -> View:
        """Return what a commit leaves, with the state that its event gives."""
        return replace(
            self,
            commit=commit.oid,
            root=commit.tree,
            committed_at=commit.committer.time,
            state=state,
        )


class Seen(Struct, frozen=True, kw_only=True):
    """What one commit was found to be; ``view`` is missing when it is no event."""

    view: View | None = None
    added: NodePlaces = field(default_factory=dict)
    fact: Fact | None = None
    problems: tuple[VerifyProblem, ...] = ()
    is_sound: bool = False
    """Whether nothing is wrong with this commit and those before it."""


class ChildView(Struct, frozen=True, kw_only=True):
    """What a child thread amounts to as of the commit that a step names."""

    view: View | None
    last: Step | None
    is_sound: bool
    is_whole: bool = False
    """Whether what did its own steps is here too, and so on."""


class VerifyRun(Struct, kw_only=True):
    """One run of verify: whatever was read or checked is not done again."""

    objects: Objects
    reader: NodeReader
    commits: dict[Oid, RawCommit] = field(default_factory=dict)
    seen: dict[Oid, Seen] = field(default_factory=dict)
    look: Callable[[Oid], ChildView | None]
    """Proves a child by its commit; ``None`` where its objects are not here."""
    kept_steps: int = KEPT_STEPS
    _steps: dict[Hash, Step] = field(default_factory=dict)
    _routes: dict[tuple[Any, ...], Routed | RoutingError] = field(default_factory=dict)

    def begin_chain(self) -> None:
        """Forget what hashes named in the thread before: here they may name more."""
        self._steps.clear()
        self._routes.clear()

    def keep_step(self, step: Step) -> None:
        """Remember a step that later ones will be routed from."""
        if len(self._steps) >= self.kept_steps:
            del self._steps[next(iter(self._steps))]
        self._steps[step.hash] = step

    def load_step(self, places: Places, link: Link) -> Step:
        """Read a step of a chain that was checked.

        Raises:
            CorruptError: It cannot be read any more.
        """
        known = self._steps.get(link.hash)
        if known is None:
            bare = read_step(load_node(self.reader, places, link.hash), link.number)
            output = load_node(self.reader, places, bare.output_hash).payload
            known = replace(bare, output=output)
            self.keep_step(known)
        return known

    def route(
        self, places: Places, view: View, chain: Link | None, thread: ThreadId
    ) -> Routed | RoutingError:
        """Return the base prompt of the step that follows a chain.

        Raises:
            CorruptError: The graph has conditions that cannot be evaluated here.
        """
        key = (view.start.hash, chain and chain.hash, thread)
        known = self._routes.get(key)
        if known is None:
            if len(self._routes) >= _KEPT_ROUTES:
                self._routes.clear()
            try:
                known = self._routes[key] = base_prompt(
                    view.workflow,
                    self.iter_steps(places, chain),
                    task=view.start.prompt,
                    thread=thread,
                    start=view.start,
                )
            except (ConfigError, OverrunError) as exc:
                raise refusal("routing", str(exc)) from exc
        return known

    def iter_steps(self, places: Places, chain: Link | None) -> Iterator[Step]:
        """Yield the steps of a chain, newest first, reading as it goes."""
        while chain is not None:
            yield self.load_step(places, chain)
            chain = chain.before


def pending_after(
    before: Mapping[str, tuple[Hash, ...]], step: Step, *, is_attempt: bool
) -> dict[str, tuple[Hash, ...]]:
    """Return the attempts that the next good step of each role must list."""
    if is_attempt:
        return {**before, step.role: (*before.get(step.role, ()), step.hash)}
    return {role: tries for role, tries in before.items() if role != step.role}
