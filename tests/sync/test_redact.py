"""A secret is taken out: what the new thread is, and that nothing is left."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.acting import acting, failure, go, put, saying
from tests.builders import (
    begin,
    git,
    make_workflow,
    record_of,
    reply,
    workflow_data,
)
from tests.history import check_store, check_thread, events, names, state_of
from tests.model.test_memory import AUTHOR, SESSION
from tests.planted import ANTHROPIC, GITHUB, PEM
from tests.sync.people import BAD, DONE, Person
from uwfgit.agents.base import AgentReply, AgentRequest, Turn, Usage
from uwfgit.engine.run.executor import exec_thread, poke_thread, resume_thread
from uwfgit.engine.run.thread import cancel_thread, fork_thread
from uwfgit.errors import (
    ConflictError,
    LockedError,
    NotFoundError,
    StateError,
    UwfError,
)
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.keep import list_kept, put_nodes
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.ledger.registering import add_workflow
from uwfgit.model.memory.memory import write_session
from uwfgit.model.node import make_text
from uwfgit.model.workflow.workflow import Target, Workflow
from uwfgit.store.handle import Store
from uwfgit.store.layout import MEMORY_PREFIX, TRASH_PREFIX, thread_ref
from uwfgit.store.locks.flock import lock
from uwfgit.store.refs import find_ref, list_refs, move_ref
from uwfgit.sync.diverged.diverge import Way
from uwfgit.sync.secrets.allowed import allow_findings
from uwfgit.sync.secrets.redact import Redacted, redact_thread
from uwfgit.sync.secrets.text import scan_text

(TOKEN,) = scan_text(GITHUB)
SHOWN = "[redacted:github-token]"


def redact(
    ledger: Ledger,
    thread: ThreadId,
    *,
    finding: str | None = None,
    forks: bool = False,
) -> Redacted:
    return redact_thread(
        ledger,
        thread,
        environment=os.environ,
        command="test",
        finding=finding,
        forks=forks,
    )


def refuse(
    ledger: Ledger, thread: ThreadId, *, finding: str | None = None
) -> StateError:
    """Redact a thread that cannot be, and see that nothing changed."""
    before = list_refs(ledger.store, "refs/")
    with pytest.raises(StateError) as caught:
        redact(ledger, thread, finding=finding)
    assert list_refs(ledger.store, "refs/") == before
    return caught.value


def empty_trash(store: Store) -> None:
    """Do what ``gc --prune=now`` does: no trash, no reflogs, no loose ends."""
    for ref in list_refs(store, TRASH_PREFIX):
        git(store, "update-ref", "-d", ref)
    git(store, "reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    git(store, "repack", "-a", "-d", "-q")
    git(store, "prune", "--expire=now")


def objects(store: Store) -> bytes:
    """Give the content of every object of a store."""
    done = git(store, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    return b"\n".join(store.repo.odb.read(oid)[1] for oid in done.split())


def assert_gone(store: Store, *secrets: str) -> None:
    check_store(store)
    empty_trash(store)
    content = objects(store)
    for secret in secrets:
        for form in (
            secret.encode(),
            json.dumps(secret)[1:-1].encode(),
            b64encode(secret.encode()).rstrip(b"=")[:-2],
        ):
            assert form not in content


def busy_thread(ledger: Ledger, folder: Path, secret: str = GITHUB) -> ThreadId:
    """Make a thread of every kind of event, with a secret in most of them."""
    thread = begin(ledger, folder, prompt=f"Fix it with {secret}").thread
    plan = make_text(f"1. Use {secret}\n2. Done")

    def act(request: AgentRequest) -> AgentReply:
        put(ledger, request, plan)
        turn = Turn(index=0, role="assistant", content=f"say {secret}", at_ms=1)
        usage = Usage(
            turns=1, input_tokens=2, output_tokens=3, duration_ms=4, cost_usd=None
        )
        text = reply(plan=plan.hash, body=f"See {plan.hash}; {secret}.")
        return AgentReply(text=text, turns=(turn,), usage=usage)

    exec_thread(acting(ledger, act), thread, count=1)
    go(ledger, thread, failure(f"broke at {secret}", text=f"try {secret}"))
    engine = acting(
        ledger,
        saying(reply("bad", reason=f"not {secret}"), failure("no"), reply("good")),
    )
    resume_thread(engine, thread, note=f"with {secret}")
    poke_thread(engine, thread, note=f"better than {secret}")
    poke_thread(engine, thread, note="best")
    return thread


def test_a_thread_of_every_kind_of_event_is_made_anew(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = busy_thread(ledger, tmp_path)
    before = events(ledger.store, thread)
    old = state_of(ledger.store, thread)

    done = redact(ledger, thread)

    copy = done.tip.thread
    after = events(ledger.store, copy)
    check_thread(ledger.store, copy)
    assert done.threads == ((thread, copy),)
    assert TOKEN.id in done.findings
    assert [e.name for e in after] == [e.name for e in before]
    assert [(e.commit.author.time, e.commit.committer) for e in after] == [
        (e.commit.author.time, e.commit.committer) for e in before
    ]
    new = state_of(ledger.store, copy)
    assert (new.status, new.steps, new.usage) == (old.status, old.steps, old.usage)
    assert (new.updated_at_ms, new.started_by) == (old.updated_at_ms, old.started_by)
    assert new.forked_from is None
    assert find_ref(ledger.store, thread_ref(thread)) is None
    assert find_ref(ledger.store, TRASH_PREFIX + thread) == before[-1].commit.oid
    assert_gone(ledger.store, GITHUB)
    check_thread(ledger.store, copy)


def test_texts_links_and_prompts_follow_the_change(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = busy_thread(ledger, tmp_path)

    copy = redact(ledger, thread).tip.thread

    record = record_of(ledger, copy)
    first, second = record.steps()
    plan = record.node(first.output["plan"])
    assert record.start.prompt == f"Fix it with {SHOWN}"
    assert first.edge_prompt == f"Begin: Fix it with {SHOWN}"
    assert first.body == f"See {plan.hash}; {SHOWN}."
    assert plan.payload == f"1. Use {SHOWN}\n2. Done"
    assert second.edge_prompt == f"Judge {plan.hash}."
    assert first.warnings == ("redacted: github-token",)
    assert second.note == "best"


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        pytest.param(PEM.strip(), PEM, id="key"),
        pytest.param(PEM.strip(), json.dumps({"key": PEM}), id="key in JSON"),
        pytest.param(
            ANTHROPIC, b64encode(f"x: {ANTHROPIC} y".encode()).decode(), id="base64"
        ),
    ],
)
def test_a_secret_is_taken_out_in_the_form_in_which_it_stands(
    ledger: Ledger, tmp_path: Path, secret: str, text: str
) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply(plan=f"a {text} b", body=f"Look:\n{text}\nend."))

    copy = redact(ledger, thread).tip.thread

    check_thread(ledger.store, copy)
    assert_gone(ledger.store, secret, text)


def test_steps_before_the_secret_keep_their_hashes(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply(plan="x"), reply("bad", reason=GITHUB), reply(plan="y"))
    old = record_of(ledger, thread).steps()

    copy = redact(ledger, thread).tip.thread

    new = record_of(ledger, copy).steps()
    assert new[0].hash == old[0].hash
    assert [step.hash for step in new[1:]] != [step.hash for step in old[1:]]
    assert new[2].edge_prompt == f"Fix it: {SHOWN}"
    check_thread(ledger.store, copy)


def test_only_the_named_finding_is_taken_out(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply(plan=GITHUB, body=ANTHROPIC))

    copy = redact(ledger, thread, finding=TOKEN.id).tip.thread

    step = record_of(ledger, copy).steps()[0]
    assert step.output["plan"] == SHOWN
    assert ANTHROPIC in step.body


@pytest.mark.parametrize("finding", [None, TOKEN.id])
def test_what_was_let_through_can_be_taken_out(
    ledger: Ledger, tmp_path: Path, finding: str | None
) -> None:
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread
    allow_findings(ledger.store, [TOKEN.id], by="Ada", now_ms=1)

    done = redact(ledger, thread, finding=finding)

    assert (done.findings, done.passed) == ((TOKEN.id,), ())
    assert_gone(ledger.store, GITHUB)


def test_what_was_let_through_stays_while_there_is_more(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread
    share(ledger.store, thread, events(ledger.store, thread)[-1].commit.oid)
    allow_findings(ledger.store, [TOKEN.id], by="Ada", now_ms=1)
    go(ledger, thread, reply(plan="x"), reply("bad", reason=ANTHROPIC))

    error = refuse(ledger, thread)
    git(ledger.store, "update-ref", "-d", f"refs/remotes/origin/thread/{thread}")
    done = redact(ledger, thread)

    # Known there is only what is no secret.
    assert "though not yet the secret" in error.message
    assert (error.hint or "").count("--at 1") == 1
    assert done.passed == (TOKEN.id,)
    assert GITHUB in record_of(ledger, done.tip.thread).start.prompt
    assert_gone(ledger.store, ANTHROPIC)


def test_a_fork_becomes_a_thread_from_genesis_with_the_inherited_steps(
    ledger: Ledger, tmp_path: Path
) -> None:
    origin = begin(ledger, tmp_path).thread
    go(ledger, origin, reply(plan="x"), reply("bad", reason="slow"))
    thread = fork_thread(ledger, origin).thread
    go(ledger, thread, reply(plan=GITHUB), reply("good"))
    kept = find_ref(ledger.store, thread_ref(origin))

    copy = redact(ledger, thread).tip.thread

    state = state_of(ledger.store, copy)
    assert (state.forked_from, state.steps, state.status) == (None, 4, "end")
    assert names(ledger.store, copy) == ["start", "step", "step", "step", "step"]
    assert find_ref(ledger.store, thread_ref(origin)) == kept
    check_thread(ledger.store, copy)
    assert_gone(ledger.store, GITHUB)


def test_a_poke_of_an_inherited_step_moves_the_copy_aside(
    ledger: Ledger, tmp_path: Path
) -> None:
    origin = begin(ledger, tmp_path).thread
    go(ledger, origin, reply(plan="x"))
    thread = fork_thread(ledger, origin).thread
    poke_thread(acting(ledger, saying(reply(plan=GITHUB))), thread, note="another one")

    copy = redact(ledger, thread).tip.thread

    check_thread(ledger.store, copy)
    assert names(ledger.store, copy) == ["start", "step", "poke"]


def test_other_threads_that_hold_it_are_named_then_redacted_along(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply(plan="x"))
    clean = fork_thread(ledger, thread).thread
    go(ledger, thread, reply("bad", reason=GITHUB))
    fork = fork_thread(ledger, thread).thread
    go(ledger, fork, reply(plan="again"))

    error = refuse(ledger, thread)
    done = redact(ledger, thread, forks=True)

    assert fork in error.message
    assert clean not in error.message
    assert error.hint is not None
    assert "--forks" in error.hint
    copies = dict(done.threads)
    assert copies.keys() == {thread, fork}
    assert done.tip.thread == copies[thread]
    for copy in copies.values():
        check_thread(ledger.store, copy)
    assert find_ref(ledger.store, thread_ref(clean)) is not None
    assert_gone(ledger.store, GITHUB)


def test_a_family_that_holds_it_everywhere_is_redacted_as_one(
    ledger: Ledger, tmp_path: Path
) -> None:
    """Inherited, poked and replaced steps, attempts, and forks of each."""
    root = begin(ledger, tmp_path).thread
    go(ledger, root, reply(plan="x"), reply("bad", reason=f"see {GITHUB}"))
    inherits = fork_thread(ledger, root).thread
    poke_thread(
        acting(ledger, saying(reply("bad", reason="y"))), inherits, note="better"
    )
    go(ledger, root, failure(f"broke at {GITHUB}", text=f"try {GITHUB}"))
    of_attempt = fork_thread(ledger, root).thread
    resume_thread(acting(ledger, saying(reply(plan="z"))), root, note=f"as {GITHUB}")
    deeper = fork_thread(ledger, of_attempt).thread
    go(ledger, deeper, reply(plan="w"))

    done = redact(ledger, root, forks=True)

    copies = dict(done.threads)
    assert copies.keys() == {root, inherits, of_attempt, deeper}
    for old, copy in copies.items():
        check_thread(ledger.store, copy)
        assert find_ref(ledger.store, thread_ref(old)) is None
    assert_gone(ledger.store, GITHUB)


def test_a_cancelled_thread_keeps_its_reason_but_for_the_secret(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    cancel_thread(ledger, thread, reason=f"leaked {GITHUB}\nbad", command="test")

    copy = redact(ledger, thread).tip.thread

    last = events(ledger.store, copy)[-1]
    assert state_of(ledger.store, copy).status == "cancelled"
    assert last.commit.message.startswith(f"cancel: leaked {SHOWN} bad\n")
    assert f"> leaked {SHOWN}\n> bad\n" in last.commit.message
    check_thread(ledger.store, copy)
    assert_gone(ledger.store, GITHUB)


def test_a_secret_in_the_pinned_workflow_is_taken_out_of_it(
    ledger: Ledger, tmp_path: Path
) -> None:
    workflow = make_workflow(
        graph={
            **make_workflow().graph,
            "worker": {"done": Target(role="critic", prompt=f"Log in with {GITHUB}")},
        }
    )
    thread = begin(ledger, tmp_path, workflow=workflow).thread
    go(ledger, thread, reply(plan="x"), reply("good"))

    copy = redact(ledger, thread).tip.thread

    assert record_of(ledger, copy).steps()[1].edge_prompt == f"Log in with {SHOWN}"
    check_thread(ledger.store, copy)
    assert_gone(ledger.store, GITHUB)


def test_kept_nodes_with_the_secret_are_dropped(ledger: Ledger, tmp_path: Path) -> None:
    clean, dirty = make_text("fine"), make_text(f"it is {GITHUB}")
    put_nodes(ledger, [clean, dirty])
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread

    done = redact(ledger, thread)

    assert done.dropped == (dirty.hash,)
    assert clean.hash in list_kept(ledger)
    assert_gone(ledger.store, GITHUB)


def test_files_beside_the_store_that_hold_it_go_too(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread
    live = ledger.store.state_dir / "live"
    live.mkdir(exist_ok=True)
    (live / f"{thread}.jsonl").write_text(json.dumps({"content": GITHUB}))
    (live / f"{thread}.prompt.md").write_text("clean")

    redact(ledger, thread)

    assert [path.name for path in live.iterdir()] == [f"{thread}.prompt.md"]


def test_what_agents_remember_of_it_goes_with_the_old_thread(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread
    write_session(ledger, thread, SESSION, author=AUTHOR)

    copy = redact(ledger, thread).tip.thread

    assert list_refs(ledger.store, MEMORY_PREFIX) == {}
    assert thread != copy


def test_what_this_machine_knows_of_the_thread_follows(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread
    go(ledger, thread, reply(plan="x"))
    ledger.local.set_last(thread)
    ledger.local.set_folder(thread, tmp_path)
    ledger.local.set_without_code(thread)
    ledger.local.set_without_memory(thread)
    ledger.local.set_note(thread, f"not {GITHUB}")

    copy = redact(ledger, thread).tip.thread

    oids = [event.commit.oid for event in events(ledger.store, copy)]
    assert all(ledger.local.is_made_here(oid) for oid in oids)
    assert ledger.local.last() == copy
    assert ledger.local.find_folder(copy) == tmp_path
    assert ledger.local.is_without_code(copy)
    assert ledger.local.is_without_memory(copy)
    for each in (copy, thread):
        assert ledger.local.find_note(each) == "not [redacted:github-token]"


def test_what_others_made_does_not_become_ours(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread
    (ledger.store.state_dir / "local.sqlite3").unlink()
    ledger.local.close()
    go(ledger, thread, reply(plan="x"))

    copy = redact(ledger, thread).tip.thread

    first, second = events(ledger.store, copy)
    assert not ledger.local.is_made_here(first.commit.oid)
    assert ledger.local.is_made_here(second.commit.oid)


def share(store: Store, thread: ThreadId, oid: Oid) -> None:
    ref = f"refs/remotes/origin/thread/{thread}"
    move_ref(store, ref, old=find_ref(store, ref), new=oid, reason="test")


def test_for_a_shared_one_the_last_clean_step_is_named(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply(plan="x"), reply("bad", reason="y"), reply(plan=GITHUB))
    share(ledger.store, thread, events(ledger.store, thread)[-1].commit.oid)

    error = refuse(ledger, thread)

    assert "remote 'origin' has the secret: revoke it first" in error.message
    assert error.hint is not None
    assert f"uwf thread fork {thread} --at 2" in error.hint
    fork = fork_thread(ledger, thread, at=2).thread
    with pytest.raises(StateError, match="no secret was found"):
        redact(ledger, fork)


def test_a_thread_of_which_a_remote_has_the_clean_part_is_forked_there(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply(plan="x"))
    share(ledger.store, thread, events(ledger.store, thread)[-1].commit.oid)
    go(ledger, thread, reply("bad", reason=GITHUB))

    error = refuse(ledger, thread)

    assert "though not yet the secret" in error.message
    assert error.hint is not None
    assert f"uwf thread fork {thread} --at 1" in error.hint


def secret_poke(ledger: Ledger, thread: ThreadId) -> None:
    """Let the note of a poke hold it: the second step is the one that stands now."""
    go(ledger, thread, reply(plan="x"), reply("bad", reason="y"))
    poke_thread(
        acting(ledger, saying(reply("bad", reason="z"))), thread, note=f"key {GITHUB}"
    )


def replaced_step(ledger: Ledger, thread: ThreadId) -> None:
    """Let a step hold it that a clean one replaced."""
    go(ledger, thread, reply(plan="x"), reply("bad", reason=GITHUB))
    poke_thread(acting(ledger, saying(reply("bad", reason="z"))), thread, note="no")
    go(ledger, thread, reply(plan="x"))


def poked_twice(ledger: Ledger, thread: ThreadId) -> None:
    """Let the note of the first of two pokes hold it."""
    secret_poke(ledger, thread)
    poke_thread(acting(ledger, saying(reply("bad", reason="a"))), thread, note="no")


def attempt(ledger: Ledger, thread: ThreadId) -> None:
    """Let a failed attempt hold it, behind which the thread went on."""
    go(ledger, thread, reply(plan="x"), failure("broke", text=f"try {GITHUB}"))
    resume_thread(
        acting(ledger, saying(reply("bad", reason="y"))), thread, note="again"
    )


@pytest.mark.parametrize("act", [secret_poke, replaced_step, poked_twice, attempt])
@pytest.mark.parametrize("has_all", [False, True])
def test_the_step_that_is_named_is_clean_as_it_stands_now(
    ledger: Ledger,
    tmp_path: Path,
    act: Callable[[Ledger, ThreadId], None],
    *,
    has_all: bool,
) -> None:
    thread = begin(ledger, tmp_path).thread
    first = events(ledger.store, thread)[0].commit.oid
    act(ledger, thread)
    last = events(ledger.store, thread)[-1].commit.oid
    share(ledger.store, thread, last if has_all else first)

    hint = refuse(ledger, thread).hint

    assert hint is not None
    assert f"uwf thread fork {thread} --at 1, then: uwf thread rm {thread}" in hint
    fork = fork_thread(ledger, thread, at=1).thread
    assert "no secret was found" in refuse(ledger, fork).message
    with pytest.raises(StateError, match="'origin'"):
        redact(ledger, fork_thread(ledger, thread, at=2).thread, forks=True)


def test_without_a_clean_step_there_is_none_to_name(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread
    share(ledger.store, thread, events(ledger.store, thread)[-1].commit.oid)

    assert refuse(ledger, thread).hint == "no step is without it: start a new thread"


def approve(store: Store, thread: ThreadId) -> str:
    """Approve a thread's tip by plain git."""
    tag = f"approved/{thread}/0"
    who = ("-c", "user.name=A", "-c", "user.email=a@b")
    git(store, *who, "tag", "-a", "-m", "fine", tag, thread_ref(thread))
    return f"refs/tags/{tag}"


def test_approvals_of_the_old_commits_go(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread
    tag = approve(ledger.store, thread)

    done = redact(ledger, thread)

    assert done.approvals == (tag,)
    assert_gone(ledger.store, GITHUB)


def meanwhile(ledger: Ledger, act: Callable[[], object]) -> Ledger:
    """Give a ledger for a redacting, in the middle of which something happens."""
    acts = [act]

    def random(count: int) -> bytes:
        if acts:
            acts.pop()()
        return ledger.random(count)

    return replace(ledger, random=random)


@pytest.mark.parametrize("forks", [False, True])
def test_a_thread_that_is_forked_meanwhile_is_not_redacted(
    ledger: Ledger, tmp_path: Path, *, forks: bool
) -> None:
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread
    if forks:
        fork_thread(ledger, thread)
    before = list_refs(ledger.store, "refs/")
    made: list[ThreadId] = []
    beside = meanwhile(ledger, lambda: made.append(fork_thread(ledger, thread).thread))

    with pytest.raises(ConflictError) as caught:
        redact(beside, thread, forks=forks)

    after = list_refs(ledger.store, "refs/")
    assert {ref: after[ref] for ref in before} == before
    assert after.keys() - before == {thread_ref(made[0])}
    assert made[0] in caught.value.message
    redact(ledger, thread, forks=True)
    assert_gone(ledger.store, GITHUB)


def test_a_thread_that_is_pushed_meanwhile_is_not_redacted(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread
    tip = events(ledger.store, thread)[-1].commit.oid
    beside = meanwhile(ledger, lambda: share(ledger.store, thread, tip))

    with pytest.raises(StateError, match="remote 'origin' has the secret"):
        redact(beside, thread)

    assert find_ref(ledger.store, thread_ref(thread)) == tip
    assert list_refs(ledger.store, TRASH_PREFIX) == {}


def test_an_approval_that_is_made_meanwhile_goes_too(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread
    tag = f"refs/tags/approved/{thread}/0"

    done = redact(meanwhile(ledger, lambda: approve(ledger.store, thread)), thread)

    assert done.approvals == (tag,)
    assert find_ref(ledger.store, tag) is None
    assert_gone(ledger.store, GITHUB)


def leaking(name: str) -> Workflow:
    """Make a workflow in whose file the secret stands."""
    graph = make_workflow().graph
    target = Target(role="critic", prompt=f"Log in with {GITHUB}")
    return make_workflow(name=name, graph={**graph, "worker": {"done": target}})


def test_registered_workflows_that_hold_it_too_are_named(
    ledger: Ledger, tmp_path: Path
) -> None:
    for workflow in (leaking("work"), leaking("copy"), make_workflow(name="clean")):
        add_workflow(ledger, workflow, workflow_data(workflow))
    thread = begin(ledger, tmp_path, workflow=leaking("work")).thread
    clean = make_workflow(name="copy")
    add_workflow(ledger, clean, workflow_data(clean))

    done = redact(ledger, thread)

    # An older version of the second: it would leave with its branch.
    assert done.left == ("refs/heads/workflow/copy", "refs/heads/workflow/work")


@pytest.mark.slow
def test_while_kept_nodes_cannot_be_dropped_no_thread_changes(
    ledger: Ledger, tmp_path: Path
) -> None:
    put_nodes(ledger, [make_text(f"it is {GITHUB}")])
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread
    before = list_refs(ledger.store, "refs/")
    held = ledger.store.path / "refs" / "uwf" / "keep.lock"
    held.touch()

    with pytest.raises(LockedError):
        redact(ledger, thread)

    assert list_refs(ledger.store, "refs/") == before
    held.unlink()
    assert len(redact(ledger, thread).dropped) == 1
    assert_gone(ledger.store, GITHUB)


def test_a_branch_of_other_content_that_holds_it_stops_the_redacting(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread
    main = find_ref(ledger.store, "refs/heads/main")
    tip = find_ref(ledger.store, thread_ref(thread))
    move_ref(ledger.store, "refs/heads/main", old=main, new=tip, reason="merge")

    assert "'refs/heads/main' holds the secret too" in refuse(ledger, thread).message


def test_a_secret_in_a_name_that_decides_the_way_stops_the_redacting(
    ledger: Ledger, tmp_path: Path
) -> None:
    work = make_workflow()
    schema = {
        "properties": {"$status": {"const": GITHUB}, "plan": {"type": "string"}},
        "required": ["$status", "plan"],
    }
    workflow = make_workflow(
        roles={**work.roles, "worker": replace(work.roles["worker"], schema=schema)},
        graph={**work.graph, "worker": {GITHUB: Target(role="critic", prompt="Go.")}},
    )
    thread = begin(ledger, tmp_path, workflow=workflow).thread
    go(ledger, thread, reply(GITHUB, plan="x"))
    before = list_refs(ledger.store, "refs/")

    with pytest.raises(UwfError):
        redact(ledger, thread)

    assert list_refs(ledger.store, "refs/") == before


def test_a_clean_thread_and_an_unknown_finding_are_told(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread

    assert "no secret was found" in refuse(ledger, thread).message
    with pytest.raises(NotFoundError) as caught:
        redact(ledger, thread, finding=TOKEN.id)
    assert caught.value.hint == f"no secret was found in thread {thread}"


def test_an_unknown_finding_is_answered_by_those_that_exist(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB} and {ANTHROPIC}").thread
    (other,) = scan_text(ANTHROPIC)

    with pytest.raises(NotFoundError) as caught:
        redact(ledger, thread, finding="bogus")

    assert caught.value.hint is not None
    assert {TOKEN.id, other.id} <= {*caught.value.hint.replace(",", "").split()}
    # To ask for the list is not to ask for the deed.
    assert "uwf thread redact" not in caught.value.hint
    assert find_ref(ledger.store, thread_ref(thread)) is not None


def test_a_running_thread_is_left_alone(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path, prompt=f"Use {GITHUB}").thread

    with (
        lock(ledger.store.locks / thread, command="somebody"),
        pytest.raises(LockedError),
    ):
        redact(ledger, thread)

    assert find_ref(ledger.store, thread_ref(thread)) is not None


@pytest.mark.parametrize("way", ["mine", "theirs"])
def test_before_a_resolve_that_brought_it_the_steps_are_clean(
    ada: Person, bob: Person, way: Way
) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    leaked = reply("bad", reason=GITHUB)
    bob.go(thread, BAD if way == "theirs" else leaked)
    bob.push()
    ada.go(thread, leaked if way == "theirs" else BAD)
    ada.pull()
    ada.resolve(thread, way)

    hint = refuse(ada.ledger, thread).hint

    assert hint is not None
    assert f"uwf thread fork {thread} --at 2," in hint
    fork = fork_thread(ada.ledger, thread, at=2).thread
    assert "no secret was found" in refuse(ada.ledger, fork).message
