"""The pages of an export, one after the other, each cleaned of what must not leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.resources import files

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.errors import UwfError
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node import BUILTIN_NAMES, DETAIL_TYPE
from uwfgit.model.thread.compare import compare_chains
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.tip import Tip, read_tip
from uwfgit.web.export.links import (
    INDEX,
    STYLE,
    WORKFLOWS,
    FolderLinks,
    SingleLinks,
    diff_file,
    node_file,
    thread_file,
    workflow_file,
)
from uwfgit.web.render.diff import diff_page
from uwfgit.web.render.frame import Site, page
from uwfgit.web.render.markup import Html, div, tag
from uwfgit.web.render.node import node_page
from uwfgit.web.render.thread import thread_body, thread_page
from uwfgit.web.render.threads import threads_head, threads_list, threads_page
from uwfgit.web.render.workflow import workflow_page, workflows_page
from uwfgit.web.view.cleaning import Cleaner
from uwfgit.web.view.comparison import ComparisonView, Side
from uwfgit.web.view.listing import (
    Line,
    Listing,
    Question,
    answer,
    list_families,
    titles_of,
)
from uwfgit.web.view.node import view_node
from uwfgit.web.view.thread import (
    BLOCK,
    Numbered,
    ThreadView,
    as_asked_for,
    view_thread,
)
from uwfgit.web.view.workflow import WorkflowLine, WorkflowView, pinned_by

Pair = tuple[ThreadId, ThreadId]


def style_sheet() -> str:
    """Read the one style sheet of all pages."""
    return (files("uwfgit.web.render") / STYLE).read_text("utf-8")


class Export(Struct, kw_only=True, dict=True):
    """Some threads on their way out; afterwards, what of them came along."""

    ledger: Ledger
    lines: Sequence[Line]
    cleaner: Cleaner
    name: str
    about: str
    year: int
    code: Mapping[tuple[ThreadId, int], str] = field(default_factory=dict)
    """What steps changed in the code, where it is to come along."""
    problems: dict[ThreadId, str] = field(default_factory=dict)
    workflows: int = 0
    comparisons: int = 0
    nodes: int = 0

    @cached_property
    def known(self) -> Mapping[ThreadId, Line]:
        """The threads by their ids."""
        return {line.thread: line for line in self.lines}

    def iter_folder(self) -> Iterator[tuple[str, str]]:
        """Yield the files of a folder: the path in it, and the text."""
        titles = self.cleaner.clean(titles_of(self.lines))
        listing = self._listing()
        tips = self._tips()
        pinned = self._pinned(tips)
        diffs = self._diffs(tips)
        links = FolderLinks(
            up="../",
            steps={thread: tip.state.steps for thread, tip in tips.items()},
            workflow_pages=frozenset(pinned),
            diffs=frozenset(diffs),
        )
        top = self._site(replace(links, up=""))
        yield STYLE, style_sheet()
        yield INDEX, threads_page(top, listing, base=None)
        yield WORKFLOWS, workflows_page(top, self._workflow_lines(pinned))
        for workflow, view in pinned.items():
            yield (
                workflow_file(workflow),
                workflow_page(self._site(links), view),
            )
        for thread, tip in tips.items():
            yield from self._thread_files(thread, tip, links)
        for a, b in diffs:
            yield diff_file(a, b), self._diff(links, titles, tips[a], tips[b])

    def single(self) -> str:
        """Return the threads as one page that asks for nothing else."""
        site = self._site(
            SingleLinks(inside=frozenset(each.thread for each in self.lines))
        )
        parts, title = [], ""
        for thread, tip in self._tips().items():
            view = self._view(thread, tip, whole=True)
            title = title or view.title
            parts.append(tag("div", thread_body(site, view), id=thread, class_="one"))
        if len(parts) > 1:
            title = "Threads"
            listing = self._listing()
            head = threads_head(listing), threads_list(site, listing)
            parts.insert(0, div("one", *head))
        return page(
            site, title or "Threads", parts, kind="thread", inline=style_sheet()
        )

    def _listing(self) -> Listing:
        lines = [self.cleaner.clean(line) for line in self.lines]
        return answer(lines, Question(limit=len(lines)))

    def _site(self, links: FolderLinks | SingleLinks) -> Site:
        return Site(links=links, name=self.name, about=self.about, year=self.year)

    def _tips(self) -> dict[ThreadId, Tip]:
        """Read the tips of those that can be shown, and why the others cannot."""
        tips: dict[ThreadId, Tip] = {}
        for line in list_families(self.lines):
            try:
                tip = read_tip(self.ledger.store, line.thread, line.commit)
                open_record(self.ledger.store, tip, checked=False).steps()
                tips[line.thread] = tip
            except UwfError as exc:
                self.problems[line.thread] = exc.message
        return tips

    def _pinned(self, tips: Mapping[ThreadId, Tip]) -> dict[Hash, WorkflowView]:
        found: dict[Hash, WorkflowView] = {}
        for tip in tips.values():
            pinned = tip.state.workflow_hash
            if pinned in found:
                continue
            record = open_record(self.ledger.store, tip, checked=False)
            found[pinned] = self.cleaner.clean(
                WorkflowView(
                    workflow=record.workflow,
                    hash=pinned,
                    source=record.workflow_file.decode("utf-8", "replace"),
                    threads=pinned_by(self.lines, pinned),
                )
            )
        self.workflows = len(found)
        return found

    def _workflow_lines(
        self, pinned: Mapping[Hash, WorkflowView]
    ) -> list[WorkflowLine]:
        return [
            WorkflowLine(
                name=view.workflow.name,
                hash=workflow,
                description=view.workflow.description,
                versions=1,
                threads=len(view.threads),
            )
            for workflow, view in pinned.items()
        ]

    def _diffs(self, tips: Mapping[ThreadId, Tip]) -> list[Pair]:
        """Name the forks that stand beside their origin."""
        pairs = []
        for thread, tip in tips.items():
            origin = tip.state.forked_from
            if origin is not None and origin.thread in tips:
                first, second = sorted((origin.thread, thread))
                pairs.append((first, second))
        self.comparisons = len(pairs)
        return pairs

    def _thread_files(
        self, thread: ThreadId, tip: Tip, links: FolderLinks
    ) -> Iterator[tuple[str, str]]:
        record = open_record(self.ledger.store, tip, checked=False)
        nodes = self._node_names(record)
        links = replace(links, nodes=frozenset((thread, node) for node in nodes))
        site, steps = self._site(links), tip.state.steps
        for first in range(1, max(1, steps) + 1, BLOCK):
            view = self._view(thread, tip, first=first)
            yield thread_file(thread, first, steps), thread_page(site, view)
        for node in nodes:
            shown = self.cleaner.clean(view_node(record, node))
            yield node_file(thread, node), node_page(site, thread, shown)
        self.nodes += len(nodes)

    def _view(
        self,
        thread: ThreadId,
        tip: Tip,
        *,
        first: int | None = None,
        whole: bool = False,
    ) -> ThreadView:
        view = view_thread(
            self.ledger,
            tip,
            status=self.known[thread].status,
            first=first,
            known=self.known,
            whole=whole,
        )
        block = tuple(self._with_code(thread, each) for each in view.block)
        return self.cleaner.clean(replace(view, block=block))

    def _with_code(self, thread: ThreadId, numbered: Numbered) -> Numbered:
        code = self.code.get((thread, numbered.number))
        if numbered.run is None or code is None:
            return numbered
        return replace(numbered, run=replace(numbered.run, code=code))

    def _node_names(self, record: Record) -> list[Hash]:
        """Name the nodes that have pages: not the built-in types, nor the talk."""
        hidden = set(BUILTIN_NAMES.values())
        return [
            node
            for node, (node_type, _) in record.places.items()
            if node not in hidden and (self.cleaner.full or node_type != DETAIL_TYPE)
        ]

    def _diff(
        self, links: FolderLinks, titles: Mapping[ThreadId, str], a: Tip, b: Tip
    ) -> Html:
        chains = [
            self.cleaner.clean(
                tuple(as_asked_for(record, step) for step in record.steps())
            )
            for record in (
                open_record(self.ledger.store, tip, checked=False) for tip in (a, b)
            )
        ]
        sides = [
            Side(
                tip=tip,
                status=self.known[tip.thread].status,
                title=titles[tip.thread] or tip.thread,
            )
            for tip in (a, b)
        ]
        found = compare_chains(chains[0], chains[1])
        view = ComparisonView(a=sides[0], b=sides[1], found=found)
        return diff_page(self._site(links), view)
