"""What a thread's branch holds, read anew, and what must be true of every one."""

from __future__ import annotations

from collections.abc import Iterator

from tests.builders import git
from tests.proof import assert_verified
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.node import validate_node
from uwfgit.model.schema.check import find_refs
from uwfgit.model.thread.derive import run_files, task_file
from uwfgit.model.thread.event import Event, iter_events, read_event
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.state import ThreadState, encode_state
from uwfgit.model.thread.tip import load_tip, read_tip
from uwfgit.store.canonical import META_TYPE
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import step_folder, thread_ref
from uwfgit.store.objects import find_entry, read_blob, read_commit, walk_files
from uwfgit.store.refs import find_ref

STATE = "thread.json"


def tip_oid(store: Store, thread: ThreadId) -> Oid:
    oid = find_ref(store, thread_ref(thread))
    assert oid is not None
    return oid


def events(store: Store, thread: ThreadId) -> list[Event]:
    """Give a thread's events, oldest first."""
    return list(iter_events(store, tip_oid(store, thread)))[::-1]


def names(store: Store, thread: ThreadId) -> list[str]:
    return [event.name for event in events(store, thread)]


def state_of(store: Store, thread: ThreadId) -> ThreadState:
    return load_tip(store, thread).state


def files(store: Store, thread: ThreadId, folder: str = "") -> dict[str, bytes]:
    """Give the files of a thread's own folder, or of one below it, by path."""
    path = f"threads/{thread}/{folder}".rstrip("/")
    entry = find_entry(store, read_commit(store, tip_oid(store, thread)).tree, path)
    if entry is None:
        return {}
    return {
        name: read_blob(store, file.oid) for name, file in walk_files(store, entry.oid)
    }


def paths(store: Store, thread: ThreadId, folder: str = "history") -> list[str]:
    return sorted(files(store, thread, folder))


def check_thread(store: Store, thread: ThreadId, *, is_authored: bool = True) -> None:
    """Check what must hold for every thread, whatever happened to it.

    Args:
        is_authored: The workflow is one that authoring lets through; without
            that verify would refuse it, and only the rest is checked.
    """
    tip = tip_oid(store, thread)
    _check_commits(store, tip)
    _check_states(store, tip)
    _check_files(store, thread)
    if is_authored:
        assert_verified(store)
    else:
        _check_nodes(store, thread)


def _check_commits(store: Store, tip: Oid) -> None:
    """One parent each, down to genesis, and only the own folder changes."""
    for commit, parents, changed in _iter_changes(store, tip):
        event = read_event(read_commit(store, commit))
        folder = f"threads/{event.thread}/"
        assert len(parents) == 1
        assert changed
        assert all(path.startswith(folder) for _, path in changed), changed
        assert {mode for mode, _ in changed} <= {"100644", "000000"}, changed


def _iter_changes(
    store: Store, tip: Oid
) -> Iterator[tuple[Oid, list[str], list[tuple[str, str]]]]:
    log = git(
        store,
        *("log", "--raw", "--no-renames", "--format=%x01%H %P", tip),
        f"^{GENESIS_OID}",
    )
    for block in log.split("\x01")[1:]:
        head, *lines = filter(None, block.split("\n"))
        commit, *parents = head.split()
        # A raw line holds two modes, two oids and a letter; a tab; the path.
        changed = [(line.split()[1], line.split("\t")[1]) for line in lines]
        yield Oid(commit), parents, changed


def _check_states(store: Store, tip: Oid) -> None:
    """Bytes are canonical, times never go back, status and fields agree."""
    before, completed = (0, 0, 0), None
    chain = list(iter_events(store, tip))[::-1]
    states = [read_tip(store, e.thread, e.commit.oid).state for e in chain]
    for event, state in zip(chain, states, strict=True):
        committed = event.commit.committer.time
        now = (state.started_at_ms, state.updated_at_ms, committed)
        assert now >= before
        assert state.updated_at_ms >= before[1]
        assert committed >= before[2]
        assert state.updated_by == event.commit.committer.who
        assert (state.current_role is not None) is (state.status == "idle")
        waits = state.status == "suspended"
        assert (state.suspended_role is not None) is waits
        assert (state.suspend_message is not None) is waits
        done = state.status in {"end", "cancelled"}
        if event.name != "summary":
            completed = state.updated_at_ms if done else None
        assert state.completed_at_ms == completed
        before = now
    folder = f"threads/{chain[-1].thread}"
    assert encode_state(states[-1]) == _read(store, tip, folder, STATE)


def _check_nodes(store: Store, thread: ThreadId) -> None:
    """Each reads back under its hash and schema, and all it refers to is there."""
    record = open_record(store, thread)
    for node_hash in record.places:
        node = record.node(node_hash)
        schema = record.node(node.type, META_TYPE).payload
        assert validate_node(node, schema) == ()
        refs = () if node.type == META_TYPE else find_refs(schema, node.payload)
        assert {*refs, node.type} <= record.places.keys()


def _check_files(store: Store, thread: ThreadId) -> None:
    """The files people read are those of the nodes; the nearest thread's count."""
    tip = load_tip(store, thread)
    record = open_record(store, tip)
    chain = [thread]
    state = tip.state
    while state.forked_from is not None:
        chain.append(state.forked_from.thread)
        entry = find_entry(store, tip.tree, f"threads/{chain[-1]}/{STATE}")
        assert entry is not None
        state = read_tip(store, chain[-1], tip.commit).state
    for step in record.steps():
        folder = step_folder(step.number, step.role)
        found = [
            f"threads/{each}/{folder}"
            for each in chain
            if find_entry(store, tip.tree, f"threads/{each}/{folder}/output.md")
        ]
        assert found
        output = _read(store, tip.commit, found[0], "output.md")
        prompt = _read(store, tip.commit, found[0], "prompt.md")
        files = run_files(
            step.output, step.body, edge_prompt=step.edge_prompt, note=step.note
        )
        assert {"output.md": output, "prompt.md": prompt} == files
    task = _read(store, tip.commit, f"threads/{chain[-1]}", "TASK.md")
    assert task == task_file(record.start.prompt)


def _read(store: Store, commit: Oid, folder: str, name: str) -> bytes:
    entry = find_entry(store, read_commit(store, commit).tree, f"{folder}/{name}")
    assert entry is not None, f"{folder}/{name}"
    return read_blob(store, entry.oid)


def check_store(store: Store) -> None:
    """Let git itself look at every object and every ref."""
    git(store, "fsck", "--strict", "--no-dangling")
