"""Where pages stand in an exported folder, and in a single page (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from uwfgit.ids import Hash, ThreadId
from uwfgit.web.view.thread import block_start

INDEX = "index.html"
WORKFLOWS = "workflows.html"
STYLE = "style.css"


def thread_file(thread: ThreadId, first: int, steps: int) -> str:
    """Name the page of a block of a thread's steps; the newest has the plain name."""
    if first >= block_start(steps):
        return f"threads/{thread}.html"
    return f"threads/{thread}-{first}.html"


def workflow_file(workflow: Hash) -> str:
    """Name the page of a workflow."""
    return f"workflows/{workflow}.html"


def node_file(thread: ThreadId, node: Hash) -> str:
    """Name the page of a node, as one thread has it."""
    return f"nodes/{thread}-{node}.html"


def diff_file(a: ThreadId, b: ThreadId) -> str:
    """Name the page that compares two threads."""
    return f"compare/{a}-{b}.html"


class FolderLinks(Struct, frozen=True, kw_only=True):
    """Links from a page in the folder to the others that are in it.

    ``up`` leads from the page to the folder; ``steps`` are the threads' lengths.
    """

    up: str
    steps: Mapping[ThreadId, int]
    workflow_pages: frozenset[Hash] = frozenset()
    nodes: frozenset[tuple[ThreadId, Hash]] = frozenset()
    diffs: frozenset[tuple[ThreadId, ThreadId]] = frozenset()

    @property
    def style(self) -> str:
        """The style sheet."""
        return f"{self.up}{STYLE}"

    def threads(self) -> str:
        """The index."""
        return f"{self.up}{INDEX}"

    def workflows(self) -> str:
        """The workflows that threads of the export pin."""
        return f"{self.up}{WORKFLOWS}"

    def thread(self, thread: ThreadId, number: int | None = None) -> str | None:
        """A thread that is in the export."""
        steps = self.steps.get(thread)
        if steps is None:
            return None
        first = block_start(steps if number is None else number)
        anchor = "" if number is None else f"#{self.anchor(thread, number)}"
        return f"{self.up}{thread_file(thread, first, steps)}{anchor}"

    def anchor(self, thread: ThreadId, number: int) -> str:  # noqa: ARG002 - as the other links have it
        """A step on its thread's page."""
        return f"step-{number}"

    def workflow(self, name: str, workflow: Hash) -> str | None:  # noqa: ARG002 - as the other links have it
        """A workflow that is in the export."""
        if workflow not in self.workflow_pages:
            return None
        return f"{self.up}{workflow_file(workflow)}"

    def node(self, thread: ThreadId, node: Hash) -> str | None:
        """A node that is in the export."""
        if (thread, node) not in self.nodes:
            return None
        return f"{self.up}{node_file(thread, node)}"

    def diff(self, a: ThreadId, b: ThreadId) -> str | None:
        """A comparison that is in the export."""
        return f"{self.up}{diff_file(a, b)}" if (a, b) in self.diffs else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleLinks:
    """Links within one page; there is nothing else to lead to."""

    inside: frozenset[ThreadId]
    style: str | None = field(default=None, init=False)

    def threads(self) -> str:
        """The top of the page."""
        return "#main"

    def workflows(self) -> None:
        """Nothing: there is no such page."""

    def thread(self, thread: ThreadId, number: int | None = None) -> str | None:
        """A thread on this page."""
        if thread not in self.inside:
            return None
        return f"#{thread}" if number is None else f"#{self.anchor(thread, number)}"

    def anchor(self, thread: ThreadId, number: int) -> str:
        """A step of one of the threads on this page."""
        return f"{thread}-{number}"

    def workflow(self, name: str, workflow: Hash) -> None:
        """Nothing: there is no such page."""

    def node(self, thread: ThreadId, node: Hash) -> None:
        """Nothing: there is no such page."""

    def diff(self, a: ThreadId, b: ThreadId) -> None:
        """Nothing: there is no such page."""
