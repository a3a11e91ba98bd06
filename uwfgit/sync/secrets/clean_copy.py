"""Write a thread again from genesis, without what its texts must not hold.

Nothing runs and no ref moves. Every event keeps its author, committer and
times; hashes, edge prompts and commits are made again from the changed texts,
by the same functions that record a run. Forks and resolves leave no event: the
inherited steps are the new thread's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from uwfgit.constants import END, MAX_SUMMARY_BYTES
from uwfgit.engine.decide.moderator import RoutingError, next_prompt, outcome_with
from uwfgit.engine.run.thread import first_prompt
from uwfgit.errors import CorruptError, InvalidError, StateError
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.ledger.append import (
    StepDraft,
    append_attempt,
    append_hold,
    append_step,
)
from uwfgit.model.ledger.branch import append_start, append_summary, append_word
from uwfgit.model.ledger.commit import require_signing, signer_for
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.mask import Masker
from uwfgit.model.node import (
    DETAIL_TYPE,
    ERROR_TYPE,
    HOLD_TYPE,
    START_TYPE,
    STEP_TYPE,
    WORKFLOW_TYPE,
    Node,
    make_node,
    read_payload,
)
from uwfgit.model.thread.derive import find_hash_strings, find_hash_words, read_quote
from uwfgit.model.thread.event import WORDS, Event, iter_events, read_event
from uwfgit.model.thread.links import LinkRule, collect_links
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.step import Hold, StepFields, StepNode, usage_since
from uwfgit.model.thread.tip import read_tip
from uwfgit.model.workflow.pinned import workflow_from_data
from uwfgit.model.workflow.workflow import Workflow, workflow_from_node, workflow_nodes
from uwfgit.store.git.settings import Identity
from uwfgit.store.git.signing import NO_SIGNER
from uwfgit.store.layout import (
    SUMMARY_FILE,
    WORKFLOW_FILE,
    find_node_name,
    thread_folder,
)
from uwfgit.store.objects import find_entry, read_blob, read_commit
from uwfgit.sync.secrets.copies import Copies, Redo, Redone
from uwfgit.sync.verify.rawtree import Objects, diff_trees


def redo_thread(
    ledger: Ledger, thread: ThreadId, *, masker: Masker, copies: Copies
) -> Redone:
    """Write a thread again under a new id, from genesis, and those that it names.

    Args:
        ledger: Where.
        thread: The old one.
        masker: Takes out what must go.
        copies: All that are written again; those above are begun before.

    Raises:
        StateError: The new texts would lead the workflow elsewhere, or they
            stand where they cannot be changed.
        StoreError: It was to be signed, and cannot be.
        CorruptError: The old thread is damaged.
    """
    known = copies.done.get(thread)
    if known is not None:
        return known
    store = ledger.store
    require_signing(ledger)
    source = open_record(store, thread)
    events = list(iter_events(store, source.tip.commit))[::-1]
    first, *events = events
    redo = Redo(
        copies=copies,
        ledger=ledger,
        source=source,
        masker=masker,
        thread=copies.names[thread],
        last=[e for e in (first, *events) if e.name not in _NOT_WRITTEN][-1].commit.oid,
    )
    copies.hashes[thread] = redo.hashes
    record = _redo_start(redo, first)
    made_here = _made_here(ledger, first, record)
    copies.commits[first.commit.oid] = record.tip.commit
    for event in events:
        if event.name not in _NOT_WRITTEN:
            redo.found.clear()
            _redo_event(redo, event, record)
            made_here += _made_here(ledger, event, record)
        copies.commits[event.commit.oid] = record.tip.commit
    done = Redone(tip=record.tip, source=source.tip.commit, made_here=tuple(made_here))
    copies.done[thread] = done
    return done


_NOT_WRITTEN: Final = frozenset({"fork", "resolve"})


def _made_here(ledger: Ledger, event: Event, record: Record) -> list[Oid]:
    is_here = ledger.local.is_made_here(event.commit.oid)
    return [record.tip.commit] if is_here else []


def _as_then(redo: Redo, event: Event) -> Ledger:
    """Return a ledger with an event's committer and clock, which moves no ref."""
    person = event.commit.committer
    signer = signer_for(redo.ledger, person)
    signs = signer.wants(is_last=event.commit.oid == redo.last)
    return replace(
        redo.ledger,
        signer=signer if signs else NO_SIGNER,
        identity=Identity(name=person.name, email=person.email, is_default=False),
        now_ms=lambda: person.time * 1000,
        utc_offset=person.offset,
        is_draft=True,
    )


def _redo_start(redo: Redo, event: Event) -> Record:
    node = redo.source.node(redo.source.tip.state.start, START_TYPE)
    payload = {
        key: item
        for key, item in node.payload.items()
        if key not in {"workflow", "rules"}
    }
    named = [
        *payload.get("children", {}).values(),
        *filter(None, [payload.get("inputs")]),
    ]
    extra = _redo_named(redo, [Hash(name) for name in named])
    payload = redo.value(payload)
    copies, parent = redo.copies, node.payload.get("parent")
    above = copies.parents.get(redo.source.tip.thread)
    if parent is not None and above is None:
        payload["parent"] = dict(parent)
    elif parent is not None and above is not None:
        # The thread above, as that is called now.
        step = copies.hashes[above].get(Hash(parent["step"]), Hash(parent["step"]))
        payload["parent"] = {"thread": copies.names[above], "step": step}
    workflow = _redo_workflow(redo, Hash(node.payload["workflow"]))
    values = None
    if payload.get("inputs") is not None:
        values = redo.nodes[Hash(payload["inputs"])].payload
    routed = first_prompt(workflow, payload, thread=redo.thread, inputs=values)
    if isinstance(routed, RoutingError) or routed.role == END:
        raise _elsewhere(0)
    record = append_start(
        _as_then(redo, event),
        thread=redo.thread,
        workflow=workflow,
        data=_redo_file(redo, event, workflow),
        start=payload,
        current_role=routed.role,
        extra=extra,
    )
    redo.hashes[node.hash] = record.tip.state.start
    return record


def _redo_child(redo: Redo, child: Mapping[str, str]) -> dict[str, str]:
    """Return the child that a step names, as it is called now; written before."""
    thread, copies = ThreadId(child["thread"]), redo.copies
    if thread not in copies.names:
        return dict(child)
    redo_thread(redo.ledger, thread, masker=redo.masker, copies=copies)
    return {
        "thread": copies.names[thread],
        "oid": copies.commits[Oid(child["oid"])],
    }


def _redo_named(redo: Redo, names: Iterable[Hash]) -> tuple[Node, ...]:
    """Make nodes of a start again, with all that they and their types name."""
    found: dict[Hash, Node] = {}
    waiting = list(names)
    while waiting:
        old = waiting.pop()
        if old not in redo.source.places:
            continue
        node = redo.source.node(old)
        new = redo.nodes.get(redo.node(old), node)
        if new.hash not in found:
            found[new.hash] = new
            waiting += [node.type, *find_hash_strings(node.payload)]
    return tuple(found.values())


def _redo_workflow(redo: Redo, old: Hash) -> Workflow:
    """Make the pinned workflow again, its schemas first."""
    node = redo.source.node(old, WORKFLOW_TYPE)
    schemas = {}
    for role in node.payload["roles"].values():
        new = redo.node(Hash(role["frontmatter"]))
        schemas[new] = redo.nodes[new]
    made = make_node(WORKFLOW_TYPE, redo.value(node.payload))
    redo.hashes[old] = made.hash
    return workflow_from_node(made, schemas.get)


def _redo_file(redo: Redo, event: Event, workflow: Workflow) -> bytes:
    """Return the bytes of the workflow file; they must give the new workflow."""
    store = redo.ledger.store
    path = f"{thread_folder(event.thread)}/{WORKFLOW_FILE}"
    entry = find_entry(store, event.commit.tree, path)
    text = read_blob(store, entry.oid).decode() if entry is not None else ""
    data = redo.masker.mask(text, redo.found).encode()
    wanted = workflow_nodes(workflow)[-1]
    try:
        given = workflow_nodes(workflow_from_data(data))[-1]
    except InvalidError:
        given = None
    if given != wanted:
        raise StateError(
            "the secret stands in the workflow in a way that cannot be replaced",
            hint="fix the workflow's file and start a new thread",
        )
    return data


def _redo_event(redo: Redo, event: Event, record: Record) -> None:
    ledger = _as_then(redo, event)
    if event.name in WORDS:
        # The message alone holds it.
        reason = redo.text(read_quote(event.commit.message))
        tip = append_word(ledger, record.tip, event.name, reason=reason)
        record.advance(tip, {})
        return
    if event.name == "summary":
        _redo_summary(redo, event, record, ledger)
        return
    if event.name == "hold" and event.node is not None:
        _redo_hold(redo, event.node, event, record, ledger)
        return
    if event.node is None:
        raise StateError(f"commit {event.commit.oid} is of an unknown kind")
    old = redo.source.node(event.node, STEP_TYPE)
    replaces = _replaces(redo, event, old, record)
    rule = _redo_links(redo, event, old)
    draft = _redo_draft(redo, old, record, replaces=replaces)
    if event.name == "attempt":
        new = append_attempt(ledger, record, draft, of_poke=replaces)
        redo.hashes[old.hash] = new
        return
    links = collect_links(
        record,
        rule,
        strings=find_hash_strings(draft.output),
        words=find_hash_words([draft.body]),
    )
    # They will be told again, by the function that records the step.
    told = tuple(text for text in draft.warnings if text not in links.warnings)
    draft = replace(draft, warnings=told)
    outcome = outcome_with(record, draft, replaces=replaces)
    tip = append_step(
        ledger, record, draft, event=event.name, outcome=outcome, rule=lambda: rule
    )
    redo.hashes[old.hash] = tip.state.head


def _redo_summary(redo: Redo, event: Event, record: Record, ledger: Ledger) -> None:
    store, (parent, *_) = redo.ledger.store, event.commit.parents
    path = f"{thread_folder(event.thread)}/{SUMMARY_FILE}"
    entry = find_entry(store, event.commit.tree, path)
    if entry is None:
        raise CorruptError(f"commit {event.commit.oid} has no {SUMMARY_FILE}")
    text = read_blob(store, entry.oid, limit=MAX_SUMMARY_BYTES).decode()
    before = read_tip(store, read_event(read_commit(store, parent)).thread, parent)
    after = read_tip(store, event.thread, event.commit.oid)
    tip = append_summary(
        ledger,
        record.tip,
        text=redo.text(text),
        usage=usage_since(before.state.usage, after.state.usage),
        judge=event.commit.author.name,
    )
    record.advance(tip, {})


def _redo_hold(
    redo: Redo, hold: Hash, event: Event, record: Record, ledger: Ledger
) -> None:
    old = redo.source.read(hold, HOLD_TYPE, Hold)
    detail = redo.source.node(old.detail, DETAIL_TYPE)
    append_hold(
        ledger,
        record,
        reason=redo.text(old.reason),
        detail=redo.value(detail.payload),
        usage=old.usage,
        judge=event.commit.author.name,
    )


def _replaces(redo: Redo, event: Event, old: Node, record: Record) -> bool:
    """Whether an event took, or tried to take, the newest step's place."""
    if event.name != "attempt":
        return event.name == "poke"
    state = record.tip.state
    if not state.steps:
        return False
    prev = old.payload["prev"]
    before = record.step(state.head, state.steps).prev
    return (None if prev is None else redo.hashes.get(prev)) == before


def _redo_links(redo: Redo, event: Event, step: Node) -> LinkRule:
    """Make the nodes again that an event's answer brought along."""
    store = redo.ledger.store
    parent = read_commit(store, event.commit.parents[0])
    changes = diff_trees(Objects(store=store), parent.tree, event.commit.tree)
    own = {step.hash, step.payload["output"], step.payload["detail"]}
    put = set()
    for path, (_, new) in changes.items():
        name = find_node_name(path.rpartition("/")[2])
        if new is not None and name is not None and name[0] not in own:
            put.add(redo.node(name[0]))
    return LinkRule(put=frozenset(put), named=frozenset(), find=redo.nodes.get)


def _redo_draft(redo: Redo, old: Node, record: Record, *, replaces: bool) -> StepDraft:
    payload: dict[str, Any] = old.payload
    output_type = redo.source.place(payload["output"])[0]
    detail = redo.source.node(payload["detail"], DETAIL_TYPE)
    made = redo.value({**payload, "edgePrompt": ""})
    values = redo.value(redo.source.step(old.hash, 0).output)
    details = redo.value(detail.payload)
    if payload.get("child") is not None:
        made["child"] = _redo_child(redo, payload["child"])
    made["edgePrompt"] = _edge_prompt(record, payload["role"], replaces=replaces)
    remarks = tuple(f"redacted: {name}" for name in sorted(redo.found))
    made |= {"usage": payload["usage"], "code": payload["code"]}
    step = read_payload(replace(old, payload=made), StepNode)
    fields = {name: getattr(step, name) for name in StepFields.__struct_fields__}
    return StepDraft(
        **{**fields, "warnings": (*step.warnings, *remarks)},
        output=values,
        output_type=ERROR_TYPE if output_type == ERROR_TYPE else redo.node(output_type),
        detail=details,
    )


def _edge_prompt(record: Record, role: str, *, replaces: bool) -> str:
    """Render what the moderator gives now.

    Raises:
        StateError: It leads to another role than the one that answered.
    """
    state = record.tip.state
    if replaces:
        return record.step(state.head, state.steps).edge_prompt
    routed = next_prompt(record)
    if isinstance(routed, RoutingError) or routed.role != role:
        raise _elsewhere(state.steps)
    return routed.prompt


def _elsewhere(steps: int) -> StateError:
    return StateError(
        f"without the secret the workflow would go on differently after step {steps}",
        hint="fork the thread before that step, and remove it",
    )
