"""Views that came from another machine: what they were, or refused, and harmless."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.builders import Clock, make_ledger
from tests.cli.calls import Uwf
from uwfgit.constants import MAX_DEPTH
from uwfgit.errors import InvalidError
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.compare import compare_chains
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.tip import load_tip
from uwfgit.store.repository import open_store
from uwfgit.web.hub.far import FarReading
from uwfgit.web.hub.line import OddError
from uwfgit.web.render.diff import diff_page
from uwfgit.web.render.forms.acts import thread_acts
from uwfgit.web.render.forms.start import start_form
from uwfgit.web.render.frame import ALL_ACTS, Site
from uwfgit.web.render.node import node_page
from uwfgit.web.render.thread import thread_page
from uwfgit.web.render.threads import threads_page
from uwfgit.web.render.workflow import workflow_page
from uwfgit.web.serve.links import ServedLinks
from uwfgit.web.view.comparison import ComparisonView, Side
from uwfgit.web.view.listing import Listing, Question, answer, list_lines
from uwfgit.web.view.node import NodeView, view_node
from uwfgit.web.view.thread import ThreadView, view_thread
from uwfgit.web.view.wire import pack_view, read_view
from uwfgit.web.view.workflow import WorkflowView, view_registered

SITE = Site(
    links=ServedLinks(root="/clients/alpha"),
    name="alpha",
    script="/static/web.js",
    token="T",  # noqa: S106 - a page's token
    acts=ALL_ACTS,
)
Json: TypeAlias = Any

ODD: list[Json] = [None, 2**52, "<script>x</script>", "\ud800", [1], {"type": {}}]


class _Line:
    """Stands at the place of a line: answers with what it was given."""

    name = "alpha"

    def __init__(self, value: Json) -> None:
        self.value = value

    async def read(self, method: str, path: str) -> tuple[int, str]:
        del method, path
        return 200, json.dumps(self.value)


def read_thread(value: Json) -> ThreadView:
    """Read a thread as a hub reads it: with what agents said checked too."""
    reading = FarReading(lambda: _Line(value))  # type: ignore[arg-type, return-value] # read only
    coroutine = reading.thread(ThreadId("x"), None)
    try:
        coroutine.send(None)
    except StopIteration as done:
        view: ThreadView = done.value
        return view
    raise AssertionError("it waits for nothing")


def show_thread(view: ThreadView) -> str:
    return thread_page(SITE, view, acts=thread_acts(SITE, view, ("play",)))


def show_workflow(view: WorkflowView) -> str:
    acts = start_form(SITE, "ping", view.workflow.inputs)
    return workflow_page(SITE, view, acts=acts)


@pytest.fixture
def ledger(uwf: Uwf, ended: str, work: Path) -> Ledger:
    text = (work / "ping.yaml").read_text()
    inputs = "inputs:\n  color: { type: string, enum: [red] }\nroles:\n"
    (work / "ping.yaml").write_text(text.replace("roles:\n", inputs, 1))
    assert uwf("workflow", "add", "ping.yaml").code == 0
    assert uwf("thread", "fork", ended, "--at", "1").code == 0
    path = Path(uwf("store", "path", "--json").json["store"])
    return make_ledger(open_store(path, home=path.parent), Clock(iter([])))


Views = list[tuple[type, Any, Callable[[Any], str]]]


@pytest.fixture
def views(ledger: Ledger, ended: str) -> Views:
    """One of each view that a client sends."""
    tip = load_tip(ledger.store, ThreadId(ended))
    record = open_record(ledger.store, tip)
    side = Side(tip=tip, status="end", title="one")
    steps = record.steps()
    known = {line.thread: line for line in list_lines(ledger)}
    thread = view_thread(ledger, tip, status="idle", known=known)
    return [
        (ThreadView, thread, show_thread),
        (
            Listing,
            answer(list_lines(ledger), Question()),
            lambda view: threads_page(SITE, view, base="/clients/alpha/threads"),
        ),
        (
            NodeView,
            view_node(record, steps[0].hash),
            lambda view: node_page(SITE, tip.thread, view),
        ),
        (
            ComparisonView,
            ComparisonView(a=side, b=side, found=compare_chains(steps, steps[:1])),
            lambda view: diff_page(SITE, view),
        ),
        (
            WorkflowView,
            view_registered(ledger, "ping", None, list_lines(ledger)),
            show_workflow,
        ),
    ]


def send(view: object) -> Json:
    return json.loads(json.dumps(pack_view(view), ensure_ascii=False))


def test_a_view_that_was_sent_is_the_view(views: Views) -> None:
    for kind, view, show in views:
        sent = send(view)
        read: Any = read_view(kind, sent)
        assert send(read) == sent
        assert show(read) == show(view)


def places(value: Json, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places in a value; of a list, the first only."""
    if at:
        yield at
    parts = value.items() if isinstance(value, dict) else []
    if isinstance(value, list) and value:
        parts = [(0, value[0])]
    for key, each in parts:
        yield from places(each, (*at, key))


def spoiled(value: Json, at: tuple[Any, ...], odd: Json) -> Json:
    changed = copy.deepcopy(value)
    place = changed
    for key in at[:-1]:
        place = place[key]
    place[at[-1]] = odd
    return changed


@pytest.mark.slow
def test_whatever_stands_in_a_view_it_is_refused_or_shown_as_text(views: Views) -> None:
    shown = refused = 0
    for kind, view, show in views:
        value = send(view)
        for at in places(value):
            if kind is ThreadView and at[0] in {"workflow", "steps", "events"}:
                continue  # They are in the other views, and in this one's block.
            for odd in ODD:
                changed = spoiled(value, at, odd)
                try:
                    read = (
                        read_thread(changed)
                        if kind is ThreadView
                        else read_view(kind, changed)
                    )
                except (InvalidError, OddError):
                    refused += 1
                    continue
                page = show(read)
                page.encode()
                assert "<script>x" not in page, at
                shown += 1
    assert shown > 100
    assert refused > 1000


def test_a_view_of_another_shape_is_refused_with_its_place() -> None:
    for kind, value in (
        (Listing, {}),
        (Listing, []),
        (Hash, "x"),
        (Hash, "0123456789ABC\n"),
        (Oid, 7),
        (ThreadId, "01arz3ndektsv4rrffq69g5fav"),
        (Mapping[ThreadId, str], {"../x": "a"}),
        (dict[str, Any], {"a": 2**60}),
        (dict[str, Any], {"a": float("nan")}),
        (dict[str, Any], {"\ud800": 1}),
        (int, True),
        (int, 2**60),
        (str, "\ud800"),
        (tuple[int, ...], {"a": 1}),
    ):
        with pytest.raises(InvalidError, match="view"):
            read_view(kind, value)


def test_whatever_a_store_holds_may_be_sent() -> None:
    deep: Json = 1e300
    for _ in range(MAX_DEPTH):
        deep = [deep]

    assert read_view(dict[str, Any], {"node": {"payload": deep}})
