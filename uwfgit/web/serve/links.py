"""Where pages stand on a server (pure)."""

from __future__ import annotations

from msgspec import Struct

from uwfgit.ids import Hash, ThreadId
from uwfgit.web.view.thread import block_start


class ServedLinks(Struct, frozen=True, kw_only=True):
    """Links below a store's own root: "" for the first one.

    ``first`` is the first step of the block that the page at hand shows.
    """

    root: str = ""
    first: int | None = None
    style: str = "/static/style.css"

    def threads(self) -> str:
        """The listing."""
        return f"{self.root}/threads"

    def workflows(self) -> str:
        """The registered workflows."""
        return f"{self.root}/workflows"

    def thread(self, thread: ThreadId, number: int | None = None) -> str:
        """A thread, or a step of it."""
        place = f"{self.root}/threads/{thread}"
        if number is None:
            return place
        anchor = f"#{self.anchor(thread, number)}"
        first = block_start(number)
        return anchor if first == self.first else f"{place}?from={first}{anchor}"

    def anchor(self, thread: ThreadId, number: int) -> str:  # noqa: ARG002 - as the other links have it
        """A step on its thread's page."""
        return f"step-{number}"

    def workflow(self, name: str, workflow: Hash) -> str:
        """A version of a workflow."""
        return f"{self.root}/workflows/{name}/{workflow}"

    def node(self, thread: ThreadId, node: Hash) -> str:
        """A node, as one thread has it."""
        return f"{self.root}/threads/{thread}/nodes/{node}"

    def diff(self, a: ThreadId, b: ThreadId) -> str:
        """Two threads side by side."""
        return f"{self.root}/compare/{a}/{b}"
