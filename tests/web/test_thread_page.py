"""A thread's page says how the thread stands, and offers what can be done then."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.builders import Clock, make_ledger
from tests.cli.calls import Uwf
from uwfgit.engine.run.control import pause_thread
from uwfgit.engine.run.hold import hold_thread
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.compare import compare_chains
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.step import Snapshot, Step
from uwfgit.model.thread.tip import load_tip
from uwfgit.store.repository import open_store
from uwfgit.web.render.diff import diff_page
from uwfgit.web.render.forms.acts import thread_acts
from uwfgit.web.render.frame import ALL_ACTS, Site
from uwfgit.web.render.thread import thread_page
from uwfgit.web.serve.links import ServedLinks
from uwfgit.web.view.comparison import ComparisonView, Side
from uwfgit.web.view.listing import list_lines
from uwfgit.web.view.thread import ThreadView, view_thread

SITE = Site(
    links=ServedLinks(root=""),
    name="s",
    token="T",  # noqa: S106 - a page's token
    acts=ALL_ACTS,
)
BLANK = """\
version: 1
name: blank
description: A prompt that may be blank
roles:
  first: &role
    description: First
    goal: Begin.
    capabilities: []
    procedure: Begin.
    output: What you did.
    frontmatter:
      properties: { $status: { const: done }, said: { type: string } }
      required: [$status]
  second: *role
graph:
  $START:
    new: { role: first, prompt: Begin. }
    resume: { role: first, prompt: Go on. }
  first:
    done: { role: second, prompt: "{{{said}}}" }
  second:
    done: { role: $END, prompt: Done. }
"""


def read_ledger(uwf: Uwf) -> Ledger:
    path = Path(uwf("store", "path", "--json").json["store"])
    return make_ledger(open_store(path, home=path.parent), Clock(iter([])))


def read_page(ledger: Ledger, thread: str, status: str) -> str:
    view = view_of(ledger, thread, status)
    return thread_page(SITE, view, acts=thread_acts(SITE, view, ("play",)))


def view_of(ledger: Ledger, thread: str, status: str) -> ThreadView:
    tip = load_tip(ledger.store, ThreadId(thread))
    known = {line.thread: line for line in list_lines(ledger)}
    return view_thread(ledger, tip, status=status, known=known)


@pytest.fixture
def failed(uwf: Uwf, thread: str) -> str:
    assert uwf("thread", "exec", thread, "--agent", "stdio:false").code == 5
    return thread


def test_a_failed_run_is_not_told_as_a_question(uwf: Uwf, failed: str) -> None:
    page = read_page(read_ledger(uwf), failed, "suspended")

    assert " did not finish</b>" in page
    assert "waits for a person" not in page


def test_a_question_is_answered_with_words_and_a_failed_run_is_taken_up_without(
    uwf: Uwf, thread: str
) -> None:
    begun = uwf("thread", "start", "ping.yaml", "-p", "x", "--json")
    asked, failed = thread, begun.json["threadId"]
    assert uwf("thread", "exec", asked, "--agent", "scripted:asking.yaml").code == 3
    assert uwf("thread", "exec", failed, "--agent", "stdio:false").code == 5
    ledger = read_ledger(uwf)

    pages = [read_page(ledger, each, "suspended") for each in (asked, failed)]

    assert f"uwf thread resume {asked[-6:]} -p TEXT<" in pages[0]
    assert f"uwf thread resume {failed[-6:]}<" in pages[1]


def test_what_runs_is_not_said_to_wait(uwf: Uwf, failed: str) -> None:
    ledger = read_ledger(uwf)

    page = read_page(ledger, failed, "running")

    assert "callout" not in page
    assert "here next" in page
    assert "here waits" not in page


def test_where_no_role_follows_the_step_is_done_again_not_resumed(
    uwf: Uwf, work: Path
) -> None:
    (work / "blank.yaml").write_text(BLANK)
    (work / "script.yaml").write_text(
        'replies:\n  first: ["---\\n$status: done\\n---\\n"]\n'
    )
    thread = uwf("thread", "start", "./blank.yaml", "-p", "x", "--json").json
    name = thread["threadId"]
    assert uwf("thread", "exec", name, "--agent", "scripted:script.yaml").code == 1

    page = read_page(read_ledger(uwf), name, "suspended")

    assert "<b>No role follows first</b>" in page
    assert f"uwf thread poke {name[-6:]} -p TEXT" in page
    assert f'action="/threads/{name}/poke"' in page
    assert f'action="/threads/{name}/resume"' not in page


def test_a_run_that_will_stop_after_its_step_says_so(uwf: Uwf, thread: str) -> None:
    ledger, name = read_ledger(uwf), ThreadId(thread)
    with hold_thread(ledger, name, command="thread exec"):
        before = read_page(ledger, thread, "running")
        assert pause_thread(ledger, name)
        after = read_page(ledger, thread, "running")

    assert "It stops after this step." not in before
    assert "It stops after this step." in after
    assert "Stop after this step" not in after
    assert "Stop now" in after


def test_a_fork_at_work_is_running_beside_its_origin(uwf: Uwf, ended: str) -> None:
    made = uwf("thread", "fork", ended, "--at", "1", "--json").json["threadId"]
    ledger = read_ledger(uwf)

    with hold_thread(ledger, ThreadId(made), command="thread exec"):
        page = read_page(ledger, ended, "end")

    assert '<span class="chip running">running</span>' in page


def test_two_lists_are_compared_word_by_word_as_they_stand(
    uwf: Uwf, work: Path
) -> None:
    text = BLANK.replace("said: { type: string }", "said: { type: array }")
    (work / "blank.yaml").write_text(text)
    names = []
    for said in (["a.py", "b.py"], ["a.py", "c.py"]):
        reply = f"---\n$status: done\nsaid: {json.dumps(said)}\n---\n"
        (work / "script.json").write_text(json.dumps({"replies": {"first": [reply]}}))
        made = uwf("thread", "start", "./blank.yaml", "-p", "x", "--json").json
        names.append(made["threadId"])
        uwf("thread", "exec", names[-1], "--agent", "scripted:script.json")
    ledger = read_ledger(uwf)
    tips = [load_tip(ledger.store, ThreadId(name)) for name in names]
    chains = [open_record(ledger.store, tip).steps() for tip in tips]
    a, b = (Side(tip=tip, status="idle", title="x") for tip in tips)

    def page_of(*sides: tuple[Step, ...]) -> str:
        found = compare_chains(*sides)
        return diff_page(SITE, ComparisonView(a=a, b=b, found=found))

    both, alone = page_of(*chains), page_of(chains[0], ())

    assert "- a.py\n- <mark>b.py</mark>" in both
    assert "- a.py\n- <mark>c.py</mark>" in both
    assert '<ul class="values"><li>a.py</li><li>b.py</li></ul>' in alone


def test_the_fields_of_an_answer_stand_as_they_were_asked_for(
    uwf: Uwf, work: Path
) -> None:
    (work / "asked.yaml").write_text(
        BLANK.replace("name: blank", "name: asked")
        .replace(
            "{ $status: { const: done }, said: { type: string } }",
            "{ $status: { const: done }, a: {}, said: {}, zeal: {} }",
        )
        .replace("required: [$status]", "required: [$status, zeal, said]")
    )
    answer = {"a": 1, "said": "x", "zeal": 2, "$status": "done"}
    block = "\n".join(f"{name}: {value}" for name, value in answer.items())
    replies = {"replies": {"first": [f"---\n{block}\n---\n"]}}
    (work / "asked.replies.yaml").write_text(json.dumps(replies))
    begun = uwf("thread", "start", "asked.yaml", "-p", "x", "--json").json["threadId"]
    uwf("thread", "exec", begun, "--agent", "scripted:asked.replies.yaml")

    page = read_page(read_ledger(uwf), begun, "idle")
    shown = uwf("step", "show", f"{begun}:1", "--json").json["output"]

    fields = page.partition('class="fields"')[2].partition("</dl>")[0]
    assert re.findall(r"<dt>(\w+)</dt>", fields) == ["zeal", "said", "a"]
    assert list(shown) == ["$status", "zeal", "said", "a"]


def test_a_step_leads_to_what_it_changed_in_the_code(uwf: Uwf, thread: str) -> None:
    uwf("thread", "exec", thread, "--agent", "scripted:replies.yaml")
    view = view_of(read_ledger(uwf), thread, "idle")
    (entry,) = view.block
    assert entry.run is not None
    href = f'href="/threads/{thread}/code/1"'
    served = replace(SITE, script="/static/web.js")

    found = []
    for after in ("b", "a"):
        snapshot = Snapshot(before=Oid("a" * 40), after=Oid(after * 40))
        code = replace(entry.run.step.code, snapshot=snapshot)
        run = replace(entry.run, step=replace(entry.run.step, code=code))
        page = thread_page(served, replace(view, block=(replace(entry, run=run),)))
        found.append(page.partition('class="folds"')[0].count(href))

    # What changed nothing leads nowhere.
    assert found == [1, 0]


def test_what_is_approved_is_not_offered_for_it(uwf: Uwf, ended: str) -> None:
    view = view_of(read_ledger(uwf), ended, "end")
    head, first = view.steps[-1].hash, view.steps[0].hash

    offered = [
        "/approve" in str(thread_acts(SITE, replace(view, approvals=approved), ()))
        for approved in ((), (first,), (first, head))
    ]

    assert offered == [True, True, False]


def test_a_body_flows_beside_another_as_it_does_alone(uwf: Uwf, ended: str) -> None:
    ledger = read_ledger(uwf)
    tip = load_tip(ledger.store, ThreadId(ended))
    steps = open_record(ledger.store, tip).steps()
    other = tuple(replace(each, hash=Hash("0" * 13)) for each in steps)
    side = Side(tip=tip, status="end", title="t")

    found = compare_chains(steps, other)
    page = diff_page(SITE, ComparisonView(a=side, b=side, found=found))

    assert page.count('<dd class="flows"><div class="prose">') == 2 * len(steps)
    assert 'class="text' not in page
